#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: no path left, with and without queueing: reads, writes, ioctls, suspend, reload,
#       fail_if_no_path, the time-out, queueing switched on while a suspend runs.
# Why:  queueing on: no EIO ever, I/O goes on when a path is back; queueing off: EIO at
#       once; nothing may hang for ever.
# limit: 120
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 2
LOADED="0 1 1 round-robin 0 2 1 $A 1 $B 1"

fail_all() { message "fail_path $A"; message "fail_path $B"; }
still() { # it still waits after 1 s
	local end=$(($(now_ms) + 1000))
	while [ "$(now_ms)" -lt $end ] && alive "$2"; do sleep 0.1; done
	# An ioctl wakes every 10 ms to look for a path: it may run at this very moment.
	if wait_for 2 blocked "$2"; then pass "$1"; else fail "$1" "expected: still waits" "got:      $(spawn_output "$2")"; fi
}

# ---- queueing off ----
mk_map "0 $LOADED"
fail_all
# trap: unqueued-eio
is "$(io read 0 4096)" EIO "queueing off: a read is EIO"
is "$(io write 0 4096)" EIO "queueing off: a write is EIO"
is "$(io flush 0 0)" EIO "queueing off: a flush is EIO"
like "$("$HELPER" tur $DEV || true)" '^EIO' "queueing off: SG_IO is EIO"
is "$(valid_paths)" 0 "no path is valid"
message "reinstate_path $B"
is "$(io write 0 4096)" ok "one path back: a write works"
like "$("$HELPER" tur $DEV || true)" '^ok status=0 host=0' "one path back: SG_IO works"

# ---- queueing on ----
message queue_if_no_path
fail_all
waiting "queueing on: a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
waiting "queueing on: a write" "$HELPER" io $DEV write 4096 4096
w=$SPAWNED
still "and still waits" "$r"
message "reinstate_path $A"
ends 10 "a path is back: the read ends well" "$r" '^ok'
ends 10 "a path is back: the write ends well" "$w" '^ok'

# the map's I/O waits too when the paths die under it
echo offline >"$(scsi_dir "${DISK[0]}")/state"
echo offline >"$(scsi_dir "${DISK[1]}")/state"
message "reinstate_path $B"
waiting "both disks offline: a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
wait_until 5 "the I/O itself failed both paths" no_valid_path
echo running >"$(scsi_dir "${DISK[1]}")/state"
message "reinstate_path $B"
ends 10 "one is running and reinstated: the read ends well" "$r" '^ok'
echo running >"$(scsi_dir "${DISK[0]}")/state"

# ---- noflush suspend, load, resume keep it queued ----
fail_all
waiting "a write" "$HELPER" io $DEV write 8192 8192
w=$SPAWNED
expect_ok "noflush suspend with waiting I/O" dmsetup suspend --noflush $MAP
still "the write waits while suspended" "$w"
expect_ok "load a table without paths" dmsetup load $MAP --table "$(table 1 queue_if_no_path 0 0 0)"
expect_ok "resume" dmsetup resume $MAP
still "the write still waits" "$w"
expect_ok "noflush suspend and resume again" sh -c "dmsetup suspend --noflush $MAP && dmsetup resume $MAP"
still "the write still waits" "$w"
expect_ok "a table with the paths again" reload_map "1 queue_if_no_path $LOADED"
# trap: queued-no-eio
ends 10 "the write ends well" "$w" '^ok'

# noflush suspend pushes back even with queueing off
message fail_if_no_path
echo 250 >$SDEB/delay
waiting "queueing off: a slow read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
dmsetup suspend --noflush $MAP &
suspend=$!
ends 10 "a read on its way ends well in a noflush suspend" "$r" '^ok'
wait $suspend
dmsetup resume $MAP
echo 1 >$SDEB/delay

# ---- flush suspend with no path ends ----
message queue_if_no_path
fail_all
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
spawn dmsetup suspend $MAP
# trap: flush-suspend-ends
ends 10 "flush suspend with no path ends" "$SPAWNED" ''
ends 10 "the waiting read got EIO" "$r" '^EIO'
dmsetup resume $MAP
expect_ok "after resume queue_if_no_path is back" queueing
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
message "reinstate_path $A"
ends 10 "it ends well" "$r" '^ok'

# forgetting: fail_if_no_path also forgets what a suspend saved
message queue_if_no_path
dmsetup suspend $MAP
dmsetup resume $MAP
expect_ok "suspend and resume keep queue_if_no_path" queueing
message fail_if_no_path
dmsetup suspend $MAP
dmsetup resume $MAP
expect_ok "suspend and resume do not bring it back" not queueing

# ---- fail_if_no_path frees what waits ----
message queue_if_no_path
fail_all
# the last close of a block device writes back what is dirty
waiting "the last close with dirty pages" dd if=/dev/zero of=$DEV bs=4096 count=1 conv=nocreat,notrunc status=none
still "it still waits" "$SPAWNED"
expect_ok "fail_if_no_path" message fail_if_no_path
# trap: close-freed
ends 10 "the close ends" "$SPAWNED" ''
message queue_if_no_path
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
waiting "an fsync" "$HELPER" io $DEV bwrite 65536 4096
f=$SPAWNED
expect_ok "fail_if_no_path" message fail_if_no_path
ends 10 "the read ends with EIO" "$r" '^EIO'
ends 10 "the fsync ends with EIO" "$f" '^EIO'
message queue_if_no_path
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
waiting "remove of the open map (the core waits or refuses)" "$HELPER" io $DEV read 4096 4096
w=$SPAWNED
expect_fail "an open map with waiting I/O is not removed" "[Bb]usy" dmsetup remove $MAP
message fail_if_no_path
ends 10 "first read: EIO" "$r" '^EIO'
ends 10 "second read: EIO" "$w" '^EIO'

# ---- ioctl with queueing on ----
message queue_if_no_path
spawn "$HELPER" tur $DEV
i=$SPAWNED
still "SG_IO with no path and queueing waits" "$i"
message "reinstate_path $A"
# trap: ioctl-waits
ends 10 "and goes on with a path" "$i" '^ok status=0'
fail_all
spawn "$HELPER" tur $DEV
i=$SPAWNED
still "SG_IO waits" "$i"
kill -9 "$i"
ends 5 "and can be killed" "$i" ''
spawn "$HELPER" tur $DEV
i=$SPAWNED
still "SG_IO waits" "$i"
message fail_if_no_path
ends 10 "fail_if_no_path ends it with EIO" "$i" '^EIO'

# ---- the time-out ----
message "reinstate_path $A"
message "reinstate_path $B"
echo 2 >"$PARAMS/queue_if_no_path_timeout_secs"
message queue_if_no_path
klog_mark
t0=$(now_ms)
fail_all
# On a slow machine a read may come after the 2 s: then it is EIO at once, which is right.
spawn "$HELPER" io $DEV read 0 4096
# trap: time-out
ends 10 "the time-out ends a read with EIO" "$SPAWNED" '^EIO'
between $(($(now_ms) - t0)) 1900 $((4000 + 2000 * MPRR_SLOW)) "after about 2 s (in ms)"
expect_ok "queueing is off now" not queueing
klog_like 'queue_if_no_path' "and the kernel log says why"
message queue_if_no_path
spawn "$HELPER" io $DEV read 0 4096
ends 10 "queue_if_no_path with no path arms it again: a read ends with EIO" "$SPAWNED" '^EIO'
message "reinstate_path $A"
message queue_if_no_path
message "fail_path $A"
message "reinstate_path $A"
end=$(($(now_ms) + 3500))
while [ "$(now_ms)" -lt $end ]; do sleep 0.2; done
expect_ok "a reinstate cancels it: still queueing after 3.5 s" queueing
is "$(io read 0 4096)" ok "and I/O works"
message "fail_path $A"
spawn "$HELPER" io $DEV read 0 4096
ends 10 "the next failure arms it again: a read ends with EIO" "$SPAWNED" '^EIO'
reload_map 1 queue_if_no_path 0 0 0
spawn "$HELPER" io $DEV read 0 4096
ends 10 "a table without paths arms it too: a read ends with EIO" "$SPAWNED" '^EIO'
echo 0 >"$PARAMS/queue_if_no_path_timeout_secs"
message queue_if_no_path
waiting "time-out 0 is never: a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
still "it waits" "$r"
message fail_if_no_path
ends 10 "until fail_if_no_path" "$r" '^EIO'

# ---- queue_if_no_path while a flush suspend runs: it holds from the resume on ----
# The freeze of the file system writes for seconds; what finds no path then must not wait.
if ! in_kernel; then
	reload_map "1 queue_if_no_path $LOADED"
	mkfs.ext4 -q -E nodiscard $DEV
	mkdir -p "$MPRR_TMP/fs"
	mount -o errors=continue $DEV "$MPRR_TMP/fs"
	dd if=/dev/zero of="$MPRR_TMP/fs/dirty" bs=64k count=4 status=none
	echo $((50 * MPRR_SLOW)) >$SDEB/delay
	spawn dmsetup suspend $MAP
	suspend=$SPAWNED
	wait_until 10 "the suspend has begun" not queueing
	message queue_if_no_path
	fail_all
	expect_ok "its freeze is not over" alive "$suspend"
	ends 20 "queue_if_no_path does not hold up a suspend that has begun" "$suspend" ''
	gone "$suspend" || message fail_if_no_path
	dmsetup resume $MAP
	expect_ok "it is on after the resume" queueing
	echo 1 >$SDEB/delay
	message "reinstate_path $A"
	message "reinstate_path $B"
	umount "$MPRR_TMP/fs"
fi

done_testing
