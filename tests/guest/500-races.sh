#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: under exactly verified I/O of several threads: reload against completion, group
#       switch, bypass and path failure against the last completion of a full path; then
#       messages against removal of the map they go to.
# Why:  a completion that meets a new table, a lost wake-up of a full path, a message that
#       finds half a map: each is a crossing of two processors that a shell never hits.
# How:  race.c spins on both sides; MPRR_RACES=N makes it N times as long.
# on: 6.12
# limit: 120
. "$(dirname "$0")/lib.sh"

RACES=${MPRR_RACES:-1}
build_c race
mod_load
paths_up 4
rr() { echo "round-robin 0 $# 1$(printf ' %s 3' "$@")"; }
ql() { echo "queue-length 0 $# 1$(printf ' %s 1' "$@")"; }
st() { echo "service-time 0 $# 1$(printf ' %s 1' "$@")"; }
Q="1 queue_if_no_path"

# race DESC VERB ARGS...: nothing takes longer than 20 s (scaled), and the line begins with ok
race() {
	local desc=$1 out t0
	shift
	t0=$(now_ms)
	out=$("$PROGRAM" -l $((20 * MPRR_SLOW)) "$@" || true)
	like "$out" '^ok ' "$desc"
	diag "$out ($(($(now_ms) - t0)) ms)"
}

# quiet DESC: nothing is in flight any more, and the selector knows
quiet() {
	wait_until 10 "$1: nothing is in flight" idle
	is "$(info_paths | awk 'NF > 5 {n += $6} END {print n + 0}')" 0 "$1: the selector counts nothing in flight"
}

# ---- reload against completion ----
mk_map "$Q 0 2 1 $(rr "$A" "$B") $(rr "$C" "$D")"
udev_off
race "reloads meet completions" reload $MAP $DEV $((40 * RACES)) \
	"$(table "$Q 0 2 1 $(rr "$A" "$B") $(rr "$C" "$D")")" \
	"$(table "$Q 0 1 1 $(ql "$A" "$B" "$C" "$D")")" \
	"$(table "0 0 2 2 $(st "$A" "$C") $(ql "$B" "$D")")" \
	"$(table "$Q 0 1 1 $(rr "$D")")"
quiet "after reloads"

# ---- the same over paths that are full all the time ----
lun_depth 1
race "reloads meet completions on full paths" reload $MAP $DEV $((40 * RACES)) \
	"$(table "$Q 0 1 1 $(ql "$A" "$B")")" \
	"$(table "$Q 0 1 1 $(rr "$C")")"
quiet "after reloads on full paths"

# ---- group switch and path failure against the last completion ----
# Each group is one path that takes one request; the second thread is always refused.
reload_map "$Q 0 2 1 $(ql "$A") $(ql "$B")"
race "group switches meet the last completion" storm $MAP $DEV $((1000 * RACES)) \
	"switch_group 2" "switch_group 1"
quiet "after group switches"
race "bypasses meet the last completion" storm $MAP $DEV $((1000 * RACES)) \
	"disable_group 1" "enable_group 1" "disable_group 2" "enable_group 2"
quiet "after bypasses"
race "path failures meet the last completion" storm $MAP $DEV $((600 * RACES)) \
	"fail_path $A" "reinstate_path $A" "fail_path $B" "reinstate_path $B"
quiet "after path failures"
race "the end of queueing without a path meets I/O" storm $MAP $DEV $((600 * RACES)) \
	"fail_path $A" "fail_path $B" "queue_if_no_path" "reinstate_path $B" "reinstate_path $A"
quiet "after queueing"
is "$(valid_paths)" 2 "both paths are valid"
rm_map

# ---- messages against removal ----
klog_mark
race "messages meet creation and removal" remove mprrrace $((40 * RACES)) \
	"$(table "$Q 0 2 1 $(rr "$A" "$B") $(rr "$C" "$D")")" \
	"fail_path $A" "reinstate_path $A" "switch_group 2" "disable_group 1" "fail_if_no_path" \
	"queue_if_no_path" "fail_path $D" "enable_group 1"
is "$(klog | grep 'mpath-rr.*message "' | grep -v 'the map is suspended' | head -n 3)" "" \
	"the module refused none, but while the map was suspended"
expect_ok "the module unloads" mod_unload

done_testing
