/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is in flight on each path, and when the map tells the block layer that
 * it is busy (see dm-rq-merge.c).
 */

#ifndef DM_RQ_MERGE_H
#define DM_RQ_MERGE_H

#include "dm-mpath-rr.h"

void mprr_inflight_init(struct mprr_group *group);
void mprr_inflight_start(struct mprr_path *path);
void mprr_inflight_end(struct mprr_path *path);
bool mprr_inflight_refused(struct mprr_path *path);
bool mprr_path_lld_busy(const struct mprr_path *path);
bool mprr_group_busy(struct mprr_group *group);

#endif /* DM_RQ_MERGE_H */
