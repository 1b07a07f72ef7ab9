#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: messages to a live map, half of them spoilt; a model says which are accepted, and the
#       state in INFO and TABLE is compared with it every hundred messages.
# Why:  a message that is misread, or that changes what it should not.
# How:  MPRR_FUZZ units of 500 messages, or MPRR_MESSAGES; MPRR_SEED, MPRR_CASE.
# on: 7.3
# limit: 60
# fuzz: 30 500 MPRR_MESSAGES
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the model in fuzz-messages.c is that of our module"; fi
mod_load
paths_up 4
mk_map "0 0 3 1 round-robin 0 2 1 $A 3 $B 3 queue-length 0 1 1 $C 1 service-time 0 2 2 $D 1 1 $A 1 1"
fuzz messages "$(fuzz_count MPRR_MESSAGES 500)" $MAP "$A" "$B" "$C" "$D"
is "$(info_paths | awk '{print $1 $4}' | xargs)" "1A 1A 2A 3A 3A" "at its end all paths are active"
fio_ok "and the map carries verified I/O" --size=4m
wait_until 5 "nothing is in flight" idle
done_testing
