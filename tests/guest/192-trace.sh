#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: the trace events of the module: each comes when it should, once, with the right fields.
# Why:  who looks for a fault with them must be able to believe them.
# limit: 60
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the in-kernel target has no trace events"; fi
# trap: tracepoints
mod_load
paths_up 3 lbpu=1 ndelay=200000

# trace EVENT...: record these, while nothing runs: switching one patches code
trace_mount
EVENTS=$TRACING/events/mprr
trace() {
	local e
	echo 0 >$TRACING/tracing_on
	echo 8192 >$TRACING/buffer_size_kb
	for e; do echo 1 >"$EVENTS/$e/enable"; done
	echo >$TRACING/trace
	echo 1 >$TRACING/tracing_on
}
# traced: what came since, one line an event, without process and time; ends it
traced() {
	echo 0 >$TRACING/tracing_on
	echo 0 >$EVENTS/enable
	sed -n 's/.* \(mprr_[a-z_]*: .*\)/\1/p' $TRACING/trace
	echo >$TRACING/trace
}

is "$(cd $EVENTS && echo mprr_*)" "mprr_gate_closed mprr_gate_opened mprr_group_switched mprr_path_chosen mprr_path_failed mprr_path_reinstated mprr_trial_began mprr_trial_ended" \
	"the events of the reference are there"

# ---- the path of each request, and groups ----
mk_map "0 0 2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 1 1 $C 1"
M=$(devno "$(dm_name)")
trace mprr_path_chosen mprr_group_switched
io write 8192 16384 >/dev/null
io read 4096 4096 >/dev/null
io discard 1048576 65536 >/dev/null
io flush 0 0 >/dev/null
message "switch_group 2"
io read 0 4096 >/dev/null
message "disable_group 2"
io read 0 4096 >/dev/null
message "disable_group 2"
io read 0 4096 >/dev/null
is "$(traced)" "$(cat <<-END
	mprr_group_switched: map=$M from=0 to=1
	mprr_path_chosen: map=$M path=$A sector=16 bytes=16384 op=write
	mprr_path_chosen: map=$M path=$B sector=8 bytes=4096 op=read
	mprr_path_chosen: map=$M path=$A sector=2048 bytes=65536 op=discard
	mprr_path_chosen: map=$M path=$B sector=0 bytes=0 op=flush
	mprr_group_switched: map=$M from=1 to=2
	mprr_path_chosen: map=$M path=$C sector=0 bytes=4096 op=read
	mprr_group_switched: map=$M from=2 to=1
	mprr_path_chosen: map=$M path=$A sector=0 bytes=4096 op=read
	mprr_path_chosen: map=$M path=$B sector=0 bytes=4096 op=read
	END
	)" "each request names its path, each change of the group comes once"

echo "path == $((${B%:*} << 20 | ${B#*:}))" >$EVENTS/mprr_path_chosen/filter
trace mprr_path_chosen
reads 10 >/dev/null
is "$(traced | grep -c "path=$B ") $(cat $EVENTS/mprr_path_chosen/filter)" "5 path == $((${B%:*} << 20 | ${B#*:}))" "a filter by path"
echo 0 >$EVENTS/mprr_path_chosen/filter

# ---- paths fail and come back ----
trace mprr_path_failed mprr_path_reinstated mprr_group_switched
message "fail_path $A"
message "fail_path $A"
message "fail_path $B"
io read 0 4096 >/dev/null
message "fail_path $C"
io read 0 4096 >/dev/null
message "reinstate_path $B"
message "reinstate_path $B"
io read 0 4096 >/dev/null
is "$(traced)" "$(cat <<-END
	mprr_path_failed: map=$M path=$A group=1 fail_count=1 valid_paths=2
	mprr_path_failed: map=$M path=$B group=1 fail_count=1 valid_paths=1
	mprr_group_switched: map=$M from=1 to=2
	mprr_path_failed: map=$M path=$C group=2 fail_count=1 valid_paths=0
	mprr_group_switched: map=$M from=2 to=0
	mprr_path_reinstated: map=$M path=$B group=1 fail_count=1 valid_paths=1
	mprr_group_switched: map=$M from=0 to=1
	END
	)" "paths that fail and come back, once each; no group left"
for n in "$A" "$C"; do message "reinstate_path $n"; done
rm_map

# ---- the gate ----
lun_depth 16
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
M=$(devno "$(dm_name)")
trace mprr_gate_closed mprr_gate_opened mprr_trial_began mprr_trial_ended
fio --name=m --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --size=8m --rw=write --iodepth=16 \
	--numjobs=4 --offset_increment=10m --output="$MPRR_TMP/fio.m" >/dev/null 2>&1
wait_until 10 "nothing is in flight" idle
closed=$(stat_of closed) trials=$(stat_of trials) deadline=$(stat_of deadline)
# After a pause it is another flow: its first request ends the trial.
sleep 0.3
io read 0 4096 >/dev/null
traced >"$MPRR_TMP/events"
count() { grep -cE "$1" "$MPRR_TMP/events" || true; }
between "$closed" 1 999999 "the gate works"
is "$(count "^mprr_gate_closed: map=$M in_flight=[1-9][0-9]* cap=[1-9][0-9]*$")" "$closed" "each closing"
is "$(count "^mprr_gate_opened: map=$M reason=(low|settled|deadline|change|suspend) held_us=[0-9]+\.[0-9]{3} in_flight=[0-9]+$")" \
	"$closed" "each opening, and why"
is "$(count "^mprr_trial_began: map=$M trials=[1-9][0-9]*$") $(count "^mprr_trial_began: .* trials=$trials$")" "$trials 1" "each trial that began"
is "$(count "^mprr_trial_ended: map=$M proven=[01]$")" "$trials" "each trial that ended"
between "$(count proven=1)" 1 999 "the flow did merge"
between "$(count reason=deadline)" 0 "$deadline" "openings by the timer are among those that stats counts"
diag "$(sed -n 's/.*reason=\([a-z]*\) .*/\1/p' "$MPRR_TMP/events" | sort | uniq -c | xargs)"
is "$(grep -c 'held_us=[0-9]\{7,\}' "$MPRR_TMP/events" || true)" 0 "nothing is held for a second"
trace mprr_gate_closed
traced >/dev/null
is "$(cat $EVENTS/enable)" 0 "all events are off"
rm_map

done_testing
