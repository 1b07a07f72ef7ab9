#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: queue_mode bio: verified I/O while paths fail, all paths gone, reload, suspend both ways
#       and removal while bios wait, the no-path time-out, runs, statistics and trace events,
#       partitions and bio-based devices as paths, its echo.
# Why:  here the target itself keeps what waits: nothing else would find a bio that it lost,
#       ended twice or kept for ever.
# limit: 250
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4 lbpu=1 lbpws=1
BIO="2 queue_mode bio"
QBIO="3 queue_if_no_path queue_mode bio"
RR="0 1 1 round-robin 0 2 1 $A 1 $B 1"

fail_all() { message "fail_path $A"; message "fail_path $B"; }

# ---- the table ----
mk_map "$BIO $RR"
expect_table "TABLE echoes queue_mode bio" "$BIO $RR"
expect_info "INFO" "2 1 0 0 1 1 E 0 2 0 $A A 0 $B A 0"
expect_ok "the map has no hardware queues" [ ! -e "/sys/block/$(dm_name)/mq" ]
is "$(io read 0 4096) $(io write 8192 8192) $(io flush 0 0)" "ok ok ok" "a read, a write, a flush"
if ! in_kernel; then
	reload_map "5 queue_if_no_path Queue_Mode BIO max_inflight 3 $RR"
	expect_table "with the other words, in their order" "5 queue_if_no_path queue_mode bio max_inflight 3 $RR"
fi
expect_fail "a bio map does not become a request map" "" dmsetup load $MAP --table "$(table "0 $RR")"
dmsetup clear $MAP
rm_map
mk_map "0 $RR"
expect_fail "a request map does not become a bio map" "" dmsetup load $MAP --table "$(table "$BIO $RR")"
dmsetup clear $MAP
rm_map
out=$("$HELPER" load "0 $LEN $TARGET $BIO 2 alua 1 1 1 round-robin 0 1 0 $A" || true)
is "$(head -n 1 <<<"$out")" ok "a hardware handler in the table is passed over"
in_kernel || like "$out" 'log: .*alua' "and the log says so"

# ---- selectors ----
mk_map "$BIO $RR"
if ! in_kernel; then
	reload_map "$BIO 0 1 1 round-robin 0 2 1 $A 5 $B 3"
	trace_start "$A" "$B"
	reads 16 >/dev/null
	is "$(trace_stop | runs | xargs)" "$A 5 $B 3 $A 5 $B 3" "round-robin: runs of 5 and 3"
fi
if ! in_kernel; then
	message "rr_min_io 4"
	trace_start "$A" "$B"
	reads 16 >/dev/null
	is "$(trace_stop | runs | xargs)" "$A 4 $B 4 $A 4 $B 4" "rr_min_io 4: runs of 4"
	message "rr_min_io table"
	message "rr_min_io auto"
	fio_ok "rr_min_io auto: verified I/O" --size=2m --iodepth=16
	message "rr_min_io table"
fi
for s in "queue-length 0 4 1 $A 1 $B 1 $C 1 $D 1" "service-time 0 4 2 $A 1 1 $B 1 1 $C 1 1 $D 1 1"; do
	reload_map "$BIO 0 1 1 $s"
	fio_ok "${s%% *}: verified I/O" --size=4m --iodepth=16
	wait_until 10 "${s%% *}: the paths have nothing in flight" idle
	is "$(info_paths | awk '{print $6}' | xargs)" "0 0 0 0" "${s%% *}: and nothing is counted"
	is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0 A0 A0" "${s%% *}: no path has failed"
done

# ---- statistics and trace events are those of the bios ----
word() { message stats | grep "^path=$1 " | tr ' ' '\n' | sed -n "s/^$2=//p"; }
# disk_now DISK: what it says: reads, their sectors, writes, theirs, discards
disk_now() { awk '{print $1, $3, $5, $7, $12}' "/sys/block/$1/stat"; }
ours() {
	echo "$(word "$1" read_requests) $(($(word "$1" read_bytes) / 512)) $(word "$1" write_requests)" \
		"$(($(word "$1" write_bytes) / 512)) $(word "$1" discard_requests)"
}
minus() { awk -v b="$2" '{split(b, x); for (i = 1; i <= NF; i++) printf "%s%d", (i > 1 ? " " : ""), $i - x[i]; print ""}' <<<"$1"; }
if ! in_kernel; then
	udevadm settle -t $((20 * MPRR_SLOW))
	udevadm control --stop-exec-queue	# nobody else reads: a resume must not wait for udev
	dmsetup suspend --noflush $MAP
	dmsetup load $MAP --table "$(table "$BIO $RR")"
	dmsetup resume --noudevsync $MAP
	a=$(disk_now "${DISK[0]}") b=$(disk_now "${DISK[1]}")
	trace_mount
	echo 1 >$TRACING/events/mprr/mprr_path_chosen/enable
	echo 1 >$TRACING/tracing_on
	echo >$TRACING/trace
	reads 24 >/dev/null
	is "$(for i in 1 2 3 4 5 6; do io write $((i * 8192)) 4096; done | xargs) $(io discard 0 65536) $(io flush 0 0)" \
		"ok ok ok ok ok ok ok ok" "reads, writes, a discard, a flush"
	wait_until 10 "nothing is in flight" idle
	grep -o 'mprr_path_chosen.*' $TRACING/trace >"$MPRR_TMP/chosen" || true
	echo 0 >$TRACING/events/mprr/mprr_path_chosen/enable
	for i in 0 1; do
		then=$a
		[ $i = 0 ] || then=$b
		is "$(ours "${NUM[i]}")" "$(minus "$(disk_now "${DISK[i]}")" "$then")" \
			"${DISK[i]}: reads, sectors, writes, sectors, discards are those of the disk"
		is "$(word "${NUM[i]}" requests) $(word "${NUM[i]}" in_flight) $(word "${NUM[i]}" errors)" \
			"$(grep -c " path=${NUM[i]} " "$MPRR_TMP/chosen") 0 0" "${DISK[i]}: an event for each, none in flight, no error"
	done
	is "$(grep -c ' bytes=4096 op=read' "$MPRR_TMP/chosen") $(grep -c ' bytes=4096 op=write' "$MPRR_TMP/chosen")" \
		"24 6" "the events say what they were"
	n=$(($(word "$A" requests) + $(word "$B" requests)))
	is "$(stat_of requests) $(stat_of bios) $(stat_of in_flight) $(stat_of closed) $(stat_of trials)" "$n $n 0 0 0" \
		"the map's numbers are the sum of its paths', and the gate has done nothing"
	udevadm control --start-exec-queue
	udevadm settle -t $((20 * MPRR_SLOW))
	reload_map "$BIO $RR"
	reads 48 >/dev/null
	between "$(($(word "$A" read_samples) + $(word "$B" read_samples)))" 2 40 "one of eight is timed"
	like "$(word "$A" read_p50_us)" '^[0-9]*[1-9][0-9]*\.' "and takes some microseconds"
fi

# ---- discard, write zeroes, flush ----
reload_map "$BIO $RR"
is "$(io write 0 1048576) $(io discard 0 1048576) $(io read 0 4096)" "ok ok ok" "a discard"
is "$(io write $((1 << 20)) 65536) $(io zeroes $((1 << 20)) 65536)" "ok ok" "zeroes"
expect_ok "they can be read" cmp -n 65536 -i $((1 << 20)):0 $DEV /dev/zero
is "$(io bwrite 0 65536) $(io flush 0 0)" "ok ok" "a write and a flush"
is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "no path fails of it"

# ---- verdicts of the device fail no path ----
reload_map "$BIO $RR"
at=$((0x1234 * 512 / 4096 * 4096))
echo 2 >$SDEB/opts
is "$(io read $at 4096)" ENODATA "a medium error: ENODATA"
echo 0 >$SDEB/opts
is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "and no path fails"

# ---- paths fail and come back under verified I/O ----
reload_map "$QBIO 0 2 1 round-robin 0 2 1 $A 1 $B 1 queue-length 0 2 1 $C 1 $D 1"
spawn fio_verify churn --size=24m --iodepth=32
churn=$SPAWNED n=0
while alive "$churn" && [ $n -lt 60 ]; do
	for i in 0 1 2 3; do
		[ $((n % 3)) != 0 ] || echo offline >"$(scsi_dir "${DISK[i]}")/state"
		message "fail_path ${NUM[i]}"
		[ $((n % 7)) != 0 ] || message "switch_group $((1 + n % 2))"
		[ $((n % 5)) != 0 ] || reload_map "$QBIO 0 2 1 round-robin 0 2 1 $A 1 $B 1 queue-length 0 2 1 $C 1 $D 1"
		echo running >"$(scsi_dir "${DISK[i]}")/state"
		message "reinstate_path ${NUM[i]}"
		n=$((n + 1))
	done
done
for p in "${NUM[@]}"; do message "reinstate_path $p"; done
ends 60 "verified I/O while paths fail, come back, groups switch and tables change, $n times" "$churn" ''
wait "$churn" || fail "that fio" "$(fio_diag churn)"
wait_until 10 "nothing is in flight" idle

# ---- no path, queueing off ----
reload_map "$BIO $RR"
fail_all
is "$(io read 0 4096) $(io write 0 4096) $(io flush 0 0)" "EIO EIO EIO" "queueing off: EIO"
for d in 0 1; do echo offline >"$(scsi_dir "${DISK[d]}")/state"; done
message "reinstate_path $A"
message "reinstate_path $B"
is "$(io read 0 4096)" EIO "queueing off: both disks offline: EIO"
expect_ok "both paths have failed" no_valid_path
for d in 0 1; do echo running >"$(scsi_dir "${DISK[d]}")/state"; done

# ---- no path, queueing on ----
message queue_if_no_path
waiting "queueing on: a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
waiting "queueing on: a write" "$HELPER" io $DEV write 4096 4096
w=$SPAWNED
message "reinstate_path $A"
ends 10 "a path is back: the read ends well" "$r" '^ok'
ends 10 "a path is back: the write ends well" "$w" '^ok'
for d in 0 1; do echo offline >"$(scsi_dir "${DISK[d]}")/state"; done
waiting "the disks go offline: a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
for d in 0 1; do echo running >"$(scsi_dir "${DISK[d]}")/state"; done
message "reinstate_path $B"
ends 10 "it was sent before, and is sent again" "$r" '^ok'
fail_all
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
message fail_if_no_path
ends 10 "fail_if_no_path: EIO" "$r" '^EIO'
expect_table "TABLE: queueing is off" "$BIO $RR"
message queue_if_no_path
if in_kernel; then echo 2 >$PARAMS/queue_if_no_path_timeout_secs; else message "no_path_timeout_secs 2"; fi
message "reinstate_path $A"
message "fail_path $A"
waiting "a read" "$HELPER" io $DEV read 0 4096
ends 20 "the no-path time-out: EIO" "$SPAWNED" '^EIO'
expect_table "TABLE: it has ended queueing" "$BIO $RR"
if in_kernel; then echo 0 >$PARAMS/queue_if_no_path_timeout_secs; else message "no_path_timeout_secs table"; fi

# ---- suspend while bios wait ----
message queue_if_no_path
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
expect_ok "a suspend that flushes ends" timeout $((20 * MPRR_SLOW)) dmsetup suspend $MAP
ends 10 "and the read with EIO" "$r" '^EIO'
dmsetup resume $MAP
expect_ok "queueing is on again" queueing
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
expect_ok "a suspend without flushing ends, too" timeout $((20 * MPRR_SLOW)) dmsetup suspend --noflush $MAP
expect_ok "the read still waits" alive "$r"
dmsetup resume $MAP
wait_until 5 "and waits again after the resume" blocked "$r"
expect_ok "which switched queueing on again" queueing
dmsetup suspend --noflush $MAP
dmsetup load $MAP --table "$(table "$QBIO 0 1 1 round-robin 0 1 1 $C 1")"
dmsetup resume $MAP
ends 10 "the next table has a path: it ends well" "$r" '^ok'

# a load of them, verified
reload_map "$QBIO $RR"
spawn fio_verify swap --size=20m --iodepth=32
swap=$SPAWNED n=0
while alive "$swap" && [ $n -lt 40 ]; do
	fail_all
	dmsetup suspend --noflush $MAP
	dmsetup load $MAP --table "$(table "$QBIO $RR")"
	dmsetup resume $MAP
	n=$((n + 1))
done
ends 60 "verified I/O while $n times all paths fail and a new table comes" "$swap" ''
wait "$swap" || fail "that fio" "$(fio_diag swap)"

# ---- removal while bios wait ----
fail_all
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
dmsetup remove --force $MAP >/dev/null 2>&1 || true
ends 20 "a forced removal ends it with EIO" "$r" '^EIO'
[ ! -e $DEV ] || rm_map
expect_ok "and the map is gone" [ ! -e $DEV ]
mk_map "$QBIO $RR"
fail_all
waiting "a read" "$HELPER" io $DEV read 0 4096
r=$SPAWNED
expect_fail "a removal is refused while it waits" "" dmsetup remove $MAP
message "reinstate_path $A"
ends 10 "and it ends well when a path is back" "$r" '^ok'
rm_map

# ---- an attached handler: the first I/O waits for its activation ----
if modprobe scsi_dh_alua; then
	mk_map "0 1 alua 1 1 round-robin 0 2 1 $A 1 $B 1"
	rm_map
fi
if [ "$(cat "$(scsi_dir "${DISK[0]}")/dh_state" 2>/dev/null)" = alua ]; then
	mk_map "$BIO $RR"
	expect_table "the attached handler is kept" "$BIO 1 alua 1 1 round-robin 0 2 1 $A 1 $B 1"
	is "$(io read 0 4096)" ok "a read waits for the activation and ends well"
	fio_ok "verified I/O" --size=2m
	rm_map
else
	skip "an attached handler" "scsi_dh_alua does not attach here"
fi

# ---- partitions ----
truncate -s 40M "$MPRR_TMP/back"
# one partition of 65536 sectors from sector 2048 on
printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\0\001\0' | dd of="$MPRR_TMP/back" bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of="$MPRR_TMP/back" bs=1 seek=510 conv=notrunc status=none
loop_up --partscan "$MPRR_TMP/back"
L0=$LOOP
loop_up --partscan "$MPRR_TMP/back"
L1=$LOOP
wait_until 10 "the loop disks have partitions" [ -e "/sys/class/block/${L1}p1/dev" ]
P0=$(devno "${L0}p1") P1=$(devno "${L1}p1")
LEN=65536 mk_map "$QBIO 0 1 1 round-robin 0 2 1 $P0 1 $P1 1"
spawn fio_verify part --size=8m --iodepth=16
part=$SPAWNED n=0
while alive "$part" && [ $n -lt 40 ]; do
	message "fail_path $P0"
	message "fail_path $P1"
	message "reinstate_path $P0"
	message "reinstate_path $P1"
	n=$((n + 1))
done
ends 60 "partitions as paths: verified I/O while they fail $n times" "$part" ''
wait "$part" || fail "that fio" "$(fio_diag part)"
is "$(io write 0 4096)" ok "a write to its first block"
expect_ok "it is at the begin of the partition" cmp -n 4096 -i 1048576:0 "$MPRR_TMP/back" \
	<(dd if=$DEV bs=4096 count=1 iflag=direct status=none)
rm_map

# ---- bio-based devices: a path that dies under the bio and is tried again elsewhere ----
dmsetup create mprrlin0 --table "0 65536 linear /dev/$L0 2048"
dmsetup create mprrlin1 --table "0 65536 linear /dev/$L1 2048"
P0=$(devno "$(readlink -f /dev/mapper/mprrlin0)") P1=$(devno "$(readlink -f /dev/mapper/mprrlin1)")
LEN=65536 mk_map "$QBIO 0 1 1 round-robin 0 2 1 $P0 1 $P1 1"
is "$(io read 0 4096)" ok "DM devices as paths: a read"
into() { # MAP TABLE
	dmsetup suspend --nolockfs "$1"
	dmsetup load "$1" --table "$2"
	dmsetup resume "$1"
}
spawn fio_verify lin --size=8m --iodepth=16
lin=$SPAWNED n=0
while alive "$lin" && [ $n -lt 20 ]; do
	for i in 0 1; do
		loop=L$i num=P$i
		into mprrlin$i "0 65536 error"
		wait_for 1 path_is "${!num}" F || true
		into mprrlin$i "0 65536 linear /dev/${!loop} 2048"
		message "reinstate_path ${!num}"
		n=$((n + 1))
	done
done
for p in "$P0" "$P1"; do message "reinstate_path $p"; done
ends 60 "DM devices as paths: verified I/O while they return errors $n times" "$lin" ''
wait "$lin" || fail "that fio" "$(fio_diag lin)"
is "$(valid_paths)" 2 "both paths are valid"
if ! in_kernel; then
	between "$(($(word "$P0" errors) + $(word "$P1" errors)))" 1 99999 "the paths have seen errors"
	is "$(word "$P0" in_flight) $(word "$P1" in_flight) $(stat_of in_flight)" "0 0 0" "nothing is in flight"
fi

# ---- queue_if_no_path while a suspend runs: it holds from the resume on ----
if ! in_kernel; then
	message "fail_path $P1"
	dmsetup suspend --nolockfs mprrlin0
	waiting "its path is suspended: a read" "$HELPER" io $DEV read 0 4096
	r=$SPAWNED
	spawn dmsetup suspend $MAP
	suspend=$SPAWNED
	wait_until 10 "the suspend has begun" not queueing
	message queue_if_no_path
	dmsetup load mprrlin0 --table "0 65536 error"
	dmsetup resume mprrlin0
	ends 10 "the path returns an error and no other is left: EIO" "$r" '^EIO'
	ends 10 "queue_if_no_path does not hold up a suspend that has begun" "$suspend" ''
	gone "$suspend" || message fail_if_no_path
	dmsetup resume $MAP
	expect_ok "it is on after the resume" queueing
fi
rm_map

# ---- nothing is left ----
is "$(dmsetup ls | grep -cE "^mprr[0-9]*[[:space:]]" || true)" 0 "no map is left"
expect_ok "the module unloads" mod_unload

done_testing
