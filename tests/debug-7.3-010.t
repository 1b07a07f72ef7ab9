#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 010 to 099. Parts run side by side.
T=${T:-"0"} MPRR_PART=010 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
