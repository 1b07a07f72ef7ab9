// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-words.c - lines of words: built, mutated, and split as the kernel does it.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

/* ---- words ---- */

int nr_devs;
char **devs;
char *nodes[64];

void find_nodes(void)
{
	char link[64], to[512], *name;
	ssize_t n;
	int i;

	for (i = 0; i < nr_devs; i++) {
		snprintf(link, sizeof(link), "/sys/dev/block/%s", devs[i]);
		n = readlink(link, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = 0;
		name = strrchr(to, '/');
		if (asprintf(&nodes[i], "/dev/%s", name ? name + 1 : "?") < 0)
			exit(2);
	}
}

void add(struct line *l, enum kind kind, char *word)
{
	if (l->n == MAX_WORDS)
		return;
	l->word[l->n] = word;
	l->kind[l->n++] = kind;
}

void add_number(struct line *l, enum kind kind, unsigned int value)
{
	add(l, kind, case_print("%u", value));
}

char *join(const struct line *l)
{
	size_t size = 1;
	char *out, *o;
	int i;

	for (i = 0; i < l->n; i++)
		size += strlen(l->word[i]) + 1;
	out = o = case_alloc(size);
	*o = 0;
	for (i = 0; i < l->n; i++)
		o += sprintf(o, "%s%s", i ? " " : "", l->word[i]);
	return out;
}

/* As the kernel does it: Latin-1's no-break space is a blank, too. */
bool kernel_space(unsigned char c)
{
	return (c >= 9 && c <= 13) || c == ' ' || c == 0xa0;
}

/* Split like dm_split_args(): blanks separate, a backslash quotes any character. */
int split(const char *text, char **argv, int max)
{
	char *out = case_alloc(strlen(text) + 2);
	int argc = 0;

	for (;;) {
		while (*text && kernel_space(*text))
			text++;
		if (!*text)
			return argc;
		if (argc < max)
			argv[argc] = out;
		argc++;
		while (*text && !kernel_space(*text)) {
			if (*text == '\\' && text[1])
				text++;
			*out++ = *text++;
		}
		*out++ = 0;
	}
}

/* Digits only, at most 32 bits; one newline at the end, as kstrtouint() has it. */
bool number(const char *word, unsigned int *value)
{
	unsigned long long v = 0;
	const char *p = word;

	for (; isdigit((unsigned char)*p); p++) {
		v = v * 10 + *p - '0';
		if (v > UINT_MAX)
			return false;
	}
	if (p == word || (*p && strcmp(p, "\n")))
		return false;
	*value = v;
	return true;
}

const struct tunable tunables[NR_TUNABLES] = {
	{ "merge_deadline_us", 0, 100000, true },
	{ "max_inflight", 1, 65536, true },
	{ "rr_min_io", 1, 1000000, true },
	{ "rr_min_io_bytes", 0, 1 << 30, false },
	{ "no_path_timeout_secs", 0, 86400 * 365, false },
};

const struct tunable *find_tunable(const char *name)
{
	unsigned int i;

	for (i = 0; i < NR_TUNABLES; i++)
		if (!strcasecmp(name, tunables[i].name))
			return &tunables[i];
	return NULL;
}

bool tunable_value(const struct tunable *t, const char *word, unsigned int *value)
{
	if (t->may_be_auto && !strcasecmp(word, "auto")) {
		*value = AUTO;
		return true;
	}
	return number(word, value) && *value >= t->min && *value <= t->max;
}

void add_tunable_value(struct line *l, const struct tunable *t)
{
	if (t->may_be_auto && percent(30))
		add(l, TEXT, "auto");
	else if (percent(10))
		add_number(l, NUMBER, percent(50) ? t->min : t->max);
	else
		add_number(l, NUMBER, t->min + below(t->max - t->min + 1));
}

/* Index of a device, -1: certainly no path of ours, -2: who knows. */
int find_device(const char *word)
{
	unsigned int major, minor, a, b;
	int i, used = 0;

	for (i = 0; i < nr_devs; i++)
		if (!strcmp(word, devs[i]) || !strcmp(word, nodes[i]))
			return i;
	/* Numbers in another spelling; what wraps around is the DM core's business. */
	if (sscanf(word, "%9u:%9u%n", &major, &minor, &used) != 2 || word[used])
		return -2;
	if (!isdigit((unsigned char)word[0]) || !isdigit((unsigned char)strchr(word, ':')[1]))
		return -2;
	for (i = 0; i < nr_devs; i++)
		if (sscanf(devs[i], "%u:%u", &a, &b) == 2 && a == major && b == minor)
			return i;
	return -1;
}

/* ---- mutations, for tables and messages ---- */

static const char *const odd_numbers[] = {
	"-1", "-0", "+1", "0x1", "0X10", "1.0", "1e3", "01", "007", "000", "1x", "x1", "1,", ",",
	"1023", "1024", "1025", "65535", "65536", "2147483647", "2147483648", "4294967295",
	"4294967296", "4294967297", "4294967300", "9223372036854775807", "9223372036854775808",
	"18446744073709551615", "18446744073709551616", "18446744073709551617",
	"340282366920938463463374607431768211456", "-2147483648", "-4294967295", "0b1", "1_0",
	"\\1", "1\\\n", "1\\ ", "\\ 1", "\xd9\xa1", "\xef\xbc\x91", "inf", "nan", "", "''", "\"1\"",
	"00000000000000000000000000000000000000000000000000000000000000001",
};

static const char *const odd_pieces[] = {
	"\x01", "\x07", "\x1b[31m", "\x7f", "\t", "\\\t", "\n", "\\\n", "\r", "\v", "\f", "\\ ",
	"\\", "\\\\", "%s%n", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff\xfe", "\xa0",
	"\\\xa0", "\xc3\xa4\xa0", "'", "\"", "`id`", "$(id)", ";", "|", "*", "?", "/", "..", ":",
	"@", "#", "=",
};

static const char *const odd_words[] = {
	"round-robin", "queue-length", "service-time", "queue_if_no_path", "pg_init_retries",
	"pg_init_delay_msecs", "retain_attached_hw_handler", "queue_mode", "rq", "mq", "bio",
	"alua", "rdac", "none", "-", "--", "0", "1", "2", "3", "8", "fail_path", "switch_group",
	"historical-service-time", "io-affinity", "no_such_word", "\\\\", "@stats_list", "@",
};

static const char *const odd_devices[] = {
	"250:77", "99999999:1", "/dev/nosuchdisk", "nosuchdisk", "8:", ":16", ":", "/dev/null",
	"/dev",
	"/", "/dev/zero/x", "4294967295:4294967295", "-8:0", "8:-1", "8:0:0", "0:0",
	"/proc/self/mem",
};

int any_of_kind(const struct line *l, enum kind a, enum kind b)
{
	int i, n = 0, found = -1;

	for (i = 0; i < l->n; i++)
		if ((l->kind[i] == a || l->kind[i] == b) && below(++n) == 0)
			found = i;
	return found;
}

static void remove_word(struct line *l, int at)
{
	memmove(l->word + at, l->word + at + 1, (l->n - at - 1) * sizeof(l->word[0]));
	memmove(l->kind + at, l->kind + at + 1, (l->n - at - 1) * sizeof(l->kind[0]));
	l->n--;
}

static void insert_word(struct line *l, int at, char *word)
{
	if (l->n == MAX_WORDS)
		return;
	memmove(l->word + at + 1, l->word + at, (l->n - at) * sizeof(l->word[0]));
	memmove(l->kind + at + 1, l->kind + at, (l->n - at) * sizeof(l->kind[0]));
	l->word[at] = word;
	l->kind[at] = TEXT;
	l->n++;
}

char *long_word(const char *word)
{
	static const unsigned int lengths[] = {
		15, 16, 17, 127, 128, 129, 255, 256, 1023, 4095, 4096, 16384, 70000
	};
	unsigned int n = lengths[below(percent(90) ? 10 : 13)];
	char *out = case_alloc(n + 1);

	memset(out, *word && *word != '\\' ? *word : 'x', n);
	out[n] = 0;
	return out;
}

char *with_piece(const char *word)
{
	unsigned int at = below(strlen(word) + 1);

	return case_print("%.*s%s%s", at, word, ANY(odd_pieces), word + at);
}

char *flip_case(const char *word)
{
	char *out = case_print("%s", word), *p;

	for (p = out; *p; p++)
		if (isalpha((unsigned char)*p) && percent(50))
			*p ^= 0x20;
	return out;
}

static char *other_spelling(const char *number)
{
	switch (below(6)) {
	case 0:
		return case_print("0%s", number);
	case 1:
		return case_print("0000000000000000%s", number);
	case 2:
		return case_print("%llu", strtoull(number, NULL, 10) + (1ull << 32));
	case 3:
		return case_print("+%s", number);
	case 4:
		return case_print("0x%llx", strtoull(number, NULL, 10));
	default:
		return case_print("%s\\\n", number);
	}
}

static void flip_bit(struct line *l, int at)
{
	char *word = case_print("%s", l->word[at]);

	if (*word)
		word[below(strlen(word))] ^= 1 << below(7);
	l->word[at] = word;
}

void mutate(struct line *l)
{
	int at = below(l->n), other = below(l->n), i;
	char *word;

	if (!l->n)
		return;
	switch (below(17)) {
	case 0: case 1:		/* a count is off by one */
		i = any_of_kind(l, COUNT, COUNT);
		if (i >= 0)
			l->word[i] = case_print("%lu", strtoul(l->word[i], NULL, 10) +
						(percent(50) ? 1 : -1));
		break;
	case 2: case 3:		/* a number that is odd */
		i = any_of_kind(l, COUNT, NUMBER);
		if (i >= 0)
			l->word[i] = ANY(odd_numbers);
		break;
	case 4:			/* the same number, spelt differently: some are right */
		i = any_of_kind(l, COUNT, NUMBER);
		if (i >= 0)
			l->word[i] = other_spelling(l->word[i]);
		break;
	case 5:			/* the tail is missing */
		l->n = at;
		break;
	case 6:			/* one word too many */
		insert_word(l, at, percent(50) ? ANY(odd_words) : ANY(odd_numbers));
		break;
	case 7:
		insert_word(l, at, l->word[at]);
		break;
	case 8:
		word = l->word[at];
		l->word[at] = l->word[other];
		l->word[other] = word;
		break;
	case 9:
		l->word[at] = with_piece(l->word[at]);
		break;
	case 10:
		l->word[at] = long_word(l->word[at]);
		break;
	case 11:		/* an empty word is no word */
		if (percent(50))
			l->word[at] = "";
		else
			remove_word(l, at);
		break;
	case 12:		/* one that is known, where it does not belong */
		i = percent(50) ? any_of_kind(l, SELECTOR, FEATURE) : at;
		l->word[i < 0 ? at : i] = ANY(odd_words);
		break;
	case 13:
		i = percent(50) ? any_of_kind(l, FEATURE, SELECTOR) : at;
		i = i < 0 ? at : i;
		l->word[i] = flip_case(l->word[i]);
		break;
	case 14:
		i = any_of_kind(l, DEVICE, DEVICE);
		if (i >= 0)
			l->word[i] = ANY(odd_devices);
		break;
	case 15:
		if (l->kind[at] != DEVICE)	/* 1:0 and the like: modprobe would run */
			flip_bit(l, at);
		break;
	case 16:		/* more of it */
		for (i = percent(90) ? below(20) : below(1500); i > 0; i--)
			add(l, l->kind[at], l->word[at]);
		break;
	}
}

char *any_odd_word(void)
{
	return ANY(odd_words);
}

char *any_device(void)
{
	int i = below(nr_devs);

	return percent(12) ? nodes[i] : devs[i];
}

const char *verdict_name(enum verdict what)
{
	return what == ACCEPT ? "accepted" : what == REFUSE ? "refused" : "either";
}

/* What the lookup of a device, and a wrong word, may be refused with. */
bool plausible(int err)
{
	switch (err) {
	case EINVAL: case ENOMEM: case ENXIO: case ENODEV: case ENOENT: case EBUSY: case EOVERFLOW:
	case ENOTBLK: case ENAMETOOLONG: case ENOTDIR: case EACCES: case ELOOP:
		return true;
	}
	return false;
}
