#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: the messages stats and histogram: requests and bytes of each path against the disk's own
#       statistics, after a mixed load with failing, offline, busy and bad paths; errors, busy
#       answers and what is in flight; latencies against a disk of known speed.
# Why:  figures that do not add up are worse than none.
# How:  MPRR_MINUTES (default 0.3) for the mixed load; MPRR_SEED repeats its random choices.
# limit: 120
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the in-kernel target has no statistics"; fi
MPRR_MINUTES=${MPRR_MINUTES:-0.3}
RANDOM_SEED=${MPRR_SEED:-$RANDOM}
diag "MPRR_SEED=$RANDOM_SEED MPRR_MINUTES=$MPRR_MINUTES"
RANDOM=$RANDOM_SEED

mod_load
paths_up 4 lbpu=1 ndelay=100000

# words NUM: the path's line, one word a line; word NUM NAME: a value of it
words() { message stats | grep "^path=$1 " | tr ' ' '\n'; }
word() { words "$1" | sed -n "s/^$2=//p"; }
# disk_now DISK: what its statistics say: reads sectors writes sectors discards sectors
disk_now() { awk '{print $1, $3, $5, $7, $12, $14}' "/sys/block/$1/stat"; }
# ours NUM: the same from the message stats
ours() {
	words "$1" | awk -F= '{v[$1] = $2} END {
		print v["read_requests"], v["read_bytes"] / 512, v["write_requests"], v["write_bytes"] / 512,
		      v["discard_requests"], v["discard_bytes"] / 512 }'
}
minus() { awk -v b="$2" '{split(b, x); for (i = 1; i <= NF; i++) printf "%s%d", (i > 1 ? " " : ""), $i - x[i]; print ""}' <<<"$1"; }

# fresh ARGS...: a new map; from here on its paths and the disks count
declare -A BASE
fresh() {
	local d
	if [ -e $DEV ]; then rm_map; fi
	for d in "${DISK[@]}"; do BASE[$d]=$(disk_now "$d"); done
	mk_map "$@"
}
# adds_up DESC: each path's numbers are those of its disk, and so is their sum
# trap: path-statistics
adds_up() {
	local i disk all_ours='' all_disk='' d
	wait_until 20 "$1: nothing is in flight" idle
	for i in "${!DISK[@]}"; do
		d=${DISK[i]}
		[ -n "$(words "${NUM[i]}")" ] || continue
		disk=$(minus "$(disk_now "$d")" "${BASE[$d]}")
		is "$(ours "${NUM[i]}")" "$disk" "$1: $d, requests and sectors read, written, discarded"
		is "$(word "${NUM[i]}" in_flight)" 0 "$1: $d, nothing is in flight"
		all_ours+=$(ours "${NUM[i]}")$'\n' all_disk+=$disk$'\n'
	done
	total() { awk '{for (i = 1; i <= NF; i++) s[i] += $i} END {for (i = 1; i <= 6; i++) printf "%d ", s[i]}'; }
	is "$(total <<<"$all_ours")" "$(total <<<"$all_disk")" "$1: the sum over all paths"
	diag "$(total <<<"$all_ours"): reads sectors writes sectors discards sectors"
}

# ---- the form of a line ----
fresh "0 0 2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 1 1 $C 1"
is "$(message stats | wc -l)" 4 "a line for the gate, and one for each path"
LINE='path=[0-9]+:[0-9]+ group=[12] state=[AF] fail_count=[0-9]+ changed_s=-?[0-9]+'
LINE+=' requests=[0-9]+ bytes=[0-9]+ errors=[0-9]+ in_flight=[0-9]+ busy=[0-9]+ refused=[0-9]+'
for dir in read write discard; do
	LINE+=" ${dir}_requests=[0-9]+ ${dir}_bytes=[0-9]+ ${dir}_errors=[0-9]+ ${dir}_in_flight=[0-9]+"
	[ $dir = discard ] || LINE+=" ${dir}_samples=[0-9]+ ${dir}_p50_us=[0-9]+\.[0-9] ${dir}_p95_us=[0-9]+\.[0-9] ${dir}_p99_us=[0-9]+\.[0-9] ${dir}_p999_us=[0-9]+\.[0-9]"
done
is "$(message stats | sed 1d | grep -cEvx "$LINE" || true)" 0 "each path's line has the words of the reference, in their order"
is "$(message stats | sed 1d | grep -o '^path=[0-9:]* group=[0-9]*' | xargs)" \
	"path=$A group=1 path=$B group=1 path=$C group=2" "paths in the order of the table"

# ---- one of each ----
is "$(io write 0 16384) $(io write 65536 4096) $(io read 0 8192)" "ok ok ok" "two writes and a read"
is "$(io discard 1048576 65536) $(io flush 0 0)" "ok ok" "a discard and a flush"
adds_up "one of each"
is "$(word "$A" write_bytes) $(word "$B" write_bytes) $(word "$A" read_bytes)" "16384 4096 8192" "the paths in turn"
is "$(word "$B" discard_requests) $(word "$B" discard_bytes)" "1 65536" "a discard"
is "$(word "$C" requests)" 0 "the other group got nothing"
is "$(word "$A" changed_s) $(word "$A" state)" "-1 A" "no path has changed"

# ---- errors ----
fresh "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
echo offline >"$(scsi_dir "${DISK[0]}")/state"
is "$(io read 0 4096)" ok "a read while the first disk is offline"
echo running >"$(scsi_dir "${DISK[0]}")/state"
is "$(word "$A" errors) $(word "$A" read_errors) $(word "$A" state) $(word "$A" fail_count)" "1 1 F 1" "is an error of that path"
between "$(word "$A" changed_s)" 0 $((5 * MPRR_SLOW)) "that changed just now"
is "$(word "$B" errors) $(word "$B" read_requests)" "0 1" "and a read of the other one"
adds_up "offline"
message "reinstate_path $A"
echo 2 >$SDEB/opts
like "$(io read $((0x1234 * 512)) 4096)" 'ENODATA|EIO' "a bad block"
echo 0 >$SDEB/opts
is "$(($(word "$A" errors) + $(word "$B" errors)))" 2 "is an error, too"
adds_up "a bad block"
reload_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
is "$(words "$A" | sed -n 's/^requests=//p') $(word "$B" bytes) $(word "$A" changed_s)" "0 0 -1" "a new table begins at 0"

# ---- a bad block in requests that have merged: their bios are sent one by one ----
lun_depth 1
fresh "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
echo 2 >$SDEB/opts
fio --name=bad --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --rw=read --iodepth=64 --size=$((584 * 4))k \
	--continue_on_error=read --ignore_error=61:5 --output="$MPRR_TMP/fio.bad" >/dev/null 2>&1 || true
echo 0 >$SDEB/opts
lun_depth 32
adds_up "bad blocks in merged requests"
between $(($(word "$A" errors) + $(word "$B" errors))) 2 99 "bad blocks in merged requests are errors"

# ---- drivers that refuse clones ----
fresh "0 0 1 1 queue-length 0 4 1 $A 1 $B 1 $C 1 $D 1"
opts 0x8000 3
fio_ok "verified I/O while each host refuses every third command" --size=4m --bsrange=4k-64k
opts 0 0
adds_up "refusals"
between "$(for n in "${NUM[@]}"; do word "$n" refused; done | awk '{n += $1} END {print n}')" 1 999999 "refusals are counted"

# ---- everything at once ----
fresh "1 queue_if_no_path 0 2 1 round-robin 0 2 1 $A 3 $B 3 round-robin 0 2 1 $C 1 $D 1"
rm -f "$MPRR_TMP/stop"
load_loop() { # NAME FIO-OPTION...
	local name=$1
	shift
	while [ ! -e "$MPRR_TMP/stop" ]; do
		fio --name="$name" --filename=$DEV --direct=1 --ioengine=libaio --randseed="$RANDOM" \
			--output="$MPRR_TMP/fio.$name" "$@" >"$MPRR_TMP/fio.$name.err" 2>&1 ||
			{ echo "fio $name failed"; return 1; }
	done
	echo "well"
}
spawn load_loop verify --rw=randwrite --bsrange=4k-256k --iodepth=8 --size=8m --verify=crc32c --verify_fatal=1
loads=("$SPAWNED")
spawn load_loop stream --rw=rw --bs=4k --iodepth=32 --offset=16m --size=4m
loads+=("$SPAWNED")
spawn load_loop trim --rw=randtrim --bs=64k --offset=32m --size=4m
loads+=("$SPAWNED")
spawn load_loop sync --rw=randwrite --bs=4k --fdatasync=4 --offset=48m --size=1m
loads+=("$SPAWNED")
declare -A DID=()
did() { DID[$1]=$((${DID[$1]:-0} + 1)); }
end=$(($(now_ms) + $(awk -v m="$MPRR_MINUTES" 'BEGIN {print int(m * 60000)}')))
while [ "$(now_ms)" -lt "$end" ]; do
	i=$((RANDOM % 4)) what=$((RANDOM % 8))
	case $what in
	0) message "fail_path ${NUM[i]}"; did fail ;;
	1) message "reinstate_path ${NUM[i]}"; did reinstate ;;
	2)
		echo offline >"$(scsi_dir "${DISK[i]}")/state"
		sleep 0.2
		echo running >"$(scsi_dir "${DISK[i]}")/state"
		did offline
		;;
	3) message "switch_group $((1 + i % 2))"; did switch ;;
	4) opts 0x10 7; did errors ;;
	5) opts 0x8000 5; did busy ;;
	6) echo $((1 + RANDOM % 16)) >"$(scsi_dir "${DISK[i]}")/queue_depth"; did depth ;;
	7) dmsetup suspend --noflush $MAP; dmsetup resume $MAP; did suspend ;;
	esac
	sleep "0.$((RANDOM % 4))" # so that I/O meets every state; not a synchronisation
	case $what in 4 | 5) opts 0 0 ;; esac
done
touch "$MPRR_TMP/stop"
opts 0 0
lun_depth 32
for n in "${NUM[@]}"; do message "reinstate_path $n"; done
for p in "${loads[@]}"; do ends 60 "a load ends well" "$p" '^well'; done
diag "$(for k in "${!DID[@]}"; do printf '%s %d  ' "$k" "${DID[$k]}"; done)"
adds_up "everything at once"
diag "$(message stats | sed 1d | grep -o ' errors=.* refused=[0-9]*')"

# ---- latency ----
# us NUM NAME: a latency in whole microseconds
us() { local v; v=$(word "$1" "$2"); echo "${v%.*}"; }
if [ -e $DEV ]; then rm_map; fi
echo 10000000 >$SDEB/ndelay
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
before=$(awk '{print $1, $4}' "/sys/block/${DISK[0]}/stat")
is "$(reads 600)" "ok done=600 errors=0" "reads of disks that take 10 ms"
mean=$(awk -v b="$before" '{split(b, x); print int(1000 * ($4 - x[2]) / ($1 - x[1]))}' "/sys/block/${DISK[0]}/stat")
between "$(word "$A" read_samples)" $((300 / 8 - 2)) $((300 / 8 + 2)) "one of eight is timed"
p50=$(us "$A" read_p50_us) p95=$(us "$A" read_p95_us) p99=$(us "$A" read_p99_us) p999=$(us "$A" read_p999_us)
diag "p50 $p50, p95 $p95, p99 $p99, p99.9 $p999 us; the disk says $mean us on average"
# 3.2 per cent less at most; in the middle of them no more than one and a half times the average
between "$p50" 9680 $((mean * 3 / 2 + 1000)) "half of them take the disk's time"
is "$((p50 <= p95 && p95 <= p99 && p99 <= p999))" 1 "percentiles do not fall"
is "$(word "$A" write_samples) $(word "$A" write_p50_us)" "0 0.0" "no write, no latency"
is "$(message histogram | wc -l)" 4 "histogram: a line for each path and direction"
is "$(message histogram | grep "^path=$A group=1 dir=read " | tr ' ' '\n' | awk -F: '/^[0-9]+:/ {n += $2} END {print n}')" \
	"$(word "$A" read_samples)" "the buckets are all samples"
is "$(message histogram | grep "^path=$A group=1 dir=write" | wc -w)" 3 "no write, no bucket"
rm_map

# ---- in flight ----
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
LEN=65536
dmsetup create mprrback --table "0 $LEN linear /dev/$LOOP 0"
loop_up --direct-io=on /dev/mapper/mprrback
DISK=("$LOOP") NUM=("$(devno "$LOOP")")
fresh "0 0 1 1 round-robin 0 1 1 ${NUM[0]} 1"
dmsetup suspend --noflush mprrback
spawn "$HELPER" io $DEV read 0 4096
one=$SPAWNED
spawn "$HELPER" io $DEV write 8192 4096
two=$SPAWNED
both() { [ "$(word "${NUM[0]}" read_in_flight) $(word "${NUM[0]}" write_in_flight) $(word "${NUM[0]}" in_flight)" = "1 1 2" ]; }
wait_until 10 "a read and a write that do not complete are in flight" both
dmsetup resume mprrback
ends 10 "the read ends" "$one" '^ok'
ends 10 "the write ends" "$two" '^ok'
adds_up "stuck for a while"

done_testing
