#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: every malformed table line of 030-table-malformed.tbl is refused with the right
#       errno and a kernel log line that quotes the wrong word; nothing is left behind.
# Why:  the constructor is where a target leaks; a user must see which word was wrong.
# To add a case: add a line to the .tbl file.
# limit: 120
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4 num_parts=1
LEN=2052	# small enough for a partition, not a multiple of 8 for the 4 KiB disk

modprobe null_blk nr_devices=0
null=/sys/kernel/config/nullb/mprr4k
mkdir $null
echo 64 >$null/size; echo 4096 >$null/blocksize; echo 1 >$null/memory_backed; echo 1 >$null/power
dmsetup create mprrbio --table "0 $LEN linear $C 0"
truncate -s 512K "$MPRR_TMP/small"
loop_up "$MPRR_TMP/small"
spawn "$HELPER" hold "/dev/${DISK[3]}"
wait_for 5 grep -q ready "$MPRR_TMP/spawn.$SPAWNED"
P1=$(devno "${DISK[0]}1") BIO=$(devno "$(dm_name mprrbio)") SMALL=$(devno "$LOOP")
K4=
for disk in mprr4k nullb0; do	# 6.12 names it after the folder
	if [ -z "$K4" ] && [ -e /sys/block/$disk ]; then K4=$(devno $disk); fi
done

# fill TEXT: FILLED = TEXT with the names replaced
fill() {
	local s=$1
	s=${s//@A/$A} s=${s//@BIO/$BIO} s=${s//@B/$B} s=${s//@sA//dev/${DISK[0]}} s=${s//@P1/$P1}
	s=${s//@HELD/$D} s=${s//@SMALL/$SMALL} s=${s//@4K/$K4}
	FILLED=$s
}

# held: HELD = what still holds one of the paths
held() {
	local h
	HELD=
	for h in /sys/block/{"${DISK[0]}","${DISK[1]}","${DISK[3]}","$LOOP"}/holders/*; do
		if [ -e "$h" ]; then HELD+="$h "; fi
	done
}

# refused ERRNO WORD DESC HELPER-ARGS...: one refused load, one assertion; ERRNO may be
# several with / between them
refused() {
	local errno=$1 word=$2 desc=$3 out want
	shift 3
	out=$("$HELPER" "$@" || true)
	if [[ /$errno/ != */${out%%$'\n'*}/* ]]; then
		fail "$desc" "expected: $errno" "got:      $out" "command:  helper $*"
		return
	fi
	case $word in
	-) want='device-mapper: .*(mpath-rr|multipath): .' ;;
	"*") want='device-mapper: .' ;;
	*) want="mpath-rr: .*\"${word//+/\\+}\"" ;;
	esac
	if in_kernel; then want='device-mapper: .'; fi
	# trap: failed-load names-the-word
	held
	if ! [[ $out =~ log:\ [^$'\n']*$want ]]; then
		fail "$desc" "expected: $errno and a log line matching /$want/" "got:      $out" \
			"command:  helper $*"
	elif [ -n "$HELD" ]; then
		fail "$desc" "expected: no path is held afterwards" "got:      $HELD" \
			"command:  helper $*"
	else
		pass "$desc"
	fi
}

lines=0
while IFS='|' read -r errno word words; do
	[[ $errno =~ ^[[:space:]]*(#|$) ]] && continue
	read -r errno <<<"$errno"
	read -r word <<<"$word"
	fill "$word"; word=$FILLED
	desc="\"${words# }\": $errno"
	fill "$words"; words=$FILLED
	lines=$((lines + 1))
	if in_kernel && [[ $words == *\ 42949672* ]]; then continue; fi	# it lets them wrap
	refused "$errno" "$word" "$desc" load "0 $LEN $TARGET${words:+ $words}"
done <"$(dirname "$0")/030-table-malformed.tbl"
diag "$lines lines"
between "$lines" 60 9999 "at least 60 malformed lines were tried"

# ---- what does not fit into the table ----
full=$(cat "/sys/block/${DISK[0]}/size")
refused EINVAL '*' "a map longer than its path" load "0 $((full + 8)) $TARGET 0 0 1 1 round-robin 0 1 0 $A"
refused EINVAL '*' "a target that does not begin at 0" load "8 $LEN $TARGET 0 0 1 1 round-robin 0 1 0 $A"
expect_fail "two targets in one table" "Invalid argument" dmsetup create $MAP --table \
	"0 1024 $TARGET 0 0 1 1 round-robin 0 1 0 $A
1024 1024 $TARGET 0 0 1 1 round-robin 0 1 0 $B"
expect_fail "next to another target" "Invalid argument" dmsetup create $MAP --table \
	"0 1024 $TARGET 0 0 1 1 round-robin 0 1 0 $A
1024 1024 error"
long=$(printf 'x%.0s' {1..4000})
refused EINVAL - "a word of 4000 letters" load "0 $LEN $TARGET $long 0 1 1 round-robin 0 1 0 $A"
refused EINVAL/ENAMETOOLONG/ENODEV - "a path name of 4000 letters" load "0 $LEN $TARGET 0 0 1 1 round-robin 0 1 0 $A$long"

# the whole line cut after each of its words
words=(1 queue_if_no_path 0 2 1 round-robin 0 2 1 "$A" 1 "$B" 1 service-time 0 2 2 "$A" 1 1 "$B" 1 1)
n=0 loaded=
while [ $n -lt ${#words[@]} ]; do
	out=$("$HELPER" load "0 $LEN $TARGET ${words[*]:0:n}" || true)
	[ "$(head -n 1 <<<"$out")" = EINVAL ] || loaded+=" $n:$(head -n 1 <<<"$out")"
	n=$((n + 1))
done
is "$loaded" "" "a long line cut after each of its ${#words[@]} words is EINVAL"
expect_ok "the whole of it loads" "$HELPER" load "0 $LEN $TARGET ${words[*]}"
bad=
for n in 0 2 3 6 7 8 14 15 16; do	# every count too large; the errno is that of what follows
	w=("${words[@]}")
	w[n]=99
	out=$("$HELPER" load "0 $LEN $TARGET ${w[*]}" || true)
	[ "${out%%$'\n'*}" != ok ] || bad+=" word $n"
done
is "$bad" "" "each of its counts made too large is refused"

# ---- a refused reload leaves the live map alone ----
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
before="$(table_of) $(info_of)"
held() { HELD=; }	# the live map holds them now
refused EINVAL nope "reload with an unknown selector" reload $MAP "0 $LEN $TARGET 0 0 1 1 nope 0 1 0 $A"
refused EINVAL "$(devno "$(dm_name)")" "reload with the map itself as a path" reload $MAP \
	"0 $LEN $TARGET 0 0 1 1 round-robin 0 1 0 $(devno "$(dm_name)")"
refused EINVAL '*' "reload with another target type" reload $MAP "0 $LEN linear $A 0"
is "$(table_of) $(info_of)" "$before" "the live map is unchanged"
is "$(io write 0 4096)" ok "and does I/O"
rm_map

# ---- handlers ----
out=$("$HELPER" load "0 $LEN $TARGET 0 1 nosuchhandler 1 1 round-robin 0 1 0 $A" || true)
attached=$(cat "$(scsi_dir "${DISK[0]}")/dh_state" 2>/dev/null || echo detached)
if kernel_at_least 7.0 && [ "$attached" != detached ]; then
	is "$(head -n 1 <<<"$out")" ok "an unknown handler: the attached one ($attached) wins"
else
	like "$(head -n 1 <<<"$out")" '^E(INVAL|NXIO)' "an unknown handler is refused"
fi
out=$("$HELPER" load "0 512 $TARGET 0 1 alua 1 1 round-robin 0 1 0 $SMALL" || true)
if kernel_at_least 7.0; then
	is "$(head -n 1 <<<"$out")" ok "a handler on a disk that is not SCSI: dropped"
	like "$out" 'log: ' "and the log says so"
else
	like "$(head -n 1 <<<"$out")" '^E' "a handler on a disk that is not SCSI is refused"
	like "$out" 'handler' "and the log says so"
fi
out=$("$HELPER" load "0 $LEN $TARGET 2 queue_mode bio 0 1 1 round-robin 0 1 0 $A" || true)
is "$(head -n 1 <<<"$out")" ok "queue_mode bio loads"

# ---- nothing left ----
kill "$SPAWNED"
wait_for 5 gone "$SPAWNED"
rm_map mprrbio
if in_kernel; then :; else
	is "$(cat /sys/module/$MODULE/refcnt)" 0 "no table holds the module"
fi
udevadm settle
# trap: failed-load
expect_ok "rmmod scsi_debug works at once" rmmod scsi_debug

done_testing
