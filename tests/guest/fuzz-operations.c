// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-operations.c - sequences of operations on a map under verified I/O.
 *
 * An I/O (fuzz-io.c) may fail only while a request can find no path and none is
 * awaited; the model below knows when that is. Wrong data is never right, and
 * nothing may hang: a watchdog ends an operation that does not return, with the
 * sequence so far. After each sequence the map comes to a known state, where
 * everything moves, then everything stands still and every counter is 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_HOSTS	8

static const char *map, *type;
static char node[32];
static uint64_t length;			/* sectors */
static double patience = 60;		/* seconds that anything may take */

/* ---- what happened in this sequence, for the report ---- */

static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static char story[16000];
static _Atomic double op_deadline;	/* 0: none */

static void tell(const char *what, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *what, ...)
{
	size_t used;
	va_list ap;

	pthread_mutex_lock(&report_lock);
	used = strlen(story);
	va_start(ap, what);
	vsnprintf(story + used, sizeof(story) - used, what, ap);
	va_end(ap);
	if (verbose)
		say("%s", story + used);
	pthread_mutex_unlock(&report_lock);
}

void wrong(const char *what, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	pthread_mutex_lock(&report_lock);
	case_failed(story, "%s", text);
	pthread_mutex_unlock(&report_lock);
}

/* ---- the model ---- */

struct path {
	char host[32];
	char disk[32];		/* sda; empty: deleted */
	char dev[16];
};

static struct path paths[MAX_HOSTS];
static int nr_paths;

struct table {
	bool there;
	bool queue;
	int nr_groups;
	/* for each host: is it a path here, as which device, in which state? */
	bool in[MAX_HOSTS], dead[MAX_HOSTS], failed[MAX_HOSTS];
	char dev[MAX_HOSTS][16];
};

static struct table live, inactive;
static bool suspended;

static int usable(const struct table *t)
{
	int i, n = 0;

	for (i = 0; i < nr_paths; i++)
		n += t->in[i] && !t->dead[i] && !t->failed[i];
	return n;
}

/* May an I/O to this table fail? */
static bool may_fail(const struct table *t)
{
	return !usable(t) && !t->queue;
}

/* ---- the watchdog ---- */

static void print_file(const char *path)
{
	char line[300];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		printf("#       %s", line);
	if (f)
		fclose(f);
}

static void hang(const char *what)
{
	char text[8192];
	glob_t g;
	size_t i;

	wrong("HANG: %s", what);
	dm_status(map, 0, text, sizeof(text));
	say("    INFO: %s", text);
	if (!glob("/proc/self/task/*", 0, NULL, &g)) {
		for (i = 0; i < g.gl_pathc; i++) {
			snprintf(text, sizeof(text), "%s/stack", g.gl_pathv[i]);
			say("    %s", text);
			print_file(text);
		}
	}
	/* Whoever waits in the kernel has to come back, or this process cannot end. */
	dm_message(map, "fail_if_no_path");
	dm_plain(DM_DEV_SUSPEND, map, DM_NOFLUSH_FLAG);
	dm_message(map, "fail_if_no_path");
	_exit(1);
}

static void *watchdog(void *arg)
{
	(void)arg;
	for (;;) {
		double d = op_deadline;

		if (d && now() > d)
			hang("an operation does not return");
		usleep(200000);
	}
	return NULL;
}

static void deadline(void) { op_deadline = now() + patience; }
static void no_deadline(void) { op_deadline = 0; }

/* Waits until it is so; says whether it is. */
static bool comes_true(bool (*is)(void))
{
	double end = now() + patience;

	while (!is()) {
		if (now() > end)
			return false;
		usleep(2000);
	}
	return true;
}

/* The same for what must come; the watchdog is not asked, the text is better. */
static void wait_for(bool (*is)(void), const char *what)
{
	if (!comes_true(is))
		hang(what);
}

/* ---- paths ---- */

static bool find_disk(struct path *p)
{
	char pattern[128], file[192];
	glob_t g;
	bool found;

	snprintf(pattern, sizeof(pattern), "/sys/class/scsi_host/%s/device/target*/*/block/*",
		 p->host);
	found = !glob(pattern, 0, NULL, &g);
	if (found) {
		snprintf(p->disk, sizeof(p->disk), "%s", strrchr(g.gl_pathv[0], '/') + 1);
		snprintf(file, sizeof(file), "/sys/block/%s/dev", p->disk);
		found = read_file(file, p->dev, sizeof(p->dev));
		globfree(&g);
	}
	if (!found)
		p->disk[0] = 0;
	return found;
}

static struct path *awaited;

/* It is in sysfs before it can be opened. */
static bool disk_found(void)
{
	char name[40];
	int fd;

	if (!find_disk(awaited))
		return false;
	snprintf(name, sizeof(name), "/dev/%s", awaited->disk);
	fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void rescan(int i)
{
	char file[128];
	int err;

	snprintf(file, sizeof(file), "/sys/class/scsi_host/%s/scan", paths[i].host);
	err = write_file(file, "- - -");
	if (err)
		wrong("rescan of %s: %s", paths[i].host, errname(err));
	awaited = &paths[i];
	wait_for(disk_found, "a disk does not come back after a rescan");
}

static void delete_disk(int i)
{
	char file[128];
	int err;

	snprintf(file, sizeof(file), "/sys/block/%s/device/delete", paths[i].disk);
	if (live.in[i] && !strcmp(live.dev[i], paths[i].dev))
		live.dead[i] = true;
	if (inactive.in[i] && !strcmp(inactive.dev[i], paths[i].dev))
		inactive.dead[i] = true;
	io_tolerate(io_tolerant || (!suspended && may_fail(&live)));
	err = write_file(file, "1");
	if (err)
		wrong("delete of %s: %s", paths[i].disk, errname(err));
	paths[i].disk[0] = 0;
}

/* ---- operations ---- */

static long taken, refused;	/* operations that worked, and that were rightly refused */

/* what came, what should come */
static void expect(const char *what, int err, int want)
{
	tell(" = %s; ", errname(err));
	if (err != want)
		wrong("%s: %s, should be %s", what, errname(err), errname(want));
	if (want)
		refused++;
	else
		taken++;
}

/* A message, with the effect it will have on the model: EIO may come during it. */
static void send(const char *text, const struct table *after)
{
	bool eio = !suspended && (may_fail(&live) || may_fail(after));
	int err;

	tell("message %s", text);
	io_tolerate(eio);
	err = dm_message(map, text);
	expect("message", err, suspended ? EBUSY : 0);
	if (!suspended)
		live = *after;
	io_tolerate(!suspended && may_fail(&live));
}

static void op_path(bool fail)
{
	struct table after = live;
	int i = below(nr_paths), k;

	for (k = 0; k < nr_paths && !live.in[i]; k++)
		i = (i + 1) % nr_paths;
	if (!live.in[i])
		return;
	after.failed[i] = fail;
	send(case_print("%s %s", fail ? "fail_path" : "reinstate_path", live.dev[i]), &after);
}

/* All paths at once: with four of them chance alone seldom does it. */
static void op_all_paths(bool fail)
{
	struct table after;
	int i;

	for (i = 0; i < nr_paths; i++) {
		after = live;
		after.failed[i] = fail;
		if (live.in[i])
			send(case_print("%s %s", fail ? "fail_path" : "reinstate_path",
					live.dev[i]), &after);
	}
}

static void op_group(void)
{
	static const char *const verbs[] = { "switch_group", "disable_group", "enable_group" };

	if (live.nr_groups)
		send(case_print("%s %u", verbs[below(3)], 1 + below(live.nr_groups)), &live);
}

/* The time-out is left out: it would end queueing behind the model's back. */
static void op_tunable(void)
{
	const struct tunable *t = &tunables[below(NR_TUNABLES)];
	unsigned int value = t->min + below(percent(50) ? 20 : t->max - t->min + 1);

	if (!strcmp(t->name, "no_path_timeout_secs"))
		return;
	send(percent(80) ? case_print("%s %u", t->name, value) :
	     case_print("%s %s", t->name, t->may_be_auto ? "auto" : "table"), &live);
}

static void op_queue(bool on)
{
	struct table after = live;

	after.queue = on;
	send(on ? "queue_if_no_path" : "fail_if_no_path", &after);
}

static void op_suspend(bool noflush)
{
	int err;

	if (suspended)
		return;
	tell("suspend%s", noflush ? " noflush" : "");
	/* A flush suspend switches queueing off. */
	io_tolerate(may_fail(&live) || (!noflush && !usable(&live)));
	err = dm_plain(DM_DEV_SUSPEND, map, DM_SUSPEND_FLAG | (noflush ? DM_NOFLUSH_FLAG : 0));
	expect("suspend", err, 0);
	suspended = true;
	io_tolerate(false);
}

static void op_resume(bool noflush)
{
	struct table *after = inactive.there ? &inactive : &live;
	bool flushes = inactive.there && !suspended && !noflush;
	int err;

	tell("resume%s%s", inactive.there ? " new table" : "", noflush ? " noflush" : "");
	io_tolerate(may_fail(after) || (!suspended && may_fail(&live)) ||
		    (flushes && !usable(&live)));
	err = dm_plain(DM_DEV_SUSPEND, map, noflush ? DM_NOFLUSH_FLAG : 0);
	expect("resume", err, 0);
	if (inactive.there)
		live = inactive;
	inactive.there = false;
	suspended = false;
	io_tolerate(may_fail(&live));
}

/* A table of some of the disks that are there, or of all of them. */
static char *make_table_words(struct table *t, bool whole)
{
	static const char *const selectors[] = { "round-robin", "queue-length", "service-time" };
	static const char *const words[] = { "1 %s %u", "1 %s 1", "2 %s 1 %u" };
	int order[MAX_HOSTS + 1] = { 0 }, n = 0, i, k, left;
	char *text = "";

	memset(t, 0, sizeof(*t));
	t->there = true;
	t->queue = whole || percent(75);
	for (i = 0; i < nr_paths; i++) {
		if (!paths[i].disk[0] || (!whole && percent(25)))
			continue;
		t->in[i] = true;
		strcpy(t->dev[i], paths[i].dev);
		k = below(n + 1);
		order[n++] = order[k];
		order[k] = i;
	}
	for (left = n; left; t->nr_groups++) {
		unsigned int s = below(3);
		int size = 1 + below(left);

		text = case_print("%s %s 0 %d %c", text, selectors[s], size, words[s][0]);
		for (; size; size--, left--) {
			text = case_print("%s %s %u", text, t->dev[order[n - left]],
					  s ? 1 : below(9));
			if (s == 2)
				text = case_print("%s %u", text, below(101));
		}
	}
	return case_print("%s 0 %d %d%s", t->queue ? "1 queue_if_no_path" : "0", t->nr_groups,
			  t->nr_groups ? 1 + below(t->nr_groups) : 0, text);
}

static void op_load(bool whole)
{
	struct table t;
	char *words = make_table_words(&t, whole);

	if (!whole && percent(10)) {
		words = case_print("%s surplus", words);
		tell("load %s", words);
		expect("load of a wrong table", dm_load(map, length, type, words), EINVAL);
		return;
	}
	tell("load %s", words);
	expect("load", dm_load(map, length, type, words), 0);
	inactive = t;
}

static void op_clear(void)
{
	tell("clear");
	expect("clear", dm_plain(DM_TABLE_CLEAR, map, 0), 0);
	inactive.there = false;
}

static void op_delete(void)
{
	int i = below(nr_paths);

	if (!paths[i].disk[0])
		return;
	tell("delete %s (%s)", paths[i].disk, paths[i].dev);
	delete_disk(i);
	expect("delete", 0, 0);
}

static void op_rescan(void)
{
	int i = below(nr_paths), k;

	for (k = 0; k < nr_paths && paths[i].disk[0]; k++)
		i = (i + 1) % nr_paths;
	if (paths[i].disk[0])
		return;
	rescan(i);
	tell("rescan %s: %s (%s)", paths[i].host, paths[i].disk, paths[i].dev);
	expect("rescan", 0, 0);
}

static void op_depth(void)
{
	int i = below(nr_paths);
	char *depth = case_print("%u", percent(70) ? 1 + below(4) : 1 + below(64)), *file;

	if (!paths[i].disk[0])
		return;
	tell("queue_depth of %s %s", paths[i].disk, depth);
	file = case_print("/sys/block/%s/device/queue_depth", paths[i].disk);
	expect("queue_depth", write_file(file, depth), 0);
}

static void op_remove(void)
{
	tell("remove");
	expect("remove of an open map", dm_plain(DM_DEV_REMOVE, map, 0), EBUSY);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "dm_multipath_rr", O_NONBLOCK) ? errno : 0;
}

static void op_unload(void)
{
	tell("unload");
	expect("unload of the module in use", unload(), EWOULDBLOCK);
}

static const struct info_path *find_path(const struct info *info, const char *dev)
{
	unsigned int g, i;

	for (g = 0; g < info->nr_groups; g++)
		for (i = 0; i < info->group[g].nr_paths; i++)
			if (!strcmp(info->group[g].path[i].dev, dev))
				return &info->group[g].path[i];
	return NULL;
}

/* INFO and TABLE are as the model says. A path whose disk is gone may have failed, or not yet. */
static void op_status(void)
{
	static char text[1 << 16];
	static struct info info;
	int err = dm_status(map, 0, text, sizeof(text)), i;
	const char *bad = err ? errname(err) : info_parse(text, &info);

	tell("status");
	expect("INFO", err, 0);
	if (bad) {
		wrong("INFO: %s: %s", bad, text);
		return;
	}
	for (i = 0; i < nr_paths; i++) {
		const struct info_path *p = find_path(&info, live.in[i] ? live.dev[i] : "");

		if (live.in[i] && (!p || (!live.dead[i] && (p->state == 'F') != live.failed[i])))
			wrong("path %s should be %c: %s", live.dev[i], "AF"[live.failed[i]], text);
	}
	err = dm_status(map, DM_STATUS_TABLE_FLAG, text, sizeof(text));
	/* A flush suspend switches queueing off until the resume. */
	if (err || (!suspended && !strncmp(text, "1 queue_if_no_path ", 19) != live.queue))
		wrong("queueing should be %s, %s: %s", live.queue ? "on" : "off", errname(err), text);
}

static void op_ioctl(void)
{
	unsigned char cdb[6] = { 0 }, sense[32];
	struct sg_io_hdr hdr = {
		.interface_id = 'S', .dxfer_direction = SG_DXFER_NONE, .cmd_len = 6, .cmdp = cdb,
		.mx_sb_len = sizeof(sense), .sbp = sense, .timeout = 20000,
	};

	/* Without a path it waits, rightly. */
	if (suspended || !usable(&live))
		return;
	tell("test unit ready");
	if (ioctl(io_fd(), SG_IO, &hdr)) {}
	tell("; ");
}

/* ---- attributes of the map's queue ---- */

static void attribute_end(const struct attribute_write *w)
{
	tell("%s %s = %s; ", strrchr(w->file, '/') + 1, w->value, errname(w->err));
	/* Some do not exist everywhere, some values do not fit the elevator. */
	if (w->err && w->err != EINVAL && w->err != EBUSY && w->err != ENOENT && w->err != EAGAIN)
		wrong("%s %s: %s", w->file, w->value, errname(w->err));
	if (w->err)
		refused++;
	else
		taken++;
}

/*
 * Many attributes freeze the queue: they wait for what is in it. While it has
 * no path to go to, another thread writes, and a path has to come back.
 */
static void op_attribute(void)
{
	struct attribute_write w = any_attribute();
	struct table after = live;
	pthread_t thread;
	int i;

	if (suspended)
		return;
	if (usable(&live) || !live.queue) {
		write_attribute(&w);
		attribute_end(&w);
		return;
	}
	if (pthread_create(&thread, NULL, write_attribute, &w))
		return;
	usleep(below(50000));
	for (i = 0; i < nr_paths; i++)
		if (live.in[i] && !live.dead[i] && live.failed[i])
			break;
	if (i < nr_paths) {
		after.failed[i] = false;
		send(case_print("reinstate_path %s", live.dev[i]), &after);
	} else {
		after.queue = false;
		send("fail_if_no_path", &after);
	}
	pthread_join(thread, NULL);
	attribute_end(&w);
}

static void one_operation(void)
{
	deadline();
	switch (below(39)) {
	case 0 ... 4:
		op_path(true);
		break;
	case 5 ... 8:
		op_path(false);
		break;
	case 9 ... 10:
		op_group();
		break;
	case 11:
	case 28:
		op_queue(false);
		break;
	case 12:
		op_queue(true);
		break;
	case 13:
		op_suspend(false);
		break;
	case 14:
		op_suspend(true);
		break;
	case 15 ... 17:
		op_resume(percent(70));
		op_status();
		break;
	case 18 ... 20:
		op_load(false);
		break;
	case 21:
		op_delete();
		break;
	case 22:
		op_rescan();
		break;
	case 23:
		op_depth();
		break;
	case 24:
		if (percent(50))
			op_remove();
		else
			op_clear();
		break;
	case 25:
		op_unload();
		break;
	case 26:
		op_status();
		break;
	case 27:
		op_ioctl();
		break;
	case 29 ... 30:
		op_all_paths(true);
		break;
	case 31:
		op_all_paths(false);
		break;
	case 36 ... 38:
		op_tunable();
		break;
	default:
		op_attribute();
		break;
	}
	no_deadline();
	/* So that I/O meets every state; nothing depends on it. */
	if (percent(60))
		usleep(below(20000));
}

/* ---- the known state after each sequence ---- */

static bool idle(const char *disk)
{
	unsigned int reads = 1, writes = 1;
	char text[64], file[64];

	snprintf(file, sizeof(file), "/sys/block/%s/inflight", disk);
	read_file(file, text, sizeof(text));
	return sscanf(text, "%u %u", &reads, &writes) == 2 && !reads && !writes;
}

static bool all_idle(void)
{
	int i;

	for (i = 0; i < nr_paths; i++)
		if (!idle(paths[i].disk))
			return false;
	return idle(node + 5);
}

static bool whole(void)
{
	int i;

	for (i = 0; i < nr_paths; i++)
		if (!live.in[i] || live.dead[i])
			return false;
	return true;
}

static void bring_back(void)
{
	struct table after;
	int i;

	tell("AT THE END: ");
	for (i = 0; i < nr_paths; i++)
		if (!paths[i].disk[0])
			rescan(i);
	deadline();
	if (!whole() || percent(50)) {
		op_load(true);
	} else if (inactive.there) {
		op_clear();
	}
	op_resume(true);
	for (i = 0; i < nr_paths; i++) {
		after = live;
		after.failed[i] = false;
		send(case_print("reinstate_path %s", live.dev[i]), &after);
	}
	op_queue(true);
	send(case_print("switch_group %u", 1 + below(live.nr_groups)), &live);
	for (i = 0; i < nr_paths; i++)
		write_file(case_print("/sys/block/%s/device/queue_depth", paths[i].disk), "32");
	attributes_restore();
	no_deadline();
}

static bool nothing_counted(void)
{
	return counters_are_zero(map);
}

/* Everything moves, then everything stands still; all data of one worker is read. */
static void settle(void)
{
	io_mark();
	wait_for(io_all_moved, "I/O does not go on though all paths are there");
	io_pause(true);
	wait_for(io_all_paused, "an I/O does not end though all paths are there");
	deadline();
	io_verify(below(IO_WORKERS));
	no_deadline();
	wait_for(all_idle, "in-flight counters (sysfs) are not 0 though nothing runs");
	/* If it does not come true, the check says which path it is. */
	comes_true(nothing_counted);
	counters_check(map);
}

/* ---- the map's own life ---- */

static int load_module(void)
{
	const char *file = getenv("MPRR_KO");
	int ko = open(file ? file : "", O_RDONLY | O_CLOEXEC);
	int err = ko < 0 ? errno : syscall(SYS_finit_module, ko, "", 0) ? errno : 0;

	if (ko >= 0)
		close(ko);
	return err;
}

static int map_up(void)
{
	int err = dm_plain(DM_DEV_CREATE, map, 0);

	if (!err)
		err = dm_node(map, node, sizeof(node));
	if (err)
		return err;
	suspended = false;
	memset(&live, 0, sizeof(live));
	op_load(true);
	op_resume(false);
	attributes_read(node + 5);
	/* udev, or devtmpfs in a moment */
	for (err = 0; access(node, R_OK | W_OK) && err < 1000; err++)
		usleep(10000);
	return 0;
}

static bool map_gone(void)
{
	int err = dm_plain(DM_DEV_REMOVE, map, 0);

	return !err || err == ENXIO;
}

static bool module_gone(void)
{
	int err = unload();

	return !err || err == ENOENT;
}

static void map_down(void)
{
	deadline();
	io_stop();
	no_deadline();
	wait_for(map_gone, "the map is not removed");	/* udev may have it open */
}

/* The map and the module go while all is quiet, and come again. */
static void renew(void)
{
	int err;

	tell("AGAIN: ");
	map_down();
	wait_for(module_gone, "the module does not unload");
	err = load_module();
	if (!err)
		err = map_up();
	if (!err)
		err = io_start(node, false);
	if (err) {
		wrong("the map does not come again: %s", errname(err));
		exit(1);
	}
}

static void sequence(void)
{
	int n;

	story[0] = 0;
	for (n = 15 + below(10); n > 0; n--)
		one_operation();
	bring_back();
	settle();
	if (percent(10))
		renew();
	io_pause(false);
}

static bool find_paths(int nr_hosts, char **hosts)
{
	char file[64], size[32];
	int i;

	nr_paths = nr_hosts < MAX_HOSTS ? nr_hosts : MAX_HOSTS;
	for (i = 0; i < nr_paths; i++) {
		snprintf(paths[i].host, sizeof(paths[i].host), "%s", hosts[i]);
		if (!find_disk(&paths[i]))
			return false;
	}
	snprintf(file, sizeof(file), "/sys/block/%s/size", paths[0].disk);
	read_file(file, size, sizeof(size));
	length = strtoull(size, NULL, 10);
	return length >= IO_SECTORS;
}

int do_operations(long count, const char *map_name, const char *type_name, int nr_hosts,
		  char **hosts)
{
	const char *slow = getenv("MPRR_SLOW");
	unsigned long ios = 0, eio = 0;
	long k, done = 0;
	pthread_t dog;
	double t;
	int err;

	map = map_name;
	type = type_name;
	patience = 6 * (slow ? strtod(slow, NULL) : 1);
	case_begin(-1);
	if (!find_paths(nr_hosts, hosts)) {
		say("not every host has a disk");
		return 2;
	}
	err = map_up();
	if (!err)
		err = io_start(node, true);
	if (!err)
		err = pthread_create(&dog, NULL, watchdog, NULL);
	if (err || failures) {
		say("no map: %s", errname(err));
		return 2;
	}
	t = now();
	for (k = verbose ? only_case : 0; k < count || k == only_case; k++) {
		case_begin(k);
		sequence();
		done++;
		if (verbose)
			break;
		progress("sequences", done, count);
	}
	story[0] = 0;
	map_down();
	io_totals(&ios, &eio);
	say("%.2f sequences a second, %lu I/Os of which %lu failed and might, seed %llu",
	    done / (now() - t), ios, eio, (unsigned long long)seed);
	say("total %ld sequences: %ld accepted, %ld refused, %d failed", done, taken, refused,
	    failures);
	return !!failures;
}
