#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: rr_min_io and rr_min_io_bytes, by table, message and parameter, counted on the paths,
#       changed while I/O runs; weights; no_path_timeout_secs.
# Why:  a knob that takes effect late, for some paths only, or costs an I/O would be worse
#       than none: 10,000 changes under load, and each run has a length that was asked for.
# limit: 120
. "$(dirname "$0")/lib.sh"

if in_kernel; then
	skip "the whole test" "the in-kernel target has no tunable"
	done_testing
	exit 0
fi

mod_load
paths_up 4

# runs_of COUNT: RUNS = the lengths of the runs of so many reads, one line
runs_of() {
	trace_start "${NUM[@]}"
	is "$(reads "$1")" "ok done=$1 errors=0" "$1 reads of 4 KiB"
	RUNS=$(trace_stop | runs | awk '{print $2}' | xargs)
}
# value NAME EXPECTED: what tunables says
value() { is "$(tunable "$1")" "$2" "tunables: $1 $2"; }
# refused NAME VALUE: with an errno, a line in the log, and no change
refused() {
	local before out
	before=$(tunable "$1")
	out=$("$HELPER" message $MAP "$1 $2" || true)
	is "${out%%$'\n'*} $(tunable "$1")" "EINVAL $before" "$1 $2: refused, nothing changed"
}

# ---- message, table, parameter ----
mk_map "0 0 1 1 round-robin 0 2 1 $A 4 $B 4"
value rr_min_io "repeat_count (table)"
value rr_min_io_bytes "0 (module)"
value no_path_timeout_secs "0 (module)"
runs_of 24
is "$RUNS" "4 4 4 4 4 4" "the repeat counts of the table"
message "rr_min_io 7"
value rr_min_io "7 (message)"
runs_of 28
# trap: min-io-requests
is "$RUNS" "7 7 7 7" "rr_min_io 7 by message"
message "rr_min_io 3"
message "rr_min_io table"
value rr_min_io "repeat_count (table)"
expect_table "TABLE is what was loaded" "0 0 1 1 round-robin 0 2 1 $A 4 $B 4"

message "rr_min_io 5"
reload_map "2 rr_min_io 9 0 1 1 round-robin 0 2 1 $A 4 $B 4"
value rr_min_io "5 (message)"
runs_of 20
is "$RUNS" "5 5 5 5" "a message outlives a new table"
message "rr_min_io table"
value rr_min_io "9 (table)"
expect_table "TABLE echoes the word" "2 rr_min_io 9 0 1 1 round-robin 0 2 1 $A 4 $B 4"
reload_map "0 0 1 1 round-robin 0 2 0 $A $B"
value rr_min_io "1 (module)"
echo 6 >"$PARAMS/rr_min_io"
value rr_min_io "6 (module)"
runs_of 24
is "$RUNS" "6 6 6 6" "the parameter, at once, for a table without repeat counts"
reload_map "0 0 1 1 round-robin 0 2 1 $A 2 $B 2"
runs_of 8
is "$RUNS" "2 2 2 2" "but not for one that has them"
echo 1 >"$PARAMS/rr_min_io"

for bad in 0 -1 automatic 1000001 4k '' 3.5; do refused rr_min_io "$bad"; done
for bad in -1 auto 1073741825 64k; do refused rr_min_io_bytes "$bad"; done
for bad in -1 auto 31536001 soon; do refused no_path_timeout_secs "$bad"; done
for bad in 0 table 1000001 ''; do
	expect_fail "parameter rr_min_io refuses \"$bad\"" "" bash -c "echo '$bad' >$PARAMS/rr_min_io"
done
is "$(cat "$PARAMS/rr_min_io")" 1 "the parameter has not changed"

# ---- weights: multipathd multiplies repeat counts by a path's priority ----
reload_map "0 0 1 1 round-robin 0 4 1 $A 50 $B 10 $C 1 $D 20"
runs_of 162
# trap: weights
is "$RUNS" "50 10 1 20 50 10 1 20" "weights are honoured exactly"

# ---- a run that is too long by now is cut ----
reload_map "0 0 1 1 round-robin 0 2 1 $A 1000 $B 1000"
runs_of 20
is "$RUNS" "20" "20 of a run of 1000"
message "rr_min_io 8"
runs_of 24
# trap: tuned-live
is "$RUNS" "8 8 8" "rr_min_io 8: the rest of the run is 8, not 980"

# ---- bytes ----
# sizes BS COUNT: the lengths of the runs of COUNT reads of BS bytes, every other one of them
sizes() {
	trace_start "${NUM[@]}"
	expect_ok "$2 reads of $1" fio --name=b --filename=$DEV --direct=1 --ioengine=psync --rw=randread \
		--bs="$1" --number_ios="$2" --size=32m --randseed=1 --output="$MPRR_TMP/fio.b"
	RUNS=$(trace_stop | runs | awk '{print $2}' | xargs)
}
reload_map "0 0 1 1 round-robin 0 2 1 $A 1000 $B 1000"
message "rr_min_io_bytes 65536"
value rr_min_io_bytes "65536 (message)"
sizes 4k 48
# trap: min-io-bytes
is "$RUNS" "16 16 16" "rr_min_io_bytes 65536: 16 reads of 4 KiB"
sizes 16k 12
is "$RUNS" "4 4 4" "4 reads of 16 KiB"
sizes 24k 9
is "$RUNS" "3 3 3" "3 reads of 24 KiB: the one that reaches it is the last"
sizes 128k 4
is "$RUNS" "1 1 1 1" "each read of 128 KiB alone"
message "rr_min_io_bytes 0"
runs_of 16
is "$RUNS" "8 8" "0: requests count again (rr_min_io 8 is still in force)"
message "rr_min_io table"

# ---- changed while I/O runs: counted ----
reload_map "0 0 1 1 round-robin 0 4 1 $A 1 $B 1 $C 1 $D 1"
# reads_done: how many the map has completed
reads_done() { awk '{print $1}' "/sys/block/$(dm_name)/stat"; }
reads_are() { [ "$(reads_done)" -ge "$1" ]; }
trace_start "${NUM[@]}"
spawn "$HELPER" reads $DEV 1000000
for i in $(seq 150); do
	n=$((1 + (i * 7) % 11))
	echo "rr_min_io 0" >$TRACING/trace_marker
	message "rr_min_io $n"
	# Written when the message is done: what begins after it must know.
	echo "rr_min_io $n" >$TRACING/trace_marker
	seen=$(reads_done)
	wait_for 10 reads_are $((seen + n * 4)) || true
done
expect_ok "I/O runs all the time" alive "$SPAWNED"
echo 0 >$TRACING/tracing_on
kill "$SPAWNED"
# Whole runs that began after a change and ended before the next one began, and those that are wrong.
# One read is under way at a time: the first one after a change may have had its path before.
read -r good bad < <(awk '
	/tracing_mark_write: rr_min_io/ { want = $NF; whole = 0; first = 1; next }
	/block_rq_issue/ {
		match($0, /block_rq_issue: [0-9]+,[0-9]+/); d = substr($0, RSTART, RLENGTH)
		if (d != last) {
			if (whole) { if (n == want) good++; else bad++ }
			whole = want > 0 && !first; n = 0; last = d
		}
		first = 0
		n++
	}
	END { print good + 0, bad + 0 }' $TRACING/trace)
trace_stop >/dev/null
diag "150 changes: $good whole runs as long as asked for, $bad others"
is "$bad" 0 "150 changes under I/O: each run that begins after one is as long as asked for"
between "$good" 150 99999999 "such runs were seen"

# ---- 10,000 changes in a row under exactly verified I/O ----
build_c race
like "$("$PROGRAM" -l $((60 * MPRR_SLOW)) storm $MAP $DEV 10000 "rr_min_io 1" "rr_min_io 13" "rr_min_io 1000" \
	"rr_min_io_bytes 65536" "rr_min_io 2" "rr_min_io_bytes 0" "rr_min_io table" || true)" '^ok ' \
	"10,000 messages, each accepted, no I/O error, no wrong block"
message "rr_min_io_bytes table"
message "rr_min_io 3"
reads 3 >/dev/null
runs_of 12
is "$(tr ' ' '\n' <<<"$RUNS" | sed '1d;$d' | sort -u)" 3 "and the last value is in force"

# ---- no_path_timeout_secs ----
reload_map "3 queue_if_no_path no_path_timeout_secs 0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
value no_path_timeout_secs "0 (table)"
echo 1 >"$PARAMS/queue_if_no_path_timeout_secs"
message "fail_path $A"
message "fail_path $B"
spawn "$HELPER" io $DEV read 0 4096
waiting=$SPAWNED
wait_until 5 "a read waits" blocked "$waiting"
expect_fail "after two seconds it still does" "" timeout 2 tail --pid="$waiting" -f /dev/null
message "no_path_timeout_secs 1"
# trap: time-out-per-map
ends 5 "no_path_timeout_secs 1 by message: it fails" "$waiting" EIO
unlike "$(table_of)" queue_if_no_path "queueing has ended"
message "queue_if_no_path"
message "no_path_timeout_secs 3600"
spawn "$HELPER" io $DEV read 0 4096
message "no_path_timeout_secs table"
message "reinstate_path $A"
ends 5 "a path is back: the read goes on" "$SPAWNED" ok
rm_map

# ---- rr_min_io auto ----
# auto_of NAME [PATH]: a number that stats explains it with
auto_of() { message stats | sed -n "s/^rr_min_io auto ${2:+.*path=$2 }.*$1=\([0-9.]*\).*/\1/p" | head -n 1; }
auto_is() { [ "$(auto_of "$1" "$3")" = "$2" ]; }
# in_runs_of N: percent of the requests in RUNS (the first and the last run apart) that are in runs of N.
# Not all of them: on an emulated processor that stands still for a moment a path looks twice as slow as
# the other, or two requests are in flight, and auto rightly follows what it sees.
in_runs_of() { sed '1d;$d' <<<"$RUNS" | awk -v n="$1" '{all += $2; if ($2 == n) some += $2} END {print int(some * 100 / (all ? all : 1))}'; }

mk_map "2 rr_min_io auto 0 1 1 round-robin 0 2 1 $A 1 $B 1"
value rr_min_io "auto (table)"
expect_table "TABLE echoes auto" "2 rr_min_io auto 0 1 1 round-robin 0 2 1 $A 1 $B 1"
trace_start "$A" "$B"
reads 200 >/dev/null
RUNS=$(trace_stop | runs)
between "$(in_runs_of 1)" 50 100 "a lone random reader: the paths take turns (% of the requests in runs of 1)"
diag "runs: $(awk '{print $2}' <<<"$RUNS" | xargs)"
spawn dd if=$DEV of=/dev/null bs=4k count=16000 iflag=direct status=none
stream=$SPAWNED
wait_until 10 "a lone stream: runs of 32" auto_is run 32 "$A"
trace_start "$A" "$B"
seen=$(reads_done)
wait_for 20 reads_are $((seen + 1000)) || true
RUNS=$(trace_stop | runs)
kill "$stream" 2>/dev/null || true
wait_for 10 gone "$stream" || true
between "$(in_runs_of 32)" 50 100 "counted: a stream stays with a path for 32 requests (% of the requests in such runs)"
diag "runs: $(awk '{print $2}' <<<"$RUNS" | xargs)"
fio_ok "verified I/O, many at a time" --size=16m --iodepth=32
rm_map

# One path takes 20 times as long as the other.
modprobe dm_delay
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
store=$LOOP
for ms in 20 400; do
	dmsetup create mprrdelay$ms --table "0 65536 delay /dev/$store 0 $ms"
	loop_up --direct-io=on /dev/mapper/mprrdelay$ms
	slow=$(devno "$LOOP")
	[ $ms != 20 ] || fast=$slow
done
# shares DESC: 240 random reads, 16 at a time, no two of them neighbours that would merge.
# SPLIT = what the fast and the slow path got, SLOW = the latter in percent; MS = how long.
shares() {
	trace_start "$fast" "$slow"
	expect_ok "$1: 240 random reads, 16 at a time" fio --name=a --filename=$DEV --direct=1 --ioengine=libaio \
		--iodepth=16 --rw=randread --bs=4k --blockalign=16k --number_ios=240 --size=32m --output="$MPRR_TMP/fio.a"
	MS=$(sed -n 's/.*run=\([0-9]*\)-.*/\1/p' "$MPRR_TMP/fio.a")
	trace_stop >"$MPRR_TMP/trace"
	is "$(wc -l <"$MPRR_TMP/trace")" 240 "$1: they are 240 requests on the paths"
	SPLIT=$(awk -v f="$fast" -v s="$slow" '{n[$1]++} END {print n[f] + 0, n[s] + 0}' "$MPRR_TMP/trace")
	SLOW=$(awk -v d="$slow" '$1 == d {n++} END {print int(n * 100 / NR)}' "$MPRR_TMP/trace")
	diag "$1: $(awk '{print $1}' "$MPRR_TMP/trace" | sort | uniq -c | awk '{print $1 " to " $2}' | xargs);" \
		"$(message stats | grep -oE '^path=[^ ]*| busy=[^ ]*| refused=[^ ]*' | xargs)"
}
LEN=65536 mk_map "0 0 1 1 round-robin 0 2 1 $fast 1 $slow 1"
shares "rr_min_io 1"
is "$SPLIT" "120 120" "in turn: the slow path gets half of them"
turns=$MS
message "rr_min_io auto"
reads 64 >/dev/null
shares "auto, first"
shares "auto"
diag "in turn $turns ms, auto $MS ms; $(message stats | grep 'auto group' | xargs)"
between "$SLOW" 1 25 "auto: the slow path gets a small part of them, but some (%)"
message "fail_path $fast"
expect_ok "the fast path fails: reads go on, on the slow one" test "$(reads 10)" = "ok done=10 errors=0"
alone() { [ "$(auto_of run "$slow")" = "$(auto_of base)" ]; }
wait_until 5 "its runs are those of a path alone" alone
message "reinstate_path $fast"
message "fail_path $slow"
trace_start "$fast" "$slow"
reads 20 >/dev/null
is "$(trace_stop | awk '{print $1}' | sort | uniq -c | xargs)" "20 $fast" "the slow one fails: all go to the fast one at once"
rm_map

done_testing
