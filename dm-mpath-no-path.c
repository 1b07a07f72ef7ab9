// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to I/O while no path is valid: queue_if_no_path and its timer.
 *
 * DOC: queue_if_no_path
 *
 * On: requests wait (they are requeued to the block layer, nothing is held in
 * the target; in bio mode bios are held by dm-mpath-bio.c) until a path is
 * reinstated, queueing is switched off or the timer ends it.  Off: they fail.
 * While DM suspends without flushing, requests wait in any case, because the next
 * table may have paths.
 *
 * A flush suspend, and any in bio mode, must not wait for what no path can take:
 * it switches queueing off and resume restores it; MPRR_SAVED_QUEUE_IF_NO_PATH is
 * what resume restores and follows each deliberate change.
 *
 * The timer is a delayed work item, so that what it does may sleep; it is
 * queued under mprr_map.lock and looks again under the lock when it runs.  It
 * cannot be stopped once it runs, so mprr_map.no_path_ends says which wait it is.
 */

#include <linux/moduleparam.h>

#include "dm-mpath-bio.h"
#include "dm-mpath-rr.h"
#include "dm-rq-merge.h"

static unsigned long queue_if_no_path_timeout_secs;
module_param(queue_if_no_path_timeout_secs, ulong, 0644);
MODULE_PARM_DESC(queue_if_no_path_timeout_secs,
		 "Seconds without a valid path after which queue_if_no_path ends; 0 (default): never");

/**
 * mprr_is_lost - is there no path for a request, and none to wait for?
 * @map: the map
 *
 * One look at all of it: a path that comes back just before queueing is switched
 * off must not look like no path and no queueing.
 *
 * Context: any; takes &mprr_map.lock, so only for what has failed already.
 * Return: true if requests fail; false if one would find a path or waits for it.
 */
bool mprr_is_lost(struct mprr_map *map)
{
	unsigned long flags;
	bool lost;

	spin_lock_irqsave(&map->lock, flags);
	lost = !map->nr_valid_paths && !test_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags) &&
	       !dm_noflush_suspending(map->ti);
	spin_unlock_irqrestore(&map->lock, flags);
	return lost;
}

/**
 * mprr_map_run_queue - let all waiting requests be tried again, now
 * @map: the map
 *
 * Both those that wait in the elevator or on the dispatch list and those that
 * were requeued with a delay; in bio mode, those that are held.
 *
 * Context: any.
 */
void mprr_map_run_queue(struct mprr_map *map)
{
	struct mapped_device *md = dm_table_get_md(map->ti->table);

	if (mprr_is_bio_map(map)) {
		mprr_bio_kick(map);
		return;
	}
	/* A table without paths takes the type of a live bio-based table. */
	if (!queue_is_mq(dm_disk(md)->queue))
		return;
	mprr_gate_kick(map);
	dm_table_run_md_queue_async(map->ti->table);
	dm_mq_kick_requeue_list(md);
}

/**
 * mprr_no_path_timeout_default - how long maps wait that say nothing themselves
 *
 * Return: seconds, 0 for ever.
 */
unsigned long mprr_no_path_timeout_default(void)
{
	return READ_ONCE(queue_if_no_path_timeout_secs);
}

/* Seconds, 0 for ever; the upper bound keeps the product far from overflow. */
static unsigned long timeout_secs(const struct mprr_map *map)
{
	unsigned int secs = READ_ONCE(map->no_path_timeout);

	return min(secs == MPRR_UNSET ? mprr_no_path_timeout_default() : secs, 86400UL * 365);
}

/**
 * mprr_no_path_timer_start_locked - start the timer if it is needed
 * @map: the map
 *
 * Does nothing while a path is valid, queueing is off, no time-out is set, or
 * the timer runs already.
 *
 * Context: any; &mprr_map.lock held.
 */
void mprr_no_path_timer_start_locked(struct mprr_map *map)
{
	unsigned long secs = timeout_secs(map), ends = jiffies + secs * HZ;

	lockdep_assert_held(&map->lock);
	if (secs && !map->nr_valid_paths &&
	    test_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags) &&
	    queue_delayed_work(mprr_wq, &map->no_path_work, secs * HZ))
		map->no_path_ends = ends;
}

/**
 * mprr_no_path_timer_stop_locked - the wait is over: a path came back, or nothing waits
 * @map: the map
 *
 * Context: any; &mprr_map.lock held.
 */
void mprr_no_path_timer_stop_locked(struct mprr_map *map)
{
	lockdep_assert_held(&map->lock);
	cancel_delayed_work(&map->no_path_work);
}

/**
 * mprr_no_path_timeout_changed - the map's own time-out has another value
 * @map: the map
 *
 * What waits without a path waits from now on for the new time.
 *
 * Context: process; may be called in the constructor.
 */
void mprr_no_path_timeout_changed(struct mprr_map *map)
{
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	mprr_no_path_timer_stop_locked(map);
	mprr_no_path_timer_start_locked(map);
	spin_unlock_irqrestore(&map->lock, flags);
}

/**
 * mprr_queue_if_no_path_set - switch queueing on or off, for good
 * @map: the map
 * @on: wait or fail
 *
 * Context: any.
 */
void mprr_queue_if_no_path_set(struct mprr_map *map, bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	/* A suspend that has begun meanwhile would wait for what is queued. */
	assign_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags,
		   on && !test_bit(MPRR_SUSPENDING, &map->flags));
	assign_bit(MPRR_SAVED_QUEUE_IF_NO_PATH, &map->flags, on);
	if (on)
		mprr_no_path_timer_start_locked(map);
	else
		mprr_no_path_timer_stop_locked(map);
	spin_unlock_irqrestore(&map->lock, flags);

	if (!on)
		mprr_map_run_queue(map);
}

/**
 * mprr_queue_if_no_path_suspend - a suspend begins: nothing may wait for a path any more
 * @map: the map
 *
 * Context: process.
 */
void mprr_queue_if_no_path_suspend(struct mprr_map *map)
{
	struct request_queue *q = dm_disk(dm_table_get_md(map->ti->table))->queue;
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	set_bit(MPRR_SUSPENDING, &map->flags);
	clear_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags);
	spin_unlock_irqrestore(&map->lock, flags);

	mprr_map_run_queue(map);
	/* DM stops the queue next: those that wait must have failed by then. */
	if (queue_is_mq(q))
		flush_delayed_work(&q->requeue_work);
}

/**
 * mprr_queue_if_no_path_resume - restore what a suspend switched off
 * @map: the map
 *
 * Context: process; also when the suspend was interrupted.
 */
void mprr_queue_if_no_path_resume(struct mprr_map *map)
{
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	clear_bit(MPRR_SUSPENDING, &map->flags);
	if (test_bit(MPRR_SAVED_QUEUE_IF_NO_PATH, &map->flags)) {
		set_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags);
		mprr_no_path_timer_start_locked(map);
	}
	spin_unlock_irqrestore(&map->lock, flags);
}

/**
 * mprr_no_path_work - the time without a path is over: end queueing
 * @work: &mprr_map.no_path_work
 *
 * Context: workqueue.
 */
void mprr_no_path_work(struct work_struct *work)
{
	struct mprr_map *map = container_of(to_delayed_work(work), struct mprr_map,
					    no_path_work);
	unsigned long flags;
	bool expired;

	/*
	 * A path may have come back after the timer ran out, and have failed again:
	 * the wait that has begun then is not over.
	 */
	spin_lock_irqsave(&map->lock, flags);
	expired = !map->nr_valid_paths &&
		  test_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags) &&
		  time_after_eq(jiffies, map->no_path_ends);
	if (expired) {
		clear_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags);
		clear_bit(MPRR_SAVED_QUEUE_IF_NO_PATH, &map->flags);
	}
	spin_unlock_irqrestore(&map->lock, flags);

	if (expired) {
		DMWARN("%s: no path came back in time, queue_if_no_path ends",
		       mprr_map_name(map));
		mprr_map_run_queue(map);
	}
}
