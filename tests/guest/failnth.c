// SPDX-License-Identifier: GPL-2.0
/*
 * failnth.c - lets the N-th allocation of one system call fail, N = 1, 2, 3 ...
 * until none is left (compiled in the guest; needs CONFIG_FAULT_INJECTION and
 * failslab with verbose=2).
 *
 * Prints a line for each N: "N ERRNO FAULT FRAME", where FAULT is the kernel's
 * name of what failed and FRAME the innermost function+offset/size of the module
 * in the stack of the failure, "-" if it has none; other lines say what went
 * wrong; the last one is "end CALLS", the number of calls without a failure.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/syscall.h>

#include "dm.h"

#define MODULE	"dm_multipath_rr"
#define MOST	5000

static int kmsg, fail_nth;

static void arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fail_nth, text, len, 0) != len) {
		perror("fail-nth");
		exit(2);
	}
}

/* still armed: the call had fewer allocations */
static int disarm(void)
{
	char text[16] = "";

	if (pread(fail_nth, text, sizeof(text) - 1, 0) < 0) {
		perror("fail-nth");
		exit(2);
	}
	arm(0);
	return atoi(text) > 0;
}

/* Is this one of the kernel's inline allocators, of which the compiler made a function? */
static int is_allocator(const char *frame)
{
	return !strncmp(frame, "_k", 2) || !strncmp(frame, "kmalloc", 7) ||
	       !strncmp(frame, "kzalloc", 7);
}

/* the log of the failure: its name, and the module's innermost frame that is its own */
static void read_log(char *fault, char *frame, size_t room)
{
	char rec[8192], *text, *p;
	int inside = 0;
	ssize_t n;

	snprintf(fault, room, "unlogged");
	snprintf(frame, room, "-");
	for (;;) {
		n = read(kmsg, rec, sizeof(rec) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return;
		rec[n] = 0;
		text = strchr(rec, ';');
		if (!text++)
			continue;
		p = strstr(text, "name ");
		if (strstr(text, "FAULT_INJECTION: forcing a failure"))
			inside = 1;
		if (inside && p && !strncmp(fault, "unlogged", 8))
			sscanf(p, "name %63[^, \n]", fault);
		/* Guesses of the unwinder have a question mark. */
		if (inside && frame[0] == '-' && strstr(text, "[" MODULE) && !strchr(text, '?'))
			if (sscanf(text, " %127s", frame) == 1 && is_allocator(frame))
				snprintf(frame, room, "-");
		if (strstr(text, "</TASK>"))
			inside = 0;
	}
}

struct call {
	int (*prepare)(struct call *call);
	int (*run)(struct call *call);
	int (*undo)(struct call *call, int err);	/* 0, or it has said what is wrong */
	int fd;
	const char *map, *text, *ko;
	struct dm_ioctl *io, *copy;
	int nr;
	char **files;
};

static int each_n(struct call *call)
{
	char fault[128], frame[128];
	int n, err, left, bad = 0;

	for (n = 1; n < MOST; n++) {
		if (call->prepare)
			bad |= call->prepare(call);
		lseek(kmsg, 0, SEEK_END);
		arm(n);
		err = call->run(call);
		left = disarm();
		read_log(fault, frame, sizeof(fault));
		if (!left)
			printf("%d %s %s %s\n", n, errname(err), fault, frame);
		else if (err)
			bad |= printf("without a failure: %s\n", errname(err));
		bad |= call->undo(call, err);
		if (left)
			break;
	}
	printf("end %d\n", n);
	return bad || n == MOST;
}

/* ---- a table ---- */

static int load_prepare(struct call *call)
{
	memcpy(call->io, call->copy, call->copy->data_size);
	return 0;
}

static int load_run(struct call *call)
{
	return dm_call(call->fd, DM_TABLE_LOAD, call->io, call->map);
}

/* nothing is left: no inactive table, and nobody has the disks */
static int load_undo(struct call *call, int err)
{
	int clear = dm_clear(call->fd, call->map), i, fd, bad = 0;
	char path[PATH_MAX];

	if (clear && clear != ENXIO)
		bad |= printf("clear: %s\n", errname(clear));
	for (i = 0; i < call->nr; i++) {
		snprintf(path, sizeof(path), "/dev/%s", call->files[i]);
		fd = open(path, O_RDONLY | O_EXCL);
		if (fd < 0)
			bad |= printf("%s after %s: %s\n", path, errname(err), errname(errno));
		else
			close(fd);
	}
	return bad;
}

/* ---- the first table of a map: the core makes the queue, too ---- */

static int first_prepare(struct call *call)
{
	int err = dm_create(call->fd, call->map, NULL);

	if (err)
		return printf("create: %s\n", errname(err));
	return load_prepare(call);
}

static int first_undo(struct call *call, int err)
{
	int gone = dm_remove(call->fd, call->map);

	if (gone)
		return printf("remove after %s: %s\n", errname(err), errname(gone));
	return load_undo(call, err);
}

/* ---- messages ---- */

static int message_run(struct call *call)
{
	return dm_message(call->fd, call->map, call->text);
}

static int message_prepare(struct call *call)
{
	int i, err;

	for (i = 0; i < call->nr; i++) {
		err = dm_message(call->fd, call->map, call->files[i]);
		if (err)
			return printf("message %s: %s\n", call->files[i], errname(err));
	}
	return 0;
}

static int message_undo(struct call *call, int err)
{
	if (err && err != ENOMEM)
		return printf("message %s: %s\n", call->text, errname(err));
	/* It works when memory is back. */
	err = dm_message(call->fd, call->map, call->text);
	return err ? printf("message %s again: %s\n", call->text, errname(err)) : 0;
}

/* ---- loading the module ---- */

static int init_run(struct call *call)
{
	return syscall(SYS_finit_module, call->fd, "", 0) ? errno : 0;
}

static int init_undo(struct call *call, int err)
{
	int gone = syscall(SYS_delete_module, MODULE, 0) ? errno : 0;

	/* Refused means not there at all. */
	if (gone != (err ? ENOENT : 0))
		return printf("unload after %s: %s\n", errname(err), errname(gone));
	return call->nr;
}

static int usage(FILE *to)
{
	fputs("usage: failnth VERB ...\n"
	      "  load MAP TABLE [DISK...]         into the inactive slot of MAP\n"
	      "  first MAP TABLE [DISK...]        into a new map, as its first table\n"
	      "  message MAP TEXT [BEFORE...]     each time after the messages BEFORE\n"
	      "  init KO                          load the module\n", to);
	return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct call call = { 0 };

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return usage(stdout);
	if (argc < 3)
		return usage(stderr);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (kmsg < 0 || fail_nth < 0) {
		perror("/dev/kmsg, /proc/thread-self/fail-nth");
		return 2;
	}
	call.map = argv[2];
	if (argc > 4) {
		call.files = argv + 4;
		call.nr = argc - 4;
	}
	if (!strcmp(argv[1], "init") && argc == 3) {
		call.fd = open(argv[2], O_RDONLY);
		call.run = init_run;
		call.undo = init_undo;
		return each_n(&call);
	}
	call.fd = dm_open();
	if (!strcmp(argv[1], "message") && argc > 3) {
		call.text = argv[3];
		call.prepare = message_prepare;
		call.run = message_run;
		call.undo = message_undo;
		return each_n(&call);
	}
	if (argc < 4 || (strcmp(argv[1], "load") && strcmp(argv[1], "first")))
		return usage(stderr);
	call.io = dm_table(argv[3]);
	call.copy = dm_table(argv[3]);
	if (!call.io || !call.copy)
		return usage(stderr);
	call.prepare = argv[1][0] == 'f' ? first_prepare : load_prepare;
	call.run = load_run;
	call.undo = argv[1][0] == 'f' ? first_undo : load_undo;
	return each_n(&call);
}
