#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernel.sh - boots one guest, runs tests/guest/run in it and passes its TAP through. The
# kernel-*.t files are this with the kernel's name. A guest that dies, hangs or says
# nothing is a failure, never a short success.
set -euo pipefail

usage() {
	cat <<-EOF
	usage: tests/kernel.sh KERNEL      (tests/kernel-KERNEL.t is the same, and
	                                    tests/debug-KERNEL.t for KERNEL-debug)

	environment:
	  T             tests to run by the begin of their names, e.g. T="030 070" (default: all)
	  MPRR_MINUTES  how long 070 breaks paths, twice (default 0.3)
	  MPRR_SEED     random seed of 070 and of the fuzzers 300-330
	  MPRR_FUZZ     how much the fuzzers do, in units (default 1; see README.md)
	  MPRR_TABLES, MPRR_MESSAGES, MPRR_LOADS, MPRR_SEQUENCES
	                the same, as the number of cases of one fuzzer
	  MPRR_CASE     the one case that a fuzzer runs, verbosely
	  MPRR_RACES    the races of the 500 series run so many times as long (default 1)
	  MPRR_...      whatever else a test asks for is passed on, too
	  MPRR_PART     a word: the results go to build/results/tests-KERNEL-PART, so that guests with
	                different tests can run side by side (scripts/coverage adds up all parts)
	  MPRR_TIMEOUT  seconds after which the guest is ended (default: what the above needs)
	  MPRR_ALL      run what runs on another kernel by default, too
	  TARGET        mpath-rr, or multipath = the in-kernel target, to check the tests
	EOF
}

for arg; do
	case $arg in --help | -h) usage; exit 0 ;; esac
done
case $#:${1:-} in
1:?*) ;;
*) usage >&2; exit 2 ;;
esac
KERNEL=$1
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib.sh
. "$TOP/scripts/lib.sh"
root_of "$KERNEL" >/dev/null
need_root
for name in ${T:-}; do
	compgen -G "$TOP/tests/guest/$name*.sh" >/dev/null || die "no test begins with '$name'"
done
[[ ${MPRR_PART:-x} =~ ^[a-z0-9]+$ ]] || die "MPRR_PART is not a word of a-z and 0-9: '$MPRR_PART'"
RESULTS=$TOP/build/results/tests-$KERNEL${MPRR_PART:+-$MPRR_PART}
MPRR_MINUTES=${MPRR_MINUTES:-0.3}
read -ra names <<<"${T:-}"

# All tests together; a debug kernel takes its time.
MPRR_FUZZ=${MPRR_FUZZ:-1}
limit=$((2700 * ${MPRR_RACES:-1} + 250 * (MPRR_FUZZ - 1) + ${MPRR_TABLES:-0} / 20 + ${MPRR_MESSAGES:-0} / 20 +
	2 * ${MPRR_LOADS:-0} + 10 * ${MPRR_SEQUENCES:-0} +
	$(awk -v m="$MPRR_MINUTES" 'BEGIN {print int(m * 300)}')))
case $KERNEL in *-debug) limit=$((limit * 4)) ;; esac
vm=(--timeout "${MPRR_TIMEOUT:-$limit}" --module)
# 200 needs the module installed and multipathd at boot, and ends both; named tests may not.
boot="--module"
case " ${names[*]:-2} " in
*" 2 "* | *" 20"*)
	vm+=(--install --multipathd --pre "$TOP/tests/guest/pre-boot.sh")
	boot="--module --install --multipathd --pre tests/guest/pre-boot.sh"
	;;
esac
args=(MPRR_MINUTES="$MPRR_MINUTES")
# Settings of the tests; what the guest sets by itself stays the guest's.
for name in "${!MPRR_@}"; do
	case $name in
	MPRR_LAB | MPRR_CHECK | MPRR_TIMEOUT | MPRR_PART | MPRR_MINUTES | MPRR_SRC | MPRR_RESULTS | MPRR_KO | MPRR_KERNEL | MPRR_SLOW | MPRR_TMP) ;;
	*) [ -z "${!name}" ] || args+=("$name=${!name}") ;;
	esac
done
[ -z "${TARGET:-}" ] || args+=(TARGET="$TARGET")

rm -rf "$RESULTS"
mkdir -p "$RESULTS"
tap=$RESULTS/tap
rc=0
"$TOP/scripts/vm" run "${vm[@]}" --results "$RESULTS" "$KERNEL" \
	/mprr/src/tests/guest/run "${args[@]}" ${names[@]+"${names[@]}"} |
	tee "$tap" | grep --line-buffered -v '^1\.\.[0-9]*$' || rc=${PIPESTATUS[0]}

# Count what came; without the plan, or with an exit status that does not fit, it is a failure.
count=$(grep -Ec '^(not )?ok ' "$tap" || true)
plan=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$tap")
if [ "$rc" -gt 1 ] || [ "${plan:-0}" != "$count" ]; then
	count=$((count + 1))
	case $rc in
	124) why="the guest ran out of time" ;;
	*) why="no verdict: the guest died, hung or did not start (exit $rc)" ;;
	esac
	echo "not ok $count - kernel $KERNEL: $why" | tee -a "$tap"
	tail -n 15 "$RESULTS/console.log" 2>/dev/null | sed 's/^/#   /' | tee -a "$tap" || true
elif [ "$rc" = 1 ] && ! grep -q '^not ok ' "$tap"; then
	count=$((count + 1))
	echo "not ok $count - kernel $KERNEL: the guest says failed, no test does" | tee -a "$tap"
fi
echo "1..$count"

# For people, next to prove's own output: what failed, how to run it again.
if grep -q '^not ok ' "$tap"; then
	awk '/^not ok/ {show = 1} /^ok/ {show = 0}
	     /^# [0-9][0-9][0-9]-.* s$/ {show = 0} show' "$tap" | sed 's/^/  /'
	case $KERNEL in
	*-debug) again=tests/debug-${KERNEL%-debug}.t ;;
	*) again=tests/kernel-$KERNEL.t ;;
	esac
	sed -n 's/^not ok [0-9]* - \([0-9][0-9][0-9]\)-.*/\1/p' "$tap" | sort -u | while read -r name; do
		echo "  again: T=$name $again"
		echo "    or:  scripts/vm run $boot $KERNEL /mprr/src/tests/guest/run $name"
		echo "    log: ${RESULTS#"$TOP"/}/$name-*/{log,kernel.log,dm-at-end}"
	done
fi >&2
[ "$rc" = 0 ] && ! grep -q '^not ok ' "$tap"
