#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: scripts/bench on a user's own devices and on the paths of a user's map: the table and
#       the figures come, nothing is left, the user's map stays as it was; it refuses devices
#       that are not paths to one LUN, and asks before it writes.
# Why:  an administrator runs it where data are.
# on: 6.12
# limit: 90
. "$(dirname "$0")/lib.sh"

BENCH=(/mprr/src/scripts/bench --results "$MPRR_TMP/bench" --passes 1 --seconds 1 --elevators none)
bench() { "${BENCH[@]}" "$@" </dev/null; }

modprobe -n dm-multipath 2>/dev/null || skip_rest "this kernel has no in-kernel target to compare with"
modprobe dm-multipath
modprobe dm-round-robin
mod_load
paths_up 2
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
is "$(io write 0 4096)" ok "a write by the user's map"
before=$(table_of)
sum=$(dd if=$DEV bs=1M iflag=direct status=none | md5sum)

expect_ok "two devices, a load that reads" bench --devices "/dev/${DISK[0]},/dev/${DISK[1]}" --loads one32-read
like "$(<"$MPRR_TMP/bench/table")" "one32-read +none +[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ " "its table has both maps"
expect_ok "the same again: it replaces its results" bench --map $MAP --loads one32-read,one1-read
is "$(jq -c '[.errors, (.rows | length), .rows[0].variants["in-kernel"].passes]' "$MPRR_TMP/bench/bench.json")" \
	"[0,2,1]" "its figures: no error, two loads, one pass"

expect_fail "a load that writes, and nobody to ask" "these loads overwrite" \
	bench --devices "/dev/${DISK[0]},/dev/${DISK[1]}" --loads one32-write
expect_fail "a device that is none" "no block device" bench --devices "/dev/${DISK[0]},/dev/nonsense" --loads one32-read
expect_fail "a map that is none" "no multipath map" bench --map nonsense --loads one32-read
truncate -s 8M "$MPRR_TMP/small"
loop=$(losetup -f --show "$MPRR_TMP/small")
expect_fail "devices of unequal size" "another size" bench --devices "/dev/${DISK[0]},$loop" --loads one32-read
losetup -d "$loop"
mkdir "$MPRR_TMP/full"
touch "$MPRR_TMP/full/mine"
BENCH[2]=$MPRR_TMP/full
expect_fail "results into a folder with something else" "holds something else" bench --map $MAP --loads one32-read
is "$(ls "$MPRR_TMP/full")" mine "which stays there"

is "$(dmsetup ls | awk '{print $1}' | xargs)" "$MAP" "only the user's map is left"
is "$(table_of)" "$before" "and has its table"
is "$(dd if=$DEV bs=1M iflag=direct status=none | md5sum)" "$sum" "and its data"
BENCH[2]=$MPRR_TMP/bench
expect_ok "--overwrite: a load that writes" bench --map $MAP --loads one32-write --overwrite
unlike "$(dd if=$DEV bs=1M iflag=direct status=none | md5sum)" "^${sum%% *} " "it has written"
done_testing
