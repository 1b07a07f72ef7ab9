// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-messages.c - messages to a live map, and a model of the state they make.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* ---- messages ---- */

/* What the map should be like after the messages so far. */
static struct {
	struct info info;
	bool queue;
} model;

static int model_sync(const char *map)
{
	static char text[1 << 16];
	int err = dm_status(map, 0, text, sizeof(text));
	const char *bad = err ? errname(err) : info_parse(text, &model.info);

	if (!bad) {
		err = dm_status(map, DM_STATUS_TABLE_FLAG, text, sizeof(text));
		model.queue = !strncmp(text, "1 queue_if_no_path ", 19);
	}
	if (bad || err)
		case_failed(text, "status of the map: %s", bad ? bad : errname(err));
	return bad || err;
}

static void model_path(int dev, bool fail)
{
	unsigned int g, i;

	for (g = 0; g < model.info.nr_groups; g++) {
		for (i = 0; i < model.info.group[g].nr_paths; i++) {
			struct info_path *p = &model.info.group[g].path[i];

			if (strcmp(p->dev, devs[dev]))
				continue;
			if (fail && p->state == 'A')
				p->fails++;
			p->state = fail ? 'F' : 'A';
		}
	}
}

static void model_group(const char *verb, unsigned int nr)
{
	unsigned int g;

	/* A (has I/O) and E are not told apart here */
	if (!strcasecmp(verb, "switch_group"))
		for (g = 0; g < model.info.nr_groups; g++)
			model.info.group[g].state = 'E';
	else
		model.info.group[nr - 1].state = strcasecmp(verb, "disable_group") ? 'E' : 'D';
}

/* What a message should do; its effect on the model if apply. */
static int judge_message(char **argv, int argc, bool apply)
{
	unsigned int nr;
	bool fail;
	int dev;

	if (argc && argv[0][0] == '@')
		return EITHER;		/* the DM core's */
	if (argc == 1) {
		if (strcasecmp(argv[0], "queue_if_no_path") &&
		    strcasecmp(argv[0], "fail_if_no_path"))
			return REFUSE;
		if (apply)
			model.queue = !strcasecmp(argv[0], "queue_if_no_path");
		return ACCEPT;
	}
	if (argc != 2)
		return REFUSE;
	if (!strcasecmp(argv[0], "switch_group") || !strcasecmp(argv[0], "disable_group") ||
	    !strcasecmp(argv[0], "enable_group")) {
		if (!number(argv[1], &nr) || !nr || nr > model.info.nr_groups)
			return REFUSE;
		if (apply)
			model_group(argv[0], nr);
		return ACCEPT;
	}
	if (find_tunable(argv[0]))
		return !strcasecmp(argv[1], "table") ||
		       tunable_value(find_tunable(argv[0]), argv[1], &nr) ? ACCEPT : REFUSE;
	fail = !strcasecmp(argv[0], "fail_path");
	if (!fail && strcasecmp(argv[0], "reinstate_path"))
		return REFUSE;
	dev = find_device(argv[1]);
	if (dev < 0)
		return dev == -1 ? REFUSE : EITHER;
	if (apply)
		model_path(dev, fail);
	return ACCEPT;
}

static void make_message(struct line *l)
{
	unsigned int what = below(25);

	if (what == 0) {
		add(l, FEATURE, percent(50) ? "queue_if_no_path" : "fail_if_no_path");
	} else if (what < 10) {
		add(l, FEATURE, percent(50) ? "fail_path" : "reinstate_path");
		add(l, DEVICE, any_device());
	} else if (what >= 20) {
		const struct tunable *t = &tunables[below(NR_TUNABLES)];

		add(l, FEATURE, t->name);
		if (percent(20))
			add(l, TEXT, "table");
		else
			add_tunable_value(l, t);
	} else {
		add(l, FEATURE, what < 14 ? "switch_group" :
				what < 17 ? "disable_group" : "enable_group");
		add_number(l, COUNT, 1 + below(model.info.nr_groups));
	}
	if (percent(10))
		l->word[0] = flip_case(l->word[0]);
}

static void check_model(const char *map)
{
	static struct info is;
	static char text[1 << 16];
	unsigned int g, i;
	int err = dm_status(map, 0, text, sizeof(text));
	const char *bad = err ? errname(err) : info_parse(text, &is);

	if (bad) {
		case_failed(text, "INFO: %s", bad);
		return;
	}
	for (g = 0; g < is.nr_groups; g++) {
		if ((is.group[g].state == 'D') != (model.info.group[g].state == 'D'))
			case_failed(text, "group %u is %c, not %c", g + 1, is.group[g].state,
				    model.info.group[g].state);
		for (i = 0; i < is.group[g].nr_paths; i++) {
			struct info_path *a = &is.group[g].path[i];
			struct info_path *b = &model.info.group[g].path[i];

			if (a->state != b->state || a->fails != b->fails)
				case_failed(text, "path %s is %c %u, not %c %u", a->dev, a->state,
					    a->fails, b->state, b->fails);
		}
	}
	err = dm_status(map, DM_STATUS_TABLE_FLAG, text, sizeof(text));
	if (err || !strncmp(text, "1 queue_if_no_path ", 19) != model.queue)
		case_failed(text, "TABLE: %s, queueing should be %s", errname(err),
			    model.queue ? "on" : "off");
	model_sync(map);
}

static bool message_case(const char *map)
{
	struct line *l = case_alloc(sizeof(*l));
	bool mutated = percent(55);
	char **argv = case_alloc(sizeof(char *) * (MAX_WORDS + 1));
	int n, err, argc, want;
	char *text;

	l->n = 0;
	make_message(l);
	for (n = mutated ? 1 + below(2) : 0; n > 0; n--)
		mutate(l);
	text = join(l);
	argc = split(text, argv, MAX_WORDS);
	want = judge_message(argv, argc, false);
	if (verbose)
		say("%s, must be %s: %s", mutated ? "mutated" : "valid", verdict_name(want),
		    escaped(text));
	err = dm_message(map, text);
	if (verbose)
		say("message: %s", errname(err));
	if (err && (want == ACCEPT || !mutated))
		case_failed(text, "a valid message is refused: %s", errname(err));
	else if (err && !plausible(err))
		case_failed(text, "refused with %s", errname(err));
	else if (!err && want == REFUSE)
		case_failed(text, "a wrong message is accepted");
	if (!err && want == ACCEPT)
		judge_message(argv, argc, true);
	/* Queueing must not end by itself while the model believes in it. */
	if (!err && argc == 2 && !strcasecmp(argv[0], "no_path_timeout_secs"))
		err = dm_message(map, "no_path_timeout_secs table");
	else if (!err && argc && argv[0][0] != '@')
		model_sync(map);
	return !err;
}

/* The map in a known state: all paths, all groups, no queueing. */
static void messages_end(const char *map)
{
	static const char *const texts[] = {
		"fail_if_no_path", "switch_group 1", "enable_group 1"
	};
	unsigned int i;
	int err = 0;

	for (i = 0; i < 3 && !err; i++)
		err = dm_message(map, texts[i]);
	for (i = 0; i < (unsigned int)nr_devs && !err; i++)
		err = dm_message(map, case_print("reinstate_path %s", devs[i]));
	if (err)
		case_failed("", "the map does not come to a known state: %s", errname(err));
}

int do_messages(long count, const char *map)
{
	long k, accepted = 0, done = 0;
	double t = now();

	find_nodes();
	if (model_sync(map))
		return 2;
	for (k = verbose ? only_case : 0; k < count || k == only_case; k++) {
		case_begin(k);
		accepted += message_case(map);
		done++;
		if (done % 100 == 0 || verbose)
			check_model(map);
		if (verbose)
			break;
		progress("messages", done, count);
	}
	check_model(map);
	messages_end(map);
	say("%.0f messages a second, seed %llu", done / (now() - t), (unsigned long long)seed);
	say("total %ld messages: %ld accepted, %ld refused, %d failed", done, accepted,
	    done - accepted, failures);
	return !!failures;
}

