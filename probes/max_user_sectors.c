// SPDX-License-Identifier: GPL-2.0
/* queue_limits.max_user_sectors: since 6.9, max_sectors is recomputed from it. */
#include <linux/blkdev.h>

unsigned int probe(const struct queue_limits *limits);
unsigned int probe(const struct queue_limits *limits)
{
	return limits->max_user_sectors;
}
