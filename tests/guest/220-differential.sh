#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: the same table lines (020, 030 and 220-differential.tbl) and scenarios
#       (220-differential.scn) against the in-kernel target and this one, in one boot, on the same
#       paths: errno, TABLE, INFO, IMA, the meaning of the log, uevents, event numbers, what reached
#       the paths, the data.
# Why:  who changes to this module must notice nothing but what docs/differences.md lists; what it
#       lists must be true on the kernels that it names.
# How:  differential*.c play and compares. MPRR_SCENARIO=TEXT plays only the scenarios with TEXT in
#       their name; MPRR_VERBOSE=1 shows each step and log line.
# on: --
# limit: 150
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "it plays both targets by itself"; fi

# Sections of the data files, and of docs/differences.md, that are played. Others there are:
# selectors (historical-service-time, io-affinity).
SECTIONS="main bio probe"

here=$(dirname "$0")
build_c differential "$here"/differential-*.c
cp "${MPRR_SRC:-/mprr/src}/docs/differences.md" "$MPRR_TMP/differences.md"
mod_load
modprobe dm_multipath
modprobe -a dm_round_robin dm_queue_length dm_service_time
dmesg -n 3	# each refused line is one of the log: not on the console

RULES=/sys/kernel/debug/scsi_debug
# disks: what both files call the four paths
disks() {
	local i name letter letters=(A B C D)
	paths_up 4 lbpu=1 lbpws=1 write_same_length=2048 "$@"
	PATHS=()
	for i in 0 1 2 3; do
		name=${DISK[i]}
		letter=${letters[i]}
		PATHS+=("$letter=${NUM[i]}" "${letter}name=$name" "s$letter=/dev/$name")
		PATHS+=("${letter}rules=$RULES/$(basename "$(scsi_dir "$name")")/error")
		PATHS+=("${letter}mode=$(ls "$(scsi_dir "$name")"/scsi_disk/*/provisioning_mode)")
	done
}

# play DESC TABLES SCENARIOS NAME=VALUE...: relays its results
RULES_SEEN=$MPRR_TMP/rules
: >"$RULES_SEEN"
play() {
	local desc=$1 rc=0
	shift
	{
		"$PROGRAM" "$MPRR_TMP/differences.md" "$MPRR_KERNEL" "$MPRR_SLOW" "$SECTIONS" "$@" 2>&1 ||
			echo $? >"$MPRR_TMP/played.rc"
	} | tee "$MPRR_TMP/played" | sed -u '/^# rule /d'
	[ ! -e "$MPRR_TMP/played.rc" ] || rc=$(cat "$MPRR_TMP/played.rc")
	rm -f "$MPRR_TMP/played.rc"
	grep '^# rule ' "$MPRR_TMP/played" >>"$RULES_SEEN" || true
	case $rc in 0 | 1) ;; *) fail "$desc: it is played to its end" "got:      exit $rc" ;; esac
}

# ---- table lines ----
disks num_parts=1
expect_ok "the kernel says which requests a queue has given out (BLK_DEBUG_FS)" \
	test -e "/sys/kernel/debug/block/${DISK[0]}/hctx0/tags"
LEN=2052	# small enough for a partition, not a multiple of 8 for the 4 KiB disk
modprobe null_blk nr_devices=0
mkdir /sys/kernel/config/nullb/mprr4k
for set in size=64 blocksize=4096 memory_backed=1 power=1; do
	echo "${set#*=}" >"/sys/kernel/config/nullb/mprr4k/${set%=*}"
done
for disk in mprr4k nullb0; do	# 6.12 names it after the folder
	if [ -e /sys/block/$disk ]; then K4=$(devno $disk); fi
done
dmsetup create mprrbio --table "0 $LEN linear $C 0"
truncate -s 512K "$MPRR_TMP/small"
loop_up "$MPRR_TMP/small"
SMALL=$LOOP
truncate -s 2M "$MPRR_TMP/held"
loop_up "$MPRR_TMP/held"
spawn "$HELPER" hold "/dev/$LOOP"
wait_for 5 grep -q ready "$MPRR_TMP/spawn.$SPAWNED"
long="1 queue_if_no_path 0 2 1 round-robin 0 2 1 @A 1 @B 1 service-time 0 2 2 @A 1 1 @B 1 1"
{
	grep -v '^#\|^$' "$here/020-table-valid.tbl" | cut -d'|' -f2 | sed 's/^ *//; s/ *$//'
	grep -v '^#\|^$' "$here/030-table-malformed.tbl" | cut -d'|' -f3 | sed 's/^ *//; s/ *$//; s/^$/-/'
	cat "$here/220-differential.tbl"
} >"$MPRR_TMP/tables"
# the words that only this module has: not to be compared
sed -i -E '/merge_deadline_us|max_inflight|rr_min_io|no_path_timeout_secs/Id' "$MPRR_TMP/tables"
{ # a long line cut after each of its words
	read -ra words <<<"$long"
	echo "@section main"
	for n in $(seq 1 ${#words[@]}); do echo "${words[*]:0:n}"; done
} >>"$MPRR_TMP/tables"
play "table lines" "$MPRR_TMP/tables" - LEN=$LEN "${PATHS[@]}" "P1=$(devno "${DISK[0]}1")" \
	"BIO=$(devno "$(dm_name mprrbio)")" "SMALL=$(devno "$SMALL")" "HELD=$(devno "$LOOP")" "4K=${K4:-}"
between "$(sed -n 's/^# total: \([0-9]*\) table.*/\1/p' "$MPRR_TMP/played")" 150 9999 \
	"at least 150 table lines were played"
kill "$SPAWNED"
wait_for 5 gone "$SPAWNED"
rm_map mprrbio
rmmod scsi_debug
[ ! -d /sys/module/scsi_dh_alua ] || rmmod scsi_dh_alua

# ---- scenarios ----
disks
alua_all_active
udev_off
rules=no
[ ! -w "${PATHS[3]#*=}" ] || rules=yes
play "scenarios" - "$here/220-differential.scn" LEN="$LEN" "${PATHS[@]}" "RULES=$rules"
[ -n "${MPRR_SCENARIO:-}" ] || between "$(sed -n 's/^# total: .*, \([0-9]*\) scenarios.*/\1/p' "$MPRR_TMP/played")" \
	40 999 "at least 40 scenarios were played"

# ---- each difference that is listed for this kernel occurs ----
if [ -z "${MPRR_SCENARIO:-}" ]; then
	while read -r name due used; do
		[ "$due" = due ] || continue
		if [ "$used" -gt 0 ]; then pass "listed difference $name occurs ($used times)"; else
			fail "listed difference $name occurs" "expected: at least once on kernel $MPRR_KERNEL" "got:      never"
		fi
	done < <(awk '{used[$3] += $5; due[$3] = $4} END {for (r in used) print r, due[r], used[r]}' "$RULES_SEEN" | sort)
fi

done_testing
