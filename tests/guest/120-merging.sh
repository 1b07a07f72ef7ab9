#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: sequential 4 KiB I/O over paths that are full merges on the map's own queue; a
#       lone reader is not held up.
# Why:  a busy path must be reported so that the elevator keeps the I/O; nothing may wait
#       when nothing of this map is in flight (that costs 3 to 4 ms each).
# limit: 60
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 2 ndelay=200000
lun_depth 3

# share COMMAND...: per cent of the bios that were merged on the map while it ran, in SHARE;
# STATS = "requests merged"
stats() { awk '{print $1 + $5, $2 + $6}' "/sys/block/$(dm_name)/stat"; }
share() {
	local before after
	before=$(stats)
	"$@" || fail "$1" "$(fio_diag m)"
	after=$(stats)
	STATS=$(awk -v b="$before" '{split(b, o); print $1 - o[1], $2 - o[2]}' <<<"$after")
	SHARE=$(awk '{print int(100 * $2 / ($1 + $2 + !($1 + $2)))}' <<<"$STATS")
}
seq() { # RW IODEPTH JOBS
	fio --name=m --filename=$DEV --direct=1 --ioengine=libaio --rw="$1" --bs=4k --iodepth="$2" --numjobs="$3" \
		--io_size=6m --size=16m --offset_increment=20m --output="$MPRR_TMP/fio.m"
}

mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
echo mq-deadline >"/sys/block/$(dm_name)/queue/scheduler"
for rw in write read; do
	share seq $rw 64 1
	diag "mq-deadline, $rw, one job of 64: requests, merged: $STATS"
	# trap: busy-keeps-waiting
	between "$SHARE" 30 100 "mq-deadline, sequential $rw: at least 30 % of the bios merge"
done
share seq write 16 2
diag "mq-deadline, write, two jobs of 16: requests, merged: $STATS"
between "$SHARE" 20 100 "mq-deadline, two sequential writers: at least 20 % of the bios merge"
share seq randread 16 1
diag "mq-deadline, randread: requests, merged: $STATS"
between "$SHARE" 0 5 "mq-deadline, random reads hardly merge"

# Without an elevator only the last few requests of each processor are looked at; what
# merges there is up to the gate of part 2. Here it must not hang, and is shown.
echo none >"/sys/block/$(dm_name)/queue/scheduler"
share seq write 64 1
diag "none, write, one job of 64: requests, merged: $STATS"
is "$(awk '{print $1 + $2}' <<<"$STATS")" 1536 "none, sequential write: all bios done"
fio_ok "verified I/O over the full paths" --size=8m
fio_ok "verified sequential 4 KiB writes" --rw=write --bsrange=4k-4k --iodepth=64 --size=4m
wait_until 10 "nothing is in flight" idle
is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "no path failed"

# ---- a lone reader: shown, not judged, for times are no test on a shared machine ----
# once with random, once with sequential single reads (the kind that a gate may hold)
ms() { local t; t=$(now_ms); "$@" >/dev/null; echo $(($(now_ms) - t)); }
seqread() { fio --name=s --filename="$1" --direct=1 --ioengine=psync --rw=read --bs=4k --size=800k --output="$MPRR_TMP/fio.s"; }
best() { # the best of three: other work on the host may disturb one
	local a b c
	a=$("$@"); b=$("$@"); c=$("$@")
	printf '%s\n' "$a" "$b" "$c" | sort -n | head -n 1
}
raw=$(best ms "$HELPER" reads "/dev/${DISK[0]}" 200)
map=$(best ms "$HELPER" reads $DEV 200)
diag "200 random reads, one at a time: path $raw ms, map $map ms"
raw=$(best ms seqread "/dev/${DISK[0]}")
map=$(best ms seqread $DEV)
diag "200 sequential reads, one at a time: path $raw ms, map $map ms"

# ---- another user keeps the paths full: the map gets its share and is not forgotten ----
# Commands of 5 ms: a slow processor, too, sends three sooner than one ends.
wait_until 10 "nothing is in flight any more" idle
echo 5000000 >$SDEB/ndelay
spawn fio --name=other --filename="/dev/${DISK[0]}" --direct=1 --ioengine=libaio --rw=randread --bs=4k \
	--iodepth=32 --time_based --runtime=3600 --size=32m --output="$MPRR_TMP/fio.other1"
spawn fio --name=other --filename="/dev/${DISK[1]}" --direct=1 --ioengine=libaio --rw=randread --bs=4k \
	--iodepth=32 --time_based --runtime=3600 --size=32m --output="$MPRR_TMP/fio.other2"
full() { [ "$(in_flight "${DISK[0]}")" -ge 3 ] && [ "$(in_flight "${DISK[1]}")" -ge 3 ]; }
wait_until 10 "somebody else fills both paths" full
spawn "$HELPER" reads $DEV 50
# trap: idle-not-refused
ends 20 "50 reads of the map end all the same" "$SPAWNED" '^ok done=50'

done_testing
