// SPDX-License-Identifier: GPL-2.0
/*
 * differential-io.c - verified I/O, ioctls and what reached the paths.
 */
#define _GNU_SOURCE
#include <linux/fs.h>
#include <linux/pr.h>
#include <scsi/sg.h>
#include <sys/mman.h>
#include <time.h>

#include "differential.h"

#define SECTORS		131072		/* of the verified store, at most */

/* ---- I/O, verified: each written sector says which write it is of ---- */

static uint32_t model[SECTORS];		/* 0: unknown */
static uint32_t writes;
static int verified;
static pthread_mutex_t model_lock = PTHREAD_MUTEX_INITIALIZER;

/* a scenario begins: nothing is known of what is stored */
void verify(int on)
{
	verified = on;
	writes = 0;
	memset(model, 0, sizeof(model));
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25	/* Linux 6.1, glibc 2.37 */
#endif
#define HUGE_PAGE ((size_t)2 << 20)

/*
 * Where big I/O is split depends on how its pages lie in memory: in both runs in
 * huge ones.
 */
static void *io_buffer(size_t bytes)
{
	size_t align = bytes < HUGE_PAGE ? 4096 : HUGE_PAGE;
	size_t size = (bytes + 4096 + align - 1) / align * align;
	void *buf;

	if (posix_memalign(&buf, align, size))
		exit(2);
	if (align == HUGE_PAGE) {
		memset(buf, 0, size);
		if (madvise(buf, size, MADV_COLLAPSE))
			printf("# no huge pages (%s): big I/O may be split otherwise\n",
			       strerror(errno));
	}
	return buf;
}

/* one I/O; the result is a constant text */
const char *do_io(const char *op, uint64_t off, uint64_t bytes)
{
	int rd = !strcmp(op, "read") || !strcmp(op, "bread"), fd, err = 0, flags = rd ? O_RDONLY : O_RDWR;
	uint64_t range[2] = { off, bytes };
	char dev[64];
	uint64_t *buf;
	ssize_t n = 0;
	uint32_t id;

	if (!strcmp(op, "read") || !strcmp(op, "write") || !strcmp(op, "fua"))
		flags |= O_DIRECT;
	if (!strcmp(op, "fua"))
		flags |= O_DSYNC;
	if (!strcmp(op, "tur") || !strcmp(op, "ioctl"))
		flags = O_RDONLY | O_NONBLOCK;
	snprintf(dev, sizeof(dev), "/dev/dm-%u", map_minor);
	fd = open(dev, flags | O_CLOEXEC);
	if (fd < 0)
		return errno == ENXIO ? "open: ENXIO" : "open fails";
	buf = io_buffer(bytes);
	if (rd) {
		n = pread(fd, buf, bytes, off);
	} else if (!strcmp(op, "write") || !strcmp(op, "bwrite") || !strcmp(op, "fua")) {
		pthread_mutex_lock(&model_lock);
		id = ++writes;
		for (uint64_t s = off >> 9; s < (off + bytes) >> 9 && s < SECTORS; s++)
			model[s] = 0;	/* until it is known to be written */
		pthread_mutex_unlock(&model_lock);
		for (uint64_t i = 0; i < bytes / 8; i++)
			buf[i] = (uint64_t)id << 32 | ((off >> 9) + i / 64);
		n = pwrite(fd, buf, bytes, off);
		if (n >= 0 && !strcmp(op, "bwrite") && fsync(fd))
			err = errno;
		if (n == (ssize_t)bytes && !err) {
			pthread_mutex_lock(&model_lock);
			for (uint64_t s = off >> 9; s < (off + bytes) >> 9 && s < SECTORS; s++)
				model[s] = id;
			pthread_mutex_unlock(&model_lock);
		}
	} else if (!strcmp(op, "flush")) {
		err = fsync(fd) ? errno : 0;
	} else if (!strcmp(op, "tur")) {
		unsigned char cdb[6] = { 0 }, sense[32];
		struct sg_io_hdr hdr = {
			.interface_id = 'S', .dxfer_direction = SG_DXFER_NONE, .cmd_len = 6,
			.cmdp = cdb, .mx_sb_len = sizeof(sense), .sbp = sense, .timeout = 60000,
		};

		err = ioctl(fd, SG_IO, &hdr) ? errno : 0;
		if (!err && (hdr.status || hdr.host_status))
			err = EREMOTEIO;
	} else if (!strcmp(op, "ioctl")) {
		err = ioctl(fd, off, 0) < 0 ? errno : 0;
	} else if (!strcmp(op, "register")) {
		struct pr_registration reg = { .old_key = off, .new_key = bytes };

		err = ioctl(fd, IOC_PR_REGISTER, &reg) ? errno : 0;
	} else if (!strcmp(op, "reserve")) {
		struct pr_reservation res = { .key = off, .type = bytes };

		err = ioctl(fd, IOC_PR_RESERVE, &res) ? errno : 0;
	} else if (!strcmp(op, "release")) {
		struct pr_reservation res = { .key = off, .type = bytes };

		err = ioctl(fd, IOC_PR_RELEASE, &res) ? errno : 0;
	} else if (!strcmp(op, "clear")) {
		struct pr_clear clear = { .key = off };

		err = ioctl(fd, IOC_PR_CLEAR, &clear) ? errno : 0;
	} else {
		unsigned long nr = !strcmp(op, "discard") ? BLKDISCARD : !strcmp(op, "zeroes") ? BLKZEROOUT :
			!strcmp(op, "secure") ? BLKSECDISCARD : 0;

		if (!nr) {
			printf("Bail out! unknown I/O %s\n", op);
			exit(2);
		}
		pthread_mutex_lock(&model_lock);
		for (uint64_t s = off >> 9; s < (off + bytes) >> 9 && s < SECTORS; s++)
			model[s] = 0;
		pthread_mutex_unlock(&model_lock);
		err = ioctl(fd, nr, range) ? errno : 0;
	}
	if (n < 0)
		err = errno;
	if (!err && rd && n == (ssize_t)bytes && verified)
		for (uint64_t i = 0; i < bytes / 8; i++) {
			uint64_t s = (off >> 9) + i / 64;

			if (s < SECTORS && model[s] && buf[i] != ((uint64_t)model[s] << 32 | s)) {
				printf("not ok - %s: data at sector %llu: written by %u, read %#llx\n", step,
				       (unsigned long long)s, model[s], (unsigned long long)buf[i]);
				failed++;
				free(buf);
				close(fd);
				return "WRONG DATA";
			}
		}
	close(fd);
	free(buf);
	if (!err && (rd || !strcmp(op, "write")) && n != (ssize_t)bytes)
		return "short";
	return errname(err);
}

struct waiter waiters[NR_WAITERS];

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->result = do_io(w->op, w->off, w->bytes);
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

void waiter_start(struct waiter *w)
{
	w->done = 0;
	w->tid = 0;
	w->started = 1;
	if (pthread_create(&w->thread, NULL, waiter_run, w))
		exit(2);
}

uint64_t ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

void nap(unsigned int msecs)
{
	struct timespec t = { msecs / 1000, msecs % 1000 * 1000000l };

	nanosleep(&t, NULL);
}

/* Until the thread sleeps in the kernel, or has ended. */
void wait_asleep(struct waiter *w)
{
	uint64_t end = ms() + 10000ull * slow;
	int asleep = 0;

	while (!w->done && asleep < 3 && ms() < end) {
		char path[64], text[512] = "", *state;

		if (w->tid) {
			snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
			read_file(path, text, sizeof(text));
		}
		state = strrchr(text, ')');
		asleep = state && (state[2] == 'D' || state[2] == 'S') ? asleep + 1 : 0;
		nap(5);
	}
}

int wait_done(struct waiter *w, unsigned int secs)
{
	uint64_t end = ms() + secs * 1000ull * slow;

	while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE)) {
		if (ms() > end)
			return 0;
		nap(2);
	}
	if (w->started) {
		pthread_join(w->thread, NULL);
		w->started = 0;
	}
	return 1;
}

/*
 * Requests that the queue of disk NAME has given out. What sysfs calls in flight ends earlier: before
 * the target has heard of the completion.
 */
static unsigned int in_flight(const char *name)
{
	static const char *const files[] = { "tags", "sched_tags" };
	unsigned int sum = 0;

	for (int i = 0; i < 2; i++) {
		char path[160], text[4096], *busy;
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/sys/kernel/debug/block/%s/hctx0/%s", name, files[i]);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		text[n < 0 ? 0 : n] = 0;
		if (fd >= 0)
			close(fd);
		busy = strstr(text, "\nbusy=");
		sum += busy ? atoi(busy + 6) : 0;
	}
	return sum;
}

unsigned int map_in_flight(void)
{
	char name[32];

	snprintf(name, sizeof(name), "dm-%u", map_minor);
	return in_flight(name);
}

/* ---- paths ---- */

const char *const path_names[NR_PATHS] = { "A", "B", "C", "D" };

/* the disk (sda) of path @A; its kernel name is the value of Aname */
const char *disk(const char *path)
{
	char name[32];
	const char *d;

	snprintf(name, sizeof(name), "%sname", path);
	d = value_of(name);
	if (!d) {
		printf("Bail out! no path %s\n", path);
		exit(2);
	}
	return d;
}

static unsigned long long requests_before[NR_PATHS][5];

static void requests(int path, unsigned long long *out)
{
	unsigned long long v[17] = { 0 };
	char file[128], text[512];

	snprintf(file, sizeof(file), "/sys/block/%s/stat", disk(path_names[path]));
	read_file(file, text, sizeof(text));
	sscanf(text, "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu",
	       v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9, v + 10, v + 11, v + 12,
	       v + 13, v + 14, v + 15);
	out[0] = v[0];
	out[1] = v[4];
	out[2] = v[11];
	out[3] = v[15];
	out[4] = v[2] + v[6] + v[13];
}

/* what has reached each path since the last call: reads, writes, discards, flushes, sectors */
void see_requests(int quiet)
{
	char out[512] = "";

	for (int i = 0; i < NR_PATHS; i++) {
		uint64_t end = ms() + 10000ull * slow;
		unsigned long long n[5];

		/* a request is counted a little after its data have come */
		while (in_flight(disk(path_names[i])) && ms() < end)
			nap(1);
		requests(i, n);
		snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s:%llur,%lluw,%llud,%lluf,%llus",
			 i ? " " : "", path_names[i], n[0] - requests_before[i][0],
			 n[1] - requests_before[i][1], n[2] - requests_before[i][2],
			 n[3] - requests_before[i][3], n[4] - requests_before[i][4]);
		memcpy(requests_before[i], n, sizeof(n));
	}
	if (!quiet)
		saw("requests", "%s", out);
}

void see_limits(void)
{
	static const char *const attributes[] = {
		"logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size",
		"max_hw_sectors_kb", "max_sectors_kb", "max_segments", "max_segment_size",
		"max_integrity_segments", "discard_granularity", "discard_max_bytes",
		"write_zeroes_max_bytes", "write_same_max_bytes", "rotational", "write_cache", "fua",
		"stable_writes", "dax", "zoned", "virt_boundary_mask", "dma_alignment", "iostats",
		"atomic_write_max_bytes", "atomic_write_unit_max_bytes", "nr_requests", "scheduler",
	};
	char path[160], text[256];

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		snprintf(path, sizeof(path), "/sys/block/dm-%u/queue/%s", map_minor, attributes[i]);
		read_file(path, text, sizeof(text));
		saw("limits", "%s %s", attributes[i], text);
	}
	snprintf(path, sizeof(path), "/sys/block/dm-%u/size", map_minor);
	read_file(path, text, sizeof(text));
	saw("limits", "size %s", text);
}

