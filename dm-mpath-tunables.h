/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tunables by table, message and module parameter (see dm-mpath-tunables.c).
 */

#ifndef DM_MPATH_TUNABLES_H
#define DM_MPATH_TUNABLES_H

#include "dm-mpath-rr.h"

void mprr_tunables_init(struct mprr_map *map);
void mprr_tunables_begin(struct mprr_map *map);
void mprr_tunables_end(struct mprr_map *map);
void mprr_tunables_emit(const struct mprr_map *map, char *result, unsigned int maxlen);
enum mprr_tunable mprr_tunable_find(const char *name);
const char *mprr_tunable_name(enum mprr_tunable nr);
const char *mprr_tunable_range(enum mprr_tunable nr);
int mprr_tunable_from_table(struct mprr_map *map, enum mprr_tunable nr, const char *word);
int mprr_tunable_from_message(struct mprr_map *map, enum mprr_tunable nr, const char *word);
unsigned int mprr_tunable_emit_table(const struct mprr_map *map, enum mprr_tunable nr,
				     char *result, unsigned int maxlen);

#endif /* DM_MPATH_TUNABLES_H */
