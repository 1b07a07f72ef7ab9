// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-io.c - verified I/O for fuzz-operations.c.
 *
 * Each worker writes and reads blocks of its own, whose every sector says block
 * and generation, so that it is known what a read must find. After a write that
 * failed a block may have the old generation or the new one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define NR_WORKERS	IO_WORKERS
#define NR_BLOCKS	IO_BLOCKS
#define BLOCK		IO_BLOCK
#define MAX_IO		16u		/* blocks */

/* Workers look at these before and after an I/O. */
atomic_bool io_tolerant;
static atomic_uint tolerant_turns;

void io_tolerate(bool on)
{
	if (on && !atomic_exchange(&io_tolerant, true))
		tolerant_turns++;
	else if (!on)
		io_tolerant = false;
}

/* ---- workers ---- */

struct block {
	uint64_t low, high, next;	/* generations that it may have; last one tried */
};

static struct worker {
	pthread_t thread;
	int nr, fd;
	struct block block[NR_BLOCKS];
	char *buf;
	uint64_t rng;
	atomic_ulong done, eio;
	atomic_bool paused;
} workers[NR_WORKERS];

static atomic_bool pause_all, stop_all;

static uint64_t worker_rnd(struct worker *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

#define WORDS (512 / 8)

static void fill(uint64_t *sector, uint64_t where, uint64_t generation)
{
	uint64_t h = (where * 0x9e3779b97f4a7c15) ^ (generation * 0xd1342543de82ef95);
	int i;

	sector[0] = 0x6d707272 ^ where;
	sector[1] = generation;
	for (i = 2; i < WORDS; i++)
		sector[i] = h += 0x632be59bd9b4e019;
}

/* One block that was read; false if it is not what it may be. */
static bool check_block(struct worker *w, unsigned int nr, const uint64_t *data)
{
	struct block *b = &w->block[nr];
	uint64_t want[WORDS], first = data[1];
	bool same = true;
	unsigned int s;

	for (s = 0; s < BLOCK / 512; s++, data += WORDS) {
		uint64_t where = ((uint64_t)w->nr << 32 | nr) * 8 + s;

		fill(want, where, data[1]);
		same &= data[1] == first;
		if (data[1] >= b->low && data[1] <= b->high && !memcmp(want, data, 512))
			continue;
		wrong("WRONG DATA: worker %d block %u sector %u: generation %llu (right: %llu..%llu), place %llx",
		      w->nr, nr, s, (unsigned long long)data[1], (unsigned long long)b->low,
		      (unsigned long long)b->high, (unsigned long long)data[0]);
		return false;
	}
	if (same)
		b->low = b->high = first;
	return true;
}

static bool one_io(struct worker *w, unsigned int at, unsigned int n, bool write)
{
	off_t where = ((off_t)w->nr * NR_BLOCKS + at) * BLOCK;
	bool tolerated = io_tolerant;
	unsigned int turn = tolerant_turns, i, s;
	ssize_t r;
	int err;

	for (i = 0; write && i < n; i++) {
		w->block[at + i].next++;
		for (s = 0; s < BLOCK / 512; s++)
			fill((uint64_t *)(w->buf + i * BLOCK + s * 512),
			     ((uint64_t)w->nr << 32 | (at + i)) * 8 + s, w->block[at + i].next);
	}
	r = write ? pwrite(w->fd, w->buf, n * BLOCK, where) :
		    pread(w->fd, w->buf, n * BLOCK, where);
	err = r < 0 ? errno : 0;
	w->done++;
	for (i = 0; write && i < n; i++) {
		w->block[at + i].high = w->block[at + i].next;
		if (!err)
			w->block[at + i].low = w->block[at + i].next;
	}
	if (!err && r == (ssize_t)(n * BLOCK)) {
		for (i = 0; !write && i < n; i++)
			if (!check_block(w, at + i, (uint64_t *)(w->buf + i * BLOCK)))
				return false;
		return true;
	}
	/* No path left: EIO, or what the last one said. */
	if ((err == EIO || err == ENOLINK || err == ENODEV) &&
	    (tolerated || io_tolerant || turn != tolerant_turns)) {
		w->eio++;
		usleep(2000);
		return true;
	}
	wrong("worker %d: %s of %u blocks: %s, %zd bytes", w->nr, write ? "write" : "read", n,
	      errname(err), r);
	return false;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!stop_all) {
		unsigned int n = 1 + worker_rnd(w) % MAX_IO;

		if (pause_all) {
			w->paused = true;
			usleep(1000);
			continue;
		}
		w->paused = false;
		if (!one_io(w, worker_rnd(w) % (NR_BLOCKS - n + 1), n, worker_rnd(w) & 1))
			usleep(100000);	/* said; the run goes on, or ends */
	}
	w->paused = true;
	return NULL;
}

int io_start(const char *node, bool first)
{
	unsigned int i, at;

	pause_all = stop_all = false;
	for (i = 0; i < NR_WORKERS; i++) {
		struct worker *w = &workers[i];

		w->nr = i;
		w->rng = seed * 1000003 + this_case * 10007 + i + 1;
		w->paused = false;
		if (!w->buf && posix_memalign((void **)&w->buf, 4096, MAX_IO * BLOCK))
			return ENOMEM;
		w->fd = open(node, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (w->fd < 0)
			return errno;
		for (at = 0; first && at < NR_BLOCKS; at += MAX_IO)
			one_io(w, at, MAX_IO, true);
		if (pthread_create(&w->thread, NULL, work, w))
			return EAGAIN;
	}
	return 0;
}

bool io_all_paused(void)
{
	int i;

	for (i = 0; i < NR_WORKERS; i++)
		if (!workers[i].paused)
			return false;
	return true;
}

void io_stop(void)
{
	int i;

	stop_all = true;
	for (i = 0; i < NR_WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		close(workers[i].fd);
	}
}

static unsigned long done_before[NR_WORKERS];

bool io_all_moved(void)
{
	int i;

	for (i = 0; i < NR_WORKERS; i++)
		if (workers[i].done < done_before[i] + 3)
			return false;
	return true;
}

void io_mark(void)
{
	int i;

	for (i = 0; i < NR_WORKERS; i++)
		done_before[i] = workers[i].done;
}

void io_pause(bool on)
{
	pause_all = on;
}

int io_fd(void)
{
	return workers[0].fd;
}

void io_verify(int nr)
{
	unsigned int at;

	for (at = 0; at < NR_BLOCKS; at += MAX_IO)
		one_io(&workers[nr], at, MAX_IO, false);
}

void io_totals(unsigned long *done, unsigned long *failed)
{
	int i;

	for (i = 0; i < NR_WORKERS; i++) {
		*done += workers[i].done;
		*failed += workers[i].eio;
	}
}
