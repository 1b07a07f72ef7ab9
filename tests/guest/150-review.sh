#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: faults that a review found: large discards over a dead path, and over a path whose
#       discard limit shrank; a table without paths after a bio-based one; a switch that a
#       later enable_group must not undo; a device number that is no device.
# Why:  each was wrong once; a limit refusal failed all paths, a dead path's refusal none.
# limit: 90
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 2 lbpu=1 lbpws=1
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"

# ---- a path that is offline refuses a discard before it starts ----
echo offline >"$(scsi_dir "${DISK[0]}")/state"
expect_ok "an 8 MiB discard, one path offline" blkdiscard -l 8M $DEV
expect_ok "another one" blkdiscard -o 8M -l 8M $DEV
is "$(path_state "$A") $(path_state "$B")" "F A" "the offline path has failed, the other not"
echo running >"$(scsi_dir "${DISK[0]}")/state"
message "reinstate_path $A"

# ---- a discard over the limits of both paths is not the paths' fault ----
for d in "${DISK[@]}"; do echo 65536 >"/sys/block/$d/queue/discard_max_bytes"; done
# trap: over-limit
expect_fail "an 8 MiB discard over the paths' new limit fails" "" blkdiscard -l 8M $DEV
is "$(path_state "$A") $(path_state "$B")" "A A" "and fails no path"
is "$(io write 0 4096)" ok "a write works"
rm_map

# ---- nor is zeroing over them; one path whose limit shrank leaves it to the other ----
same() { echo "$2" >"$(echo "$(scsi_dir "${DISK[$1]}")"/scsi_disk/*/max_write_same_blocks)"; }
for i in 0 1; do same $i 8192; done
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
is "$(io zeroes 0 $((2 << 20)))" ok "zeroing 2 MiB"
for i in 0 1; do same $i 64; done
is "$(cat "/sys/block/${DISK[1]}/queue/write_zeroes_max_bytes")" 32768 "the paths' limit is 32 KiB now"
diag "zeroing 2 MiB over it: $(io zeroes 0 $((2 << 20)))"
is "$(path_state "$A") $(path_state "$B")" "A A" "it fails no path"
is "$(io write 0 4096)" ok "a write works"
rm_map

# ---- a wish for a group outlives a message about another one ----
mk_map "0 0 2 1 round-robin 0 1 1 $A 1 round-robin 0 1 1 $B 1"
message "switch_group 2"
message "enable_group 1"
is "$(current_group)" 2 "switch_group 2, then enable_group 1: group 2"
is "$(io write 0 4096)" ok "a write"
is "$(current_group)" 2 "it went to group 2"
expect_fail "a device number that is not in the map is refused" "Invalid argument" message "fail_path 240:77"
rm_map

# ---- no paths, and the type of the bio-based table that it replaces ----
dmsetup create $MAP --table "0 $LEN linear /dev/${DISK[0]} 0"
dmsetup load $MAP --table "$(table 0 0 0 0)"
dmsetup resume $MAP
is "$(io read 0 4096)" EIO "a table without paths after a linear one: a read is EIO"
message fail_if_no_path
rm_map
done_testing
