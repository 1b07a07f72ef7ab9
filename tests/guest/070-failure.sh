#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: verified fio (random writes, 4 KiB to 512 KiB, crc32c) while paths fail by message,
#       go offline, are deleted and come back, at random; then with all paths gone for
#       seconds and queue_if_no_path on.
# Why:  this is what multipath is for: not one I/O error, not one wrong block.
# How:  MPRR_MINUTES (default 0.3) for each of the two parts; MPRR_SEED repeats a run.
# limit: 120
. "$(dirname "$0")/lib.sh"

MPRR_MINUTES=${MPRR_MINUTES:-0.3}
RANDOM_SEED=${MPRR_SEED:-$RANDOM}
diag "MPRR_SEED=$RANDOM_SEED MPRR_MINUTES=$MPRR_MINUTES"
RANDOM=$RANDOM_SEED

mod_load
paths_up 4
# shellcheck source=tests/guest/paths.sh
. "$(dirname "$0")/paths.sh"

# fio in a loop until the file "stop" appears: 2 jobs, each its own region
load_loop() {
	local n=0
	while [ ! -e "$MPRR_TMP/stop" ]; do
		fio_verify load --numjobs=2 --size=12m --offset_increment=32m --randseed=$((RANDOM_SEED + n)) ||
			{ echo "fio failed in round $n"; return 1; }
		n=$((n + 1))
		echo $n >"$MPRR_TMP/rounds"
	done
	echo "rounds $n"
}

start_load() {
	rm -f "$MPRR_TMP/stop"
	echo 0 >"$MPRR_TMP/rounds"
	spawn load_loop
	LOAD=$SPAWNED
}

# end_load DESC: at least one whole round, no error
end_load() {
	touch "$MPRR_TMP/stop"
	ends $((60 + 60 / MPRR_SLOW)) "$1" "$LOAD" '^rounds [1-9]'
	if ! wait "$LOAD"; then
		fail "$1: fio" "got:      $(fio_diag load)" "paths:    ${STATE[*]}" "$(info_of)"
	fi
	diag "$(spawn_output "$LOAD") of fio, $(actions_done)"
}
declare -A ACTIONS=()
actions_done() { local k; for k in "${!ACTIONS[@]}"; do printf '%s %d  ' "$k" "${ACTIONS[$k]}"; done; }
did() { ACTIONS[$1]=$((${ACTIONS[$1]:-0} + 1)); }

# pause: up to half a second, so that I/O meets every state; not a synchronisation
pause() { sleep "0.$((RANDOM % 5))"; }

part_end() { echo $(($(now_ms) + $(awk -v m="$MPRR_MINUTES" 'BEGIN {print int(m * 60000)}'))); }

# ---- part 1: all but one path, at random ----
mk_map "0 0 2 1 round-robin 0 2 1 $A 5 $B 5 round-robin 0 2 1 $C 5 $D 5"
start_load
end=$(part_end)
while [ "$(now_ms)" -lt "$end" ] && alive "$LOAD"; do
	i=$((RANDOM % 4))
	if [ "${STATE[i]}" != up ]; then
		path_restore $i
		did restore
	elif [ "$(up_count)" -gt 1 ]; then
		case $((RANDOM % 3)) in
		0) path_fail $i; did fail ;;
		1) path_offline $i; did offline ;;
		2) path_delete $i; did delete ;;
		esac
	else
		did one-left
	fi
	pause
done
expect_ok "fio is still running after $MPRR_MINUTES minutes of it" alive "$LOAD"
for i in 0 1 2 3; do path_restore $i; done
end_load "verified I/O over dying paths: 0 errors"
is "$(valid_paths)" 4 "all four paths are valid again"
wait_until 10 "nothing is in flight" idle

# ---- part 2: all paths gone for seconds, queueing ----
FEATURES="1 queue_if_no_path"
ACTIONS=()
load_paths
fio_ok "verified I/O between the parts" --size=4m
start_load
end=$(part_end)
while [ "$(now_ms)" -lt "$end" ] && alive "$LOAD"; do
	how=$((RANDOM % 4))
	for i in 0 1 2 3; do
		case $how in
		0) path_fail $i ;;
		1) path_offline $i ;;
		2) path_delete $i ;;
		3) case $((RANDOM % 3)) in
			0) path_fail $i ;; 1) path_offline $i ;; 2) path_delete $i ;;
			esac ;;
		esac
	done
	did "all-gone-$how"
	case $((RANDOM % 3)) in	# meanwhile: nothing, a reload, a noflush suspend and resume
	0) load_paths; did reload ;;
	1) dmsetup suspend --noflush $MAP; dmsetup resume $MAP; did suspend ;;
	esac
	sleep "$((RANDOM % 3)).$((RANDOM % 10))"
	for i in 0 1 2 3; do
		if [ $((RANDOM % 2)) = 0 ]; then path_restore $i; fi
	done
	pause
	for i in 0 1 2 3; do path_restore $i; done
	rounds=$(cat "$MPRR_TMP/rounds")
	moved() { [ "$(cat "$MPRR_TMP/rounds")" -gt "$rounds" ] || gone "$LOAD"; }
	wait_for 20 moved || { fail "I/O goes on after paths came back" "got: $(info_of)"; break; }
done
expect_ok "fio is still running after $MPRR_MINUTES minutes of it" alive "$LOAD"
# trap: queued-no-eio disks-come-and-go
end_load "verified I/O, all paths gone for seconds, queueing: 0 errors"
is "$(valid_paths)" 4 "all four paths are valid again"
wait_until 10 "nothing is in flight" idle
fio_ok "and a last verified run" --size=8m

done_testing
