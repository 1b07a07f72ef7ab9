#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: table lines made from the grammar, most of them then spoilt, loaded into the inactive
#       slot of a map; a parser of the fuzzer's own says what must be accepted and echoed.
# Why:  a constructor that takes a wrong word, leaks, or echoes what would not load again.
# How:  MPRR_FUZZ units of 1000 lines, or MPRR_TABLES lines; MPRR_SEED, MPRR_CASE.
# on: 7.3
# limit: 60
# fuzz: 40 1000 MPRR_TABLES
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the grammar in fuzz-tables.c is that of our module"; fi
mod_load
paths_up 4
modprobe scsi_dh_alua
fuzz tables "$(fuzz_count MPRR_TABLES 1000)" "$TARGET" "$LEN" "$A" "$B" "$C" "$D"

# nothing is held, nothing has changed
expect_ok "a map of these paths is made" mk_map "0 0 1 1 round-robin 0 4 1 $A 1 $B 1 $C 1 $D 1"
fio_ok "and carries verified I/O" --size=4m
expect_ok "it goes" rm_map
done_testing
