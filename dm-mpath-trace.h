/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events: /sys/kernel/tracing/events/mprr (described in docs/reference.md).
 *
 * Devices are numbers as in the block layer's events, so that both can be
 * matched.  Nothing is computed while an event is off.
 */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM mprr

#if !defined(DM_MPATH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DM_MPATH_TRACE_H

#include <linux/tracepoint.h>

#include "dm-mpath-rr.h"
#include "dm-rq-merge.h"

#ifndef MPRR_TRACE_OPS
#define MPRR_TRACE_OPS
/* The block layer's numbers, as numbers: sparse lets nobody print the others. */
enum mprr_trace_op {
	MPRR_OP_READ = (__force int)REQ_OP_READ,
	MPRR_OP_WRITE = (__force int)REQ_OP_WRITE,
	MPRR_OP_FLUSH = (__force int)REQ_OP_FLUSH,
	MPRR_OP_DISCARD = (__force int)REQ_OP_DISCARD,
	MPRR_OP_WRITE_ZEROES = (__force int)REQ_OP_WRITE_ZEROES,
};
#endif

TRACE_DEFINE_ENUM(MPRR_OP_READ);
TRACE_DEFINE_ENUM(MPRR_OP_WRITE);
TRACE_DEFINE_ENUM(MPRR_OP_FLUSH);
TRACE_DEFINE_ENUM(MPRR_OP_DISCARD);
TRACE_DEFINE_ENUM(MPRR_OP_WRITE_ZEROES);
TRACE_DEFINE_ENUM(GATE_OPEN_LOW);
TRACE_DEFINE_ENUM(GATE_OPEN_SETTLED);
TRACE_DEFINE_ENUM(GATE_OPEN_DEADLINE);
TRACE_DEFINE_ENUM(GATE_OPEN_CHANGE);
TRACE_DEFINE_ENUM(GATE_OPEN_SUSPEND);

/* A request, or a bio in bio mode, goes to a path; what the path refuses comes again. */
TRACE_EVENT(mprr_path_chosen,
	    TP_PROTO(const struct mprr_path *path, enum req_op op, u64 sector, u32 bytes),
	    TP_ARGS(path, op, sector, bytes),
	    TP_STRUCT__entry(__field(dev_t, map)
			     __field(dev_t, path)
			     __field(u64, sector)
			     __field(u32, bytes)
			     __field(u32, op)),
	    TP_fast_assign(__entry->map = mprr_map_devt(path->group->map);
			   __entry->path = path->dev->bdev->bd_dev;
			   __entry->sector = bytes ? sector : 0;
			   __entry->bytes = bytes;
			   __entry->op = (__force u32)op;),
	    TP_printk("map=%u:%u path=%u:%u sector=%llu bytes=%u op=%s",
		      MAJOR(__entry->map), MINOR(__entry->map),
		      MAJOR(__entry->path), MINOR(__entry->path),
		      __entry->sector, __entry->bytes,
		      __print_symbolic(__entry->op,
				       { MPRR_OP_READ, "read" },
				       { MPRR_OP_WRITE, "write" },
				       { MPRR_OP_FLUSH, "flush" },
				       { MPRR_OP_DISCARD, "discard" },
				       { MPRR_OP_WRITE_ZEROES, "write_zeroes" })));

DECLARE_EVENT_CLASS(mprr_path_state,
		    TP_PROTO(const struct mprr_path *path),
		    TP_ARGS(path),
		    TP_STRUCT__entry(__field(dev_t, map)
				     __field(dev_t, path)
				     __field(u32, group)
				     __field(u32, fail_count)
				     __field(u32, valid_paths)),
		    TP_fast_assign(__entry->map = mprr_map_devt(path->group->map);
				   __entry->path = path->dev->bdev->bd_dev;
				   __entry->group = path->group->nr;
				   __entry->fail_count = path->fail_count;
				   __entry->valid_paths = path->group->map->nr_valid_paths;),
		    TP_printk("map=%u:%u path=%u:%u group=%u fail_count=%u valid_paths=%u",
			      MAJOR(__entry->map), MINOR(__entry->map),
			      MAJOR(__entry->path), MINOR(__entry->path),
			      __entry->group, __entry->fail_count, __entry->valid_paths));

DEFINE_EVENT(mprr_path_state, mprr_path_failed,
	     TP_PROTO(const struct mprr_path *path), TP_ARGS(path));
DEFINE_EVENT(mprr_path_state, mprr_path_reinstated,
	     TP_PROTO(const struct mprr_path *path), TP_ARGS(path));

/* I/O goes to another group; 0 is none. */
TRACE_EVENT(mprr_group_switched,
	    TP_PROTO(const struct mprr_map *map, unsigned int from, unsigned int to),
	    TP_ARGS(map, from, to),
	    TP_STRUCT__entry(__field(dev_t, map)
			     __field(u32, from)
			     __field(u32, to)),
	    TP_fast_assign(__entry->map = mprr_map_devt(map);
			   __entry->from = from;
			   __entry->to = to;),
	    TP_printk("map=%u:%u from=%u to=%u", MAJOR(__entry->map), MINOR(__entry->map),
		      __entry->from, __entry->to));

/* The gate holds requests from now on. */
TRACE_EVENT(mprr_gate_closed,
	    TP_PROTO(const struct mprr_gate *gate, unsigned int in_flight),
	    TP_ARGS(gate, in_flight),
	    TP_STRUCT__entry(__field(dev_t, map)
			     __field(u32, in_flight)
			     __field(u32, cap)),
	    TP_fast_assign(__entry->map = disk_devt(gate->queue->disk);
			   __entry->in_flight = in_flight;
			   __entry->cap = gate->cap;),
	    TP_printk("map=%u:%u in_flight=%u cap=%u", MAJOR(__entry->map), MINOR(__entry->map),
		      __entry->in_flight, __entry->cap));

TRACE_EVENT(mprr_gate_opened,
	    TP_PROTO(const struct mprr_gate *gate, unsigned int reason, u64 held_ns),
	    TP_ARGS(gate, reason, held_ns),
	    TP_STRUCT__entry(__field(dev_t, map)
			     __field(u32, reason)
			     __field(u64, held_ns)
			     __field(u32, in_flight)),
	    TP_fast_assign(__entry->map = disk_devt(gate->queue->disk);
			   __entry->reason = reason;
			   __entry->held_ns = held_ns;
			   __entry->in_flight = atomic_read(&gate->in_flight);),
	    TP_printk("map=%u:%u reason=%s held_us=%llu.%03llu in_flight=%u",
		      MAJOR(__entry->map), MINOR(__entry->map),
		      __print_symbolic(__entry->reason,
				       { GATE_OPEN_LOW, "low" },
				       { GATE_OPEN_SETTLED, "settled" },
				       { GATE_OPEN_DEADLINE, "deadline" },
				       { GATE_OPEN_CHANGE, "change" },
				       { GATE_OPEN_SUSPEND, "suspend" }),
		      __entry->held_ns / 1000, __entry->held_ns % 1000, __entry->in_flight));

/* A flow looks as if it would merge. */
TRACE_EVENT(mprr_trial_began,
	    TP_PROTO(const struct mprr_gate *gate),
	    TP_ARGS(gate),
	    TP_STRUCT__entry(__field(dev_t, map)
			     __field(u64, trials)),
	    TP_fast_assign(__entry->map = disk_devt(gate->queue->disk);
			   __entry->trials = gate->nr_trials;),
	    TP_printk("map=%u:%u trials=%llu", MAJOR(__entry->map), MINOR(__entry->map),
		      __entry->trials));

/* The gate no longer works for this flow; it merged while it did if proven. */
TRACE_EVENT(mprr_trial_ended,
	    TP_PROTO(const struct mprr_gate *gate),
	    TP_ARGS(gate),
	    TP_STRUCT__entry(__field(dev_t, map)
			     __field(bool, proven)),
	    TP_fast_assign(__entry->map = disk_devt(gate->queue->disk);
			   __entry->proven = gate->proven;),
	    TP_printk("map=%u:%u proven=%d", MAJOR(__entry->map), MINOR(__entry->map),
		      __entry->proven));

#endif /* DM_MPATH_TRACE_H */

/* Kbuild says where this file is (TRACE_INCLUDE_PATH, TRACE_INCLUDE_FILE). */
#include <trace/define_trace.h>
