/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One bio for all bios of a merged request (see dm-rq-bundle.c).
 */

#ifndef DM_RQ_BUNDLE_H
#define DM_RQ_BUNDLE_H

#include "dm-mpath-rr.h"

void mprr_bundle(struct mprr_io *io, struct request *rq, unsigned int nr_bios);
bool mprr_unbundle(struct mprr_io *io, struct request *rq);
int mprr_bundle_init(void);
void mprr_bundle_exit(void);

#endif /* DM_RQ_BUNDLE_H */
