#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 300 to 499. Parts run side by side.
T=${T:-"3 4"} MPRR_PART=300 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
