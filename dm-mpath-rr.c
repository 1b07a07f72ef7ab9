// SPDX-License-Identifier: GPL-2.0
/*
 * The target: requests in, clones out, completions back; suspend and resume;
 * limits and ioctl; loading and unloading of the module.
 *
 * DOC: the request path
 *
 *	elevator of the map -> mprr_busy() -> mprr_clone_and_map_rq()
 *	  -> dm-rq clones the bios and inserts the clone into the path's queue
 *	  -> mprr_rq_end_io() -> mprr_release_clone_rq()
 *
 * mprr_clone_and_map_rq() runs in queue_rq (process context or kblockd, under
 * RCU: no sleeping), mprr_rq_end_io() in softirq.  Neither takes a lock while
 * nothing changes.  In-flight accounting starts in alloc_clone() and ends exactly
 * once: there if no clone could be had, else in mprr_rq_end_io() or, for a clone
 * that the path did not take, in mprr_release_clone_rq() with a map context.
 *
 * dm-rq stops the machine at a result that it does not know: only the DM_MAPIO_*
 * and DM_ENDIO_* values named here may leave these functions.
 */

#include <linux/dm-ioctl.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dm-mpath-bio.h"
#include "dm-mpath-rr.h"
#include "dm-mpath-stats.h"
#include "dm-mpath-trace.h"
#include "dm-path-selector.h"
#include "dm-rq-bundle.h"
#include "dm-rq-merge.h"
#include "dm-rq-single.h"
#include "dm-rr-auto.h"

struct workqueue_struct *mprr_wq;

static bool takeover;
module_param(takeover, bool, 0444);
MODULE_PARM_DESC(takeover, "Also be the target \"multipath\", in place of the in-kernel one (default: no)");

static struct mprr_io *get_io(const union map_info *info)
{
	return info->ptr;
}

static void start_io(struct mprr_io *io, struct mprr_path *path, struct request *rq)
{
	const struct mprr_selector_type *ps = path->group->ps_type;
	unsigned int nr_bios;

	io->path = path;
	io->rq = rq;
	io->nr_bytes = blk_rq_bytes(rq);
	trace_mprr_path_chosen(path, req_op(rq), blk_rq_pos(rq), io->nr_bytes);
	mprr_stats_start(io);
	io->sent_ns = ps->timed ? ktime_get_ns() : 0;
	if (ps->start_io)
		ps->start_io(path, io->nr_bytes);
	nr_bios = mprr_gate_start(path->group->map, io, rq);
	mprr_bundle(io, rq, nr_bios);
}

/* It was not served: how long that took says nothing about the path. */
static void drop_sample(struct mprr_io *io)
{
	io->start_ns = 0;
	io->sent_ns = 0;
}

static void end_io(struct mprr_io *io)
{
	const struct mprr_selector_type *ps = io->path->group->ps_type;

	if (ps->end_io)
		ps->end_io(io->path, io->nr_bytes, io->sent_ns);
	mprr_inflight_end(io->path);
	mprr_gate_end(io->path->group->map, io);
}

/* A clone on this path, counted as in flight, or NULL if the path cannot take one now. */
static struct request *alloc_clone(struct mprr_path *path, struct request *rq)
{
	struct request_queue *q = mprr_path_queue(path);
	struct request *clone = NULL;

	if (!mprr_path_lld_busy(path)) {
		if (!mprr_inflight_start(path))
			return NULL;
		/* The clone must not be merged: dm-rq completes it as a whole. */
		clone = blk_mq_alloc_request(q, rq->cmd_flags | REQ_NOMERGE,
					     BLK_MQ_REQ_NOWAIT);
		if (!IS_ERR(clone))
			return clone;
		mprr_inflight_end(path);
	}

	mprr_stats_busy(path);
	if (clone && blk_queue_dying(q))
		mprr_path_fail(path);
	else
		mprr_inflight_refused(path);
	return NULL;
}

/*
 * Find a path of the group that takes the request.  A path that cannot, and has
 * requests of this map in flight, is left out of later choices until one of
 * them completes; so trying several paths is the exception.
 */
static struct request *clone_on_group(struct mprr_group *group, struct request *rq,
				      size_t nr_bytes, struct mprr_path **chosen)
{
	const struct mprr_selector_type *ps = group->ps_type;
	struct mprr_path *path = ps->select(group, nr_bytes);
	/* Taken once: a try may fail its path. */
	unsigned int tries, most = READ_ONCE(group->nr_active);

	for (tries = 0; path && tries < most; tries++) {
		struct request *clone = alloc_clone(path, rq);

		if (clone) {
			*chosen = path;
			return clone;
		}
		path = ps->another(path, nr_bytes);
	}
	return NULL;
}

static int mprr_clone_and_map_rq(struct dm_target *ti, struct request *rq,
				 union map_info *info, struct request **clone)
{
	struct mprr_map *map = ti->private;
	size_t nr_bytes = blk_rq_bytes(rq);
	struct mprr_group *group;
	struct mprr_path *path;

	mprr_keep_from_elevator(rq);
	if (unlikely(mprr_single_start(map, get_io(info), rq)))
		return DM_MAPIO_SUBMITTED;

	do {
		group = mprr_group_get_current(map);
		if (!group)
			return mprr_is_lost(map) ? DM_MAPIO_KILL : DM_MAPIO_DELAY_REQUEUE;

		if (unlikely(mprr_pg_init_pending(map)) && mprr_pg_init_start(map))
			return DM_MAPIO_DELAY_REQUEUE;

		*clone = clone_on_group(group, rq, nr_bytes, &path);
		if (*clone) {
			(*clone)->cmd_flags |= REQ_FAILFAST_TRANSPORT;
			start_io(get_io(info), path, rq);
			return DM_MAPIO_REMAPPED;
		}
		/* The last path of the group has failed: choose another group. */
	} while (!READ_ONCE(group->nr_active));

	/* All paths are full: the elevator keeps the request. */
	mprr_group_busy(group);
	return DM_MAPIO_REQUEUE;
}

static void mprr_release_clone_rq(struct request *clone, union map_info *info)
{
	if (info) {
		struct mprr_io *io = get_io(info);
		const struct mprr_selector_type *ps = io->path->group->ps_type;

		/* The path did not take the clone. */
		mprr_unbundle(io, io->rq);
		drop_sample(io);
		mprr_stats_refused(io, clone);
		end_io(io);
		mprr_inflight_refused(io->path);
		if (ps->pass)
			ps->pass(io->path);
	}
	blk_mq_free_request(clone);
}

/* The limit that blk_insert_cloned_request() compares the size with. */
static unsigned int max_sectors(const struct queue_limits *limits, const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return limits->max_discard_sectors;
	case REQ_OP_WRITE_ZEROES:
		return limits->max_write_zeroes_sectors;
	default:
		return limits->max_sectors;
	}
}

/*
 * Did the block core refuse the clone, before the path's driver saw it,
 * because it exceeds the path's limits?  blk_insert_cloned_request() has
 * recounted the segments against them.
 */
static bool exceeds_limits(struct request *clone, blk_status_t status)
{
	const struct queue_limits *limits = &clone->q->limits;

	return status == BLK_STS_IOERR && !blk_mq_request_started(clone) &&
	       (blk_rq_sectors(clone) > max_sectors(limits, clone) ||
		clone->nr_phys_segments > limits->max_segments);
}

/*
 * What to do with a failed clone:
 *
 *	status				path	request
 *	RESOURCE, DEV_RESOURCE,
 *	AGAIN				kept	requeued, with a delay
 *	DM_REQUEUE			kept	requeued
 *	verdict of the device (TARGET,
 *	MEDIUM, PROTECTION, NOTSUPP,
 *	NOSPC, RESV_CONFLICT), INVAL,
 *	DURATION_LIMIT			kept	fails with this status
 *	IOERR for exceeded limits	kept	fails with this status
 *	any other			failed	requeued; fails with this status if
 *						no path is left and none is awaited
 */
static int end_error(struct mprr_map *map, struct mprr_path *path, struct request *clone,
		     blk_status_t status)
{
	switch (status) {
	case BLK_STS_RESOURCE:
	case BLK_STS_DEV_RESOURCE:
	case BLK_STS_AGAIN:
		return DM_ENDIO_DELAY_REQUEUE;
	case BLK_STS_DM_REQUEUE:
		return DM_ENDIO_REQUEUE;
	default:
		break;
	}

	if (!mprr_sts_is_path_fault(status))
		return DM_ENDIO_DONE;
	if (exceeds_limits(clone, status)) {
		DMERR_LIMIT("%s: request of %u sectors, %u segments is too large for path %s",
			    mprr_map_name(map), blk_rq_sectors(clone),
			    clone->nr_phys_segments, path->dev->name);
		return DM_ENDIO_DONE;
	}

	mprr_path_fail(path);
	if (mprr_is_lost(map))
		return DM_ENDIO_DONE;
	return DM_ENDIO_REQUEUE;
}

static int mprr_rq_end_io(struct dm_target *ti, struct request *clone,
			  blk_status_t status, union map_info *info)
{
	struct mprr_map *map = ti->private;
	struct mprr_io *io = get_io(info);
	int r = DM_ENDIO_DONE;

	mprr_stats_end(io, clone, status);
	if (unlikely(status)) {
		mprr_unbundle(io, io->rq);
		drop_sample(io);
		r = end_error(map, io->path, clone, status);
		/* Not all of its bios need share this verdict, if a path can tell. */
		if (r == DM_ENDIO_DONE && !mprr_is_lost(map) && mprr_single_want(io, io->rq))
			r = DM_ENDIO_REQUEUE;
	}

	end_io(io);
	return r;
}

static int mprr_busy(struct dm_target *ti)
{
	struct mprr_map *map = ti->private;
	struct mprr_group *group = READ_ONCE(map->current_group);

	/* The end of the activation runs the queue. */
	if (unlikely(mprr_pg_init_running(map)))
		return true;

	if (mprr_gate_busy(map))
		return true;

	/* Without a group, or without a path in it, mapping has to choose one. */
	return group && mprr_group_busy(group);
}

static void mprr_presuspend(struct dm_target *ti)
{
	struct mprr_map *map = ti->private;

	mprr_gate_suspend(map);
	/* In bio mode what waits is in the map, and DM waits for it in any case. */
	if (!dm_noflush_suspending(ti) || mprr_is_bio_map(map))
		mprr_queue_if_no_path_suspend(map);
}

static void mprr_resume(struct dm_target *ti)
{
	struct mprr_map *map = ti->private;

	mprr_gate_resume(map);
	mprr_queue_if_no_path_resume(map);
}

static void mprr_postsuspend(struct dm_target *ti)
{
	struct mprr_map *map = ti->private;

	/* A message that runs now must not start what is ended here. */
	mutex_lock(&map->message_mutex);
	mprr_pg_init_stop(map);
	mprr_bio_drain(map);
	flush_work(&map->event_work);
	mutex_unlock(&map->message_mutex);
}

static void mprr_dtr(struct dm_target *ti)
{
	struct mprr_map *map = ti->private;

	/* In this order: each may start what the next ones end. */
	mprr_pg_init_stop(map);
	cancel_delayed_work_sync(&map->no_path_work);
	mprr_bio_drain(map);
	flush_work(&map->event_work);
	mprr_rr_auto_exit(map);
	mprr_map_destroy(map);
}

static int mprr_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn,
				void *data)
{
	struct mprr_map *map = ti->private;
	unsigned int g, i;
	int r;

	for (g = 0; g < map->nr_groups; g++) {
		struct mprr_group *group = map->groups[g];

		for (i = 0; i < group->nr_paths; i++) {
			r = fn(ti, group->paths[i]->dev, ti->begin, ti->len, data);
			if (r)
				return r;
		}
	}
	return 0;
}

static void mprr_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	mprr_limits_keep_max_sectors(limits);
}

/* All paths are full: an ioctl waits in a path's own queue, failed or not. */
static struct mprr_path *any_path(struct mprr_group *group)
{
	unsigned int i = find_first_bit(group->active, group->nr_paths);

	return group->paths[i < group->nr_paths ? i : 0];
}

/**
 * mprr_prepare_ioctl - the path that an ioctl goes to
 * @ti: the DM target
 * @bdev: set to the path's device
 * @cmd: the ioctl, 0 where the kernel does not tell
 * @forward: set to false if the target answered by itself
 *
 * Context: process, the live table is held; sleeps only to probe paths.
 * Return: 0, 1 if DM has to ask for CAP_SYS_RAWIO because the map is not the
 * whole device, -EIO without a path, or -ENOTCONN to make DM wait and ask again
 * until a fatal signal comes; for an ioctl of DM's own, its result.
 */
int mprr_prepare_ioctl(struct dm_target *ti, struct block_device **bdev,
		       unsigned int cmd, bool *forward)
{
	struct mprr_map *map = ti->private;
	struct mprr_group *group;
	struct mprr_path *path;

	if (_IOC_TYPE(cmd) == DM_IOCTL) {
		*forward = false;
		return cmd == DM_MPATH_PROBE_PATHS ? mprr_probe_paths(map) : -ENOTTY;
	}

	group = mprr_group_get_current(map);
	if (!group)
		return mprr_is_lost(map) ? -EIO : -ENOTCONN;
	if (mprr_pg_init_pending(map) && mprr_pg_init_start(map))
		return -ENOTCONN;

	/* An ioctl is no request of a run: nothing is chosen for it. */
	path = mprr_selector_peek(group);
	if (!path)
		path = any_path(group);

	*bdev = path->dev->bdev;
	/* Not the whole device: DM asks for CAP_SYS_RAWIO. */
	return ti->len != bdev_nr_sectors(*bdev);
}

#define MPRR_TARGET_OPS							\
	.features		= DM_TARGET_SINGLETON | DM_TARGET_IMMUTABLE |	\
				  DM_TARGET_PASSES_INTEGRITY |			\
				  MPRR_ATOMIC_WRITES,				\
	.module			= THIS_MODULE,				\
	.ctr			= mprr_table_ctr,			\
	.dtr			= mprr_dtr,				\
	.map			= mprr_bio_map,				\
	.end_io			= mprr_bio_end_io,			\
	.clone_and_map_rq	= mprr_clone_and_map_rq,		\
	.release_clone_rq	= mprr_release_clone_rq,		\
	.rq_end_io		= mprr_rq_end_io,			\
	.presuspend		= mprr_presuspend,			\
	.presuspend_undo	= mprr_resume,				\
	.postsuspend		= mprr_postsuspend,			\
	.resume			= mprr_resume,				\
	.status			= mprr_status,				\
	.message		= mprr_message,				\
	.prepare_ioctl		= mprr_prepare_ioctl_op,			\
	.iterate_devices	= mprr_iterate_devices,			\
	.io_hints		= mprr_io_hints,			\
	.busy			= mprr_busy

static struct target_type mprr_target = {
	.name		= "mpath-rr",
	.version	= {MPRR_VERSION_MAJOR, MPRR_VERSION_MINOR, MPRR_VERSION_PATCH},
	MPRR_TARGET_OPS,
};

static struct target_type multipath_target = {
	.name		= "multipath",
	.version	= MPRR_MULTIPATH_VERSION,
	MPRR_TARGET_OPS,
};

static int __init register_takeover(void)
{
	int r;

	if (!takeover)
		return 0;
	r = dm_register_target(&multipath_target);
	if (r)
		DMERR("takeover: target \"multipath\" exists, unload dm_multipath first (%d)", r);
	return r;
}

static int __init mprr_init(void)
{
	int r;

	mprr_wq = alloc_workqueue("mprr_events", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!mprr_wq)
		return -ENOMEM;
	r = mprr_pg_init_wq_init();
	if (r)
		goto err_wq;
	r = mprr_bundle_init();
	if (r)
		goto err_pg_init_wq;
	r = mprr_single_init();
	if (r)
		goto err_bundle;
	r = mprr_gate_worker_init();
	if (r)
		goto err_single;
	r = mprr_bio_wq_init();
	if (r)
		goto err_gate_worker;

	/* The name that may be taken comes first. */
	r = register_takeover();
	if (r)
		goto err_bio_wq;
	r = dm_register_target(&mprr_target);
	if (r) {
		DMERR("cannot register the target \"mpath-rr\" (%d)", r);
		goto err_takeover;
	}

	DMINFO("version %s loaded, target%s", MPRR_VERSION,
	       takeover ? "s mpath-rr and multipath" : " mpath-rr");
	return 0;

err_takeover:
	if (takeover)
		dm_unregister_target(&multipath_target);
err_bio_wq:
	mprr_bio_wq_exit();
err_gate_worker:
	mprr_gate_worker_exit();
err_single:
	mprr_single_exit();
err_bundle:
	mprr_bundle_exit();
err_pg_init_wq:
	mprr_pg_init_wq_exit();
err_wq:
	destroy_workqueue(mprr_wq);
	return r;
}

static void __exit mprr_exit(void)
{
	dm_unregister_target(&mprr_target);
	if (takeover)
		dm_unregister_target(&multipath_target);
	mprr_bio_wq_exit();
	mprr_gate_worker_exit();
	mprr_single_exit();
	mprr_bundle_exit();
	mprr_pg_init_wq_exit();
	destroy_workqueue(mprr_wq);
}

module_init(mprr_init);
module_exit(mprr_exit);

MODULE_DESCRIPTION("device-mapper multipath target with a working, tunable round-robin");
MODULE_AUTHOR("dm-mpath-rr developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(MPRR_VERSION);
MODULE_ALIAS("dm-mpath-rr");
