#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: round-robin's repeat count, counted on the paths; falling through a full path.
# Why:  rr_min_io that works is what this module is for: N requests to a path, then N to
#       the next. Counted by the kernel's block_rq_issue trace event on the path disks.
# limit: 90
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4

# run_lengths COUNT: COUNT single, unmergeable reads; "NUM LENGTH" of each run
run_lengths() {
	trace_start "${NUM[@]}"
	is "$(reads "$1")" "ok done=$1 errors=0" "$1 reads of 4 KiB"
	trace_stop >"$MPRR_TMP/trace"
	runs <"$MPRR_TMP/trace"
}

# expect_runs DESC EXPECTED: what run_lengths found, the last line left out if it is short
expect_runs() { is "$(xargs <<<"$RUNS")" "$2" "$1"; }

# ---- runs of exactly 100 ----
mk_map "0 0 1 1 round-robin 0 2 1 $A 100 $B 100"
expect_table "TABLE prints 100" "$(table_of | grep -oE '^0 (0|1 alua)') 1 1 round-robin 0 2 1 $A 100 $B 100"
trace_start "${NUM[@]}"
is "$(reads 1000)" "ok done=1000 errors=0" "1000 reads of 4 KiB, one at a time"
trace_stop >"$MPRR_TMP/trace"
is "$(wc -l <"$MPRR_TMP/trace")" 1000 "the paths got 1000 requests"
is "$(awk '$3 != 8' "$MPRR_TMP/trace" | wc -l)" 0 "each of 8 sectors: nothing was merged"
RUNS=$(runs <"$MPRR_TMP/trace")
if in_kernel; then
	skip "runs of 100" "the in-kernel target sends 1 request a path"
else
	expect_runs "runs of exactly 100 requests on each path in turn" \
		"$A 100 $B 100 $A 100 $B 100 $A 100 $B 100 $A 100 $B 100 $A 100 $B 100"
fi
rm_map

# counted REPEATS... : a map over that many paths; RUNS = the runs of 4 turns
counted() {
	local i=0 sum=0 words='' r
	for r; do
		words+=" ${NUM[i]} $r"
		i=$((i + 1)) sum=$((sum + r))
	done
	reload_map "0 0 1 1 round-robin 0 $# 1$words"
	trace_start "${NUM[@]}"
	reads $((sum * 4)) >/dev/null
	RUNS=$(trace_stop | runs)
}
times4() { echo "$1 $1 $1 $1"; }

mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
if ! in_kernel; then
	counted 3 5
	# trap: long-runs
	expect_runs "repeat counts 3 and 5" "$(times4 "$A 3 $B 5")"
	counted 7 1 2 30
	expect_runs "repeat counts 7, 1, 2 and 30" "$(times4 "$A 7 $B 1 $C 2 $D 30")"
fi
counted 1 1
expect_runs "repeat count 1: strictly in turn" "$(times4 "$A 1 $B 1")"
counted 1 1 1
expect_runs "three paths, repeat count 1" "$(times4 "$A 1 $B 1 $C 1")"

# ---- an ioctl is no request of a run, whenever it comes ----
if ! in_kernel; then
	counted 1 1
	spawn "$HELPER" ioctl $DEV 0x5555 1000000000
	ioctls=$SPAWNED
	trace_start "${NUM[@]}"
	is "$(reads 3000)" "ok done=3000 errors=0" "3000 reads while another process sends ioctls"
	is "$(trace_stop | runs | awk '{print $2}' | sort -n | uniq -c | xargs)" "3000 1" \
		"they go to the paths strictly in turn: 3000 runs of 1"
	expect_ok "ioctls were sent all the time" alive "$ioctls"
	kill "$ioctls"
	wait_for 5 gone "$ioctls" || fail "the ioctls end"
fi

# ---- a failed path drops out, the others keep their turns; back: it joins ----
reload_map "0 0 1 1 round-robin 0 3 1 $A 1 $B 1 $C 1"
message "fail_path $B"
trace_start "${NUM[@]}"
reads 8 >/dev/null
RUNS=$(trace_stop | runs)
like "$(xargs <<<"$RUNS")" "^($A 1 $C 1 ){3}$A 1 $C 1\$|^($C 1 $A 1 ){3}$C 1 $A 1\$" "a failed path gets nothing, the others take turns"
message "reinstate_path $B"
trace_start "${NUM[@]}"
reads 30 >/dev/null
is "$(trace_stop | awk '{n[$1]++} END {for (d in n) print n[d]}' | xargs)" "10 10 10" \
	"reinstated: 30 reads, 10 on each"

# ---- several at a time: the totals are fair ----
if in_kernel; then n=1; else n=10; fi
reload_map "0 0 1 1 round-robin 0 4 1 $A $n $B $n $C $n $D $n"
trace_start "${NUM[@]}"
expect_ok "800 random reads, 16 at a time" fio --name=r --filename=$DEV --direct=1 --ioengine=libaio \
	--iodepth=16 --rw=randread --bs=4k --io_size=3200k --size=64m --output="$MPRR_TMP/fio.r"
trace_stop >"$MPRR_TMP/trace"
for d in "$A" "$B" "$C" "$D"; do
	between "$(grep -c "^$d " "$MPRR_TMP/trace")" 180 220 "path $d got a quarter of them"
done
rm_map

# ---- a LUN that is full is passed over ----
# Every command takes 0.1 s, A takes one at a time and somebody else always has 8 for it.
echo 1 >"$(scsi_dir "${DISK[0]}")/queue_depth"
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
echo 25 >$SDEB/delay
spawn fio --name=other --filename="/dev/${DISK[0]}" --direct=1 --ioengine=libaio --rw=randread --bs=8k \
	--iodepth=8 --time_based --runtime=3600 --size=32m --output="$MPRR_TMP/fio.other"
other=$SPAWNED
in_flight_is() { [ "$(in_flight "$1")" -ge "$2" ]; }
wait_until 10 "path A is full (queue depth 1, somebody else has 8 requests for it)" in_flight_is "${DISK[0]}" 1
trace_start "$A" "$B"
is "$(reads 20)" "ok done=20 errors=0" "20 reads end while A is full"
n=$(trace_stop | awk -v b="$B" '$1 == b' | wc -l)
between "$n" 15 20 "nearly all of them went to B"
is "$(path_state "$A") $(path_fails "$A")" "A 0" "a full path is not a failed path"
kill "$other"
ends 10 "the other user ends" "$other" ''
wait_for 5 idle
echo 1 >$SDEB/delay
trace_start "$A" "$B"
reads 20 >/dev/null
is "$(trace_stop | awk '{n[$1]++} END {for (d in n) print n[d]}' | xargs)" "10 10" \
	"A is used again when it is free"
rm_map

# ---- a path without a free tag is passed over ----
# Loop disks; A's storage needs a minute (or more, on a slow kernel) for a read and all its tags are
# taken. Those who wait for it are no hung tasks.
HUNG=/proc/sys/kernel/hung_task_timeout_secs
hung_after=$(cat $HUNG)
echo 0 >$HUNG
modprobe dm_delay
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
store=$LOOP
dmsetup create mprrslow --table "0 65536 delay /dev/$store 0 $((6000 * (MPRR_SLOW > 10 ? MPRR_SLOW : 10)))"
loop_up /dev/mapper/mprrslow
slow=$LOOP
loop_up "$MPRR_TMP/back"
fast=$LOOP
echo 4 >"/sys/block/$slow/queue/nr_requests"
A=$(devno "$slow") B=$(devno "$fast")
LEN=65536 mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
for i in 0 1 2 3 4 5; do spawn "$HELPER" io "/dev/$slow" read $((i * 65536)) 4096; done
wait_until 5 "all 4 tags of path A are taken" in_flight_is "$slow" 4
trace_start "$A" "$B"
spawn "$HELPER" reads $DEV 40
ends 1 "40 reads end at once" "$SPAWNED" '^ok done=40'
is "$(trace_stop | awk '{print $1}' | sort | uniq -c | xargs)" "40 $B" "all went to B"
expect_ok "A was full all the time" in_flight_is "$slow" 4
is "$(path_state "$A") $(path_fails "$A")" "A 0" "a path without a tag is not a failed path"
rm_map

# The same for the selectors that compare loads: B takes 0.1 s a read; 40 reads, 8 at a
# time, are 0.5 s if they go to B side by side, 4 s if each waits for the one before.
if in_kernel; then skip "side by side on B" "the in-kernel target does not try a second path"; else
	dmsetup create mprrfast --table "0 65536 delay /dev/$store 0 100"
	loop_up --direct-io=on /dev/mapper/mprrfast
	B=$(devno "$LOOP")
	for selector in round-robin queue-length service-time io-affinity; do
		# io-affinity: A is the path of the processor that reads
		words="0 $A $B"
		[ $selector != io-affinity ] || words="1 $A 1 $B 2"
		LEN=65536 mk_map "0 0 1 1 $selector 0 2 $words"
		expect_ok "$selector: 40 reads, 8 at a time, A full" taskset -c 0 fio --name=p --filename=$DEV --direct=1 \
			--ioengine=libaio --iodepth=8 --rw=randread --bs=4k --io_size=160k --size=32m \
			--output="$MPRR_TMP/fio.p"
		ms=$(sed -n 's/.*run=\([0-9]*\)-.*/\1/p' "$MPRR_TMP/fio.p")
		between "${ms:-99999}" 1 2500 "$selector: they went to B side by side (ms)"
		rm_map
	done
	expect_ok "A was full all the time" in_flight_is "$slow" 4
fi
# let the slow reads end now, or the runner cannot remove the loop disk
dmsetup suspend --nolockfs mprrslow
dmsetup load mprrslow --table "0 65536 linear /dev/$store 0"
dmsetup resume mprrslow
slow_done() { [ "$(in_flight "$slow")" = 0 ]; }
wait_until 20 "the slow reads end" slow_done
echo "$hung_after" >$HUNG

done_testing
