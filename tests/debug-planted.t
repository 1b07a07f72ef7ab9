#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Proves the debug kernels' detectors: each planted fault (tests/planted) must make the guest tests'
# own runner fail, and be named in what it prints. See --help.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../scripts/lib.sh"

usage()
{
	cat <<-END
	usage: tests/debug-planted.t [KERNEL...]      (default: all debug kernels)

	TAP: for each KERNEL and fault, that the test which plants it fails, and that the report has
	the fault's name. One boot for each kernel; tests/planted/faults.txt is the list.
	END
}

case ${1:-} in -h | --help) usage; exit ;; esac
kernels=("$@")
[ "${#kernels[@]}" -gt 0 ] || mapfile -t kernels < <(all_debug_kernels)
for kernel in "${kernels[@]}"; do
	[[ $kernel = *-debug ]] || die "not a debug kernel: '$kernel'; there are: $(all_debug_kernels | xargs)"
	root_of "$kernel" >/dev/null
done
need_root

faults=$here/planted/faults.txt
n=0 failed=0
result() # RC TEXT [FILE]
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
		[ -z "${3:-}" ] || tail -n 30 "$3" | sed 's/^/#   /'
	fi
}

for kernel in "${kernels[@]}"; do
	results=$mprr_build/results/planted-$kernel
	mkdir -p "$results"
	find "$results" -mindepth 1 -delete
	rc=0
	"$mprr_top/scripts/vm" run --timeout 1500 --module --results "$results" "$kernel" \
		/mprr/src/tests/planted/run >"$results/out" || rc=$?
	result "$rc" "$kernel: the guest plants all faults and lives" "$results/out"
	while read -r fault regex; do
		tap=$results/$fault.tap
		if [ ! -e "$tap" ]; then
			result 1 "$kernel: $fault: it was planted"
			continue
		fi
		rc=0
		grep -Eq '^not ok [0-9]+ - .*(no kernel warning|no memory was lost)' "$tap" || rc=1
		result "$rc" "$kernel: $fault: the run fails" "$tap"
		rc=0
		# Not grep -q: it would leave sed writing into a closed pipe.
		sed -n '/^not ok/,$p' "$tap" | grep -E -- "$regex" >/dev/null || rc=1
		result "$rc" "$kernel: $fault: the report says /$regex/" "$tap"
	done < <(sed -e '/^#/d' "$faults")
done
echo "1..$n"
exit "$failed"
