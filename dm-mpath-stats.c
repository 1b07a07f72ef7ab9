// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of each path: requests, bytes, errors, busy answers, latency.
 *
 * DOC: what is counted
 *
 * What the path's own disk counts, so that both can be compared: the clones
 * that came to its queue, including those that its driver refused, in three
 * directions (read, write, discard; the block layer counts a flush without data
 * as a read), and the bytes of those that were completed, well or not.  The
 * block layer tells by &request.part whether it counts a clone.  Where the disk
 * has its statistics switched off, each clone is counted.
 *
 * DOC: what it costs
 *
 * Counters are per CPU: no cache line is shared.  Latency is measured for one
 * of MPRR_STATS_SAMPLE requests, so only those pay for the clock and for the
 * shared histogram.
 *
 * DOC: histogram
 *
 * Log-linear: each power of two of the latency has 16 buckets of equal width, so
 * the middle of a bucket is at most 1/32 (3.2 %) away from any latency in it, or
 * 0.13 us if that is more.  Latencies over 34 s count as 34 s.
 *
 * In bio mode bios are counted, not what they become in the path's own queue.
 *
 * Counters begin with the table and end with it.  Called from queue_rq and from
 * completion in any context; reading them is for process context.
 */

#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "dm-mpath-stats.h"
#include "dm-rr-auto.h"

/* One of so many requests of a CPU, path and direction is timed: a power of two. */
#define MPRR_STATS_SAMPLE	8

/* The unit of the histogram is 2^8 ns; buckets per power of two are 2^4. */
#define UNIT_SHIFT		8
#define SUB_SHIFT		4
#define SUB			BIT(SUB_SHIFT)
/* The largest latency, in units, is below 2 to the power of this: 34 s. */
#define VALUE_BITS		27
#define NR_BUCKETS		((VALUE_BITS - SUB_SHIFT + 1) * SUB)

/* Directions: those of the disk's statistics. */
static const char *const dir_names[] = {
	[STAT_READ] = "read",
	[STAT_WRITE] = "write",
	[STAT_DISCARD] = "discard",
};

#define NR_DIRS			ARRAY_SIZE(dir_names)
#define NR_LATENCY_DIRS		2	/* reads and writes */

/**
 * struct mprr_dir_count - clones in one direction
 * @started: that went to the path
 * @ended: that left it
 * @bytes: that were completed
 * @errors: that ended with an error
 * @refused: that the path's driver did not take
 * @uncounted: among the ended, that the disk did not count
 */
struct mprr_dir_count {
	u64 started;
	u64 ended;
	u64 bytes;
	u64 errors;
	u64 refused;
	u64 uncounted;
};

/**
 * struct mprr_stats_cpu - what one CPU has counted for a path
 * @dir: by direction
 * @busy: how often the path could not be given a clone
 */
struct mprr_stats_cpu {
	struct mprr_dir_count dir[NR_DIRS];
	u64 busy;
};

/**
 * struct mprr_latency - histograms of a path
 * @buckets: number of samples, by direction and bucket
 */
struct mprr_latency {
	atomic_long_t buckets[NR_LATENCY_DIRS][NR_BUCKETS];
};

static unsigned int bucket_of(u64 ns)
{
	u64 value = min(ns >> UNIT_SHIFT, BIT_ULL(VALUE_BITS) - 1);
	unsigned int top;

	if (value < SUB)
		return value;
	top = fls64(value) - 1;
	return (top - SUB_SHIFT + 1) * SUB + ((value >> (top - SUB_SHIFT)) & (SUB - 1));
}

/* The latency in the middle of a bucket. */
static u64 bucket_ns(unsigned int bucket)
{
	unsigned int shift = bucket < SUB ? 0 : bucket / SUB - 1;
	u64 low = bucket < SUB ? bucket : (u64)(SUB + bucket % SUB) << shift;

	return (low << UNIT_SHIFT) + (BIT_ULL(shift + UNIT_SHIFT) >> 1);
}

static bool disk_counts(const struct request *clone)
{
	return clone->part || !blk_queue_io_stat(clone->q);
}

/* Returns when it began, if it is to be timed, or 0. */
static u64 count_start(struct mprr_path *path, int dir)
{
	u64 nr = this_cpu_inc_return(path->stats->dir[dir].started);

	return nr & (MPRR_STATS_SAMPLE - 1) ? 0 : ktime_get_ns();
}

/**
 * mprr_stats_start - a clone goes to a path
 * @io: the request's data: path and request are set
 *
 * Context: queue_rq, atomic.
 */
void mprr_stats_start(struct mprr_io *io)
{
	io->sample_ns = count_start(io->path, op_stat_group(req_op(io->rq)));
}

static void end_sample(struct mprr_path *path, u64 sample_ns, int dir)
{
	u64 took = mprr_elapsed_ns(sample_ns, ktime_get_ns());

	mprr_rr_auto_sample(path, took);
	if (dir < NR_LATENCY_DIRS)
		atomic_long_inc(&path->latency->buckets[dir][bucket_of(took)]);
}

/**
 * mprr_stats_end - a clone was completed
 * @io: its data, as given to mprr_stats_start()
 * @clone: the clone
 * @status: how it ended
 *
 * Context: any.
 */
void mprr_stats_end(struct mprr_io *io, const struct request *clone, blk_status_t status)
{
	struct mprr_stats_cpu __percpu *stats = io->path->stats;
	int dir = op_stat_group(req_op(clone));

	this_cpu_inc(stats->dir[dir].ended);
	/* Nothing is left of a clone that its driver completed. */
	this_cpu_add(stats->dir[dir].bytes, io->nr_bytes - blk_rq_bytes(clone));
	if (unlikely(status)) {
		this_cpu_inc(stats->dir[dir].errors);
		if (!disk_counts(clone))
			this_cpu_inc(stats->dir[dir].uncounted);
		return;
	}
	if (io->sample_ns)
		end_sample(io->path, io->sample_ns, dir);
}

/**
 * mprr_stats_refused - the driver of the path did not take a clone
 * @io: its data, as given to mprr_stats_start()
 * @clone: the clone
 *
 * Context: any.
 */
void mprr_stats_refused(struct mprr_io *io, const struct request *clone)
{
	struct mprr_stats_cpu __percpu *stats = io->path->stats;
	int dir = op_stat_group(req_op(clone));

	this_cpu_inc(stats->dir[dir].ended);
	this_cpu_inc(stats->dir[dir].refused);
	if (!disk_counts(clone))
		this_cpu_inc(stats->dir[dir].uncounted);
}

/**
 * mprr_stats_busy - a path could not be given a clone
 * @path: the path: it had no tag, or its driver says that it is busy
 *
 * Context: any.
 */
void mprr_stats_busy(struct mprr_path *path)
{
	this_cpu_inc(path->stats->busy);
}

/**
 * mprr_stats_bio_start - a bio goes to a path by itself (dm-mpath-bio.c, dm-rq-single.c)
 * @path: the path
 * @bio: the bio
 *
 * Context: any.
 * Return: for mprr_stats_bio_end().
 */
u64 mprr_stats_bio_start(struct mprr_path *path, const struct bio *bio)
{
	return count_start(path, op_stat_group(bio_op(bio)));
}

/**
 * mprr_stats_bio_end - such a bio has ended
 * @path: the path
 * @bio: the bio
 * @nr_bytes: its size when it began
 * @sample_ns: what mprr_stats_bio_start() said
 *
 * Context: any.
 */
void mprr_stats_bio_end(struct mprr_path *path, const struct bio *bio, unsigned int nr_bytes,
			u64 sample_ns)
{
	struct mprr_stats_cpu __percpu *stats = path->stats;
	int dir = op_stat_group(bio_op(bio));

	this_cpu_inc(stats->dir[dir].ended);
	this_cpu_add(stats->dir[dir].bytes, nr_bytes);
	if (bio->bi_status)
		this_cpu_inc(stats->dir[dir].errors);
	else if (sample_ns)
		end_sample(path, sample_ns, dir);
}

/* What has ended is read first: it had started by then. */
static void sum_up(const struct mprr_path *path, struct mprr_stats_cpu *sum)
{
	unsigned int cpu, dir;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct mprr_stats_cpu *stats = per_cpu_ptr(path->stats, cpu);

		sum->busy += READ_ONCE(stats->busy);
		for (dir = 0; dir < NR_DIRS; dir++) {
			const struct mprr_dir_count *from = &stats->dir[dir];
			struct mprr_dir_count *to = &sum->dir[dir];

			to->ended += READ_ONCE(from->ended);
			to->bytes += READ_ONCE(from->bytes);
			to->errors += READ_ONCE(from->errors);
			to->refused += READ_ONCE(from->refused);
			to->uncounted += READ_ONCE(from->uncounted);
		}
	}
	/* Pairs with no barrier: a number in flight may be a moment's too large. */
	smp_rmb();
	for_each_possible_cpu(cpu)
		for (dir = 0; dir < NR_DIRS; dir++)
			sum->dir[dir].started +=
				READ_ONCE(per_cpu_ptr(path->stats, cpu)->dir[dir].started);
}

/**
 * mprr_stats_started - what has gone to all paths of a map
 * @map: the map
 *
 * Context: process.
 * Return: how many requests or bios, those that came back for another try included.
 */
u64 mprr_stats_started(const struct mprr_map *map)
{
	unsigned int g, i, dir;
	u64 nr = 0;

	for (g = 0; g < map->nr_groups; g++) {
		for (i = 0; i < map->groups[g]->nr_paths; i++) {
			struct mprr_stats_cpu sum;

			sum_up(map->groups[g]->paths[i], &sum);
			for (dir = 0; dir < NR_DIRS; dir++)
				nr += sum.dir[dir].started;
			cond_resched();
		}
	}
	return nr;
}

static u64 in_flight(const struct mprr_dir_count *count)
{
	return count->started > count->ended ? count->started - count->ended : 0;
}

/* Requests as the disk counts them. */
static u64 requests(const struct mprr_dir_count *count)
{
	return count->ended - count->uncounted;
}

static unsigned int emit_total(const struct mprr_stats_cpu *sum, char *result,
			       unsigned int maxlen)
{
	struct mprr_dir_count all = {};
	unsigned int dir, sz = 0;

	for (dir = 0; dir < NR_DIRS; dir++) {
		all.started += sum->dir[dir].started;
		all.ended += sum->dir[dir].ended;
		all.bytes += sum->dir[dir].bytes;
		all.errors += sum->dir[dir].errors;
		all.refused += sum->dir[dir].refused;
		all.uncounted += sum->dir[dir].uncounted;
	}
	DMEMIT(" requests=%llu bytes=%llu errors=%llu in_flight=%llu busy=%llu refused=%llu",
	       requests(&all), all.bytes, all.errors, in_flight(&all), sum->busy, all.refused);
	return sz;
}

static u64 nr_samples(const struct mprr_path *path, unsigned int dir)
{
	unsigned int i;
	u64 nr = 0;

	for (i = 0; i < NR_BUCKETS; i++)
		nr += atomic_long_read(&path->latency->buckets[dir][i]);
	return nr;
}

/* The latency that so many of 1000 samples do not exceed, 0 if there is none. */
static u64 percentile_ns(const struct mprr_path *path, unsigned int dir, u64 samples,
			 unsigned int permille)
{
	u64 rank = div_u64(samples * permille + 999, 1000), seen = 0;
	unsigned int i;

	/* Numbers only grow: at the latest the last bucket gets there. */
	for (i = 0; samples && i < NR_BUCKETS; i++) {
		seen += atomic_long_read(&path->latency->buckets[dir][i]);
		if (seen >= rank)
			return bucket_ns(i);
	}
	return 0;
}

static unsigned int emit_latency(const struct mprr_path *path, unsigned int dir,
				 char *result, unsigned int maxlen)
{
	static const struct {
		const char *name;
		unsigned int permille;
	} percentiles[] = {
		{ "p50", 500 }, { "p95", 950 }, { "p99", 990 }, { "p999", 999 },
	};
	u64 samples = nr_samples(path, dir);
	unsigned int i, sz = 0;

	DMEMIT(" %s_samples=%llu", dir_names[dir], samples);
	for (i = 0; i < ARRAY_SIZE(percentiles); i++) {
		u64 ns = percentile_ns(path, dir, samples, percentiles[i].permille);
		u32 rest;
		u64 us = div_u64_rem(ns, NSEC_PER_USEC, &rest);

		DMEMIT(" %s_%s_us=%llu.%u", dir_names[dir], percentiles[i].name, us, rest / 100);
	}
	return sz;
}

static unsigned int emit_state(const struct mprr_path *path, char *result, unsigned int maxlen)
{
	struct mprr_map *map = path->group->map;
	unsigned int fail_count, sz = 0;
	unsigned long flags;
	time64_t changed_s;
	bool active;

	spin_lock_irqsave(&map->lock, flags);
	active = path->active;
	fail_count = path->fail_count;
	changed_s = path->changed_s;
	spin_unlock_irqrestore(&map->lock, flags);

	DMEMIT("path=%s group=%u state=%c fail_count=%u changed_s=%lld", path->dev->name,
	       path->group->nr, active ? 'A' : 'F', fail_count,
	       changed_s ? ktime_get_boottime_seconds() - changed_s : -1);
	return sz;
}

static unsigned int emit_path(const struct mprr_path *path, char *result, unsigned int maxlen)
{
	struct mprr_stats_cpu sum;
	unsigned int dir, sz = 0;

	sum_up(path, &sum);
	sz += emit_state(path, result, maxlen);
	sz += emit_total(&sum, result + sz, maxlen - sz);
	for (dir = 0; dir < NR_DIRS; dir++) {
		const struct mprr_dir_count *count = &sum.dir[dir];
		const char *name = dir_names[dir];

		DMEMIT(" %s_requests=%llu %s_bytes=%llu %s_errors=%llu %s_in_flight=%llu",
		       name, requests(count), name, count->bytes, name, count->errors,
		       name, in_flight(count));
		if (dir < NR_LATENCY_DIRS)
			sz += emit_latency(path, dir, result + sz, maxlen - sz);
	}
	return sz;
}

/**
 * mprr_stats_emit - a line for each path
 * @map: the map
 * @result: where the lines go, each behind a line feed
 * @maxlen: room there
 *
 * Context: process.
 * Return: characters written.
 */
unsigned int mprr_stats_emit(struct mprr_map *map, char *result, unsigned int maxlen)
{
	unsigned int g, i, sz = 0;

	for (g = 0; g < map->nr_groups; g++) {
		for (i = 0; i < map->groups[g]->nr_paths; i++) {
			DMEMIT("\n");
			sz += emit_path(map->groups[g]->paths[i], result + sz, maxlen - sz);
			cond_resched();
		}
	}
	return sz;
}

static unsigned int emit_histogram(const struct mprr_path *path, unsigned int dir,
				   char *result, unsigned int maxlen)
{
	unsigned int i, sz = 0;

	DMEMIT("path=%s group=%u dir=%s", path->dev->name, path->group->nr, dir_names[dir]);
	for (i = 0; i < NR_BUCKETS; i++) {
		long nr = atomic_long_read(&path->latency->buckets[dir][i]);

		if (nr)
			DMEMIT(" %llu:%ld", bucket_ns(i), nr);
	}
	return sz;
}

/**
 * mprr_stats_emit_histograms - a line for each path and direction
 * @map: the map
 * @result: where the lines go
 * @maxlen: room there
 *
 * Context: process.
 */
void mprr_stats_emit_histograms(struct mprr_map *map, char *result, unsigned int maxlen)
{
	unsigned int g, i, dir, sz = 0;

	for (g = 0; g < map->nr_groups; g++) {
		for (i = 0; i < map->groups[g]->nr_paths; i++) {
			for (dir = 0; dir < NR_LATENCY_DIRS; dir++) {
				if (sz)
					DMEMIT("\n");
				sz += emit_histogram(map->groups[g]->paths[i], dir,
						     result + sz, maxlen - sz);
			}
			cond_resched();
		}
	}
}

/**
 * mprr_stats_init - begin to count
 * @path: the path
 *
 * Context: constructor.
 * Return: 0 or -ENOMEM; mprr_stats_exit() is due in any case.
 */
int mprr_stats_init(struct mprr_path *path)
{
	path->stats = alloc_percpu(struct mprr_stats_cpu);
	path->latency = kvcalloc(1, sizeof(*path->latency), GFP_KERNEL);
	return path->stats && path->latency ? 0 : -ENOMEM;
}

/**
 * mprr_stats_exit - free the counters
 * @path: the path
 */
void mprr_stats_exit(struct mprr_path *path)
{
	free_percpu(path->stats);
	kvfree(path->latency);
}
