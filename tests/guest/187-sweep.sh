#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: scripts/sweep on a user's own map: each cell is measured with the rr_min_io it is for, the
#       figures come, a second run measures nothing again, and rr_min_io and rr_min_io_bytes are
#       what they were, after TERM, too; it refuses what is no map of this module, what is wrong,
#       and to write without being told, and changes nothing then.
# Why:  an administrator runs it where data are, under load.
# on: 6.12
# limit: 90
. "$(dirname "$0")/lib.sh"

if in_kernel; then
	skip_rest "the in-kernel target has no tunable"
fi
RESULTS=$MPRR_TMP/sweep
SWEEP=(/mprr/src/scripts/sweep --map "$MAP" --passes 1 --mib 4 --seconds 0.2 --min-io "8,64" --bs "16,128")
sweep() { "${SWEEP[@]}" --results "$RESULTS" "$@" </dev/null; }
values() { message tunables | grep '^rr_min_io' | xargs; }
cells() { grep -c . "$RESULTS/cells"; }
json() { jq -c "$1" "$RESULTS/sweep.json"; }

mod_load
paths_up 2
mk_map "0 0 1 1 round-robin 0 2 1 $A 5 $B 5"
is "$(io write 0 4096)" ok "a write by the user's map"
sum=$(dd if=$DEV bs=1M iflag=direct status=none | md5sum)
message "rr_min_io 7"
message "rr_min_io_bytes 65536"
before=$(values)

# ---- 2 x 2 cells ----
offered=1
message "rr_min_io auto" 2>/dev/null || offered=0
message "rr_min_io 7"
trace_start "${NUM[@]}"
expect_ok "four cells, and auto" sweep --pattern dio-read
RUNS=$(trace_stop | runs | awk '{print $2}' | sort | uniq -c | sort -rn | awk '{print $2}')
like " $(xargs <<<"$RUNS") " " 8 " "there were runs of 8 requests on the paths"
like " $(xargs <<<"$RUNS") " " 64 " "and of 64"
is "$(json '.patterns[0] | [.pattern, ([.cells[] | select(.min_io != "auto")] | length), (.columns | length)]')" \
	'["dio-read",4,2]' "its figures: four cells, two columns"
is "$(json '[.patterns[0].columns[].best_min_io] | all(. == 8 or . == 64)')" true "each column has a best cell"
like "$(<"$RESULTS/table")" "min_io +16 +128 *"$'\n'"8 +[0-9.]+.*"$'\n'"64 +[0-9.]+.*"$'\n'"auto +" "its table"
is "$(wc -l <"$RESULTS/sweep.csv")" $((5 + 2 * offered)) "its CSV: a head, and a line for each cell"
is "$(values)" "$before" "the values are what they were"

# ---- it goes on where it was ----
cp "$RESULTS/cells" "$MPRR_TMP/cells"
expect_ok "the same again" sweep --pattern dio-read
is "$(<"$RESULTS/cells")" "$(<"$MPRR_TMP/cells")" "nothing is measured again"
tail -n 1 "$MPRR_TMP/cells" | cut -c 1-20 >"$MPRR_TMP/torn"
{ sed '$d' "$MPRR_TMP/cells"; cat "$MPRR_TMP/torn"; } >"$RESULTS/cells"
expect_ok "with a torn last line" sweep --pattern dio-read
is "$(cells)" "$(grep -c . "$MPRR_TMP/cells")" "that cell is measured, the others are kept"
is "$(head -n 3 "$RESULTS/cells")" "$(head -n 3 "$MPRR_TMP/cells")" "as they were"
expect_ok "other parameters" sweep --pattern dio-read --mib 2
is "$(cells)" $((2 * $(grep -c . "$MPRR_TMP/cells"))) "are measured for themselves"
expect_ok "--fresh" sweep --pattern dio-read --mib 2 --fresh
is "$(cells) $(head -n 3 "$RESULTS/cells")" \
	"$((2 * $(grep -c . "$MPRR_TMP/cells"))) $(head -n 3 "$MPRR_TMP/cells")" "measures those again, and only those"

# ---- the others, with fio and through the page cache; values that no message had set ----
message "rr_min_io table"
message "rr_min_io_bytes table"
before=$(values)
expect_ok "other patterns that read" sweep --pattern stream,randread --bs 64
is "$(json '[.patterns[] | .pattern, (.columns | length)]')" '["stream",1,"randread",1]' "their figures"
is "$(values)" "$before" "what no message had set is not set by one now"

# ---- ended by TERM ----
message "rr_min_io 7"
message "rr_min_io_bytes 65536"
before=$(values)
working() { [ "$(stat -c %s "$RESULTS/cells")" -gt "$size" ] && [[ $(values) = "rr_min_io 8 "* || $(values) = "rr_min_io 64 "* ]]; }
for signal in TERM INT; do
	size=$(stat -c %s "$RESULTS/cells")
	set -m
	"${SWEEP[@]}" --results "$RESULTS" --pattern dio-read --passes 90 --mib 60 </dev/null >"$MPRR_TMP/out" 2>&1 &
	set +m
	pid=$!
	wait_until 30 "it measures, with its own values" working
	kill -$signal "$pid"
	wait_until 20 "$signal ends it" bash -c "! kill -0 $pid"
	rc=0
	wait "$pid" || rc=$?
	is "$rc" 130 "its exit status"
	is "$(values)" "$before" "and the values are what they were"
done

# ---- refused, and nothing changed ----
cp "$RESULTS/cells" "$MPRR_TMP/cells"
expect_fail "a pattern that writes, and nobody to ask" "overwrite $MAP" sweep --pattern dio-write
expect_fail "no pattern" "not a pattern" sweep --pattern dd
expect_fail "rr_min_io 0" "not a number from 1" sweep --min-io 0,8
expect_fail "a block size that is none" "--bs" sweep --bs 6
expect_fail "the same twice" "twice" sweep --bs 8,8
expect_fail "an option for a guest" "not with --map" sweep --backing ram
expect_fail "an unknown option" "unknown argument" sweep --nonsense
expect_fail "a map that is none" "no map" sweep --map nonsense
expect_fail "a map's name that is none" "not the name of a map" sweep --map 'a b'
dmsetup create ${MAP}2 --table "0 $LEN linear $A 0"
expect_fail "a map of another target" "no multipath map" sweep --map ${MAP}2
rm_map ${MAP}2
mk_map_as ${MAP}2 "0 0 1 1 queue-length 0 2 1 $A 1 $B 1"
expect_fail "another selector" "other selector than round-robin" sweep --map ${MAP}2
rm_map ${MAP}2
mkdir "$MPRR_TMP/full-sweep"
touch "$MPRR_TMP/full-sweep/mine"
RESULTS=$MPRR_TMP/full-sweep expect_fail "results into a folder with something else" "holds something else" sweep
is "$(ls "$MPRR_TMP/full-sweep")" mine "which stays there"
exec 7<$DEV
expect_fail "writing to a map that is in use" "in use" sweep --pattern dio-write --overwrite
exec 7<&-
dmsetup suspend $MAP
expect_fail "a suspended map" "is suspended" sweep
dmsetup resume $MAP
is "$(values)" "$before" "the values are what they were"
is "$(<"$RESULTS/cells")" "$(<"$MPRR_TMP/cells")" "so is what was measured"
is "$(dd if=$DEV bs=1M iflag=direct status=none | md5sum)" "$sum" "and the data"

expect_ok "--overwrite: a pattern that writes" sweep --pattern dio-write --bs 16 --min-io 8 --overwrite
unlike "$(dd if=$DEV bs=1M iflag=direct status=none | md5sum)" "^${sum%% *} " "it has written"
is "$(values)" "$before" "the values are what they were"
done_testing
