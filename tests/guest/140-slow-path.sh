#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: a path that is full and does not answer is failed by message: what waited for room
#       on it goes to the other group at once, not when the slow path answers.
# Why:  a refused request is offered again only when somebody runs the map's queue.
# limit: 90
. "$(dirname "$0")/lib.sh"

mod_load
# A command takes 12 s (3000 ticks of 4 ms), one at a time; the LUN is looked at first.
paths_up 2
lun_depth 1
echo 3000 >/sys/bus/pseudo/drivers/scsi_debug/delay
mk_map "0 0 2 1 round-robin 0 1 1 $A 1 round-robin 0 1 1 $B 1"

busy() { [ "$(in_flight "$1")" = "$2" ]; }

spawn "$HELPER" io $DEV read 0 4096
first=$SPAWNED
wait_until 1 "the first read is on group 1" busy "${DISK[0]}" 1
spawn "$HELPER" io $DEV read 1048576 4096
second=$SPAWNED
wait_until 1 "the second waits for room there" blocked "$second"
is "$(in_flight "${DISK[1]}")" 0 "group 2 is idle"
message "fail_path $A"
# Before the slow path answers: a deadline that MPRR_SLOW must not stretch.
MPRR_SLOW=1 wait_until 6 "the second read is on group 2" busy "${DISK[1]}" 1
is "$(in_flight "${DISK[0]}")" 1 "while the first is still on group 1"
MPRR_SLOW=1 ends 40 "the first read ends well" "$first" '^ok'
MPRR_SLOW=1 ends 40 "the second read ends well" "$second" '^ok'
done_testing
