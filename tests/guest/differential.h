/* SPDX-License-Identifier: GPL-2.0 */
/*
 * differential.h - what the files of the differential player share. See differential.c.
 */
#ifndef DIFFERENTIAL_H
#define DIFFERENTIAL_H

#include <pthread.h>
#include <stdint.h>

#include "dm.h"
#include "files.h"

#define MAP		"mprrdiff"
#define NR_WAITERS	10
#define NR_PATHS	4

/* ---- differential.c: the run ---- */

extern const char *const types[2];	/* of targets: in-kernel, this module's */
extern int slow, now;			/* now: whose turn it is, 0 or 1 */
extern const char *kernel, *sections;
extern unsigned int map_minor;

/* ---- differential-seen.c: what was seen, and whether it may differ ---- */

extern char step[512];			/* what is being done */
extern int failed;			/* results that were not as they must be */
extern int kmsg;

void add_name(char *name_value);
const char *value_of(const char *name);
char *fill(const char *text);
void saw(const char *aspect, const char *format, ...) __attribute__((format(printf, 2, 3)));
void compare(const char *where);
int listed(const char *list, const char *w);
int matches_text(const char *re, const char *text);
void read_rules(const char *path);
void print_rules(void);
void kmsg_skip(void);
void see_log(void);

/* ---- differential-io.c: I/O and paths ---- */

struct waiter {
	pthread_t thread;
	char op[16];
	uint64_t off, bytes;
	const char *result;
	volatile int started, done, tid;
};

extern struct waiter waiters[NR_WAITERS];
extern const char *const path_names[NR_PATHS];

void verify(int on);
const char *do_io(const char *op, uint64_t off, uint64_t bytes);
void waiter_start(struct waiter *w);
void wait_asleep(struct waiter *w);
int wait_done(struct waiter *w, unsigned int secs);
uint64_t ms(void);
void nap(unsigned int msecs);
unsigned int map_in_flight(void);
const char *disk(const char *path);
void see_requests(int quiet);
void see_limits(void);

#endif
