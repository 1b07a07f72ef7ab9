/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dm.h - device-mapper ioctls for the C programs of the guest tests.
 *
 * Each call returns 0, the errno, or DM_NO_TABLE for a message that the core
 * swallowed because the map had no table.
 */
#ifndef MPRR_TEST_DM_H
#define MPRR_TEST_DM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DM_NO_TABLE	(-1)

static inline const char *errname(int e)
{
	if (e == DM_NO_TABLE)
		return "no table";
	return e ? strerrorname_np(e) ? strerrorname_np(e) : "E?" : "ok";
}

static inline int dm_open(void)
{
	int fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror("/dev/mapper/control");
		exit(2);
	}
	return fd;
}

static inline int dm_call(int fd, unsigned long cmd, struct dm_ioctl *io, const char *map)
{
	int r;

	io->version[0] = DM_VERSION_MAJOR;
	io->data_start = sizeof(*io);
	snprintf(io->name, sizeof(io->name), "%s", map);
	r = ioctl(fd, cmd, io);
	return r < 0 ? errno : r > 0 ? DM_NO_TABLE : 0;
}

static inline int dm_flags(int fd, unsigned long cmd, const char *map, unsigned int flags,
			   unsigned long long *dev)
{
	struct dm_ioctl io = { .data_size = sizeof(io), .flags = flags };
	int err = dm_call(fd, cmd, &io, map);

	if (dev)
		*dev = io.dev;
	return err;
}

static inline int dm_create(int fd, const char *map, unsigned long long *dev)
{
	return dm_flags(fd, DM_DEV_CREATE, map, 0, dev);
}

static inline int dm_remove(int fd, const char *map)
{
	return dm_flags(fd, DM_DEV_REMOVE, map, 0, NULL);
}

static inline int dm_clear(int fd, const char *map)
{
	return dm_flags(fd, DM_TABLE_CLEAR, map, 0, NULL);
}

static inline int dm_resume(int fd, const char *map)
{
	return dm_flags(fd, DM_DEV_SUSPEND, map, 0, NULL);
}

static inline int dm_suspend(int fd, const char *map, int noflush)
{
	return dm_flags(fd, DM_DEV_SUSPEND, map,
			DM_SUSPEND_FLAG | (noflush ? DM_NOFLUSH_FLAG : 0), NULL);
}

/* a table ioctl, ready to be sent; NULL if the line has no start, length and target */
static inline struct dm_ioctl *dm_table(const char *table)
{
	unsigned long long start, len;
	struct dm_target_spec *spec;
	struct dm_ioctl *io;
	char type[DM_MAX_TYPE_NAME] = "";
	int used = 0;
	size_t size;

	if (sscanf(table, "%llu %llu %15s%n", &start, &len, type, &used) < 3)
		return NULL;
	table += used;
	while (*table == ' ')
		table++;
	size = sizeof(*io) + sizeof(*spec) + strlen(table) + 16;
	io = calloc(1, size);
	if (!io)
		return NULL;
	io->data_size = size;
	io->target_count = 1;
	spec = (void *)(io + 1);
	spec->sector_start = start;
	spec->length = len;
	snprintf(spec->target_type, sizeof(spec->target_type), "%s", type);
	strcpy((char *)(spec + 1), table);
	return io;
}

static inline int dm_load(int fd, const char *map, const char *table)
{
	struct dm_ioctl *io = dm_table(table);
	int err = EBADMSG;

	if (io)
		err = dm_call(fd, DM_TABLE_LOAD, io, map);
	free(io);
	return err;
}

/* a message, and the target's answer, cut to room */
static inline int dm_ask(int fd, const char *map, const char *text, char *answer, size_t room)
{
	size_t size = sizeof(struct dm_ioctl) + sizeof(struct dm_target_msg) + strlen(text) + 1;
	struct dm_ioctl *io;
	int err;

	if (size < sizeof(*io) + room)
		size = sizeof(*io) + room;
	io = calloc(1, size);
	if (!io)
		return ENOMEM;
	io->data_size = size;
	strcpy(((struct dm_target_msg *)(io + 1))->message, text);
	err = dm_call(fd, DM_TARGET_MSG, io, map);
	*answer = 0;
	if (!err && (io->flags & DM_DATA_OUT_FLAG))
		snprintf(answer, room, "%s", (char *)io + io->data_start);
	free(io);
	return err;
}

static inline int dm_message(int fd, const char *map, const char *text)
{
	char answer[64];

	return dm_ask(fd, map, text, answer, sizeof(answer));
}

/* the live map's TABLE line without start, length and target name, in text */
static inline int dm_table_of(int fd, const char *map, char *text, size_t room)
{
	size_t size = 1 << 16;
	struct dm_ioctl *io = calloc(1, size);
	int err = ENOMEM;

	if (!io)
		return err;
	io->data_size = size;
	io->flags = DM_STATUS_TABLE_FLAG | DM_NOFLUSH_FLAG;
	err = dm_call(fd, DM_TABLE_STATUS, io, map);
	*text = 0;
	if (!err && io->target_count == 1)
		snprintf(text, room, "%s", (char *)io + io->data_start +
			 sizeof(struct dm_target_spec));
	free(io);
	return err;
}

#endif
