// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz-counters.c - what the map's INFO status says when nothing runs: all paths
 * active, no group disabled, nothing in flight.
 */
#include <stdbool.h>
#include <stdio.h>

#include "fuzz.h"

static const char *read_info(const char *map, struct info *info)
{
	static char text[1 << 16];
	int err = dm_status(map, 0, text, sizeof(text));
	const char *bad = err ? errname(err) : info_parse(text, info);

	if (bad)
		wrong("INFO: %s: %s", bad, text);
	return bad ? NULL : text;
}

static bool busy(const struct info_path *p)
{
	return p->nr_words && p->words[0];
}

bool counters_are_zero(const char *map)
{
	static struct info info;
	unsigned int g, i;

	if (!read_info(map, &info))
		return true;
	for (g = 0; g < info.nr_groups; g++)
		for (i = 0; i < info.group[g].nr_paths; i++)
			if (busy(&info.group[g].path[i]))
				return false;
	return true;
}

void counters_check(const char *map)
{
	static struct info info;
	const char *text = read_info(map, &info);
	unsigned int g, i;

	if (!text)
		return;
	for (g = 0; g < info.nr_groups; g++) {
		for (i = 0; i < info.group[g].nr_paths; i++) {
			struct info_path *p = &info.group[g].path[i];

			if (p->state != 'A' || busy(p))
				wrong("path %s is %c with %ld in flight: %s", p->dev, p->state,
				      p->nr_words ? p->words[0] : 0, text);
		}
		if (info.group[g].state == 'D')
			wrong("group %u is disabled: %s", g + 1, text);
	}
}
