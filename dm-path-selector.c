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
#include "dm-rr-auto.h"

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

static bool usable(const struct mprr_group *group, unsigned int index)
{
	return test_bit(index, group->active) && test_bit(index, group->open);
}

/* What are the runs of this map counted in: 0 for requests, TURN_SECTORS for bytes. */
static u64 run_unit(const struct mprr_group *group)
{
	return READ_ONCE(group->map->rr_min_io_bytes) ? TURN_SECTORS : 0;
}

/* How long is a run on this path, in that unit? */
static unsigned int run_length(const struct mprr_path *path, u64 unit)
{
	const struct mprr_map *map = path->group->map;
	unsigned int run;

	if (unit) {
		run = DIV_ROUND_UP(READ_ONCE(map->rr_min_io_bytes), SECTOR_SIZE);
	} else {
		run = READ_ONCE(map->rr_min_io);
		if (run == MPRR_AUTO)
			run = READ_ONCE(path->auto_run);
		else if (run == MPRR_UNSET)
			run = READ_ONCE(path->ps_words[0]);
	}
	/* A repeat count of 0 is legal and means 1; bytes may be 0 by now. */
	return max(run, 1U);
}

/* What a request takes of a run.  Without data it is a request all the same. */
static unsigned int run_cost(u64 unit, size_t nr_bytes)
{
	return unit ? max_t(size_t, nr_bytes >> SECTOR_SHIFT, 1) : 1;
}

/* What is left of the run; nothing if runs are counted otherwise by now. */
static unsigned int run_left(u64 turn, u64 unit)
{
	return (turn & TURN_SECTORS) == unit ? turn_left(turn) : 0;
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
 * Context: constructor, &mprr_group.ps_type is set; may sleep.
 * Return: 0, -ENOMEM, or -EINVAL when there are too few or too many words, one is
 * not an unsigned decimal number, or the selector does not take it.
 */
int mprr_selector_add_path(struct mprr_path *path, unsigned int argc, char **argv,
			   const char **error, unsigned int *bad)
{
	const struct mprr_selector_type *type = path->group->ps_type;
	unsigned int i;

	if (argc < type->min_words || argc > type->max_words) {
		*error = type->wrong_count;
		*bad = min(argc, type->max_words);
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_SIZE(path->ps_words); i++)
		path->ps_words[i] = 1;
	if (argc && !type->text_words)
		set_bit(MPRR_REPEAT_COUNTS, &path->group->map->flags);
	for (i = 0; i < argc && !type->text_words; i++) {
		if (mprr_read_uint(argv[i], &path->ps_words[i])) {
			*error = i ? "relative throughput must be a number 0..100" :
				     "repeat count must be an unsigned number";
			*bad = i;
			return -EINVAL;
		}
	}
	return type->add_path ? type->add_path(path, argc, argv, error, bad) : 0;
}

/**
 * mprr_selector_pass - end the run of a path that did not take a request
 * @path: the path; nothing happens if another one has the turn
 *
 * Context: any, no lock needed.
 */
void mprr_selector_pass(struct mprr_path *path)
{
	struct mprr_group *group = path->group;
	s64 turn = atomic64_read(&group->ps_state);

	while (turn_index(turn) == path->index && turn_left(turn) &&
	       !atomic64_try_cmpxchg(&group->ps_state, &turn, make_turn(path->index, 0)))
		;
}

/**
 * mprr_selector_peek - the path that has the turn, for what is no request
 * @group: the group; its turn stays as it is
 *
 * Context: any, no lock needed.
 * Return: the path, or NULL when none is usable.
 */
struct mprr_path *mprr_selector_peek(struct mprr_group *group)
{
	s64 turn = atomic64_read(&group->ps_state);
	unsigned int i = turn_index(turn);

	if (!run_left(turn, run_unit(group)) || !usable(group, i))
		i = mprr_group_next_usable(group, next_index(group, i));
	return i < group->nr_paths ? group->paths[i] : NULL;
}

/**
 * mprr_selector_next - the next usable path in table order
 * @path: the path that could not take the request
 * @nr_bytes: unused
 *
 * The operation another of selectors that choose by load: the path that did
 * not take the request may still look like the best one.  Its run ends.
 *
 * Context: any, no lock needed.
 * Return: the path, @path itself if it is the only one, NULL if none is usable.
 */
struct mprr_path *mprr_selector_next(struct mprr_path *path, size_t nr_bytes)
{
	struct mprr_group *group = path->group;
	unsigned int i = mprr_group_next_usable(group, next_index(group, path->index));

	mprr_selector_pass(path);
	return i < group->nr_paths ? group->paths[i] : NULL;
}

/**
 * mprr_selector_turn - the usable path that follows the one chosen last
 * @group: the group
 *
 * For a selector that has no better reason to choose.
 *
 * Context: any, no lock needed.
 * Return: the path, or NULL when none is usable.
 */
struct mprr_path *mprr_selector_turn(struct mprr_group *group)
{
	s64 turn = atomic64_read(&group->ps_state);
	unsigned int i;

	do {
		i = mprr_group_next_usable(group, next_index(group, turn_index(turn)));
		if (i >= group->nr_paths)
			return NULL;
	} while (!atomic64_try_cmpxchg(&group->ps_state, &turn, make_turn(i, 0)));

	return group->paths[i];
}

/* How many candidates a load-aware selector compares; bounds its cost. */
#define MPRR_LEAST_CANDIDATES	8

/**
 * mprr_selector_least - choose the least loaded of a few usable paths
 * @group: the group; its turn says which path was chosen last
 * @nr_bytes: size of the request to place
 * @less: true if @a is a better choice than @b for @nr_bytes
 *
 * The path chosen last has a run of as many requests as its repeat count says,
 * unless it fails or fills up before.  Then compares up to eight usable paths,
 * from the one after the last choice on: with eight paths or fewer the result is
 * exact and ties go round; with more, the best of eight that move with each run.
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
	u64 unit = run_unit(group);
	unsigned int cost = run_cost(unit, nr_bytes);
	s64 turn = atomic64_read(&group->ps_state);
	unsigned int first, left, i, tries;
	struct mprr_path *best;

	do {
		i = turn_index(turn);
		left = run_left(turn, unit);
		if (!left || !usable(group, i))
			break;
		left = min(left, run_length(group->paths[i], unit));
		if (atomic64_try_cmpxchg(&group->ps_state, &turn,
					 unit | make_turn(i, left - min(left, cost))))
			return group->paths[i];
	} while (true);

	first = mprr_group_next_usable(group, next_index(group, turn_index(turn)));
	if (first >= n)
		return NULL;

	best = group->paths[first];
	i = first;
	for (tries = 1; tries < MPRR_LEAST_CANDIDATES; tries++) {
		i = mprr_group_next_usable(group, next_index(group, i));
		/* All are full by now, or the search came round. */
		if (i >= n || i == first)
			break;
		if (less(group->paths[i], best, nr_bytes))
			best = group->paths[i];
	}

	/*
	 * Concurrent searches may overwrite each other: a run is then cut short, or a
	 * request of it is not counted.
	 */
	left = run_length(best, unit);
	atomic64_set(&group->ps_state, unit | make_turn(best->index, left - min(left, cost)));
	return best;
}

static struct mprr_path *rr_select(struct mprr_group *group, size_t nr_bytes)
{
	u64 unit = run_unit(group);
	unsigned int cost = run_cost(unit, nr_bytes);
	s64 turn = atomic64_read(&group->ps_state);
	unsigned int index, left;

	do {
		index = turn_index(turn);
		left = run_left(turn, unit);
		if (!left || !usable(group, index)) {
			index = mprr_group_next_usable(group, next_index(group, index));
			if (index >= group->nr_paths)
				return NULL;
			left = UINT_MAX;
		}
		/* A new run, or one that began when runs were longer. */
		left = min(left, run_length(group->paths[index], unit));
	} while (!atomic64_try_cmpxchg(&group->ps_state, &turn,
				       unit | make_turn(index, left - min(left, cost))));

	/* At the end of each run, and now and then in a long one. */
	if (READ_ONCE(group->map->rr_min_io) == MPRR_AUTO && (left <= cost || !(left & 15)))
		mprr_rr_auto_look(group->map);
	return group->paths[index];
}

static struct mprr_path *rr_another(struct mprr_path *path, size_t nr_bytes)
{
	mprr_selector_pass(path);
	return rr_select(path->group, nr_bytes);
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
	.wrong_count	= "round-robin takes at most a repeat count per path",
	.table_args	= 1,
	.info_args	= 0,
	.select		= rr_select,
	.another	= rr_another,
	.pass		= mprr_selector_pass,
	.emit_path	= rr_emit_path,
};

static const struct mprr_selector_type *const mprr_selectors[] = {
	&mprr_round_robin,
	&mprr_queue_length,
	&mprr_service_time,
	&mprr_historical_service_time,
	&mprr_io_affinity,
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
