// SPDX-License-Identifier: GPL-2.0
/*
 * What the gate finds out by itself: is this a flow that merges, how many
 * clones must be in flight, and how long may a request be held?
 *
 * DOC: is this a flow that merges?
 *
 * A request *could merge* if it is small and begins where a recent one of its
 * direction ended, or has merged already.  The share of such bios, an average,
 * starts a trial: the gate works, and what counts from then on is the share of
 * the bios that really came merged.  A trial without success ends soon, and the
 * next one comes after a pause that doubles each time: a lone reader, a
 * random load, or writers who wait for each request pay next to nothing.
 *
 * DOC: how many clones must be in flight?
 *
 * Two things can be short.  If it is the processor, then the fewer requests
 * carry the bios the better: the cap falls to 2, one request for a path to work
 * on while bios join the next one.  That is seen by how late the thread of the
 * lowest priority runs.  If it is not, the paths must be kept
 * busy: the cap rises while the time that a clone takes does not rise with it,
 * and falls when clones begin to wait for each other in the device (the idea of
 * TCP Vegas, Brakmo and Peterson 1995).
 * Requests of different sizes take different times, so the least time is kept
 * for each class of sizes.
 *
 * All values are guesses that a later one mends, so they are read and written
 * without a lock; a lost update does no harm.
 */

#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "dm-rq-auto.h"
#include "dm-rq-merge.h"

/* Where recent requests ended: enough for some hundred streams. */
#define ENDS_BITS		10

/* What a bio must not exceed, on average, to be worth merging: bytes. */
#define SMALL_BIO		(64 * 1024)

/* Shares of bios, with this as the whole: an average must not get stuck. */
#define SHARE_ALL		65536
/* That could merge, to begin; that did, to go on. */
#define SHARE_BEGIN		(SHARE_ALL * 30 / 100)
#define SHARE_GO_ON		(SHARE_ALL * 10 / 100)
/* Below this, random I/O is a part that needs the paths at work. */
#define SHARE_MIXED		(SHARE_ALL * 60 / 100)

/* The averages look back over about as many bios. */
#define SHARE_WEIGHT		512

/* One of so many requests must have merged in a trial. */
#define TRIAL_REQUESTS		64

/* Bios between two adaptions, and of the pauses between trials. */
#define WINDOW_BIOS		256
#define PAUSE_MIN		256
#define PAUSE_MAX		16384

/* No pause is longer than this; without a request for this long, it is another flow. */
#define PAUSE_JIFFIES		HZ
#define IDLE_JIFFIES		(HZ / 10)

/* Time limits while the user sets none, in nanoseconds. */
#define LAZY_NS			(450 * NSEC_PER_USEC)
#define HOLD_MIN_NS		NSEC_PER_MSEC
#define HOLD_MAX_NS		(20 * NSEC_PER_MSEC)

/* Share of late openings, in 1/256: no processor is idle; one is. */
#define LATE_OFTEN		128
#define LATE_SELDOM		64

/* Time of clones in 1/16 of the least: the device is not full; it is. */
#define SLOWER_LITTLE		18
#define SLOWER_MUCH		22

/* How long a least time is believed. */
#define LEAST_NS		NSEC_PER_SEC

#define CAP_START		4
#define CAP_MIXED		16U
#define CAP_MAX			4096U
#define CAP_MIN			2U

static unsigned int end_key(sector_t sector, const struct request *rq)
{
	/* Part of the sector is enough: a wrong hit is one of many. */
	return (u32)sector << 1 | op_is_write(req_op(rq));
}

/* Does the request begin where a recent one ended?  Remember where it ends. */
static bool continues(struct mprr_gate *gate, const struct request *rq)
{
	u32 key = end_key(blk_rq_pos(rq), rq);
	bool hit = READ_ONCE(gate->ends[hash_32(key, ENDS_BITS)]) == key;

	key = end_key(blk_rq_pos(rq) + blk_rq_sectors(rq), rq);
	WRITE_ONCE(gate->ends[hash_32(key, ENDS_BITS)], key);
	return hit;
}

/* More clones at a time, or fewer?  Asked at the end of each window. */
static void adapt_cap(struct mprr_gate *gate)
{
	unsigned int cap = READ_ONCE(gate->cap);

	if (gate->late > LATE_OFTEN) {
		cap -= DIV_ROUND_UP(cap, 4);
	} else if (gate->late < LATE_SELDOM) {
		if (gate->slower < SLOWER_LITTLE)
			cap += DIV_ROUND_UP(cap, 4);
		else if (gate->slower > SLOWER_MUCH)
			cap -= DIV_ROUND_UP(cap, 8);
	}
	if (gate->merged < SHARE_MIXED)
		cap = max(cap, CAP_MIXED);
	WRITE_ONCE(gate->cap, clamp(cap, CAP_MIN, CAP_MAX));
}

static void end_holding(struct mprr_gate *gate)
{
	clear_bit(GATE_HOLDING, &gate->flags);
	gate->could = 0;
	gate->pause = gate->next_pause;
	gate->pause_ends = jiffies + PAUSE_JIFFIES;
	gate->next_pause = min(gate->next_pause * 2, (unsigned int)PAUSE_MAX);
}

/* Bios weigh alike, in requests of any size. */
static unsigned int average(unsigned int share, bool hit, unsigned int nr_bios)
{
	int weight = min_t(unsigned int, nr_bios, SHARE_WEIGHT);

	return (int)share + ((hit ? SHARE_ALL : 0) - (int)share) * weight / (SHARE_WEIGHT + weight);
}

/* The gate works: go on with it? */
static void judge_holding(struct mprr_gate *gate, bool merged, unsigned int nr_bios)
{
	/* What had been let out before the gate closed says nothing. */
	if (gate->skip) {
		gate->skip--;
		return;
	}

	gate->merged = average(gate->merged, merged, nr_bios);
	if (merged)
		gate->trial = 0;
	if (gate->merged < SHARE_GO_ON || (gate->trial && !--gate->trial)) {
		end_holding(gate);
		return;
	}

	gate->window_bios += nr_bios;
	if (gate->window_bios < WINDOW_BIOS)
		return;
	gate->window_bios = 0;
	if (!gate->trial)
		gate->next_pause = PAUSE_MIN;
	adapt_cap(gate);
	if (gate->nr_closed == gate->window_closed)
		mprr_gate_probe(gate);
	gate->window_closed = gate->nr_closed;
}

/**
 * mprr_auto_judge - learn from a request that is dispatched
 * @gate: the gate
 * @io: the request's data; a time of start is set if it is a sample
 * @rq: the request
 * @nr_bios: the number of its bios
 *
 * Context: queue_rq, atomic.
 * Return: true if the gate should work.
 */
bool mprr_auto_judge(struct mprr_gate *gate, struct mprr_io *io, struct request *rq,
		     unsigned int nr_bios)
{
	bool small = blk_rq_bytes(rq) < nr_bios * SMALL_BIO;
	bool could = small && (continues(gate, rq) || nr_bios > 1);
	unsigned long now = jiffies;

	if (unlikely(time_after(now, READ_ONCE(gate->last_start) + IDLE_JIFFIES)) &&
	    !atomic_read(&gate->in_flight)) {
		gate->pause = 0;
		gate->next_pause = PAUSE_MIN;
	}
	WRITE_ONCE(gate->last_start, now);

	if (test_bit(GATE_HOLDING, &gate->flags)) {
		if (!(gate->nr_requests & 3))
			io->start_ns = ktime_get_ns();
		judge_holding(gate, small && nr_bios > 1, nr_bios);
		return test_bit(GATE_HOLDING, &gate->flags);
	}

	if (gate->pause && time_before(now, gate->pause_ends)) {
		gate->pause -= min(gate->pause, nr_bios);
		return false;
	}
	gate->pause = 0;
	gate->could = average(gate->could, could, nr_bios);
	if (gate->could < SHARE_BEGIN)
		return false;

	gate->skip = atomic_read(&gate->in_flight) + CAP_START;
	gate->trial = TRIAL_REQUESTS;
	gate->merged = SHARE_ALL;
	gate->window_bios = 0;
	WRITE_ONCE(gate->cap, CAP_START);
	gate->nr_trials++;
	set_bit(GATE_HOLDING, &gate->flags);
	return true;
}

/**
 * mprr_auto_sample - learn from a clone that completed
 * @gate: the gate
 * @io: its data, with a time of start
 *
 * Context: any.
 */
void mprr_auto_sample(struct mprr_gate *gate, const struct mprr_io *io)
{
	u64 now = ktime_get_ns(), took = max_t(u64, now - io->start_ns, 1);
	unsigned int class = min(ilog2(io->nr_bytes >> 12 | 1) / 2, MPRR_NR_CLASSES - 1);
	struct mprr_least *least = &gate->least[class];
	int slower;
	s64 since;

	/* The least of this second and of the one before; a clone of another CPU may be ahead. */
	since = now - READ_ONCE(least->since_ns);
	if (since > (s64)LEAST_NS) {
		least->before_ns = since > 2 * (s64)LEAST_NS ? took : least->now_ns;
		least->now_ns = took;
		least->since_ns = now;
	}
	least->now_ns = min(least->now_ns, took);

	took = min_t(u64, took, NSEC_PER_SEC);
	gate->took_ns += ((s64)took - (s64)gate->took_ns) / 8;
	/* Never 0: each is a time of at least 1 ns. */
	slower = min_t(u64, 16 * 64,
		       div64_u64(took * 16, min(READ_ONCE(least->now_ns), READ_ONCE(least->before_ns))));
	gate->slower += (slower - (int)gate->slower) / 4;
}

/**
 * mprr_auto_lag - the gate could open, and it took a while until it did
 * @gate: the gate
 * @lag_ns: how long
 *
 * Context: any.
 */
void mprr_auto_lag(struct mprr_gate *gate, u64 lag_ns)
{
	/* Whatever the user's limit is: this is about the processors. */
	int late = lag_ns > LAZY_NS / 2 ? 256 : 0;

	gate->late += (late - (int)gate->late) / 8;
}

/**
 * mprr_auto_stalled - nothing completed while the gate was closed
 * @gate: the gate
 *
 * A path is slow or stuck, others may not be; unless it is the processor that
 * nobody gets.
 *
 * Context: any.
 */
void mprr_auto_stalled(struct mprr_gate *gate)
{
	if (gate->late < LATE_SELDOM)
		WRITE_ONCE(gate->cap, min(2 * READ_ONCE(gate->cap), CAP_MAX));
	else	/* Nothing runs, so nobody is late: believe it less each time. */
		gate->late -= DIV_ROUND_UP(gate->late, 8);
}

/**
 * mprr_auto_lazy_ns - how long may opening be left to the thread?
 * @gate: the gate
 *
 * Return: nanoseconds.
 */
u64 mprr_auto_lazy_ns(const struct mprr_gate *gate)
{
	unsigned int us = READ_ONCE(gate->hold_us);

	return us == MPRR_AUTO ? LAZY_NS : (u64)us * NSEC_PER_USEC;
}

/**
 * mprr_auto_hold_ns - how long may the gate wait for a completion?
 * @gate: the gate
 *
 * Return: nanoseconds.
 */
u64 mprr_auto_hold_ns(const struct mprr_gate *gate)
{
	unsigned int us = READ_ONCE(gate->hold_us);

	if (us != MPRR_AUTO)
		return (u64)us * NSEC_PER_USEC;
	return clamp_t(u64, 2 * gate->took_ns, HOLD_MIN_NS, HOLD_MAX_NS);
}

/**
 * mprr_auto_stats - what the gate did and why
 * @gate: the gate
 * @result: where the line goes
 * @maxlen: room there
 *
 * Context: any; the numbers are those of slightly different moments.
 */
void mprr_auto_stats(const struct mprr_gate *gate, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT("requests %llu bios %llu in_flight %d holding %d cap %u closed %llu deadline %llu",
	       gate->nr_requests, gate->nr_bios, atomic_read(&gate->in_flight),
	       test_bit(GATE_HOLDING, &gate->flags), gate->cap, gate->nr_closed,
	       gate->nr_deadline);
	DMEMIT(" trials %llu merged_percent %u late_percent %u clone_us %llu slower_percent %u",
	       gate->nr_trials, gate->merged * 100 / SHARE_ALL, gate->late * 100 / 256,
	       div_u64(gate->took_ns, NSEC_PER_USEC), gate->slower * 100 / 16);
}

/**
 * mprr_auto_init - begin to learn
 * @gate: the gate
 *
 * Return: 0 or -ENOMEM.
 */
int mprr_auto_init(struct mprr_gate *gate)
{
	unsigned int class;

	gate->ends = kvcalloc(1 << ENDS_BITS, sizeof(*gate->ends), GFP_KERNEL);
	if (!gate->ends)
		return -ENOMEM;
	for (class = 0; class < MPRR_NR_CLASSES; class++) {
		gate->least[class].now_ns = U64_MAX;
		gate->least[class].before_ns = U64_MAX;
	}
	gate->last_start = jiffies;
	gate->next_pause = PAUSE_MIN;
	gate->slower = 16;
	gate->cap = CAP_START;
	gate->hold_us = MPRR_AUTO;
	return 0;
}

/**
 * mprr_auto_exit - free what was learnt
 * @gate: the gate
 */
void mprr_auto_exit(struct mprr_gate *gate)
{
	kvfree(gate->ends);
	gate->ends = NULL;
}
