#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: sequences of about 20 operations (messages, suspend, load, resume, deleted and found
#       disks, queue attributes, remove, unload) on a map under I/O whose every block is known.
# Why:  no order of operations may hang, lose or mix up an I/O, or leak a counter.
# How:  MPRR_FUZZ units of 10 sequences, or MPRR_SEQUENCES; MPRR_SEED, MPRR_CASE.
# on: 7.3
# limit: 60
# fuzz: 100 10 MPRR_SEQUENCES
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "it unloads our module"; fi
mod_load
paths_up 4
HOSTS=()
for d in "${DISK[@]}"; do
	[[ $(scsi_dir "$d") =~ /(host[0-9]+)/ ]]
	HOSTS+=("${BASH_REMATCH[1]}")
done
count=$(fuzz_count MPRR_SEQUENCES 10)
fuzz operations "$count" $MAP "$TARGET" "${HOSTS[@]}"

# Thousands of sequences make events faster than udev handles them.
caught_up() { udevadm settle -t 1; }
wait_until $((20 + count / 5)) "udev has caught up" caught_up
paths_find 4	# they have other names now
mk_map "0 0 1 1 round-robin 0 4 1 $A 1 $B 1 $C 1 $D 1"
fio_ok "after that a map of these paths carries verified I/O" --size=4m
done_testing
