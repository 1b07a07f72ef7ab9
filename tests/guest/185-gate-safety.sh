#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: verified sequential I/O, which the gate holds, while in a tight loop the elevator and its
#       depth change, the map is suspended (flush and noflush), all paths fail and come back, tables
#       are reloaded, and the gate's tunables change.
# Why:  a stopped queue that nobody starts again is a hang; a table that goes must leave it running.
# How:  MPRR_MINUTES (default 0.3), MPRR_SEED.
# limit: 60
. "$(dirname "$0")/lib.sh"

MPRR_MINUTES=${MPRR_MINUTES:-0.3}
RANDOM=${MPRR_SEED:-$RANDOM}
mod_load
paths_up 2 ndelay=100000
lun_depth 32
TABLE="1 queue_if_no_path 0 1 1 round-robin 0 2 1 $A 1 $B 1"
mk_map "$TABLE"
Q=/sys/block/$(dm_name)/queue

round() { # a new file of its own for each round: fio ends by itself
	fio --name=s --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --rw=write --iodepth=16 --numjobs=4 \
		--size=4m --offset_increment=8m --verify=crc32c --verify_fatal=1 --do_verify=1 --output="$MPRR_TMP/fio.s"
}
load_loop() {
	local n=0
	while [ ! -e "$MPRR_TMP/stop" ]; do
		round >"$MPRR_TMP/fio.s.err" 2>&1 || { echo "fio failed in round $n"; return 1; }
		n=$((n + 1))
		echo $n >"$MPRR_TMP/rounds"
	done
	echo "rounds $n"
}

rm -f "$MPRR_TMP/stop"
echo 0 >"$MPRR_TMP/rounds"
spawn load_loop
LOAD=$SPAWNED
end=$(($(now_ms) + $(awk -v m="$MPRR_MINUTES" 'BEGIN {print int(m * 60000)}')))
declare -A did=()
closed=0 tables=1
while [ "$(now_ms)" -lt "$end" ] && alive "$LOAD"; do
	what=$((RANDOM % 7))
	did[$what]=$((${did[$what]:-0} + 1))
	case $what in
	0) for e in none mq-deadline; do echo $e >"$Q/scheduler"; done ;;
	1) echo $((4 + RANDOM % 200)) >"$Q/nr_requests" 2>/dev/null || true ;;
	2) dmsetup suspend $MAP; dmsetup resume $MAP ;;
	3) dmsetup suspend --noflush $MAP; dmsetup resume $MAP ;;
	4) closed=$((closed + $(stat_of closed))) tables=$((tables + 1)); reload_map "$TABLE" ;;
	5)
		message "fail_path $A"; message "fail_path $B"
		message "reinstate_path $B"; message "reinstate_path $A"
		;;
	6)
		case $((RANDOM % 5)) in
		0) message merge_deadline_us 100000 ;; 1) message merge_deadline_us 0 ;;
		2) message max_inflight 1 ;; 3) message max_inflight auto ;; 4) message merge_deadline_us auto ;;
		esac
		;;
	esac
done
expect_ok "the load still runs after $MPRR_MINUTES minutes of it" alive "$LOAD"
message max_inflight auto
message merge_deadline_us auto
touch "$MPRR_TMP/stop"
ends $((60 + 60 / MPRR_SLOW)) "verified sequential I/O: 0 errors" "$LOAD" '^rounds [1-9]'
[ "$(cat "$MPRR_TMP/rounds")" -gt 0 ] || fio_diag s
closed=$((closed + $(stat_of closed)))
diag "$(cat "$MPRR_TMP/rounds") rounds; elevator ${did[0]:-0}, nr_requests ${did[1]:-0}, suspend ${did[2]:-0} + ${did[3]:-0} noflush, reload ${did[4]:-0}, all paths ${did[5]:-0}, tunables ${did[6]:-0}; gate closed $closed times in $tables tables"
between "$closed" 1 99999999 "the gate closed meanwhile"
wait_until 10 "nothing is in flight" idle
is "$(stat_of in_flight)" 0 "nothing is in flight, says the gate"
fio_ok "and a last verified run" --size=8m
done_testing
