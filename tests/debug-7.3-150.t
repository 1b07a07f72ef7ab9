#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 150 to 179. Parts run side by side.
T=${T:-"15 16 17"} MPRR_PART=150 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
