/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that knows how kernels differ.
 *
 * DOC: compatibility
 *
 * The code is written to the newest interface; this header gives older kernels
 * the same names.  What differs is decided by a macro of the kernel itself
 * where there is one and by a probe (probes/, results in mprr-config.h)
 * otherwise, never by a version number: distributions carry changes back.
 */

#ifndef DM_COMPAT_H
#define DM_COMPAT_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/dm-ioctl.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "mprr-config.h"

/*
 * Prototypes of dm-mod's exports whose headers the kernel keeps private.
 * Only symbols that all supported kernels export are declared here.
 */
enum dm_uevent_type {
	DM_UEVENT_PATH_FAILED,
	DM_UEVENT_PATH_REINSTATED,
};

void dm_mq_kick_requeue_list(struct mapped_device *md);
#ifdef CONFIG_DM_UEVENT
void dm_path_uevent(enum dm_uevent_type type, struct dm_target *ti,
		    const char *path, unsigned int nr_valid_paths);
#else
static inline void dm_path_uevent(enum dm_uevent_type type, struct dm_target *ti,
				  const char *path, unsigned int nr_valid_paths)
{
}
#endif

/*
 * Version of the target `multipath`: multipath-tools reads it, so it is the
 * in-kernel target's own.  Path probing came together with 1.15.
 */
#ifdef DM_MPATH_PROBE_PATHS
#define MPRR_MULTIPATH_VERSION	{1, 15, 0}
#else
#define MPRR_MULTIPATH_VERSION	{1, 14, 0}
#endif

/* Atomic writes: since 6.16; remove when the floor is above that. */
#ifdef DM_TARGET_ATOMIC_WRITES
#define MPRR_ATOMIC_WRITES	DM_TARGET_ATOMIC_WRITES
#else
#define MPRR_ATOMIC_WRITES	0
#endif

/**
 * mprr_sts_is_path_fault - may another path do better after this status?
 * @status: a completion status other than BLK_STS_OK
 *
 * The kernel's own list of verdicts of the device, plus two that came later
 * and are not in it: an ill-formed request (since 6.10) and a command that ran
 * past its duration limit (since 6.5).
 *
 * Return: true if it may.
 */
static inline bool mprr_sts_is_path_fault(blk_status_t status)
{
#ifdef BLK_STS_INVAL
	if (status == BLK_STS_INVAL)
		return false;
#endif
#ifdef BLK_STS_DURATION_LIMIT
	if (status == BLK_STS_DURATION_LIMIT)
		return false;
#endif
	return blk_path_error(status);
}

/* Typed allocation: since 7.0, and where it was carried back. */
#ifndef kzalloc_obj
#define kzalloc_obj(obj)	kzalloc(sizeof(obj), GFP_KERNEL)
#endif

/**
 * mprr_devt_from_path - device number of "major:minor" or a device node
 * @path: the words of the user
 * @dev: where the number goes
 *
 * dm_devt_from_path() came in 6.9, before that dm_get_dev_t() did the same and
 * returned 0 for "no such device".  Remove when the floor is above that.
 *
 * Return: 0 or a negative errno.
 */
static inline int mprr_devt_from_path(const char *path, dev_t *dev)
{
#ifdef MPRR_HAVE_DM_DEVT_FROM_PATH
	return dm_devt_from_path(path, dev);
#else
	unsigned int major, minor;
	char dummy;

	/* Numbers first: a lookup may read from a map that has no path left. */
	if (sscanf(path, "%u:%u%c", &major, &minor, &dummy) == 2) {
		*dev = MKDEV(major, minor);
		return MAJOR(*dev) == major && MINOR(*dev) == minor ? 0 : -EOVERFLOW;
	}
	*dev = dm_get_dev_t(path);
	return *dev ? 0 : -ENODEV;
#endif
}

/**
 * mprr_limits_keep_max_sectors - let no recomputation exceed the paths' limit
 * @limits: stacked limits of all paths
 *
 * Since 6.9 the block core recomputes max_sectors from max_hw_sectors and
 * io_opt, which can exceed what a path takes unless max_user_sectors is set;
 * before that the stacked value is used as it is.
 */
static inline void mprr_limits_keep_max_sectors(struct queue_limits *limits)
{
#ifdef MPRR_HAVE_MAX_USER_SECTORS
	limits->max_user_sectors = limits->max_sectors;
#endif
}

/**
 * mprr_hrtimer_setup - prepare a timer of the monotonic clock
 * @timer: the timer
 * @function: called in hard interrupt context when it expires
 *
 * hrtimer_setup() came in 6.13.  Remove when the floor is above that.
 */
static inline void mprr_hrtimer_setup(struct hrtimer *timer,
				      enum hrtimer_restart (*function)(struct hrtimer *))
{
#ifdef MPRR_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = function;
#endif
}

/**
 * mprr_kthread_run_worker - create a kthread worker and let it run
 * @name: its name
 *
 * Since 6.14 creating one no longer starts it.
 *
 * Context: process, may sleep.
 * Return: the worker or an ERR_PTR().
 */
static inline struct kthread_worker *mprr_kthread_run_worker(const char *name)
{
#ifdef kthread_run_worker
	return kthread_run_worker(0, "%s", name);
#else
	return kthread_create_worker(0, "%s", name);
#endif
}

/**
 * mprr_bio_copy_hints - let a bio ask for the same placement as another
 * @bio: the bio
 * @from: the other one
 *
 * The write hint was taken away in 5.18 and came back in 6.9, the write stream
 * came in 6.16.  Where they exist, the core merges only bios that agree in them.
 */
static inline void mprr_bio_copy_hints(struct bio *bio, const struct bio *from)
{
#ifdef MPRR_HAVE_BI_WRITE_HINT
	bio->bi_write_hint = from->bi_write_hint;
#endif
#ifdef MPRR_HAVE_BI_WRITE_STREAM
	bio->bi_write_stream = from->bi_write_stream;
#endif
}

/**
 * mprr_call_rcu_hurry - call_rcu() for somebody who waits
 * @head: for the callback
 * @func: the callback
 *
 * Since 6.2 a kernel may leave what call_rcu() gets alone for seconds, to save
 * power; call_rcu_hurry() came with that.
 */
static inline void mprr_call_rcu_hurry(struct rcu_head *head, rcu_callback_t func)
{
#ifdef MPRR_HAVE_CALL_RCU_HURRY
	call_rcu_hurry(head, func);
#else
	call_rcu(head, func);
#endif
}

/**
 * mprr_keep_from_elevator - what the elevator does not know must not come to it
 * @rq: a request that may be requeued
 *
 * A flush or a write with FUA passes the elevator by, which is not asked to
 * prepare for it.  Kernels with RQF_ELV (6.1) nevertheless give such a write to the
 * elevator when it is requeued: mq-deadline then counts one request too many,
 * and bfq follows a pointer that nobody has set.  Requests marked as prepared by
 * the driver are dispatched directly.  Remove when the floor is above that.
 *
 * Context: queue_rq, atomic.
 */
static inline void mprr_keep_from_elevator(struct request *rq)
{
#if defined(RQF_ELV) && defined(RQF_ELVPRIV)
	if ((rq->rq_flags & (RQF_ELV | RQF_ELVPRIV)) == RQF_ELV)
		rq->rq_flags |= RQF_DONTPREP;
#endif
}

/* dm-mpath-rr.c */
int mprr_prepare_ioctl(struct dm_target *ti, struct block_device **bdev,
		       unsigned int cmd, bool *forward);

/*
 * mprr_prepare_ioctl() with the running kernel's signature.  The command and the
 * forward flag came in 6.16; before, the target could not see the command and
 * every ioctl was forwarded.
 */
#ifdef MPRR_HAVE_PREPARE_IOCTL_CMD
static inline int mprr_prepare_ioctl_op(struct dm_target *ti, struct block_device **bdev,
					unsigned int cmd, unsigned long arg, bool *forward)
{
	return mprr_prepare_ioctl(ti, bdev, cmd, forward);
}
#else
static inline int mprr_prepare_ioctl_op(struct dm_target *ti, struct block_device **bdev)
{
	bool forward = true;

	return mprr_prepare_ioctl(ti, bdev, 0, &forward);
}
#endif

/* Kernels that do not have it do not tell the command. */
#ifndef DM_MPATH_PROBE_PATHS
#define DM_MPATH_PROBE_PATHS	_IO(DM_IOCTL, 18)
#endif

#endif /* DM_COMPAT_H */
