// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: what user space tells a live map.
 *
 * DOC: messages
 *
 *	queue_if_no_path | fail_if_no_path
 *	disable_group N | enable_group N | switch_group N
 *	fail_path DEVICE | reinstate_path DEVICE
 *	TUNABLE VALUE | tunables | stats | histogram
 *
 * Keywords are not case-sensitive.  One message runs at a time, and none while
 * the map is suspended.  A message that is wrong changes nothing, is refused
 * with an errno, and the log names it and says why.  Process context, may
 * sleep.
 */

#include <linux/string.h>

#include "dm-mpath-bio.h"
#include "dm-mpath-rr.h"
#include "dm-mpath-stats.h"
#include "dm-mpath-tunables.h"
#include "dm-rq-auto.h"
#include "dm-rr-auto.h"

static int refuse(const struct mprr_map *map, int error, unsigned int argc, char **argv,
		  const char *why)
{
	DMWARN("%s: message \"%s%s%s\": %s", mprr_map_name(map), argc ? argv[0] : "",
	       argc > 1 ? " " : "", argc > 1 ? argv[1] : "", why);
	return error;
}

static struct mprr_group *find_group(const struct mprr_map *map, const char *word)
{
	unsigned int nr;

	if (mprr_read_uint(word, &nr) || !nr || nr > map->nr_groups)
		return NULL;
	return map->groups[nr - 1];
}

static int group_message(struct mprr_map *map, unsigned int argc, char **argv)
{
	struct mprr_group *group = find_group(map, argv[1]);

	if (!group)
		return refuse(map, -EINVAL, argc, argv, "no path group has this number");

	if (!strcasecmp(argv[0], "switch_group"))
		mprr_group_switch(map, group);
	else
		mprr_group_bypass(group, !strcasecmp(argv[0], "disable_group"));
	return 0;
}

/* A device may be a path of several groups: act on each. */
static int path_message(struct mprr_map *map, unsigned int argc, char **argv)
{
	bool fail = !strcasecmp(argv[0], "fail_path");
	unsigned int g, i, found = 0;
	dev_t dev;
	int r;

	r = mprr_devt_from_path(argv[1], &dev);
	if (r)
		return refuse(map, r, argc, argv, "no such device");

	for (g = 0; g < map->nr_groups; g++) {
		struct mprr_group *group = map->groups[g];

		for (i = 0; i < group->nr_paths; i++) {
			if (group->paths[i]->dev->bdev->bd_dev != dev)
				continue;
			found++;
			if (fail)
				mprr_path_fail(group->paths[i]);
			else
				mprr_path_reinstate(group->paths[i]);
		}
	}
	return found ? 0 : refuse(map, -EINVAL, argc, argv, "the device is not a path of this map");
}

static int tunable_message(struct mprr_map *map, enum mprr_tunable nr, char **argv)
{
	return mprr_tunable_from_message(map, nr, argv[1]) ?
	       refuse(map, -EINVAL, 2, argv, mprr_tunable_range(nr)) : 0;
}

static int handle_message(struct mprr_map *map, unsigned int argc, char **argv)
{
	enum mprr_tunable tunable;

	if (argc == 1) {
		bool on = !strcasecmp(argv[0], "queue_if_no_path");

		if (!on && strcasecmp(argv[0], "fail_if_no_path"))
			return refuse(map, -EINVAL, argc, argv,
				      "unknown message, or its argument is missing");
		mprr_queue_if_no_path_set(map, on);
		return 0;
	}
	if (argc != 2)
		return refuse(map, -EINVAL, argc, argv, "a message has one or two words");

	if (!strcasecmp(argv[0], "disable_group") || !strcasecmp(argv[0], "enable_group") ||
	    !strcasecmp(argv[0], "switch_group"))
		return group_message(map, argc, argv);
	if (!strcasecmp(argv[0], "fail_path") || !strcasecmp(argv[0], "reinstate_path"))
		return path_message(map, argc, argv);
	tunable = mprr_tunable_find(argv[0]);
	if (tunable < MPRR_NR_TUNABLES)
		return tunable_message(map, tunable, argv);

	return refuse(map, -EINVAL, argc, argv, "unknown message, or one that takes no argument");
}

/**
 * mprr_message - message operation of the target
 * @ti: the DM target
 * @argc: number of words
 * @argv: the words
 * @result: where stats and tunables write their lines
 * @maxlen: room there
 *
 * Context: process, may sleep.
 * Return: 0, 1 if there is a text in @result, -EBUSY while the map is
 * suspended, -EINVAL or the errno of the device lookup for a wrong message.
 */
int mprr_message(struct dm_target *ti, unsigned int argc, char **argv,
		 char *result, unsigned int maxlen)
{
	struct mprr_map *map = ti->private;
	int r;

	/* Questions change nothing: they are answered at any time. */
	if (argc == 1 && !strcasecmp(argv[0], "stats")) {
		unsigned int sz;

		/* In bio mode nothing is counted for the map: its paths' numbers will do. */
		if (mprr_is_bio_map(map)) {
			map->gate.nr_requests = mprr_stats_started(map);
			map->gate.nr_bios = map->gate.nr_requests;
		}
		sz = mprr_auto_stats(&map->gate, result, maxlen);
		sz += mprr_stats_emit(map, result + sz, maxlen - sz);
		mprr_rr_auto_emit(map, result + sz, maxlen - sz);
		return 1;
	}
	if (argc == 1 && !strcasecmp(argv[0], "histogram")) {
		mprr_stats_emit_histograms(map, result, maxlen);
		return 1;
	}
	if (argc == 1 && !strcasecmp(argv[0], "tunables")) {
		mprr_tunables_emit(map, result, maxlen);
		return 1;
	}

	mutex_lock(&map->message_mutex);
	if (dm_suspended(ti))
		r = refuse(map, -EBUSY, argc, argv, "the map is suspended");
	else
		r = handle_message(map, argc, argv);
	mutex_unlock(&map->message_mutex);
	return r;
}
