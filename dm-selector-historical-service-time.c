// SPDX-License-Identifier: GPL-2.0
/*
 * Path selector historical-service-time: the path that has been the fastest.
 *
 * DOC: historical-service-time
 *
 * Each path has an average of how long its requests took, decaying with each
 * one that completes (fixed point, 1024 is 1):
 *
 *	average = (base_weight * average + (1024 - base_weight) * took) / 1024
 *
 * A request goes to the path with the least
 *
 *	average * (requests in flight + 1)
 *
 * that is, where it is expected to complete first.  Two paths whose averages
 * differ by no more than threshold_multiplier / 1024 of the smaller one, or one
 * of which has no average yet, are compared by requests in flight alone.
 *
 * A path that gets no requests has no chance to show that it has become faster.
 * So 64 times its average after the last sample (0.1 to 10 s) its average is
 * *stale*: while nothing is in flight on it, it goes before all others, and the
 * first sample of a request that was sent then takes the place of the average.
 * That is one request at a time, about one part in 64 of the path's time.
 * Requests that fail give no sample: a broken path is fast.
 *
 * No lock.  A sample whose update of the average meets another one is dropped,
 * which the other one makes up for.  average and stale_after are each written
 * at once and need not match: only the choice of one request depends on it.
 *
 * It owns &mprr_group.ps_data and &mprr_path.ps_data.  One clock, which neither
 * steps nor runs while the machine sleeps.  Called from any context.
 */

#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "dm-path-selector.h"

#define HST_SHIFT		10
#define HST_ONE			BIT(HST_SHIFT)
#define HST_BASE_WEIGHT		972	/* 0.95: the last 20 requests or so */
/* Keeps average * (requests in flight + 1) within 64 bits for 4 million of those. */
#define HST_MAX_NS		BIT_ULL(32)

#define HST_STALE_TIMES		64
#define HST_STALE_MIN_NS	(100 * NSEC_PER_MSEC)
#define HST_STALE_MAX_NS	(10 * NSEC_PER_SEC)

/* The group's words; constant after init. */
struct hst_group {
	unsigned int nr_words;	/* in the table */
	unsigned int base_weight;
	unsigned int threshold_multiplier;
};

struct hst_path {
	atomic64_t average;	/* nanoseconds << HST_SHIFT; 0: no sample yet */
	u64 stale_after;	/* ktime_get_ns(); written by completions, any order */
	unsigned int repeat_count;	/* as loaded, 0 if the table has none */
};

static bool hst_wants_probe(const struct mprr_path *path, int in_flight, u64 now)
{
	const struct hst_path *hst = path->ps_data;

	return !in_flight && now >= READ_ONCE(hst->stale_after);
}

static bool hst_alike(const struct mprr_group *group, u64 a, u64 b)
{
	const struct hst_group *hst = group->ps_data;
	u64 least = min(a, b), most = max(a, b);

	/* The averages are 2^42 at most: the product may need more than 64 bits. */
	return !least ||
	       most - least <= mul_u64_u32_shr(least, hst->threshold_multiplier, HST_SHIFT);
}

static bool hst_less(const struct mprr_path *a, const struct mprr_path *b, size_t nr_bytes)
{
	const struct hst_path *ha = a->ps_data, *hb = b->ps_data;
	int na = atomic_read(&a->in_flight), nb = atomic_read(&b->in_flight);
	/* To a tick; it is read for each comparison. */
	u64 now = ktime_get_coarse_ns();
	bool pa = hst_wants_probe(a, na, now), pb = hst_wants_probe(b, nb, now);
	u64 ta, tb;

	if (pa != pb)
		return pa;
	ta = atomic64_read(&ha->average);
	tb = atomic64_read(&hb->average);
	if (hst_alike(a->group, ta, tb))
		return na < nb;
	return ta * (na + 1) < tb * (nb + 1);
}

static struct mprr_path *hst_select(struct mprr_group *group, size_t nr_bytes)
{
	return mprr_selector_least(group, nr_bytes, hst_less);
}

static void hst_end_io(struct mprr_path *path, size_t nr_bytes, u64 sent_ns)
{
	const struct hst_group *group = path->group->ps_data;
	struct hst_path *hst = path->ps_data;
	u64 now, took, average;
	s64 before;

	if (!sent_ns)
		return;
	now = ktime_get_ns();
	/* No time at all would read as "no sample". */
	took = clamp_t(u64, mprr_elapsed_ns(sent_ns, now), 1, HST_MAX_NS) << HST_SHIFT;

	before = atomic64_read(&hst->average);
	average = took;
	if (before && sent_ns < READ_ONCE(hst->stale_after))
		average = (group->base_weight * (u64)before +
			   (HST_ONE - group->base_weight) * took) >> HST_SHIFT;
	/* Once: whoever changed it meanwhile had a sample just as good. */
	atomic64_try_cmpxchg(&hst->average, &before, max_t(u64, average, 1));

	WRITE_ONCE(hst->stale_after,
		   now + clamp_t(u64, (average >> HST_SHIFT) * HST_STALE_TIMES,
				 HST_STALE_MIN_NS, HST_STALE_MAX_NS));
}

static int hst_create(struct mprr_group *group, unsigned int argc, char **argv,
		      const char **error, unsigned int *bad)
{
	struct hst_group *hst = kzalloc_obj(*hst);

	*error = "no memory for historical-service-time";
	if (!hst)
		return -ENOMEM;
	group->ps_data = hst;
	hst->base_weight = HST_BASE_WEIGHT;

	*error = "historical-service-time takes at most base weight and threshold multiplier";
	*bad = 2;
	if (argc > 2)
		return -EINVAL;
	hst->nr_words = argc;

	*error = "base weight must be a number 0..1023";
	*bad = 0;
	if (argc > 0 && (mprr_read_uint(argv[0], &hst->base_weight) ||
			 hst->base_weight >= HST_ONE))
		return -EINVAL;

	*error = "threshold multiplier must be an unsigned number";
	*bad = 1;
	if (argc > 1 && mprr_read_uint(argv[1], &hst->threshold_multiplier))
		return -EINVAL;
	return 0;
}

static void hst_destroy(struct mprr_group *group)
{
	kfree(group->ps_data);
}

static int hst_add_path(struct mprr_path *path, unsigned int argc, char **argv,
			const char **error, unsigned int *bad)
{
	struct hst_path *hst;

	*error = "no memory for a path's history";
	hst = kzalloc_obj(*hst);
	if (!hst)
		return -ENOMEM;
	path->ps_data = hst;

	/*
	 * The repeat count is only shown: each request goes where it is best.  A table
	 * that came back without it would make multipathd load it again and again.
	 */
	if (argc)
		hst->repeat_count = path->ps_words[0];
	path->ps_words[0] = 1;
	return 0;
}

static void hst_remove_path(struct mprr_path *path)
{
	kfree(path->ps_data);
}

/* INFO has the values in force, TABLE the words as loaded, for multipathd's comparison. */
static unsigned int hst_emit_group(const struct mprr_group *group, status_type_t type,
				   char *result, unsigned int maxlen)
{
	const struct hst_group *hst = group->ps_data;
	unsigned int nr_words = type == STATUSTYPE_TABLE ? hst->nr_words : 2, sz = 0;

	DMEMIT("%u ", nr_words);
	if (nr_words > 0)
		DMEMIT("%u ", hst->base_weight);
	if (nr_words > 1)
		DMEMIT("%u ", hst->threshold_multiplier);
	return sz;
}

static unsigned int hst_emit_path(const struct mprr_path *path, status_type_t type,
				  char *result, unsigned int maxlen)
{
	struct hst_path *hst = path->ps_data;

	switch (type) {
	case STATUSTYPE_INFO:
		return scnprintf(result, maxlen, "%llu %d %llu ",
				 (u64)atomic64_read(&hst->average),
				 atomic_read(&path->in_flight),
				 READ_ONCE(hst->stale_after));
	case STATUSTYPE_TABLE:
		return scnprintf(result, maxlen, "%u ", hst->repeat_count);
	default:
		return 0;
	}
}

const struct mprr_selector_type mprr_historical_service_time = {
	.name		= "historical-service-time",
	.max_words	= 1,
	.wrong_count	= "historical-service-time takes at most a repeat count per path",
	.timed		= true,
	.table_args	= 1,
	.info_args	= 3,
	.create		= hst_create,
	.destroy	= hst_destroy,
	.add_path	= hst_add_path,
	.remove_path	= hst_remove_path,
	.select		= hst_select,
	.another	= mprr_selector_next,
	.end_io		= hst_end_io,
	.emit_group	= hst_emit_group,
	.emit_path	= hst_emit_path,
};
