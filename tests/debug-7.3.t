#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every guest test on the debug kernel 7.3. See kernel.sh --help.
exec "$(dirname "$0")/kernel.sh" 7.3-debug "$@"
