/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract between a path group and its path selector.
 *
 * DOC: a path selector
 *
 * A selector answers one question: which path of this group takes the next
 * request.  It owns &mprr_group.ps_state and &mprr_group.ps_data and, in each
 * path, &mprr_path.ps_words (set by mprr_selector_add_path(), constant
 * afterwards), &mprr_path.ps_load and &mprr_path.ps_data.  But for the constructor
 * and the destructor it never sleeps, takes no lock of the map, and only
 * returns paths that are usable, that is active and open (dm-rq-merge.c says
 * what open means).  Its cost must not grow with the number of paths.
 */

#ifndef DM_PATH_SELECTOR_H
#define DM_PATH_SELECTOR_H

#include "dm-mpath-rr.h"

/**
 * struct mprr_selector_type - operations of a path selector
 * @name: the word in the table
 * @min_words: how many words must follow a path
 * @max_words: how many words may follow a path, at most two
 * @wrong_count: text of the fault when fewer or more follow
 * @text_words: those words are no numbers: @add_path reads them
 * @timed: @end_io wants to know when the request was sent
 * @table_args: how many words @emit_path writes for TABLE status
 * @info_args: how many words @emit_path writes for INFO status
 * @create: optional; takes the group's words.  Without it they are ignored.
 *	Called by the constructor before the group has paths, may sleep.
 *	Returns 0, or a negative errno with a text in @error and the index of the
 *	wrong word in @bad.
 * @destroy: optional; frees &mprr_group.ps_data, also if @create failed or was not called.
 *	The group has no paths any more.  May sleep.
 * @add_path: optional; the path's numbers are in &mprr_path.ps_words: are they in range?
 *	Their count is right.
 *	Called by the constructor, may sleep.  Returns as @create does.
 * @remove_path: optional; frees &mprr_path.ps_data, also if @add_path failed or was not
 *	called.  May sleep.
 * @select: choose a usable path for a request of so many bytes.
 *	Any context, no lock needed.
 *	Returns the path, or NULL when none is usable.
 * @another: the given path was chosen but cannot take the request: choose
 *	another usable one, so that as many calls as there are paths ask each.
 *	Any context, no lock needed.
 *	Returns the path, or NULL when none is usable.
 * @pass: optional; the given path was chosen but did not take the request:
 *	another one has the turn.  Any context.
 * @start_io: optional; the path takes so many bytes.  Any context.
 * @end_io: optional; exact counterpart of @start_io.  Any context.  @sent_ns is when
 *	the request went to the path (ktime_get_ns()), 0 if not @timed or if the path
 *	did not serve it.
 * @emit_group: optional; write how many words the group has, and those words, each
 *	followed by one space.  Without it there are none.  Called as @emit_path is.
 * @emit_path: write the path's status words, each followed by one space.
 *	&mprr_map.lock is held and interrupts are off.
 *	Returns characters written, as scnprintf counts them.
 */
struct mprr_selector_type {
	const char *name;
	unsigned int min_words;
	unsigned int max_words;
	const char *wrong_count;
	bool text_words;
	bool timed;
	unsigned int table_args;
	unsigned int info_args;

	int (*create)(struct mprr_group *group, unsigned int argc, char **argv,
		      const char **error, unsigned int *bad);
	void (*destroy)(struct mprr_group *group);
	int (*add_path)(struct mprr_path *path, unsigned int argc, char **argv, const char **error,
			unsigned int *bad);
	void (*remove_path)(struct mprr_path *path);
	struct mprr_path *(*select)(struct mprr_group *group, size_t nr_bytes);
	struct mprr_path *(*another)(struct mprr_path *path, size_t nr_bytes);
	void (*pass)(struct mprr_path *path);
	void (*start_io)(struct mprr_path *path, size_t nr_bytes);
	void (*end_io)(struct mprr_path *path, size_t nr_bytes, u64 sent_ns);
	unsigned int (*emit_group)(const struct mprr_group *group, status_type_t type,
				   char *result, unsigned int maxlen);
	unsigned int (*emit_path)(const struct mprr_path *path, status_type_t type,
				  char *result, unsigned int maxlen);
};

extern const struct mprr_selector_type mprr_round_robin;
extern const struct mprr_selector_type mprr_queue_length;
extern const struct mprr_selector_type mprr_service_time;
extern const struct mprr_selector_type mprr_historical_service_time;
extern const struct mprr_selector_type mprr_io_affinity;

const struct mprr_selector_type *mprr_selector_find(const char *name);
void mprr_selector_init(struct mprr_group *group);
int mprr_selector_add_path(struct mprr_path *path, unsigned int argc, char **argv,
			   const char **error, unsigned int *bad);
unsigned int mprr_group_next_usable(const struct mprr_group *group, unsigned int start);
void mprr_selector_pass(struct mprr_path *path);
struct mprr_path *mprr_selector_peek(struct mprr_group *group);
struct mprr_path *mprr_selector_next(struct mprr_path *path, size_t nr_bytes);
struct mprr_path *mprr_selector_turn(struct mprr_group *group);
struct mprr_path *mprr_selector_least(struct mprr_group *group, size_t nr_bytes,
				      bool (*less)(const struct mprr_path *a,
						   const struct mprr_path *b,
						   size_t nr_bytes));

#endif /* DM_PATH_SELECTOR_H */
