#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: scripts/top: pictures and JSON against what the paths really do; on a terminal and not;
#       wrong arguments; its end. scripts/trace-runs: run lengths.
# Why:  an administrator will believe what it shows.
# limit: 120
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the in-kernel target has no statistics"; fi
TOP=/mprr/src/scripts/top
RUNS=/mprr/src/scripts/trace-runs
mod_load
paths_up 4

# ---- arguments ----
for program in $TOP $RUNS; do
	like "$("$program" --help)" '^usage: scripts/' "$(basename "$program") --help"
	expect_fail "$(basename "$program"): an unknown argument" "unknown argument '--nope'" "$program" --nope
	expect_fail "$(basename "$program"): no such map" "no such map: 'nope'" "$program" --map nope
	expect_fail "$(basename "$program"): a value is missing" "needs a value" "$program" --map
done
for bad in 0 0.01 -1 x 1x ''; do expect_fail "--interval '$bad'" "must be" $TOP --interval "$bad"; done
for bad in 0 -1 x 1.5; do expect_fail "--count '$bad'" "must be" $TOP --count "$bad"; done
expect_fail "--seconds x" "must be a number" $RUNS --seconds x
like "$($TOP --count 1 --interval 0.1)" 'no map of this module' "no map"
is "$($TOP --json --count 1 --interval 0.1 | jq -c .maps)" "[]" "no map, as JSON"
dmsetup create mprr9 --table "0 8 zero"
expect_fail "a map of another target" "'mprr9' is no map of dm-multipath-rr" $TOP --map mprr9
rm_map mprr9

# ---- what it shows ----
mk_map "0 0 2 1 round-robin 0 3 1 $A 1 $B 1 $C 1 round-robin 0 1 1 $D 1"
message "fail_path $C"
spawn $TOP --json --interval 1 --map $MAP
top=$SPAWNED
lines() { wc -l <"$MPRR_TMP/spawn.$top"; }
first() { [ "$(lines)" -ge "${1:-1}" ]; }
wait_until 20 "a line of JSON each interval" first
is "$(reads 400)" "ok done=400 errors=0" "400 reads over two paths"
at=$(lines)
wait_until 20 "and the next ones" first $((at + 2))
kill -TERM "$top"
ends 5 "TERM ends it" "$top" '.'
rc=0
wait "$top" || rc=$?
is $rc 0 "cleanly"
spawn_output "$top" >"$MPRR_TMP/json"
is "$(jq -c . "$MPRR_TMP/json" | wc -l)" "$(wc -l <"$MPRR_TMP/json")" "each line is valid JSON"
# J EXPRESSION: summed over all intervals; $m is the map
# shellcheck disable=SC2016
J() { jq -s "[.[].maps[0] | . as \$m | $1 * \$m.interval_s] | add | round" "$MPRR_TMP/json"; }
# Rounded in each interval.
between "$(J .iops)" 398 402 "requests of the map in all intervals"
between "$(J .groups[0].paths[0].iops)" 198 202 "of a path"
between "$(J .groups[0].paths[1].read_iops)" 198 202 "of the other one"
is "$(J .groups[1].paths[0].iops)" 0 "and of the other group"
between "$(J .bytes_per_s)" $((400 * 4096 - 9999)) $((400 * 4096 + 9999)) "bytes"
is "$(jq -c '.maps[0] | [.name, .paths, .paths_valid, .groups[0].state, .groups[1].state, .in_flight]' "$MPRR_TMP/json" | tail -n 1)" \
	"[\"$MAP\",4,3,\"current\",\"enabled\",0]" "map and groups"
is "$(jq -c '.maps[0].groups[0].paths[2] | [.dev, .disk, .state, .event, .fail_count, .p50_us]' "$MPRR_TMP/json" | tail -n 1)" \
	"[\"$C\",\"${DISK[2]}\",\"failed\",\"failed\",1,null]" "the path that has failed"
between "$(jq -s '[.[].maps[0].groups[0].paths[0].p50_us | numbers] | max | round' "$MPRR_TMP/json")" 10 1000000 "a latency"

# ---- pictures: the one in docs/reference.md is made here ----
spawn fio --name=m --filename=$DEV --direct=1 --ioengine=libaio --bs=4k --size=16m --rw=rw --iodepth=16 --numjobs=3 \
	--offset_increment=16m --time_based --runtime=$((8 + 2 * MPRR_SLOW))
load=$SPAWNED
$TOP --interval 2 --count 3 >"$MPRR_TMP/pictures"
kill "$load" || true
diag "$(cat "$MPRR_TMP/pictures")"
is "$(grep -c '^dm-multipath-rr, every 2 s' "$MPRR_TMP/pictures")" 3 "--count 3: three pictures"
is "$(awk 'length($0) > 80' "$MPRR_TMP/pictures")" "" "in 80 columns"
is "$(grep -c $'\033' "$MPRR_TMP/pictures" || true)" 0 "not a terminal: no colour, nothing moves"
like "$(grep -A 3 '^grp' "$MPRR_TMP/pictures" | tail -n 1)" " 1A ${DISK[2]} +FAIL .* failed [0-9]+[smh]$" "a path that has failed, and when"
like "$(tail -n 8 "$MPRR_TMP/pictures" | head -n 3)" "$MAP \([0-9]+:[0-9]+\) +2 groups, 3 of 4 paths valid" "the map"

# ---- on a terminal ----
# tty SIGNAL: what it writes to a terminal of 24 lines until the signal comes
tty() {
	cat >"$MPRR_TMP/tty.sh" <<-END
	set -m	# else INT is ignored in the background
	stty rows 24 cols 80
	stty -a >"$MPRR_TMP/stty.before"
	$TOP --interval 0.5 &
	pid=\$!
	for i in \$(seq 200); do grep -qs paths "$MPRR_TMP/typescript" && break; sleep 0.1; done
	kill -$1 \$pid
	wait \$pid; echo "exit \$?"
	stty -a >"$MPRR_TMP/stty.after"
	END
	rm -f "$MPRR_TMP/typescript" "$MPRR_TMP"/stty.*
	TERM=xterm timeout $((20 * MPRR_SLOW)) script -qfec "bash $MPRR_TMP/tty.sh" "$MPRR_TMP/typescript" </dev/null >/dev/null 2>&1 || true
}
signals="TERM INT"
if [ ! -c /dev/ptmx ]; then
	skip "what it does on a terminal" "this kernel has no pseudo terminals"
	signals=
fi
for signal in $signals; do
	tty "$signal"
	like "$(cat "$MPRR_TMP/typescript")" $'\033[[][?]1049h.*\033[[]3[12]m.*\033[[][?]25h\033[[][?]1049l' \
		"$signal: it takes the terminal, shows colours, and gives it back"
	like "$(cat "$MPRR_TMP/typescript")" 'exit 0' "$signal: cleanly"
	expect_ok "$signal: the terminal's settings are as before" diff "$MPRR_TMP/stty.before" "$MPRR_TMP/stty.after"
done
is "$(find /tmp -maxdepth 1 -name 'tmp.*' | wc -l)" 0 "no file is left behind"

# ---- a map that goes and comes, and two maps ----
spawn $TOP --json --interval 0.3
top=$SPAWNED
wait_until 20 "it runs" first
rm_map
none() { [ "$(tail -n 1 "$MPRR_TMP/spawn.$top" | jq -c .maps)" = "[]" ]; }
wait_until 20 "the map is gone" none
mk_map "0 0 1 1 round-robin 0 1 1 $A 1"
mk_map_as mprr2 "0 0 1 1 queue-length 0 1 1 $B 1"
two() { [ "$(tail -n 1 "$MPRR_TMP/spawn.$top" | jq -c '[.maps[].name]')" = '["mprr","mprr2"]' ]; }
wait_until 20 "two maps have come" two
kill "$top"
ends 5 "it ends" "$top" '.'
rm_map mprr2
rm_map

# ---- run lengths ----
mk_map "0 0 1 1 round-robin 0 2 1 $A 3 $B 5"
record=$(cat $TRACING/options/record-cmd 2>/dev/null || echo 1)
spawn $RUNS --map $MAP --seconds $((60 * MPRR_SLOW))
runs=$SPAWNED
instance() { grep -qs 1 $TRACING/instances/mprr-runs-*/events/mprr/mprr_path_chosen/enable; }
wait_until 20 "it records" instance
reads 160 >/dev/null
kill -TERM "$runs"
ends 20 "trace-runs ends" "$runs" '.'
# 20 whole turns of 8; the first run is not counted, and the last one is open.
is "$(spawn_output "$runs" | awk 'NR > 1 {print $2, $3, $4, $5, $6, $8, $9}' | xargs)" \
	"$A ${DISK[0]} 19 57 3 3 3 $B ${DISK[1]} 19 95 5 5 5" "runs of 3 and 5"
is "$(ls $TRACING/instances)" "" "its instance is gone"
is "$(cat $TRACING/options/record-cmd)" "$record" "the option is as before"
rm_map

done_testing
