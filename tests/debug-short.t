#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What CI has the time for on the debug kernel 7.3: the guest tests that reach most of the module
# soonest, and the search for leaks. The kernel is built first, with what processor time the other
# tests leave. T chooses others, as with debug-7.3.t.
#
# MPRR_DEBUG_BY: if the kernel is not there so many seconds after scripts/check began, all is skipped.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib.sh
. "$top/scripts/lib.sh"

limit=()
if [ -n "${MPRR_DEBUG_BY:-}" ]; then
	left=$((${MPRR_BEGAN:-$(date +%s)} + MPRR_DEBUG_BY - $(date +%s)))
	limit=(timeout $((left > 1 ? left : 1)))
fi
rc=0
"${limit[@]}" nice -n 19 "$top/scripts/vm" prepare 7.3-debug || rc=$?
if [ "$rc" = 124 ] && [ "${#limit[@]}" -gt 0 ]; then
	echo "ok 1 - debug kernel 7.3: some guest tests # SKIP it was not built within $MPRR_DEBUG_BY s"
	echo 1..1
	exit
fi
[ "$rc" = 0 ] || die "no debug kernel ($rc)"
T=${T:-"020 030 040 060 080 110 130 500 510"} exec "$top/tests/kernel.sh" 7.3-debug "$@"
