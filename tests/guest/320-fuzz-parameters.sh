#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: module parameters with right and wrong values, at load and at run time.
# Why:  a value is accepted and read back as what it means, or refused and nothing is loaded;
#       with each that was accepted a map is made, and its time-out started.
# How:  MPRR_FUZZ units of 15 loads, or MPRR_LOADS; MPRR_SEED, MPRR_CASE.
# on: 7.3
# limit: 60
# fuzz: 30 15 MPRR_LOADS
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "it is about our module's parameters"; fi
modprobe -a dm_mod scsi_mod
fuzz parameters "$(fuzz_count MPRR_LOADS 15)" "$MPRR_KO"
expect_ok "after that the module loads" mod_load
expect_ok "and unloads" mod_unload
done_testing
