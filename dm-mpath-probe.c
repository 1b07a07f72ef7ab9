// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctl DM_MPATH_PROBE_PATHS: find out which paths of the current group work.
 *
 * DOC: probing paths
 *
 * A program that sends SCSI commands with SG_IO gets a path's error itself: the
 * target never sees it, and goes on to choose that path.  The program asks for a
 * probe then: each active path of the current group reads one block, one path
 * after the other, and fails as by any other read.
 *
 * One probe runs at a time; who asks meanwhile waits and takes its result, if
 * it was for the group that is current now.  While it runs, a message or an
 * event that makes the map choose its group anew takes effect at its end, or
 * the result would be that of a group that nobody uses.
 *
 * It owns &mprr_map.probed, nr_probes and probe_wait; the first two are under
 * &mprr_map.lock.
 */

#include "dm-mpath-rr.h"
#include "dm-mpath-stats.h"

/* Read the first block of a path; a wrong status fails it. */
static int probe_path(struct mprr_path *path)
{
	struct block_device *bdev = path->dev->bdev;
	unsigned int size = bdev_logical_block_size(bdev);
	struct page *page;
	struct bio *bio;
	u64 sample_ns;

	if (size > PAGE_SIZE)
		return -EINVAL;
	/* Memory may be waiting for this map. */
	page = alloc_page(GFP_NOIO);
	if (!page)
		return -ENOMEM;

	bio = bio_alloc(bdev, 1, REQ_OP_READ | REQ_FAILFAST_TRANSPORT, GFP_NOIO);
	__bio_add_page(bio, page, size, 0);
	sample_ns = mprr_stats_bio_start(path, bio);
	submit_bio_wait(bio);
	mprr_stats_bio_end(path, bio, size, sample_ns);
	if (bio->bi_status && mprr_sts_is_path_fault(bio->bi_status))
		mprr_path_fail(path);
	bio_put(bio);
	__free_page(page);
	return 0;
}

/* Is there nobody to wait for?  Also true if it is another group's probe by now. */
static bool probe_ended(struct mprr_map *map, const struct mprr_group *probed, unsigned int nr)
{
	unsigned long flags;
	bool ended;

	spin_lock_irqsave(&map->lock, flags);
	ended = map->probed != probed || map->nr_probes != nr;
	spin_unlock_irqrestore(&map->lock, flags);
	return ended;
}

/* Make the current group the one that is probed; NULL if there is nothing to do. */
static struct mprr_group *begin_probe(struct mprr_map *map, int *error)
{
	struct mprr_group *group, *done = NULL;
	unsigned long flags;
	unsigned int nr;

	spin_lock_irqsave(&map->lock, flags);
	while (map->probed) {
		done = map->probed;
		nr = map->nr_probes;
		spin_unlock_irqrestore(&map->lock, flags);
		*error = wait_event_interruptible(map->probe_wait, probe_ended(map, done, nr));
		if (*error)
			return NULL;
		spin_lock_irqsave(&map->lock, flags);
	}
	group = map->current_group;
	/* A group that is not active yet cannot read; the result of another caller will do. */
	if (group == done || test_bit(MPRR_QUEUE_IO, &map->flags) || dm_suspended(map->ti))
		group = NULL;
	if (group) {
		map->probed = group;
		map->nr_probes++;
	}
	spin_unlock_irqrestore(&map->lock, flags);
	return group;
}

static void end_probe(struct mprr_map *map)
{
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	mprr_group_probed_locked(map);
	spin_unlock_irqrestore(&map->lock, flags);
	wake_up_all(&map->probe_wait);
	mprr_map_run_queue(map);
}

/**
 * mprr_probe_paths - let each active path of the current group read one block
 * @map: the map
 *
 * Context: process, sleeps as long as the paths take; the live table is held.
 * Return: 0 if any path of the map is valid then, -ENOTCONN if none is, -EINVAL
 * if a path's block is larger than a page, -ENOMEM, or -ERESTARTSYS if a signal
 * ends the wait for another caller's probe.
 */
int mprr_probe_paths(struct mprr_map *map)
{
	struct mprr_group *group;
	unsigned int i;
	int r = 0;

	group = begin_probe(map, &r);
	if (r)
		return r;
	for (i = 0; group && !r && i < group->nr_paths; i++) {
		if (test_bit(i, group->active))
			r = probe_path(group->paths[i]);
	}
	if (group)
		end_probe(map);
	if (r)
		return r;
	return READ_ONCE(map->nr_valid_paths) ? 0 : -ENOTCONN;
}
