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
 * carry the bios the better: a small cap makes them wait and merge.  If it is
 * the paths, they must be kept busy: a small cap would starve them.  Which of
 * the two it is, and where, shows in the rate of bios.  So the cap climbs: at
 * times a larger or a smaller one is tried for a while, and stays if the rate is
 * clearly higher with the larger one, or about as high with the smaller one.
 * What does not help is tried less and less often.
 *
 * All values are guesses that a later one mends, so they are read and written
 * without a lock; a lost update does no harm.  Only the begin and the end of a
 * trial are counted and traced, and are exact: GATE_TRIAL lets one processor at
 * a time see to them, and nobody waits for it.
 */

#include <linux/hash.h>
#include <linux/slab.h>

#include "dm-mpath-trace.h"
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

/* One of so many requests must have merged: in a trial, and from then on. */
#define TRIAL_REQUESTS		64
#define PATIENCE		256

/*
 * A trial that fails has held up what did not merge: the pause after it is so
 * many times as long as it was, and twice that after each further one.
 */
#define PAUSE_FACTOR		8
#define PAUSE_FAILS_MAX		5
#define PAUSE_MAX_NS		(30 * NSEC_PER_SEC)

/* Without a request for this long, it is another flow. */
#define IDLE_JIFFIES		(HZ / 10)

/* Time limits while the user sets none, in nanoseconds. */
#define LAZY_NS			(450 * NSEC_PER_USEC)
#define HOLD_MIN_NS		NSEC_PER_MSEC
#define HOLD_MAX_NS		(20 * NSEC_PER_MSEC)

/* Share of openings that were late, in 1/256, while a processor is idle at times. */
#define LATE_SELDOM		64

/* A rate is measured over so many times that a clone takes, within these limits. */
#define WINDOW_CLONES		8
#define WINDOW_MIN_NS		(20 * NSEC_PER_MSEC)
#define WINDOW_MAX_NS		(200 * NSEC_PER_MSEC)
#define WINDOW_BIOS		256

/* Windows between two tries: 2 to the power of the failures in a row. */
#define CLIMB_FAILS_MAX		5

#define CAP_START		4
#define CAP_MIXED		16U
#define CAP_MAX			4096U

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

/* Random I/O beside what merges needs the paths at work. */
static unsigned int cap_floor(const struct mprr_gate *gate)
{
	return gate->could < SHARE_MIXED ? CAP_MIXED : 1;
}

/*
 * Measure the rate with this cap, from when what is under way has ended, and
 * what waits has been sent: until then requests are as large as they were.
 */
static void climb_measure(struct mprr_gate *gate, enum mprr_climb climb, unsigned int cap, u64 now)
{
	gate->climb = climb;
	gate->window_ns = now + 2 * min_t(u64, gate->took_ns + gate->wait_ns, WINDOW_MAX_NS);
	gate->window_begun = false;
	cap = clamp(cap, cap_floor(gate), CAP_MAX);
	if (climb == CLIMB_STAY)
		gate->climb_cap = cap;
	WRITE_ONCE(gate->cap, cap);
}

/* Try what did not fail last, or go back to the cap that is the best so far. */
static void climb_failed(struct mprr_gate *gate, enum mprr_climb next, u64 now)
{
	gate->climb_next = next;
	if (next == CLIMB_DOWN)
		gate->climb_fast = false;
	gate->climb_fails = min(gate->climb_fails + 1, CLIMB_FAILS_MAX);
	gate->climb_wait = 1 << gate->climb_fails;
	climb_measure(gate, CLIMB_STAY, gate->climb_cap, now);
}

static void climb_try(struct mprr_gate *gate, u64 now)
{
	unsigned int cap = gate->climb_cap;

	if (gate->climb_next == CLIMB_UP)
		cap += gate->climb_fast ? cap : DIV_ROUND_UP(cap, 2);
	else
		cap -= DIV_ROUND_UP(cap, 3);
	climb_measure(gate, gate->climb_next, cap, now);
	/* Nowhere to go: the other way is the next one. */
	if (READ_ONCE(gate->cap) == gate->climb_cap)
		climb_failed(gate, gate->climb_next == CLIMB_UP ? CLIMB_DOWN : CLIMB_UP, now);
}

/* The rate with the present cap is known: in bios per second. */
static void climb(struct mprr_gate *gate, u64 rate, u64 now)
{
	bool better;

	switch (gate->climb) {
	case CLIMB_UP:
		better = rate > gate->climb_rate + gate->climb_rate / 8;
		break;
	case CLIMB_DOWN:
		better = rate + rate / 32 >= gate->climb_rate;
		break;
	default:
		gate->climb_rate = rate;
		if (gate->climb_wait) {
			gate->climb_wait--;
			climb_measure(gate, CLIMB_STAY, gate->climb_cap, now);
			return;
		}
		climb_try(gate, now);
		return;
	}

	if (!better) {
		climb_failed(gate, gate->climb == CLIMB_UP ? CLIMB_DOWN : CLIMB_UP, now);
		return;
	}
	gate->climb_fails = 0;
	gate->climb_rate = rate;
	gate->climb_cap = READ_ONCE(gate->cap);
	climb_try(gate, now);
}

static void climb_start(struct mprr_gate *gate, unsigned int cap, u64 now)
{
	gate->climb_cap = cap;
	gate->climb_fails = 0;
	gate->climb_wait = 0;
	climb_measure(gate, CLIMB_STAY, cap, now);
}

/* Is it time to look at the rate? */
static void look_at_rate(struct mprr_gate *gate, u64 now)
{
	s64 took = now - gate->window_ns;
	u64 length = clamp_t(u64, max(WINDOW_CLONES * gate->took_ns, gate->wait_ns),
			     WINDOW_MIN_NS, WINDOW_MAX_NS);
	u64 closed;

	if (took < 0)
		return;
	if (!gate->window_begun) {
		gate->window_begun = true;
		gate->window_ns = now;
		gate->window_bios = 0;
		return;
	}
	if (took < length || gate->window_bios < WINDOW_BIOS)
		return;

	closed = atomic64_read(&gate->nr_closed);
	if (closed == gate->window_closed)
		mprr_gate_probe(gate);
	gate->window_closed = closed;
	climb(gate, div64_u64((u64)gate->window_bios * NSEC_PER_SEC, took), now);
}

/* A trial without success: the next one comes after a pause. */
static void pause_trials(struct mprr_gate *gate)
{
	u64 now = ktime_get_ns();
	u64 pause = (now - gate->trial_ns) * PAUSE_FACTOR << gate->pause_fails;

	gate->pause_ends_ns = now + min(pause, PAUSE_MAX_NS);
	gate->pause_fails = min(gate->pause_fails + 1, PAUSE_FAILS_MAX);
}

/*
 * Several processors dispatch: whoever finds another one at it leaves it to
 * that one, and looks again at the next request.
 */
static void end_holding(struct mprr_gate *gate)
{
	if (test_and_set_bit_lock(GATE_TRIAL, &gate->flags))
		return;
	if (test_bit(GATE_HOLDING, &gate->flags)) {
		gate->could = 0;
		if (gate->proven)
			gate->pause_fails = 0;
		else
			pause_trials(gate);
		trace_mprr_trial_ended(gate);
		clear_bit(GATE_HOLDING, &gate->flags);
	}
	clear_bit_unlock(GATE_TRIAL, &gate->flags);
}

/* Bios weigh alike, in requests of any size. */
static unsigned int average(unsigned int share, bool hit, unsigned int nr_bios)
{
	int weight = min_t(unsigned int, nr_bios, SHARE_WEIGHT);

	return (int)share + ((hit ? SHARE_ALL : 0) - (int)share) * weight / (SHARE_WEIGHT + weight);
}

/* The gate works: go on with it? */
static void judge_holding(struct mprr_gate *gate, const struct request *rq, bool merged,
			  unsigned int nr_bios, u64 now)
{
	/* The core stamps requests while iostats are on; the wait is 0 otherwise. */
	if (now && rq->start_time_ns) {
		s64 wait = min_t(u64, mprr_elapsed_ns(rq->start_time_ns, now), NSEC_PER_SEC);

		gate->wait_ns += (wait - (s64)gate->wait_ns) / 8;
	}

	/* What had been sent or had come before the trial says nothing. */
	if (gate->skip) {
		gate->skip--;
		return;
	}
	if (!gate->proven && !merged && rq->start_time_ns && rq->start_time_ns < gate->trial_ns)
		return;

	gate->merged = average(gate->merged, merged, nr_bios);
	if (merged) {
		gate->proven = true;
		gate->patience = PATIENCE;
	}
	if (gate->merged < SHARE_GO_ON || !--gate->patience) {
		end_holding(gate);
		return;
	}

	gate->window_bios += nr_bios;
	if (now && gate->proven)
		look_at_rate(gate, now);
}

static void begin_trial(struct mprr_gate *gate, u64 now)
{
	gate->skip = atomic_read(&gate->in_flight) + CAP_START;
	gate->proven = false;
	gate->patience = TRIAL_REQUESTS;
	gate->merged = SHARE_ALL;
	gate->could = SHARE_ALL;
	gate->climb_fast = true;
	gate->wait_ns = 0;
	/* What merges little with a few in flight looks as if more were better. */
	gate->climb_next = CLIMB_DOWN;
	gate->trial_ns = now;
	climb_start(gate, CAP_START, now);
	gate->nr_trials++;
}

/* See end_holding(). */
static void begin_holding(struct mprr_gate *gate, u64 now)
{
	if (test_and_set_bit_lock(GATE_TRIAL, &gate->flags))
		return;
	/* Another one may have begun it, or ended it with a pause, since we looked. */
	if (!test_bit(GATE_HOLDING, &gate->flags) && now >= gate->pause_ends_ns) {
		begin_trial(gate, now);
		trace_mprr_trial_began(gate);
		set_bit(GATE_HOLDING, &gate->flags);
	}
	clear_bit_unlock(GATE_TRIAL, &gate->flags);
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
	u64 now_ns;

	if (unlikely(time_after(now, READ_ONCE(gate->last_start) + IDLE_JIFFIES)) &&
	    !atomic_read(&gate->in_flight)) {
		if (test_bit(GATE_HOLDING, &gate->flags))
			end_holding(gate);
		gate->could = 0;
		gate->pause_ends_ns = 0;
		gate->pause_fails = 0;
	}
	WRITE_ONCE(gate->last_start, now);

	gate->could = average(gate->could, could, nr_bios);
	gate->follows = average(gate->follows, could, nr_bios);
	if (test_bit(GATE_HOLDING, &gate->flags)) {
		/* One of four is timed. */
		if (!(gate->nr_requests & 3))
			io->start_ns = ktime_get_ns();
		judge_holding(gate, rq, small && nr_bios > 1, nr_bios, io->start_ns);
		return test_bit(GATE_HOLDING, &gate->flags);
	}

	if (gate->could < SHARE_BEGIN)
		return false;
	/* Here only flows pay for the clock that look as if they would merge. */
	now_ns = ktime_get_ns();
	if (now_ns < gate->pause_ends_ns)
		return false;

	begin_holding(gate, now_ns);
	return test_bit(GATE_HOLDING, &gate->flags);
}

/**
 * mprr_auto_sequential - do requests follow one another?
 * @gate: the gate
 *
 * Context: any.
 * Return: true if most of the recent ones did, or had merged.
 */
bool mprr_auto_sequential(const struct mprr_gate *gate)
{
	return READ_ONCE(gate->follows) >= SHARE_ALL / 2;
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
	s64 took = min_t(u64, mprr_elapsed_ns(io->start_ns, ktime_get_ns()), NSEC_PER_SEC);

	gate->took_ns += (took - (s64)gate->took_ns) / 8;
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
		climb_start(gate, min(2 * READ_ONCE(gate->cap), CAP_MAX), ktime_get_ns());
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
 * Return: characters written.
 */
unsigned int mprr_auto_stats(const struct mprr_gate *gate, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT("requests %llu bios %llu in_flight %d holding %d cap %u closed %llu deadline %llu",
	       gate->nr_requests, gate->nr_bios, atomic_read(&gate->in_flight),
	       test_bit(GATE_HOLDING, &gate->flags), gate->cap,
	       (u64)atomic64_read(&gate->nr_closed), gate->nr_deadline);
	DMEMIT(" trials %llu merged_percent %u late_percent %u clone_us %llu",
	       gate->nr_trials, gate->merged * 100 / SHARE_ALL, gate->late * 100 / 256,
	       div_u64(gate->took_ns, NSEC_PER_USEC));
	DMEMIT(" best_cap %u best_rate %llu", gate->climb_cap, gate->climb_rate);
	return sz;
}

/**
 * mprr_auto_init - begin to learn
 * @gate: the gate
 *
 * Return: 0 or -ENOMEM.
 */
int mprr_auto_init(struct mprr_gate *gate)
{
	gate->ends = kvcalloc(1 << ENDS_BITS, sizeof(*gate->ends), GFP_KERNEL);
	if (!gate->ends)
		return -ENOMEM;
	gate->last_start = jiffies;
	gate->cap = CAP_START;
	gate->climb_cap = CAP_START;
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
