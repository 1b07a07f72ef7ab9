#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The static checks, as a test. See scripts/lint --help.
exec "$(dirname "$0")/../scripts/lint" "$@"
