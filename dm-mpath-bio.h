/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Maps with `queue_mode bio`: bios go to the paths as they are (see dm-mpath-bio.c).
 */

#ifndef DM_MPATH_BIO_H
#define DM_MPATH_BIO_H

#include "dm-mpath-rr.h"

/**
 * struct mprr_bio - what we know of a bio, in DM's per-bio data
 * @path: the path that has it, NULL while none has
 * @sent_ns: when it went there, for the selector, or 0
 * @sample_ns: the same, for the latency histograms
 * @nr_bytes: its size
 * @iter: where it began, for another try; so the rest
 * @opf: its operation and flags
 * @flags: its bi_flags
 * @remaining: its count of parts
 * @end_io: its end_io
 * @integrity_iter: where its integrity data began, if it has any
 */
struct mprr_bio {
	struct mprr_path *path;
	u64 sent_ns;
	u64 sample_ns;
	size_t nr_bytes;

	struct bvec_iter iter;
	blk_opf_t opf;
	unsigned int flags;
	int remaining;
	bio_end_io_t *end_io;
#ifdef CONFIG_BLK_DEV_INTEGRITY
	struct bvec_iter integrity_iter;
#endif
};

/**
 * mprr_is_bio_map - does the map have `queue_mode bio`?
 * @map: the map
 *
 * Return: true if it does.
 */
static inline bool mprr_is_bio_map(const struct mprr_map *map)
{
	return test_bit(MPRR_BIO_MODE, &map->flags);
}

int mprr_bio_map(struct dm_target *ti, struct bio *bio);
int mprr_bio_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error);
void mprr_bio_kick(struct mprr_map *map);
void mprr_bio_create(struct mprr_map *map);
void mprr_bio_drain(struct mprr_map *map);
int mprr_bio_wq_init(void);
void mprr_bio_wq_exit(void);

#endif /* DM_MPATH_BIO_H */
