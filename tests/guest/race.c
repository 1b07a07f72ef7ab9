// SPDX-License-Identifier: GPL-2.0
/*
 * race.c - the spinning sides of the race tests (compiled in the guest).
 *
 * Each verb lets two or more threads run against each other a counted number of
 * times and prints one line: "ok ..." with what was done, or what went wrong.
 * I/O is verified exactly: each I/O thread owns a region of the map, remembers
 * what it wrote last to each block, and compares every read with it.  Nothing
 * may take longer than the limit: then the line is "stuck ..." and the program
 * ends at once, with the stuck threads still in it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "dm.h"

#define BLOCK		4096
#define REGION		512	/* blocks an I/O thread owns: 2 MiB */
#define MAX_BLOCKS	16	/* of one I/O */
#define MAX_THREADS	16
#define MAX_WORDS	32

static long limit_ms = 60000;
static sigset_t end_signals;
static atomic_int stop;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static unsigned int rnd(unsigned int *seed, unsigned int n)
{
	return (unsigned int)rand_r(seed) % n;
}

/* ---- who waits for how long: looked at by the watchdog ---- */

struct task {
	pthread_t thread;
	const char *what;
	atomic_long since;	/* 0: not in the kernel now */
	long longest;
	unsigned long done;
};

static struct task *tasks[2 * MAX_THREADS];
static int nr_tasks;

static void begin(struct task *t, const char *what)
{
	t->what = what;
	atomic_store(&t->since, now_ms());
}

static void end(struct task *t)
{
	long ms = now_ms() - atomic_load(&t->since);

	if (ms > t->longest)
		t->longest = ms;
	t->done++;
	atomic_store(&t->since, 0);
}

static void finish(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	/* No exit handlers, no join: a thread may be stuck in the kernel. */
	_exit(strncmp(format, "ok", 2) ? 1 : 0);
}

static void *watchdog(void *unused)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	long since, now;
	int i;

	for (;;) {
		nanosleep(&pause, NULL);
		now = now_ms();
		for (i = 0; i < nr_tasks; i++) {
			since = atomic_load(&tasks[i]->since);
			if (since && now - since > limit_ms)
				finish("stuck: %s for %ld ms", tasks[i]->what, now - since);
		}
	}
	return unused;
}

static void start(struct task *t, void *(*f)(void *))
{
	tasks[nr_tasks++] = t;
	if (pthread_create(&t->thread, NULL, f, t)) {
		perror("pthread_create");
		exit(2);
	}
}

/* ---- exactly verified I/O ---- */

struct io {
	struct task task;
	int fd;
	unsigned int seed;
	uint64_t first;			/* block */
	uint32_t gen[REGION];		/* what each block holds; 0: unknown */
	uint64_t *buf;
	unsigned long errors, wrong;
	int error;
};

static struct io ios[MAX_THREADS];
static int nr_ios;

static uint64_t word(uint64_t block, uint32_t gen, unsigned int i)
{
	return (block << 40) ^ ((uint64_t)gen << 12) ^ i;
}

static void one_io(struct io *io)
{
	unsigned int n = 1 + rnd(&io->seed, rnd(&io->seed, 4) ? 2 : MAX_BLOCKS);
	unsigned int at = rnd(&io->seed, REGION - n + 1), b, i;
	int writes = !rnd(&io->seed, 3);
	off_t off = (io->first + at) * BLOCK;
	uint64_t *p = io->buf;
	ssize_t done;

	for (b = at; writes && b < at + n; b++)
		for (i = 0; i < BLOCK / 8; i++)
			*p++ = word(io->first + b, io->gen[b] + 1, i);
	begin(&io->task, writes ? "a write" : "a read");
	if (writes)
		done = pwrite(io->fd, io->buf, n * BLOCK, off);
	else
		done = pread(io->fd, io->buf, n * BLOCK, off);
	end(&io->task);
	if (done != (ssize_t)n * BLOCK) {
		io->errors++;
		io->error = done < 0 ? errno : EIO;
		for (b = at; writes && b < at + n; b++)
			io->gen[b] = 0;
		return;
	}
	for (b = at; b < at + n; b++) {
		if (writes) {
			io->gen[b]++;
			continue;
		}
		p = io->buf + (b - at) * BLOCK / 8;
		for (i = 0; io->gen[b] && i < BLOCK / 8; i++)
			if (p[i] != word(io->first + b, io->gen[b], i)) {
				io->wrong++;
				break;
			}
	}
}

static void *io_thread(void *data)
{
	struct io *io = data;

	while (!atomic_load(&stop))
		one_io(io);
	return NULL;
}

static void start_io(const char *dev, int n)
{
	int i;

	nr_ios = n;
	for (i = 0; i < n; i++) {
		struct io *io = &ios[i];

		io->fd = open(dev, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (io->fd < 0 || posix_memalign((void **)&io->buf, BLOCK, MAX_BLOCKS * BLOCK)) {
			perror(dev);
			exit(2);
		}
		io->first = i * REGION;
		io->seed = 4711 + i;
		start(&io->task, io_thread);
	}
}

/* ends the I/O and the program, with what was seen */
static void end_io(const char *what, unsigned long n)
{
	unsigned long done = 0, errors = 0, wrong = 0;
	long longest = 0;
	int i, error = 0;

	atomic_store(&stop, 1);
	for (i = 0; i < nr_ios; i++) {
		pthread_join(ios[i].task.thread, NULL);
		done += ios[i].task.done;
		errors += ios[i].errors;
		wrong += ios[i].wrong;
		if (ios[i].task.longest > longest)
			longest = ios[i].task.longest;
		if (ios[i].error)
			error = ios[i].error;
	}
	if (errors || wrong)
		finish("bad: %lu I/Os failed (%s), %lu wrong blocks, of %lu", errors,
		       errname(error), wrong, done);
	if (!done)
		finish("bad: no I/O was done");
	finish("ok %s=%lu ios=%lu longest=%ldms", what, n, done, longest);
}

static void must(struct task *t, const char *what, int err)
{
	end(t);
	if (err)
		finish("bad: %s: %s", what, errname(err));
}

/* ---- reload against completion ---- */

static int do_reload(const char *map, const char *dev, long count, int nr, char **tables)
{
	struct task t = { 0 };
	int fd = dm_open();
	long i;

	tasks[nr_tasks++] = &t;
	start_io(dev, 3);
	for (i = 0; i < count; i++) {
		begin(&t, "load");
		must(&t, "load", dm_load(fd, map, tables[i % nr]));
		begin(&t, "suspend");
		must(&t, "suspend", dm_suspend(fd, map, i % 4));
		begin(&t, "resume");
		must(&t, "resume", dm_resume(fd, map));
	}
	end_io("reloads", count);
	return 0;
}

/* ---- messages, in their order, against I/O ---- */

static int do_storm(const char *map, const char *dev, long count, int nr, char **messages)
{
	struct task t = { 0 };
	int fd = dm_open();
	long i;

	tasks[nr_tasks++] = &t;
	start_io(dev, 2);
	for (i = 0; i < count; i++) {
		begin(&t, messages[i % nr]);
		must(&t, messages[i % nr], dm_message(fd, map, messages[i % nr]));
	}
	end_io("messages", count);
	return 0;
}

/* ---- messages against creation and removal ---- */

struct sender {
	struct task task;
	const char *map;
	char **messages;
	int nr;
	atomic_ulong sent, none;
	int bad;
};

/* Messages to one map, before the sender goes easy on the log and the processor. */
#define BURST	40


static void *sender_thread(void *data)
{
	struct sender *s = data;
	unsigned int seed = s->nr, burst = 0;
	int fd = dm_open(), err;

	while (!atomic_load(&stop)) {
		begin(&s->task, "a message");
		err = dm_message(fd, s->map, s->messages[rnd(&seed, s->nr)]);
		end(&s->task);
		/* EINVAL is newer cores' word for a map without a table; the log tells. */
		if (!err)
			s->sent++;
		else if (err == ENXIO || err == DM_NO_TABLE || err == EINVAL || err == EBUSY)
			s->none++;
		else
			s->bad = err;
		if (err == ENXIO)
			burst = 0;
		if (!err && ++burst > BURST)
			usleep(1000);
		else if (err)
			usleep(50);
	}
	close(fd);
	return NULL;
}

static void remove_map(struct task *t, int fd, const char *map)
{
	long from = now_ms();
	int err;

	/* A message that runs holds the map: the core says busy. */
	begin(t, "remove");
	while ((err = dm_remove(fd, map)) == EBUSY && now_ms() - from < limit_ms)
		sched_yield();
	must(t, "remove", err);
}

static void create_map(struct task *t, int fd, const char *map, const char *table)
{
	begin(t, "create");
	must(t, "create", dm_create(fd, map, NULL));
	begin(t, "load");
	must(t, "load", dm_load(fd, map, table));
	begin(t, "resume");
	must(t, "resume", dm_resume(fd, map));
}

static int do_remove(const char *map, long count, const char *table, int nr, char **messages)
{
	struct sender s[2] = { 0 };
	struct task t = { 0 };
	int fd = dm_open(), n;
	unsigned long enough;
	long i, from;

	tasks[nr_tasks++] = &t;
	for (n = 0; n < 2; n++) {
		s[n].map = map;
		s[n].messages = messages;
		s[n].nr = nr - n;
		start(&s[n].task, sender_thread);
	}
	for (i = 0; i < count; i++) {
		create_map(&t, fd, map, table);
		/* In the midst of messages, not before the first one. */
		enough = s[0].sent + s[1].sent + i % 5;
		from = now_ms();
		while (s[0].sent + s[1].sent < enough && now_ms() - from < limit_ms)
			sched_yield();
		remove_map(&t, fd, map);
	}
	atomic_store(&stop, 1);
	for (n = 0; n < 2; n++)
		pthread_join(s[n].task.thread, NULL);
	if (s[0].bad || s[1].bad)
		finish("bad: a message: %s", errname(s[0].bad ?: s[1].bad));
	if (!(s[0].sent + s[1].sent) || !(s[0].none + s[1].none))
		finish("bad: messages and removals did not meet");
	finish("ok maps=%ld messages=%lu without_map=%lu", count, s[0].sent + s[1].sent,
	       s[0].none + s[1].none);
	return 0;
}

/* ---- unload with events of failed paths pending ---- */

static int do_unload(const char *ko, const char *params, const char *table, long count, int nr,
		     char **messages)
{
	struct sender s[2] = { 0 };
	struct task t = { 0 };
	int fd = dm_open(), file = open(ko, O_RDONLY | O_CLOEXEC), n, err;
	unsigned long sent = 0;
	char name[2][16] = { "mprrrace0", "mprrrace1" };
	long i, from;

	tasks[nr_tasks++] = &t;
	for (i = 0; i < count; i++) {
		begin(&t, "loading the module");
		err = syscall(SYS_finit_module, file, params, 0) ? errno : 0;
		must(&t, "loading the module", err);
		atomic_store(&stop, 0);
		nr_tasks = 1;
		for (n = 0; n < 2; n++) {
			create_map(&t, fd, name[n], table);
			memset(&s[n], 0, sizeof(s[n]));
			s[n].map = name[n];
			s[n].messages = messages;
			s[n].nr = nr;
		}
		for (n = 0; n < 2; n++)
			start(&s[n].task, sender_thread);
		/* From the first failure on, at another moment each time. */
		from = now_ms();
		while (!s[0].sent && !s[1].sent && now_ms() - from < limit_ms)
			sched_yield();
		for (n = 0; n < 2; n++)
			remove_map(&t, fd, name[n]);
		from = now_ms();
		begin(&t, "unloading the module");
		while ((err = syscall(SYS_delete_module, "dm_multipath_rr", O_NONBLOCK) ?
			errno : 0) && now_ms() - from < limit_ms)
			sched_yield();
		must(&t, "unloading the module", err);
		atomic_store(&stop, 1);
		for (n = 0; n < 2; n++) {
			pthread_join(s[n].task.thread, NULL);
			sent += s[n].sent;
			if (s[n].bad)
				finish("bad: a message: %s", errname(s[n].bad));
		}
	}
	finish("ok unloads=%ld messages=%lu", count, sent);
	return 0;
}

/* ---- suspend against the no-path time-out ---- */

static struct {
	const char *table;
	long count, secs;
	int nr;
	char **paths;
} timer_args;

struct waiter {
	struct task task, reader;
	char map[16];
	unsigned int seed;
	int fd;
	atomic_int go, result;
	unsigned long flush, noflush, before, after;
};

/* reads when told to; the result is the errno */
static void *reader_thread(void *data)
{
	struct waiter *w = (void *)((char *)data - offsetof(struct waiter, reader));
	void *buf;

	if (posix_memalign(&buf, BLOCK, BLOCK))
		exit(2);
	while (!atomic_load(&stop)) {
		if (!atomic_exchange(&w->go, 0)) {
			usleep(1000);
			continue;
		}
		begin(&w->reader, "a read without a path");
		atomic_store(&w->result, pread(w->fd, buf, BLOCK, 0) < 0 ? errno : 0);
		end(&w->reader);
	}
	return NULL;
}

static int queueing(int fd, const char *map)
{
	char text[256];

	if (dm_table_of(fd, map, text, sizeof(text)))
		finish("bad: no table status of %s", map);
	return strstr(text, "queue_if_no_path") != NULL;
}

static void message(struct waiter *w, int fd, const char *verb, const char *arg)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%s%s", verb, arg ? " " : "", arg ?: "");
	begin(&w->task, verb);
	must(&w->task, text, dm_message(fd, w->map, text));
}

static void await(struct waiter *w, const char *what, int (*done)(struct waiter *w, int fd), int fd)
{
	begin(&w->task, what);
	while (!done(w, fd))
		usleep(2000);
	end(&w->task);
}

static int has_result(struct waiter *w, int fd)
{
	return atomic_load(&w->result) != -1 && fd >= 0;
}

static int queues_no_more(struct waiter *w, int fd)
{
	return !queueing(fd, w->map);
}

static void one_time_out(struct waiter *w, int fd, long i)
{
	int noflush = rnd(&w->seed, 2), p;
	long due;

	message(w, fd, "queue_if_no_path", NULL);
	for (p = 0; p < timer_args.nr; p++)
		message(w, fd, "reinstate_path", timer_args.paths[p]);
	atomic_store(&w->result, -1);
	atomic_store(&w->go, 1);
	await(w, "a read with a path", has_result, fd);
	if (atomic_load(&w->result))
		finish("bad: round %ld, a read with a path: %s", i, errname(w->result));

	for (p = 0; p < timer_args.nr; p++)
		message(w, fd, "fail_path", timer_args.paths[p]);
	due = now_ms() + timer_args.secs * 1000 - 20 + rnd(&w->seed, 80);
	atomic_store(&w->result, -1);
	atomic_store(&w->go, 1);
	while (now_ms() < due)
		usleep(500);
	if (queueing(fd, w->map))
		w->before++;
	else
		w->after++;
	begin(&w->task, noflush ? "noflush suspend" : "flush suspend");
	must(&w->task, "suspend", dm_suspend(fd, w->map, noflush));
	if (noflush)
		w->noflush++;
	else
		w->flush++;
	usleep(rnd(&w->seed, 60000));
	begin(&w->task, "resume");
	must(&w->task, "resume", dm_resume(fd, w->map));
	/* Whoever was first: the read fails, and queueing ends, now or once more in time. */
	await(w, "a read that the time-out ends", has_result, fd);
	if (atomic_load(&w->result) != EIO)
		finish("bad: round %ld, a read without a path: %s", i, errname(w->result));
	await(w, "queueing that the time-out ends", queues_no_more, fd);
}

static void *waiter_thread(void *data)
{
	struct waiter *w = data;
	int fd = dm_open();
	long i;

	for (i = 0; i < timer_args.count; i++)
		one_time_out(w, fd, i);
	close(fd);
	return NULL;
}

static int do_timer(long maps, long secs, const char *table, long count, int nr, char **paths)
{
	static struct waiter w[MAX_THREADS];
	unsigned long before = 0, after = 0, flush = 0, noflush = 0;
	struct task t = { 0 };
	unsigned long long dev;
	int fd = dm_open(), i;
	char node[64];

	timer_args.table = table;
	timer_args.count = count;
	timer_args.secs = secs;
	timer_args.nr = nr;
	timer_args.paths = paths;
	if (maps > MAX_THREADS)
		maps = MAX_THREADS;
	for (i = 0; i < maps; i++) {
		snprintf(w[i].map, sizeof(w[i].map), "mprrrace%d", i);
		create_map(&t, fd, w[i].map, table);
		if (dm_flags(fd, DM_DEV_STATUS, w[i].map, 0, &dev))
			finish("bad: no status of %s", w[i].map);
		snprintf(node, sizeof(node), "/dev/dm-%u", minor(dev));
		w[i].fd = open(node, O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (w[i].fd < 0)
			finish("bad: %s: %s", node, errname(errno));
		w[i].seed = 4711 + i;
	}
	for (i = 0; i < maps; i++) {
		start(&w[i].reader, reader_thread);
		start(&w[i].task, waiter_thread);
	}
	for (i = 0; i < maps; i++) {
		pthread_join(w[i].task.thread, NULL);
		before += w[i].before;
		after += w[i].after;
		flush += w[i].flush;
		noflush += w[i].noflush;
	}
	atomic_store(&stop, 1);
	for (i = 0; i < maps; i++) {
		pthread_join(w[i].reader.thread, NULL);
		close(w[i].fd);
		remove_map(&t, fd, w[i].map);
	}
	finish("ok rounds=%ld flush=%lu noflush=%lu suspend_first=%lu timer_first=%lu",
	       count * maps, flush, noflush, before, after);
	return 0;
}

/* ---- I/O until a signal comes ---- */

static int do_io(const char *dev, int threads)
{
	int sig;

	start_io(dev, threads);
	sigwait(&end_signals, &sig);
	end_io("threads", threads);
	return 0;
}

static int usage(FILE *to)
{
	fputs("usage: race [-l SECONDS] VERB ...      (-l: nothing may take longer, default 60)\n"
	      "  io DEV THREADS                   verified I/O until SIGTERM\n"
	      "  reload MAP DEV COUNT TABLE...    the tables in turn, under verified I/O\n"
	      "  storm MAP DEV COUNT MESSAGE...   the messages in turn, under verified I/O\n"
	      "  remove MAP COUNT TABLE MESSAGE... a map comes and goes while messages are sent\n"
	      "  timer MAPS SECONDS TABLE COUNT PATH...  suspend just when the no-path time-out fires\n"
	      "  unload KO PARAMS TABLE COUNT MESSAGE... maps and module go while messages are sent\n",
	      to);
	return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	pthread_t dog;
	char *verb;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return usage(stdout);
	if (argc > 2 && !strcmp(argv[1], "-l")) {
		limit_ms = atol(argv[2]) * 1000;
		argc -= 2;
		argv += 2;
	}
	if (argc < 4 || limit_ms < 1)
		return usage(stderr);
	verb = argv[1];
	/* Before the first thread: nobody but do_io() shall get them. */
	sigemptyset(&end_signals);
	sigaddset(&end_signals, SIGTERM);
	sigaddset(&end_signals, SIGINT);
	if (!strcmp(verb, "io"))
		pthread_sigmask(SIG_BLOCK, &end_signals, NULL);
	if (pthread_create(&dog, NULL, watchdog, NULL))
		return 2;
	if (!strcmp(verb, "io") && argc == 4)
		return do_io(argv[2], atoi(argv[3]));
	if (!strcmp(verb, "reload") && argc > 5)
		return do_reload(argv[2], argv[3], atol(argv[4]), argc - 5, argv + 5);
	if (!strcmp(verb, "storm") && argc > 5)
		return do_storm(argv[2], argv[3], atol(argv[4]), argc - 5, argv + 5);
	if (!strcmp(verb, "remove") && argc > 6)
		return do_remove(argv[2], atol(argv[3]), argv[4], argc - 5, argv + 5);
	if (!strcmp(verb, "timer") && argc > 6)
		return do_timer(atol(argv[2]), atol(argv[3]), argv[4], atol(argv[5]), argc - 6,
				argv + 6);
	if (!strcmp(verb, "unload") && argc > 6)
		return do_unload(argv[2], argv[3], argv[4], atol(argv[5]), argc - 6, argv + 6);
	return usage(stderr);
}
