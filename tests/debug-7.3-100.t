#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A part of debug-7.3.t: the guest tests 100 to 149. Parts run side by side.
T=${T:-"10 11 12 13 14"} MPRR_PART=100 exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
