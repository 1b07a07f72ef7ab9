// SPDX-License-Identifier: GPL-2.0
/*
 * Path selector queue-length: the path with the fewest requests in flight.
 *
 * DOC: queue-length
 *
 * It owns no state but the turn: the number of requests in flight on each path
 * is what dm-rq-merge.c counts anyway.  The path that is chosen gets as many
 * consecutive requests as its repeat count says (mprr_selector_least()).  Called
 * from any context, takes no lock.
 */

#include <linux/kernel.h>

#include "dm-path-selector.h"

static bool ql_less(const struct mprr_path *a, const struct mprr_path *b, size_t nr_bytes)
{
	return atomic_read(&a->in_flight) < atomic_read(&b->in_flight);
}

static struct mprr_path *ql_select(struct mprr_group *group, size_t nr_bytes)
{
	return mprr_selector_least(group, nr_bytes, ql_less);
}

static unsigned int ql_emit_path(const struct mprr_path *path, status_type_t type,
				 char *result, unsigned int maxlen)
{
	switch (type) {
	case STATUSTYPE_INFO:
		return scnprintf(result, maxlen, "%d ", atomic_read(&path->in_flight));
	case STATUSTYPE_TABLE:
		return scnprintf(result, maxlen, "%u ", path->ps_words[0]);
	default:
		return 0;
	}
}

const struct mprr_selector_type mprr_queue_length = {
	.name		= "queue-length",
	.max_words	= 1,
	.wrong_count	= "queue-length takes at most a repeat count per path",
	.table_args	= 1,
	.info_args	= 1,
	.select		= ql_select,
	.another	= mprr_selector_next,
	.pass		= mprr_selector_pass,
	.emit_path	= ql_emit_path,
};
