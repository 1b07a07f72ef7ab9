// SPDX-License-Identifier: GPL-2.0
/*
 * differential-seen.c - what each target showed, what is a difference, and which are meant.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <regex.h>
#include <stdarg.h>

#include "differential.h"

/* ---- names ---- */

static struct { const char *name, *value; } names[64];
static int nr_names;

const char *value_of(const char *name)
{
	for (int i = 0; i < nr_names; i++)
		if (!strcmp(names[i].name, name))
			return names[i].value;
	return NULL;
}

void add_name(char *name_value)
{
	char *eq = strchr(name_value, '=');

	if (!eq || nr_names == sizeof(names) / sizeof(*names))
		return;
	*eq = 0;
	names[nr_names].name = name_value;
	names[nr_names++].value = eq + 1;
}

/* TEXT with each @NAME replaced; to be freed. The longest name that fits wins. */
char *fill(const char *text)
{
	size_t room = strlen(text) * 4 + 8192, n = 0;
	char *out = calloc(1, room);

	while (*text && n + 4100 < room) {
		int best = -1;

		if (*text == '@')
			for (int i = 0; i < nr_names; i++)
				if (!strncmp(text + 1, names[i].name, strlen(names[i].name)) &&
				    (best < 0 || strlen(names[i].name) > strlen(names[best].name)))
					best = i;
		if (best < 0) {
			out[n++] = *text++;
			continue;
		}
		n += sprintf(out + n, "%s", names[best].value);
		text += 1 + strlen(names[best].name);
	}
	return out;
}

/* ---- what was seen ---- */

struct seen {
	char *step, *aspect, *text;
};

static struct record {
	struct seen *seen;
	int nr;
} records[2];

char step[512];
int failed, kmsg;

void saw(const char *aspect, const char *format, ...)
{
	struct record *r = &records[now];
	va_list args;

	r->seen = realloc(r->seen, (r->nr + 1) * sizeof(*r->seen));
	r->seen[r->nr].step = strdup(step);
	r->seen[r->nr].aspect = strdup(aspect);
	va_start(args, format);
	if (vasprintf(&r->seen[r->nr].text, format, args) < 0)
		exit(2);
	va_end(args);
	r->nr++;
}

static void forget(void)
{
	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < records[t].nr; i++) {
			free(records[t].seen[i].step);
			free(records[t].seen[i].aspect);
			free(records[t].seen[i].text);
		}
		records[t].nr = 0;
	}
}

/* ---- differences that are meant ---- */

static struct rule {
	char *name, *where, *aspect, *text[2];
	regex_t where_re, text_re[2];
	int used, due;	/* due: it must occur on this kernel */
} *rules;
static int nr_rules;

/* word W is one of LIST's, which are separated by blanks */
int listed(const char *list, const char *w)
{
	size_t n = strlen(w);

	for (const char *p = list; (p = strstr(p, w)); p += n)
		if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return 1;
	return 0;
}

static void compile(regex_t *re, const char *text, const char *rule)
{
	if (regcomp(re, text, REG_EXTENDED)) {
		printf("Bail out! rule %s: bad expression %s\n", rule, text);
		exit(2);
	}
}

/* name | section | kernels | where | aspect | in-kernel | here */
static void add_rule(char *line)
{
	char *field[7], *p = line;
	struct rule *r;
	int n = 0;

	while (n < 7 && p) {
		char *next = strstr(p, " | ");

		if (next) {
			*next = 0;
			next += 3;
		}
		while (*p == ' ')
			p++;
		field[n++] = p;
		for (char *end = p + strlen(p); end > p && isspace(end[-1]);)
			*--end = 0;
		p = next;
	}
	if (n != 7) {
		printf("Bail out! a rule needs seven fields: %s\n", line);
		exit(2);
	}
	if (strcmp(field[2], "*") && !listed(field[2], kernel))
		return;
	rules = realloc(rules, (nr_rules + 1) * sizeof(*rules));
	r = &rules[nr_rules++];
	memset(r, 0, sizeof(*r));
	r->name = strdup(field[0]);
	r->due = listed(sections, field[1]);
	r->aspect = strdup(field[4]);
	compile(&r->where_re, field[3], r->name);
	compile(&r->text_re[0], field[5], r->name);
	compile(&r->text_re[1], field[6], r->name);
}

void read_rules(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	int inside = 0;

	if (!f) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "```", 3))
			inside = !strcmp(line, "```differences");
		else if (inside && *line && *line != '#')
			add_rule(line);
	}
	fclose(f);
}

static int matches(const regex_t *re, const char *text)
{
	return !regexec(re, text, 0, NULL, 0);
}

/* what was used is remembered by the caller: tables and scenarios may be played in two calls */
void print_rules(void)
{
	for (struct rule *r = rules; r < rules + nr_rules; r++)
		printf("# rule %s %s %d\n", r->name, r->due ? "due" : "off", r->used);
}

int matches_text(const char *re, const char *text)
{
	regex_t compiled;
	int ok;

	compile(&compiled, re, re);
	ok = matches(&compiled, text);
	regfree(&compiled);
	return ok;
}

/* TEXT without what RE matches in it; 0 if nothing does */
static int without(const regex_t *re, const char *text, char *rest, size_t room)
{
	regmatch_t m;
	size_t n = 0;
	int flags = 0, found = 0;

	while (*text && !regexec(re, text, 1, &m, flags)) {
		found = 1;
		n += snprintf(rest + n, n < room ? room - n : 0, "%.*s", (int)m.rm_so, text);
		if (m.rm_eo == m.rm_so)
			break;
		text += m.rm_eo;
		flags = REG_NOTBOL;
	}
	if (!found && !regexec(re, text, 1, &m, 0))
		found = 1;
	snprintf(rest + n, n < room ? room - n : 0, "%s", text);
	return found;
}

/* The rule that allows A and B to differ: in what its two expressions match, and nowhere else. */
static struct rule *allowed(const char *where, const struct seen *a, const struct seen *b)
{
	static char rest[2][16384];
	char full[4096];

	snprintf(full, sizeof(full), "%s: %s", where, a->step);
	for (struct rule *r = rules; r < rules + nr_rules; r++)
		if ((!strcmp(r->aspect, "*") || !strcmp(r->aspect, a->aspect)) && matches(&r->where_re, full) &&
		    without(&r->text_re[0], a->text, rest[0], sizeof(rest[0])) &&
		    without(&r->text_re[1], b->text, rest[1], sizeof(rest[1])) &&
		    !strcmp(rest[0], rest[1])) {
			r->used++;
			return r;
		}
	return NULL;
}

/* the end of a table line or scenario: one result */
void compare(const char *where)
{
	struct record *a = &records[0], *b = &records[1];
	char differs[256] = "";
	int bad = 0;

	for (int i = 0; i < a->nr || i < b->nr; i++) {
		const struct seen *x = i < a->nr ? &a->seen[i] : NULL, *y = i < b->nr ? &b->seen[i] : NULL;
		struct rule *r = NULL;

		if (x && y && !strcmp(x->step, y->step) && !strcmp(x->aspect, y->aspect)) {
			if (!strcmp(x->text, y->text))
				continue;
			r = allowed(where, x, y);
		}
		if (r) {
			if (!strstr(differs, r->name))
				snprintf(differs + strlen(differs), sizeof(differs) - strlen(differs),
					 "%s%s", *differs ? ", " : "", r->name);
			/* a table that only one of them takes: no more to compare */
			if (!strcmp(x->aspect, "errno") && !strncmp(where, "table: ", 7))
				break;
			continue;
		}
		if (!bad++)
			printf("not ok - %.300s: the same, or a difference that is meant\n", where);
		if (bad <= 6)
			printf("#     step:      %.200s\n#     aspect:    %s%s%s\n#     in-kernel: %.900s\n#     here:      %.900s\n",
			       x ? x->step : y->step, x ? x->aspect : y->aspect,
			       x && y && strcmp(x->aspect, y->aspect) ? " and " : "",
			       x && y && strcmp(x->aspect, y->aspect) ? y->aspect : "",
			       x ? x->text : "(nothing)", y ? y->text : "(nothing)");
		if (x && y && (strcmp(x->step, y->step) || strcmp(x->aspect, y->aspect)))
			break;
	}
	if (bad)
		failed++;
	else if (*differs)
		printf("ok - %.300s: differs as meant: %s\n", where, differs);
	else
		printf("ok - %.300s: the same (%d observations)\n", where, a->nr);
	fflush(stdout);
	forget();
}

/* ---- the kernel log: the meaning of each line ---- */

/* First match wins. "-": says nothing that the other must say, too. */
static const struct { const char *meaning, *re; } meanings[] = {
	{ "-", "error adding target to table|skipping sending uevent|repeat_count|repeat count .*deprecated|table word \"" },
	/* rate-limited, so not every one is there; INFO and uevents tell the same */
	{ "-", "([Ff]ailing|[Rr]einstating) path" },
	{ "timed-out", "queue_if_no_path.*timeout|no path came back" },
	{ "message", "message|PG number" },
	{ "handler-dropped", "[Nn]ot.*SCSI|non.?SCSI|only allowed for SCSI" },
	{ "refused: device", "error getting device|its own path" },
	{ "refused: selector", "unknown (path )?selector" },
	{ "refused: handler", "hardware handler|handler (arg|word)" },
	{ "refused: initial group", "initial (priority |path )?group" },
	{ "refused: features", "feature|pg_init_|queue_mode|queue mode" },
	{ "refused: groups", "a group needs|priority group|number of (path )?groups|group count|left over" },
	{ "refused: paths", "number of paths" },
	/* the in-kernel target does not tell those of the group from those of a path */
	{ "refused: selector words", "selector|per path|repeat|throughput|path arg|path param|round-robin|queue-length|service-time|queue.length|service.time" },
	{ "refused by the core", "device-mapper: table: [0-9:]+: " },
	{ "-", "mpath-rr: .*too large" },
};

void kmsg_skip(void)
{
	lseek(kmsg, 0, SEEK_END);
}

/* the set of meanings of what dm said since the last call */
void see_log(void)
{
	static regex_t re[sizeof(meanings) / sizeof(*meanings)], ours;
	static int compiled;
	char rec[8192], *text, *end;
	int found[sizeof(meanings) / sizeof(*meanings)] = { 0 };
	char out[2048] = "";
	ssize_t n;

	if (!compiled++) {
		compile(&ours, "device-mapper: ", "log");
		for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
			compile(&re[i], meanings[i].re, "log");
	}
	for (;;) {
		size_t i;

		n = read(kmsg, rec, sizeof(rec) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		rec[n] = 0;
		text = strchr(rec, ';');
		if (!text || !matches(&ours, text))
			continue;
		end = strchr(text, '\n');
		if (end)
			*end = 0;
		for (i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
			if (matches(&re[i], text))
				break;
		if (i < sizeof(meanings) / sizeof(*meanings))
			found[i] = 1;
		else
			snprintf(out + strlen(out), sizeof(out) - strlen(out), "[%s]", text + 1);
		if (getenv("MPRR_VERBOSE"))
			printf("#   log %s: %s\n", i < sizeof(meanings) / sizeof(*meanings) ?
			       meanings[i].meaning : "?", text + 1);
	}
	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (found[i] && *meanings[i].meaning != '-')
			snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s",
				 *out ? ", " : "", meanings[i].meaning);
	saw("log", "%s", out);
}

