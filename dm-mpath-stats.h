/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each path was given, and how it did (see dm-mpath-stats.c).
 */

#ifndef DM_MPATH_STATS_H
#define DM_MPATH_STATS_H

#include "dm-mpath-rr.h"

void mprr_stats_start(struct mprr_io *io);
void mprr_stats_end(struct mprr_io *io, const struct request *clone, blk_status_t status);
void mprr_stats_refused(struct mprr_io *io, const struct request *clone);
void mprr_stats_busy(struct mprr_path *path);
u64 mprr_stats_bio_start(struct mprr_path *path, const struct bio *bio);
void mprr_stats_bio_end(struct mprr_path *path, const struct bio *bio, unsigned int nr_bytes,
			u64 sample_ns);
u64 mprr_stats_started(const struct mprr_map *map);
unsigned int mprr_stats_emit(struct mprr_map *map, char *result, unsigned int maxlen);
void mprr_stats_emit_histograms(struct mprr_map *map, char *result, unsigned int maxlen);
int mprr_stats_init(struct mprr_path *path);
void mprr_stats_exit(struct mprr_path *path);

#endif /* DM_MPATH_STATS_H */
