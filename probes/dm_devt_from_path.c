// SPDX-License-Identifier: GPL-2.0
/* dm_devt_from_path() replaced dm_get_dev_t() in 6.9. */
#include <linux/device-mapper.h>

int probe(const char *path, dev_t *dev);
int probe(const char *path, dev_t *dev)
{
	return dm_devt_from_path(path, dev);
}
