// SPDX-License-Identifier: GPL-2.0
/*
 * The bios of a failed request, one by one.
 *
 * DOC: one bad block
 *
 * A request that merged from many bios fails as a whole when the device has a
 * verdict on one block of it (medium error, protection).  The other bios would
 * have been served had they not merged, and an error must not be invented.  So
 * such a request is requeued, and when it comes again it is not cloned: a work
 * item sends each bio by itself and completes it with its own status.
 *
 * Rare and slow is fine here; it runs in process context and sleeps.  The
 * request stays started meanwhile, so a suspend waits for it.  Where a bio must
 * wait for a path, the rest of the request is given back to the block layer.
 */

#include "dm-mpath-rr.h"
#include "dm-mpath-stats.h"
#include "dm-rq-bundle.h"
#include "dm-rq-single.h"

/* Its work items wait for I/O. */
static struct workqueue_struct *single_wq;

/**
 * mprr_single_want - shall the bios of a failed request be tried one by one?
 * @io: the request's data
 * @rq: the request, without a bundle
 *
 * Context: any.
 * Return: true if so; the request must be requeued then.
 */
bool mprr_single_want(struct mprr_io *io, struct request *rq)
{
	if (rq->bio == rq->biotail || (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE))
		return false;
	io->single = rq->bio;
	return true;
}

static struct mprr_path *any_active_path(struct mprr_group *group)
{
	unsigned int i = find_first_bit(group->active, group->nr_paths);

	return i < group->nr_paths ? group->paths[i] : NULL;
}

/* BLK_STS_DM_REQUEUE: not now. */
static blk_status_t send_bio(struct mprr_map *map, struct bio *bio)
{
	blk_status_t status = BLK_STS_IOERR;

	for (;;) {
		struct mprr_group *group = mprr_group_get_current(map);
		struct mprr_path *path;
		struct bio *clone;
		u64 sample_ns;

		/* As for a request: the last path's own verdict. */
		if (!group)
			return mprr_is_lost(map) ? status : BLK_STS_DM_REQUEUE;
		if (mprr_pg_init_pending(map) && mprr_pg_init_start(map))
			return BLK_STS_DM_REQUEUE;
		path = any_active_path(group);
		if (!path)
			continue;	/* it failed right now: another group */

		clone = mprr_bundle_clone_bio(path->dev->bdev, bio);
		clone->bi_opf |= REQ_NOMERGE | REQ_FAILFAST_TRANSPORT;
		sample_ns = mprr_stats_bio_start(path, clone);
		submit_bio_wait(clone);
		status = clone->bi_status;
		mprr_stats_bio_end(path, clone, bio->bi_iter.bi_size, sample_ns);
		bio_put(clone);

		switch (status) {
		case BLK_STS_RESOURCE:
		case BLK_STS_DEV_RESOURCE:
		case BLK_STS_AGAIN:
		case BLK_STS_DM_REQUEUE:
			return BLK_STS_DM_REQUEUE;
		default:
			break;
		}
		if (!status || !mprr_sts_is_path_fault(status))
			return status;
		mprr_path_fail(path);
	}
}

static void single_work(struct work_struct *work)
{
	struct mprr_io *io = container_of(work, struct mprr_io, work);
	struct mprr_map *map = io->map;
	struct request *rq = io->rq;

	while (rq->bio) {
		struct bio *bio = rq->bio;
		blk_status_t status = send_bio(map, bio);

		if (status == BLK_STS_DM_REQUEUE) {
			struct mapped_device *md = dm_table_get_md(map->ti->table);

			/* As dm-rq does: the request no longer holds the device. */
			blk_mq_requeue_request(rq, true);
			dm_put(md);
			return;
		}
		/* Ends this bio; the next one becomes the first. */
		blk_update_request(rq, status, bio->bi_iter.bi_size);
	}
	blk_mq_complete_request(rq);
}

/**
 * mprr_single_start - take over a request that mprr_single_want() wanted
 * @map: the map
 * @io: the request's data
 * @rq: the request, not yet cloned
 *
 * Context: queue_rq, atomic.
 * Return: true if it is taken over: dm-rq is told DM_MAPIO_SUBMITTED.
 */
bool mprr_single_start(struct mprr_map *map, struct mprr_io *io, struct request *rq)
{
	/* More bios may have come to the request; it is the same one all the same. */
	if (likely(!io->single))
		return false;
	if (io->single != rq->bio) {
		io->single = NULL;
		return false;
	}

	io->single = NULL;
	io->map = map;
	io->rq = rq;
	INIT_WORK(&io->work, single_work);
	queue_work(single_wq, &io->work);
	return true;
}

/**
 * mprr_single_init - make what the work runs on
 *
 * Return: 0 or -ENOMEM.
 */
int mprr_single_init(void)
{
	single_wq = alloc_workqueue("mprr_single", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return single_wq ? 0 : -ENOMEM;
}

/**
 * mprr_single_exit - free it; no request is left
 */
void mprr_single_exit(void)
{
	destroy_workqueue(single_wq);
}
