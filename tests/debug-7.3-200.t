#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 200 to 249 but 220. Parts run side by side.
T=${T:-"20 21 23 24"} MPRR_PART=200 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
