// SPDX-License-Identifier: GPL-2.0
/*
 * Accounting of what is in flight, the busy answer made from it, and the gate.
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
 * DOC: the gate, so that requests merge
 *
 * blk-mq empties the elevator as soon as anything is in it; nothing is left to
 * merge with.  While the flow is one that merges (dm-rq-auto.c), the gate stops
 * the map's hardware queue, so that new bios find the earlier ones still there:
 *
 *	close	when &mprr_gate.cap clones are in flight
 *	open	when no more than half of the cap are
 *
 * Opening is left to a thread of the lowest priority.  Where a processor is
 * idle it runs at once.  Where none is, those who submit run first: a request
 * that is not dispatched yet costs less the more bios join it, and processors
 * are what is short.  A timer opens the gate when this takes too long.
 *
 * - Closed only while a clone is in flight, or the thread and the timer are on
 *   their way.  Closing and the last completions may cross: whoever closes
 *   stops the queue, then sets GATE_CLOSED, and after a full barrier looks at
 *   the counter again; whoever completes decrements, which is a full barrier,
 *   and then looks at GATE_CLOSED.  One of the two sees the other.
 * - Stop comes before the bit, start after it is cleared: so a stopped queue
 *   with the bit clear is always one whose closer has not set it yet.
 * - A dispatch that is under way when the queue is stopped offers one more
 *   request, or the rest of its batch; mprr_gate_busy() refuses those.
 * - Without an elevator, kernels before 6.13 look whether the queue is stopped,
 *   and then put a request into it without running it: started in between, the
 *   queue would not know of it.  They do both in one RCU read section.  So the
 *   queue is run again a grace period after it was started, and, sooner, by the
 *   timer.
 * - While a map is suspended, and from then to its end, the gate stays open:
 *   the next table has a gate of its own, but the same queue.
 *
 * Called from queue_rq (process context or kblockd) and from completion
 * (softirq).  Takes no lock, never sleeps, and its cost does not depend on the
 * number of paths but for one bitmap search.
 */

#include <linux/bitmap.h>
#include <linux/part_stat.h>
#include <linux/sched.h>
#include <scsi/scsi_device.h>

#include "dm-mpath-trace.h"
#include "dm-path-selector.h"
#include "dm-rq-auto.h"
#include "dm-rq-merge.h"

/* How many clones the path takes at a time; admins and SCSI change it live. */
static unsigned int path_depth(const struct mprr_path *path)
{
	/* The user's cap is at least 1, and the largest number if there is none. */
	unsigned int cap = READ_ONCE(path->group->map->max_inflight);
	unsigned int depth = path->sdev ? READ_ONCE(path->sdev->queue_depth) :
					  READ_ONCE(mprr_path_queue(path)->nr_requests);

	return clamp(depth, 1U, cap);
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
 * mprr_inflight_start - reserve room on the path for a clone
 * @path: the path
 *
 * Several processors may have chosen one open path: the counter decides which
 * of them fill it.  Closes the path when this clone fills it, so that the next
 * request is refused at the cheapest place, before it is started.
 *
 * Context: any.
 * Return: false if the path is full; nothing is counted then.
 */
bool mprr_inflight_start(struct mprr_path *path)
{
	unsigned int depth = path_depth(path);
	unsigned int taken = atomic_inc_return(&path->in_flight);

	if (taken >= depth)
		path_close(path, depth);
	if (taken <= depth)
		return true;

	/* Others may have left meanwhile, and taken this one for a clone. */
	mprr_inflight_end(path);
	return false;
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

/* One thread for all maps: it only runs queues. */
static struct kthread_worker *gate_worker;

/* How soon after it was started the queue is run again. */
#define MPRR_RERUN_NS		NSEC_PER_MSEC

static void gate_rerun(struct rcu_head *rcu);

/* GATE_RERUN has just been set by the caller, who alone may use the rcu_head. */
static void rerun_soon(struct mprr_gate *gate)
{
	/* This grace period serves all who asked so far. */
	clear_bit(GATE_RERUN_AGAIN, &gate->flags);
	/* Pairs with the first barrier in gate_open(). */
	smp_mb__after_atomic();
	mprr_call_rcu_hurry(&gate->rcu, gate_rerun);
}

static void gate_rerun(struct rcu_head *rcu)
{
	struct mprr_gate *gate = container_of(rcu, struct mprr_gate, rcu);

	blk_mq_run_hw_queues(gate->queue, true);

	/* Whoever opens from here on asks for a grace period of its own. */
	clear_bit(GATE_RERUN, &gate->flags);
	/* Pairs with the barrier in gate_open(): one of the two sees the other. */
	smp_mb__after_atomic();
	if (test_bit(GATE_RERUN_AGAIN, &gate->flags) &&
	    !test_and_set_bit(GATE_RERUN, &gate->flags))
		rerun_soon(gate);
}

static u64 held_ns(const struct mprr_gate *gate)
{
	return mprr_elapsed_ns(READ_ONCE(gate->closed_ns), ktime_get_ns());
}

static void gate_open(struct mprr_gate *gate, enum mprr_gate_reason reason)
{
	if (!test_and_clear_bit(GATE_CLOSED, &gate->flags))
		return;
	if (trace_mprr_gate_opened_enabled())
		trace_mprr_gate_opened(gate, reason, held_ns(gate));
	WRITE_ONCE(gate->low_ns, 0);
	blk_mq_start_stopped_hw_queues(gate->queue, true);

	if (!hrtimer_is_queued(&gate->timer))
		hrtimer_start(&gate->timer, ns_to_ktime(ktime_get_ns() + MPRR_RERUN_NS),
			      HRTIMER_MODE_ABS);
	/*
	 * A callback that waits already may be too early for this opening: it asks
	 * for another one.  The queue was started before that can be seen.
	 */
	smp_mb__before_atomic();
	set_bit(GATE_RERUN_AGAIN, &gate->flags);
	/* Pairs with the barrier in gate_rerun(). */
	smp_mb__after_atomic();
	if (!test_and_set_bit(GATE_RERUN, &gate->flags))
		rerun_soon(gate);
}

/* Let the timer open the gate @ns from now, or sooner if it is set to that. */
static void open_within(struct mprr_gate *gate, u64 now, u64 ns)
{
	ktime_t expires = ns_to_ktime(now + ns);

	WRITE_ONCE(gate->expires_ns, now + ns);
	/* A timer that is late or early looks at expires_ns again. */
	if (!hrtimer_is_queued(&gate->timer) ||
	    ktime_before(expires, hrtimer_get_expires(&gate->timer)))
		hrtimer_start(&gate->timer, expires, HRTIMER_MODE_ABS);
}

/* As long as bios joined requests within this time, more may come: nanoseconds. */
#define MPRR_SETTLE_NS		(10 * NSEC_PER_USEC)

/* On more processors than this, looking at the counters of all takes too long. */
#define MPRR_SETTLE_CPUS	64

static unsigned long merges_so_far(const struct mprr_gate *gate)
{
	struct block_device *part = gate->queue->disk->part0;

	return part_stat_read(part, merges[STAT_READ]) + part_stat_read(part, merges[STAT_WRITE]);
}

/*
 * A processor is idle, but another one may be in the middle of a burst: whoever
 * was waiting for the request that has just completed sends the next ones.  The
 * elevator likes to go on where that request ended, with the part of the burst
 * that is there already.  So wait until no more bios join.
 */
static bool settle_begin(struct mprr_gate *gate, u64 low_ns, u64 now)
{
	u64 ends = low_ns + mprr_auto_lazy_ns(gate);

	if (!test_bit(GATE_CLOSED, &gate->flags) || now >= ends ||
	    num_possible_cpus() > MPRR_SETTLE_CPUS)
		return false;
	gate->settle_merges = merges_so_far(gate);
	WRITE_ONCE(gate->settle_ends_ns, ends);
	open_within(gate, now, min(ends - now, MPRR_SETTLE_NS));
	return true;
}

/* The timer has expired: was there a bio that joined since it was started? */
static bool settle_goes_on(struct mprr_gate *gate, u64 now, u64 ends)
{
	unsigned long merges = merges_so_far(gate);

	if (merges == gate->settle_merges)
		return false;
	gate->settle_merges = merges;
	WRITE_ONCE(gate->expires_ns, min(now + MPRR_SETTLE_NS, ends));
	hrtimer_start(&gate->timer, ns_to_ktime(gate->expires_ns), HRTIMER_MODE_ABS);
	return true;
}

static enum hrtimer_restart gate_timer(struct hrtimer *timer)
{
	struct mprr_gate *gate = container_of(timer, struct mprr_gate, timer);
	u64 low_ns = READ_ONCE(gate->low_ns), settle_ends = READ_ONCE(gate->settle_ends_ns);
	u64 now = ktime_get_ns(), expires = READ_ONCE(gate->expires_ns);

	if (!test_bit(GATE_CLOSED, &gate->flags)) {
		blk_mq_run_hw_queues(gate->queue, true);
		return HRTIMER_NORESTART;
	}
	if (now < expires) {
		/* Not by HRTIMER_RESTART: it may have been started meanwhile. */
		hrtimer_start(timer, ns_to_ktime(expires), HRTIMER_MODE_ABS);
		return HRTIMER_NORESTART;
	}

	if (settle_ends && now < settle_ends) {
		if (!settle_goes_on(gate, now, settle_ends))
			gate_open(gate, GATE_OPEN_SETTLED);
		return HRTIMER_NORESTART;
	}

	gate->nr_deadline++;
	/* While settling, the thread has told already how late it was. */
	if (low_ns && !settle_ends)
		mprr_auto_lag(gate, now - low_ns);
	else if (!low_ns && atomic_read(&gate->in_flight) >= READ_ONCE(gate->closed_at))
		mprr_auto_stalled(gate);
	gate_open(gate, GATE_OPEN_DEADLINE);
	return HRTIMER_NORESTART;
}

static void gate_work(struct kthread_work *work)
{
	struct mprr_gate *gate = container_of(work, struct mprr_gate, work);
	u64 low_ns = READ_ONCE(gate->low_ns), now = ktime_get_ns();

	if (low_ns) {
		mprr_auto_lag(gate, now - low_ns);
		if (settle_begin(gate, low_ns, now))
			return;
	}
	WRITE_ONCE(gate->low_ns, 0);
	gate_open(gate, GATE_OPEN_LOW);
}

/**
 * mprr_gate_probe - how late does the thread run?
 * @gate: the gate; the answer comes to mprr_auto_lag()
 *
 * For a gate that did not close for a while.
 *
 * Context: any.
 */
void mprr_gate_probe(struct mprr_gate *gate)
{
	if (test_bit(GATE_CLOSED, &gate->flags))
		return;
	WRITE_ONCE(gate->low_ns, ktime_get_ns());
	kthread_queue_work(gate_worker, &gate->work);
}

/* Few enough clones are in flight: open soon. */
static void gate_low(struct mprr_gate *gate)
{
	u64 now;

	/* Once a closing; a lost race costs a second wake-up. */
	if (READ_ONCE(gate->low_ns))
		return;
	now = ktime_get_ns();
	WRITE_ONCE(gate->low_ns, now);
	open_within(gate, now, mprr_auto_lazy_ns(gate));
	kthread_queue_work(gate_worker, &gate->work);
}

static unsigned int low_water(const struct mprr_gate *gate)
{
	return READ_ONCE(gate->cap) / 2;
}

/* A cap for each path, by the user, is one for the map, too. */
static unsigned int gate_cap(struct mprr_gate *gate, const struct mprr_path *path)
{
	unsigned int each = READ_ONCE(path->group->map->max_inflight);
	unsigned int cap = READ_ONCE(gate->cap), all;

	if (likely(each == MPRR_AUTO))
		return cap;
	all = each * max(READ_ONCE(path->group->nr_active), 1U);
	if (cap != all)
		WRITE_ONCE(gate->cap, all);
	return all;
}

static void gate_close(struct mprr_gate *gate)
{
	unsigned int in_flight = atomic_read(&gate->in_flight);
	u64 now = ktime_get_ns();

	WRITE_ONCE(gate->closed_at, in_flight);
	if (!test_bit(GATE_CLOSED, &gate->flags))
		WRITE_ONCE(gate->closed_ns, now);
	WRITE_ONCE(gate->low_ns, 0);
	WRITE_ONCE(gate->settle_ends_ns, 0);
	blk_mq_stop_hw_queues(gate->queue);
	/*
	 * A full barrier: pairs with those in mprr_gate_end() and
	 * mprr_gate_suspend().  When it is closed already, a request was on its way
	 * meanwhile.
	 */
	if (!test_and_set_bit(GATE_CLOSED, &gate->flags)) {
		atomic64_inc(&gate->nr_closed);
		trace_mprr_gate_closed(gate, in_flight);
	}
	open_within(gate, now, mprr_auto_hold_ns(gate));

	if (test_bit(GATE_SUSPENDED, &gate->flags))
		gate_open(gate, GATE_OPEN_SUSPEND);
	else if (atomic_read(&gate->in_flight) <= low_water(gate))
		gate_low(gate);
}

/**
 * mprr_gate_start - a request goes to a path
 * @map: the map
 * @io: the request's data
 * @rq: the request, not yet cloned
 *
 * Counts it, learns from it, and closes the gate if it is the last that may
 * be in flight.
 *
 * Context: queue_rq, atomic.
 * Return: the number of bios of the request.
 */
unsigned int mprr_gate_start(struct mprr_map *map, struct mprr_io *io, struct request *rq)
{
	struct mprr_gate *gate = &map->gate;
	unsigned int nr_bios = 0;
	bool hold = false;
	struct bio *bio;

	__rq_for_each_bio(bio, rq)
		nr_bios++;

	gate->nr_requests++;
	gate->nr_bios += nr_bios;
	io->start_ns = 0;
	if (unlikely(!gate->queue))
		WRITE_ONCE(gate->queue, rq->q);
	if (READ_ONCE(gate->hold_us))
		hold = mprr_auto_judge(gate, io, rq, nr_bios);
	if (atomic_inc_return(&gate->in_flight) >= gate_cap(gate, io->path) && hold)
		gate_close(gate);
	return nr_bios;
}

/**
 * mprr_gate_end - a request left its path: completed, failed or handed back
 * @map: the map
 * @io: the request's data, as given to mprr_gate_start()
 *
 * Context: any.
 */
void mprr_gate_end(struct mprr_map *map, const struct mprr_io *io)
{
	struct mprr_gate *gate = &map->gate;
	/* Fully ordered: pairs with the barrier in gate_close(). */
	unsigned int left = atomic_dec_return(&gate->in_flight);

	if (io->start_ns)
		mprr_auto_sample(gate, io);
	if (test_bit(GATE_CLOSED, &gate->flags) && left <= low_water(gate))
		gate_low(gate);
}

/**
 * mprr_gate_busy - is the gate closed?
 * @map: the map
 *
 * For requests that blk-mq had already taken out of the elevator.  Only while
 * something is in flight: the end of that offers them again.
 *
 * Context: any, lockless.
 * Return: true if no request may pass now.
 */
bool mprr_gate_busy(struct mprr_map *map)
{
	struct mprr_gate *gate = &map->gate;

	return test_bit(GATE_CLOSED, &gate->flags) && atomic_read(&gate->in_flight);
}

/**
 * mprr_gate_kick - open the gate at once
 * @map: the map
 *
 * For whatever changes where requests can go.
 *
 * Context: any.
 */
void mprr_gate_kick(struct mprr_map *map)
{
	gate_open(&map->gate, GATE_OPEN_CHANGE);
}

/**
 * mprr_gate_suspend - open the gate and keep it open
 * @map: the map
 *
 * Context: any.
 */
void mprr_gate_suspend(struct mprr_map *map)
{
	set_bit(GATE_SUSPENDED, &map->gate.flags);

	/* Pairs with the barrier in gate_close(). */
	smp_mb__after_atomic();
	gate_open(&map->gate, GATE_OPEN_SUSPEND);
}

/**
 * mprr_gate_resume - let the gate close again
 * @map: the map
 *
 * Context: any.
 */
void mprr_gate_resume(struct mprr_map *map)
{
	clear_bit(GATE_SUSPENDED, &map->gate.flags);
}

/**
 * mprr_gate_init - make the gate of a new map
 * @map: the map
 *
 * Context: constructor.
 * Return: 0 or -ENOMEM.
 */
int mprr_gate_init(struct mprr_map *map)
{
	struct mprr_gate *gate = &map->gate;

	kthread_init_work(&gate->work, gate_work);
	mprr_hrtimer_setup(&gate->timer, gate_timer);
	return mprr_auto_init(gate);
}

/**
 * mprr_gate_exit - end the gate of a map
 * @map: the map; with no request in flight, and mprr_gate_init() may have failed
 *
 * Context: process, sleeps.
 */
void mprr_gate_exit(struct mprr_map *map)
{
	struct mprr_gate *gate = &map->gate;

	if (!gate->ends)
		return;
	mprr_gate_suspend(map);
	kthread_cancel_work_sync(&gate->work);
	hrtimer_cancel(&gate->timer);
	/*
	 * Until the last callback one of the two bits is set at any moment; the
	 * barrier after that waits for the rest of this callback.
	 */
	while (READ_ONCE(gate->flags) & (BIT(GATE_RERUN) | BIT(GATE_RERUN_AGAIN)))
		rcu_barrier();
	if (atomic64_read(&gate->nr_closed))
		rcu_barrier();
	mprr_auto_exit(gate);
}

/**
 * mprr_gate_worker_init - start the thread that opens gates
 *
 * Return: 0 or a negative errno.
 */
int mprr_gate_worker_init(void)
{
	gate_worker = mprr_kthread_run_worker("mprr_gate");
	if (IS_ERR(gate_worker))
		return PTR_ERR(gate_worker);
	/* Behind everybody who may have bios to add. */
	sched_set_normal(gate_worker->task, MAX_NICE);
	return 0;
}

/**
 * mprr_gate_worker_exit - end the thread; no map is left
 */
void mprr_gate_worker_exit(void)
{
	kthread_destroy_worker(gate_worker);
}
