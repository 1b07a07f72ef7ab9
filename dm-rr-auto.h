/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long runs are while rr_min_io is auto (see dm-rr-auto.c).
 */

#ifndef DM_RR_AUTO_H
#define DM_RR_AUTO_H

#include "dm-mpath-rr.h"

void mprr_rr_auto_init(struct mprr_map *map);
void mprr_rr_auto_init_path(struct mprr_path *path);
void mprr_rr_auto_exit(struct mprr_map *map);
void mprr_rr_auto_look(struct mprr_map *map);
void mprr_rr_auto_kick(struct mprr_map *map);
void mprr_rr_auto_sample(struct mprr_path *path, u64 took_ns);
unsigned int mprr_rr_auto_emit(const struct mprr_map *map, char *result, unsigned int maxlen);

#endif /* DM_RR_AUTO_H */
