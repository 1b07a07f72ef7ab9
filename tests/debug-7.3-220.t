#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the differential test. Parts run side by side.
T=${T:-"22"} MPRR_PART=220 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
