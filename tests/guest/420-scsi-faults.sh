#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: faults below the paths, under exactly verified I/O: lost, aborted, short and retried
#       commands, task set full, a host that is busy for good, resets; a path that answers
#       busy for good, or whose commands never complete, beside a good one.
# Why:  what SCSI repeats by itself is no path fault; a path that gives no answer must not
#       hold up I/O that another path takes; afterwards every counter is 0.
# How:  scsi_debug's opts (all kernels), its rules for one disk (6.12 and later), sg_reset,
#       loop disks over a suspended dm device.  090 has the single errors.
# on: --
# Not run by default: four minutes under emulation, eleven beside two other guests.
# limit: 200
. "$(dirname "$0")/lib.sh"

build_c race
RACE=$PROGRAM
mod_load
paths_up 2

failed() { info_paths | grep -c ' F ' || true; }
# Lost commands are found after so many seconds; on a slow machine none may take as long that
# is not lost.
command_timeout() {
	local d
	for d in "${DISK[@]}"; do echo "$1" >"$(scsi_dir "$d")/timeout"; done
}
SHORT=$((1 + MPRR_SLOW / 4))
# quiet DESC: nothing is in flight any more, and the selector knows
quiet() {
	wait_until 10 "$1: nothing is in flight" idle
	is "$(info_paths | awk 'NF > 5 {n += $6} END {print n + 0}')" 0 "$1: the selector counts nothing in flight"
}

# load_begin, load_end DESC: exactly verified I/O of three threads in between
load_begin() {
	spawn "$RACE" -l $((30 * MPRR_SLOW)) io $DEV 3
	LOAD=$SPAWNED
}
load_end() {
	kill -TERM "$LOAD"
	ends 40 "$1: every I/O ends well, data is right" "$LOAD" '^ok '
	diag "$(spawn_output "$LOAD")"
}
moved() { [ "$(issued "$1")" -ge "$2" ]; }
# completed DISK: commands that its driver has completed; issued counts the refused ones, too
completed() { echo $(($(cat "$(scsi_dir "$1")/iodone_cnt"))); }
# go_on N: the verified load has done N more I/Os, on any disk
go_on() {
	local at
	all_moved() { [ "$(issued "${DISK[@]}")" -ge $((at + $1)) ]; }
	at=$(issued "${DISK[@]}")
	wait_for 15 all_moved "$1" || fail "I/O goes on" "expected: $1 more I/Os" \
		"got:      $(($(issued "${DISK[@]}") - at))" "$(info_of)"
}

# ---- what SCSI repeats by itself: no path fails ----
# repeated DESC OPTS EVERY_NTH IOS [REGEX the kernel log must have: it was injected]
repeated() {
	local desc=$1
	klog_mark
	load_begin
	opts "$2" "$3"
	go_on "$4"
	opts 0 0
	load_end "$desc"
	is "$(failed)" 0 "$desc: no path fails"
	[ -z "${5:-}" ] || klog_like "$5" "$desc: it did happen"
	quiet "$desc"
}
mk_map "1 queue_if_no_path 0 1 1 queue-length 0 2 1 $A 1 $B 1"
repeated "every 7th command with a transport error" 0x10 7 60
repeated "every 5th command recovered" 8 5 60
repeated "every 3rd command short" 0x100 3 60
command_timeout $SHORT
repeated "every 40th read or write lost" 0x80 40 60
echo -1 >$SDEB/delay
repeated "every 30th command aborted" 0x10000 30 60 'abort request'
echo 0 >$SDEB/delay
echo 20000 >$SDEB/ndelay

# ---- a full LUN whose driver gives commands up: that path fails, the I/O goes on ----
# (scsi_debug's own "task set full" comes with DID_ABORT; 090 and below have the plain one.)
reinstate() { while [ ! -e "$MPRR_TMP/stop" ]; do message "reinstate_path $A"; message "reinstate_path $B"; done; }
rm -f "$MPRR_TMP/stop"
lun_depth 2
klog_mark
load_begin
spawn reinstate
again=$SPAWNED
opts 0xa00 3
go_on 40
opts 0 0
touch "$MPRR_TMP/stop"
ends 10 "reinstating ends" "$again" ''
load_end "commands of a full LUN given up"
klog_like 'inject.*TASK SET FULL' "commands of a full LUN given up: it did happen"
for p in "$A" "$B"; do message "reinstate_path $p"; done
quiet "commands of a full LUN given up"
lun_depth 32

# ---- every host is busy, until it is not ----
opts 0x8000 1
spawn "$HELPER" reads $DEV 20
reader=$SPAWNED
wait_until 5 "all hosts busy: a read waits" blocked "$reader"
expect_ok "and a noflush suspend and resume goes through" sh -c "dmsetup suspend --noflush $MAP && dmsetup resume $MAP"
expect_ok "the read still waits" alive "$reader"
opts 0 0
ends 20 "no longer busy: the reads end well" "$reader" '^ok done=20'
is "$(failed)" 0 "busy for a while: no path fails"
quiet "busy for a while"

# ---- resets ----
# The commands that a reset drops are found by their time-out and repeated. SCSI gives one up
# that has met several resets: then its path fails, and the I/O goes over the other one.
load_begin
for level in -d -t -b -H; do
	for d in "${DISK[@]}"; do
		go_on 10
		expect_ok "sg_reset $level $d under I/O" sg_reset $level -N "/dev/$d"
		for p in "$A" "$B"; do message "reinstate_path $p"; done
	done
done
go_on 10
for p in "$A" "$B"; do message "reinstate_path $p"; done
load_end "resets"
quiet "resets"
rm_map

# ---- a path that answers busy, or not at all, beside a good one ----
RULES=/sys/kernel/debug/scsi_debug
rules_of() { echo "$RULES/$(basename "$(scsi_dir "$1")")/error"; }
# rule DISK TYPE COUNT [WORD...]: for READ(10) and WRITE(10)
rule() {
	local op words="$1 $2 $3"
	for op in 0x28 0x2a; do echo "$2 $3 $op ${*:4}" >"$(rules_of "$1")" || fail "rule $words"; done
}
no_rules() {
	local d type op
	for d in "${DISK[@]}"; do
		for type in 0 1 2 3 4; do
			for op in 0x28 0x2a; do echo "- $type $op" >"$(rules_of "$d")" 2>/dev/null || true; done
		done
	done
}
running() { local d; for d in "${DISK[@]}"; do echo running >"$(scsi_dir "$d")/state"; done; }
# beside_busy SELECTOR WORDS-A WORDS-B VALUE DESC: the driver of the first path answers so
beside_busy() {
	local desc="$1, the first path's driver answers $5" before
	reload_map "0 0 1 1 $1 0 2 $(wc -w <<<"$2") $A $2 $B $3"
	rule "${DISK[0]}" 1 1 "$4"
	before=$(completed "${DISK[0]}")
	spawn "$HELPER" reads $DEV 60
	ends 15 "$desc: I/O goes on over the other" "$SPAWNED" '^ok done=60'
	load_begin
	at=$(issued "${DISK[1]}")
	wait_for 30 moved "${DISK[1]}" $((at + 60)) || fail "$desc: I/O goes on"
	load_end "$desc"
	is "$(completed "${DISK[0]}") $(failed)" "$before 0" "$desc: it did nothing, and has not failed"
	quiet "$desc"
	no_rules
	is "$(reads 40) $(($(completed "${DISK[0]}") > before))" "ok done=40 errors=0 1" \
		"$desc: not busy any more, it is used"
}
if [ -w "$(rules_of "${DISK[0]}")" ]; then
	mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
	beside_busy round-robin 5 5 0x1055 "host busy"
	beside_busy round-robin 5 5 0x1056 "device busy"
	beside_busy queue-length 1 1 0x1058 "target busy"
	beside_busy service-time "1 1" "1 1" 0x1056 "device busy"

	# task set full, again and again: SCSI repeats, and the LUN's depth falls under the load
	reload_map "0 0 1 1 queue-length 0 2 1 $A 1 $B 1"
	load_begin
	for d in "${DISK[@]}"; do
		for op in 0x28 0x2a; do echo "2 -15 $op 0 0 0x28 0 0 0" >"$(rules_of "$d")"; done
	done
	go_on 80
	load_end "task set full"
	is "$(failed)" 0 "task set full: no path fails"
	quiet "task set full"
	no_rules
	lun_depth 32

	# both for good, then released
	reload_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
	for d in "${DISK[@]}"; do rule "$d" 1 1 0x1056; done
	spawn "$HELPER" reads $DEV 20
	reader=$SPAWNED
	wait_until 5 "both paths' drivers answer busy: a read waits" blocked "$reader"
	no_rules
	ends 20 "not busy any more: the reads end well" "$reader" '^ok done=20'
	is "$(failed)" 0 "and no path fails"

	# lost for good: with a depth of one, the lost command does not hold up the others
	lun_depth 1
	rule "${DISK[0]}" 0 1
	spawn "$HELPER" reads $DEV 20
	ends 60 "every command of a path is lost: it fails, the reads end well" "$SPAWNED" '^ok done=20'
	is "$(path_state "$A") $(path_state "$B")" "F A" "that path has failed, the other not"
	no_rules
	quiet "lost commands"
	# SCSI may have put the disk offline: its business. An administrator sets it running.
	running
	message "reinstate_path $A"
	is "$(reads 10) $(failed)" "ok done=10 errors=0 0" "reinstated, it works"

	# lost once, and neither abort nor LUN reset help: SCSI goes on to the target, bus, host
	load_begin
	go_on 5
	klog_mark
	rule "${DISK[0]}" 3 1
	rule "${DISK[0]}" 4 1
	rule "${DISK[0]}" 0 -1
	recovering() { grep -q recovery "/sys/class/scsi_host/$HOST/state"; }
	[[ $(scsi_dir "${DISK[0]}") =~ /(host[0-9]+)/ ]]
	HOST=${BASH_REMATCH[1]}
	# The state "recovery" may last no longer than a look takes: scsi_debug says what it refused.
	reset_refused() { [[ $(klog) == *'fail lun reset'* ]]; }
	wait_until 20 "a host is in error recovery and its LUN reset fails" reset_refused
	at=$(issued "${DISK[1]}")
	wait_until 30 "I/O goes on over the other path" moved "${DISK[1]}" $((at + 5))
	not_recovering() { ! recovering; }
	wait_until 60 "the recovery ends" not_recovering
	no_rules
	load_end "abort and LUN reset fail"
	quiet "abort and LUN reset fail"
	running
	for p in "$A" "$B"; do message "reinstate_path $p"; done
	is "$(reads 10) $(failed)" "ok done=10 errors=0 0" "afterwards both paths work"
	rm_map
else
	skip "a SCSI path that is busy or loses commands" "scsi_debug of $MPRR_KERNEL has no error rules"
fi

# ---- commands that never complete, until they are released: on every kernel ----
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
store=$LOOP LEN=65536 DISK=()
for n in 1 2; do
	dmsetup create mprrback$n --table "0 $LEN linear /dev/$store 0"
	loop_up --direct-io=on /dev/mapper/mprrback$n
	echo 4 >"/sys/block/$LOOP/queue/nr_requests"
	DISK+=("$LOOP")
	NUM[n]=$(devno "$LOOP")
done
DEPTH=$(cat "/sys/block/${DISK[0]}/queue/nr_requests")
full() { [ "$(in_flight "${DISK[0]}")" -ge "$DEPTH" ]; }
for selector in "round-robin 0 2 1 ${NUM[1]} 3 ${NUM[2]} 3" "queue-length 0 2 1 ${NUM[1]} 1 ${NUM[2]} 1" \
	"service-time 0 2 2 ${NUM[1]} 1 1 ${NUM[2]} 1 1"; do
	name=${selector%% *}
	mk_map "0 0 1 1 $selector"
	dmsetup suspend --noflush mprrback1
	# More readers than the first path takes: what it has taken waits, the others go on.
	stuck=()
	for n in $(seq 1 $((DEPTH + 1))); do
		spawn "$HELPER" reads $DEV 30 "$n"
		stuck+=("$SPAWNED")
	done
	case $name in
	round-robin) wait_until 10 "$name: the first path is full of commands that do not complete" full ;;
	esac
	spawn "$HELPER" reads $DEV 60 99
	last=$SPAWNED
	through() { [ "$(for p in "${stuck[@]}" "$last"; do gone "$p" && echo x; done | wc -l)" -ge 2 ]; }
	wait_until 20 "$name: the others go on over the other path" through
	dmsetup resume mprrback1
	for p in "${stuck[@]}"; do ends 20 "$name: released, a reader ends well" "$p" '^ok done=30'; done
	ends 20 "$name: and the last one" "$last" '^ok done=60'
	is "$(failed)" 0 "$name: no path fails"
	quiet "$name, stuck commands"
	rm_map
done

done_testing
