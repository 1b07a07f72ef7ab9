#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every guest test on the debug kernel 6.1. See kernel.sh --help.
exec "$(dirname "$0")/kernel.sh" 6.1-debug "$@"
