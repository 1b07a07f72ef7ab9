#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: suspend, resume, reload, rename and remove under verified I/O; removal and module
#       unload with timers, events and handler work pending; an interrupted suspend.
# Why:  no timer, work item or request may outlive the target.
# limit: 200
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4
TWO="0 2 1 round-robin 0 2 1 $A 3 $B 3 round-robin 0 2 1 $C 3 $D 3"

# ---- everything while verified I/O runs ----
mk_map "1 queue_if_no_path $TWO"
NODE=/dev/$(dm_name)	# the name under /dev/mapper is renamed below
load_loop() {
	local n=0
	while [ ! -e "$MPRR_TMP/stop" ]; do
		DEV=$NODE fio_verify load --size=12m --iodepth=16 || { echo "fio failed in round $n"; return 1; }
		n=$((n + 1))
	done
	echo "rounds $n"
}
rm -f "$MPRR_TMP/stop"
spawn load_loop
load=$SPAWNED
busy() { [ "$(in_flight "$(dm_name)")" -gt 0 ]; }
wait_until 20 "I/O runs" busy

# times N DESC COMMAND...
times() {
	local n=$1 i=0 desc=$2 out
	shift 2
	while [ $i -lt "$n" ]; do
		out=$("$@" 2>&1) || { fail "$desc: $n times" "failed at: $((i + 1))" "output:   $out"; return; }
		i=$((i + 1))
	done
	pass "$desc: $n times"
}
flush_suspend() { dmsetup suspend $MAP && dmsetup resume $MAP; }
noflush_suspend() { dmsetup suspend --noflush $MAP && dmsetup resume $MAP; }
load_resume() { dmsetup load $MAP --table "$(table "$@")" && dmsetup resume --noflush $MAP; }
rename_twice() { dmsetup rename $MAP mprrother && dmsetup rename mprrother $MAP; }
fail_all_and_back() {
	local p
	for p in "$A" "$B" "$C" "$D"; do message "fail_path $p"; done
	for p in "$A" "$B" "$C" "$D"; do message "reinstate_path $p"; done
}
groups_round() { message "switch_group 2" && message "disable_group 2" && message "enable_group 2" && message "switch_group 1"; }
times 5 "flush suspend and resume under load" flush_suspend
times 5 "noflush suspend and resume under load" noflush_suspend
times 4 "load and resume, as multipathd does" load_resume "1 queue_if_no_path $TWO"
times 3 "reload to queue-length" reload_map "1 queue_if_no_path 0 1 1 queue-length 0 4 1 $A 1 $B 1 $C 1 $D 1"
times 3 "reload to service-time" reload_map "1 queue_if_no_path 0 1 1 service-time 0 4 2 $A 1 1 $B 1 1 $C 1 1 $D 1 1"
no_path_and_back() { reload_map "1 queue_if_no_path 0 0 0" && reload_map "1 queue_if_no_path $TWO"; }
times 3 "reload to no path and back" no_path_and_back
times 3 "rename" rename_twice
times 6 "all paths fail and come back" fail_all_and_back
times 6 "groups switch, go and come" groups_round
spawn "$HELPER" hold $DEV
wait_for 5 grep -q ready "$MPRR_TMP/spawn.$SPAWNED"
expect_fail "remove of the open map is refused" "[Bb]usy" dmsetup remove $MAP
kill "$SPAWNED"

# messages and reloads at the same time; udev, whom dmsetup resume waits for, is not left behind
storm() {
	while [ ! -e "$MPRR_TMP/stop-storm" ]; do
		fail_all_and_back 2>/dev/null || true
		groups_round 2>/dev/null || true
		udevadm settle -t $((20 * MPRR_SLOW)) || true
	done
}
rm -f "$MPRR_TMP/stop-storm"
spawn storm
storm=$SPAWNED
times 6 "reload while messages storm" reload_map "1 queue_if_no_path $TWO"
# Not a flush suspend: with all paths failed by the storm it rightly ends I/O with EIO.
times 6 "noflush suspend while messages storm" noflush_suspend
touch "$MPRR_TMP/stop-storm"
ends 20 "the storm ends" "$storm" ''
for p in "$A" "$B" "$C" "$D"; do message "reinstate_path $p"; done

# a handler: pg_init under load
if modprobe scsi_dh_alua; then
	HANDLER="1 queue_if_no_path 1 alua 2 1 round-robin 0 2 1 $A 3 $B 3 round-robin 0 2 1 $C 3 $D 3"
	times 3 "reload with handler alua" reload_map "$HANDLER"
	times 5 "groups switch with pg_init" groups_round
	times 4 "all paths fail and come back with pg_init" fail_all_and_back
	times 4 "flush suspend with pg_init" flush_suspend
	reload_map "1 queue_if_no_path $TWO"
fi

expect_ok "fio still runs" alive "$load"
touch "$MPRR_TMP/stop"
ends 60 "verified I/O through all of it: 0 errors" "$load" '^rounds [1-9]'
wait "$load" || fail "that fio" "$(fio_diag load)"
wait_until 10 "nothing is in flight" idle
expect_ok "the map is removed" rm_map

# ---- deferred remove ----
mk_map "0 $TWO"
spawn "$HELPER" hold $DEV
hold=$SPAWNED
wait_for 5 grep -q ready "$MPRR_TMP/spawn.$hold"
expect_ok "deferred remove of an open map is accepted" dmsetup remove --deferred $MAP
is "$(dmsetup info -c --noheadings -o open $MAP | tr -d ' ')" 1 "it is still there"
kill "$hold"
map_gone() { ! dmsetup info $MAP; }
wait_until 5 "and goes with the last user" map_gone

# ---- removal with everything pending ----
echo 60 >"$PARAMS/queue_if_no_path_timeout_secs"
for round in 1 2 3; do
	mk_map "1 queue_if_no_path $TWO"
	for p in "$A" "$B" "$C" "$D"; do message "fail_path $p"; done
	# trap: nothing-outlives
	expect_ok "round $round: removed at once with the time-out and the events pending" dmsetup remove --retry $MAP
	expect_ok "round $round: and the module unloads at once" mod_unload
	mod_load
	echo 60 >"$PARAMS/queue_if_no_path_timeout_secs"
done
echo 1 >"$PARAMS/queue_if_no_path_timeout_secs"
mk_map "1 queue_if_no_path $TWO"
for p in "$A" "$B" "$C" "$D"; do message "fail_path $p"; done
end=$(($(now_ms) + 970))
while [ "$(now_ms)" -lt $end ]; do sleep 0.01; done
expect_ok "removed just when the time-out fires" dmsetup remove --retry $MAP
expect_ok "the module unloads" mod_unload
mod_load

# with handler work pending
if [ -d /sys/module/scsi_dh_alua ]; then
	for round in 1 2 3; do
		mk_map "2 pg_init_delay_msecs 3000 1 alua 2 1 round-robin 0 2 1 $A 3 $B 3 round-robin 0 2 1 $C 3 $D 3"
		spawn "$HELPER" io $DEV read 0 4096
		message "switch_group 2"
		ends 10 "round $round: a read over a group switch with pg_init" "$SPAWNED" '^ok'
		message "switch_group 1"
		expect_ok "round $round: removed with pg_init" rm_map
		expect_ok "round $round: and the module unloads at once" mod_unload
		mod_load
	done
fi

# ---- an interrupted suspend ----
mk_map "1 queue_if_no_path $TWO"
echo 1250 >$SDEB/delay
spawn "$HELPER" io $DEV read 0 4096
slow=$SPAWNED
wait_until 5 "a read of 5 s is on its way" busy
spawn dmsetup suspend $MAP
suspend=$SPAWNED
waits() { grep -q dm_wait_for "/proc/$suspend/stack" "/proc/$suspend/wchan" || [[ $(cat "/proc/$suspend/wchan") == *dm_* ]]; }
wait_until 3 "a flush suspend waits for it" waits
kill -INT "$suspend"
kill "$suspend" || true
ends 3 "interrupted, it ends" "$suspend" ''
ends 20 "the read ends well" "$slow" '^ok'
echo 1 >$SDEB/delay
# trap: suspend-interrupted
is "$(dmsetup info -c --noheadings -o suspended $MAP | tr -d ' ')" Active "the map is not suspended"
like "$(table_of)" '^1 queue_if_no_path' "queue_if_no_path is still on"
is "$(io write 0 4096)" ok "and I/O works"
dmsetup suspend $MAP
dmsetup resume $MAP
is "$(io write 0 4096)" ok "a whole suspend and resume afterwards works"

# ---- the disks go away under the map ----
for d in "${DISK[@]}"; do echo 1 >"$(scsi_dir "$d")/delete"; done
message fail_if_no_path
is "$(io read 0 4096)" EIO "all disks deleted: EIO"
is "$(valid_paths)" 0 "all paths failed"
expect_ok "the map over deleted disks is removed" rm_map
expect_ok "scsi_debug unloads" rmmod scsi_debug

done_testing
