// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz.c - fuzzers used by the guest tests (compiled in the guest).
 *
 * Table lines, messages, module parameters (this file) and sequences of
 * operations under verified I/O (fuzz-operations.c), all against the running
 * module. A case is made from (seed, number of the case) alone, so any case can
 * be run again by itself: MPRR_CASE=N in the environment.
 *
 * What is right is not guessed from what the module does: a second parser in
 * this file, written from the grammar, says for each line whether it must be
 * accepted and what TABLE must echo. Where the answer depends on the machine (a
 * device that may exist, a hardware handler) both are right, and only the
 * errno and the echo are checked.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

uint64_t seed;
long only_case = -1;
long this_case;
int failures;
static const char *replay;	/* how to run a case again, without its number */

static int usage(FILE *to)
{
	fputs("usage: fuzz VERB SEED COUNT ...\n"
	      "  tables SEED COUNT TARGET LEN DEV...      table lines, into the inactive slot of a map\n"
	      "  messages SEED COUNT MAP DEV...           messages to a live map over these paths\n"
	      "  parameters SEED COUNT MODULE.ko          module parameters, at load and at run time\n"
	      "  operations SEED COUNT MAP TARGET HOST... sequences of operations on a map under\n"
	      "                                           verified I/O; one path from each SCSI host\n"
	      "DEV is maj:min. MPRR_CASE=N in the environment runs case N only and says what it does.\n"
	      "The last line counts: \"# total N lines: A accepted, R refused, F failed\".\n", to);
	return to == stdout ? 0 : 2;
}

/* ---- the run ---- */

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

const char *errname(int e)
{
	return e ? strerrorname_np(e) ? strerrorname_np(e) : "E?" : "ok";
}

const char *escaped(const char *text)
{
	static char out[6000];
	char *o = out;

	for (; *text && o < out + sizeof(out) - 16; text++) {
		if (*text >= ' ' && *text <= '~')
			*o++ = *text;
		else
			o += sprintf(o, "\\x%02x", (unsigned char)*text);
	}
	strcpy(o, *text ? "..." : "");
	return out;
}

void say(const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	printf("# ");
	vprintf(what, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
}

void case_failed(const char *text, const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	printf("#   FAILED: ");
	vprintf(what, ap);
	putchar('\n');
	va_end(ap);
	say("    case %ld of seed %llu: %s", this_case, (unsigned long long)seed, escaped(text));
	say("    again: MPRR_SEED=%llu MPRR_CASE=%ld %s", (unsigned long long)seed, this_case,
	    replay);
	if (++failures < MAX_FAILURES)
		return;
	say("%d failures are enough", failures);
	exit(1);
}

void progress(const char *unit, long done, long all)
{
	static double last, begin;
	double t = now();

	if (!begin)
		begin = last = t;
	if (t - last < 10)
		return;
	last = t;
	say("%ld of %ld %s, %.0f a second", done, all, unit, done / (t - begin));
}

/* ---- random numbers ---- */

static uint64_t rng;

uint64_t rnd(void)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static char pool[64 << 20];	/* a word that is too long, many times */
static size_t pool_used;

void case_begin(long nr)
{
	this_case = nr;
	pool_used = 0;
	rng = seed;
	rng = rnd() ^ (uint64_t)nr * 0xd1342543de82ef95;
}

void *case_alloc(size_t size)
{
	void *p = pool + pool_used;

	pool_used += (size + 15) & ~15ul;
	if (pool_used > sizeof(pool)) {
		say("case %ld needs too much memory", this_case);
		exit(2);
	}
	return p;
}

char *case_print(const char *format, ...)
{
	va_list ap, again;
	char *text;
	int n;

	va_start(ap, format);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, format, ap);
	text = case_alloc(n + 1);
	vsnprintf(text, n + 1, format, again);
	va_end(again);
	va_end(ap);
	return text;
}

/* ---- device-mapper ---- */

static int dm_fd = -1;

int dm_open(void)
{
	dm_fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (dm_fd < 0)
		perror("/dev/mapper/control");
	return dm_fd < 0;
}

static int dm_call(unsigned long cmd, struct dm_ioctl *io, size_t size, const char *map)
{
	io->version[0] = DM_VERSION_MAJOR;
	io->data_size = size;
	io->data_start = sizeof(*io);
	snprintf(io->name, sizeof(io->name), "%s", map);
	return ioctl(dm_fd, cmd, io) ? errno : 0;
}

int dm_plain(unsigned long cmd, const char *map, unsigned int flags)
{
	struct dm_ioctl io = { .flags = flags };

	return dm_call(cmd, &io, sizeof(io), map);
}

int dm_load(const char *map, uint64_t len, const char *type, const char *words)
{
	size_t size = sizeof(struct dm_ioctl) + sizeof(struct dm_target_spec) + strlen(words) + 9;
	struct dm_ioctl *io = calloc(1, size);
	struct dm_target_spec *spec = (void *)(io + 1);
	int err;

	if (!io)
		return ENOMEM;
	io->target_count = 1;
	spec->length = len;
	snprintf(spec->target_type, sizeof(spec->target_type), "%s", type);
	strcpy((char *)(spec + 1), words);
	err = dm_call(DM_TABLE_LOAD, io, size, map);
	free(io);
	return err;
}

int dm_message(const char *map, const char *text)
{
	size_t size = sizeof(struct dm_ioctl) + sizeof(struct dm_target_msg) + strlen(text) + 64;
	struct dm_ioctl *io = calloc(1, size);
	struct dm_target_msg *msg = (void *)(io + 1);
	int err;

	if (!io)
		return ENOMEM;
	strcpy(msg->message, text);
	err = dm_call(DM_TARGET_MSG, io, size, map);
	free(io);
	return err;
}

/* DM_BUFFER_FULL_FLAG is E2BIG here; what lies behind the buffer must not change. */
int dm_status_in(const char *map, unsigned int flags, char *text, size_t size, size_t room)
{
	size_t head = sizeof(struct dm_ioctl) + sizeof(struct dm_target_spec);
	struct dm_ioctl *io = calloc(1, head + room + 64);
	struct dm_target_spec *spec;
	int err, i;

	if (!io)
		return ENOMEM;
	memset((char *)io + head + room, 0xa5, 64);
	io->flags = flags | DM_NOFLUSH_FLAG;
	err = dm_call(DM_TABLE_STATUS, io, head + room, map);
	spec = (void *)((char *)io + io->data_start);
	*text = 0;
	if (!err && io->flags & DM_BUFFER_FULL_FLAG)
		err = E2BIG;
	else if (!err && io->target_count == 1)
		snprintf(text, size, "%s", (char *)(spec + 1));
	for (i = 0; i < 64; i++)
		if (((unsigned char *)io)[head + room + i] != 0xa5)
			err = EFAULT;
	free(io);
	return err;
}

int dm_status(const char *map, unsigned int flags, char *text, size_t size)
{
	return dm_status_in(map, flags, text, size, size);
}

int dm_node(const char *map, char *node, size_t size)
{
	struct dm_ioctl io = { 0 };
	int err = dm_call(DM_DEV_STATUS, &io, sizeof(io), map);

	/* <linux/kdev_t.h>'s new encoding */
	if (!err)
		snprintf(node, size, "/dev/dm-%u",
			 (unsigned int)((io.dev & 0xff) | (io.dev >> 12 & 0xfff00)));
	return err;
}

/* ---- an INFO line ---- */

static bool next_number(const char **p, unsigned int max, unsigned int *value)
{
	char *end;
	unsigned long v = strtoul(*p, &end, 10);

	if (!isdigit((unsigned char)**p) || *end != ' ' || v > max)
		return false;
	*p = end + 1;
	*value = v;
	return true;
}

static const char *info_path_parse(const char **p, struct info_path *path, unsigned int words)
{
	unsigned int i;
	int n = 0;

	if (sscanf(*p, "%15[0-9:] %c%n", path->dev, &path->state, &n) != 2 || !n ||
	    !strchr("AF", path->state) || (*p)[n] != ' ')
		return "device or state of a path";
	*p += n + 1;
	if (!next_number(p, UINT_MAX, &path->fails))
		return "fail count";
	path->nr_words = words;
	for (i = 0; i < words; i++) {
		char *end;

		path->words[i] = strtol(*p, &end, 10);
		if (end == *p || *end != ' ')
			return "word of a path";
		*p = end + 1;
	}
	return NULL;
}

const char *info_parse(const char *line, struct info *info)
{
	const char *p = line, *bad;
	unsigned int x, g, i, words;

	if (strncmp(p, "2 ", 2))
		return "number of features";
	p += 2;
	if (!next_number(&p, 1, &x) || !next_number(&p, UINT_MAX, &x) || strncmp(p, "0 ", 2))
		return "features";
	p += 2;
	if (!next_number(&p, MAX_GROUPS, &info->nr_groups) ||
	    !next_number(&p, info->nr_groups, &info->current) || !info->current != !info->nr_groups)
		return "groups";
	for (g = 0; g < info->nr_groups; g++) {
		struct info_group *group = &info->group[g];

		group->state = *p;
		if (!strchr("ADE", *p) || p[1] != ' ')
			return "state of a group";
		p += 2;
		if (!next_number(&p, 2, &words))
			return "number of a group's words";
		while (words--)
			if (!next_number(&p, UINT_MAX, &x))
				return "word of a group";
		if (!next_number(&p, MAX_PATHS, &group->nr_paths) || !next_number(&p, 4, &words))
			return "paths of a group";
		for (i = 0; i < group->nr_paths; i++) {
			bad = info_path_parse(&p, &group->path[i], words);
			if (bad)
				return bad;
		}
	}
	return *p ? "words left over" : NULL;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "", *one = getenv("MPRR_CASE");
	long count;

	if (!strcmp(verb, "--help"))
		return usage(stdout);
	if (argc < 5)
		return usage(stderr);
	seed = strtoull(argv[2], NULL, 0);
	count = strtol(argv[3], NULL, 0);
	only_case = one && *one ? strtol(one, NULL, 0) : -1;
	replay = getenv("MPRR_REPLAY") ? getenv("MPRR_REPLAY") : "fuzz ...";
	if (dm_open())
		return 2;
	if (!strcmp(verb, "tables") && argc > 6) {
		nr_devs = argc - 6;
		devs = argv + 6;
		return do_tables(count, argv[4], strtoull(argv[5], NULL, 0));
	}
	if (!strcmp(verb, "messages") && argc > 5) {
		nr_devs = argc - 5;
		devs = argv + 5;
		return do_messages(count, argv[4]);
	}
	if (!strcmp(verb, "parameters") && argc == 5)
		return do_parameters(count, argv[4]);
	if (!strcmp(verb, "operations") && argc > 6)
		return do_operations(count, argv[4], argv[5], argc - 6, argv + 6);
	return usage(stderr);
}
