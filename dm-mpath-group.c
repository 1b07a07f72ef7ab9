// SPDX-License-Identifier: GPL-2.0
/*
 * State of paths and groups: fail, reinstate, bypass, switch, choose a group.
 *
 * DOC: choosing a group
 *
 * I/O goes to the current group while it has an active path.  Else a group is
 * chosen under the map's lock: the one that a switch asked for, then the first
 * in table order that is not bypassed, then the first that is.  If the map has
 * a hardware handler, the new group must be activated before I/O goes to it
 * (dm-mpath-pg-init.c).
 *
 * Each change that user space can see sends one event, and a path's change one
 * uevent; a request for the state that is already there changes nothing and
 * sends nothing.  State is written under mprr_map.lock, which may be taken in
 * any context; the event itself is sent from a work item, because sending
 * sleeps.  The request path reads current_group, active and nr_active without
 * the lock.
 */

#include "dm-mpath-rr.h"
#include "dm-mpath-trace.h"
#include "dm-path-selector.h"
#include "dm-rr-auto.h"

static void send_event_locked(struct mprr_map *map) __must_hold(&map->lock)
{
	lockdep_assert_held(&map->lock);
	queue_work(mprr_wq, &map->event_work);
}

static void set_group_locked(struct mprr_map *map, struct mprr_group *group)
	__must_hold(&map->lock)
{
	lockdep_assert_held(&map->lock);
	if (group)
		mprr_pg_init_require_locked(map);
	else
		clear_bit(MPRR_QUEUE_IO, &map->flags);
	/* What had to wait for the probe of another group is done by this. */
	map->probe_forget = false;
	/*
	 * After the flags; pairs with the acquire in mprr_group_get_current():
	 * whoever sees the group sees that it must be activated first.
	 */
	smp_store_release(&map->current_group, group);
}

static struct mprr_group *first_group_locked(struct mprr_map *map, bool bypassed)
	__must_hold(&map->lock)
{
	unsigned int i;

	lockdep_assert_held(&map->lock);
	for (i = 0; i < map->nr_groups; i++) {
		struct mprr_group *group = map->groups[i];

		if (group->nr_active && group->bypassed == bypassed)
			return group;
	}
	return NULL;
}

static struct mprr_group *choose_group_locked(struct mprr_map *map)
	__must_hold(&map->lock)
{
	struct mprr_group *next = map->next_group;
	struct mprr_group *group;
	unsigned int nr;

	lockdep_assert_held(&map->lock);
	group = map->current_group;
	if (group && group->nr_active)
		return group;

	/* A wish is good for one choice, met or not. */
	map->next_group = NULL;
	clear_bit(MPRR_PG_INIT_DELAY_RETRY, &map->flags);
	if (next && next->nr_active)
		group = next;
	else
		group = first_group_locked(map, false);

	if (!group) {
		group = first_group_locked(map, true);
		/* Its controller asked to be left alone: do not hurry. */
		if (group)
			set_bit(MPRR_PG_INIT_DELAY_RETRY, &map->flags);
	}
	set_group_locked(map, group);
	nr = group ? group->nr : 0;
	if (nr != map->chosen_nr) {
		trace_mprr_group_switched(map, map->chosen_nr, nr);
		map->chosen_nr = nr;
	}
	return group;
}

/**
 * mprr_group_get_current - the group that I/O goes to
 * @map: the map
 *
 * Context: any; lockless while the current group has an active path.
 * Return: a group that had an active path a moment ago, NULL if none has.
 */
struct mprr_group *mprr_group_get_current(struct mprr_map *map)
{
	/* Pairs with the release in set_group_locked(). */
	struct mprr_group *group = smp_load_acquire(&map->current_group);
	unsigned long flags;

	if (likely(group && READ_ONCE(group->nr_active)))
		return group;

	spin_lock_irqsave(&map->lock, flags);
	group = choose_group_locked(map);
	spin_unlock_irqrestore(&map->lock, flags);
	return group;
}

/* The current group is chosen anew by the next request, or when its probe has ended. */
static void forget_group_locked(struct mprr_map *map, struct mprr_group *next)
	__must_hold(&map->lock)
{
	lockdep_assert_held(&map->lock);
	if (map->probed && map->probed == map->current_group)
		map->probe_forget = true;
	else
		WRITE_ONCE(map->current_group, NULL);
	/* A wish outlives the bypass of another group. */
	if (next)
		map->next_group = next;
	send_event_locked(map);
}

/**
 * mprr_group_probed_locked - a probe has ended: do what had to wait for that
 * @map: the map
 *
 * Context: &mprr_map.lock is held; the map's queue is to be run afterwards.
 */
void mprr_group_probed_locked(struct mprr_map *map)
{
	lockdep_assert_held(&map->lock);
	if (map->probe_forget)
		WRITE_ONCE(map->current_group, NULL);
	map->probe_forget = false;
	map->probed = NULL;
}

/**
 * mprr_group_switch - let I/O go to a group from the next request on
 * @map: the map
 * @group: the group; no group is bypassed any more afterwards
 *
 * Context: any.
 */
void mprr_group_switch(struct mprr_map *map, struct mprr_group *group)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&map->lock, flags);
	for (i = 0; i < map->nr_groups; i++)
		map->groups[i]->bypassed = false;
	forget_group_locked(map, group);
	spin_unlock_irqrestore(&map->lock, flags);

	mprr_map_run_queue(map);
}

/**
 * mprr_group_bypass - use a group only if no other one has a path, or undo that
 * @group: the group
 * @on: bypass, or no longer
 *
 * Context: any.
 */
void mprr_group_bypass(struct mprr_group *group, bool on)
{
	struct mprr_map *map = group->map;
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	group->bypassed = on;
	if (on && map->next_group == group)
		map->next_group = NULL;
	forget_group_locked(map, NULL);
	spin_unlock_irqrestore(&map->lock, flags);

	mprr_map_run_queue(map);
}

static void set_active_locked(struct mprr_path *path, bool active)
	__must_hold(&path->group->map->lock)
{
	struct mprr_group *group = path->group;
	struct mprr_map *map = group->map;
	int diff = active ? 1 : -1;

	lockdep_assert_held(&map->lock);
	path->active = active;
	if (active)
		set_bit(path->index, group->active);
	else
		clear_bit(path->index, group->active);
	/* Read locklessly by the request path; written only under the lock. */
	WRITE_ONCE(group->nr_active, group->nr_active + diff);
	WRITE_ONCE(map->nr_valid_paths, map->nr_valid_paths + diff);
}

/**
 * mprr_path_activate - count a path in while its table is constructed
 * @path: the path, not active yet
 *
 * Context: constructor.  Sends no event.
 */
void mprr_path_activate(struct mprr_path *path)
{
	struct mprr_map *map = path->group->map;
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	set_active_locked(path, true);
	spin_unlock_irqrestore(&map->lock, flags);
}

/**
 * mprr_path_fail - do not use a path until it is reinstated
 * @path: the path; nothing happens if it has failed already
 *
 * Context: any.
 */
void mprr_path_fail(struct mprr_path *path)
{
	struct mprr_map *map = path->group->map;
	unsigned long flags;
	bool changed = false;

	spin_lock_irqsave(&map->lock, flags);
	if (path->active) {
		changed = true;
		set_active_locked(path, false);
		path->fail_count++;
		path->changed_s = ktime_get_boottime_seconds();
		trace_mprr_path_failed(path);
		DMWARN_LIMIT("%s: failing path %s, %u valid paths left",
			     mprr_map_name(map), path->dev->name, map->nr_valid_paths);
		dm_path_uevent(DM_UEVENT_PATH_FAILED, map->ti, path->dev->name,
			       map->nr_valid_paths);
		send_event_locked(map);
		mprr_no_path_timer_start_locked(map);
	}
	spin_unlock_irqrestore(&map->lock, flags);

	if (!changed)
		return;
	mprr_rr_auto_kick(map);
	/* Requests that waited for this path to have room may go elsewhere now. */
	mprr_map_run_queue(map);
}

/**
 * mprr_path_reinstate - use a path again
 * @path: the path; nothing happens if it is active already
 *
 * Context: any.
 */
void mprr_path_reinstate(struct mprr_path *path)
{
	struct mprr_map *map = path->group->map;
	unsigned long flags;
	bool changed = false;

	spin_lock_irqsave(&map->lock, flags);
	if (!path->active) {
		changed = true;
		set_active_locked(path, true);
		path->changed_s = ktime_get_boottime_seconds();
		trace_mprr_path_reinstated(path);
		DMWARN_LIMIT("%s: reinstating path %s, %u valid paths",
			     mprr_map_name(map), path->dev->name, map->nr_valid_paths);
		dm_path_uevent(DM_UEVENT_PATH_REINSTATED, map->ti, path->dev->name,
			       map->nr_valid_paths);
		send_event_locked(map);
		mprr_no_path_timer_stop_locked(map);
		if (map->handler_name && path->group == map->current_group)
			mprr_pg_init_path_locked(path);
	}
	spin_unlock_irqrestore(&map->lock, flags);

	if (!changed)
		return;
	mprr_rr_auto_kick(map);
	/* Requests wait for any path, or for one that is not full. */
	mprr_map_run_queue(map);
}
