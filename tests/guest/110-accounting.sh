#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: after any load every in-flight counter is 0, also when paths hand requests back
#       all the time (LUN queue depth 1, one tag, host limit) or die under load; the
#       choice is even afterwards.
# Why:  a leaked count makes a path be chosen less and less, and is seen only days later.
# limit: 120
. "$(dirname "$0")/lib.sh"

mod_load

words() { info_paths | awk '{for (i = 6; i <= NF; i++) printf "%s ", $i} END {print ""}' | sed 's/ $//'; }

# counters DESC WORDS: nothing in flight anywhere, and the selector says the same
counters() {
	# trap: handed-back
	wait_until 10 "$1: the map and its paths have nothing in flight" idle
	is "$(words)" "$2" "$1: in-flight words of the selector"
}

# even DESC: 400 reads, 8 at a time: each of the two paths gets 35 % to 65 %
even() {
	local n
	trace_start "$A" "$B"
	fio --name=e --filename=$DEV --direct=1 --ioengine=libaio --iodepth=8 --rw=randread --bs=4k \
		--io_size=1600k --size=32m --output="$MPRR_TMP/fio.e" || fail "$1: fio" "$(fio_diag e)"
	n=$(trace_stop | grep -c "^$A ")
	between "$n" 140 260 "$1: the first path gets about half of 400 reads"
}

# loads: verified writes, deep queue, then small random reads
loads() {
	fio_ok "$1: verified writes" --size=3m --numjobs=2 --offset_increment=16m --iodepth=16
	fio --name=r --filename=$DEV --direct=1 --ioengine=libaio --iodepth=32 --numjobs=2 --rw=randrw \
		--bs=4k --io_size=1m --size=16m --offset=32m --output="$MPRR_TMP/fio.r" || fail "$1: fio" "$(fio_diag r)"
}

# all DESC: every selector over the two paths that are there
all() {
	mk_map "0 0 1 1 queue-length 0 2 1 $A 1 $B 1"
	loads "$1, queue-length"
	counters "$1, queue-length" "0 0"
	even "$1, queue-length"
	reload_map "0 0 1 1 service-time 0 2 2 $A 1 1 $B 1 1"
	loads "$1, service-time"
	counters "$1, service-time" "0 1 0 1"
	reload_map "0 0 1 1 round-robin 0 2 1 $A 4 $B 4"
	loads "$1, round-robin"
	counters "$1, round-robin" ""
	is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "$1: busy is never a failure"
}

# ---- one tag a path ----
if kernel_at_least 6.12; then
	paths_up 2 max_queue=1
	all "one tag"
	rm_map
	rmmod scsi_debug
else
	skip "one tag" "scsi_debug of 6.1 has one pool of commands for all hosts and fails what finds none"
fi

# ---- tags, but a LUN queue depth of 1: every second request is handed back ----
paths_up 2 max_queue=16
lun_depth 1
all "queue depth 1"
rm_map
rmmod scsi_debug

# ---- one limit for all paths of the host ----
if kernel_at_least 6.12; then
	paths_up 2 host_max_queue=2
	mk_map "0 0 1 1 queue-length 0 2 1 $A 1 $B 1"
	loads "host limit"
	counters "host limit" "0 0"
	even "host limit"
	rm_map
	rmmod scsi_debug
else
	skip "host limit" "scsi_debug of 6.1 has one pool of commands for all hosts and fails what finds none"
fi

# ---- the host says busy now and then; the paths die and come back under load ----
paths_up 2
lun_depth 8
mk_map "1 queue_if_no_path 0 1 1 queue-length 0 2 1 $A 1 $B 1"
echo 0x8000 >$SDEB/opts
echo 7 >$SDEB/every_nth
loads "host busy"
echo 0 >$SDEB/opts
echo 0 >$SDEB/every_nth
counters "host busy" "0 0"
spawn fio_verify churn --size=12m --iodepth=32
churn=$SPAWNED
n=0
while alive "$churn" && [ $n -lt 100 ]; do
	for p in "$A" "$B"; do
		message "fail_path $p"
		[ $((n % 4)) != 0 ] || echo offline >"$(scsi_dir "${DISK[n / 4 % 2]}")/state"
		message "switch_group 1"
		for d in "${DISK[@]}"; do echo running >"$(scsi_dir "$d")/state"; done
		message "reinstate_path $p"
		n=$((n + 1))
	done
done
for p in "$A" "$B"; do message "reinstate_path $p"; done
ends 60 "verified I/O while paths fail and come back $n times" "$churn" ''
wait "$churn" || fail "that fio" "$(fio_diag churn)"
is "$(valid_paths)" 2 "both paths are valid"
counters "failing paths" "0 0"
even "failing paths"

done_testing
