// SPDX-License-Identifier: GPL-2.0
/*
 * Accounting of what is in flight, and the busy answer made from it.
 *
 * DOC: busy, so that I/O waits and merges on the map's queue
 *
 * A path is *open* while it can take another request.  It is closed when as
 * many clones are in flight on it as it is deep (the LUN's queue depth where
 * SCSI tells it, else the tags of its queue), or when it refused a clone or its
 * driver says that it is busy.  A completion on the path opens it again.  When
 * no active path of the group is open, the map answers busy, and requests stay
 * in its elevator where they can merge.
 *
 * Two rules make sure that nothing waits for ever:
 *
 * - A path is closed only while something of this map is in flight on it, so a
 *   completion that opens it is bound to come.  Closing and the last completion
 *   may cross on two CPUs: whoever closes looks at the counter again after a
 *   full barrier, whoever completes looks at the bit after one.
 * - Whoever refuses a request says so in MPRR_REFUSED and then looks again for
 *   an open path; whoever opens a path then looks at MPRR_REFUSED and runs the
 *   map's queue.  One of the two sees the other.  (blk-mq itself would run the
 *   queue again only when a request of the same hardware queue is freed, or
 *   after 3 ms.)
 *
 * Called from queue_rq (process context or kblockd) and from completion
 * (softirq).  Takes no lock, never sleeps, and its cost does not depend on the
 * number of paths but for one bitmap search.
 */

#include <linux/bitmap.h>
#include <scsi/scsi_device.h>

#include "dm-path-selector.h"
#include "dm-rq-merge.h"

/* How many clones the path takes at a time; admins and SCSI change it live. */
static unsigned int path_depth(const struct mprr_path *path)
{
	if (path->sdev)
		return max_t(unsigned int, READ_ONCE(path->sdev->queue_depth), 1);
	return max_t(unsigned int, READ_ONCE(mprr_path_queue(path)->nr_requests), 1);
}

static void path_open(struct mprr_path *path)
{
	struct mprr_map *map = path->group->map;

	set_bit(path->index, path->group->open);

	/* Pairs with the barrier in mprr_group_busy(). */
	smp_mb__after_atomic();
	if (test_bit(MPRR_REFUSED, &map->flags) &&
	    test_and_clear_bit(MPRR_REFUSED, &map->flags))
		dm_table_run_md_queue_async(map->ti->table);
}

/* Close the path unless fewer than @least clones are in flight by then. */
static bool path_close(struct mprr_path *path, unsigned int least)
{
	clear_bit(path->index, path->group->open);

	/* Pairs with the barrier in mprr_inflight_end(). */
	smp_mb__after_atomic();
	if (atomic_read(&path->in_flight) >= least)
		return true;

	path_open(path);
	return false;
}

/**
 * mprr_inflight_init - all paths of a new group are open
 * @group: the group, not yet in use
 */
void mprr_inflight_init(struct mprr_group *group)
{
	bitmap_fill(group->open, group->nr_paths);
}

/**
 * mprr_inflight_start - a clone goes to the path
 * @path: the path
 *
 * Closes the path when this clone fills it, so that the next request is
 * refused at the cheapest place, before it is started.
 *
 * Context: any.
 */
void mprr_inflight_start(struct mprr_path *path)
{
	unsigned int depth = path_depth(path);

	if (atomic_inc_return(&path->in_flight) >= depth)
		path_close(path, depth);
}

/**
 * mprr_inflight_end - a clone left the path: completed, failed or handed back
 * @path: the path, as given to mprr_inflight_start()
 *
 * Context: any.
 */
void mprr_inflight_end(struct mprr_path *path)
{
	/* Fully ordered: pairs with the barrier in path_close(). */
	unsigned int left = atomic_dec_return(&path->in_flight);

	if (!test_bit(path->index, path->group->open) &&
	    (!left || left < path_depth(path)))
		path_open(path);
}

/**
 * mprr_inflight_refused - the path could not take a clone
 * @path: the path
 *
 * Closes the path until a clone of this map completes on it.  With none in
 * flight (others use up the device) no completion would come: the path stays
 * open.
 *
 * Context: any; @path does not count the refused clone any more.
 * Return: true if the path is closed now.
 */
bool mprr_inflight_refused(struct mprr_path *path)
{
	return path_close(path, 1);
}

/**
 * mprr_path_lld_busy - does the path's driver say that it is busy?
 * @path: the path
 *
 * Asked only while something of this map is in flight on the path: a refusal
 * needs a completion that ends it.
 *
 * Context: any.
 * Return: true if it does.
 */
bool mprr_path_lld_busy(const struct mprr_path *path)
{
	return atomic_read(&path->in_flight) && blk_lld_busy(mprr_path_queue(path));
}

/* How long a refusal alone keeps a path closed, at most. */
#define MPRR_REFUSED_MS		20

/*
 * A refusal is no promise that a completion is near: one clone may take seconds
 * while the path, refused for a moment because others had filled its host, has
 * room again.  So, while all paths are closed, those that are not full are
 * opened from time to time.  O(paths), but at most once in 20 ms.
 */
static void reopen_refused(struct mprr_group *group)
{
	unsigned int i;

	WRITE_ONCE(group->reopened, jiffies);
	for_each_set_bit(i, group->active, group->nr_paths) {
		struct mprr_path *path = group->paths[i];

		if (atomic_read(&path->in_flight) < path_depth(path))
			set_bit(i, group->open);
	}
}

/**
 * mprr_group_busy - must requests wait on the map's queue?
 * @group: the current group
 *
 * When the answer is yes, the next path that opens runs the map's queue.
 *
 * Context: any, lockless.
 * Return: true if the group has active paths and none of them is open.
 */
bool mprr_group_busy(struct mprr_group *group)
{
	struct mprr_map *map = group->map;

	if (!READ_ONCE(group->nr_active) ||
	    mprr_group_next_usable(group, 0) < group->nr_paths)
		return false;

	if (time_after(jiffies, READ_ONCE(group->reopened) + msecs_to_jiffies(MPRR_REFUSED_MS)))
		reopen_refused(group);

	set_bit(MPRR_REFUSED, &map->flags);

	/* Pairs with the barrier in path_open(). */
	smp_mb__after_atomic();
	return READ_ONCE(group->nr_active) &&
	       mprr_group_next_usable(group, 0) >= group->nr_paths;
}
