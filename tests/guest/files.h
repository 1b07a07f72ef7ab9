/* SPDX-License-Identifier: GPL-2.0 */
/*
 * files.h - sysfs files, for the C programs of the guest tests.
 */
#ifndef MPRR_TEST_FILES_H
#define MPRR_TEST_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Returns 0 or the errno. */
static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Its first line; false, and no text, if it cannot be read. */
static inline bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	text[strcspn(text, "\n")] = 0;
	return n >= 0;
}

#endif
