#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: every message, valid and invalid; status, event number and uevents after each.
# Why:  multipathd drives the map by messages and hears of changes by uevents: one uevent
#       and one event number a real change, none for no change, the right numbers in it.
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4
mk_map "0 0 2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 2 1 $C 1 $D 1"
is "$(io read 0 4096)" ok "the map works"
dm=$(dm_name)

spawn "$HELPER" uevents
listener=$SPAWNED
wait_for 5 grep -q '^ready' "$MPRR_TMP/spawn.$listener"
uevents() { grep -c "^change@.*/$dm .*DM_ACTION=" "$MPRR_TMP/spawn.$listener" || true; }
last_uevent() { grep "^change@.*/$dm .*DM_ACTION=" "$MPRR_TMP/spawn.$listener" | tail -n 1; }
field() { tr ' ' '\n' <<<"$1" | sed -n "s/^$2=//p" | head -n 1; }
count_is() { [ "$(uevents)" -ge "$1" ]; }
event_is() { [ "$(events_of)" -ge "$1" ]; }

# change MESSAGE ACTION PATH VALID: a real change, with its uevent
change() {
	local u e ev
	u=$(uevents) e=$(events_of)
	expect_ok "$1" message "$1"
	wait_for 5 count_is $((u + 1)) || true
	wait_for 5 event_is $((e + 1)) || true
	is "$(uevents) $(events_of)" "$((u + 1)) $((e + 1))" "$1: one uevent, one event number"
	ev=$(last_uevent)
	# trap: valid-after-change
	is "$(field "$ev" DM_ACTION) $(field "$ev" DM_PATH) $(field "$ev" DM_NR_VALID_PATHS)" \
		"$2 $3 $4" "$1: DM_ACTION, DM_PATH, DM_NR_VALID_PATHS"
	is "$(field "$ev" DM_TARGET) $(field "$ev" DM_NAME)" "$TARGET $MAP" "$1: DM_TARGET, DM_NAME"
	like "$(field "$ev" DM_SEQNUM)" '^[0-9]+$' "$1: DM_SEQNUM"
}

# event_only MESSAGE: a change that has an event number but no path uevent
event_only() {
	local u e
	u=$(uevents) e=$(events_of)
	expect_ok "$1" message "$1"
	wait_for 5 event_is $((e + 1)) || true
	is "$(uevents) $(events_of)" "$u $((e + 1))" "$1: no path uevent, one event number"
}

# no_change MESSAGE: success, nothing happens
no_change() {
	local u e
	u=$(uevents) e=$(events_of)
	expect_ok "$1 (no change)" message "$1"
	# trap: one-event
	is "$(uevents) $(events_of)" "$u $e" "$1 (no change): no uevent, no event number"
}

# refused MESSAGE ERRNO[/ERRNO]: and a log line that quotes it
refused() {
	local out want=$2 e
	e=$(events_of)
	out=$("$HELPER" message $MAP "$1" || true)
	if [[ /$want/ != */${out%%$'\n'*}/* ]]; then
		fail "\"$1\": $want" "expected: $want" "got:      $out"
	elif in_kernel || [ "$want" = EBUSY ] || grep -q "log: .*mpath-rr: .*message" <<<"$out"; then
		# trap: wrong-message
		is "$(events_of)" "$e" "\"$1\": $want, a log line, no event"
	else
		fail "\"$1\": log line" "expected: a line \"mpath-rr: ... message ...\"" "got:      $out"
	fi
}

states() { info_paths | awk '{printf "%s%s", s, $4; s = " "} END {print ""}'; }

# ---- paths ----
change "fail_path $A" PATH_FAILED "$A" 3
is "$(path_state "$A") $(path_fails "$A")" "F 1" "INFO: failed, fail count 1"
no_change "fail_path $A"
is "$(path_state "$A") $(path_fails "$A")" "F 1" "the fail count is still 1"
change "reinstate_path $A" PATH_REINSTATED "$A" 4
is "$(path_state "$A") $(path_fails "$A")" "A 1" "INFO: active, fail count 1"
no_change "reinstate_path $A"
change "FAIL_path $B" PATH_FAILED "$B" 3
change "Fail_Path /dev/${DISK[0]}" PATH_FAILED "$A" 2
is "$(path_fails "$A")" 2 "the fail count is 2 now"
change "fail_path $C" PATH_FAILED "$C" 1
change "fail_path $D" PATH_FAILED "$D" 0
is "$(states)" "F F F F" "all failed"
is "$(io read 0 4096)" EIO "no path, no queueing: EIO"
change "reinstate_path $D" PATH_REINSTATED "$D" 1
is "$(io read 0 4096)" ok "I/O works with the last path of the second group"
is "$(group_states)" "E A" "the second group is current"
change "reinstate_path $A" PATH_REINSTATED "$A" 2
change "REINSTATE_PATH $B" PATH_REINSTATED "$B" 3
change "reinstate_path $C" PATH_REINSTATED "$C" 4

# ---- groups ----
event_only "switch_group 1"
# trap: switch-shows
is "$(current_group)" 1 "switch_group shows at once, without I/O"
like "$(table_of)" '^0 (0|1 alua) 2 1 ' "TABLE shows it too"
is "$(io read 0 4096)" ok "a read"
is "$(group_states)" "A E" "group 1 is current"
event_only "SWITCH_GROUP 2"
is "$(io read 0 4096)" ok "a read"
is "$(group_states)" "E A" "group 2 is current"
event_only "disable_group 2"
is "$(group_states)" "E D" "INFO: D at once"
is "$(io read 0 4096)" ok "a read"
is "$(group_states)" "A D" "I/O went to the other group"
event_only "disable_group 1"
is "$(io read 0 4096)" ok "with all groups disabled I/O still works"
is "$(group_states)" "D D" "INFO: both D"
event_only "enable_group 1"
event_only "Enable_Group 2"
is "$(io read 0 4096)" ok "a read"
unlike "$(group_states)" D "none is disabled"
event_only "disable_group 1"
event_only "switch_group 2"
unlike "$(group_states)" D "switch_group clears the bypass of every group"
is "$(io read 0 4096)" ok "a read"
is "$(group_states)" "E A" "group 2 is current"

# ---- queueing ----
expect_ok "queue_if_no_path" message queue_if_no_path
like "$(table_of)" '^1 queue_if_no_path ' "TABLE shows it"
expect_ok "queue_if_no_path again" message Queue_If_No_Path
expect_ok "fail_if_no_path" message FAIL_if_no_path
like "$(table_of)" '^0 ' "TABLE: gone"
expect_ok "fail_if_no_path again" message fail_if_no_path

# ---- refused ----
while read -r text; do refused "$text" EINVAL; done <<-EOF
	frobnicate
	frobnicate 1
	queue_if_no_path 1
	queue_if_no_path now please
	fail_if_no_path 1
	queue_if_no_paths
	disable_group
	enable_group
	switch_group
	fail_path
	reinstate_path
	disable_group 0
	disable_group 3
	disable_group -1
	disable_group x
	disable_group 1x
	enable_group 0
	enable_group 3
	enable_group 1 2
	switch_group 0
	switch_group 3
	switch_group 99999999999
	switch_group 0x1
	switch_group one
	switch_group 1.
	fail_path $A x
	fail_path $A $B
	reinstate_path $A 1
	fail_pathx $A
	fail_path $(devno "$(dm_name)")
	switch group 1
EOF
if ! in_kernel; then	# it lets the number wrap
	refused "switch_group 4294967297" EINVAL
	refused "disable_group 4294967296" EINVAL
fi
for text in "fail_path /dev/null-no-such" "fail_path 1:" "fail_path :" "reinstate_path nothing"; do
	refused "$text" EINVAL/ENOENT/ENODEV
done
other=$(findmnt -no MAJ:MIN /)
refused "fail_path $other" EINVAL
refused "reinstate_path $other" EINVAL
is "$(io read 0 4096) $(states) $(group_states)" "ok A A A A E A" "after all that nothing has changed"
is "$(io write 4096 8192)" ok "and I/O works"

# ---- a suspended map answers EBUSY to every message ----
dmsetup suspend $MAP
for text in queue_if_no_path fail_if_no_path "disable_group 1" "enable_group 1" \
	"switch_group 1" "fail_path $A" "reinstate_path $A"; do
	# trap: suspended-message
	refused "$text" EBUSY
done
dmsetup resume $MAP
is "$(states)" "A A A A" "after resume nothing has changed"

# ---- a path that stands in two groups ----
reload_map "0 0 2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 2 1 $A 1 $C 1"
expect_ok "fail_path of a path in two groups" message "fail_path $A"
is "$(states)" "F A F A" "it fails in both"
expect_ok "reinstate_path of it" message "reinstate_path $A"
is "$(states)" "A A A A" "it is back in both"

# ---- no messages but at sector 0; the core's own @ words ----
expect_fail "a message outside the map is refused" "" dmsetup message $MAP $((LEN + 8)) queue_if_no_path
expect_ok "@cancel_deferred_remove is the core's and works" dmsetup message $MAP 0 @cancel_deferred_remove

done_testing
