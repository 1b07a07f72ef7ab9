#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: suspend (flush and noflush) just when the no-path time-out fires, on eight maps at
#       once; removal of maps and module with events of failed paths and the time-out pending.
# Why:  the time-out and the suspend both decide what happens to waiting I/O: a read without
#       a path must end with EIO in time, whoever is first, and queueing must end; work must
#       not outlive the module.
# How:  race.c spins on both sides; MPRR_RACES=N makes it N times as long.
# on: 6.12
# limit: 120
. "$(dirname "$0")/lib.sh"

RACES=${MPRR_RACES:-1}
build_c race

race() {
	local desc=$1 out t0
	shift
	t0=$(now_ms)
	out=$("$PROGRAM" -l $((20 * MPRR_SLOW)) "$@" || true)
	like "$out" '^ok ' "$desc"
	diag "$out ($(($(now_ms) - t0)) ms)"
}

mod_load queue_if_no_path_timeout_secs=1
paths_up 2
udev_off
T=$(table "1 queue_if_no_path 0 2 1 round-robin 0 1 1 $A 1 round-robin 0 1 1 $B 1")

race "a suspend meets the time-out: reads end with EIO, queueing ends" timer 8 1 "$T" \
	$((4 * RACES)) "$A" "$B"
mod_unload

if in_kernel; then skip_rest "the rest loads and unloads our module by itself"; fi
race "maps and module go with events pending" unload "$MPRR_KO" "" "$T" $((12 * RACES)) \
	"fail_path $A" "reinstate_path $A" "fail_path $B" "reinstate_path $B" "switch_group 2"
race "maps and module go with events and the time-out pending" unload "$MPRR_KO" \
	queue_if_no_path_timeout_secs=1 "$T" $((12 * RACES)) "fail_path $A" "fail_path $B"
is "$(mod_loaded && echo loaded || echo no)" no "the module is gone"
is "$(dmsetup ls | grep -c mprr || true)" 0 "the maps are gone"

done_testing
