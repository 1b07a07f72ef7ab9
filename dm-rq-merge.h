/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is in flight on each path and on the map, when the map tells the block
 * layer that it is busy, and when it holds requests (see dm-rq-merge.c).
 */

#ifndef DM_RQ_MERGE_H
#define DM_RQ_MERGE_H

#include "dm-mpath-rr.h"

void mprr_inflight_init(struct mprr_group *group);
bool mprr_inflight_start(struct mprr_path *path);
void mprr_inflight_end(struct mprr_path *path);
bool mprr_inflight_refused(struct mprr_path *path);
bool mprr_path_lld_busy(const struct mprr_path *path);
bool mprr_group_busy(struct mprr_group *group);

int mprr_gate_init(struct mprr_map *map);
void mprr_gate_exit(struct mprr_map *map);
unsigned int mprr_gate_start(struct mprr_map *map, struct mprr_io *io, struct request *rq);
void mprr_gate_end(struct mprr_map *map, const struct mprr_io *io);
bool mprr_gate_busy(struct mprr_map *map);
void mprr_gate_kick(struct mprr_map *map);
void mprr_gate_probe(struct mprr_gate *gate);
void mprr_gate_suspend(struct mprr_map *map);
void mprr_gate_resume(struct mprr_map *map);
int mprr_gate_worker_init(void);
void mprr_gate_worker_exit(void);

#endif /* DM_RQ_MERGE_H */
