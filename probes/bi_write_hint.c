// SPDX-License-Identifier: GPL-2.0
/* bio.bi_write_hint: taken away in 5.18, back since 6.9. */
#include <linux/blk_types.h>

unsigned int probe(const struct bio *bio);
unsigned int probe(const struct bio *bio)
{
	return bio->bi_write_hint;
}
