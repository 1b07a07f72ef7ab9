// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware handlers (scsi_dh): attach one to a path, activate a group.
 *
 * DOC: pg_init
 *
 * Some arrays serve a LUN through one controller at a time and want to be told
 * when the group changes.  A map with a hardware handler therefore activates
 * each group before I/O goes to it: set_group sets MPRR_PG_INIT_REQUIRED and
 * MPRR_QUEUE_IO, the next request starts one work item per active path of the
 * group, each calls scsi_dh_activate(), and when the last one is done I/O goes
 * on, or the activation is tried again, or the group is passed over.
 *
 * mprr_map.pg_init_in_progress counts work items that are queued or whose
 * callback has not come yet; nothing is started while it is not 0, and suspend
 * and destruction wait for 0.  All state is written under mprr_map.lock.  The
 * callback may come in any context.
 */

#include <scsi/scsi_dh.h>

#include "dm-mpath-bio.h"
#include "dm-mpath-rr.h"

static struct workqueue_struct *mprr_pg_init_wq;

/**
 * mprr_pg_init_require_locked - the current group has changed
 * @map: the map; its current group is not NULL
 *
 * Context: any; &mprr_map.lock held.
 */
void mprr_pg_init_require_locked(struct mprr_map *map)
{
	lockdep_assert_held(&map->lock);
	map->pg_init_count = 0;
	if (map->handler_name) {
		set_bit(MPRR_PG_INIT_REQUIRED, &map->flags);
		set_bit(MPRR_QUEUE_IO, &map->flags);
	} else {
		clear_bit(MPRR_PG_INIT_REQUIRED, &map->flags);
		clear_bit(MPRR_QUEUE_IO, &map->flags);
	}
}

static void start_path_locked(struct mprr_path *path, unsigned long delay)
	__must_hold(&path->group->map->lock)
{
	struct mprr_map *map = path->group->map;

	lockdep_assert_held(&map->lock);
	if (queue_delayed_work(mprr_pg_init_wq, &path->pg_init_work, delay))
		map->pg_init_in_progress++;
}

/**
 * mprr_pg_init_path_locked - activate one path that came back
 * @path: an active path of the current group
 *
 * Context: any; &mprr_map.lock held.
 */
void mprr_pg_init_path_locked(struct mprr_path *path)
{
	struct mprr_map *map = path->group->map;

	lockdep_assert_held(&map->lock);
	if (!test_bit(MPRR_PG_INIT_DISABLED, &map->flags))
		start_path_locked(path, 0);
}

static void start_group_locked(struct mprr_map *map) __must_hold(&map->lock)
{
	struct mprr_group *group = map->current_group;
	unsigned long delay = 0;
	unsigned int i;

	lockdep_assert_held(&map->lock);
	if (map->pg_init_in_progress || !group ||
	    test_bit(MPRR_PG_INIT_DISABLED, &map->flags))
		return;

	map->pg_init_count++;
	clear_bit(MPRR_PG_INIT_REQUIRED, &map->flags);
	if (test_and_clear_bit(MPRR_PG_INIT_DELAY_RETRY, &map->flags))
		delay = msecs_to_jiffies(map->pg_init_delay_ms);
	for (i = 0; i < group->nr_paths; i++)
		if (group->paths[i]->active)
			start_path_locked(group->paths[i], delay);
}

/**
 * mprr_pg_init_start - activate the current group if it is still required
 * @map: the map
 *
 * Context: any.
 * Return: true if I/O has to wait.
 */
bool mprr_pg_init_start(struct mprr_map *map)
{
	unsigned long flags;
	bool wait;

	spin_lock_irqsave(&map->lock, flags);
	if (test_bit(MPRR_PG_INIT_REQUIRED, &map->flags))
		start_group_locked(map);
	/* All its paths failed meanwhile: the next request chooses a group. */
	if (!map->pg_init_in_progress && map->current_group &&
	    !map->current_group->nr_active)
		clear_bit(MPRR_QUEUE_IO, &map->flags);
	wait = mprr_pg_init_pending(map);
	spin_unlock_irqrestore(&map->lock, flags);
	return wait;
}

/* What the end of one activation asks for. */
enum pg_init_verdict {
	PG_INIT_OK,
	PG_INIT_FAIL_PATH,
	PG_INIT_BYPASS_GROUP,
	PG_INIT_RETRY,
	PG_INIT_DELAY_RETRY,
};

/*
 * scsi_dh result -> verdict.  A handler that does not know how to activate
 * (NOSYS) is no fault where the map has no handler any more.
 */
static enum pg_init_verdict judge_activation(const struct mprr_map *map, int result)
{
	switch (result) {
	case SCSI_DH_OK:
		return PG_INIT_OK;
	case SCSI_DH_NOSYS:
		return map->handler_name ? PG_INIT_FAIL_PATH : PG_INIT_OK;
	case SCSI_DH_DEV_TEMP_BUSY:
		return PG_INIT_BYPASS_GROUP;
	case SCSI_DH_RETRY:
		return PG_INIT_DELAY_RETRY;
	case SCSI_DH_IMM_RETRY:
	case SCSI_DH_RES_TEMP_UNAVAIL:
		return PG_INIT_RETRY;
	default:
		return PG_INIT_FAIL_PATH;
	}
}

/* May the current group be activated once more? */
static bool may_retry(struct mprr_map *map)
{
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&map->lock, flags);
	/* While suspending, nothing is started: the next request will ask again. */
	may = map->pg_init_count <= map->pg_init_retries ||
	      test_bit(MPRR_PG_INIT_DISABLED, &map->flags);
	if (may)
		set_bit(MPRR_PG_INIT_REQUIRED, &map->flags);
	spin_unlock_irqrestore(&map->lock, flags);
	return may;
}

/* One activation is over; the last one of a group lets I/O go on. */
static void put_activation(struct mprr_map *map, bool delay_retry)
{
	unsigned long flags;
	bool run = false;

	spin_lock_irqsave(&map->lock, flags);
	/* One path that asks for the pause is enough. */
	if (delay_retry)
		set_bit(MPRR_PG_INIT_DELAY_RETRY, &map->flags);
	if (!--map->pg_init_in_progress) {
		if (test_bit(MPRR_PG_INIT_REQUIRED, &map->flags))
			start_group_locked(map);
		else
			clear_bit(MPRR_QUEUE_IO, &map->flags);
		run = !map->pg_init_in_progress;
		/* Under the lock: whoever waits may free the map once it has seen 0. */
		if (run) {
			mprr_map_run_queue(map);
			wake_up(&map->pg_init_wait);
		}
	}
	spin_unlock_irqrestore(&map->lock, flags);
}

static void activation_done(void *data, int result)
{
	struct mprr_path *path = data;
	struct mprr_group *group = path->group;
	struct mprr_map *map = group->map;
	enum pg_init_verdict verdict = judge_activation(map, result);
	bool retry = verdict == PG_INIT_RETRY || verdict == PG_INIT_DELAY_RETRY;

	if (retry && !may_retry(map))
		verdict = PG_INIT_FAIL_PATH;

	if (verdict == PG_INIT_FAIL_PATH) {
		DMWARN_LIMIT("%s: could not activate path %s (scsi_dh result %d)",
			     mprr_map_name(map), path->dev->name, result);
		mprr_path_fail(path);
	} else if (verdict == PG_INIT_BYPASS_GROUP) {
		mprr_group_bypass(group, true);
	}

	put_activation(map, verdict == PG_INIT_DELAY_RETRY);
}

/**
 * mprr_pg_init_work - activate one path
 * @work: &mprr_path.pg_init_work
 *
 * Context: workqueue, may sleep.
 */
void mprr_pg_init_work(struct work_struct *work)
{
	struct mprr_path *path = container_of(to_delayed_work(work), struct mprr_path,
					      pg_init_work);
	struct request_queue *q = mprr_path_queue(path);

	if (blk_queue_dying(q))
		activation_done(path, SCSI_DH_DEV_OFFLINED);
	else if (READ_ONCE(path->active))
		scsi_dh_activate(q, activation_done, path);
	else	/* Failed since, and perhaps back by now, with an activation of its own. */
		put_activation(path->group->map, false);
}

static bool pg_init_idle(struct mprr_map *map)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&map->lock, flags);
	idle = !map->pg_init_in_progress;
	spin_unlock_irqrestore(&map->lock, flags);
	return idle;
}

/**
 * mprr_pg_init_stop - end all activation, wait for what runs, allow it again
 * @map: the map; no request is being mapped
 *
 * An activation that waits for its delay is run at once.
 *
 * Context: process, may sleep.
 */
void mprr_pg_init_stop(struct mprr_map *map)
{
	unsigned long flags;
	unsigned int g, p;

	spin_lock_irqsave(&map->lock, flags);
	set_bit(MPRR_PG_INIT_DISABLED, &map->flags);
	spin_unlock_irqrestore(&map->lock, flags);

	for (g = 0; g < map->nr_groups; g++)
		for (p = 0; p < map->groups[g]->nr_paths; p++)
			flush_delayed_work(&map->groups[g]->paths[p]->pg_init_work);
	wait_event(map->pg_init_wait, pg_init_idle(map));

	spin_lock_irqsave(&map->lock, flags);
	clear_bit(MPRR_PG_INIT_DISABLED, &map->flags);
	spin_unlock_irqrestore(&map->lock, flags);
}

/*
 * An attached handler wins over the table's: its name is taken over, and
 * parameters that were meant for another one are dropped.
 */
static void adopt_attached(struct mprr_map *map, const char *attached)
{
	if (map->handler_name && strcmp(attached, map->handler_name)) {
		kfree(map->handler_params);
		map->handler_params = NULL;
	}
	kfree(map->handler_name);
	map->handler_name = attached;
}

static int attach_named(struct mprr_path *path)
{
	struct mprr_map *map = path->group->map;
	struct request_queue *q = mprr_path_queue(path);
	const char *attached;
	int r;

	r = scsi_dh_attach(q, map->handler_name);
	if (r != -EBUSY)
		return r;

	/* Another handler holds the device and cannot be replaced. */
	attached = scsi_dh_attached_handler_name(q, GFP_KERNEL);
	if (IS_ERR_OR_NULL(attached))
		return -EBUSY;
	DMINFO("%s: path %s keeps its hardware handler %s, %s was asked for",
	       mprr_map_name(map), path->dev->name, attached, map->handler_name);
	adopt_attached(map, attached);
	return 0;
}

/*
 * Newer kernels always keep an attached handler, and their scsi_dh tells "no
 * SCSI device" from "no handler"; older ones answer NULL for both.  No header
 * shows which one this is, but asking about a queue that is surely not a SCSI
 * device's, the map's own, does.
 */
static bool kernel_retains_handlers(const struct mprr_map *map)
{
	struct gendisk *disk = dm_disk(dm_table_get_md(map->ti->table));

	return IS_ERR(scsi_dh_attached_handler_name(disk->queue, GFP_KERNEL));
}

/**
 * mprr_handler_attach - give a new path the map's hardware handler
 * @path: the path, its device open
 * @what: set to the text of the fault
 *
 * The rules are those of the running kernel's own target: a handler that is
 * attached already is kept where the kernel always retains handlers, the table
 * says so, or the map has queue_mode bio.
 *
 * Context: constructor, may sleep (a handler module may be loaded).
 * Return: 0 or a negative errno.
 */
int mprr_handler_attach(struct mprr_path *path, const char **what)
{
	struct mprr_map *map = path->group->map;
	struct request_queue *q = mprr_path_queue(path);
	const char *attached;
	int r;

	attached = scsi_dh_attached_handler_name(q, GFP_KERNEL);
	if (IS_ERR(attached) && PTR_ERR(attached) != -ENODEV) {
		*what = "error allocating the hardware handler's name";
		return PTR_ERR(attached);
	}
	if (IS_ERR(attached)) {
		/* Only kernels that always retain say so; no SCSI device. */
		if (map->handler_name)
			DMERR("%s: path %s is not a SCSI device, hardware handler %s is not used",
			      mprr_map_name(map), path->dev->name, map->handler_name);
		kfree(map->handler_name);
		map->handler_name = NULL;
		return 0;
	}

	if (attached && (kernel_retains_handlers(map) ||
			 test_bit(MPRR_RETAIN_HANDLER, &map->flags) ||
			 mprr_is_bio_map(map))) {
		adopt_attached(map, attached);
		attached = NULL;
	}
	kfree(attached);

	if (!map->handler_name)
		return 0;

	r = attach_named(path);
	if (r < 0) {
		*what = "error attaching hardware handler";
		return r;
	}
	if (map->handler_params) {
		r = scsi_dh_set_params(q, map->handler_params);
		if (r < 0) {
			*what = "error setting hardware handler parameters";
			return r;
		}
	}
	return 0;
}

/**
 * mprr_pg_init_wq_init - make the workqueue on which activations run
 *
 * Return: 0 or -ENOMEM.
 */
int mprr_pg_init_wq_init(void)
{
	/* Ordered: an array is asked by one path at a time, in table order. */
	mprr_pg_init_wq = alloc_ordered_workqueue("mprr_pg_init", WQ_MEM_RECLAIM);
	return mprr_pg_init_wq ? 0 : -ENOMEM;
}

/**
 * mprr_pg_init_wq_exit - counterpart of mprr_pg_init_wq_init()
 */
void mprr_pg_init_wq_exit(void)
{
	destroy_workqueue(mprr_pg_init_wq);
}
