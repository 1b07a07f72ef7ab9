#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: INFO, TABLE and IMA status while paths, groups and I/O change.
# Why:  multipathd and people read them; each word has its place.
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4

# ---- INFO, three selectors, exact words ----
mk_map "0 0 3 1 round-robin 0 2 1 $A 1 $B 1 queue-length 0 1 1 $C 1 service-time 0 1 2 $D 1 7"
expect_info "before the first I/O" \
	"2 1 0 0 3 1 E 0 2 0 $A A 0 $B A 0 E 0 1 1 $C A 0 0 E 0 1 2 $D A 0 0 7"
is "$(io read 0 4096)" ok "a read"
expect_info "after it" \
	"2 0 0 0 3 1 A 0 2 0 $A A 0 $B A 0 E 0 1 1 $C A 0 0 E 0 1 2 $D A 0 0 7"
message "fail_path $A"
message "disable_group 3"
is "$(io read 0 4096)" ok "a read"
expect_info "a failed path and a disabled group" \
	"2 0 0 0 3 1 A 0 2 0 $A F 1 $B A 0 E 0 1 1 $C A 0 0 D 0 1 2 $D A 0 0 7"
message "switch_group 2"
# trap: switch-shows
is "$(current_group)" 2 "switch_group shows in INFO at once"
is "$(table_of | awk '{i = 1; i += 1 + $i; i += 1 + $i; print $(i + 1)}')" 2 "and in TABLE"
is "$(io read 0 4096)" ok "a read"
expect_info "group 2 is current, the bypass is gone" \
	"2 0 0 0 3 2 E 0 2 0 $A F 1 $B A 0 A 0 1 1 $C A 0 0 E 0 1 2 $D A 0 0 7"
for i in 1 2 3; do message "reinstate_path $A"; message "fail_path $A"; done
is "$(path_fails "$A")" 4 "the fail count counts every failure"
message "reinstate_path $A"
expect_info "reinstated: A, the fail count stays" \
	"2 0 0 0 3 2 E 0 2 0 $A A 4 $B A 0 A 0 1 1 $C A 0 0 E 0 1 2 $D A 0 0 7"

# ---- TABLE does not change with the states ----
like "$(table_of)" " round-robin 0 2 1 $A 1 $B 1 queue-length 0 1 1 $C 1 service-time 0 1 2 $D 1 7 ?$" \
	"TABLE: the groups as loaded"
line=$(dmsetup status --noflush $MAP)
is "${line: -1}" " " "INFO ends in a space"

# ---- a new table starts with every path active and counts at 0 ----
message "fail_path $B"
reload_map "0 0 1 1 queue-length 0 2 1 $A 1 $B 1"
is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "a reload forgets failures and counts"

# ---- in-flight words while I/O is on its way ----
echo $((50 * (MPRR_SLOW > 10 ? MPRR_SLOW : 10))) >$SDEB/delay	# 2 s at HZ=250, more on a debug kernel
spawn "$HELPER" io $DEV read 0 4096
one=$SPAWNED
wait_for 5 blocked "$one"
inflight() { info_paths | awk '{s += $6} END {print s}'; }
is "$(inflight)" 1 "queue-length: one request in flight shows as 1"
ends 20 "the read ends" "$one" '^ok'
is "$(inflight)" 0 "queue-length: 0 after it"
reload_map "0 0 1 1 service-time 0 2 2 $A 1 1 $B 1 1"
spawn "$HELPER" io $DEV read 0 16384
one=$SPAWNED
wait_for 5 blocked "$one"
is "$(inflight)" 16384 "service-time: the bytes in flight"
ends 20 "the read ends" "$one" '^ok'
is "$(inflight)" 0 "service-time: 0 after it"
echo 1 >$SDEB/delay

# ---- many paths: the line is longer than any one buffer that starts small ----
groups=
for i in $(seq 150); do groups+=" round-robin 0 4 1 $A 1 $B 1 $C 1 $D 1"; done
reload_map "0 0 150 1$groups"
is "$(info_paths | wc -l)" 600 "INFO of 600 paths is complete"
is "$(table_of | grep -o round-robin | wc -l)" 150 "TABLE of 150 groups is complete"
rm_map

# ---- IMA ----
ima=/sys/kernel/security/ima/ascii_runtime_measurements
if [ -r $ima ] && grep -q dm_table_load $ima; then
	like "$(grep dm_table_load $ima | tail -n 1)" "target_name=$TARGET,target_version=[0-9.]+,nr_priority_groups=" \
		"IMA measurement of the table"
else
	skip "IMA status" "this boot has no IMA policy that measures device-mapper"
fi

done_testing
