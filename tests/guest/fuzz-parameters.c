// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-parameters.c - module parameters, at load and at run time.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

/* ---- module parameters ---- */

#define PARAMETERS "/sys/module/dm_multipath_rr/parameters/"

/* A parameter, what it is now, and whether it may be written. */
static struct parameter {
	const char *name;
	bool is_bool, writable;
	uint64_t value;		/* expected */
} parameters[] = {
	{ "takeover", true, false, 0 },
	{ "queue_if_no_path_timeout_secs", false, true, 0 },
};

#define NR_PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

static const char *const odd_values[] = {
	"0", "1", "y", "n", "Y", "N", "on", "off", "ON", "oFF", "o", "yes", "no", "t", "f", "true",
	"", "2", "5", "60", "86400", "31536000", "31536001", "1000000000", "2147483648", "4294967295",
	"4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615",
	"18446744073709551616", "99999999999999999999", "-1", "-0", "+5", "++5", "0x10", "0X1F", "0x",
	"010", "08", "0b1", "5s", "5 ", " 5", "5\n", "5\n\n", "\n", "1e3", "1.5", "\xc3\xa4", "\x01",
	"1,2", "%d", "0000000000000000000000007", "0xffffffffffffffff", "0x10000000000000000",
	"01777777777777777777777", "soon", "never", "''", "'",
};

/* kstrtobool() */
static int parse_bool(const char *s, uint64_t *value)
{
	switch (*s) {
	case 'y': case 'Y': case '1': *value = 1; return ACCEPT;
	case 'n': case 'N': case '0': *value = 0; return ACCEPT;
	case 't': case 'T': *value = 1; return EITHER;	/* newer kernels */
	case 'f': case 'F': *value = 0; return EITHER;
	case 'o': case 'O':
		*value = s[1] == 'n' || s[1] == 'N';
		return *value || s[1] == 'f' || s[1] == 'F' ? ACCEPT : REFUSE;
	}
	return REFUSE;
}

/* kstrtoul(s, 0, ...): 0x is 16, 0 is 8; a plus, and one newline at the end, are right */
static int parse_ulong(const char *s, uint64_t *value)
{
	unsigned int base = 10, digit;
	uint64_t v = 0;
	int n = 0;

	s += *s == '+';
	if (*s == '0') {
		base = 8;
		if ((s[1] | 0x20) == 'x' && isxdigit((unsigned char)s[2])) {
			base = 16;
			s += 2;
		}
	}
	for (; isxdigit((unsigned char)*s); s++, n++) {
		digit = isdigit((unsigned char)*s) ? *s - '0' : (*s | 0x20) - 'a' + 10;
		if (digit >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return REFUSE;
	}
	s += *s == '\n';
	*value = v;
	return n && !*s ? ACCEPT : REFUSE;
}

static int parse_value(const struct parameter *p, const char *s, uint64_t *value)
{
	return p->is_bool ? parse_bool(s, value) : parse_ulong(s, value);
}

static char *any_value(void)
{
	if (percent(15))
		return case_print("%llu", (unsigned long long)(rnd() >> below(64)));
	if (percent(8))
		return with_piece(ANY(odd_values));
	if (percent(3))
		return long_word("9");
	return ANY(odd_values);
}

static bool module_there(void)
{
	return !access("/sys/module/dm_multipath_rr", F_OK);
}

static int read_parameter(const char *name, char *text, size_t size)
{
	int fd = open(case_print(PARAMETERS "%s", name), O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	text[strcspn(text, "\n")] = 0;
	return n < 0;
}

static void check_parameters(const char *text)
{
	char is[64], want[64];
	unsigned int i;

	for (i = 0; i < NR_PARAMETERS; i++) {
		struct parameter *p = &parameters[i];

		snprintf(want, sizeof(want), "%llu", (unsigned long long)p->value);
		if (p->is_bool)
			strcpy(want, p->value ? "Y" : "N");
		if (read_parameter(p->name, is, sizeof(is)) || strcmp(is, want))
			case_failed(text, "%s reads %s, not %s", p->name, is, want);
	}
}

/*
 * A map without paths that queues: its time-out is started with the value in
 * force. The map goes at once; a time-out that is still to come goes with it.
 */
static void use_parameters(const char *text)
{
	int err = dm_plain(DM_DEV_CREATE, FUZZ_MAP, 0);

	if (!err)
		err = dm_load(FUZZ_MAP, 2048, "mpath-rr", "1 queue_if_no_path 0 0 0");
	if (!err && percent(50))
		err = dm_plain(DM_DEV_SUSPEND, FUZZ_MAP, 0);	/* resume: makes it live */
	if (err)
		case_failed(text, "a map without paths: %s", errname(err));
	err = dm_plain(DM_DEV_REMOVE, FUZZ_MAP, 0);
	/* udev may look at it: it goes when udev is done */
	if (err == EBUSY)
		err = dm_plain(DM_DEV_REMOVE, FUZZ_MAP, DM_DEFERRED_REMOVE);
	if (err)
		case_failed(text, "the map is not removed: %s", errname(err));
}

static int unload(void)
{
	double end = now() + 20;
	int err;

	do {
		err = syscall(SYS_delete_module, "dm_multipath_rr", O_NONBLOCK) ? errno : 0;
	} while ((err == EAGAIN || err == EBUSY) && now() < end && !usleep(20000));
	return err;
}

static void write_parameter(void)
{
	struct parameter *p = &parameters[below(4) ? 1 : 0];
	const char *text = any_value();
	char *path = case_print(PARAMETERS "%s", p->name);
	int want = parse_value(p, text, &(uint64_t){ 0 }), err = 0;
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		err = errno;
	else if (*text && write(fd, text, strlen(text)) < 0)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (verbose)
		say("write \"%s\" to %s: %s", escaped(text), p->name, errname(err));
	if (!p->writable) {
		if (fd >= 0)
			case_failed(text, "%s can be opened for writing", p->name);
		return;
	}
	if (!*text)	/* nothing is written */
		return;
	if (strlen(text) < 4096 && (want == ACCEPT) != !err)
		case_failed(text, "written to %s: %s", p->name, errname(err));
	else if (err && err != EINVAL && err != ERANGE)
		case_failed(text, "written to %s: %s", p->name, errname(err));
	if (!err)
		parse_value(p, text, &p->value);
	check_parameters(text);
}

/* Parameters of one load as the kernel splits them; true: it must be accepted. */
static int make_parameters(char **line)
{
	unsigned int n = below(4), i, k;
	int want = ACCEPT, one;
	char *text = "", *value;

	for (i = 0; i < NR_PARAMETERS; i++)
		parameters[i].value = 0;
	for (i = 0; i < n; i++) {
		k = below(NR_PARAMETERS + 1);
		value = any_value();
		if (strlen(value) > 900)
			value = "1";
		if (k == NR_PARAMETERS) {	/* the kernel warns, no more */
			text = case_print("%s no_such_parameter=1", text);
			continue;
		}
		if (parameters[k].is_bool && percent(10)) {
			text = case_print("%s %s", text, parameters[k].name);
			parameters[k].value = 1;
			continue;
		}
		/* Blanks end a value, double quotes hold it together. */
		if (strchr(value, '"'))
			value = "7";
		text = strpbrk(value, " \t\n\v\f\r\xa0") || percent(10) ?
			case_print("%s %s=\"%s\"", text, parameters[k].name, value) :
			case_print("%s %s=%s", text, parameters[k].name, value);
		one = want == ACCEPT || want == EITHER ?
			parse_value(&parameters[k], value, &parameters[k].value) : REFUSE;
		if (one != ACCEPT)
			want = one == REFUSE || want == REFUSE ? REFUSE : EITHER;
	}
	*line = text;
	return want;
}

static bool parameter_case(int ko)
{
	char *line;
	int want = make_parameters(&line), err, n;

	if (verbose)
		say("load with \"%s\", must be %s", escaped(line),
		    want == ACCEPT ? "accepted" : want == REFUSE ? "refused" : "either");
	err = syscall(SYS_finit_module, ko, line, 0) ? errno : 0;
	if (verbose)
		say("load: %s", errname(err));
	if ((want == ACCEPT && err) || (want == REFUSE && !err))
		case_failed(line, "load: %s", errname(err));
	else if (err && err != EINVAL && err != ERANGE && err != ENOSPC)
		case_failed(line, "load: %s", errname(err));
	if (err) {
		if (module_there())
			case_failed(line, "a refused load leaves the module behind");
		return false;
	}
	check_parameters(line);
	for (n = below(6); n > 0; n--)
		write_parameter();
	use_parameters(line);
	err = unload();
	if (err || module_there())
		case_failed(line, "it does not unload: %s", errname(err));
	return true;
}

int do_parameters(long count, const char *file)
{
	int ko = open(file, O_RDONLY | O_CLOEXEC);
	long k, accepted = 0, done = 0;
	double t = now();

	if (ko < 0) {
		perror(file);
		return 2;
	}
	for (k = verbose ? only_case : 0; k < count || k == only_case; k++) {
		case_begin(k);
		accepted += parameter_case(ko);
		done++;
		if (verbose)
			break;
		progress("loads", done, count);
	}
	say("%.1f loads a second, seed %llu", done / (now() - t), (unsigned long long)seed);
	say("total %ld loads: %ld accepted, %ld refused, %d failed", done, accepted, done - accepted,
	    failures);
	return !!failures;
}

