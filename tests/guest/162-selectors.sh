#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: the selectors that choose by load, history or processor, counted on the paths: repeat
#       counts, ties, failure; historical-service-time finds the fast path, and finds out
#       when that changes; io-affinity follows the processor.
# Why:  a selector that always favours one path, or never tries the slow one again, shows
#       only in production.
# limit: 150
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the in-kernel target forces repeat counts to 1 and lacks two of them"; fi

mod_load
paths_up 4

# counts COMMAND...: what COMMAND makes each path get, in the order of NUM, one line
counts() {
	local n
	trace_start "${NUM[@]}"
	"$@" >/dev/null
	trace_stop >"$MPRR_TMP/trace"
	for n in "${NUM[@]}"; do grep -c "^$n " "$MPRR_TMP/trace" || true; done | xargs
}
# lone COUNT [MOST]: reads, each when MOST (0) are in flight: a reader wakes before the selector
# has counted his last read, and would find that path busy
lone() { "$HELPER" reads $DEV "$1" 1 $MAP "${2:-0}" || fail "lone reads"; }
# runs_of COUNT: the runs of so many reads, one line
runs_of() {
	trace_start "${NUM[@]}"
	lone "$1" >/dev/null
	trace_stop | runs | xargs
}
# word PATH I: its I-th selector word in INFO
word() { info_paths | awk -v d="$1" -v i="$2" '$3 == d {print $(5 + i); exit}'; }

mk_map "0 0 1 1 queue-length 0 2 1 $A 1 $B 1"

# ---- repeat counts ----
for selector in queue-length service-time; do
	reload_map "0 0 1 1 $selector 0 2 1 $A 5 $B 3"
	is "$(runs_of 16)" "$A 5 $B 3 $A 5 $B 3" "$selector: runs of 5 and 3"
	reload_map "0 0 1 1 $selector 0 3 1 $A 2 $B 1 $C 4"
	is "$(runs_of 14)" "$A 2 $B 1 $C 4 $A 2 $B 1 $C 4" "$selector: runs of 2, 1 and 4"
	reload_map "0 0 1 1 $selector 0 2 1 $A 100 $B 100"
	is "$(counts lone 10)" "10 0 0 0" "$selector: 10 of a run of 100"
	message "fail_path $A"
	is "$(counts lone 10)" "0 10 0 0" "$selector: its path fails: another run begins"
	message "reinstate_path $A"
	is "$(counts lone 90)" "0 90 0 0" "$selector: which goes on when the path is back"
	is "$(counts lone 10)" "10 0 0 0" "$selector: and then ends"
	message "rr_min_io 7"
	is "$(runs_of 100 | awk '{print $4, $6, $8, $10}')" "7 7 7 7" "$selector: rr_min_io 7 by message"
	message "rr_min_io table"
done

# ---- ties: who waits for nothing gets the same as everybody ----
for selector in "queue-length 0" "service-time 0" "historical-service-time 2 972 4294967295"; do
	reload_map "0 0 1 1 $selector 3 0 $A $B $C"
	is "$(counts lone 60)" "20 20 20 0" "$selector: 3 idle paths get 20 of 60 reads each"
	reload_map "0 0 1 1 $selector 4 0 $A $B $C $D"
	is "$(counts lone 60)" "15 15 15 15" "$selector: 4 idle paths get 15 of 60 reads each"
	message "fail_path $B"
	is "$(counts lone 60)" "20 0 20 20" "$selector: 3 of 4 share when one has failed"
	expect_ok "$selector: 800 random reads, 16 at a time" counts fio --name=r --filename=$DEV \
		--direct=1 --ioengine=libaio --iodepth=16 --rw=randread --bs=4k --io_size=3200k \
		--size=64m --output="$MPRR_TMP/fio.r"
	for d in "$A" "$C" "$D"; do
		between "$(grep -c "^$d " "$MPRR_TMP/trace")" 200 333 "$selector: $d got about a third"
	done
done

# ---- historical-service-time: its words ----
reload_map "0 0 1 1 historical-service-time 2 900 0 2 0 $A $B"
reads 20 >/dev/null
for d in "$A" "$B"; do
	between "$(word "$d" 1)" $((10000 << 10)) $((10000000000 << 10)) "the average of $d is a time (10 us to 10 s)"
	is "$(word "$d" 2)" 0 "nothing is outstanding"
	between "$(word "$d" 3)" 100000000 $((1 << 60)) "its average is good for some time"
done
message "fail_path $B"
before=$(word "$B" 1)
reads 20 >/dev/null
is "$(word "$B" 1)" "$before" "the average of a path that gets nothing stays"
message "reinstate_path $B"
echo offline >"$(scsi_dir "${DISK[1]}")/state"
before=$(word "$B" 1)
reads 20 >/dev/null
is "$(path_state "$B") $(word "$B" 1)" "F $before" "a read that failed there is no sample"
echo running >"$(scsi_dir "${DISK[1]}")/state"
message "reinstate_path $B"

# ---- service-time: two paths that nothing should go to ----
reload_map "0 0 1 1 service-time 0 2 2 $A 1 0 $B 1 0"
is "$(counts lone 20)" "10 10 0 0" "service-time: two paths without throughput share"
expect_ok "service-time: 400 random reads, 16 at a time" counts fio --name=r --filename=$DEV --direct=1 \
	--ioengine=libaio --iodepth=16 --rw=randread --bs=4k --io_size=1600k --size=64m --output="$MPRR_TMP/fio.r"
for d in "$A" "$B"; do
	between "$(grep -c "^$d " "$MPRR_TMP/trace")" 150 250 "service-time: $d got about half"
done

# ---- io-affinity ----
on() { taskset -c "$1" "$HELPER" reads $DEV 20 1 $MAP; }
reload_map "0 0 1 1 io-affinity 0 2 1 $A 1 $B 2"
is "$(counts on 0)" "20 0 0 0" "io-affinity: processor 0 has path A"
is "$(counts on 1)" "0 20 0 0" "io-affinity: processor 1 has path B"
is "$(word "$A" 1) $(word "$B" 1)" "0 0" "no miss"
message "fail_path $A"
is "$(counts on 0)" "0 20 0 0" "path A has failed: path B takes its place"
is "$(word "$A" 1) $(word "$B" 1)" "20 20" "20 misses, of the group"
message "reinstate_path $A"
is "$(counts on 0)" "20 0 0 0" "and gives it back"
reload_map "0 0 1 1 io-affinity 0 1 1 $B 1"
is "$(counts on 1) $(word "$B" 1)" "0 20 0 0 20" "a processor without a path: a miss each"
reload_map "0 0 1 1 io-affinity 0 2 1 $A 1 $B 3"
is "$(counts on 0) / $(counts on 1)" "20 0 0 0 / 0 20 0 0" "what two paths name belongs to the first"

# ---- verified I/O while paths fail and come back ----
i=0
for selector in "historical-service-time 0 4 0 $A $B $C $D" "io-affinity 0 2 1 $A 1 $B 2"; do
	reload_map "1 queue_if_no_path 0 1 1 $selector"
	spawn fio_verify "sel$i" --size=8m --iodepth=16
	n=0
	while alive "$SPAWNED" && [ $n -lt 60 ]; do
		for d in "$A" "$B"; do
			message "fail_path $d"
			message "reinstate_path $d"
			n=$((n + 1))
		done
	done
	ends 60 "${selector%% *}: verified I/O while paths fail $n times" "$SPAWNED" ''
	wait "$SPAWNED" || fail "that fio" "$(fio_diag "sel$i")"
	i=$((i + 1))
	wait_until 10 "nothing is in flight" idle
done
reload_map "0 0 1 1 historical-service-time 0 2 0 $A $B"
reads 4 >/dev/null
is "$(word "$A" 2) $(word "$B" 2)" "0 0" "and nothing is counted as such"
rm_map

# ---- historical-service-time: one path takes 20 ms more ----
modprobe dm_delay
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
store=$LOOP
LEN=65536 NUM=()
for n in 0 1 2; do
	dmsetup create "mprrdelay$n" --table "0 $LEN delay /dev/$store 0 $((n ? 0 : 20))"
	loop_up --direct-io=on "/dev/mapper/mprrdelay$n"
	NUM[n]=$(devno "$LOOP")
done
A=${NUM[0]} B=${NUM[1]} C=${NUM[2]}
# delay N MS
delay() {
	dmsetup suspend --nolockfs "mprrdelay$1"
	dmsetup load "mprrdelay$1" --table "0 $LEN delay /dev/$store 0 $2"
	dmsetup resume "mprrdelay$1"
}
mk_map "0 0 1 1 historical-service-time 0 2 0 $A $B"
read -r slow fast _ < <(counts lone 300)
between "$slow" 1 30 "the slow path gets few of 300 reads"
is "$((slow + fast))" 300 "the fast one the others"
between "$(($(word "$A" 1) >> 10))" 10000000 $((200000000 * MPRR_SLOW)) "the average of the slow one (ns)"
delay 0 0
delay 1 20
read -r fast slow _ < <(counts lone 300)
between "$fast" 150 299 "the other way round: it finds out, most of 300 reads go to the one that is fast now"
rm_map

# ---- queue-length: one path is busy, the two others share ----
delay 1 0
mk_map "0 0 1 1 queue-length 0 3 0 $A $B $C"
delay 0 $((3000 * (MPRR_SLOW > 10 ? MPRR_SLOW : 10)))
spawn "$HELPER" io $DEV read 0 4096
one_in_flight() { [ "$(word "$A" 1)" = 1 ]; }
wait_until 5 "path A has a read that takes long" one_in_flight
is "$(counts lone 20 1)" "0 10 10" "the two others share 20 reads evenly"
expect_ok "A was busy all the time" one_in_flight
delay 0 0
ends 20 "the long read ends" "$SPAWNED" '^ok'

done_testing
