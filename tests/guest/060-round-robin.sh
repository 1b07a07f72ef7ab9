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
	expect_runs "repeat counts 3 and 5" "$(times4 "$A 3 $B 5")"
	counted 7 1 2 30
	expect_runs "repeat counts 7, 1, 2 and 30" "$(times4 "$A 7 $B 1 $C 2 $D 30")"
fi
counted 1 1
expect_runs "repeat count 1: strictly in turn" "$(times4 "$A 1 $B 1")"
counted 1 1 1
expect_runs "three paths, repeat count 1" "$(times4 "$A 1 $B 1 $C 1")"

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

# ---- a full path is passed over: first its LUN queue depth, then its tags ----
# A's only slot is taken by a raw read of 30 s; reads of the map must not wait for it.
echo 1 >"$(scsi_dir "${DISK[0]}")/queue_depth"
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
echo 7500 >$SDEB/delay
spawn "$HELPER" io "/dev/${DISK[0]}" read 0 4096
slow=$SPAWNED
busy_is() { [ "$(in_flight "${DISK[0]}")" -ge "$1" ]; }
wait_until 5 "path A is full (queue depth 1)" busy_is 1
echo 1 >$SDEB/delay
trace_start "${NUM[@]}"
spawn "$HELPER" reads $DEV 40
ends 2 "40 reads end while A is full" "$SPAWNED" 'ok done=40'
trace_stop >"$MPRR_TMP/trace"
expect_ok "A was full all the time" alive "$slow"
is "$(awk '{print $1}' "$MPRR_TMP/trace" | sort | uniq -c | xargs)" "40 $B" "all went to B"
is "$(path_state "$A") $(path_fails "$A")" "A 0" "a full path is not a failed path"
ends 40 "the slow read ends" "$slow" ok
trace_start "${NUM[@]}"
reads 20 >/dev/null
is "$(trace_stop | awk '{n[$1]++} END {for (d in n) print n[d]}' | xargs)" "10 10" \
	"A is used again when it is free"

done_testing
