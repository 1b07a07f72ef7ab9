#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What CI has the time for on the debug kernel 7.3: the guest tests that reach most of the module
# soonest, and the search for leaks. The kernel is built first. T chooses others, as with debug-7.3.t.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
"$top/scripts/vm" prepare 7.3-debug
T=${T:-"020 040 060 110 510"} exec "$top/tests/kernel.sh" 7.3-debug "$@"
