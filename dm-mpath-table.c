// SPDX-License-Identifier: GPL-2.0
/*
 * The table line: parse it, build the map from it, take the map apart again.
 *
 * DOC: table grammar
 *
 *	<F> [F feature words] <H> [H handler words] <G> <initial group> {group}...
 *	group: <selector> <A> [A selector words] <P> <S> {<device> [S words]}...
 *
 * One function per section, in the order of the line.  Whoever finds a fault
 * sets ti->error to a text that names the argument and its bounds, and logs
 * the word that was wrong.  Everything that was taken up to then is given back
 * by mprr_map_destroy(), which accepts a half-built map.
 *
 * All of it runs in process context in the table load ioctl and may sleep.
 */

#include <linux/slab.h>
#include <linux/string.h>
#include <scsi/scsi_device.h>

#include "dm-mpath-bio.h"
#include "dm-mpath-rr.h"
#include "dm-mpath-stats.h"
#include "dm-mpath-tunables.h"
#include "dm-path-selector.h"
#include "dm-rq-merge.h"
#include "dm-rr-auto.h"

/* What is left of the line. */
struct parse {
	struct mprr_map *map;
	struct dm_arg_set words;
};

static const char *next_word(const struct parse *p, unsigned int i)
{
	return i < p->words.argc ? p->words.argv[i] : "(end of line)";
}

static int refuse(struct parse *p, int error, const char *word, const char *text)
{
	struct dm_target *ti = p->map->ti;

	/* DM prints ti->error as well, but cannot know the word. */
	ti->error = (char *)text;
	DMERR("%s: table word \"%s\": %s", mprr_map_name(p->map), word, text);
	return error;
}

static int read_number(struct parse *p, unsigned int min, unsigned int max,
		       const char *text, unsigned int *value)
{
	const char *word = next_word(p, 0);

	if (mprr_read_uint(word, value) || *value < min || *value > max)
		return refuse(p, -EINVAL, word, text);
	dm_shift_arg(&p->words);
	return 0;
}

/* Read a count of words that must still be there. */
static int read_word_count(struct parse *p, unsigned int max, const char *text,
			   unsigned int *value)
{
	const char *word = next_word(p, 0);
	int r = read_number(p, 0, max, text, value);

	if (!r && *value > p->words.argc)
		r = refuse(p, -EINVAL, word, text);
	return r;
}

static void remember_feature(struct mprr_map *map, enum mprr_feature feature)
{
	unsigned int i;

	for (i = 0; i < map->nr_features; i++)
		if (map->features[i] == feature)
			return;
	map->features[map->nr_features++] = feature;
}

static int read_feature_value(struct parse *p, unsigned int *left, unsigned int min,
			      unsigned int max, const char *text, unsigned int *value)
{
	if (!*left)
		return refuse(p, -EINVAL, "(end of features)", text);
	(*left)--;
	return read_number(p, min, max, text, value);
}

static int parse_queue_mode(struct parse *p, unsigned int *left)
{
	const char *mode;

	if (!*left)
		return refuse(p, -EINVAL, "(end of features)",
			      "queue_mode must be followed by rq, mq or bio");
	mode = dm_shift_arg(&p->words);
	(*left)--;
	if (!strcasecmp(mode, "rq") || !strcasecmp(mode, "mq")) {
		clear_bit(MPRR_BIO_MODE, &p->map->flags);
		return 0;
	}
	if (!strcasecmp(mode, "bio")) {
		set_bit(MPRR_BIO_MODE, &p->map->flags);
		remember_feature(p->map, MPRR_FEATURE_QUEUE_MODE);
		return 0;
	}
	return refuse(p, -EINVAL, mode, "queue_mode must be rq, mq or bio");
}

static int parse_tunable(struct parse *p, unsigned int *left, enum mprr_tunable nr)
{
	const char *word;

	if (!*left)
		return refuse(p, -EINVAL, "(end of features)", mprr_tunable_range(nr));
	word = dm_shift_arg(&p->words);
	(*left)--;
	if (mprr_tunable_from_table(p->map, nr, word))
		return refuse(p, -EINVAL, word, mprr_tunable_range(nr));
	remember_feature(p->map, MPRR_FEATURE_TUNABLE + nr);
	return 0;
}

static int parse_feature(struct parse *p, unsigned int *left)
{
	struct mprr_map *map = p->map;
	const char *name = dm_shift_arg(&p->words);
	enum mprr_tunable tunable = mprr_tunable_find(name);

	(*left)--;
	if (!strcasecmp(name, "queue_if_no_path")) {
		set_bit(MPRR_QUEUE_IF_NO_PATH, &map->flags);
		set_bit(MPRR_SAVED_QUEUE_IF_NO_PATH, &map->flags);
		remember_feature(map, MPRR_FEATURE_QUEUE_IF_NO_PATH);
		return 0;
	}
	if (!strcasecmp(name, "retain_attached_hw_handler")) {
		set_bit(MPRR_RETAIN_HANDLER, &map->flags);
		remember_feature(map, MPRR_FEATURE_RETAIN_HANDLER);
		return 0;
	}
	if (!strcasecmp(name, "pg_init_retries")) {
		remember_feature(map, MPRR_FEATURE_PG_INIT_RETRIES);
		return read_feature_value(p, left, 1, MPRR_MAX_INIT_RETRIES,
					  "pg_init_retries must be a number 1..50",
					  &map->pg_init_retries);
	}
	if (!strcasecmp(name, "pg_init_delay_msecs")) {
		remember_feature(map, MPRR_FEATURE_PG_INIT_DELAY);
		return read_feature_value(p, left, 0, MPRR_MAX_INIT_DELAY_MS,
					  "pg_init_delay_msecs must be a number 0..60000",
					  &map->pg_init_delay_ms);
	}
	if (!strcasecmp(name, "queue_mode"))
		return parse_queue_mode(p, left);
	if (tunable < MPRR_NR_TUNABLES)
		return parse_tunable(p, left, tunable);

	return refuse(p, -EINVAL, name, "unrecognised feature");
}

static int parse_features(struct parse *p)
{
	unsigned int left;
	int r;

	r = read_word_count(p, MPRR_MAX_FEATURE_WORDS,
			    "number of feature words must be 0..32 and not exceed the line", &left);
	while (!r && left)
		r = parse_feature(p, &left);
	return r;
}

/* The first word is the handler's name, the others its parameters. */
static int parse_handler(struct parse *p)
{
	struct mprr_map *map = p->map;
	unsigned int nr, i;
	size_t size;
	char *out;
	int r;

	r = read_word_count(p, MPRR_MAX_WORDS,
			    "number of hardware handler words must be 0..1024 and not exceed the line",
			    &nr);
	if (r || !nr)
		return r;

	if (mprr_is_bio_map(map)) {
		DMERR("%s: queue_mode bio: hardware handler %s of the table is not used",
		      mprr_map_name(map), next_word(p, 0));
		dm_consume_args(&p->words, nr);
		return 0;
	}

	map->handler_name = kstrdup(dm_shift_arg(&p->words), GFP_KERNEL);
	if (!map->handler_name)
		return refuse(p, -ENOMEM, "(handler)", "no memory for the hardware handler's name");
	if (--nr == 0)
		return 0;

	/* "count\0word\0word\0", as scsi_dh_set_params() wants it. */
	size = snprintf(NULL, 0, "%u", nr) + 1;
	for (i = 0; i < nr; i++)
		size += strlen(p->words.argv[i]) + 1;
	map->handler_params = kzalloc(size, GFP_KERNEL);
	if (!map->handler_params)
		return refuse(p, -ENOMEM, "(handler)", "no memory for hardware handler words");
	out = map->handler_params + sprintf(map->handler_params, "%u", nr) + 1;
	for (i = 0; i < nr; i++)
		out += sprintf(out, "%s", dm_shift_arg(&p->words)) + 1;
	return 0;
}

/* A reference of our own: the device may be deleted while the path lives. */
static struct scsi_device *get_scsi_device(const struct dm_dev *dev)
{
	struct device *parent = disk_to_dev(dev->bdev->bd_disk)->parent;

	if (!parent || !scsi_is_sdev_device(parent) || !get_device(parent))
		return NULL;
	return to_scsi_device(parent);
}

static void destroy_path(struct mprr_path *path)
{
	if (path->group->ps_type->remove_path)
		path->group->ps_type->remove_path(path);
	if (path->sdev)
		put_device(&path->sdev->sdev_gendev);
	if (path->dev)
		dm_put_device(path->group->map->ti, path->dev);
	WARN_ON_ONCE(atomic_read(&path->in_flight) || atomic_read(&path->ps_load));
	mprr_stats_exit(path);
	kfree(path);
}

static void destroy_group(struct mprr_group *group)
{
	unsigned int i;

	for (i = 0; group->paths && i < group->nr_paths; i++)
		if (group->paths[i])
			destroy_path(group->paths[i]);
	if (group->ps_type && group->ps_type->destroy)
		group->ps_type->destroy(group);
	kvfree(group->paths);
	bitmap_free(group->active);
	bitmap_free(group->open);
	kfree(group);
}

/**
 * mprr_map_destroy - free a map, complete or half built
 * @map: the map; no request and no work item of it exists any more
 *
 * Context: process, may sleep.
 */
void mprr_map_destroy(struct mprr_map *map)
{
	unsigned int i;

	mprr_tunables_end(map);
	mprr_gate_exit(map);
	for (i = 0; map->groups && i < map->nr_groups; i++)
		if (map->groups[i])
			destroy_group(map->groups[i]);
	kvfree(map->groups);
	kfree(map->handler_name);
	kfree(map->handler_params);
	mutex_destroy(&map->message_mutex);
	kfree(map);
}

static int parse_path(struct parse *p, struct mprr_group *group, unsigned int index,
		      unsigned int nr_words)
{
	struct mprr_map *map = p->map;
	const char *what = NULL, *name;
	struct mprr_path *path;
	unsigned int bad = 0;
	int r;

	if (p->words.argc < 1 + nr_words)
		return refuse(p, -EINVAL, next_word(p, 0),
			      "each path needs a device and all its selector words");
	name = dm_shift_arg(&p->words);

	path = kzalloc_obj(*path);
	if (!path)
		return refuse(p, -ENOMEM, name, "no memory for a path");
	path->group = group;
	path->index = index;
	INIT_DELAYED_WORK(&path->pg_init_work, mprr_pg_init_work);
	mprr_rr_auto_init_path(path);
	group->paths[index] = path;
	if (mprr_stats_init(path))
		return refuse(p, -ENOMEM, name, "no memory for a path's statistics");

	r = dm_get_device(map->ti, name, dm_table_get_mode(map->ti->table), &path->dev);
	if (r)
		return refuse(p, r, name, "error getting device");
	/* Newer kernels refuse this in dm_get_device(), 6.1 does not. */
	if (path->dev->bdev->bd_dev == disk_devt(dm_disk(dm_table_get_md(map->ti->table))))
		return refuse(p, -EINVAL, name, "a map cannot be its own path");
	path->sdev = get_scsi_device(path->dev);

	r = mprr_handler_attach(path, &what);
	if (r)
		return refuse(p, r, map->handler_name ?: name, what);

	r = mprr_selector_add_path(path, nr_words, p->words.argv, &what, &bad);
	if (r)
		return refuse(p, r, next_word(p, bad), what);
	dm_consume_args(&p->words, nr_words);

	mprr_path_activate(path);
	return 0;
}

static int alloc_paths(struct parse *p, struct mprr_group *group, unsigned int nr)
{
	group->paths = kvcalloc(nr, sizeof(*group->paths), GFP_KERNEL);
	group->active = bitmap_zalloc(nr, GFP_KERNEL);
	group->open = bitmap_zalloc(nr, GFP_KERNEL);
	if (!group->paths || !group->active || !group->open)
		return refuse(p, -ENOMEM, next_word(p, 0), "no memory for a group's paths");

	group->nr_paths = nr;
	mprr_inflight_init(group);
	mprr_selector_init(group);
	return 0;
}

static int parse_selector(struct parse *p, struct mprr_group *group)
{
	const char *name, *what = NULL;
	unsigned int nr, bad = 0;
	int r;

	if (p->words.argc < 2)
		return refuse(p, -EINVAL, next_word(p, 0),
			      "a group needs a path selector and its number of words");
	name = dm_shift_arg(&p->words);
	group->ps_type = mprr_selector_find(name);
	if (!group->ps_type)
		return refuse(p, -EINVAL, name, "unknown path selector");

	r = read_word_count(p, MPRR_MAX_WORDS,
			    "number of path selector words must be 0..1024 and not exceed the line",
			    &nr);
	if (r)
		return r;
	if (group->ps_type->create) {
		r = group->ps_type->create(group, nr, p->words.argv, &what, &bad);
		if (r)
			return refuse(p, r, next_word(p, bad), what);
	}
	/* Where the selector takes none they are ignored, like in-kernel. */
	dm_consume_args(&p->words, nr);
	return 0;
}

static int parse_group(struct parse *p, unsigned int index)
{
	struct mprr_map *map = p->map;
	unsigned int nr_paths, nr_words, i;
	struct mprr_group *group;
	int r;

	group = kzalloc_obj(*group);
	if (!group)
		return refuse(p, -ENOMEM, next_word(p, 0), "no memory for a path group");
	group->map = map;
	group->nr = index + 1;
	map->groups[index] = group;

	r = parse_selector(p, group);
	if (r)
		return r;

	r = read_number(p, 1, MPRR_MAX_PATHS, "number of paths must be 1..1024", &nr_paths);
	if (!r)
		r = read_number(p, 0, MPRR_MAX_WORDS,
				"number of selector words per path must be 0..1024", &nr_words);
	if (!r)
		r = alloc_paths(p, group, nr_paths);
	for (i = 0; !r && i < nr_paths; i++)
		r = parse_path(p, group, i, nr_words);
	return r;
}

static int parse_groups(struct parse *p)
{
	struct mprr_map *map = p->map;
	unsigned int nr, init, i;
	const char *word;
	int r;

	r = read_number(p, 0, MPRR_MAX_GROUPS, "number of path groups must be 0..1024", &nr);
	if (r)
		return r;
	word = next_word(p, 0);
	r = read_number(p, 0, MPRR_MAX_GROUPS, "initial path group must be 0..1024", &init);
	if (r)
		return r;
	if (!nr != !init)
		return refuse(p, -EINVAL, word,
			      "initial path group must be 0 if and only if there is no group");

	map->groups = kvcalloc(nr, sizeof(*map->groups), GFP_KERNEL);
	if (nr && !map->groups)
		return refuse(p, -ENOMEM, word, "no memory for path groups");
	map->nr_groups = nr;

	for (i = 0; i < nr; i++) {
		r = parse_group(p, i);
		if (r)
			return r;
	}
	if (p->words.argc)
		return refuse(p, -EINVAL, next_word(p, 0),
			      "words left over: number of path groups is too small");

	/* A number beyond the last group is legal and presets nothing. */
	if (init && init <= nr)
		map->next_group = map->groups[init - 1];
	return 0;
}

static void event_work(struct work_struct *work)
{
	struct mprr_map *map = container_of(work, struct mprr_map, event_work);

	dm_table_event(map->ti->table);
}

static struct mprr_map *create_map(struct dm_target *ti)
{
	struct mprr_map *map = kzalloc_obj(*map);

	if (!map)
		return NULL;
	map->ti = ti;
	mprr_tunables_init(map);
	mprr_bio_create(map);
	map->pg_init_delay_ms = MPRR_INIT_DELAY_MS;
	set_bit(MPRR_QUEUE_IO, &map->flags);
	spin_lock_init(&map->lock);
	mutex_init(&map->message_mutex);
	init_waitqueue_head(&map->pg_init_wait);
	init_waitqueue_head(&map->probe_wait);
	INIT_WORK(&map->event_work, event_work);
	mprr_rr_auto_init(map);
	INIT_DELAYED_WORK(&map->no_path_work, mprr_no_path_work);
	return map;
}

static void set_capabilities(struct dm_target *ti)
{
	const struct mprr_map *map = ti->private;

	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->num_write_zeroes_bios = 1;
	ti->per_io_data_size = mprr_is_bio_map(map) ? sizeof(struct mprr_bio) :
						      sizeof(struct mprr_io);
}

/**
 * mprr_table_ctr - build a map from a table line
 * @ti: the DM target; ti->private and ti->error are set
 * @argc: number of words
 * @argv: the words
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno, then nothing is left behind.
 */
int mprr_table_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct mprr_map *map = create_map(ti);
	struct parse p = { .map = map, .words = { .argc = argc, .argv = argv } };
	unsigned long flags;
	int r;

	if (!map) {
		ti->error = "no memory for a multipath map";
		return -ENOMEM;
	}

	r = mprr_gate_init(map);
	if (r)
		ti->error = "no memory to remember where requests ended";
	else
		r = parse_features(&p);
	if (!r) {
		dm_table_set_type(ti->table, mprr_is_bio_map(map) ? DM_TYPE_BIO_BASED :
								    DM_TYPE_REQUEST_BASED);
		r = parse_handler(&p);
	}
	if (!r)
		r = parse_groups(&p);
	if (r) {
		mprr_map_destroy(map);
		return r;
	}

	ti->private = map;
	set_capabilities(ti);
	mprr_tunables_begin(map);

	/* A table without any path waits for one from the start. */
	spin_lock_irqsave(&map->lock, flags);
	mprr_no_path_timer_start_locked(map);
	spin_unlock_irqrestore(&map->lock, flags);
	return 0;
}
