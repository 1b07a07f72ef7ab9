#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: known faults of multipath targets (tests/traps.txt) that no other test looks at.
# Why:  each of them has hurt somebody once.
# on: --
# limit: 90
. "$(dirname "$0")/lib.sh"

mod_load

# ---- three paths that can be stopped: loop disks over dm devices over one file ----
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
STORE=$LOOP SECTORS=65536 DISK=() NUM=()
for n in 1 2 3; do
	dmsetup create mprrback$n --table "0 $SECTORS linear /dev/$STORE 0"
	loop_up --direct-io=on /dev/mapper/mprrback$n
	DISK+=("$LOOP") NUM+=("$(devno "$LOOP")")
done
A=${NUM[0]} B=${NUM[1]} C=${NUM[2]} LEN=$SECTORS

# ---- two idle paths beside a busy one get the same ----
stuck() { [ "$(in_flight "${DISK[0]}")" -ge 2 ]; }
for words in "queue-length 0 3 1 $A 1 $B 1 $C 1" "service-time 0 3 2 $A 1 1 $B 1 1 $C 1 1"; do
	name=${words%% *}
	mk_map "0 0 1 1 $words"
	dmsetup suspend --nolockfs mprrback1
	message "fail_path $B"
	message "fail_path $C"
	waiting=()
	for at in 0 1048576; do	# far apart: they do not merge
		spawn "$HELPER" io $DEV read $at 8192
		waiting+=("$SPAWNED")
	done
	wait_until 5 "$name: the first path is stuck with two reads" stuck
	message "reinstate_path $B"
	message "reinstate_path $C"
	b=$(issued "${DISK[1]}") c=$(issued "${DISK[2]}")
	is "$(reads 120)" "ok done=120 errors=0" "$name: 120 reads go by it"
	b=$(($(issued "${DISK[1]}") - b)) c=$(($(issued "${DISK[2]}") - c))
	# trap: even-ties
	is "$((b + c))" 120 "$name: all of them on the two idle paths"
	between "$b" 55 65 "$name: half of them on either"
	dmsetup resume mprrback1
	for pid in "${waiting[@]}"; do ends 10 "$name: a stuck read ends well" "$pid" '^ok'; done
	rm_map
done

# ---- an I/O that no path can do, for it is badly formed ----
# The storage under both loop disks gets blocks of 4 KiB; the disks, and so the map, say 512 bytes.
modprobe null_blk nr_devices=0
null=/sys/kernel/config/nullb/mprr4k
mkdir $null
for set in size=32 blocksize=4096 memory_backed=1 power=1; do echo "${set#*=}" >"$null/${set%=*}"; done
for disk in mprr4k nullb0; do	# 6.12 names it after the folder
	if [ -e /sys/block/$disk ]; then K4=/dev/$disk; fi
done
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
for n in 1 2; do
	dmsetup suspend --nolockfs mprrback$n
	dmsetup load mprrback$n --table "0 $SECTORS linear $K4 0"
	dmsetup resume mprrback$n
done
raw=$(io read 512 512 "/dev/${DISK[0]}")
if [ "$raw" = EINVAL ]; then
	got="$(io read 512 512), $(info_paths | grep -c ' F ' || true) failed"
	# trap: badly-formed
	if in_kernel; then
		like "$got" ', 2 failed' "a badly formed read: the in-kernel target fails all paths"
	else
		is "$got" "EINVAL, 0 failed" "a badly formed read: the caller gets EINVAL, no path fails"
		is "$(io read 4096 4096)" ok "and others are read"
	fi
else
	# 6.1 has no status for it: it looks like any error of the path
	skip "a badly formed I/O" "the loop disks of $MPRR_KERNEL answer $raw"
fi
rm_map
for n in 1 2; do
	dmsetup suspend --nolockfs mprrback$n
	dmsetup load mprrback$n --table "0 $SECTORS linear /dev/$STORE 0"
	dmsetup resume mprrback$n
done

# ---- what waits for a path waits in the block layer ----
mk_map "1 queue_if_no_path 0 2 1 round-robin 0 1 1 $A 1 round-robin 0 2 1 $B 1 $C 1"
for p in "$A" "$B" "$C"; do message "fail_path $p"; done
spawn fio_verify crowd --rw=randwrite --bsrange=4k-16k --size=16m --iodepth=600
crowd=$SPAWNED
dm=$(dm_name)
# What waits for a path is not "in flight": the requests that the block layer has given out.
TAGS=/sys/kernel/debug/block/$dm/hctx0/sched_tags
held() { sed -n 's/^busy=//p' "$TAGS" | head -n 1; }
many() { [ "$(held)" -ge 100 ]; }
opened() { [ "$(dmsetup info -c --noheadings -o open $MAP)" -gt 0 ]; }
if [ -e "$TAGS" ]; then
	wait_until 20 "hundreds of writes wait without a path" many
	diag "waiting: $(held), nr_requests $(queue nr_requests "$dm")"
	# trap: nothing-hoarded
	between "$(held)" 1 "$(queue nr_requests "$dm")" "no more than the queue has requests for"
else
	wait_until 20 "the map is in use" opened
	skip "how many requests the queue has given out" "this kernel's block layer does not tell (CONFIG_BLK_DEBUG_FS)"
fi
if ! in_kernel; then is "$(stat_of in_flight)" 0 "the target holds none of them"; fi
message "reinstate_path $B"
message "switch_group 2"
message "reinstate_path $A"
message "switch_group 1"
ends 60 "a path is back, groups switch: all writes end" "$crowd" ''
wait "$crowd" || fail "and are verified" "$(fio_diag crowd)"
rm_map

# ---- activation races with switches, suspends, and the end of a disk ----
if modprobe scsi_dh_alua; then
	paths_up 4
	[[ $(scsi_dir "${DISK[3]}") =~ /(host[0-9]+)/ ]]
	host=${BASH_REMATCH[1]}
	FIRST="3 queue_if_no_path pg_init_retries 5 1 alua 2 1 round-robin 0 2 1 $A 3 $B 3"
	build_c race
	RACE=$PROGRAM
	mk_map "$FIRST round-robin 0 2 1 $C 3 $D 3"
	storm() {
		local n=0 text
		while [ ! -e "$MPRR_TMP/stop" ]; do
			# a message to a suspended map is refused
			for text in "switch_group 2" "disable_group 1" "fail_path $C" "reinstate_path $C" \
				"enable_group 1" "switch_group 1"; do message "$text" 2>/dev/null || true; done
			n=$((n + 6))
		done
		echo "messages $n"
	}
	rm -f "$MPRR_TMP/stop"
	spawn "$RACE" -l $((30 * MPRR_SLOW)) io $DEV 3
	load=$SPAWNED
	spawn storm
	storm=$SPAWNED
	for n in 1 2 3 4 5 6; do
		dmsetup suspend --noflush $MAP
		dmsetup resume $MAP
		if [ $((n % 2)) = 0 ]; then
			echo 1 >"$(scsi_dir "${DISK[3]}")/delete"
			message "switch_group 2"
			reload_map "$FIRST round-robin 0 1 1 $C 3"
			echo "- - -" >"/sys/class/scsi_host/$host/scan"
			paths_find 4
			reload_map "$FIRST round-robin 0 2 1 $C 3 $D 3"
		fi
	done
	touch "$MPRR_TMP/stop"
	ends 20 "switches meet suspends and a disk that goes and comes, with activations" "$storm" '^messages [1-9]'
	for p in "$A" "$B" "$C" "$D"; do message "reinstate_path $p"; done
	kill -TERM "$load"
	ends 60 "verified I/O through all of it" "$load" '^ok '
	diag "$(spawn_output "$storm"); $(spawn_output "$load")"
	wait_until 10 "nothing is in flight" idle
	message "switch_group 2"
	# trap: pg-init-race
	expect_ok "removed while a group waits for its activation" rm_map

	# ---- a path in transition is waited for (sense: not ready, asymmetric access state transition) ----
	RULES=/sys/kernel/debug/scsi_debug
	rules_of() { echo "$RULES/$(basename "$(scsi_dir "$1")")/error"; }
	if [ -w "$(rules_of "${DISK[0]}")" ]; then
		alua_all_active
		mk_map "0 1 alua 1 1 round-robin 0 2 1 $A 1 $B 1"
		for d in "${DISK[0]}" "${DISK[1]}"; do echo "2 -3 0x28 0 0 0x2 0x2 0x4 0xa" >"$(rules_of "$d")"; done
		is "$(reads 8), $(info_paths | grep -c ' F ' || true) failed" "ok done=8 errors=0, 0 failed" \
			"paths in transition: waited for, none fails"
		for d in "${DISK[0]}" "${DISK[1]}"; do echo "- 2 0x28" >"$(rules_of "$d")"; done
		# unavailable: another path serves, and it comes back by a reinstate
		echo "2 99 0x28 0 0 0x2 0x2 0x4 0xc" >"$(rules_of "${DISK[0]}")"
		is "$(reads 4), $(path_state "$B")" "ok done=4 errors=0, A" "an unavailable path: the other one serves"
		echo "- 2 0x28" >"$(rules_of "${DISK[0]}")"
		message "reinstate_path $A"
		reads 8 >/dev/null
		# trap: alua-transition
		is "$(reads 8), $(path_state "$A")$(path_state "$B")" "ok done=8 errors=0, AA" "available again, it works"
		rm_map
	else
		skip "ALUA states by sense codes" "scsi_debug of $MPRR_KERNEL has no error rules"
	fi
	rmmod scsi_debug
fi

done_testing
