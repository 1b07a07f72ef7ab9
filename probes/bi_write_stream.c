// SPDX-License-Identifier: GPL-2.0
/* bio.bi_write_stream: since 6.16. */
#include <linux/blk_types.h>

unsigned int probe(const struct bio *bio);
unsigned int probe(const struct bio *bio)
{
	return bio->bi_write_stream;
}
