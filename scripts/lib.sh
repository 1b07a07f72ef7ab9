# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts that run on the host: messages, packages, waiting, where things are.
# Source it; it runs nothing.
# shellcheck disable=SC2034 # used by those that source it

mprr_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mprr_build=$mprr_top/build
# Roots, kernels and images; one such folder may serve several clones.
mprr_lab=$(realpath -m "${MPRR_LAB:-$mprr_build/lab}")

# --- messages: all on stderr, coloured on a terminal only ---

if [ -t 2 ]; then
	mprr_red=$'\e[31m' mprr_dim=$'\e[2m' mprr_off=$'\e[0m'
else
	mprr_red='' mprr_dim='' mprr_off=''
fi

note() { echo "$mprr_dim${0##*/}: $*$mprr_off" >&2; }
warn() { echo "$mprr_red${0##*/}: $*$mprr_off" >&2; }
die() { warn "$@"; exit 1; }

# --- waiting: for a condition, never for a time ---

# nap SECONDS: sleep without starting a process, which may cost more than what is waited for. The
# descriptor is a pipe that nobody writes into.
exec {mprr_nap_fd}<> <(:)
nap() { read -r -t "$1" -u "$mprr_nap_fd" _ || true; }

# wait_until SECONDS COMMAND...: true as soon as COMMAND is, false when the time is over.
wait_until()
{
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		nap 0.2
	done
}

# gone PID: true when that process has ended
gone() { ! kill -0 "$1" 2>/dev/null; }

# progress WHAT LOG COMMAND...: run something long, contained, with its output in LOG; say what runs,
# every 10 s how long already, and at the end how long it took or the last lines of LOG.
progress()
{
	local what=$1 log=$2
	shift 2
	note "$what ..."
	# A function cannot be executed by another program; what it starts is its own to contain.
	if declare -F "$1" >/dev/null; then
		"$@" >"$log" 2>&1 </dev/null &
	else
		"${contained[@]}" "$@" >"$log" 2>&1 </dev/null &
	fi
	await "$what" "$log" "$!"
}

# await WHAT LOG PID: the second half of progress, for a job that was started before
await()
{
	local what=$1 log=$2 pid=$3 start=$SECONDS rc=0
	until wait_until 10 gone "$pid"; do note "$what ... $((SECONDS - start)) s"; done
	wait "$pid" || rc=$?
	if [ "$rc" != 0 ]; then
		tail -n 15 "$log" | sed 's/^/    /' >&2
		warn "$what failed (exit $rc); whole log: $log"
		return "$rc"
	fi
	note "$what: done in $((SECONDS - start)) s"
}

# --- namespaces ---

# Everything that makes mounts or starts long-lived processes runs in namespaces of its own that end
# with this script, however it ends: nothing stays mounted and nothing keeps running.
contained=(setpriv --pdeathsig KILL
	unshare --mount --propagation private --pid --fork --kill-child --mount-proc --)

# --- locks ---

# Locks the lab for this script until it ends (descriptor 9): shared to use roots and images,
# exclusive to replace them.
lock_lab() # -s|-x
{
	exec 9>"$mprr_lab/lock"
	if ! flock -n "$1" 9; then
		note "waiting for other users of $mprr_lab"
		flock "$1" 9
	fi
}

# --- the host ---

need_root() { [ "$(id -u)" = 0 ] || die "must run as root"; }

apt_update()
{
	note "apt-get update"
	apt-get update -q >&2 || die "apt-get update failed"
}

# need_packages PACKAGE...: install by apt what is missing, and say so.
need_packages()
{
	local package missing=()
	for package; do
		[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = 'ii ' ] ||
			missing+=("$package")
	done
	[ "${#missing[@]}" -gt 0 ] || return 0
	need_root
	note "apt-get install ${missing[*]}"
	if ! apt-get install -s "${missing[@]}" >/dev/null 2>&1; then
		apt_update
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		-o DPkg::Lock::Timeout=300 "${missing[@]}" >&2 ||
		die "apt-get install ${missing[*]} failed"
}

# need_space DIR MEGABYTES: stop before the disk is full, not after.
need_space()
{
	local free
	free=$(df --output=avail -BM "$1" | tail -n 1 | tr -dc 0-9)
	[ "$free" -ge "$2" ] || die "$1 has $free MB free, this needs $2 MB"
}

# --- options ---

number() { [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || die "$1: not a number from 1 to 99999: '$2'"; }

# member WORD LIST...: is the word one of the list?
member() { local word=$1 w; shift; for w; do [ "$w" != "$word" ] || return 0; done; return 1; }

# words A,B,C: how many there are
words() { wc -w <<<"${1//,/ }"; }

# empty_results DIR: an empty folder for the results of a bench; only what such a run has made is removed
empty_results()
{
	mkdir -p "$1"
	if [ -e "$1/runs" ]; then
		find "$1" -mindepth 1 -delete
	elif [ -n "$(ls -A "$1")" ]; then
		die "--results: $1 holds something else"
	fi
}

# --- pictures ---

# plot FILE: gnuplot's commands on stdin become a picture. The guest root's gnuplot does where the
# host has none; without any there is no picture, and that is said.
plot()
{
	local gnuplot=(chroot "$mprr_lab/root/trixie" /usr/bin/env LC_ALL=C.UTF-8 HOME=/tmp gnuplot)
	! command -v gnuplot >/dev/null || gnuplot=(gnuplot)
	[ ${#gnuplot[@]} = 1 ] || [ -d "$mprr_lab/root/trixie" ] || { note "no gnuplot: no picture ${1##*/}"; return 0; }
	"${gnuplot[@]}" - >"$1" 2>"${1%/*}/gnuplot.log" ||
		{ cat "${1%/*}/gnuplot.log" >&2; die "gnuplot could not make the picture"; }
	note "picture ${1#"$PWD"/}"
}

# --- the table of kernels ---

# Its rows without comments: kernel root suite, and "debug" where there is a debug kernel, too
kernel_rows() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$mprr_top/scripts/kernels.txt"; }

# The kernels that Debian ships: kernel root suite
kernel_table() { kernel_rows | awk '{ print $1, $2, $3 }'; }

all_kernels() { kernel_table | awk '{ print $1 }'; }

# Debug kernels are called KERNEL-debug: built here from Debian's source package and lab/debug.config.
all_debug_kernels() { kernel_rows | awk '$4 == "debug" { print $1 "-debug" }'; }

# root_of KERNEL: the guest root that has it
root_of()
{
	kernel_rows | awk -v kernel="$1" '
		$1 == kernel || ($4 == "debug" && $1 "-debug" == kernel) { print $2; found = 1 }
		END { exit !found }' ||
		die "unknown kernel '$1'; there are: $(all_kernels | xargs) $(all_debug_kernels | xargs)"
}
