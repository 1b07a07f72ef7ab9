#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: the ioctl DM_MPATH_PROBE_PATHS: one read on each active path of the current group; a dead
#       path fails, a live one does not; no path, two callers at a time, a switch meanwhile.
# Why:  who sends SCSI commands himself (SG_IO) sees a path's error, the target does not: without a
#       probe the next command goes to the same dead path.
# limit: 90
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "220 compares it"; fi
PROBE=0xfd12	# _IO(0xfd, 18)
two_groups() { echo "$1 2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 2 1 $C 1 $D 1"; }
probe() { "$HELPER" ioctl $DEV $PROBE || true; }
# probed: what a probe answers, and how many reads of one block each path gets: "ok 1 1 0 0"
probed() {
	local n out
	trace_start "${NUM[@]}"
	out=$(probe)
	trace_stop >"$MPRR_TMP/trace"
	for n in "${NUM[@]}"; do out+=" $(grep -c "^$n R[A-Z]* 1\$" "$MPRR_TMP/trace" || true)"; done
	echo "$out"
}
disk_is() { echo "$2" >"$(scsi_dir "${DISK[$1]}")/state"; }

mod_load
paths_up 4
mk_map "$(two_groups "0 0")"
if ! kernel_at_least 6.16; then
	like "$(probe)" '^E(NOTTY|INVAL)' "the kernel does not tell a target the command, and the path refuses it"
	done_testing
	exit
fi

# ---- which paths ----
for i in 0 1 2 3; do before[i]=$(issued "${DISK[i]}"); done
is "$(probed)" "ok 0 0 0 0" "no group has been chosen yet: nothing is read"
is "$(io read 0 4096)" ok "a read chooses group 1"
is "$(probed)" "ok 1 1 0 0" "each path of the current group reads one block"
is "$("$HELPER" ioctl $DEV 0xfd11 || true)" ENOTTY "another ioctl of device-mapper's is not the paths'"
disk_is 0 offline
is "$(path_state "$A")" A "path A goes offline, and nobody has noticed"
is "$(probed) $(path_state "$A") $(path_state "$B")" "ok 0 1 0 0 F A" "a probe fails it; B works"
is "$(path_fails "$A")" 1 "once"
is "$(probed)" "ok 0 1 0 0" "a path that has failed is not probed"
disk_is 1 offline
is "$(probed) $(path_state "$B") $(valid_paths)" "ok 0 0 0 0 F 2" "B as well: the other group still has paths"
is "$(io read 0 4096)" ok "a read chooses it"
is "$(probed) $(current_group)" "ok 0 0 1 1 2" "and it is probed then"
is "$(message stats | sed -n 's/^path=.* requests=\([0-9]*\) .*/\1/p' | xargs)" \
	"$(for i in 0 1 2 3; do echo $(($(issued "${DISK[i]}") - before[i])); done | xargs)" "stats counts these reads as the disks do"
disk_is 2 offline
disk_is 3 offline
is "$(probed) $(valid_paths)" "ENOTCONN 0 0 0 0 0" "no path is left: ENOTCONN"
message queue_if_no_path
spawn "$HELPER" ioctl $DEV $PROBE
ends 5 "with queue_if_no_path, too, and at once" "$SPAWNED" '^ENOTCONN'
for i in 0 1 2 3; do disk_is $i running; message "reinstate_path ${NUM[i]}"; done
is "$(io read 0 4096)" ok "the paths are back"

# ---- meanwhile: another caller, a switch, I/O ----
# A read of a disk takes half a second, that of two one.
rm_map
mk_map "$(two_groups "1 queue_if_no_path 0")"
is "$(io read 0 4096)" ok "a read chooses group 1"
wait_until 10 "nothing is in flight" idle
echo 500000000 >$SDEB/ndelay
trace_start "${NUM[@]}"
spawn "$HELPER" ioctl $DEV $PROBE
first=$SPAWNED
reads_from() { [ "$(in_flight "${DISK[$1]}")" = 1 ] || ! alive "$first"; }
wait_until 5 "a probe reads from path A" reads_from 0
spawn "$HELPER" ioctl $DEV $PROBE
second=$SPAWNED
message "switch_group 2"
is "$(current_group)" 1 "a switch waits for it"
ends 10 "the probe ends" "$first" '^ok'
ends 1 "a second caller ends with it" "$second" '^ok'
is "$(trace_stop | awk '{print $1, $3}' | xargs)" "$A 1 $B 1" "and has not read by itself"
is "$(io read 0 4096) $(current_group)" "ok 2" "then the switch is done"
spawn "$HELPER" ioctl $DEV $PROBE
first=$SPAWNED
wait_until 5 "a probe reads from path C" reads_from 2
spawn "$HELPER" ioctl $DEV $PROBE
kill -INT "$SPAWNED"
ends 1 "a signal ends the wait for another one's" "$SPAWNED" ''
message "switch_group 1"
message "disable_group 2"
ends 10 "the probe ends" "$first" '^ok'
is "$(io read 0 4096) $(current_group)" "ok 1" "the last wish counts"
wait_until 10 "nothing is in flight" idle
echo 100000 >$SDEB/ndelay

# ---- under I/O, while paths die and come back ----
spawn fio_verify probe --size=8m --iodepth=16
load=$SPAWNED n=0 bad=
while alive "$load" && [ $n -lt 30 ]; do
	disk_is $((n % 4)) offline
	spawn "$HELPER" ioctl $DEV $PROBE
	message "switch_group $((n % 2 + 1))"
	[ "$(probe)" = ok ] || bad+=" $n"
	disk_is $((n % 4)) running
	message "reinstate_path ${NUM[n % 4]}"
	n=$((n + 1))
done
ends 60 "verified I/O while $n probes run and paths die" "$load" ''
wait "$load" || fail "that fio" "$(fio_diag probe)"
is "$bad" "" "three paths are always left: each probe says so"
wait_until 10 "nothing is in flight" idle
rm_map

# ---- bio mode ----
mk_map "$(two_groups "2 queue_mode bio 0")"
is "$(io read 0 4096)" ok "queue_mode bio: a read"
disk_is 0 offline
is "$(probed) $(path_state "$A")" "ok 0 1 0 0 F" "a probe fails the offline path"
disk_is 0 running
rm_map

# A path that answers nothing: a probe of its group lasts until it does.
SECTORS=$(cat "/sys/block/${DISK[0]}/size")
dmsetup create mprrprobe --table "0 $SECTORS linear /dev/${DISK[0]} 0"
P=$(devno "$(dm_name mprrprobe)")
mk_map "2 queue_mode bio 0 2 1 round-robin 0 2 1 $P 1 $B 1 round-robin 0 2 1 $C 1 $D 1"
is "$(io read 0 4096)" ok "a read chooses group 1"
dmsetup suspend --noflush --nolockfs mprrprobe
waiting "a probe whose first path is suspended" "$HELPER" ioctl $DEV $PROBE
probe=$SPAWNED
message "fail_path $P"
message "fail_path $B"
is "$(io read 0 4096) $(current_group)" "ok 2" "its group loses all paths meanwhile: the other one is chosen"
message "reinstate_path $B"
message "switch_group 1"
is "$(io read 0 4096) $(current_group)" "ok 1" "a switch back does not wait for that probe"
message "switch_group 2"
message "fail_path $B"
is "$(io read 0 4096) $(current_group)" "ok 2" "a switch of the group that it reads takes place when its paths fail"
message "reinstate_path $B"
expect_ok "the probe still runs" alive "$probe"
dmsetup resume mprrprobe
ends 10 "and ends with its path" "$probe" '^ok'
is "$(io read 0 4096) $(current_group)" "ok 2" "its end changes no choice that was made since"
rm_map
dmsetup remove mprrprobe

done_testing
