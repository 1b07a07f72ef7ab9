#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every guest test on kernel 6.12, in one boot. See kernel.sh and README.md.
exec "$(dirname "$0")/kernel.sh" 6.12 "$@"
