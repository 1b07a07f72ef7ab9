// SPDX-License-Identifier: GPL-2.0
/*
 * Tunables: one meaning, three places to set them.
 *
 * DOC: tunables
 *
 * A value comes from the first of these that says something:
 *
 *	message		dmsetup message MAP 0 NAME VALUE, ended by NAME table
 *	table		feature words NAME VALUE
 *	module		parameter NAME of the module, at any time
 *
 * Two of them differ.  The repeat count of a path, if the table has one, goes
 * before the parameter rr_min_io, and no_path_timeout_secs is in the module the
 * parameter queue_if_no_path_timeout_secs, a name that user space knows.
 *
 * Every one of them takes effect with the next request.  What a message set
 * belongs to the mapped device: the tables of one device share it, so it stays
 * when a table is loaded anew (multipathd does that at each change of a path)
 * and ends with the last table of the device.
 *
 * The request path reads plain numbers that are written here, under
 * tunables_mutex.
 */

#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "dm-mpath-rr.h"
#include "dm-mpath-tunables.h"

static DEFINE_MUTEX(tunables_mutex);
static LIST_HEAD(maps);			/* under tunables_mutex */

struct tunable {
	const char *name;
	unsigned int min;
	unsigned int max;
	unsigned int module;		/* the parameter's value */
	bool no_auto;
	const char *range;
};

static struct tunable tunables[MPRR_NR_TUNABLES] = {
	[MPRR_MERGE_DEADLINE] = {
		.name	= "merge_deadline_us",
		.max	= 100000,
		.module	= MPRR_AUTO,
		.range	= "merge_deadline_us must be auto or a number 0..100000",
	},
	[MPRR_MAX_INFLIGHT] = {
		.name	= "max_inflight",
		.min	= 1,
		.max	= 65536,
		.module	= MPRR_AUTO,
		.range	= "max_inflight must be auto or a number 1..65536",
	},
	[MPRR_RR_MIN_IO] = {
		.name	= "rr_min_io",
		.min	= 1,
		.max	= 1000000,
		.module	= 1,
		.range	= "rr_min_io must be auto or a number 1..1000000",
	},
	[MPRR_RR_MIN_IO_BYTES] = {
		.name	= "rr_min_io_bytes",
		.max	= SZ_1G,
		.no_auto = true,
		.range	= "rr_min_io_bytes must be a number 0..1073741824",
	},
	[MPRR_NO_PATH_TIMEOUT] = {
		.name	= "no_path_timeout_secs",
		.max	= 86400 * 365,
		.module	= MPRR_UNSET,
		.no_auto = true,
		.range	= "no_path_timeout_secs must be a number 0..31536000",
	},
};

static int read_value(const struct tunable *t, const char *word, unsigned int *value)
{
	if (!t->no_auto && !strcasecmp(word, "auto")) {
		*value = MPRR_AUTO;
		return 0;
	}
	return mprr_read_uint(word, value) || *value < t->min || *value > t->max ? -EINVAL : 0;
}

static unsigned int emit_value(unsigned int value, char *result, unsigned int maxlen)
{
	return value == MPRR_AUTO ? scnprintf(result, maxlen, "auto") :
				    scnprintf(result, maxlen, "%u", value);
}

/* What holds instead of MPRR_UNSET. */
static unsigned int emit_unset(enum mprr_tunable nr, char *result, unsigned int maxlen)
{
	if (nr == MPRR_RR_MIN_IO)
		return scnprintf(result, maxlen, "repeat_count (table)");
	return scnprintf(result, maxlen, "%lu (module)", mprr_no_path_timeout_default());
}

static unsigned int value_in_force(const struct mprr_map *map, enum mprr_tunable nr,
				   const char **where)
{
	if (map->by_message[nr] != MPRR_UNSET) {
		*where = "message";
		return map->by_message[nr];
	}
	if (map->by_table[nr] != MPRR_UNSET) {
		*where = "table";
		return map->by_table[nr];
	}
	if (nr == MPRR_RR_MIN_IO && test_bit(MPRR_REPEAT_COUNTS, &map->flags))
		return MPRR_UNSET;
	*where = "module";
	return tunables[nr].module;
}

static void apply(struct mprr_map *map)
{
	unsigned int value;
	const char *where;

	lockdep_assert_held(&tunables_mutex);
	WRITE_ONCE(map->gate.hold_us, value_in_force(map, MPRR_MERGE_DEADLINE, &where));
	WRITE_ONCE(map->max_inflight, value_in_force(map, MPRR_MAX_INFLIGHT, &where));
	WRITE_ONCE(map->rr_min_io, value_in_force(map, MPRR_RR_MIN_IO, &where));
	WRITE_ONCE(map->rr_min_io_bytes, value_in_force(map, MPRR_RR_MIN_IO_BYTES, &where));

	value = value_in_force(map, MPRR_NO_PATH_TIMEOUT, &where);
	if (map->no_path_timeout != value) {
		WRITE_ONCE(map->no_path_timeout, value);
		mprr_no_path_timeout_changed(map);
	}
}

static struct mapped_device *device_of(const struct mprr_map *map)
{
	return dm_table_get_md(map->ti->table);
}

/**
 * mprr_tunable_find - look a tunable up by its name
 * @name: the name, in any case
 *
 * Return: its number, or MPRR_NR_TUNABLES.
 */
enum mprr_tunable mprr_tunable_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < MPRR_NR_TUNABLES; i++)
		if (!strcasecmp(name, tunables[i].name))
			break;
	return i;
}

/**
 * mprr_tunable_name - the name of a tunable
 * @nr: the tunable
 *
 * Return: its name.
 */
const char *mprr_tunable_name(enum mprr_tunable nr)
{
	return tunables[nr].name;
}

/**
 * mprr_tunable_range - what a value of a tunable must be
 * @nr: the tunable
 *
 * Return: a text for whoever gave another one.
 */
const char *mprr_tunable_range(enum mprr_tunable nr)
{
	return tunables[nr].range;
}

/**
 * mprr_tunable_from_table - set a tunable by the words of a table
 * @map: the map, in its constructor
 * @nr: the tunable
 * @word: the value
 *
 * Return: 0 or -EINVAL.
 */
int mprr_tunable_from_table(struct mprr_map *map, enum mprr_tunable nr, const char *word)
{
	return read_value(&tunables[nr], word, &map->by_table[nr]);
}

/**
 * mprr_tunable_emit_table - the value that the table set, as it was given
 * @map: the map
 * @nr: the tunable, which the table has set
 * @result: where it goes
 * @maxlen: room there
 *
 * Context: any.
 * Return: the number of characters.
 */
unsigned int mprr_tunable_emit_table(const struct mprr_map *map, enum mprr_tunable nr,
				     char *result, unsigned int maxlen)
{
	return emit_value(map->by_table[nr], result, maxlen);
}

/**
 * mprr_tunable_from_message - set a tunable of a device while it works
 * @map: a map of the device
 * @nr: the tunable
 * @word: the value, or "table" for what the table or the module says
 *
 * Context: process, may sleep.
 * Return: 0 or -EINVAL, then nothing has changed.
 */
int mprr_tunable_from_message(struct mprr_map *map, enum mprr_tunable nr, const char *word)
{
	unsigned int value = MPRR_UNSET;
	struct mprr_map *other;

	if (strcasecmp(word, "table") && read_value(&tunables[nr], word, &value))
		return -EINVAL;

	mutex_lock(&tunables_mutex);
	list_for_each_entry(other, &maps, tunables_entry) {
		if (device_of(other) == device_of(map)) {
			other->by_message[nr] = value;
			apply(other);
		}
	}
	mutex_unlock(&tunables_mutex);
	return 0;
}

/**
 * mprr_tunables_emit - each value in force and where it came from
 * @map: the map
 * @result: where the lines go
 * @maxlen: room there
 *
 * Context: process, may sleep.
 */
void mprr_tunables_emit(const struct mprr_map *map, char *result, unsigned int maxlen)
{
	unsigned int i, sz = 0;
	const char *where;

	mutex_lock(&tunables_mutex);
	for (i = 0; i < MPRR_NR_TUNABLES; i++) {
		unsigned int value = value_in_force(map, i, &where);

		DMEMIT("%s%s ", i ? "\n" : "", tunables[i].name);
		if (value == MPRR_UNSET) {
			sz += emit_unset(i, result + sz, maxlen - sz);
			continue;
		}
		sz += emit_value(value, result + sz, maxlen - sz);
		DMEMIT(" (%s)", where);
	}
	mutex_unlock(&tunables_mutex);
}

/**
 * mprr_tunables_init - no table and no message has said anything
 * @map: the map, at the begin of its constructor
 */
void mprr_tunables_init(struct mprr_map *map)
{
	unsigned int i;

	INIT_LIST_HEAD(&map->tunables_entry);
	for (i = 0; i < MPRR_NR_TUNABLES; i++) {
		map->by_message[i] = MPRR_UNSET;
		map->by_table[i] = MPRR_UNSET;
	}
	map->no_path_timeout = MPRR_UNSET;
}

/**
 * mprr_tunables_begin - let a map take part: what messages set is in force
 * @map: the map, at the end of its constructor
 *
 * Context: process, may sleep.
 */
void mprr_tunables_begin(struct mprr_map *map)
{
	struct mprr_map *other;

	mutex_lock(&tunables_mutex);
	list_for_each_entry(other, &maps, tunables_entry) {
		if (device_of(other) == device_of(map)) {
			memcpy(map->by_message, other->by_message, sizeof(map->by_message));
			break;
		}
	}
	list_add(&map->tunables_entry, &maps);
	apply(map);
	mutex_unlock(&tunables_mutex);
}

/**
 * mprr_tunables_end - forget a map
 * @map: the map; mprr_tunables_begin() may not have been called
 *
 * Context: process, may sleep.
 */
void mprr_tunables_end(struct mprr_map *map)
{
	mutex_lock(&tunables_mutex);
	list_del_init(&map->tunables_entry);
	mutex_unlock(&tunables_mutex);
}

static int set_parameter(const char *word, const struct kernel_param *kp)
{
	struct tunable *t = kp->arg;
	struct mprr_map *map;
	unsigned int value;
	char text[12];

	if (strscpy(text, word, sizeof(text)) < 0 || read_value(t, strim(text), &value)) {
		DMERR("parameter %s: \"%s\": %s", t->name, word, t->range);
		return -EINVAL;
	}

	mutex_lock(&tunables_mutex);
	t->module = value;
	list_for_each_entry(map, &maps, tunables_entry)
		apply(map);
	mutex_unlock(&tunables_mutex);
	return 0;
}

static int get_parameter(char *buffer, const struct kernel_param *kp)
{
	const struct tunable *t = kp->arg;
	unsigned int sz = emit_value(READ_ONCE(t->module), buffer, PAGE_SIZE);

	return sz + scnprintf(buffer + sz, PAGE_SIZE - sz, "\n");
}

static const struct kernel_param_ops tunable_ops = {
	.set	= set_parameter,
	.get	= get_parameter,
};

module_param_cb(merge_deadline_us, &tunable_ops, &tunables[MPRR_MERGE_DEADLINE], 0644);
MODULE_PARM_DESC(merge_deadline_us, "Longest time that a request is held to merge, in us: 0 (never) .. 100000 or auto");
module_param_cb(max_inflight, &tunable_ops, &tunables[MPRR_MAX_INFLIGHT], 0644);
MODULE_PARM_DESC(max_inflight, "Most requests in flight on a path: 1..65536, or auto (what the device takes)");
module_param_cb(rr_min_io, &tunable_ops, &tunables[MPRR_RR_MIN_IO], 0644);
MODULE_PARM_DESC(rr_min_io, "Requests that a path gets before the next one has its turn, if the table has no repeat counts: 1 .. 1000000 or auto");
module_param_cb(rr_min_io_bytes, &tunable_ops, &tunables[MPRR_RR_MIN_IO_BYTES], 0644);
MODULE_PARM_DESC(rr_min_io_bytes, "Bytes that a path gets before the next one has its turn: 0 (requests count) .. 1073741824");
