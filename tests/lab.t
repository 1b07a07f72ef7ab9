#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The lab itself: no guest that dies, hangs or lies may look like a success, and nothing may be left
# behind. Usage: prove tests/lab.t [:: KERNEL]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../scripts/lib.sh
. "$here/../scripts/lib.sh"

if [ "${1:-}" = --help ]; then
	echo "usage: prove tests/lab.t [:: KERNEL]   tests scripts/vm with KERNEL (default 6.12)"
	exit
fi
kernel=${1:-6.12}
vm=$mprr_top/scripts/vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

number=0
check() # NAME COMMAND...: one test line; the command says whether it passed
{
	local name=$1 verdict=ok
	shift
	number=$((number + 1))
	if ! "$@"; then
		verdict="not ok"
		echo "# failed: $*"
	fi
	echo "$verdict $number - $name"
}

# guest NAME [OPTION...] -- [ARG...] <SCRIPT: runs it; leaves NAME.status, .out, .err in the work folder
guest()
{
	local name=$1 status=0
	shift
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	cat >"$work/$name.sh"
	"$vm" run --results "$work/$name" "${options[@]}" "$kernel" "$work/$name.sh" "$@" \
		>"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
	echo "$status" >"$work/$name.status"
}

status_is() # NAME STATUS
{
	[ "$(cat "$work/$1.status")" = "$2" ] && return
	echo "# $1: expected exit $2, got $(cat "$work/$1.status")"
	sed 's/^/# /' "$work/$1.err"
	return 1
}

has() # FILE REGEX
{
	grep -q -E "$2" "$work/$1" && return
	echo "# no '$2' in $1:"
	tail -n 20 "$work/$1" | sed 's/^/# /'
	return 1
}

# What a script might print to look good.
# shellcheck disable=SC2016 # for the guest's shell
lies='echo "$MPRR_NONCE 0"; echo "verdict: $MPRR_NONCE 0" >/dev/stderr'

echo 1..19
"$vm" prepare "$kernel" 2>&1 | sed 's/^/# /'

guest exit3 -- 'two words' "it's" <<-END
	$lies
	printf 'arg=%s\n' "\$@"
	printf 'user=%s kernel=%s\n' "\$(id -un)" "\$(uname -r)"
	echo kept >\$MPRR_RESULTS/kept
	touch \$MPRR_SRC/x 2>/dev/null || echo 'src is read-only'
	sleep 1000 &
	exit 3
END
check "the script's exit status is that of vm run, whatever it prints" status_is exit3 3
check "arguments arrive as given" has exit3.out "^arg=two words$"
check "quotes in arguments too" has exit3.out "^arg=it's$"
check "it runs as root on the kernel that was asked for" \
	has exit3.out "^user=root kernel=${kernel//./\\.}\\."
check "output to /dev/stderr arrives" has exit3.out '^verdict: '
check "the project is read-only in the guest" has exit3.out '^src is read-only$'
check "results are kept" has exit3/kept '^kept$'
check "the whole kernel log is kept" has exit3/dmesg.log 'Linux version'

# Both at once: guests of one kernel do not disturb each other.
guest panic -- <<-END &
	$lies
	echo c >/proc/sysrq-trigger
END
guest hang --timeout 80 -- <<-END
	$lies
	echo waiting
	sleep infinity
END
wait
check "a panic is no success" status_is panic 125
check "and is told" has panic.err 'no verdict: the guest died or hung'
check "with the reason" has panic.err 'Kernel panic - not syncing'
check "a hang is no success" status_is hang 124
check "and is told" has hang.err 'guest timed out after 80 s'

# An emulator that falls over a race of its own runs again, but only if the script had not begun.
MPRR_QEMU=/mprr/src/tests/falling-qemu guest falls -- <<-END &
	echo ran
	exit 4
END
MPRR_QEMU=/mprr/src/tests/falling-qemu-late guest falls-late -- <<-END
	$lies
	echo ran
END
wait
check "an emulator that fell before the script began runs again" status_is falls 4
check "and that is told" has falls.err 'booting once more'
check "one that fell later does not" status_is falls-late 125
check "nor does the script" test "$(grep -c '^ran' "$work/falls-late.out")" = 1

# Killed in the middle, it leaves neither the emulator nor a mount.
"$vm" run --results "$work/killed" "$kernel" "$vm" >/dev/null 2>&1 </dev/null &
pid=$!
disown "$pid"
wait_until 60 test -e "$work/killed/console.log" || echo "# the guest did not start"
mapfile -t family < <(pgrep -P "$pid" || true)
mapfile -t -O "${#family[@]}" family < <(pgrep -P "$(IFS=,; echo "${family[*]}")" || true)
kill -KILL "$pid"
all_gone()
{
	local member
	for member in "${family[@]}"; do gone "$member" || return 1; done
}
check "kill -9 leaves no process of ${#family[@]}" wait_until 10 all_gone
check "kill -9 leaves no mount" test "$(grep -c /mprr/ /proc/self/mounts || true)" = 0
