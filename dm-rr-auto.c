// SPDX-License-Identifier: GPL-2.0
/*
 * rr_min_io auto: round-robin finds out by itself how long runs should be.
 *
 * DOC: how long is a run?
 *
 *	run of a path = base * weight * speed
 *
 * The *base* is the same for all paths of a map.  What is in flight must be
 * enough for every path to have work: so a run is half of a path's share of it.
 * A lone stream is another matter.  Where one request is in flight at a time,
 * only one path works at a time anyway; a stream then stays with a path for
 * some time, so that the storage's read-ahead behind it sees it as a stream.
 *
 * The *weight* is the path's repeat count in the table, compared with the
 * smallest of its group: priorities of multipathd stay what they are.
 *
 * The *speed* tells how much longer the slowest path of the group takes for a
 * request than this one, up to 16: by Little's law, the number of requests in
 * flight on each path is then about the same, and a slow path neither holds up
 * the others nor is it left without work, so it is seen when it gets faster.
 *
 * Runs are computed anew 10 times a second at most while I/O goes on, and at
 * once when a path fails or comes back.  A speed changes only if it is a quarter
 * off, so runs do not flutter with the latency.
 *
 * The request path reads one number of the path and adds to an average.  All the
 * rest is done by a work item.  Values are guesses that a later one mends, so
 * they are read and written without a lock.
 */

#include <linux/bitmap.h>
#include <linux/math64.h>

#include "dm-path-selector.h"
#include "dm-rq-auto.h"
#include "dm-rr-auto.h"

/* Between two computations. */
#define RR_AUTO_JIFFIES		(HZ / 10)

/* The average number in flight is kept in 1/16, over about as many runs. */
#define IN_FLIGHT_ONE		16
#define IN_FLIGHT_WEIGHT	8

/* Requests of a run: of a lone stream, and of any, before weight and speed. */
#define BASE_LONE_STREAM	32U
#define BASE_MAX		64U

/* Speeds are kept in 1/16; below the first they count as 1. */
#define SPEED_ONE		16U
#define SPEED_NOTABLE		(SPEED_ONE * 2)
#define SPEED_MAX		(SPEED_ONE * 16)

/* The longest run: weights may be any number. */
#define RUN_MAX			1000000U

/*
 * Latencies are averages over about as many samples; one that stands out, as
 * the scheduler makes them, counts so many times the average at most.
 */
#define TOOK_WEIGHT		16U
#define TOOK_OUTLIER		4

/* Nobody is called slow by less. */
#define TOOK_ENOUGH		8

static unsigned int find_base(const struct mprr_map *map, unsigned int nr_paths)
{
	unsigned int in_flight = READ_ONCE(map->rr_auto.in_flight);

	if (in_flight < IN_FLIGHT_ONE / 2)
		return mprr_auto_sequential(&map->gate) ? BASE_LONE_STREAM : 1;
	return clamp(in_flight / IN_FLIGHT_ONE / (2 * max(nr_paths, 1U)), 1U, BASE_MAX);
}

static bool enough_samples(const struct mprr_path *path)
{
	return READ_ONCE(path->nr_took) >= TOOK_ENOUGH;
}

/* A path that has hardly been timed yet is as fast as the slowest: it is about to be. */
static unsigned int find_speed(const struct mprr_path *path, u64 slowest_ns)
{
	unsigned int was = path->auto_speed, speed = SPEED_ONE;
	u64 took = READ_ONCE(path->took_ns);

	if (took && enough_samples(path))
		speed = clamp_t(u64, div64_u64(slowest_ns * SPEED_ONE, took), SPEED_ONE, SPEED_MAX);
	if (speed < SPEED_NOTABLE)
		speed = SPEED_ONE;
	return abs((int)speed - (int)was) * 4 > was ? speed : was;
}

static void set_runs(struct mprr_group *group)
{
	unsigned int base = find_base(group->map, READ_ONCE(group->nr_active));
	unsigned int lightest = UINT_MAX, i;
	u64 slowest_ns = 0;

	for_each_set_bit(i, group->active, group->nr_paths) {
		const struct mprr_path *path = group->paths[i];

		if (enough_samples(path))
			slowest_ns = max(slowest_ns, READ_ONCE(path->took_ns));
		lightest = min(lightest, max(path->ps_words[0], 1U));
	}

	for_each_set_bit(i, group->active, group->nr_paths) {
		struct mprr_path *path = group->paths[i];
		u64 run = div_u64((u64)base * max(path->ps_words[0], 1U), lightest);

		path->auto_speed = find_speed(path, slowest_ns);
		run = run * path->auto_speed / SPEED_ONE;
		WRITE_ONCE(path->auto_run, clamp_t(u64, run, 1, RUN_MAX));
	}
	WRITE_ONCE(group->map->rr_auto.base, base);
}

static void rr_auto_work(struct work_struct *work)
{
	struct mprr_map *map = container_of(work, struct mprr_map, rr_auto.work);
	unsigned int i;

	/* Others choose by load: the shorter their runs the better. */
	for (i = 0; i < map->nr_groups; i++)
		if (map->groups[i]->ps_type == &mprr_round_robin)
			set_runs(map->groups[i]);
}

/**
 * mprr_rr_auto_look - look at how things are, once in a few requests
 * @map: the map
 *
 * Context: any, lockless.
 */
void mprr_rr_auto_look(struct mprr_map *map)
{
	struct mprr_rr_auto *rr = &map->rr_auto;
	int in_flight = atomic_read(&map->gate.in_flight) * IN_FLIGHT_ONE;
	int was = READ_ONCE(rr->in_flight);

	WRITE_ONCE(rr->in_flight, was + (in_flight - was) / IN_FLIGHT_WEIGHT);

	if (time_before(jiffies, READ_ONCE(rr->next)))
		return;
	WRITE_ONCE(rr->next, jiffies + RR_AUTO_JIFFIES);
	queue_work(mprr_wq, &rr->work);
}

/**
 * mprr_rr_auto_kick - a path failed or came back: compute the runs now
 * @map: the map
 *
 * Context: any.
 */
void mprr_rr_auto_kick(struct mprr_map *map)
{
	if (READ_ONCE(map->rr_min_io) == MPRR_AUTO)
		queue_work(mprr_wq, &map->rr_auto.work);
}

/**
 * mprr_rr_auto_sample - learn from a clone that was completed
 * @path: the path that had it
 * @took_ns: for how long
 *
 * Context: any.
 */
void mprr_rr_auto_sample(struct mprr_path *path, u64 took_ns)
{
	unsigned int nr = min(READ_ONCE(path->nr_took) + 1, TOOK_WEIGHT);
	u64 was = READ_ONCE(path->took_ns);

	took_ns = max_t(u64, took_ns, 1);
	if (was)
		took_ns = min(took_ns, was * TOOK_OUTLIER);
	/* The average of all samples, as long as there are only a few. */
	WRITE_ONCE(path->took_ns, max_t(s64, was + div_s64(took_ns - was, nr), 1));
	WRITE_ONCE(path->nr_took, nr);
}

/**
 * mprr_rr_auto_emit - what the module has chosen, and from what
 * @map: the map
 * @result: where it goes
 * @maxlen: room there
 *
 * Nothing unless rr_min_io is auto.
 *
 * Context: process.
 * Return: the number of characters.
 */
unsigned int mprr_rr_auto_emit(const struct mprr_map *map, char *result, unsigned int maxlen)
{
	const struct mprr_rr_auto *rr = &map->rr_auto;
	unsigned int sz = 0, g, i;

	if (READ_ONCE(map->rr_min_io) != MPRR_AUTO)
		return 0;

	DMEMIT("\nrr_min_io auto base=%u in_flight=%u.%u sequential=%d", READ_ONCE(rr->base),
	       rr->in_flight / IN_FLIGHT_ONE, rr->in_flight % IN_FLIGHT_ONE * 10 / IN_FLIGHT_ONE,
	       mprr_auto_sequential(&map->gate));
	for (g = 0; g < map->nr_groups; g++)
		for (i = 0; i < map->groups[g]->nr_paths; i++) {
			const struct mprr_path *path = map->groups[g]->paths[i];

			DMEMIT("\nrr_min_io auto group=%u path=%s run=%u took_us=%llu", g + 1,
			       path->dev->name, READ_ONCE(path->auto_run),
			       div_u64(READ_ONCE(path->took_ns), NSEC_PER_USEC));
		}
	return sz;
}

/**
 * mprr_rr_auto_init - begin with nothing known
 * @map: the map, in its constructor
 */
void mprr_rr_auto_init(struct mprr_map *map)
{
	INIT_WORK(&map->rr_auto.work, rr_auto_work);
	map->rr_auto.next = jiffies;
	map->rr_auto.base = 1;
}

/**
 * mprr_rr_auto_init_path - begin with runs of one request
 * @path: the path, in the constructor
 */
void mprr_rr_auto_init_path(struct mprr_path *path)
{
	path->auto_run = 1;
	path->auto_speed = SPEED_ONE;
}

/**
 * mprr_rr_auto_exit - nothing runs any more
 * @map: the map, to which no I/O comes and whose paths neither fail nor come back
 *
 * Context: process, may sleep.
 */
void mprr_rr_auto_exit(struct mprr_map *map)
{
	cancel_work_sync(&map->rr_auto.work);
}
