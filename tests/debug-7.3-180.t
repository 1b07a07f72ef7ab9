#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 180 to 199. Parts run side by side.
T=${T:-"18 19"} MPRR_PART=180 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
