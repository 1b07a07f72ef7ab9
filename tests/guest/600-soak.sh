#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: everything at once for a long time: fio with verify and exactly verified small I/O on
#       a map of four paths, while paths fail, go offline, are deleted and found again, all
#       vanish for a while, tables and selectors are reloaded, the map is suspended, gets
#       messages and ioctls, and its elevator, depth and LUN depths change, at random.
# Why:  leaks and rare crossings show only after hours: no error, no wrong block, every
#       counter 0 at each quiet point, and memory that does not grow with the work done.
# How:  scripts/soak runs it long; MPRR_SOAK_MINUTES (default 0.5), MPRR_SEED repeats the
#       choices (not the moments they meet). Another action: one more function act_*.
# on: 6.12
# limit: 150
. "$(dirname "$0")/lib.sh"

MINUTES=${MPRR_SOAK_MINUTES:-0.5}
SEED=${MPRR_SEED:-$RANDOM}
diag "MPRR_SOAK_MINUTES=$MINUTES MPRR_SEED=$SEED"
RANDOM=$SEED

build_c race
mod_load
paths_up 4
# shellcheck source=tests/guest/paths.sh
. "$(dirname "$0")/paths.sh"
FEATURES="1 queue_if_no_path"
mk_map "$FEATURES 0 2 1 round-robin 0 2 1 $A 5 $B 5 round-robin 0 2 1 $C 5 $D 5"
DM=$(dm_name)

# ---- the load: until the file "stop" appears, or a signal comes ----
fio_loop() {
	local n=0
	while [ ! -e "$MPRR_TMP/stop" ]; do
		fio_verify soak --numjobs=2 --offset=16m --offset_increment=24m --size=12m ||
			{ echo "fio failed in round $n"; return 1; }
		n=$((n + 1))
	done
	echo "rounds $n"
}
load_begin() {
	rm -f "$MPRR_TMP/stop"
	spawn fio_loop
	FIO=$SPAWNED
	spawn "$PROGRAM" -l $((30 * MPRR_SLOW)) io $DEV 3	# the first 6 MiB
	EXACT=$SPAWNED
}
load_alive() { alive "$FIO" && alive "$EXACT"; }
# load_end: what it did in LOAD_IOS; 1 after an error
load_end() {
	local rc=0 out
	touch "$MPRR_TMP/stop"
	kill -TERM "$EXACT" 2>/dev/null || true
	wait_for 40 gone "$EXACT" || { fail "the exact I/O ends" "got: $(info_of)"; return 1; }
	wait_for 60 gone "$FIO" || { fail "fio ends" "got: $(info_of)"; return 1; }
	out=$(spawn_output "$EXACT")
	[[ $out =~ ^ok\ .*ios=([0-9]+) ]] || { fail "exactly verified I/O" "got: $out" "$(info_of)"; rc=1; }
	LOAD_IOS=${BASH_REMATCH[1]:-0}
	out=$(spawn_output "$FIO")
	[[ $out =~ ^rounds ]] || { fail "fio" "got: $out" "$(fio_diag soak)" "$(info_of)"; rc=1; }
	return $rc
}

# ---- the actions ----
act_fail() { [ "$(up_count)" -lt 2 ] || change path_fail; }
act_offline() { [ "$(up_count)" -lt 2 ] || change path_offline; }
act_delete() { [ "$(up_count)" -lt 2 ] || change path_delete; }
act_restore() { local i; for i in 0 1 2 3; do [ $((RANDOM % 2)) = 0 ] || path_restore $i; done; }
act_restore_one() { path_restore $((RANDOM % 4)); }
# change VERB: does it to a path that is up
change() {
	local i=$((RANDOM % 4))
	[ "${STATE[i]}" != up ] || "$1" $i
}
act_all_gone() {
	local i verb
	for i in 0 1 2 3; do
		verb=(path_fail path_offline path_delete)
		[ "${STATE[i]}" != up ] || "${verb[RANDOM % 3]}" $i
	done
	[ $((RANDOM % 2)) = 0 ] || load_paths
	[ $((RANDOM % 2)) = 0 ] || act_suspend_noflush
	sleep "0.$((RANDOM % 10))"
	for i in 0 1 2 3; do path_restore $i; done
}
act_reload() { load_paths; }
act_selector() {
	case $((RANDOM % 3)) in
	0) SELECTOR=round-robin WORDS=$((1 + RANDOM % 20)) ;;
	1) SELECTOR=queue-length WORDS=1 ;;
	2) SELECTOR=service-time WORDS="1 $((1 + RANDOM % 100))" ;;
	esac
	load_paths
}
act_suspend_noflush() { dmsetup suspend --noflush $MAP; dmsetup resume $MAP; }
# A flush suspend ends I/O that has no path, rightly; with one path it must end none.
act_suspend_flush() {
	local i
	for i in 0 1 2 3; do path_restore $i; done
	dmsetup suspend $MAP
	dmsetup resume $MAP
}
act_groups() {
	# Fewer groups than two are there while paths are deleted.
	dmsetup message $MAP 0 "switch_group $((1 + RANDOM % 2))" 2>/dev/null || true
	dmsetup message $MAP 0 "disable_group $((1 + RANDOM % 2))" 2>/dev/null || true
	dmsetup message $MAP 0 "enable_group $((1 + RANDOM % 2))" 2>/dev/null || true
}
act_status() { info_of >/dev/null; table_of >/dev/null; }
act_ioctl() { [ "$(up_count)" = 0 ] || timeout $((10 * MPRR_SLOW)) "$HELPER" tur $DEV >/dev/null || true; }
# bfq runs hardware queues with its lock held: lockdep reports that and watches nothing any more.
NO_BFQ=bfq
[ -e /proc/lockdep ] || NO_BFQ=nothing
# A freeze waits for all requests: only with a path.
act_elevator() {
	local i e
	for i in 0 1 2 3; do path_restore $i; done
	read -ra e < <(tr -d '[]' <"/sys/block/$DM/queue/scheduler" | sed "s/\\<$NO_BFQ\\>//")
	echo "${e[RANDOM % ${#e[@]}]}" >"/sys/block/$DM/queue/scheduler"
}
act_nr_requests() {
	local i
	for i in 0 1 2 3; do path_restore $i; done
	echo $((8 << (RANDOM % 5))) >"/sys/block/$DM/queue/nr_requests" 2>/dev/null || true
}
act_lun_depth() {
	local i=$((RANDOM % 4))
	[ "${STATE[i]}" = deleted ] || echo $((1 << (RANDOM % 6))) >"$(scsi_dir "${DISK[i]}")/queue_depth"
}
act_busy() {
	echo 0x8000 >$SDEB/opts
	echo 5 >$SDEB/every_nth
	sleep "0.$((RANDOM % 5))"
	echo 0 >$SDEB/opts
	echo 0 >$SDEB/every_nth
}

# ---- a quiet point: nothing in flight, memory is looked at ----
SAMPLE=()	# the last one: MemAvailable Slab SUnreclaim (kB), then objects of each kmalloc cache
caches() { awk '/^kmalloc-[0-9]/ {print $1}' /proc/slabinfo; }
quiet() {
	local c
	wait_for 10 idle || fail "nothing is in flight at a quiet point" "got: $(in_flight "$DM") $(info_of)"
	[ "$SELECTOR" = round-robin ] || c=$(info_paths | awk '{n += $6} END {print n}')
	[ "${c:-0}" = 0 ] || fail "the selector counts nothing in flight at a quiet point" "got: $(info_of)"
	[ "$(valid_paths)" = 4 ] || fail "four paths are valid at a quiet point" "got: $(info_of)"
	udevadm settle -t $((20 * MPRR_SLOW))
	sync
	echo 3 >/proc/sys/vm/drop_caches
	for c in $(caches); do echo 1 >"/sys/kernel/slab/$c/shrink"; done
	mapfile -t SAMPLE < <(awk '/^(MemAvailable|Slab|SUnreclaim):/ {print $1 $2}' /proc/meminfo
		awk '/^kmalloc-[0-9]/ {print $1 ":" $2}' /proc/slabinfo)
}
value() { local s; for s in "${SAMPLE[@]}"; do [ "${s%:*}" != "$1" ] || echo "${s#*:}"; done; }

# ---- one period after the other ----
mapfile -t ACTIONS < <(compgen -A function act_)
declare -A TIMES=()
TOTAL_IOS=0 TOTAL_ACTS=0 ACTS_FIRST=0
ROWS=()
START=$(now_ms)
MS=$(awk -v m="$MINUTES" 'BEGIN {print int(m * 60000)}')
PERIOD=$((MS / 4 < 60000 ? MS / 4 : 60000))
FIRST=() OK=1 i=0
while [ "$(now_ms)" -lt $((START + MS)) ] && [ $OK = 1 ]; do
	end=$(($(now_ms) + PERIOD))
	load_begin
	while [ "$(now_ms)" -lt $end ] && load_alive; do
		act=${ACTIONS[RANDOM % ${#ACTIONS[@]}]}
		"$act"
		TIMES[$act]=$((${TIMES[$act]:-0} + 1))
		TOTAL_ACTS=$((TOTAL_ACTS + 1))
		sleep "0.$((RANDOM % 4))"	# the I/O meets this state for a while
	done
	for i in 0 1 2 3; do path_restore $i; done
	load_end || OK=0
	[ $OK = 1 ] || break
	TOTAL_IOS=$((TOTAL_IOS + LOAD_IOS))
	quiet
	row=$(printf '%6.1f %9d %8d %10d %8d %10d' "$((($(now_ms) - START) / 6000))e-1" $TOTAL_IOS \
		$TOTAL_ACTS "$(value MemAvailable)" "$(value Slab)" "$(value SUnreclaim)")
	ROWS+=("$row")
	diag "$row"
	# The first period fills what is filled once.
	if [ ${#FIRST[@]} = 0 ]; then FIRST=("${SAMPLE[@]}") ACTS_FIRST=$TOTAL_ACTS; fi
done
[ $OK = 1 ] && pass "verified I/O through $TOTAL_ACTS actions: no error, counters 0 at ${#ROWS[@]} quiet points"

# ---- drift from the first quiet point to the last ----
if [ $OK = 1 ] && [ ${#ROWS[@]} -gt 1 ]; then
	acts=$((TOTAL_ACTS - ACTS_FIRST))
	LAST=("${SAMPLE[@]}")
	worst='' grown=''
	for s in "${LAST[@]:3}"; do
		c=${s%:*} new=${s#*:}
		SAMPLE=("${FIRST[@]}")
		old=$(value "$c")
		[ $((new - old)) -le 0 ] || worst+="$((new - old)) $c"$'\n'
		# The kernel counts a slab that a processor allocates from as full: up to so many objects
		# may not be there. More noise of the system, and less than one object for four actions.
		slack=$(awk -v c="$c" -v n="$(nproc)" '$1 == c {print $5 * n}' /proc/slabinfo)
		[ $((new - old)) -le $((slack + 256 + old / 20 + acts / 4)) ] || grown+="$c: $old -> $new objects "
	done
	is "$grown" "" "no kmalloc cache grows with the $acts actions between the quiet points"
	SAMPLE=("${FIRST[@]}")
	a=$(value MemAvailable) b=$(value Slab)
	SAMPLE=("${LAST[@]}")
	between $((a - $(value MemAvailable))) -1000000 40960 "MemAvailable falls by less than 40 MB (kB)"
	between $(($(value Slab) - b)) -1000000 12288 "Slab grows by less than 12 MB (kB)"
	[ -z "$worst" ] || diag "grown most (objects): $(sort -rn <<<"$worst" | head -n 4 | xargs)"
fi

diag "seed $SEED"
diag "minute exact_ios  actions  available     slab unreclaim."
for row in "${ROWS[@]}"; do diag "$row"; done
diag "actions: $(for act in "${!TIMES[@]}"; do printf '%s %d  ' "${act#act_}" "${TIMES[$act]}"; done)"
done_testing
