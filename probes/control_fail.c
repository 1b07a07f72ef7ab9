// SPDX-License-Identifier: GPL-2.0
/* Control: must not compile, or every probe would say yes. */
#include <linux/device-mapper.h>

int probe(struct dm_target *ti);
int probe(struct dm_target *ti)
{
	return ti->mprr_there_is_no_such_field;
}
