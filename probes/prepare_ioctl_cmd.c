// SPDX-License-Identifier: GPL-2.0
/* target_type.prepare_ioctl takes the command and a forward flag since 6.16. */
#include <linux/device-mapper.h>

int probe(const struct target_type *type, struct dm_target *ti,
	  struct block_device **bdev, bool *forward);
int probe(const struct target_type *type, struct dm_target *ti,
	  struct block_device **bdev, bool *forward)
{
	return type->prepare_ioctl(ti, bdev, 0, 0, forward);
}
