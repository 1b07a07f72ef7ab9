// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-tables.c - table lines: made from the grammar, mutated, and judged by a parser of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

/* ---- tables ---- */

/* Features without a value, with one, and tunables. */
enum { QUEUE, RETAIN, RETRIES, DELAY, TUNABLE, NR_FEATURES = TUNABLE + NR_TUNABLES };

static const struct tunable features[TUNABLE] = {
	{ "queue_if_no_path", 0, 0, false },
	{ "retain_attached_hw_handler", 0, 0, false },
	{ "pg_init_retries", 1, 50, false },
	{ "pg_init_delay_msecs", 0, 60000, false },
};

static const struct tunable *feature(int f)
{
	return f < TUNABLE ? &features[f] : &tunables[f - TUNABLE];
}

/* What a line should do: written from the grammar. */
struct opinion {
	enum verdict what;
	char echo[1 << 16];	/* TABLE without the handler */
	bool odd_handler;	/* its name has a character that the echo does not quote */
};

struct reader {
	char **argv;
	int argc;
	bool bio;	/* queue_mode bio */
};

static bool read_number(struct reader *r, unsigned int min, unsigned int max, unsigned int *value)
{
	if (!r->argc || !number(*r->argv, value) || *value < min || *value > max)
		return false;
	r->argv++;
	r->argc--;
	return true;
}

static bool read_count(struct reader *r, unsigned int max, unsigned int *value)
{
	return read_number(r, 0, max, value) && *value <= (unsigned int)r->argc;
}

static const char *read_word(struct reader *r)
{
	r->argc--;
	return *r->argv++;
}

static bool read_features(struct reader *r, char **echo)
{
	unsigned int left, i, n = 0, words = 0, value[NR_FEATURES] = { 0 };
	int order[NR_FEATURES];
	bool seen[NR_FEATURES] = { false };

	if (!read_count(r, 32, &left))
		return false;
	while (left) {
		const char *name = read_word(r);
		int f = 0;

		while (f < NR_FEATURES && strcasecmp(name, feature(f)->name))
			f++;
		left--;
		if (f == NR_FEATURES && strcasecmp(name, "queue_mode"))
			return false;
		if (f != QUEUE && f != RETAIN && !left--)
			return false;
		if (f == NR_FEATURES) {
			name = read_word(r);
			r->bio = !strcasecmp(name, "bio");
			if (!r->bio && strcasecmp(name, "rq") && strcasecmp(name, "mq"))
				return false;
			continue;
		}
		if (f >= RETRIES) {
			if (!tunable_value(feature(f), *r->argv, &value[f]))
				return false;
			read_word(r);
		}
		if (!seen[f]) {
			seen[f] = true;
			order[n++] = f;
			words += f < RETRIES ? 1 : 2;
		}
	}
	*echo += sprintf(*echo, "%u ", words);
	for (i = 0; i < n; i++) {
		int f = order[i];

		*echo += f < RETRIES ? sprintf(*echo, "%s ", feature(f)->name) :
			 value[f] == AUTO ? sprintf(*echo, "%s auto ", feature(f)->name) :
			 sprintf(*echo, "%s %u ", feature(f)->name, value[f]);
	}
	return true;
}

enum { RR, QL, ST, HST, IOA, NR_SELECTORS };
static char *const selectors[] = { "round-robin", "queue-length", "service-time",
				   "historical-service-time", "io-affinity" };

static unsigned int nr_processors(void)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);

	return nr < 1 ? 1 : nr > 16 ? 16 : nr;
}

/* A plain mask of processors must name one that no path before has; others, who knows. */
static bool read_mask(const char *word, unsigned int *mapped)
{
	size_t digits = strspn(word, "0123456789abcdefABCDEF");
	unsigned long mask;

	if (!digits || word[digits] || digits > 8)
		return true;
	mask = strtoul(word, NULL, 16);
	if (mask >> nr_processors() || !(mask & ~*mapped))
		return false;
	*mapped |= mask;
	return true;
}

static bool read_path(struct reader *r, unsigned int nr_words, int selector, char **echo,
		      bool *sure, unsigned int *mapped)
{
	unsigned int value[2] = { 1, 1 }, i;
	const char *name;
	int dev;

	if ((unsigned int)r->argc < 1 + nr_words)
		return false;
	name = read_word(r);
	dev = find_device(name);
	if (dev == -1 || nr_words > 1 + (unsigned int)(selector == ST) ||
	    nr_words < (unsigned int)(selector == IOA))
		return false;
	*sure &= dev >= 0;
	if (selector == IOA) {	/* how wide the echo is, only the kernel knows */
		*sure = false;
		return read_mask(read_word(r), mapped);
	}
	for (i = 0; i < nr_words; i++)
		if (!number(read_word(r), &value[i]))
			return false;
	if (value[1] > 100)
		return false;
	*echo += sprintf(*echo, "%s %u ", dev < 0 ? "?" : devs[dev], selector == HST && !nr_words ? 0 : value[0]);
	if (selector == ST)
		*echo += sprintf(*echo, "%u ", value[1]);
	return true;
}

/* The words of the group; only one selector has any. */
static bool read_selector(struct reader *r, unsigned int nr, int selector, char **echo)
{
	unsigned int weight = 972, threshold = 0;

	if (selector == HST) {
		if (nr > 2 || (nr > 0 && (!number(r->argv[0], &weight) || weight > 1023)) ||
		    (nr > 1 && !number(r->argv[1], &threshold)))
			return false;
		*echo += sprintf(*echo, "%u ", nr);
		if (nr > 0)
			*echo += sprintf(*echo, "%u ", weight);
		if (nr > 1)
			*echo += sprintf(*echo, "%u ", threshold);
	} else {
		*echo += sprintf(*echo, "0 ");
	}
	r->argv += nr;
	r->argc -= nr;
	return true;
}

static bool read_group(struct reader *r, char **echo, bool *sure)
{
	unsigned int nr_words, nr_paths, i, mapped = 0;
	const char *name;
	int s = 0;

	if (r->argc < 2)
		return false;
	name = read_word(r);
	while (s < NR_SELECTORS && strcmp(name, selectors[s]))
		s++;
	if (s == NR_SELECTORS)
		return false;
	*echo += sprintf(*echo, "%s ", name);
	if (!read_count(r, 1024, &nr_words) || !read_selector(r, nr_words, s, echo))
		return false;
	if (!read_number(r, 1, 1024, &nr_paths) || !read_number(r, 0, 1024, &nr_words))
		return false;
	*echo += sprintf(*echo, "%u %u ", nr_paths, 1 + (s == ST));
	for (i = 0; i < nr_paths; i++)
		if (!read_path(r, nr_words, s, echo, sure, &mapped))
			return false;
	return true;
}

static void judge(const char *text, struct opinion *v)
{
	char **argv = case_alloc(sizeof(char *) * (MAX_WORDS + 1));
	struct reader r = { argv, split(text, argv, MAX_WORDS) };
	unsigned int handler, groups, init, i;
	char *echo = v->echo;
	bool sure = true;

	v->what = REFUSE;
	v->odd_handler = false;
	if (r.argc > MAX_WORDS || !read_features(&r, &echo) || !read_count(&r, 1024, &handler))
		return;
	/* alua is attached to scsi_debug's disks; about others only the kernel knows */
	if (handler) {
		sure = handler == 1 && !strcmp(*r.argv, "alua");
		for (i = 0; r.argv[0][i]; i++)
			if (r.argv[0][i] == '\\' || kernel_space(r.argv[0][i]))
				v->odd_handler = true;
	}
	r.argv += handler;
	r.argc -= handler;
	if (!read_number(&r, 0, 1024, &groups) || !read_number(&r, 0, 1024, &init) ||
	    !groups != !init)
		return;
	if (!groups)	/* no path, no handler that could be wrong */
		sure = true;
	echo += sprintf(echo, "%u %u ", groups, init > groups ? 1 : init);
	for (i = 0; i < groups; i++)
		if (!read_group(&r, &echo, &sure))
			return;
	if (r.argc)
		return;
	/* The map is one of requests already. */
	if (r.bio)
		return;
	v->what = sure ? ACCEPT : EITHER;
}

static void make_features(struct line *l)
{
	int count = l->n, f;

	add(l, COUNT, "0");
	while (percent(45) && l->n - count < 31) {
		f = below(NR_FEATURES + 1);
		add(l, FEATURE, f < NR_FEATURES ? feature(f)->name : "queue_mode");
		if (f == NR_FEATURES)
			add(l, TEXT, percent(50) ? "rq" : "mq");
		else if (f >= RETRIES)
			add_tunable_value(l, feature(f));
	}
	l->word[count] = case_print("%d", l->n - count - 1);
}

static void make_group(struct line *l, unsigned int nr_paths)
{
	unsigned int s = below(NR_SELECTORS), words = below(s == ST ? 3 : 2), i, n;

	/* Each path of io-affinity has a processor of its own. */
	if (s == IOA && nr_paths > nr_processors())
		s = RR;
	if (s == IOA)
		words = 1;
	add(l, SELECTOR, selectors[s]);
	n = s == HST ? below(3) : percent(90) ? 0 : below(4);
	add_number(l, COUNT, n);
	for (i = 0; i < n; i++) {
		if (s == HST)
			add_number(l, NUMBER, i ? rnd() : below(1024));
		else
			add(l, TEXT, any_odd_word());
	}
	add_number(l, COUNT, nr_paths);
	add_number(l, COUNT, words);
	for (i = 0; i < nr_paths; i++) {
		add(l, DEVICE, any_device());
		if (words && s == IOA)
			add(l, NUMBER, case_print("%x", 1 << i));
		else if (words)
			add_number(l, NUMBER, percent(80) ? below(1001) : rnd());
		if (words > 1)
			add_number(l, NUMBER, below(101));
	}
}

static void make_table(struct line *l)
{
	unsigned int groups = percent(94) ? 1 + below(4) : percent(60) ? 0 : below(30), i;

	make_features(l);
	if (percent(15)) {
		add(l, COUNT, "1");
		add(l, HANDLER, "alua");
	} else {
		add(l, COUNT, "0");
	}
	add_number(l, COUNT, groups);
	add_number(l, COUNT, groups ? percent(90) ? 1 + below(groups) : 1 + below(1024) : 0);
	for (i = 0; i < groups; i++)
		make_group(l, percent(97) ? 1 + below(4) : 1 + below(50));
}

/* TABLE without its handler, to compare with what the grammar says. */
static void strip_handler(const char *table, char *out)
{
	unsigned int features = strtoul(table, NULL, 10), i;
	const char *p = table;

	for (i = 0; i <= features && p; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p) {
		strcpy(out, table);
		return;
	}
	memcpy(out, table, p - table);
	out += p - table;
	if (*p == '1' && strchr(p + 2, ' '))
		p = strchr(p + 2, ' ') + 1;
	else if (*p)
		p += 2;
	strcpy(out, p);
}

#define INACTIVE_TABLE (DM_STATUS_TABLE_FLAG | DM_QUERY_INACTIVE_TABLE_FLAG)

/* The echo of an accepted line: right, complete, and accepted with the same echo. */
static void check_echo(const char *text, const char *type, uint64_t len, const struct opinion *v)
{
	static char echo[1 << 18], again[1 << 18], bare[1 << 18];
	static struct info info;
	const char *bad;
	int err;

	err = dm_status(FUZZ_MAP, INACTIVE_TABLE, echo, sizeof(echo));
	if (err || !*echo) {
		case_failed(text, "TABLE of what was accepted: %s, \"%s\"", errname(err),
			    escaped(echo));
		return;
	}
	strip_handler(echo, bare);
	if (v->what == ACCEPT && strcmp(bare, v->echo)) {
		say("    expected: %s", escaped(v->echo));
		case_failed(text, "TABLE is not what was loaded: %s", escaped(bare));
	}
	if (percent(12)) {
		err = dm_status_in(FUZZ_MAP, INACTIVE_TABLE, again,
				   sizeof(again), below(strlen(echo) + 20));
		if (err != E2BIG && (err || strcmp(again, echo)))
			case_failed(text, "TABLE into a small buffer: %s, %s", errname(err),
				    escaped(again));
	}
	if (percent(25)) {
		err = dm_status(FUZZ_MAP, DM_QUERY_INACTIVE_TABLE_FLAG, again, sizeof(again));
		bad = err ? errname(err) : info_parse(again, &info);
		/* more groups or paths than the parser here has room for are no fault */
		if (bad && strcmp(bad, "groups") && strcmp(bad, "paths of a group"))
			case_failed(text, "INFO: %s: %s", bad, escaped(again));
	}
	if (v->odd_handler)
		return;
	err = dm_load(FUZZ_MAP, len, type, echo);
	if (!err)
		err = dm_status(FUZZ_MAP, INACTIVE_TABLE, again,
				sizeof(again));
	if (err)
		case_failed(text, "the echo is not accepted: %s: %s", errname(err), escaped(echo));
	else if (strcmp(echo, again))
		case_failed(text, "the echo echoes differently: %s", escaped(again));
	if (verbose)
		say("echo: %s", escaped(echo));
}

/* One case; true if it was accepted. */
static bool table_case(const char *type, uint64_t len)
{
	static struct opinion v;
	struct line *l = case_alloc(sizeof(*l));
	bool mutated = percent(62);
	int n, err;
	char *text;

	l->n = 0;
	make_table(l);
	for (n = mutated ? 1 + below(3) : 0; n > 0; n--)
		mutate(l);
	text = join(l);
	judge(text, &v);
	if (verbose)
		say("%s, must be %s: %s", mutated ? "mutated" : "valid", verdict_name(v.what),
		    escaped(text));
	if (!mutated && v.what == REFUSE)
		case_failed(text, "the fuzzer's own parser refuses a valid line");

	err = dm_load(FUZZ_MAP, len, type, text);
	if (verbose)
		say("load: %s", errname(err));
	if (err && (v.what == ACCEPT || !mutated))
		case_failed(text, "a valid line is refused: %s", errname(err));
	else if (err && !plausible(err))
		case_failed(text, "refused with %s", errname(err));
	else if (!err && v.what == REFUSE)
		case_failed(text, "a malformed line is accepted");
	if (!err) {
		check_echo(text, type, len, &v);
		/* Slow: it waits for RCU. Else the next accepted line replaces this one. */
		n = percent(8) ? dm_plain(DM_TABLE_CLEAR, FUZZ_MAP, 0) : 0;
		if (n)
			case_failed(text, "the table is not cleared: %s", errname(n));
	}
	return !err;
}

int do_tables(long count, const char *type, uint64_t len)
{
	long k, accepted = 0, done = 0;
	double t = now();
	int err = dm_plain(DM_DEV_CREATE, FUZZ_MAP, 0);

	if (err) {
		say("no map: %s", errname(err));
		return 2;
	}
	err = dm_load(FUZZ_MAP, len, type, "0 0 0 0");
	if (err) {
		say("no table: %s", errname(err));
		return 2;
	}
	find_nodes();
	for (k = verbose ? only_case : 0; k < count || k == only_case; k++) {
		case_begin(k);
		accepted += table_case(type, len);
		done++;
		if (verbose)
			break;
		progress("lines", done, count);
	}
	err = dm_plain(DM_DEV_REMOVE, FUZZ_MAP, 0);
	if (err)
		case_failed("", "the map is not removed: %s", errname(err));
	say("%.0f lines a second, seed %llu", done / (now() - t), (unsigned long long)seed);
	say("total %ld lines: %ld accepted, %ld refused, %d failed", done, accepted,
	    done - accepted, failures);
	return !!failures;
}

