// SPDX-License-Identifier: GPL-2.0
/*
 * differential.c - plays one script against two target types and compares what can be seen of them.
 *
 * usage: differential DIFFERENCES KERNEL SLOW SECTIONS TABLES SCENARIOS NAME=VALUE...
 *
 * TABLES has one line of table words a line; SCENARIOS has what README.md describes. Each is played
 * against "multipath", then against "mpath-rr". What a step shows (an aspect: errno, table, info, ima,
 * log, uevents, requests, ...) is kept as text and compared at the end. A difference must be one that
 * the machine-readable part of DIFFERENCES allows; one that is allowed for KERNEL must occur.
 * NAME=VALUE: @NAME in both files stands for VALUE; LEN is the size of the maps, A to D are verified.
 * Prints lines "ok - " and "not ok - " for `run`.
 */
#define _GNU_SOURCE
#include <ctype.h>
#define _GNU_SOURCE
#include <ctype.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "differential.h"

#ifndef DM_IMA_MEASUREMENT_FLAG
#define DM_IMA_MEASUREMENT_FLAG	(1 << 19)
#endif

#define UUID		"mprr-differential"

const char *const types[2] = { "multipath", "mpath-rr" };
static const char *const modules[2] = { "dm_multipath", "dm_multipath_rr" };
int slow = 1, now;
const char *kernel, *sections;
unsigned int map_minor;
static int ctl, netlink;
static uint64_t len;

/* ---- status ---- */

/* which: DM_STATUS_TABLE_FLAG, DM_IMA_MEASUREMENT_FLAG, or 0 = INFO */
static void see_status(const char *aspect, unsigned int flags)
{
	size_t size = 1 << 18, n;
	struct dm_ioctl *io = calloc(1, size);
	struct dm_target_spec *spec;
	char *text, *version;
	int err;

	io->data_size = size;
	io->flags = flags | DM_NOFLUSH_FLAG;
	err = dm_call(ctl, DM_TABLE_STATUS, io, MAP);
	spec = (void *)((char *)io + io->data_start);
	if (err || io->target_count != 1) {
		saw(aspect, "%s", err ? errname(err) : "no table");
		free(io);
		return;
	}
	text = (char *)(spec + 1);
	/* a table may end in a blank or not: it is compared, too */
	n = strlen(text);
	version = strstr(text, ",target_version=");
	if (!strncmp(text, "target_name=", 12) && version) {
		if (strncmp(text + 12, types[now], strlen(types[now])))
			saw(aspect, "wrong target name: %s", text);
		version = strchr(version + 1, ',');
		text = version ? version : text;
	}
	saw(aspect, "%s%s", text, n && text[strlen(text) - 1] == ' ' ? "." : "");
	free(io);
}

static unsigned int event_nr(void)
{
	struct dm_ioctl io = { .data_size = sizeof(io) };

	return dm_call(ctl, DM_DEV_STATUS, &io, MAP) ? ~0u : io.event_nr;
}

static int by_number(const void *a, const void *b)
{
	const char *x = strstr(*(char *const *)a, "DM_SEQNUM="), *y = strstr(*(char *const *)b, "DM_SEQNUM=");

	return (x ? atoi(x + 10) : 0) - (y ? atoi(y + 10) : 0);
}

/*
 * The uevents that came since the last call, each with its variables in order. The core sends what
 * has gathered until the work runs newest first, so they are put in the order of their numbers.
 */
static void see_uevents(void)
{
	char buf[16384], line[4096], node[64], *lines[256];
	ssize_t n;
	int count = 0;

	snprintf(node, sizeof(node), "/block/dm-%u", map_minor);
	while ((n = recv(netlink, buf, sizeof(buf) - 1, MSG_DONTWAIT)) > 0) {
		size_t used = 0;
		char *p = buf;
		int ours = 0;

		buf[n] = 0;
		if (!strstr(buf, node))
			continue;
		for (*line = 0; p < buf + n; p += strlen(p) + 1) {
			if (!strncmp(p, "DM_ACTION=", 10))
				ours = 1;
			if (strncmp(p, "DM_", 3) || !strncmp(p, "DM_COOKIE", 9))
				continue;
			if (!strncmp(p, "DM_TARGET=", 10))
				used += snprintf(line + used, sizeof(line) - used, "DM_TARGET=%s ",
						 strcmp(p + 10, types[now]) ? p + 10 : "(its own)");
			else
				used += snprintf(line + used, sizeof(line) - used, "%s ", p);
		}
		if (ours && count < 256)
			lines[count++] = strdup(line);
	}
	qsort(lines, count, sizeof(*lines), by_number);
	for (int i = 0; i < count; i++) {
		saw("uevent", "%s", lines[i]);
		free(lines[i]);
	}
	saw("uevents", "%d", count);
}

static void suspend(int on, unsigned int flags, const char *aspect)
{
	int err = dm_flags(ctl, DM_DEV_SUSPEND, MAP, (on ? DM_SUSPEND_FLAG : 0) | flags, NULL);

	if (aspect)
		saw(aspect, "%s", errname(err));
}

/*
 * A suspend without flush waits for what the target still has to do, events included. Changes that
 * follow each other fast may share one event number, with either target: after a single one the
 * number is exact.
 */
static unsigned int changes, events_before;

static void see_events(void)
{
	unsigned int nr;

	suspend(1, DM_NOFLUSH_FLAG, NULL);
	see_uevents();
	nr = event_nr();
	if (nr == ~0u) {
		saw("events", "no map");
		return;
	}
	nr -= events_before;
	if (changes <= 1)
		saw("events", "%u", nr);
	else
		saw("events", "%s", nr > changes + 16 ? "too many" : nr ? "some" : "none");
	events_before += nr;
	changes = 0;
	suspend(0, 0, NULL);
}

/* ---- table lines ---- */

static int load(const char *words)
{
	char *table;
	int err;

	if (asprintf(&table, "0 %llu %s %s", (unsigned long long)len, types[now], words) < 0)
		exit(2);
	err = dm_load(ctl, MAP, table);
	free(table);
	return err;
}

static int create(void)
{
	struct dm_ioctl io = { .data_size = sizeof(io) };
	int err;

	strcpy(io.uuid, UUID);
	err = dm_call(ctl, DM_DEV_CREATE, &io, MAP);
	map_minor = minor(io.dev);
	return err;
}

static void play_table(const char *words)
{
	int err;

	strcpy(step, "load");
	kmsg_skip();
	err = load(words);
	saw("errno", "%s", errname(err));
	see_log();
	if (err)
		return;
	see_status("table", DM_STATUS_TABLE_FLAG | DM_QUERY_INACTIVE_TABLE_FLAG);
	see_status("info", DM_QUERY_INACTIVE_TABLE_FLAG);
	see_status("ima", DM_IMA_MEASUREMENT_FLAG | DM_QUERY_INACTIVE_TABLE_FLAG);
	dm_clear(ctl, MAP);
}

/* "@section NAME" until the next one; 1 if LINE was such, on = whether it is wanted */
static int section(const char *line, int *on)
{
	if (strncmp(line, "@section ", 9))
		return 0;
	*on = listed(sections, line + 9);
	return 1;
}

static void new_map_for_tables(void)
{
	int err;

	dm_remove(ctl, MAP);
	err = create();
	if (err) {
		printf("Bail out! no map: %s\n", errname(err));
		exit(2);
	}
}

static int play_tables(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL, *words, where[4600];
	size_t room = 0;
	int count = 0, on = 1, bio = 0, had_bio;

	if (!f) {
		printf("Bail out! %s\n", path);
		exit(2);
	}
	new_map_for_tables();
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (section(line, &on) || !on || *line == '#' || !*line)
			continue;
		/* "-" stands for no words at all */
		words = fill(strcmp(line, "-") ? line : "");
		/* A map stays what its first table made it: bio or request based. */
		had_bio = bio;
		bio = !!strcasestr(words, "queue_mode bio");
		if (bio || had_bio)
			new_map_for_tables();
		for (now = 0; now < 2; now++)
			play_table(words);
		snprintf(where, sizeof(where), "table: %s", line);
		compare(where);
		free(words);
		count++;
	}
	fclose(f);
	dm_remove(ctl, MAP);
	return count;
}

/* ---- scenarios ---- */

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	return *end == 'k' ? n << 10 : *end == 'm' ? n << 20 : n;
}

static void see_map(void)
{
	/* what is on its way may change the map at any moment */
	for (int i = 0; i < NR_WAITERS; i++)
		if (waiters[i].started) {
			see_log();
			return;
		}
	see_status("table", DM_STATUS_TABLE_FLAG);
	see_status("info", 0);
	see_log();
}

static void all_rules_off(void)
{
	for (int i = 0; i < NR_PATHS; i++) {
		char name[32];
		const char *file;

		snprintf(name, sizeof(name), "%srules", path_names[i]);
		file = value_of(name);
		for (unsigned int op = 0; file && *file && op < 256; op++) {
			char text[32];

			snprintf(text, sizeof(text), "- 2 0x%x", op);
			if (op == 0 || op == 0x28 || op == 0x2a || op == 0x35 || op == 0x42 || op == 0x93)
				write_file(file, text);
		}
	}
}

static void set_state(const char *path, const char *state)
{
	char file[160];

	snprintf(file, sizeof(file), "/sys/block/%s/device/state", disk(path));
	saw("control", "%s", errname(write_file(file, state)));
}

static void sdeb(const char *name, const char *value)
{
	char file[160];

	snprintf(file, sizeof(file), "/sys/bus/pseudo/drivers/scsi_debug/%s", name);
	saw("control", "%s", errname(write_file(file, value)));
}

static void parameter(const char *name, const char *value)
{
	char file[160];

	snprintf(file, sizeof(file), "/sys/module/%s/parameters/%s", modules[now], name);
	saw("control", "%s", errname(write_file(file, value)));
}

/* until INFO matches; the I/O and the work that make it so are not waited for by anything else */
static void until_info(const char *re)
{
	size_t size = 1 << 16;
	struct dm_ioctl *io = calloc(1, size);
	uint64_t end = ms() + 20000ull * slow;
	int ok = 0;

	while (!ok && ms() < end) {
		memset(io, 0, sizeof(*io));
		io->data_size = size;
		io->flags = DM_NOFLUSH_FLAG;
		if (!dm_call(ctl, DM_TABLE_STATUS, io, MAP) && io->target_count == 1)
			ok = matches_text(re, (char *)io + io->data_start + sizeof(struct dm_target_spec));
		if (!ok)
			nap(5);
	}
	free(io);
	saw("until-info", "%s", ok ? "yes" : "never");
}

/*
 * The data come before the request is done, and the selector counts it until then. Not while another
 * I/O is on its way.
 */
static void settle(void)
{
	uint64_t end = ms() + 10000ull * slow;

	for (int i = 0; i < NR_WAITERS; i++)
		if (waiters[i].started)
			return;
	while (map_in_flight() && ms() < end)
		nap(1);
}

static const char *whole_io(const char *op, uint64_t off, uint64_t bytes)
{
	const char *result = do_io(op, off, bytes);

	settle();
	return result;
}

static void reads(long count)
{
	unsigned long errors = 0;
	const char *last = "ok";

	/* 68 KiB apart: nothing merges */
	for (long i = 0; i < count; i++) {
		const char *r = whole_io("read", (uint64_t)i * 68 * 1024 % ((len << 9) - 4096) & ~4095ull, 4096);

		if (strcmp(r, "ok")) {
			errors++;
			last = r;
		}
	}
	saw("io", "%ld reads, %lu errors, %s", count, errors, last);
}

static struct waiter *waiter(const char *id)
{
	return &waiters[*id >= '0' && *id <= '9' ? *id - '0' : 0];
}

/* argument N of a step, "" if there is none; REST from it on */
static char *argv_[16], *rest_[16];
static int argc_;

static void split(char *text)
{
	static char copy[8192];
	char *p = copy;

	snprintf(copy, sizeof(copy), "%s", text);
	for (argc_ = 0; argc_ < 16;) {
		while (*p == ' ' || *p == '\t')
			p++;
		if (!*p)
			break;
		rest_[argc_] = text + (p - copy);
		argv_[argc_++] = p;
		while (*p && *p != ' ' && *p != '\t')
			p++;
		if (*p)
			*p++ = 0;
	}
	for (int i = argc_; i < 16; i++)
		argv_[i] = rest_[i] = "";
}

static int is(const char *verb)
{
	return !strcmp(argv_[0], verb);
}

static void play_step(char *text)
{
	struct waiter *w;
	char buf[256];
	int err;

	split(text);
	/* I/O may fail paths, several at a time, once something was broken */
	if (is("message"))
		changes++;
	else if (is("state") || is("opts") || is("rule") || is("parameter"))
		changes += 2;
	if (is("create")) {
		err = create();
		if (!err)
			err = load(rest_[1]);
		saw("errno", "%s", errname(err));
		suspend(0, 0, "resume");
	} else if (is("load")) {
		saw("errno", "%s", errname(load(rest_[1])));
	} else if (is("reload")) {
		suspend(1, DM_NOFLUSH_FLAG, "suspend");
		saw("errno", "%s", errname(load(rest_[1])));
		suspend(0, 0, "resume");
	} else if (is("suspend")) {
		suspend(1, 0, "suspend");
	} else if (is("suspend-noflush")) {
		suspend(1, DM_NOFLUSH_FLAG, "suspend");
	} else if (is("resume")) {
		suspend(0, 0, "resume");
	} else if (is("clear")) {
		saw("errno", "%s", errname(dm_clear(ctl, MAP)));
	} else if (is("remove")) {
		saw("errno", "%s", errname(dm_remove(ctl, MAP)));
	} else if (is("len")) {
		len = number(argv_[1]);
		return;
	} else if (is("message")) {
		saw("errno", "%s", errname(dm_message(ctl, MAP, rest_[1])));
	} else if (is("io")) {
		saw("io", "%s", whole_io(argv_[1], number(argv_[2]), number(argv_[3])));
	} else if (is("reads")) {
		reads(atol(argv_[1]));
	} else if (is("start")) {
		w = waiter(argv_[1]);
		snprintf(w->op, sizeof(w->op), "%s", argv_[2]);
		w->off = number(argv_[3]);
		w->bytes = number(argv_[4]);
		waiter_start(w);
		return;
	} else if (is("waits")) {
		/* asleep, and still so when the requeue list has been run once */
		w = waiter(argv_[1]);
		wait_asleep(w);
		nap(150);
		saw("waits", "%s", w->done ? w->result : "waits");
	} else if (is("busy")) {
		uint64_t end = ms() + 5000ull * slow;

		while (!map_in_flight() && ms() < end)
			nap(1);
		return;
	} else if (is("end")) {
		w = waiter(argv_[1]);
		saw("io", "%s", wait_done(w, 20) ? w->result : "HANGS");
		settle();
	} else if (is("until-info")) {
		until_info(rest_[1]);
		return;
	} else if (is("state")) {
		set_state(argv_[1], argv_[2]);
		return;
	} else if (is("opts")) {
		sdeb("opts", argv_[1]);
		sdeb("every_nth", *argv_[2] ? argv_[2] : "0");
		return;
	} else if (is("delay")) {
		sdeb("delay", argv_[1]);
		return;
	} else if (is("rule")) {
		snprintf(buf, sizeof(buf), "%srules", argv_[1]);
		saw("control", "%s", errname(write_file(value_of(buf), rest_[2])));
		return;
	} else if (is("parameter")) {
		parameter(argv_[1], argv_[2]);
		return;
	} else if (is("limit")) {
		snprintf(buf, sizeof(buf), "/sys/block/%s/queue/%s", disk(argv_[1]), argv_[2]);
		saw("control", "%s", errname(write_file(buf, argv_[3])));
		return;
	} else if (is("unverified")) {
		verify(0);
		return;
	} else if (is("limits")) {
		see_limits();
		return;
	} else if (is("requests")) {
		see_requests(0);
		return;
	} else if (is("forget-requests")) {
		see_requests(1);
		return;
	} else if (is("events")) {
		see_events();
		return;
	} else if (is("ima")) {
		see_status("ima", DM_IMA_MEASUREMENT_FLAG);
		return;
	} else {
		printf("Bail out! unknown step: %s\n", text);
		exit(2);
	}
	see_map();
}

/* whatever the scenario left: nothing of it may meet the next one */
static int tidy(void)
{
	int hangs = 0;

	for (int i = 0; i < NR_PATHS; i++) {
		char file[160];

		snprintf(file, sizeof(file), "/sys/block/%s/device/state", disk(path_names[i]));
		write_file(file, "running");
		/* a disk that has refused a discard gets none any more */
		snprintf(file, sizeof(file), "%smode", path_names[i]);
		if (value_of(file) && *value_of(file))
			write_file(value_of(file), "unmap");
	}
	write_file("/sys/bus/pseudo/drivers/scsi_debug/opts", "0");
	write_file("/sys/bus/pseudo/drivers/scsi_debug/every_nth", "0");
	write_file("/sys/bus/pseudo/drivers/scsi_debug/delay", "0");
	all_rules_off();
	dm_flags(ctl, DM_DEV_SUSPEND, MAP, 0, NULL);
	dm_message(ctl, MAP, "fail_if_no_path");
	for (int i = 0; i < NR_WAITERS; i++)
		if (waiters[i].started && !wait_done(&waiters[i], 30))
			hangs++;
	strcpy(step, "at the end");
	parameter("queue_if_no_path_timeout_secs", "0");
	saw("hangs", "%d", hangs);
	if (!hangs && map_minor != ~0u)
		saw("removed", "%s", errname(dm_remove(ctl, MAP)));
	see_uevents();
	return hangs;
}

static void play_scenario(char **steps, int nr)
{
	uint64_t size = len;

	verify(1);
	changes = events_before = 0;
	kmsg_skip();
	see_requests(1);
	for (int i = 0; i < nr; i++) {
		char *text = fill(steps[i]);

		snprintf(step, sizeof(step), "step %d, %.400s", i + 1, steps[i]);
		if (getenv("MPRR_VERBOSE"))
			printf("#   %s: %s\n", types[now], step);
		play_step(text);
		free(text);
	}
	strcpy(step, "at the end");
	see_events();
	see_requests(0);
	see_status("info", 0);
	see_status("ima", DM_IMA_MEASUREMENT_FLAG);
	if (tidy()) {
		printf("Bail out! I/O hangs with %s\n", types[now]);
		exit(2);
	}
	len = size;
}

/* the header of a scenario: scenario [KERNEL...] NAME; the kernels are "6.12 7.3:" */
static int wanted(const char *name)
{
	const char *colon = strchr(name, ':');
	char list[64];

	if (!colon || !isdigit(*name))
		return 1;
	snprintf(list, sizeof(list), "%.*s", (int)(colon - name), name);
	return listed(list, kernel);
}

static int play_scenarios(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL, *steps[100], name[256] = "", where[300];
	size_t room = 0;
	int nr = 0, count = 0, on = 1, more;
	const char *only = getenv("MPRR_SCENARIO");

	if (!f) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(2);
	}
	do {
		more = getline(&line, &room, f) > 0;
		if (more)
			line[strcspn(line, "\n")] = 0;
		if ((!more || !strncmp(line, "scenario ", 9) || !strncmp(line, "@section ", 9)) && nr) {
			if (wanted(name) && (!only || !*only || strstr(name, only))) {
				for (now = 0; now < 2; now++)
					play_scenario(steps, nr);
				snprintf(where, sizeof(where), "scenario: %s", name);
				compare(where);
				count++;
			}
			while (nr)
				free(steps[--nr]);
		}
		if (!more || section(line, &on) || !on || *line == '#')
			continue;
		if (!strncmp(line, "scenario ", 9)) {
			snprintf(name, sizeof(name), "%s", line + 9);
		} else if (line[strspn(line, " \t")] && nr < 100) {
			steps[nr++] = strdup(line + strspn(line, " \t"));
		}
	} while (more);
	fclose(f);
	return count;
}

int main(int argc, char **argv)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int rcv = 8 << 20, tables, scenarios;

	if (argc < 7) {
		fputs("usage: differential DIFFERENCES KERNEL SLOW SECTIONS TABLES SCENARIOS NAME=VALUE...\n",
		      argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
		return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
	}
	kernel = argv[2];
	slow = atoi(argv[3]);
	sections = argv[4];
	for (int i = 7; i < argc; i++)
		add_name(argv[i]);
	len = value_of("LEN") ? strtoull(value_of("LEN"), NULL, 0) : 0;
	read_rules(argv[1]);
	ctl = dm_open();
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	if (!len || kmsg < 0 || netlink < 0 || bind(netlink, (void *)&addr, sizeof(addr))) {
		puts("Bail out! no size, no kernel log or no uevents");
		return 2;
	}
	setsockopt(netlink, SOL_SOCKET, SO_RCVBUFFORCE, &rcv, sizeof(rcv));
	tables = strcmp(argv[5], "-") ? play_tables(argv[5]) : 0;
	scenarios = strcmp(argv[6], "-") ? play_scenarios(argv[6]) : 0;
	printf("# total: %d table lines, %d scenarios, %d with a difference that is not meant\n", tables,
	       scenarios, failed);
	print_rules();
	return !!failed;
}
