// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-attributes.c - sysfs: files, and the attributes of the map's queue at random.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static const char *queue_of;

static struct attribute {
	const char *name;
	char value[64];		/* at the begin */
} attributes[] = {
	{ "scheduler", "" }, { "nr_requests", "" }, { "max_sectors_kb", "" }, { "nomerges", "" },
	{ "rq_affinity", "" }, { "read_ahead_kb", "" }, { "wbt_lat_usec", "" },
};

#define NR_ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

static char *attribute_file(const char *name)
{
	return case_print("/sys/block/%s/queue/%s", queue_of, name);
}

/* Notes the attributes of a disk ("dm-3") as they are now. */
void attributes_read(const char *disk)
{
	unsigned int i;
	char *now_is;

	queue_of = disk;
	for (i = 0; i < NR_ATTRIBUTES; i++)
		read_file(attribute_file(attributes[i].name), attributes[i].value,
			  sizeof(attributes[i].value));
	/* none [mq-deadline] kyber */
	now_is = strchr(attributes[0].value, '[');
	if (now_is) {
		memmove(attributes[0].value, now_is + 1, strlen(now_is));
		attributes[0].value[strcspn(attributes[0].value, "]")] = 0;
	}
}

/*
 * A value for one of them, most of them good.  Not bfq where there is lockdep:
 * it runs hardware queues with its lock held, lockdep reports a cycle of bfq's and
 * the block layer's locks, and then watches nothing any more.
 */
struct attribute_write any_attribute(void)
{
	const char *const schedulers[] = { "none", "mq-deadline", "kyber",
					   access("/proc/lockdep", F_OK) ? "bfq" : "none" };
	struct attribute *a = &attributes[percent(40) ? 0 : below(NR_ATTRIBUTES)];
	struct attribute_write w = { .file = attribute_file(a->name) };

	if (!strcmp(a->name, "scheduler"))
		w.value = case_print("%s", schedulers[below(4)]);
	else if (!strcmp(a->name, "nr_requests"))
		w.value = case_print("%u", 1 + below(300));
	else if (!strcmp(a->name, "max_sectors_kb"))
		w.value = case_print("%lu", 4 + rnd() % (strtoul(a->value, NULL, 10) - 3));
	else if (!strcmp(a->name, "wbt_lat_usec"))
		w.value = case_print("%u", percent(50) ? 0 : below(100000));
	else
		w.value = case_print("%u", below(3));
	return w;
}

/* For a thread: arg is the struct attribute_write. */
void *write_attribute(void *arg)
{
	struct attribute_write *w = arg;

	w->err = write_file(w->file, w->value);
	return NULL;
}

/* What attributes_read() noted. */
void attributes_restore(void)
{
	unsigned int i;

	for (i = 0; i < NR_ATTRIBUTES; i++)
		if (attributes[i].value[0])
			write_file(attribute_file(attributes[i].name), attributes[i].value);
}
