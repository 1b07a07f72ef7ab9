/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fuzz.h - what the files of the fuzzer share. See fuzz.c.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <linux/dm-ioctl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "files.h"

/* ---- the run ---- */

extern uint64_t seed;		/* of the run */
extern long only_case;		/* -1, or the one case to replay, verbosely */
extern long this_case;		/* the case being run */
extern int failures;		/* oracle failures so far */

#define MAX_FAILURES 20		/* a run ends after so many */
#define verbose (only_case >= 0)

void case_begin(long nr);
/* One failed oracle; what: printf. text: the case, printed escaped. */
void case_failed(const char *text, const char *what, ...)
	__attribute__((format(printf, 2, 3)));
void say(const char *what, ...) __attribute__((format(printf, 1, 2)));
void progress(const char *unit, long done, long all);
const char *escaped(const char *text);
const char *errname(int e);
double now(void);

/* ---- random numbers: each case has its own, from (seed, case) ---- */

uint64_t rnd(void);
static inline unsigned int below(unsigned int n) { return n ? rnd() % n : 0; }
static inline bool percent(unsigned int p) { return below(100) < p; }

/* ---- memory that lasts for one case ---- */

void *case_alloc(size_t size);
char *case_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- device-mapper ---- */

int dm_open(void);
int dm_plain(unsigned long cmd, const char *map, unsigned int flags);
int dm_load(const char *map, uint64_t len, const char *type, const char *words);
int dm_message(const char *map, const char *text);
/* The status text of the live or (DM_QUERY_INACTIVE_TABLE_FLAG) the inactive table. */
int dm_status(const char *map, unsigned int flags, char *text, size_t size);
/* The same with room for so many bytes only; E2BIG: that was not enough. */
int dm_status_in(const char *map, unsigned int flags, char *text, size_t size, size_t room);
/* Node of the map in /dev, and its kernel name (dm-0). */
int dm_node(const char *map, char *node, size_t size);

/* ---- an INFO line ---- */

#define MAX_GROUPS 32
#define MAX_PATHS 32

struct info_path {
	char dev[16];
	char state;
	unsigned int fails;
	unsigned int nr_words;
	long words[4];
};

struct info_group {
	char state;
	unsigned int nr_paths;
	struct info_path path[MAX_PATHS];
};

struct info {
	unsigned int nr_groups, current;
	struct info_group group[MAX_GROUPS];
};

/* NULL, or what is wrong with the line. */
const char *info_parse(const char *line, struct info *info);

/* ---- words ---- */

enum kind { TEXT, COUNT, NUMBER, DEVICE, FEATURE, HANDLER, SELECTOR };

#define MAX_WORDS 3000

/* A line in the making: raw words, joined by blanks at the end. */
struct line {
	int n;
	char *word[MAX_WORDS];
	enum kind kind[MAX_WORDS];
};

extern int nr_devs;		/* the paths of the test */
extern char **devs;		/* maj:min */
extern char *nodes[];		/* /dev/sdX */

#define ANY(array) ((char *)(array)[below(sizeof(array) / sizeof((array)[0]))])

void find_nodes(void);
char *any_device(void);
void add(struct line *l, enum kind kind, char *word);
void add_number(struct line *l, enum kind kind, unsigned int value);
char *join(const struct line *l);
void mutate(struct line *l);
char *any_odd_word(void);
char *long_word(const char *word);
char *with_piece(const char *word);
char *flip_case(const char *word);

bool kernel_space(unsigned char c);
int split(const char *text, char **argv, int max);
bool number(const char *word, unsigned int *value);
/* Index of a device, -1: certainly no path of ours, -2: who knows. */
int find_device(const char *word);

/* A number in a table or a message, and its range. */
struct tunable {
	char *name;
	unsigned int min, max;
	bool may_be_auto;
};

#define NR_TUNABLES	5
#define AUTO		0xffffffffu	/* the value "auto" */

extern const struct tunable tunables[NR_TUNABLES];
const struct tunable *find_tunable(const char *name);
bool tunable_value(const struct tunable *t, const char *word, unsigned int *value);
void add_tunable_value(struct line *l, const struct tunable *t);

enum verdict { REFUSE, ACCEPT, EITHER };
bool plausible(int err);
const char *verdict_name(enum verdict what);

/* ---- verified I/O (fuzz-io.c) ---- */

#define IO_WORKERS	3
#define IO_BLOCKS	512u		/* of each worker */
#define IO_BLOCK	4096u
#define IO_SECTORS	(IO_WORKERS * IO_BLOCKS * IO_BLOCK / 512)

extern atomic_bool io_tolerant;	/* an I/O may fail now */
void io_tolerate(bool on);
int io_start(const char *node, bool first);	/* first: nothing was written yet */
void io_stop(void);
int io_fd(void);
void io_pause(bool on);
bool io_all_paused(void);
void io_mark(void);
bool io_all_moved(void);	/* each worker has done some I/O since io_mark() */
void io_verify(int nr);		/* reads all of one worker's blocks, while paused */
void io_totals(unsigned long *done, unsigned long *failed);
/* What went wrong in the sequence, from any thread. */
void wrong(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* ---- the counters in INFO (fuzz-counters.c) ---- */

/*
 * Do the selectors count nothing in flight? Not at once when the last I/O has
 * ended: dm-rq ends the bios before the target hears of the completion.
 */
bool counters_are_zero(const char *map);
/* wrong() for each path that is failed or not idle, and each disabled group. */
void counters_check(const char *map);

/* ---- sysfs (fuzz-attributes.c) ---- */

struct attribute_write {
	char *file, *value;
	int err;
};

void attributes_read(const char *disk);
struct attribute_write any_attribute(void);
void *write_attribute(void *arg);
void attributes_restore(void);

/* ---- verbs ---- */

#define FUZZ_MAP "mprrfuzz"

int do_tables(long count, const char *type, uint64_t len);
int do_messages(long count, const char *map);
int do_parameters(long count, const char *file);

int do_operations(long count, const char *map, const char *type, int nr_hosts, char **hosts);

#endif
