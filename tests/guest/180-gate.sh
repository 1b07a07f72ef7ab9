#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: the gate: which loads it holds and which it leaves alone; its tunables by table, message
#       and module parameter, which outlive a reload; one bad block in a merged request.
# Why:  what is not held does not merge; what is held without need waits; a request that was
#       merged from many I/Os must not fail them all for one bad block.
# limit: 120
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the in-kernel target has no gate"; fi
PARAMS=/sys/module/$MODULE/parameters
mod_load
paths_up 2 ndelay=200000
lun_depth 16

merges() { awk '{print $2 + $6}' "/sys/block/$(dm_name)/stat"; }
# load NAME FIO-ARG...: runs it, verified, and leaves what it did in BIOS, MERGED (per cent), CLOSED
load() {
	local name=$1 m c b rc=0
	shift
	m=$(merges) c=$(stat_of closed) b=$(stat_of bios)
	fio --name=m --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --io_size=8m --size=8m \
		--verify=crc32c --verify_fatal=1 --do_verify=1 "$@" --output="$MPRR_TMP/fio.m" >"$MPRR_TMP/fio.m.err" 2>&1 || rc=$?
	is $rc 0 "$name: every block verified"
	[ $rc = 0 ] || fio_diag m
	BIOS=$(($(stat_of bios) - b)) CLOSED=$(($(stat_of closed) - c))
	MERGED=$((100 * ($(merges) - m) / (BIOS ? BIOS : 1)))
	diag "$name: $BIOS bios, $MERGED % merged, gate closed $CLOSED times; $(message stats)"
}
fresh() { rm_map; mk_map "$@"; echo "$ELEVATOR" >"/sys/block/$(dm_name)/queue/scheduler"; }
TABLE="0 1 1 round-robin 0 2 1 $A 1 $B 1"

# ---- what is held ----
mk_map "0 $TABLE"
for ELEVATOR in mq-deadline none; do
	fresh "0 $TABLE"
	load "$ELEVATOR, four jobs in order" --rw=write --iodepth=16 --numjobs=4 --offset_increment=10m
	between "$CLOSED" 1 999999 "$ELEVATOR, four jobs in order: the gate works"
	between "$MERGED" 15 100 "$ELEVATOR, four jobs in order: at least 15 % of the bios merge"
	fresh "0 $TABLE"
	load "$ELEVATOR, at random" --rw=randwrite --iodepth=32 --numjobs=1 --size=100% --do_verify=0
	is "$CLOSED" 0 "$ELEVATOR, random writes: the gate is never closed"
	fresh "0 $TABLE"
	load "$ELEVATOR, one at a time" --rw=write --iodepth=1 --numjobs=1 --do_verify=0
	between "$CLOSED" 0 70 "$ELEVATOR, one write at a time: nothing is held but for a trial"
done
is "$(stat_of in_flight)" 0 "nothing is in flight"
ELEVATOR=mq-deadline
fresh "0 $TABLE"
load "eight in order, one at a time each" --rw=write --iodepth=1 --numjobs=8 --offset_increment=4m --size=4m --io_size=8m --do_verify=0
between "$CLOSED" 0 700 "eight in order, one at a time each: nothing is held but for trials"
load "and then four jobs in order" --rw=write --iodepth=16 --numjobs=4 --offset_increment=10m
between "$MERGED" 15 100 "then a flow that merges: the failed trials are forgotten"
load "and then at random" --rw=randwrite --iodepth=32 --numjobs=1 --size=100% --do_verify=0
# trap: self-tuning
is "$CLOSED" 0 "then random writes: the flow that merged is forgotten"
fresh "2 merge_deadline_us 0 $TABLE"
load "merge_deadline_us 0" --rw=write --iodepth=16 --numjobs=4 --offset_increment=10m
# trap: merge-deadline
is "$CLOSED" 0 "merge_deadline_us 0: the gate is never closed"
fresh "2 merge_deadline_us 3000 $TABLE"
load "merge_deadline_us 3000" --rw=write --iodepth=16 --numjobs=4 --offset_increment=10m
between "$CLOSED" 1 1000000 "merge_deadline_us 3000: it is"

# ---- max_inflight: what a path has at a time ----
# Commands of 5 ms: a slow processor, too, sends three sooner than one ends; under a debug kernel of 20 ms.
wait_until 10 "nothing is in flight" idle
echo $((MPRR_SLOW > 10 ? 20000000 : 5000000)) >$SDEB/ndelay
fresh "2 max_inflight 1 $TABLE"
# most CAP [FIO OPTION...]: the most that disk 0 has in flight while a load runs, by the block
# layer's own events. Its counters, one per processor, are summed while they change; the trace's
# are in one order: a completion comes before the request that it lets in.
most() {
	local cap=$1 event block
	shift
	trace_mount
	block=$TRACING/events/block
	echo 0 >$TRACING/tracing_on
	echo counter >$TRACING/trace_clock
	echo 16384 >$TRACING/buffer_size_kb
	for event in issue complete requeue; do
		echo "dev == $((${A%:*} << 20 | ${A#*:}))" >"$block/block_rq_$event/filter"
		echo 1 >"$block/block_rq_$event/enable"
	done
	echo 1 >$TRACING/tracing_on
	fio_ok "max_inflight $cap: verified I/O" --size=2m --iodepth=16 --bsrange=4k-4k "$@"
	echo 0 >$TRACING/tracing_on
	for event in issue complete requeue; do
		echo 0 >"$block/block_rq_$event/enable"
		echo 0 >"$block/block_rq_$event/filter"
	done
	read -r MOST SENT ENDED < <(awk '/: block_rq_issue:/ {sent++; if (++n > most) most = n}
		/: block_rq_(complete|requeue):/ {ended++; n--}
		END {print most + 0, sent + 0, ended + 0}' $TRACING/trace)
	echo local >$TRACING/trace_clock	# empties the trace
	is "$ENDED" "$SENT" "max_inflight $cap: the trace has the end of each request"
	between "$SENT" 100 100000 "max_inflight $cap: and disk A had its share"
}
most 1
# trap: in-flight-cap
between "$MOST" 0 1 "max_inflight 1: never more than one request on a path"
message max_inflight 3
most 3
# trap: tuned-live
between "$MOST" 2 3 "max_inflight 3 by a message, at once"
wait_until 10 "nothing is in flight again" idle
echo 200000 >$SDEB/ndelay

# ---- where a value comes from ----
is "$(tunable max_inflight) $(tunable merge_deadline_us)" "3 (message) auto (module)" "tunables says what is in force, and why"
reload_map "2 max_inflight 5 $TABLE"
is "$(tunable max_inflight)" "3 (message)" "a message outlives a new table"
expect_table "TABLE echoes the table's value" "2 max_inflight 5 0 1 1 round-robin 0 2 1 $A 1 $B 1"
message max_inflight table
is "$(tunable max_inflight)" "5 (table)" "until the message \"table\""
message merge_deadline_us 77
rm_map
mk_map "0 $TABLE"
is "$(tunable merge_deadline_us)" "auto (module)" "and ends with the map"
echo 500 >"$PARAMS/merge_deadline_us"
is "$(tunable merge_deadline_us)" "500 (module)" "the parameter is for maps that say nothing, at once"
is "$(cat "$PARAMS/merge_deadline_us")" 500 "and reads back"
for bad in 100001 -1 1x never 4294967295 4294967296 '1 2'; do
	expect_fail "the parameter refuses '$bad'" "Invalid argument|write error" bash -c "printf '%s' '$bad' >$PARAMS/merge_deadline_us"
done
is "$(cat "$PARAMS/merge_deadline_us")" 500 "and keeps its value"
for bad in 0 65537 -3 many 1x; do
	is "$("$HELPER" message $MAP "max_inflight $bad" | head -n 1)" EINVAL "the message max_inflight $bad is refused"
done
is "$("$HELPER" message $MAP "merge_deadline_us 100001" | head -n 1)" EINVAL "the message merge_deadline_us 100001 is refused"
is "$(tunable max_inflight)" "auto (module)" "and changes nothing"
echo auto >"$PARAMS/merge_deadline_us"
is "$(cat "$PARAMS/merge_deadline_us")" auto "auto, again"

# ---- one bad block in a merged request ----
# Sectors 0x1234 to 0x123d are bad: the blocks 582 and 583 of 4 KiB, the last two that are read.
lun_depth 1
fresh "0 $TABLE"
echo 2 >$SDEB/opts
m=$(merges)
fio --name=bad --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --rw=read --iodepth=64 --size=$((584 * 4))k --loops=3 \
	--continue_on_error=read --ignore_error=61:5 --output-format=json --output="$MPRR_TMP/bad.json" >/dev/null 2>&1 || true
echo 0 >$SDEB/opts
diag "$(($(merges) - m)) of $((584 * 3)) reads merged"
between $(($(merges) - m)) 100 1752 "reads over the bad blocks merge"
is "$(jq '.jobs[0].total_err' "$MPRR_TMP/bad.json")" 6 "only the two bad blocks are errors, in each of three rounds"
is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "no path failed"
wait_until 10 "nothing is in flight" idle
is "$(stat_of in_flight)" 0 "nothing is in flight"

# ---- paths go while its bios are read one by one ----
# 48 blocks from 560 on, the two bad ones among them, in one request; 40 ms for each bio by itself.
bad() { # RW FIO-ARG...
	local rw=$1
	shift
	fio --name=bad --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --rw="$rw" --iodepth=64 --offset=2240k \
		--size=192k --iodepth_batch=64 --verify=crc32c "$@"
}
bad_reads() { # NAME [FIO-ARG...]: reads of them, spawned
	spawn bad read --verify_fatal=1 --continue_on_error=read --ignore_error=61:5 --output-format=json \
		--output="$MPRR_TMP/$1.json" "${@:2}"
}
bad_ends() { # NAME READS WHAT: only the bad blocks are errors
	ends 60 "$3: the reads end" "$SPAWNED" ''
	is "$(jq -r '.jobs[0] | "\(.total_err) of \(.read.total_ios)"' "$MPRR_TMP/$1.json")" "2 of $2" \
		"$3: only the bad blocks are errors, all others are right"
	for d in "${NUM[@]}"; do message "reinstate_path $d"; done
	wait_until 10 "$3: nothing is in flight" idle
}
fresh "1 queue_if_no_path $TABLE"
expect_ok "the blocks are written" bad write --do_verify=0 --output="$MPRR_TMP/bad.out"
echo 40000000 >$SDEB/ndelay
echo 2 >$SDEB/opts
bad_reads gone
n=0
while alive "$SPAWNED"; do
	for d in "${NUM[@]}"; do message "fail_path $d"; done
	for d in "${NUM[@]}"; do message "reinstate_path $d"; done
	n=$((n + 1))
done
between $n 2 100000 "all paths are failed and come back, often enough"
bad_ends gone 48 "meanwhile"
bad_reads offline
n=0
a_failed() { [ "$(path_state "$A")" = F ] || ! alive "$SPAWNED"; }
while alive "$SPAWNED"; do
	echo offline >"$(scsi_dir "${DISK[0]}")/state"
	wait_until 20 "the offline path fails" a_failed
	echo running >"$(scsi_dir "${DISK[0]}")/state"
	message "reinstate_path $A"
	n=$((n + 1))
done
between $n 2 100000 "a path goes offline and comes back, often enough"
bad_ends offline 48 "meanwhile"
# the verdict comes when no path is left to tell which block it is about
# some seconds where all is slow; ndelay takes less than one
if [ "$MPRR_SLOW" -gt 10 ]; then echo 1000 >$SDEB/delay; else echo 900000000 >$SDEB/ndelay; fi
bad_reads verdict --offset=2324k --size=16k
idle_paths() { [ "$(in_flight "${DISK[0]}") $(in_flight "${DISK[1]}")" = "0 0" ]; }
taken() { [ $(($(in_flight "${DISK[0]}") + $(in_flight "${DISK[1]}"))) = 1 ]; }
wait_until 5 "four blocks are read by one request" taken
for d in "${NUM[@]}"; do message "fail_path $d"; done
expect_ok "all paths have failed before it ends" taken
wait_until 10 "it has ended" idle_paths
for d in "${NUM[@]}"; do message "reinstate_path $d"; done
bad_ends verdict 4 "a verdict without a path"
echo 0 >$SDEB/opts
echo 200000 >$SDEB/ndelay

# ---- a request of many bios that has no path ----
fresh "0 $TABLE"
for d in "${DISK[@]}"; do echo offline >"$(scsi_dir "$d")/state"; done
bad_reads lost
ends 20 "reads without a path end" "$SPAWNED" ''
is "$(jq '.jobs[0].total_err' "$MPRR_TMP/lost.json")" 48 "each of their bios has the error"
for d in "${DISK[@]}"; do echo running >"$(scsi_dir "$d")/state"; done
for d in "${NUM[@]}"; do message "reinstate_path $d"; done
expect_ok "and all are right when the paths are back" bad read --verify_fatal=1 --output="$MPRR_TMP/bad.out"

done_testing
