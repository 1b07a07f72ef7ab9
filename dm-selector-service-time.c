// SPDX-License-Identifier: GPL-2.0
/*
 * Path selector service-time: the path that would finish the request first.
 *
 * DOC: service-time
 *
 * The estimate is (bytes in flight + bytes of the request) / relative
 * throughput.  A relative throughput of 0 means "only if there is no other
 * path".  It owns &mprr_path.ps_load, the bytes in flight; ps_words holds the
 * repeat count (honoured as in queue-length) and the relative throughput.
 * Called from any context, takes no lock.
 */

#include <linux/kernel.h>

#include "dm-path-selector.h"

#define ST_MAX_THROUGHPUT	100

static bool st_less(const struct mprr_path *a, const struct mprr_path *b, size_t nr_bytes)
{
	u64 ta = a->ps_words[1], tb = b->ps_words[1];
	u64 la = (u32)atomic_read(&a->ps_load), lb = (u32)atomic_read(&b->ps_load);

	if (!ta && !tb)
		return la < lb;
	if (!ta || !tb)
		return ta;

	/* Cross-multiplied: (la + n) / ta < (lb + n) / tb without a division. */
	return (la + nr_bytes) * tb < (lb + nr_bytes) * ta;
}

static struct mprr_path *st_select(struct mprr_group *group, size_t nr_bytes)
{
	return mprr_selector_least(group, nr_bytes, st_less);
}

static void st_start_io(struct mprr_path *path, size_t nr_bytes)
{
	atomic_add(nr_bytes, &path->ps_load);
}

static void st_end_io(struct mprr_path *path, size_t nr_bytes, u64 sent_ns)
{
	atomic_sub(nr_bytes, &path->ps_load);
}

static int st_add_path(struct mprr_path *path, unsigned int argc, char **argv,
		       const char **error, unsigned int *bad)
{
	if (path->ps_words[1] <= ST_MAX_THROUGHPUT)
		return 0;
	*error = "relative throughput must be a number 0..100";
	*bad = 1;
	return -EINVAL;
}

static unsigned int st_emit_path(const struct mprr_path *path, status_type_t type,
				 char *result, unsigned int maxlen)
{
	switch (type) {
	case STATUSTYPE_INFO:
		return scnprintf(result, maxlen, "%d %u ", atomic_read(&path->ps_load),
				 path->ps_words[1]);
	case STATUSTYPE_TABLE:
		return scnprintf(result, maxlen, "%u %u ", path->ps_words[0],
				 path->ps_words[1]);
	default:
		return 0;
	}
}

const struct mprr_selector_type mprr_service_time = {
	.name		= "service-time",
	.max_words	= 2,
	.wrong_count	= "service-time takes at most repeat count and relative throughput",
	.table_args	= 2,
	.info_args	= 2,
	.add_path	= st_add_path,
	.select		= st_select,
	.another	= mprr_selector_next,
	.pass		= mprr_selector_pass,
	.start_io	= st_start_io,
	.end_io		= st_end_io,
	.emit_path	= st_emit_path,
};
