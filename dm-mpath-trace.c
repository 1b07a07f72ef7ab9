// SPDX-License-Identifier: GPL-2.0
/*
 * The bodies of the trace events.
 *
 * DOC: trace events
 *
 * dm-mpath-trace.h declares them and says when each comes; it is read here once
 * more to make what they run.  They are called with whatever the caller holds,
 * in any context, and only read.
 */

#define CREATE_TRACE_POINTS
#include "dm-mpath-trace.h"
