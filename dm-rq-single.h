/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bios of a failed request, one by one (see dm-rq-single.c).
 */

#ifndef DM_RQ_SINGLE_H
#define DM_RQ_SINGLE_H

#include "dm-mpath-rr.h"

bool mprr_single_want(struct mprr_io *io, struct request *rq);
bool mprr_single_start(struct mprr_map *map, struct mprr_io *io, struct request *rq);
int mprr_single_init(void);
void mprr_single_exit(void);

#endif /* DM_RQ_SINGLE_H */
