// SPDX-License-Identifier: GPL-2.0
/*
 * helper.c - small probe used by the guest tests (compiled in the guest).
 *
 * It does what the shell cannot: device-mapper ioctls with the exact errno and
 * the kernel log lines that this very call produced, single I/Os with the exact
 * errno, I/O that is guaranteed not to merge, a uevent
 * listener, and a reader of the kernel log.
 * Every verb prints one line that begins with "ok" or with the errno's name.
 * It touches only the device that it is given.
 */
#define _GNU_SOURCE
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <scsi/sg.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "dm.h"

#define IOBUF (1 << 20)

static int usage(FILE *to)
{
	fputs("usage: helper VERB ...\n"
	      "  load TABLE             load TABLE into a new map, remove it again\n"
	      "  show TABLE             the same, and print the TABLE and INFO status it had\n"
	      "  reload MAP TABLE       load TABLE into the inactive slot of MAP, clear it\n"
	      "  message MAP TEXT       send TEXT to sector 0 of MAP\n"
	      "      these print the errno name, then the kernel log lines of the call\n"
	      "  io DEV OP OFF LEN      one I/O; OP: read write bread bwrite discard zeroes secure flush\n"
	      "  reads DEV COUNT [SEED [MAP [MOST]]]\n"
	      "                         COUNT direct 4 KiB reads, no two adjacent, one at a time; with\n"
	      "                         MAP, each when its stats say that MOST (0) are in flight\n"
	      "  tur DEV                SG_IO TEST UNIT READY\n"
	      "  ioctl DEV NUMBER [COUNT]  an argument-less ioctl, once or COUNT times\n"
	      "  hold DEV               open DEV exclusively until killed\n"
	      "  uevents                print each kernel uevent of a block device on one line\n",
	      to);
	return to == stdout ? 0 : 2;
}

/* ---- device-mapper ---- */

static int kmsg_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

static void kmsg_print(int fd)
{
	char rec[8192], *text, *end;
	ssize_t n;

	while (fd >= 0) {
		n = read(fd, rec, sizeof(rec) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return;
		rec[n] = 0;
		text = strchr(rec, ';');
		end = text ? strchr(text, '\n') : NULL;
		if (end)
			*end = 0;
		if (text)
			printf("log: %s\n", text + 1);
	}
}

/* status of the inactive table; flags: 0 = INFO, DM_STATUS_TABLE_FLAG = TABLE */
static void dm_show(int fd, const char *map, const char *what, unsigned int flags)
{
	size_t size = 1 << 20;
	struct dm_ioctl *io = calloc(1, size);
	struct dm_target_spec *spec;
	int err;

	if (!io)
		return;
	io->data_size = size;
	io->flags = flags | DM_QUERY_INACTIVE_TABLE_FLAG | DM_NOFLUSH_FLAG;
	err = dm_call(fd, DM_TABLE_STATUS, io, map);
	spec = (void *)((char *)io + io->data_start);
	if (err || io->target_count != 1)
		printf("%s: %s\n", what, errname(err));
	else
		printf("%s: %s\n", what, (char *)(spec + 1));
	free(io);
}

static int do_load(const char *map, const char *table, int show)
{
	int kmsg = kmsg_open(), fd = open("/dev/mapper/control", O_RDWR), err, err2;
	const char *name = map ? map : "mprrload";

	if (fd < 0) {
		perror("/dev/mapper/control");
		return 2;
	}
	if (!map) {
		err = dm_create(fd, name, NULL);
		if (err) {
			printf("create failed: %s\n", errname(err));
			return 2;
		}
	}
	err = dm_load(fd, name, table);
	if (!err && show) {
		dm_show(fd, name, "table", DM_STATUS_TABLE_FLAG);
		dm_show(fd, name, "info", 0);
	}
	err2 = map ? dm_clear(fd, name) : dm_remove(fd, name);
	if (err2 && !(map && err2 == ENXIO))
		printf("cleanup failed: %s\n", errname(err2));
	puts(errname(err));
	kmsg_print(kmsg);
	return !!err;
}

static int do_message(const char *map, const char *text)
{
	size_t size = sizeof(struct dm_ioctl) + sizeof(struct dm_target_msg) + strlen(text) + 16;
	int kmsg = kmsg_open(), fd = open("/dev/mapper/control", O_RDWR), err;
	struct dm_ioctl *io = calloc(1, size < 4096 ? 4096 : size);
	struct dm_target_msg *msg = (void *)(io + 1);

	if (fd < 0 || !io) {
		perror("/dev/mapper/control");
		return 2;
	}
	io->data_size = size < 4096 ? 4096 : size;
	strcpy(msg->message, text);
	err = dm_call(fd, DM_TARGET_MSG, io, map);
	puts(errname(err));
	if (!err && (io->flags & DM_DATA_OUT_FLAG))
		printf("data: %s\n", (char *)io + io->data_start);
	kmsg_print(kmsg);
	return !!err;
}

/* ---- I/O ---- */

static int do_io(const char *dev, const char *op, uint64_t off, uint64_t len)
{
	int direct = !strcmp(op, "read") || !strcmp(op, "write");
	int rdonly = !strcmp(op, "read") || !strcmp(op, "bread");
	int fd = open(dev, (rdonly ? O_RDONLY : O_RDWR) | (direct ? O_DIRECT : 0));
	uint64_t range[2] = { off, len };
	ssize_t n = 0;
	void *buf;
	size_t room = len && len < IOBUF ? len : IOBUF;
	int err = 0, moves = 0;

	if (fd < 0) {
		printf("open:%s\n", errname(errno));
		return 1;
	}
	if (len < 64 << 20 && len > room)
		room = len;
	if (posix_memalign(&buf, 4096, room))
		return 2;
	memset(buf, 0x5a, room);
	if (rdonly || direct || !strcmp(op, "bwrite"))
		moves = 1;
	if (rdonly)
		n = pread(fd, buf, len, off);
	else if (moves)
		n = pwrite(fd, buf, len, off);
	else if (!strcmp(op, "discard"))
		err = ioctl(fd, BLKDISCARD, range) ? errno : 0;
	else if (!strcmp(op, "secure"))
		err = ioctl(fd, BLKSECDISCARD, range) ? errno : 0;
	else if (!strcmp(op, "zeroes"))
		err = ioctl(fd, BLKZEROOUT, range) ? errno : 0;
	else if (strcmp(op, "flush"))
		return usage(stderr);
	if (n < 0)
		err = errno;
	else if (moves && (uint64_t)n != len)
		return puts("short"), 1;
	if (!err && (!strcmp(op, "flush") || !strcmp(op, "bwrite")))
		err = fsync(fd) ? errno : 0;
	puts(errname(err));
	return !!err;
}

/*
 * dm-rq ends the bios before the target hears of the completion: the next read may
 * come before the selector has counted the last one, and see a busy path.
 */
static int wait_quiet(int dm, const char *map, int most)
{
	char reply[1 << 14];
	const char *at;
	int err, tries;

	for (tries = 0; tries < 100000; tries++) {
		err = dm_ask(dm, map, "stats", reply, sizeof(reply));
		if (err)
			return err;
		/* the gate's, which counts last */
		at = strstr(reply, " in_flight ");
		if (!at)
			return EPROTO;
		if (atoi(at + strlen(" in_flight ")) <= most)
			return 0;
		sched_yield();
	}
	return ETIME;
}

static int do_reads(const char *dev, long count, unsigned int seed, const char *map, int most)
{
	int dm = map ? dm_open() : -1, err;
	int fd = open(dev, O_RDONLY | O_DIRECT), last = 0;
	long done = 0, errors = 0;
	uint64_t size = 0, blocks, at, before = 1;
	void *buf;

	if (fd < 0) {
		printf("open:%s\n", errname(errno));
		return 1;
	}
	if (ioctl(fd, BLKGETSIZE64, &size) || posix_memalign(&buf, 4096, 4096))
		return 2;
	blocks = size >> 12;
	srandom(seed);
	while (done + errors < count) {
		at = random() % blocks;
		if (at + 1 == before || at == before || at == before + 1)
			continue;
		before = at;
		err = map ? wait_quiet(dm, map, most) : 0;
		if (err) {
			printf("stats:%s done=%ld errors=%ld\n", errname(err), done, errors);
			return 1;
		}
		if (pread(fd, buf, 4096, at << 12) == 4096) {
			done++;
		} else {
			errors++;
			last = errno;
		}
	}
	printf("%s done=%ld errors=%ld\n", errname(last), done, errors);
	return !!errors;
}

static int do_tur(const char *dev)
{
	unsigned char cdb[6] = { 0 }, sense[32];
	struct sg_io_hdr hdr = {
		.interface_id = 'S', .dxfer_direction = SG_DXFER_NONE,
		.cmd_len = 6, .cmdp = cdb, .mx_sb_len = sizeof(sense), .sbp = sense,
		.timeout = 20000,
	};
	int fd = open(dev, O_RDONLY | O_NONBLOCK), err;

	if (fd < 0) {
		printf("open:%s\n", errname(errno));
		return 1;
	}
	err = ioctl(fd, SG_IO, &hdr) ? errno : 0;
	printf("%s status=%#x host=%#x\n", errname(err), hdr.status, hdr.host_status);
	return !!err;
}

static int do_ioctl(const char *dev, unsigned long nr, long count)
{
	int fd = open(dev, O_RDONLY | O_NONBLOCK), err;

	if (fd < 0) {
		printf("open:%s\n", errname(errno));
		return 1;
	}
	do {
		err = ioctl(fd, nr, 0) < 0 ? errno : 0;
	} while (--count > 0);
	puts(errname(err));
	return !!err;
}

static int do_hold(const char *dev)
{
	int fd = open(dev, O_RDONLY | O_EXCL);

	if (fd < 0) {
		printf("open:%s\n", errname(errno));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

/* ---- uevents ---- */

static int do_uevents(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	int rcv = 8 << 20;
	char buf[16384];
	ssize_t n, i;

	if (fd < 0 || bind(fd, (void *)&addr, sizeof(addr))) {
		perror("netlink");
		return 2;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcv, sizeof(rcv));
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while ((n = recv(fd, buf, sizeof(buf) - 1, 0)) > 0) {
		for (i = 0; i < n - 1; i++)
			if (!buf[i])
				buf[i] = ' ';
		buf[n] = 0;
		if (strstr(buf, "SUBSYSTEM=block"))
			puts(buf);
	}
	return 1;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (!strcmp(verb, "--help"))
		return usage(stdout);
	if (!strcmp(verb, "load") && argc == 3)
		return do_load(NULL, argv[2], 0);
	if (!strcmp(verb, "show") && argc == 3)
		return do_load(NULL, argv[2], 1);
	if (!strcmp(verb, "reload") && argc == 4)
		return do_load(argv[2], argv[3], 0);
	if (!strcmp(verb, "message") && argc == 4)
		return do_message(argv[2], argv[3]);
	if (!strcmp(verb, "io") && argc == 6)
		return do_io(argv[2], argv[3], strtoull(argv[4], NULL, 0), strtoull(argv[5], NULL, 0));
	if (!strcmp(verb, "reads") && argc >= 4 && argc <= 7)
		return do_reads(argv[2], atol(argv[3]), argc > 4 ? atoi(argv[4]) : 1,
				argc > 5 ? argv[5] : NULL, argc > 6 ? atoi(argv[6]) : 0);
	if (!strcmp(verb, "tur") && argc == 3)
		return do_tur(argv[2]);
	if (!strcmp(verb, "ioctl") && (argc == 4 || argc == 5))
		return do_ioctl(argv[2], strtoul(argv[3], NULL, 0), argc == 5 ? atol(argv[4]) : 1);
	if (!strcmp(verb, "hold") && argc == 3)
		return do_hold(argv[2]);
	if (!strcmp(verb, "uevents") && argc == 2)
		return do_uevents();
	return usage(stderr);
}
