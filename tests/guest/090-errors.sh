#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: which errors fail a path and which do not, and what errno the caller sees.
# Why:  a medium, target, protection, reservation, no-space or not-supported result is not
#       the path's fault and must reach the caller as it is; everything else is tried on
#       the next path.
# How:  scsi_debug's error rules (6.12 and later), its global opts (all kernels), and loop
#       disks over a dm device that is switched to the error target.
# limit: 90
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 2 lbpu=1 lbpws=1
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"

reset_paths() {
	message "reinstate_path $A"
	message "reinstate_path $B"
}
# fails A or B: how many of the two are failed
failed() { info_paths | grep -c ' F ' || true; }

# ---- scsi_debug error rules ----
RULES=/sys/kernel/debug/scsi_debug
rules_of() { echo "$RULES/$(basename "$(scsi_dir "$1")")/error"; }
have_rules() { [ -w "$(rules_of "${DISK[0]}")" ]; }
# rule DISK COUNT OPCODE HOST STATUS KEY ASC ASCQ: COUNT < 0: so many times
rule() { echo "2 $2 $3 $4 0 $5 $6 $7 $8" >"$(rules_of "$1")"; }
no_rules() {
	local d n
	for d in "${DISK[0]}" "${DISK[1]}"; do
		for n in 0x28 0x2a 0x42 0x93 0x35; do echo "- 2 $n" >"$(rules_of "$d")" 2>/dev/null || true; done
	done
}

OP=(0x28 read)
# caller ERRNO DESC HOST STATUS KEY ASC ASCQ: not the path's fault
caller() {
	local errno=$1 desc=$2 got
	shift 2
	rule "${DISK[0]}" 9 "${OP[0]}" "$@"
	rule "${DISK[1]}" 9 "${OP[0]}" "$@"
	got=$(io "${OP[1]}" 65536 65536)
	# trap: device-verdict
	is "$got, $(failed) failed" "$errno, 0 failed" "$desc: the caller gets $errno, no path fails"
	no_rules
	reset_paths
}
# path DESC HOST STATUS KEY ASC ASCQ: the path's fault; the other path does the work
path() {
	local desc=$1 got i
	shift
	rule "${DISK[0]}" 99 "${OP[0]}" "$@"
	got=
	for i in 1 2 3 4; do got+="$(io "${OP[1]}" $((i * 65536)) 65536) "; done
	is "$got$(path_state "$A") $(path_state "$B")" "ok ok ok ok F A" "$desc: that path fails, the I/O ends well"
	no_rules
	reset_paths
}
# transient DESC HOST STATUS KEY ASC ASCQ: twice on both paths; nothing fails
transient() {
	local desc=$1 got i
	shift
	rule "${DISK[0]}" -2 "${OP[0]}" "$@"
	rule "${DISK[1]}" -2 "${OP[0]}" "$@"
	got=
	for i in 1 2 3 4; do got+="$(io "${OP[1]}" $((i * 65536)) 65536) "; done
	# trap: busy-again
	is "$got$(failed)" "ok ok ok ok 0" "$desc: tried again, no path fails"
	no_rules
	reset_paths
}

if have_rules; then
	caller ENODATA "medium error" 0 0x2 0x3 0x11 0
	caller EREMOTEIO "illegal request, invalid field" 0 0x2 0x5 0x24 0
	caller EREMOTEIO "illegal request, block out of range" 0 0x2 0x5 0x21 0
	caller EREMOTEIO "hardware error" 0 0x2 0x4 0x44 0
	caller EILSEQ "protection check by the target" 0 0x2 0xb 0x10 0x1
	caller EILSEQ "protection check by the host" 0 0x2 0x5 0x10 0x1
	caller EBADE "reservation conflict" 0 0x18 0 0 0
	OP=(0x2a write)
	caller ENOSPC "space allocation failed" 0 0x2 0x7 0x27 0x7
	caller EREMOTEIO "write protected" 0 0x2 0x7 0x27 0
	OP=(0x28 read)
	path "aborted command, without end" 0 0x2 0xb 0 0
	path "not ready, manual intervention" 0 0x2 0x2 0x4 0x3
	path "no connect (DID_NO_CONNECT)" 0x1 0 0 0 0
	path "transport failfast (DID_TRANSPORT_FAILFAST)" 0xf 0 0 0 0
	path "transport disrupted (DID_TRANSPORT_DISRUPTED)" 0xe 0 0 0 0
	path "error without a name (DID_ERROR)" 0x7 0 0 0 0
	transient "aborted command, once or twice" 0 0x2 0xb 0 0
	transient "unit attention" 0 0x2 0x6 0x29 0
	transient "busy status" 0 0x8 0 0 0
	transient "task set full" 0 0x28 0 0 0
	transient "recovered error" 0 0x2 0x1 0 0
	OP=(0x2a write)
	path "a write without connection" 0x1 0 0 0 0
	# an unsupported discard must not fail one path after another
	rule "${DISK[0]}" 9 0x42 0 0x2 0x5 0x20 0
	rule "${DISK[1]}" 9 0x42 0 0x2 0x5 0x20 0
	rule "${DISK[0]}" 9 0x93 0 0x2 0x5 0x20 0
	rule "${DISK[1]}" 9 0x93 0 0x2 0x5 0x20 0
	# trap: no-discard
	like "$(io discard 0 65536), $(failed) failed" '^E(REMOTEIO|OPNOTSUPP), 0 failed' \
		"an unsupported discard: an error for the caller, no path fails"
	no_rules
	is "$(io write 0 65536)" ok "and writes go on"
else
	skip "errors by scsi_debug rules" "scsi_debug of $MPRR_KERNEL has no error rules"
fi
rm_map

# ---- scsi_debug's global options: every kernel ----
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
at=$((0x1234 * 512 / 4096 * 4096))
opts 2 0
is "$(io read $at 4096), $(failed) failed" "ENODATA, 0 failed" "medium error at sector 0x1234: ENODATA, no path fails"
is "$(io read 0 4096)" ok "the blocks around it are read"
opts 8 1
is "$(io read 0 4096), $(failed) failed" "ok, 0 failed" "recovered errors are no errors"
opts 0x20 1
is "$(io read 0 4096), $(failed) failed" "EILSEQ, 0 failed" "protection errors: EILSEQ, no path fails"
opts 0x100 2
is "$(io read 0 65536) $(io read 65536 65536), $(failed) failed" "ok ok, 0 failed" "short transfers are completed"
opts 0x10 1
is "$(io read 0 4096), $(failed) failed" "EIO, 2 failed" "transport errors on all paths: both fail, EIO"
opts 0 0
reset_paths
is "$(io read 0 4096), $(failed) failed" "ok, 0 failed" "the cause is gone: works again"
opts 0x8000 5
expect_ok "host busy at every 5th command: 200 reads" "$HELPER" reads $DEV 200
opts 0 0
is "$(failed)" 0 "busy fails no path"
is "$(info_paths | awk '{print $5}' | xargs)" "$(info_paths | awk '{print $5}' | xargs)" "counts are readable"

# ---- an offline disk, and I/O under way when it goes ----
echo offline >"$(scsi_dir "${DISK[0]}")/state"
is "$(reads 6), $(path_state "$A")$(path_state "$B")" "ok done=6 errors=0, FA" "an offline disk: that path fails, no error"
echo running >"$(scsi_dir "${DISK[0]}")/state"
reset_paths
rm_map

# ---- loop disks over a dm device that turns into "error" ----
truncate -s 32M "$MPRR_TMP/back"
loop_up "$MPRR_TMP/back"
store=$LOOP sectors=65536
for n in 1 2; do
	dmsetup create mprrback$n --table "0 $sectors linear /dev/$store 0"
	loop_up --direct-io=on /dev/mapper/mprrback$n
	eval "l$n=\$(devno $LOOP)"
done
switch_to() { # back N to TARGET...
	dmsetup suspend --nolockfs "mprrback$1"
	dmsetup load "mprrback$1" --table "0 $sectors $2"
	dmsetup resume "mprrback$1"
}
# shellcheck disable=SC2154
LEN=$sectors mk_map "0 0 1 1 round-robin 0 2 1 $l1 1 $l2 1"
is "$(io write 0 65536)" ok "loop disks as paths"
switch_to 1 error
is "$(reads 6)" "ok done=6 errors=0" "one path's storage is gone: no error"
is "$(path_state "$l1") $(path_state "$l2")" "F A" "that path failed, the other did the work"
fio_ok "verified I/O on the remaining path" --size=8m
switch_to 1 "linear /dev/$store 0"
message "reinstate_path $l1"
fio_ok "verified I/O on both again" --size=8m
switch_to 1 error
switch_to 2 error
is "$(io read 0 4096)" EIO "both gone: EIO"
is "$(info_paths | grep -c ' F ')" 2 "both failed"
for n in 1 2; do switch_to $n "linear /dev/$store 0"; done
message "reinstate_path $l1"
message "reinstate_path $l2"
if modprobe dm_flakey; then
	switch_to 1 "flakey /dev/$store 0 0 60 1 error_writes"
	is "$(io read 0 4096) $(io read 8192 4096)" "ok ok" "dm-flakey that drops writes: reads work"
	is "$(io write 0 4096) $(io write 8192 4096)" "ok ok" "writes go to the other path"
	is "$(path_state "$l1")" F "the path that cannot write failed"
	switch_to 1 "linear /dev/$store 0"
fi

done_testing
