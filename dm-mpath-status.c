// SPDX-License-Identifier: GPL-2.0
/*
 * Status lines: INFO (state), TABLE (what was loaded) and IMA (measurement).
 *
 * DOC: status
 *
 * One emitter per status type.  multipathd parses INFO by the counts in it and
 * compares TABLE with the table it would load, so TABLE echoes the words that
 * were loaded in their order; queue_if_no_path alone follows the present state,
 * as it does in the in-kernel target.
 *
 * Built under mprr_map.lock with interrupts off, so that a line is one
 * consistent picture; must not sleep.  A full buffer is seen by DM, and user
 * space asks again with a larger one.
 */

#include "dm-mpath-bio.h"
#include "dm-mpath-rr.h"
#include "dm-mpath-tunables.h"
#include "dm-path-selector.h"

static unsigned int count_feature_words(const struct mprr_map *map)
{
	unsigned int i, words = test_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags);

	for (i = 0; i < map->nr_features; i++) {
		switch (map->features[i]) {
		case MPRR_FEATURE_QUEUE_IF_NO_PATH:
			break;
		case MPRR_FEATURE_RETAIN_HANDLER:
			words++;
			break;
		case MPRR_FEATURE_QUEUE_MODE:
			words += 2 * mprr_is_bio_map(map);
			break;
		default:
			/* The others have a value. */
			words += 2;
			break;
		}
	}
	return words;
}

static bool feature_was_loaded(const struct mprr_map *map, enum mprr_feature feature)
{
	unsigned int i;

	for (i = 0; i < map->nr_features; i++)
		if (map->features[i] == feature)
			return true;
	return false;
}

static unsigned int emit_feature(const struct mprr_map *map, enum mprr_feature feature,
				 char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	switch (feature) {
	case MPRR_FEATURE_QUEUE_IF_NO_PATH:
		if (test_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags))
			DMEMIT("queue_if_no_path ");
		break;
	case MPRR_FEATURE_RETAIN_HANDLER:
		DMEMIT("retain_attached_hw_handler ");
		break;
	case MPRR_FEATURE_PG_INIT_RETRIES:
		DMEMIT("pg_init_retries %u ", map->pg_init_retries);
		break;
	case MPRR_FEATURE_PG_INIT_DELAY:
		DMEMIT("pg_init_delay_msecs %u ", map->pg_init_delay_ms);
		break;
	case MPRR_FEATURE_QUEUE_MODE:
		/* Request mode is the default and never written. */
		if (mprr_is_bio_map(map))
			DMEMIT("queue_mode bio ");
		break;
	default:
		DMEMIT("%s ", mprr_tunable_name(feature - MPRR_FEATURE_TUNABLE));
		sz += mprr_tunable_emit_table(map, feature - MPRR_FEATURE_TUNABLE,
					      result + sz, maxlen - sz);
		DMEMIT(" ");
		break;
	}
	return sz;
}

static unsigned int emit_features(const struct mprr_map *map, char *result,
				  unsigned int maxlen)
{
	unsigned int i, sz = 0;

	DMEMIT("%u ", count_feature_words(map));
	/* Switched on by a message: no word of the table has its place. */
	if (!feature_was_loaded(map, MPRR_FEATURE_QUEUE_IF_NO_PATH))
		sz += emit_feature(map, MPRR_FEATURE_QUEUE_IF_NO_PATH,
				   result + sz, maxlen - sz);
	for (i = 0; i < map->nr_features; i++)
		sz += emit_feature(map, map->features[i], result + sz, maxlen - sz);
	return sz;
}

/* The group that I/O goes to, or would go to: 1 when nothing says so yet. */
static unsigned int current_nr(const struct mprr_map *map)
{
	if (map->current_group)
		return map->current_group->nr;
	if (map->next_group)
		return map->next_group->nr;
	return map->nr_groups ? 1 : 0;
}

/* Disabled, active (current) or enabled. */
static char group_state(const struct mprr_group *group)
{
	if (group->bypassed)
		return 'D';
	return group == group->map->current_group ? 'A' : 'E';
}

static char path_state(const struct mprr_path *path)
{
	return path->active ? 'A' : 'F';
}

/* The number of the selector's words for the group, and the words. */
static unsigned int emit_group_words(const struct mprr_group *group, status_type_t type,
				     char *result, unsigned int maxlen)
{
	if (group->ps_type->emit_group)
		return group->ps_type->emit_group(group, type, result, maxlen);
	return scnprintf(result, maxlen, "0 ");
}

static unsigned int emit_info_group(const struct mprr_group *group, char *result,
				    unsigned int maxlen)
{
	unsigned int i, sz = 0;

	/* State, selector words, then the paths. */
	DMEMIT("%c ", group_state(group));
	sz += emit_group_words(group, STATUSTYPE_INFO, result + sz, maxlen - sz);
	DMEMIT("%u %u ", group->nr_paths, group->ps_type->info_args);
	for (i = 0; i < group->nr_paths; i++) {
		const struct mprr_path *path = group->paths[i];

		DMEMIT("%s %c %u ", path->dev->name, path_state(path), path->fail_count);
		sz += group->ps_type->emit_path(path, STATUSTYPE_INFO,
						result + sz, maxlen - sz);
	}
	return sz;
}

static void emit_info(const struct mprr_map *map, char *result, unsigned int maxlen)
{
	unsigned int i, sz = 0;

	/* Two feature words, no handler words, then the groups. */
	DMEMIT("2 %u %u 0 %u %u ", test_bit(MPRR_QUEUE_IO, &map->flags),
	       map->pg_init_count, map->nr_groups, current_nr(map));
	for (i = 0; i < map->nr_groups; i++)
		sz += emit_info_group(map->groups[i], result + sz, maxlen - sz);
}

static unsigned int emit_table_group(const struct mprr_group *group, char *result,
				     unsigned int maxlen)
{
	unsigned int i, sz = 0;

	DMEMIT("%s ", group->ps_type->name);
	sz += emit_group_words(group, STATUSTYPE_TABLE, result + sz, maxlen - sz);
	DMEMIT("%u %u ", group->nr_paths, group->ps_type->table_args);
	for (i = 0; i < group->nr_paths; i++) {
		DMEMIT("%s ", group->paths[i]->dev->name);
		sz += group->ps_type->emit_path(group->paths[i], STATUSTYPE_TABLE,
						result + sz, maxlen - sz);
	}
	return sz;
}

static void emit_table(const struct mprr_map *map, char *result, unsigned int maxlen)
{
	unsigned int i, sz = 0;

	sz += emit_features(map, result, maxlen);
	if (map->handler_name)
		DMEMIT("1 %s ", map->handler_name);
	else
		DMEMIT("0 ");
	DMEMIT("%u %u ", map->nr_groups, current_nr(map));
	for (i = 0; i < map->nr_groups; i++)
		sz += emit_table_group(map->groups[i], result + sz, maxlen - sz);
}

static unsigned int emit_ima_path(const struct mprr_path *path, char *result,
				  unsigned int maxlen)
{
	unsigned int g = path->group->nr - 1, i = path->index, sz = 0;

	DMEMIT(",path_name_%u_%u=%s,is_active_%u_%u=%c,fail_count_%u_%u=%u",
	       g, i, path->dev->name, g, i, path_state(path), g, i, path->fail_count);
	DMEMIT(",path_selector_status_%u_%u=", g, i);
	sz += path->group->ps_type->emit_path(path, STATUSTYPE_IMA,
					      result + sz, maxlen - sz);
	return sz;
}

static void emit_ima(const struct mprr_map *map, char *result, unsigned int maxlen)
{
	const struct target_type *type = map->ti->type;
	unsigned int g, i, sz = 0;

	DMEMIT("target_name=%s,target_version=%u.%u.%u,nr_priority_groups=%u",
	       type->name, type->version[0], type->version[1], type->version[2],
	       map->nr_groups);
	for (g = 0; g < map->nr_groups; g++) {
		const struct mprr_group *group = map->groups[g];

		DMEMIT(",pg_state_%u=%c,nr_pgpaths_%u=%u,path_selector_name_%u=%s",
		       g, group_state(group), g, group->nr_paths, g, group->ps_type->name);
		for (i = 0; i < group->nr_paths; i++)
			sz += emit_ima_path(group->paths[i], result + sz, maxlen - sz);
	}
	DMEMIT(";");
}

/**
 * mprr_status - status operation of the target
 * @ti: the DM target
 * @type: which line
 * @status_flags: unused
 * @result: where the line goes
 * @maxlen: its size in bytes
 *
 * Context: process.
 */
void mprr_status(struct dm_target *ti, status_type_t type,
		 unsigned int status_flags, char *result, unsigned int maxlen)
{
	struct mprr_map *map = ti->private;
	unsigned long flags;

	spin_lock_irqsave(&map->lock, flags);
	switch (type) {
	case STATUSTYPE_INFO:
		emit_info(map, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		emit_table(map, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		emit_ima(map, result, maxlen);
		break;
	}
	spin_unlock_irqrestore(&map->lock, flags);
}
