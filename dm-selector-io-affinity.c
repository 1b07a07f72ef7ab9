// SPDX-License-Identifier: GPL-2.0
/*
 * Path selector io-affinity: each processor has its path.
 *
 * DOC: io-affinity
 *
 * The word of a path is a mask of processors, in the kernel's hexadecimal form.
 * A request goes to the path of the processor that sends it, which is the one
 * that the request was submitted on, or, if it had to wait in the map's queue,
 * the one that runs the queue.  A processor that two paths name belongs to the
 * first of them.
 *
 * When the processor has no path, or its path is not usable, that is a *miss*:
 * it is counted for the group, and the usable paths take turns.  Without a miss
 * nothing is written that processors share.
 *
 * It owns &mprr_group.ps_data and &mprr_path.ps_data, constant after init but
 * for the counter, and the turn.  Called from any context, takes no lock.
 */

#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "dm-path-selector.h"

struct ioa_group {
	atomic_t misses;	/* requests that did not go to their processor's path */
	struct mprr_path *path_of[];	/* by processor, or NULL */
};

struct ioa_path {
	cpumask_var_t mask;	/* as in the table */
};

static bool ioa_usable(const struct mprr_path *path)
{
	return test_bit(path->index, path->group->active) &&
	       test_bit(path->index, path->group->open);
}

static struct mprr_path *ioa_select(struct mprr_group *group, size_t nr_bytes)
{
	struct ioa_group *ioa = group->ps_data;
	/* It may change right after: the path is as good as before. */
	struct mprr_path *path = ioa->path_of[raw_smp_processor_id()];

	if (likely(path && ioa_usable(path)))
		return path;
	atomic_inc(&ioa->misses);
	return mprr_selector_turn(group);
}

static struct mprr_path *ioa_another(struct mprr_path *path, size_t nr_bytes)
{
	struct ioa_group *ioa = path->group->ps_data;

	atomic_inc(&ioa->misses);
	return mprr_selector_next(path, nr_bytes);
}

static int ioa_create(struct mprr_group *group, unsigned int argc, char **argv,
		      const char **error, unsigned int *bad)
{
	struct ioa_group *ioa;

	*error = "no memory for the paths of the processors";
	ioa = kvzalloc(struct_size(ioa, path_of, nr_cpu_ids), GFP_KERNEL);
	group->ps_data = ioa;
	return ioa ? 0 : -ENOMEM;
}

static void ioa_destroy(struct mprr_group *group)
{
	kvfree(group->ps_data);
}

/* Give the processors of the mask to the path; returns how many it got. */
static unsigned int ioa_map(struct mprr_path *path, const struct cpumask *mask)
{
	struct ioa_group *ioa = path->group->ps_data;
	unsigned int cpu, nr = 0;

	for_each_cpu(cpu, mask) {
		if (ioa->path_of[cpu])
			continue;
		ioa->path_of[cpu] = path;
		nr++;
	}
	return nr;
}

static int ioa_add_path(struct mprr_path *path, unsigned int argc, char **argv,
			const char **error, unsigned int *bad)
{
	struct ioa_path *ioa;

	*error = "no memory for a processor mask";
	ioa = kzalloc_obj(*ioa);
	if (!ioa)
		return -ENOMEM;
	path->ps_data = ioa;
	if (!zalloc_cpumask_var(&ioa->mask, GFP_KERNEL))
		return -ENOMEM;

	*error = "processor mask must be hexadecimal and within this machine's processors";
	/* Where masks have a fixed size, it parses more than can be there. */
	if (cpumask_parse(argv[0], ioa->mask) ||
	    find_next_bit(cpumask_bits(ioa->mask), nr_cpumask_bits, nr_cpu_ids) < nr_cpumask_bits)
		return -EINVAL;
	*error = "processor mask names no processor that no path before has";
	return ioa_map(path, ioa->mask) ? 0 : -EINVAL;
}

static void ioa_remove_path(struct mprr_path *path)
{
	struct ioa_path *ioa = path->ps_data;

	if (!ioa)
		return;
	free_cpumask_var(ioa->mask);
	kfree(ioa);
}

static unsigned int ioa_emit_path(const struct mprr_path *path, status_type_t type,
				  char *result, unsigned int maxlen)
{
	const struct ioa_group *group = path->group->ps_data;
	const struct ioa_path *ioa = path->ps_data;

	switch (type) {
	case STATUSTYPE_INFO:
		return scnprintf(result, maxlen, "%d ", atomic_read(&group->misses));
	case STATUSTYPE_TABLE:
		return scnprintf(result, maxlen, "%*pb ", cpumask_pr_args(ioa->mask));
	default:
		return 0;
	}
}

const struct mprr_selector_type mprr_io_affinity = {
	.name		= "io-affinity",
	.min_words	= 1,
	.max_words	= 1,
	.wrong_count	= "io-affinity takes exactly one word per path, its processor mask",
	.text_words	= true,
	.table_args	= 1,
	.info_args	= 1,
	.create		= ioa_create,
	.destroy	= ioa_destroy,
	.add_path	= ioa_add_path,
	.remove_path	= ioa_remove_path,
	.select		= ioa_select,
	.another	= ioa_another,
	.emit_path	= ioa_emit_path,
};
