// SPDX-License-Identifier: GPL-2.0
/*
 * Registry of the path selectors, what they share, and round-robin.
 *
 * DOC: round-robin
 *
 * Each path takes a run of consecutive requests, as many as its repeat count
 * (rr_min_io) says, then the next usable path follows in table order.  The
 * tunable rr_min_io takes the place of all repeat counts; rr_min_io_bytes, while
 * it is not 0, ends a run with the request that reaches so many bytes.  Both
 * change while I/O runs: a run that is longer than it should be by now is cut.
 *
 * The whole state is one 64-bit word, the path that has the turn and how much
 * of its run is left, changed by compare-and-exchange: no lock, and the same
 * cost with 2 paths and with 1024.
 *
 * A run ends early when its path fails or cannot take a request (a full path
 * must not keep the others idle).
 *
 * Called from the request path, from completion (softirq) and, for status, with
 * interrupts off; must never sleep.
 */

#include <linux/bitmap.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "dm-path-selector.h"

/*
 * The turn, &mprr_group.ps_state: path index above, rest of its run below, in
 * requests or, with TURN_SECTORS, in sectors.
 */
#define TURN_SECTORS		BIT_ULL(63)

static u64 make_turn(unsigned int index, unsigned int left)
{
	return (u64)index << 32 | left;
}

static unsigned int turn_index(u64 turn)
{
	return (turn & ~TURN_SECTORS) >> 32;
}

static unsigned int turn_left(u64 turn)
{
	return (u32)turn;
}

static unsigned int next_index(const struct mprr_group *group, unsigned int index)
{
	return index + 1 < group->nr_paths ? index + 1 : 0;
}

/**
 * mprr_selector_init - let the first choice begin at the first path
 * @group: the group, with all its paths added
 *
 * Context: constructor.
 */
void mprr_selector_init(struct mprr_group *group)
{
	atomic64_set(&group->ps_state, make_turn(group->nr_paths - 1, 0));
}

/**
 * mprr_group_next_usable - the first usable path at or after a position
 * @group: the group
 * @start: index to start from, below &mprr_group.nr_paths; wraps around
 *
 * Usable means active and open.  Reads at most 32 words, for 1024 paths.
 *
 * Context: any, lockless: the path may fail or fill up right after.
 * Return: an index, or &mprr_group.nr_paths when no path is usable.
 */
unsigned int mprr_group_next_usable(const struct mprr_group *group, unsigned int start)
{
	unsigned int n = group->nr_paths;
	unsigned int i = find_next_and_bit(group->active, group->open, n, start);

	if (i >= n && start)
		i = find_first_and_bit(group->active, group->open, n);
	return min(i, n);
}

/**
 * mprr_selector_add_path - parse the words that follow a path
 * @path: the path; its numbers go to &mprr_path.ps_words, 1 where no word is
 * @argc: number of words
 * @argv: the words
 * @error: set to the text of the fault
 * @bad: set to the index of the wrong word
 *
 * Context: constructor, &mprr_group.ps_type is set.
 * Return: 0, or -EINVAL when there are too many words, one is not an unsigned
 * decimal number, or the selector does not take it.
 */
int mprr_selector_add_path(struct mprr_path *path, unsigned int argc, char **argv,
			   const char **error, unsigned int *bad)
{
	const struct mprr_selector_type *type = path->group->ps_type;
	unsigned int i;

	if (argc > type->max_words) {
		*error = type->too_many;
		*bad = type->max_words;
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_SIZE(path->ps_words); i++)
		path->ps_words[i] = 1;
	if (argc)
		set_bit(MPRR_REPEAT_COUNTS, &path->group->map->flags);
	for (i = 0; i < argc; i++) {
		if (mprr_read_uint(argv[i], &path->ps_words[i])) {
			*error = i ? "relative throughput must be a number 0..100" :
				     "repeat count must be an unsigned number";
			*bad = i;
			return -EINVAL;
		}
	}
	return type->check_path ? type->check_path(path, error, bad) : 0;
}

/**
 * mprr_selector_next - the next usable path in table order
 * @path: the path that could not take the request
 * @nr_bytes: unused
 *
 * The operation another of selectors that choose by load: the path that did
 * not take the request may still look like the best one.
 *
 * Context: any, no lock needed.
 * Return: the path, @path itself if it is the only one, NULL if none is usable.
 */
struct mprr_path *mprr_selector_next(struct mprr_path *path, size_t nr_bytes)
{
	struct mprr_group *group = path->group;
	unsigned int i = mprr_group_next_usable(group, next_index(group, path->index));

	return i < group->nr_paths ? group->paths[i] : NULL;
}

/* How many candidates a load-aware selector compares; bounds its cost. */
#define MPRR_LEAST_CANDIDATES	8

/**
 * mprr_selector_least - choose the least loaded of a few usable paths
 * @group: the group; its turn says which path was chosen last
 * @nr_bytes: size of the request to place
 * @less: true if @a is a better choice than @b for @nr_bytes
 *
 * Compares up to eight usable paths, from the one after the last choice on:
 * with eight paths or fewer the result is exact and ties go round; with more,
 * the best of eight that move with each request.
 *
 * Context: any, no lock needed.
 * Return: the path, or NULL when none is usable.
 */
struct mprr_path *mprr_selector_least(struct mprr_group *group, size_t nr_bytes,
				      bool (*less)(const struct mprr_path *a,
						   const struct mprr_path *b,
						   size_t nr_bytes))
{
	unsigned int n = group->nr_paths;
	unsigned int last = turn_index(atomic64_read(&group->ps_state));
	unsigned int first = mprr_group_next_usable(group, next_index(group, last));
	unsigned int i = first, tries;
	struct mprr_path *best;

	if (first >= n)
		return NULL;

	best = group->paths[first];
	for (tries = 1; tries < MPRR_LEAST_CANDIDATES; tries++) {
		i = mprr_group_next_usable(group, next_index(group, i));
		/* All are full by now, or the search came round. */
		if (i >= n || i == first)
			break;
		if (less(group->paths[i], best, nr_bytes))
			best = group->paths[i];
	}

	/* Concurrent searches may overwrite each other: it is only a hint. */
	atomic64_set(&group->ps_state, make_turn(best->index, 0));
	return best;
}

static bool rr_usable(const struct mprr_group *group, unsigned int index)
{
	return test_bit(index, group->active) && test_bit(index, group->open);
}

/* How long is a run on this path, in the unit that @unit says? */
static unsigned int rr_run(const struct mprr_path *path, u64 unit)
{
	const struct mprr_map *map = path->group->map;
	unsigned int run;

	if (unit)
		return DIV_ROUND_UP(READ_ONCE(map->rr_min_io_bytes), SECTOR_SIZE);
	run = READ_ONCE(map->rr_min_io);
	if (run == MPRR_UNSET)
		run = READ_ONCE(path->ps_words[0]);
	/* A repeat count of 0 is legal and means 1. */
	return max(run, 1U);
}

static struct mprr_path *rr_select(struct mprr_group *group, size_t nr_bytes)
{
	u64 unit = READ_ONCE(group->map->rr_min_io_bytes) ? TURN_SECTORS : 0;
	/* Without data it is a request all the same. */
	unsigned int cost = unit ? max_t(size_t, nr_bytes >> SECTOR_SHIFT, 1) : 1;
	s64 turn = atomic64_read(&group->ps_state);
	unsigned int index, left;

	do {
		index = turn_index(turn);
		left = (turn & TURN_SECTORS) == unit ? turn_left(turn) : 0;
		if (!left || !rr_usable(group, index)) {
			index = mprr_group_next_usable(group, next_index(group, index));
			if (index >= group->nr_paths)
				return NULL;
			left = UINT_MAX;
		}
		/* A new run, or one that began when runs were longer. */
		left = min(left, max(rr_run(group->paths[index], unit), 1U));
	} while (!atomic64_try_cmpxchg(&group->ps_state, &turn,
				       unit | make_turn(index, left - min(left, cost))));

	return group->paths[index];
}

static void rr_pass(struct mprr_path *path)
{
	struct mprr_group *group = path->group;
	s64 turn = atomic64_read(&group->ps_state);

	while (turn_index(turn) == path->index && turn_left(turn) &&
	       !atomic64_try_cmpxchg(&group->ps_state, &turn, make_turn(path->index, 0)))
		;
}

static struct mprr_path *rr_another(struct mprr_path *path, size_t nr_bytes)
{
	rr_pass(path);
	return rr_select(path->group, nr_bytes);
}

static void rr_give_back(struct mprr_path *path)
{
	struct mprr_group *group = path->group;
	s64 turn = atomic64_read(&group->ps_state);
	u64 unit;

	/* What selecting for no data has cost, in either unit: 1. */
	do {
		unit = turn & TURN_SECTORS;
		if (turn_index(turn) != path->index || turn_left(turn) >= rr_run(path, unit))
			return;
	} while (!atomic64_try_cmpxchg(&group->ps_state, &turn,
				       unit | make_turn(path->index, turn_left(turn) + 1)));
}

static unsigned int rr_emit_path(const struct mprr_path *path, status_type_t type,
				 char *result, unsigned int maxlen)
{
	if (type != STATUSTYPE_TABLE)
		return 0;
	return scnprintf(result, maxlen, "%u ", path->ps_words[0]);
}

const struct mprr_selector_type mprr_round_robin = {
	.name		= "round-robin",
	.max_words	= 1,
	.too_many	= "round-robin takes at most a repeat count per path",
	.table_args	= 1,
	.info_args	= 0,
	.select		= rr_select,
	.another	= rr_another,
	.pass		= rr_pass,
	.give_back	= rr_give_back,
	.emit_path	= rr_emit_path,
};

static const struct mprr_selector_type *const mprr_selectors[] = {
	&mprr_round_robin,
	&mprr_queue_length,
	&mprr_service_time,
};

/**
 * mprr_selector_find - look a selector up by its table word
 * @name: the word, case-sensitive
 *
 * All selectors are built in.  A module is never requested: the in-kernel
 * selector modules would pull in the in-kernel target.
 *
 * Context: any.
 * Return: the selector, or NULL when the word names none.
 */
const struct mprr_selector_type *mprr_selector_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mprr_selectors); i++)
		if (!strcmp(name, mprr_selectors[i]->name))
			return mprr_selectors[i];
	return NULL;
}
