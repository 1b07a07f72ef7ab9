/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the gate finds out by itself (see dm-rq-auto.c).
 */

#ifndef DM_RQ_AUTO_H
#define DM_RQ_AUTO_H

#include "dm-mpath-rr.h"

bool mprr_auto_judge(struct mprr_gate *gate, struct mprr_io *io, struct request *rq,
		     unsigned int nr_bios);
bool mprr_auto_sequential(const struct mprr_gate *gate);
void mprr_auto_sample(struct mprr_gate *gate, const struct mprr_io *io);
void mprr_auto_lag(struct mprr_gate *gate, u64 lag_ns);
void mprr_auto_stalled(struct mprr_gate *gate);
u64 mprr_auto_lazy_ns(const struct mprr_gate *gate);
u64 mprr_auto_hold_ns(const struct mprr_gate *gate);
unsigned int mprr_auto_stats(const struct mprr_gate *gate, char *result, unsigned int maxlen);
int mprr_auto_init(struct mprr_gate *gate);
void mprr_auto_exit(struct mprr_gate *gate);

#endif /* DM_RQ_AUTO_H */
