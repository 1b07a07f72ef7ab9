// SPDX-License-Identifier: GPL-2.0
/*
 * `queue_mode bio`: bios in, the same bios out to the paths, completions back.
 *
 * DOC: bio mode
 *
 * The map has no elevator and makes no requests: each bio is sent to a path as
 * it is, and what merges does so in the path's own queue.  So a path may be
 * anything that takes bios, a partition or another DM device as well.  No path
 * is ever full, and neither the gate nor the tunables for merging have a meaning.
 *
 *	mprr_bio_map() -> DM submits it to the path -> mprr_bio_end_io()
 *
 * Bios that cannot go now are *held* on a list of the map, under its lock: while
 * no path is valid and queueing is on, while a group is being activated, and
 * when they shall be tried again after an error.  mprr_map.bio_work tries them
 * all; whoever changes what they wait for runs it (mprr_bio_kick()).  A bio is
 * held for a reason only after a look at that reason under the lock, and all
 * reasons change under it: so the kick comes after the bio.  A bio that was sent
 * before is first given back the state in which it came.
 *
 * DM waits for all bios when it suspends, held ones too.  So a suspend, with or
 * without flushing, switches queueing off: what is held fails, or goes back to
 * DM which keeps it for the next table.
 *
 * mprr_bio_map() runs where the bio is submitted, mprr_bio_end_io() in any
 * context; neither sleeps nor takes a lock while nothing changes.
 */

#include <linux/blk-integrity.h>

#include "dm-mpath-bio.h"
#include "dm-mpath-stats.h"
#include "dm-mpath-trace.h"
#include "dm-path-selector.h"

/* What waits for a device's resources is tried again this much later. */
#define MPRR_BIO_RETRY_MS	100

static struct workqueue_struct *mprr_bio_wq;

static struct mprr_bio *get_bio_data(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct mprr_bio));
}

#ifdef CONFIG_BLK_DEV_INTEGRITY
static void record_integrity(struct mprr_bio *io, struct bio *bio)
{
	if (bio_integrity(bio))
		io->integrity_iter = bio_integrity(bio)->bip_iter;
}

static void restore_integrity(const struct mprr_bio *io, struct bio *bio)
{
	if (bio_integrity(bio))
		bio_integrity(bio)->bip_iter = io->integrity_iter;
}
#else
static void record_integrity(struct mprr_bio *io, struct bio *bio)
{
}

static void restore_integrity(const struct mprr_bio *io, struct bio *bio)
{
}
#endif

/* All that a path's driver may change in a bio. */
static void record(struct mprr_bio *io, struct bio *bio)
{
	io->path = NULL;
	io->nr_bytes = bio->bi_iter.bi_size;
	io->iter = bio->bi_iter;
	io->opf = bio->bi_opf;
	io->flags = bio->bi_flags;
	io->remaining = atomic_read(&bio->__bi_remaining);
	io->end_io = bio->bi_end_io;
	record_integrity(io, bio);
}

static void restore(const struct mprr_bio *io, struct bio *bio)
{
	bio->bi_iter = io->iter;
	bio->bi_opf = io->opf;
	bio->bi_flags = io->flags;
	atomic_set(&bio->__bi_remaining, io->remaining);
	bio->bi_end_io = io->end_io;
	restore_integrity(io, bio);
}

static void send(struct mprr_path *path, struct mprr_bio *io, struct bio *bio)
{
	const struct mprr_selector_type *ps = path->group->ps_type;

	io->path = path;
	trace_mprr_path_chosen(path, bio_op(bio), bio->bi_iter.bi_sector, io->nr_bytes);
	io->sample_ns = mprr_stats_bio_start(path, bio);
	io->sent_ns = ps->timed ? ktime_get_ns() : 0;
	/* Counted only: no path is closed for being full, and the gate holds nothing. */
	atomic_inc(&path->in_flight);
	atomic_inc(&path->group->map->gate.in_flight);
	if (ps->start_io)
		ps->start_io(path, io->nr_bytes);

	bio->bi_status = BLK_STS_OK;
	bio_set_dev(bio, path->dev->bdev);
	/*
	 * Whoever polls for the bio would, after a failure, look at one path's queue
	 * with the number of another one's: its path interrupts when it is done.
	 */
	bio->bi_opf = (bio->bi_opf & ~REQ_POLLED) | REQ_FAILFAST_TRANSPORT;
}

/*
 * No group was found: hold the bio, or end it; a DM_MAPIO_* result in @result.
 * False if a path came back just now.
 */
static bool end_without_path(struct mprr_map *map, struct bio *bio, int *result)
{
	unsigned long flags;
	bool lost;

	spin_lock_irqsave(&map->lock, flags);
	lost = !map->nr_valid_paths;
	if (!test_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags)) {
		/* The next table may have paths. */
		*result = dm_noflush_suspending(map->ti) ? DM_MAPIO_REQUEUE : DM_MAPIO_KILL;
	} else if (lost) {
		bio_list_add(&map->held_bios, bio);
		*result = DM_MAPIO_SUBMITTED;
	}
	spin_unlock_irqrestore(&map->lock, flags);
	return lost;
}

/* Hold the bio if an activation is under way: true if it is held. */
static bool hold_for_activation(struct mprr_map *map, struct bio *bio)
{
	unsigned long flags;
	bool hold;

	spin_lock_irqsave(&map->lock, flags);
	/* Its end kicks; so does the end of the map, which allows none. */
	hold = mprr_pg_init_running(map) || test_bit(MPRR_PG_INIT_DISABLED, &map->flags);
	if (hold)
		bio_list_add(&map->held_bios, bio);
	spin_unlock_irqrestore(&map->lock, flags);
	return hold;
}

/* Hold the bio in any case, and try it again after @delay.  It is not ours afterwards. */
static void hold_and_retry(struct mprr_map *map, struct bio *bio, unsigned long delay)
{
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	bio_list_add(&map->held_bios, bio);
	/* Under the lock: the map may be gone as soon as its last bio has left the list. */
	if (delay)
		queue_delayed_work(mprr_bio_wq, &map->bio_work, delay);
	else
		mprr_bio_kick(map);
	spin_unlock_irqrestore(&map->lock, flags);
}

/* Give a bio, in the state in which it came, to a path; a DM_MAPIO_* result. */
static int place(struct mprr_map *map, struct mprr_bio *io, struct bio *bio)
{
	for (;;) {
		struct mprr_group *group = mprr_group_get_current(map);
		struct mprr_path *path;

		if (!group) {
			int result;

			if (end_without_path(map, bio, &result))
				return result;
			continue;
		}

		if (unlikely(mprr_pg_init_pending(map)) && mprr_pg_init_start(map)) {
			if (hold_for_activation(map, bio))
				return DM_MAPIO_SUBMITTED;
			continue;
		}

		path = group->ps_type->select(group, io->nr_bytes);
		if (path) {
			send(path, io, bio);
			return DM_MAPIO_REMAPPED;
		}
		/* Its last path has failed meanwhile. */
	}
}

/**
 * mprr_bio_map - map operation of the target
 * @ti: the DM target
 * @bio: the bio
 *
 * Context: where the bio is submitted.
 * Return: a DM_MAPIO_* value.
 */
int mprr_bio_map(struct dm_target *ti, struct bio *bio)
{
	struct mprr_map *map = ti->private;
	struct mprr_bio *io;

	/*
	 * Only for a table without paths that replaces a table of bio mode and so
	 * takes its type: there is no path, and no room in the bio to queue it.
	 */
	if (!mprr_is_bio_map(map))
		return DM_MAPIO_KILL;

	io = get_bio_data(bio);
	record(io, bio);
	return place(map, io, bio);
}

static void try_again(struct mprr_map *map, struct bio *bio)
{
	struct mprr_bio *io = get_bio_data(bio);

	restore(io, bio);
	switch (place(map, io, bio)) {
	case DM_MAPIO_REMAPPED:
		submit_bio_noacct(bio);
		break;
	case DM_MAPIO_SUBMITTED:
		/* Held once more. */
		break;
	case DM_MAPIO_REQUEUE:
		bio->bi_status = BLK_STS_DM_REQUEUE;
		bio_endio(bio);
		break;
	default:
		bio_io_error(bio);
		break;
	}
}

static struct bio_list take_held(struct mprr_map *map)
{
	struct bio_list held = BIO_EMPTY_LIST;
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	bio_list_merge(&held, &map->held_bios);
	bio_list_init(&map->held_bios);
	spin_unlock_irqrestore(&map->lock, flags);
	return held;
}

static void bio_work(struct work_struct *work)
{
	struct mprr_map *map = container_of(to_delayed_work(work), struct mprr_map, bio_work);
	struct bio_list held = take_held(map);
	struct blk_plug plug;
	struct bio *bio;

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(&held)))
		try_again(map, bio);
	blk_finish_plug(&plug);
}

/**
 * mprr_bio_kick - try all held bios again, now
 * @map: the map
 *
 * Context: any, also with &mprr_map.lock held.
 */
void mprr_bio_kick(struct mprr_map *map)
{
	mod_delayed_work(mprr_bio_wq, &map->bio_work, 0);
}

/*
 * What to do with a failed bio; the table in dm-mpath-rr.c says why.  The path
 * is failed here.
 */
static int end_error(struct mprr_map *map, struct mprr_path *path, struct bio *bio,
		     blk_status_t *status)
{
	unsigned long delay = 0;

	switch (*status) {
	case BLK_STS_RESOURCE:
	case BLK_STS_DEV_RESOURCE:
	case BLK_STS_AGAIN:
	case BLK_STS_DM_REQUEUE:
		delay = msecs_to_jiffies(MPRR_BIO_RETRY_MS);
		break;
	default:
		if (!mprr_sts_is_path_fault(*status))
			return DM_ENDIO_DONE;
		mprr_path_fail(path);
		if (mprr_is_lost(map)) {
			/* As if it had been sent a moment later. */
			*status = BLK_STS_IOERR;
			return DM_ENDIO_DONE;
		}
		break;
	}

	hold_and_retry(map, bio, delay);
	return DM_ENDIO_INCOMPLETE;
}

/**
 * mprr_bio_end_io - end_io operation of the target
 * @ti: the DM target
 * @bio: the bio; not to be touched once it is held for another try
 * @error: its status
 *
 * Context: any.
 * Return: a DM_ENDIO_* value.
 */
int mprr_bio_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct mprr_map *map = ti->private;
	const struct mprr_selector_type *ps;
	struct mprr_path *path;
	struct mprr_bio *io;

	if (!mprr_is_bio_map(map))
		return DM_ENDIO_DONE;
	io = get_bio_data(bio);
	path = io->path;
	if (!path)	/* ended by ourselves */
		return *error == BLK_STS_DM_REQUEUE ? DM_ENDIO_REQUEUE : DM_ENDIO_DONE;

	io->path = NULL;
	ps = path->group->ps_type;
	mprr_stats_bio_end(path, bio, io->nr_bytes, io->sample_ns);
	if (ps->end_io)
		ps->end_io(path, io->nr_bytes, *error ? 0 : io->sent_ns);
	atomic_dec(&path->in_flight);
	atomic_dec(&map->gate.in_flight);
	return likely(!*error) ? DM_ENDIO_DONE : end_error(map, path, bio, error);
}

/**
 * mprr_bio_create - prepare a new map
 * @map: the map
 *
 * Context: constructor.
 */
void mprr_bio_create(struct mprr_map *map)
{
	bio_list_init(&map->held_bios);
	INIT_DELAYED_WORK(&map->bio_work, bio_work);
}

/**
 * mprr_bio_drain - end what is still held, with an error
 * @map: the map
 *
 * DM lets all bios end before it goes on after a suspend.  Only the removal of a
 * device does not wait for those that nobody waits for.
 *
 * Context: process, sleeps; no bio is being mapped any more.
 */
void mprr_bio_drain(struct mprr_map *map)
{
	struct bio_list held;
	struct bio *bio;

	cancel_delayed_work_sync(&map->bio_work);
	held = take_held(map);
	while ((bio = bio_list_pop(&held)))
		bio_io_error(bio);
}

/**
 * mprr_bio_wq_init - make the workqueue on which held bios are tried again
 *
 * Return: 0 or -ENOMEM.
 */
int mprr_bio_wq_init(void)
{
	/* Memory may be waiting for these bios. */
	mprr_bio_wq = alloc_workqueue("mprr_bios", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return mprr_bio_wq ? 0 : -ENOMEM;
}

/**
 * mprr_bio_wq_exit - counterpart of mprr_bio_wq_init()
 */
void mprr_bio_wq_exit(void)
{
	destroy_workqueue(mprr_bio_wq);
}
