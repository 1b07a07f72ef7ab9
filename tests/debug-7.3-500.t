#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 500 to 699. Parts run side by side.
T=${T:-"5 6"} MPRR_PART=500 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
