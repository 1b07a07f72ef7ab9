#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: writes with FUA that wait for a path under each elevator, then go out, alone and beside
#       others; the elevator ends with its books balanced (no kernel warning, see `run`).
# Why:  kernel 6.1 never prepares such requests for its elevator, but gives them to it when they
#       are requeued: mq-deadline counts one too many, bfq follows a pointer that nobody set.
# limit: 120
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 2
head -c 131072 /dev/urandom >"$MPRR_TMP/data"
fua() { exec dd if="$MPRR_TMP/data" of=$DEV bs=4k count=1 skip="$1" seek="$1" oflag=direct,dsync conv=nocreat,notrunc status=none; }

for d in "${DISK[@]}"; do
	like "$(cat "/sys/block/$d/queue/fua")" 1 "$d takes FUA"
done
modprobe -q kyber-iosched || true
modprobe -q bfq || true
for elevator in mq-deadline kyber bfq none; do
	mk_map "1 queue_if_no_path 0 1 1 round-robin 0 2 1 $A 1 $B 1"
	if ! grep -qw $elevator "/sys/block/$(dm_name)/queue/scheduler"; then
		diag "this kernel has no $elevator"
		rm_map
		continue
	fi
	echo $elevator >"/sys/block/$(dm_name)/queue/scheduler"
	message "fail_path $A"
	message "fail_path $B"
	writes=()
	for i in 0 1 2 3; do
		waiting "$elevator, no path: FUA write $i" fua $i
		writes+=("$SPAWNED")
		waiting "$elevator, no path: write $i" "$HELPER" io $DEV write $((65536 + i * 4096)) 4096
		writes+=("$SPAWNED")
	done
	message "reinstate_path $B"
	for w in "${writes[@]}"; do ends 10 "$elevator: a path is back: it ends well" "$w" '^(ok.*)?$'; done
	expect_ok "$elevator: the data are there" cmp -n 16384 "$MPRR_TMP/data" $DEV
	rm_map
done
done_testing
