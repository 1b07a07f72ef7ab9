# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2119,SC2120
# lib.sh - what every test in this directory is written with. Sourced, never run.
#
# A test is: header comment, `. lib.sh`, assertions, `done_testing` as the last line.
# Assertions never end the test; any other command that fails does, and that is a
# "not ok" with file, line and command. No test cleans up after itself: the runner
# removes maps, loops, null_blk disks and modules, and counts what would not go.
#
# Environment (set by `run`): TARGET, MPRR_KO, MPRR_KERNEL, MPRR_SLOW, MPRR_TMP, HELPER.

set -euo pipefail
PS4='+ ${EPOCHREALTIME: -9} '		# the log of the test (set -x) shows where time goes

TARGET=${TARGET:-mpath-rr}		# mpath-rr, or multipath = the in-kernel target
MPRR_SLOW=${MPRR_SLOW:-1}		# deadlines are multiplied with it
MPRR_KERNEL=${MPRR_KERNEL:-$(uname -r | cut -d. -f1,2)}
MPRR_TMP=${MPRR_TMP:?run tests by "run", not by hand}
HELPER=${HELPER:?run tests by "run", not by hand}
MODULE=dm_multipath_rr			# how lsmod spells it
[ "$TARGET" = mpath-rr ] || MODULE=dm_multipath
PARAMS=/sys/module/$MODULE/parameters
MAP=mprr				# maps are called mprr, mprr2, ...: the runner removes mprr*
DEV=/dev/mapper/$MAP

# ---- TAP ---------------------------------------------------------------------

pass() { printf 'ok - %s\n' "$1"; }

# diag TEXT: each line of TEXT as a TAP comment
diag() { printf '%s\n' "$*" | cut -c 1-400 | sed 's/^/# /'; }

# fail DESC [DIAGNOSTIC...]
fail() {
	local where i=1
	printf 'not ok - %s\n' "$1"
	while [[ ${BASH_SOURCE[i]:-} == */lib.sh ]]; do i=$((i + 1)); done
	where="${BASH_SOURCE[i]##*/} line ${BASH_LINENO[i-1]}"
	shift
	diag "    where:    $where"
	while [ $# -gt 0 ]; do diag "    ${1//$'\n'/$'\n'      }"; shift; done
}

skip() { printf 'ok - %s # SKIP %s\n' "$1" "$2"; }

# skip_rest REASON: the whole (rest of the) test cannot run here
skip_rest() { skip "the rest of this test" "$1"; done_testing; exit 0; }

# is GOT EXPECTED DESC
is() {
	if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "expected: $2" "got:      $1"; fi
}

# like GOT REGEX DESC (extended regular expression)
like() {
	if [[ $1 =~ $2 ]]; then pass "$3"; else fail "$3" "expected: text matching /$2/" "got:      $1"; fi
}

unlike() {
	if [[ $1 =~ $2 ]]; then fail "$3" "expected: no text matching /$2/" "got:      $1"; else pass "$3"; fi
}

# between GOT LOW HIGH DESC
between() {
	if [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; then
		pass "$4"
	else
		fail "$4" "expected: $2 .. $3" "got:      $1"
	fi
}

# expect_ok DESC COMMAND...
expect_ok() {
	local desc=$1 out rc=0
	shift
	out=$("$@" 2>&1) || rc=$?
	if [ $rc = 0 ]; then pass "$desc"; else
		fail "$desc" "command:  $*" "expected: exit 0" "got:      exit $rc" "output:   $out"
	fi
}

# expect_fail DESC REGEX COMMAND...: exit status not 0 and output matching REGEX
expect_fail() {
	local desc=$1 regex=$2 out rc=0
	shift 2
	out=$("$@" 2>&1) || rc=$?
	if [ $rc != 0 ] && [[ $out =~ $regex ]]; then pass "$desc"; else
		fail "$desc" "command:  $*" "expected: failure, output matching /$regex/" \
			"got:      exit $rc" "output:   $out"
	fi
}

# in_kernel: this run tests the in-kernel target (to check the tests themselves)
in_kernel() { [ "$TARGET" = multipath ]; }

# kernel_at_least 6.12
kernel_at_least() {
	[ "$(printf '%s\n%s\n' "$1" "$MPRR_KERNEL" | sort -V | head -n 1)" = "$1" ]
}

TEST_ENDED=
done_testing() { TEST_ENDED=1; }

lib_on_error() { LIB_FAILED="${BASH_SOURCE[1]##*/} line ${BASH_LINENO[0]}: $BASH_COMMAND"; }
lib_on_exit() {
	local rc=$?
	trap - EXIT ERR
	lib_stop_children
	[ -n "$TEST_ENDED" ] && exit 0
	printf 'not ok - the test runs to its end\n'
	diag "    expected: done_testing is reached"
	diag "    got:      exit $rc at ${LIB_FAILED:-an unknown line}"
	exit 1
}
set -o errtrace
trap lib_on_error ERR
trap lib_on_exit EXIT

# ---- waiting -----------------------------------------------------------------

now_ms() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

# wait_for SECONDS COMMAND...: polls until COMMAND succeeds; 1 after SECONDS x MPRR_SLOW
wait_for() {
	local end=$(($(now_ms) + $1 * 1000 * MPRR_SLOW))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(now_ms)" -lt $end ] || return 1
		sleep 0.05
	done
}

# wait_until SECONDS DESC COMMAND...: the same as an assertion
wait_until() {
	local secs=$1 desc=$2
	shift 2
	if wait_for "$secs" "$@"; then pass "$desc"; else
		fail "$desc" "command:  $*" "expected: success within $((secs * MPRR_SLOW)) s" \
			"got:      $("$@" 2>&1 | tail -n 3 || true)"
	fi
}

# spawn COMMAND...: background child that the end of the test stops; PID in SPAWNED,
# its output in $MPRR_TMP/spawn.$SPAWNED
CHILDREN=()
spawn() {
	# Opened here: the child may not have come to it when the file is renamed.
	exec 8>"$MPRR_TMP/spawn.out"
	"$@" >&8 2>&1 8>&- &
	SPAWNED=$!
	exec 8>&-
	mv "$MPRR_TMP/spawn.out" "$MPRR_TMP/spawn.$SPAWNED"
	CHILDREN+=("$SPAWNED")
}

spawn_output() { cat "$MPRR_TMP/spawn.$1"; }
alive() { kill -0 "$1" 2>/dev/null; }
gone() { ! alive "$1"; }
not() { ! "$@"; }

# blocked PID: it sleeps in the kernel without being interruptible, or waits for I/O
blocked() { [[ $(awk '/^State/ {print $2}' "/proc/$1/status" 2>/dev/null) == [DS] ]]; }

# waiting DESC COMMAND...: starts it and makes sure that it waits; PID in SPAWNED
waiting() {
	local desc=$1
	shift
	spawn "$@"
	wait_until 5 "$desc waits" blocked "$SPAWNED"
}

# ends SECONDS DESC PID [REGEX of output]: the child ends in time and said REGEX
ends() {
	local secs=$1 desc=$2 pid=$3 regex=${4:-}
	if ! wait_for "$secs" gone "$pid"; then
		fail "$desc" "expected: process $pid ends within $((secs * MPRR_SLOW)) s" \
			"got:      still there, $(grep State "/proc/$pid/status" || true)" \
			"wchan:    $(cat "/proc/$pid/wchan" 2>/dev/null || true)"
	elif [[ $(spawn_output "$pid") =~ $regex ]]; then
		pass "$desc"
	else
		fail "$desc" "expected: output matching /$regex/" "got:      $(spawn_output "$pid")"
	fi
}

lib_stop_children() {
	local pid
	for pid in "${CHILDREN[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
}

# ---- C programs beside the tests ------------------------------------------------

# build_c NAME [GCC OPTION...]: NAME.c of this directory, built once a run; its path in PROGRAM
build_c() {
	PROGRAM=$MPRR_TMP/$1
	[ -x "$PROGRAM" ] || gcc -O1 -pthread -o "$PROGRAM" "$(dirname "${BASH_SOURCE[0]}")/$1.c" "${@:2}"
}

# ---- kernel log ---------------------------------------------------------------

# klog_mark: klog shows what comes after this
klog_mark() {
	KLOG_MARK="mprr-test: mark $RANDOM$RANDOM"
	echo "$KLOG_MARK" >/dev/kmsg
}
klog() {
	dmesg >"$MPRR_TMP/dmesg"
	grep -q "$KLOG_MARK" "$MPRR_TMP/dmesg" || { echo "klog: the mark has left the kernel's log" >&2; return 1; }
	sed -e "0,/$KLOG_MARK/d" -e 's/^\[[^]]*\] //' "$MPRR_TMP/dmesg"
}

# klog_like REGEX DESC
klog_like() {
	local log
	log=$(klog 2>&1) || true
	if grep -Eqi -- "$1" <<<"$log"; then pass "$2"; else
		fail "$2" "expected: a kernel log line matching /$1/" "got:      ${log:-nothing}"
	fi
}

klog_unlike() {
	local log
	# What cannot be looked at is no proof.
	if log=$(klog 2>&1); then log=$(grep -Ei -- "$1" <<<"$log" || true); fi
	if [ -z "$log" ]; then pass "$2"; else
		fail "$2" "expected: no kernel log line matching /$1/" "got:      $log"
	fi
}

# ---- module -------------------------------------------------------------------

# mod_load [PARAM=VALUE...]
mod_load() {
	modprobe dm_mod
	modprobe scsi_mod
	if in_kernel; then
		modprobe dm_multipath "$@"
		modprobe -a dm_round_robin dm_queue_length dm_service_time
	else
		insmod "$MPRR_KO" "$@"
	fi
}

mod_unload() {
	if in_kernel; then
		rmmod dm_round_robin dm_queue_length dm_service_time dm_multipath
	else
		rmmod dm_multipath_rr
	fi
}

mod_loaded() { [ -d /sys/module/"${1:-$MODULE}" ]; }

# has_target NAME: the DM core knows this target type
has_target() { dmsetup targets | awk -v t="$1" '$1 == t {f = 1} END {exit !f}'; }

# ---- paths --------------------------------------------------------------------

SDEB=/sys/bus/pseudo/drivers/scsi_debug

# opts OPTS EVERY: scsi_debug does what the bits OPTS say to every EVERY-th command
opts() { echo "$1" >$SDEB/opts; echo "$2" >$SDEB/every_nth; }

# alua_all_active: scsi_debug reports each port group as active from now on. Before, the number of the
# host decides: active, non-optimized, or standby. Disks found from now on are no ALUA disks.
alua_all_active() { echo 1 >$SDEB/vpd_use_hostno; }

scsi_debug_disks() {
	local d
	for d in /sys/bus/pseudo/devices/adapter*/host*/target*/*:*/block/*; do
		[ -e "$d" ] || continue
		[[ $d =~ /host([0-9]+)/.*/block/([a-z]+)$ ]]
		echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
	done | sort -n | awk '{print $2}'
}

lib_disks_are() { [ "$(scsi_debug_disks | wc -l)" -eq "$1" ]; }
devno() { cat "/sys/class/block/${1##*/}/dev"; }

# paths_up N [scsi_debug PARAM=VALUE...]: N paths (one host each) to one RAM store.
# Sets DISK[0..] (sda ...), NUM[0..] (8:0 ...), A B C D (the first NUMs), LEN (sectors).
paths_up() {
	local n=$1
	shift
	modprobe scsi_debug add_host="$n" num_tgts=1 max_luns=1 per_host_store=0 \
		vpd_use_hostno=0 dev_size_mb=64 ndelay=20000 "$@"
	paths_find "$n"
}

# paths_find N: waits until scsi_debug has N disks and sets the variables again
paths_find() {
	local d
	wait_for 20 lib_disks_are "$1" || { diag "scsi_debug did not give $1 disks"; return 1; }
	udevadm settle -t $((20 * MPRR_SLOW))
	mapfile -t DISK < <(scsi_debug_disks)
	NUM=()
	for d in "${DISK[@]}"; do NUM+=("$(devno "$d")"); done
	# shellcheck disable=SC2034  # for the tests
	A=${NUM[0]} B=${NUM[1]:-} C=${NUM[2]:-} D=${NUM[3]:-}
	LEN=$(cat "/sys/class/block/${DISK[0]}/size")
}

# scsi_dir DISK: its sysfs SCSI device directory
scsi_dir() { readlink -f "/sys/block/$1/device"; }

# lun_depth N: every path's LUN takes N commands at a time. (max_queue=N is no stand-in on
# 6.1: all hosts of its scsi_debug share that many slots, and it fails what finds none.)
lun_depth() {
	local d
	for d in "${DISK[@]}"; do echo "$1" >"$(scsi_dir "$d")/queue_depth"; done
}

# loop_up FILE-OR-DEVICE: a loop disk over it; name (loop0) in LOOP
# A loop disk keeps its queue's settings when its file goes: they begin anew.
loop_up() {
	modprobe loop
	LOOP=$(losetup -f --show "$@")
	LOOP=${LOOP##*/}
	echo "$LOOP" >>"$MPRR_TMP/loops"
	echo none >"/sys/block/$LOOP/queue/scheduler"
	# 7.3: "none" sets the number alone, and the tags only follow a number that changes.
	echo 64 >"/sys/block/$LOOP/queue/nr_requests"
	echo 128 >"/sys/block/$LOOP/queue/nr_requests"
}

# udev_off: for tests that make thousands of uevents nobody needs, and no device; the runner
# starts udevd again
udev_off() {
	udevadm settle -t $((20 * MPRR_SLOW))
	touch "$MPRR_TMP/udev-off"
	systemctl stop systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd.service
}

# ---- maps ---------------------------------------------------------------------

# table ARGS...: the whole table line for this target over LEN sectors
table() { echo "0 $LEN $TARGET $*"; }

# mk_map ARGS...: creates $MAP; mk_map_as NAME ARGS... another one
mk_map() { mk_map_as "$MAP" "$@"; }
mk_map_as() {
	local name=$1
	shift
	dmsetup create "$name" --table "$(table "$@")"
}

rm_map() { dmsetup remove --retry "${1:-$MAP}"; }

# reload_map ARGS...: new table as multipathd does it: I/O stays queued
reload_map() {
	dmsetup suspend --noflush "$MAP"
	dmsetup load "$MAP" --table "$(table "$@")"
	dmsetup resume "$MAP"
}

# table_of / info_of [MAP]: without start, length and target name
table_of() { dmsetup table "${1:-$MAP}" | cut -d' ' -f4-; }
info_of() { dmsetup status --noflush "${1:-$MAP}" | cut -d' ' -f4-; }

# expect_table DESC WORDS / expect_info DESC WORDS: exact (one space at the end allowed)
expect_table() { is "$(table_of | sed 's/ $//')" "$2" "$1"; }
expect_info() { is "$(info_of | sed 's/ $//')" "$2" "$1"; }

# info_paths [MAP]: one line a path: group group-state dev A|F fail-count [info words]
info_paths() {
	info_of "${1:-$MAP}" | awk '{
		i = 1; i += 1 + $i; i += 1 + $i; G = $i; i += 2
		for (g = 1; g <= G; g++) {
			st = $i; i++; i += 1 + $i; P = $i; args = $(i + 1); i += 2
			for (p = 0; p < P; p++) {
				printf "%d %s %s %s %s", g, st, $i, $(i + 1), $(i + 2)
				i += 3
				for (k = 0; k < args; k++) printf " %s", $(i++)
				print ""
			}
		}
	}'
}

path_state() { info_paths | awk -v d="$1" '$3 == d {print $4; exit}'; }
path_fails() { info_paths | awk -v d="$1" '$3 == d {print $5; exit}'; }
path_is() { [ "$(path_state "$1")" = "$2" ]; }
valid_paths() { info_paths | awk '$4 == "A"' | wc -l; }
no_valid_path() { [ "$(valid_paths)" = 0 ]; }
# queueing: TABLE says that I/O waits for a path
queueing() { table_of | grep -q '^[0-9]* queue_if_no_path'; }

# group_states: e.g. "A E D"
group_states() { info_paths | awk '$1 != g {printf "%s%s", s, $2; s = " "; g = $1}'; }
# current_group: the number that INFO gives
current_group() { info_of | awk '{i = 1; i += 1 + $i; i += 1 + $i; print $(i + 1)}'; }

events_of() { dmsetup info -c --noheadings -o events "${1:-$MAP}" | tr -d ' '; }

# message TEXT: through dmsetup, must work
message() { dmsetup message "$MAP" 0 "$@"; }
# tunable NAME: what the message tunables says of it: value (where it comes from)
tunable() { message tunables | sed -n "s/^$1 //p"; }
# stat_of NAME: a number of the message stats
stat_of() { message stats | tr ' ' '\n' | sed -n "/^$1\$/{n;p;}"; }

dm_name() { basename "$(readlink -f "/dev/mapper/${1:-$MAP}")"; }
# issued DISK...: reads and writes that the disks were given and that ended
issued() { local d; for d; do cat "/sys/block/$d/stat"; done | awk '{n += $1 + $5} END {print n + 0}'; }
in_flight() { awk '{print $1 + $2}' "/sys/block/$1/inflight"; }
# queue ATTRIBUTE DISK
queue() { cat "/sys/block/$2/queue/$1"; }

# io OP OFFSET LENGTH [DEVICE]: one I/O, prints ok or the errno name
io() { "$HELPER" io "${4:-$DEV}" "$1" "$2" "$3" || true; }
# reads COUNT [SEED]: COUNT direct, unmergeable 4 KiB reads of the map
reads() { "$HELPER" reads "$DEV" "$@" || true; }

# ---- which path did the I/O take -------------------------------------------------

TRACING=/sys/kernel/tracing

# Every event would switch on one in __schedule, too, to know the names of processes: its code is
# patched by way of a breakpoint while other processors run it, and the emulator has been seen to
# execute one that was gone from memory already ("Oops: int3"). Nothing runs as often as __schedule.
trace_mount() {
	[ -d $TRACING/events ] || mount -t tracefs tracefs $TRACING
	echo 0 >$TRACING/options/record-cmd
}

# trace_start NUM...: record each request that one of these disks gets
trace_start() {
	local n filter=
	trace_mount
	for n in "$@"; do
		filter+="${filter:+ || }dev == $(((${n%:*} << 20) | ${n#*:}))"
	done
	echo 0 >$TRACING/tracing_on
	echo 16384 >$TRACING/buffer_size_kb
	echo "$filter" >$TRACING/events/block/block_rq_issue/filter
	echo >$TRACING/trace
	echo 1 >$TRACING/events/block/block_rq_issue/enable
	echo 1 >$TRACING/tracing_on
}

# trace_stop: one line a request in order of issue: maj:min R|W... sectors
trace_stop() {
	echo 0 >$TRACING/tracing_on
	echo 0 >$TRACING/events/block/block_rq_issue/enable
	sed -n 's/.*block_rq_issue: \([0-9]*\),\([0-9]*\) \([A-Z]*\) .* + \([0-9]*\) .*/\1:\2 \3 \4/p' \
		$TRACING/trace
	echo >$TRACING/trace
}

# runs: input as trace_stop prints, output "NUM LENGTH" of each run on one path
runs() { awk '$1 != d {if (n) print d, n; d = $1; n = 0} {n++} END {if (n) print d, n}'; }

# ---- validated load --------------------------------------------------------------

# fio_verify NAME [FIO OPTION...]: random writes of 4 KiB to 512 KiB on the map, read
# back and compared; output in $MPRR_TMP/fio.NAME; fio's exit status
fio_verify() {
	local name=$1
	shift
	fio --name="$name" --filename="$DEV" --direct=1 --ioengine=libaio --iodepth=8 \
		--rw=randwrite --bsrange=4k-512k --size=24m --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --verify_backlog=0 --randseed=$RANDOM --output="$MPRR_TMP/fio.$name" \
		"$@" >"$MPRR_TMP/fio.$name.err" 2>&1
}

fio_diag() { tail -n 12 "$MPRR_TMP/fio.$1" "$MPRR_TMP/fio.$1.err" 2>/dev/null || true; }

# fio_ok DESC [FIO OPTION...]: fio_verify as an assertion
fio_ok() {
	local desc=$1 rc=0
	shift
	fio_verify main "$@" || rc=$?
	if [ $rc = 0 ]; then pass "$desc"; else
		fail "$desc" "expected: fio ends with 0, every block verified" "got:      exit $rc" \
			"$(fio_diag main)"
	fi
}

# idle: nothing in flight on the map and on the paths
idle() {
	local d
	for d in "$(dm_name)" "${DISK[@]}"; do
		[ ! -e "/sys/block/$d" ] || [ "$(in_flight "$d")" = 0 ] || return 1
	done
}

# ---- fuzzers ---------------------------------------------------------------------

# fuzz VERB COUNT ARG...: runs the fuzzer fuzz.c (see there) with COUNT cases, or the one
# MPRR_CASE. Asserts: no case failed, some of what they did was accepted, and some refused.
fuzz() {
	local verb=$1 count=$2 rc=0 accepted refused seed=${MPRR_SEED:-$RANDOM$RANDOM} here
	shift 2
	here=$(dirname "${BASH_SOURCE[0]}")
	[ -x "$MPRR_TMP/fuzz" ] ||
		gcc -O0 -pthread -o "$MPRR_TMP/fuzz" "$here"/fuzz*.c
	dmesg -n 3	# each refused case is a line of the log: not on the console
	diag "MPRR_SEED=$seed, $count cases"
	MPRR_CASE=${MPRR_CASE:-} MPRR_REPLAY="T=$(basename "$0" | cut -c1-3) tests/kernel-$MPRR_KERNEL.t" \
		"$MPRR_TMP/fuzz" "$verb" "$seed" "$count" "$@" 2>&1 | tee "$MPRR_TMP/fuzz.out" || rc=$?
	read -r accepted refused < <(sed -n \
		's/^# total .*: \([0-9]*\) accepted, \([0-9]*\) refused.*/\1 \2/p' "$MPRR_TMP/fuzz.out") || true
	if [ $rc = 0 ] && [ -n "${accepted:-}" ]; then pass "$verb: no case failed"; else
		fail "$verb: no case failed" "expected: exit 0 and a total" "got:      exit $rc" \
			"$(tail -n 3 "$MPRR_TMP/fuzz.out")"
		return 0
	fi
	[ -z "${MPRR_CASE:-}" ] || return 0
	between "$accepted" 1 $((1 << 60)) "$verb: some were accepted ($accepted)"
	between "$refused" 1 $((1 << 60)) "$verb: some were refused ($refused)"
}

# fuzz_count VARIABLE UNIT: number of cases: the variable's value, or UNIT times MPRR_FUZZ
fuzz_count() { echo "${!1:-$(($2 * ${MPRR_FUZZ:-1}))}"; }
