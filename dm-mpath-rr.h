/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types shared by the files of dm-multipath-rr: the map, its path groups and
 * their paths, and the functions that one file offers to the others.
 *
 * DOC: objects and ownership
 *
 * One &struct mprr_map belongs to one DM table (from the constructor to the
 * destructor), owns its groups, and each group owns its paths and one path
 * selector.  Nothing is added to or taken from a map after its constructor
 * returned, so groups and paths may be read without a lock or reference as
 * long as the table lives; only their *state* changes.  DM guarantees that no
 * clone is in flight when the destructor runs.
 *
 * The state of paths and groups is written under mprr_map.lock.  The request
 * path reads it without the lock through the few fields that say so.
 */

#ifndef DM_MPATH_RR_H
#define DM_MPATH_RR_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/bitops.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "dm-compat.h"

#define DM_MSG_PREFIX "mpath-rr"

/* The one source of the module's version; dkms.conf and NEWS follow it. */
#define MPRR_VERSION_MAJOR	0
#define MPRR_VERSION_MINOR	1
#define MPRR_VERSION_PATCH	0
#define MPRR_VERSION		"0.1.0"

/* Bounds of the table grammar (counts of words, groups and paths). */
#define MPRR_MAX_FEATURE_WORDS	32
#define MPRR_MAX_WORDS		1024
#define MPRR_MAX_GROUPS		1024
#define MPRR_MAX_PATHS		1024
#define MPRR_MAX_INIT_RETRIES	50
#define MPRR_MAX_INIT_DELAY_MS	60000
#define MPRR_INIT_DELAY_MS	2000	/* used while the table names none */

struct mprr_bundle;
struct mprr_group;
struct mprr_latency;
struct mprr_map;
struct mprr_selector_type;
struct mprr_stats_cpu;
struct scsi_device;

/**
 * struct mprr_path - one path: a block device that leads to the storage
 * @group: the group that owns this path; constant after init
 * @dev: the device as DM opened it; constant after init
 * @sdev: the LUN behind a SCSI path (referenced), NULL for others; constant
 * @index: position in &mprr_group.paths; constant
 * @ps_words: the selector's per-path numbers, in table order; constant
 * @in_flight: clones handed to the path and not completed or handed back
 * @ps_load: the selector's own measure of load on this path
 * @ps_data: the selector's own, NULL for most; constant after init
 * @took_ns: average time of a clone, 0 if none was timed yet (dm-rr-auto.c)
 * @nr_took: how many were timed, up to 16
 * @auto_run: requests of a run while rr_min_io is auto
 * @auto_speed: part of it, in 1/16
 * @active: may be chosen; written under &mprr_map.lock
 * @fail_count: failures since the table was loaded; under &mprr_map.lock
 * @changed_s: when it failed or was reinstated last, or 0; under &mprr_map.lock
 * @stats: counters of each CPU (dm-mpath-stats.c); constant
 * @latency: histograms (dm-mpath-stats.c); constant
 * @pg_init_work: activates the path's hardware handler
 */
struct mprr_path {
	struct mprr_group *group;
	struct dm_dev *dev;
	struct scsi_device *sdev;
	unsigned int index;
	unsigned int ps_words[2];

	atomic_t in_flight;
	atomic_t ps_load;
	void *ps_data;

	u64 took_ns;
	unsigned int nr_took;
	unsigned int auto_run;
	unsigned int auto_speed;

	bool active;
	unsigned int fail_count;
	time64_t changed_s;

	struct mprr_stats_cpu __percpu *stats;
	struct mprr_latency *latency;

	struct delayed_work pg_init_work;
};

/**
 * struct mprr_group - paths of equal rank and the selector that spreads I/O
 * @map: the map that owns this group; constant after init
 * @nr: place in the table, from 1; constant
 * @nr_paths: length of @paths; constant after init
 * @paths: the paths in table order; constant after init
 * @ps_type: operations of the selector; constant
 * @ps_data: the selector's own, NULL for most; constant after init
 * @ps_state: the turn: path chosen last and the rest of its run (dm-path-selector.c)
 * @active: bit per path, set while the path is active; written under
 *	&mprr_map.lock, read locklessly by the selectors
 * @open: bit per path, set while the path can take a request; atomic bit
 *	operations only, owned by dm-rq-merge.c
 * @reopened: when refused paths were last opened again (jiffies)
 * @nr_active: bits set in @active; written under &mprr_map.lock, read locklessly
 * @bypassed: chosen only if no other group has a path; under &mprr_map.lock
 */
struct mprr_group {
	struct mprr_map *map;
	unsigned int nr;
	unsigned int nr_paths;
	struct mprr_path **paths;
	const struct mprr_selector_type *ps_type;
	void *ps_data;
	atomic64_t ps_state;

	unsigned long *active;
	unsigned long *open;
	unsigned long reopened;
	unsigned int nr_active;
	bool bypassed;
};

/* Bits of mprr_map.flags; changed under mprr_map.lock unless said otherwise. */
enum mprr_flag {
	MPRR_QUEUE_IF_NO_PATH,		/* hold I/O while no path is valid */
	MPRR_SAVED_QUEUE_IF_NO_PATH,	/* what resume restores */
	MPRR_SUSPENDING,		/* until then queueing stays off */
	MPRR_QUEUE_IO,			/* hold I/O: a group is being chosen or activated */
	MPRR_PG_INIT_REQUIRED,		/* the current group needs activation */
	MPRR_PG_INIT_DISABLED,		/* suspending: start no activation */
	MPRR_PG_INIT_DELAY_RETRY,	/* the next activation waits first */
	MPRR_RETAIN_HANDLER,		/* table word retain_attached_hw_handler */
	MPRR_BIO_MODE,			/* table words queue_mode bio; constant after init */
	MPRR_REPEAT_COUNTS,		/* the table has some; constant after init */
	MPRR_REFUSED,			/* a request was refused; atomic, dm-rq-merge.c */
};

/* What can be set by table, message and module parameter. */
enum mprr_tunable {
	MPRR_MERGE_DEADLINE,		/* merge_deadline_us */
	MPRR_MAX_INFLIGHT,		/* max_inflight */
	MPRR_RR_MIN_IO,			/* rr_min_io */
	MPRR_RR_MIN_IO_BYTES,		/* rr_min_io_bytes */
	MPRR_NO_PATH_TIMEOUT,		/* no_path_timeout_secs */
	MPRR_NR_TUNABLES,
};

/* Feature words of a table, in the order in which TABLE status echoes them. */
enum mprr_feature {
	MPRR_FEATURE_QUEUE_IF_NO_PATH,
	MPRR_FEATURE_RETAIN_HANDLER,
	MPRR_FEATURE_PG_INIT_RETRIES,
	MPRR_FEATURE_PG_INIT_DELAY,
	MPRR_FEATURE_QUEUE_MODE,
	MPRR_FEATURE_TUNABLE,		/* the first of MPRR_NR_TUNABLES */
	MPRR_NR_FEATURES = MPRR_FEATURE_TUNABLE + MPRR_NR_TUNABLES,
};

/* Bits of mprr_gate.flags, changed atomically. */
enum mprr_gate_flag {
	GATE_CLOSED,			/* the map's queue is stopped by us */
	GATE_HOLDING,			/* the flow merges: close at the cap */
	GATE_TRIAL,			/* a trial is being begun or ended */
	GATE_SUSPENDED,			/* stay open */
	GATE_RERUN,			/* &mprr_gate.rcu is on its way */
	GATE_RERUN_AGAIN,		/* and must come once more */
};

/* Values of a tunable: the module chooses by itself; nobody set it here. */
#define MPRR_AUTO		UINT_MAX
#define MPRR_UNSET		(UINT_MAX - 1)

/* Why the gate opens. */
enum mprr_gate_reason {
	GATE_OPEN_LOW,			/* few enough clones were in flight */
	GATE_OPEN_SETTLED,		/* the same, and no more bios joined */
	GATE_OPEN_DEADLINE,		/* the time was over */
	GATE_OPEN_CHANGE,		/* of paths or groups */
	GATE_OPEN_SUSPEND,		/* or the end of the map */
};

/* What cap is being measured: the best one so far, a larger, a smaller one. */
enum mprr_climb {
	CLIMB_STAY,
	CLIMB_UP,
	CLIMB_DOWN,
};

/**
 * struct mprr_gate - holds requests of one map (dm-rq-merge.c, dm-rq-auto.c)
 * @queue: the map's queue; NULL before the first request
 * @flags: bits of &enum mprr_gate_flag
 * @hold_us: tunable merge_deadline_us; 0 is off
 * @cap: clones in flight at which the gate closes
 * @ends: where recent requests ended, by hash
 * @in_flight: clones of this map that paths have
 * @closed_at: how many those were when it closed
 * @closed_ns: and when
 * @low_ns: since when few enough are in flight while it is closed, or 0
 * @expires_ns: when it opens at the latest, or the timer looks again
 * @settle_merges: merges of the map when it looked last
 * @settle_ends_ns: how long it may wait for bios to join, 0 while it does not
 * @timer: opens it then
 * @work: opens it when no processor has anything else to do
 * @rcu: runs the queue again after it was started
 * @could: share of the bios that could merge, in 1/65536
 * @follows: the same, which no trial changes (dm-rr-auto.c)
 * @merged: share of those that had merged, in 1/65536, while it does
 * @proven: a request has merged since it works
 * @patience: requests without a merge until it ends
 * @trial_ns: when it began to work, on trial
 * @pause_ends_ns: when the next trial may begin
 * @pause_fails: how many have failed one after the other
 * @last_start: when the last request came (jiffies)
 * @skip: requests that say nothing about it yet
 * @window_ns: when the rate began, or begins, to be measured
 * @window_begun: it has begun
 * @window_bios: bios since then
 * @window_closed: @nr_closed then
 * @late: share of openings that were late, in 1/256
 * @took_ns: average time that clones take
 * @wait_ns: average time that requests waited before they went to a path
 * @climb: which cap is measured
 * @climb_next: which one is tried next
 * @climb_fast: no larger one has failed yet
 * @climb_fails: how many have failed one after the other
 * @climb_wait: windows until the next one is tried
 * @climb_cap: the best cap so far
 * @climb_rate: bios per second with it
 * @nr_requests: requests that went to paths
 * @nr_bios: their bios
 * @nr_closed: how often the gate closed
 * @nr_deadline: how often the timer opened it
 * @nr_trials: how often a flow looked as if it would merge
 */
struct mprr_gate {
	struct request_queue *queue;
	unsigned long flags;
	unsigned int hold_us;
	unsigned int cap;
	u32 *ends;

	atomic_t in_flight ____cacheline_aligned_in_smp;
	int closed_at;
	u64 closed_ns;
	u64 low_ns;
	u64 expires_ns;
	unsigned long settle_merges;
	u64 settle_ends_ns;
	struct hrtimer timer;
	struct kthread_work work;
	struct rcu_head rcu;

	unsigned int could;
	unsigned int follows;
	unsigned int merged;
	bool proven;
	unsigned int patience;
	u64 trial_ns;
	u64 pause_ends_ns;
	unsigned int pause_fails;
	unsigned long last_start;
	unsigned int skip;
	u64 window_ns;
	bool window_begun;
	unsigned int window_bios;
	u64 window_closed;
	unsigned int late;
	u64 took_ns;
	u64 wait_ns;
	enum mprr_climb climb;
	enum mprr_climb climb_next;
	bool climb_fast;
	unsigned int climb_fails;
	unsigned int climb_wait;
	unsigned int climb_cap;
	u64 climb_rate;

	u64 nr_requests;
	u64 nr_bios;
	atomic64_t nr_closed;
	u64 nr_deadline;
	u64 nr_trials;
};

/**
 * struct mprr_rr_auto - how long round-robin's runs should be (dm-rr-auto.c)
 * @work: computes it
 * @next: when it may do so again (jiffies)
 * @in_flight: average number of clones in flight, in 1/16
 * @base: requests of a run before weight and speed of the path
 */
struct mprr_rr_auto {
	struct work_struct work;
	unsigned long next;
	unsigned int in_flight;
	unsigned int base;
};

/**
 * struct mprr_map - one multipath map, as long as its DM table
 * @ti: the DM target; constant
 * @current_group: where I/O goes; written under @lock, read locklessly
 * @flags: bits of &enum mprr_flag
 * @nr_groups: length of @groups; constant after init
 * @groups: in table order; constant after init
 * @features: the feature words that were loaded, in their order
 * @nr_features: length of @features
 * @handler_name: hardware handler, NULL for none; constant after init
 * @handler_params: its parameters as "count\0word\0...", or NULL
 * @pg_init_retries: how often an activation is tried again; constant
 * @pg_init_delay_ms: pause before a delayed activation; constant
 * @max_inflight: tunable, clones in flight on a path at most, or MPRR_AUTO
 * @rr_min_io: tunable, requests of a run, MPRR_AUTO, or MPRR_UNSET: the repeat
 *	counts of the paths
 * @rr_min_io_bytes: tunable, bytes of a run, decides if it is not 0
 * @no_path_timeout: tunable, seconds of queue_if_no_path without a valid path, or
 *	MPRR_UNSET: the module's parameter
 * @by_table: tunables set by the table, or MPRR_UNSET; constant after init
 * @by_message: tunables set by messages, or MPRR_UNSET (dm-mpath-tunables.c)
 * @tunables_entry: in the list of all maps (dm-mpath-tunables.c)
 * @lock: see docs/design.md; irqsave, taken from any context
 * @next_group: preferred at the next choice, or NULL; under @lock
 * @chosen_nr: number of the group chosen last, 0 for none; under @lock
 * @nr_valid_paths: active paths in all groups; read locklessly
 * @pg_init_in_progress: activations queued or running; written under @lock
 * @pg_init_count: activations of the current group so far; under @lock
 * @pg_init_wait: woken when the last activation is done
 * @probed: the group that is being probed, or NULL; under @lock (dm-mpath-probe.c)
 * @probe_forget: choose a group anew when that ends; under @lock
 * @nr_probes: how many have begun; under @lock
 * @probe_wait: woken when one ends
 * @held_bios: bios that wait, in bio mode; under @lock
 * @bio_work: tries them again (dm-mpath-bio.c)
 * @message_mutex: one message or suspend at a time
 * @event_work: tells user space that something changed
 * @no_path_work: ends queueing when no path came back in time
 * @no_path_ends: when that is, in jiffies; set as @no_path_work is queued, under @lock
 * @rr_auto: chooses run lengths while rr_min_io is auto
 * @gate: holds requests so that they merge
 */
struct mprr_map {
	struct dm_target *ti;
	struct mprr_group *current_group;
	unsigned long flags;

	unsigned int nr_groups;
	struct mprr_group **groups;
	u8 features[MPRR_NR_FEATURES];
	unsigned int nr_features;
	const char *handler_name;
	char *handler_params;
	unsigned int pg_init_retries;
	unsigned int pg_init_delay_ms;
	unsigned int max_inflight;
	unsigned int rr_min_io;
	unsigned int rr_min_io_bytes;
	unsigned int no_path_timeout;
	unsigned int by_table[MPRR_NR_TUNABLES];
	unsigned int by_message[MPRR_NR_TUNABLES];
	struct list_head tunables_entry;

	spinlock_t lock ____cacheline_aligned_in_smp;
	struct mprr_group *next_group;
	unsigned int chosen_nr;
	unsigned int nr_valid_paths;
	unsigned int pg_init_in_progress;
	unsigned int pg_init_count;
	wait_queue_head_t pg_init_wait;

	struct mprr_group *probed;
	bool probe_forget;
	unsigned int nr_probes;
	wait_queue_head_t probe_wait;

	struct bio_list held_bios;
	struct delayed_work bio_work;

	struct mutex message_mutex;	/* one message or suspend at a time */
	struct work_struct event_work;
	struct delayed_work no_path_work;
	unsigned long no_path_ends;

	struct mprr_rr_auto rr_auto;
	struct mprr_gate gate;
};

/**
 * struct mprr_io - what we know of a request, behind dm-rq's own data
 * @path: the path that has the clone
 * @rq: the request
 * @nr_bytes: its size
 * @start_ns: when it went to the path, 0 if it is not timed
 * @sample_ns: the same, for the latency histograms
 * @sent_ns: the same for the selector, 0 if it does not ask
 * @bundle: the bio that stands for its bios, or NULL (dm-rq-bundle.c)
 * @single: its first bio when its bios must be sent one by one, or NULL
 *	(dm-rq-single.c); it outlives the requeue in between
 * @map: the map, while that happens
 * @work: does it
 */
struct mprr_io {
	struct mprr_path *path;
	struct request *rq;
	size_t nr_bytes;
	u64 start_ns;
	u64 sample_ns;
	u64 sent_ns;
	struct mprr_bundle *bundle;

	const struct bio *single;
	struct mprr_map *map;
	struct work_struct work;
};

/**
 * mprr_path_queue - the request queue that clones for a path are inserted into
 * @path: the path
 *
 * Return: the queue; it exists as long as the path does, even if it is dying.
 */
static inline struct request_queue *mprr_path_queue(const struct mprr_path *path)
{
	return bdev_get_queue(path->dev->bdev);
}

/**
 * mprr_map_name - how messages in the log call a map
 * @map: the map
 *
 * Return: "major:minor" of its device.
 */
static inline const char *mprr_map_name(const struct mprr_map *map)
{
	return dm_table_device_name(map->ti->table);
}

/**
 * mprr_map_devt - the device number of a map
 * @map: the map
 *
 * Return: its number.
 */
static inline dev_t mprr_map_devt(const struct mprr_map *map)
{
	return disk_devt(dm_disk(dm_table_get_md(map->ti->table)));
}

/**
 * mprr_elapsed_ns - how long something has taken
 * @then: when it began, as ktime_get_ns() said there
 * @now: what it says here
 *
 * Return: nanoseconds, 0 if the clock of the other CPU was a little ahead.
 */
static inline u64 mprr_elapsed_ns(u64 then, u64 now)
{
	return max_t(s64, now - then, 0);
}

/**
 * mprr_read_uint - read a word that must be an unsigned decimal number
 * @word: the word
 * @value: where the number goes
 *
 * No sign, nothing behind the digits, nothing that does not fit 32 bits.
 *
 * Return: 0 or -EINVAL.
 */
static inline int mprr_read_uint(const char *word, unsigned int *value)
{
	return isdigit(*word) && !kstrtouint(word, 10, value) ? 0 : -EINVAL;
}

/* dm-mpath-rr.c: for all work but pg_init; never blocked by I/O */
extern struct workqueue_struct *mprr_wq;

/* dm-mpath-table.c */
int mprr_table_ctr(struct dm_target *ti, unsigned int argc, char **argv);
void mprr_map_destroy(struct mprr_map *map);

/* dm-mpath-status.c */
void mprr_status(struct dm_target *ti, status_type_t type,
		 unsigned int status_flags, char *result, unsigned int maxlen);

/* dm-mpath-message.c */
int mprr_message(struct dm_target *ti, unsigned int argc, char **argv,
		 char *result, unsigned int maxlen);

/* dm-mpath-group.c */
struct mprr_group *mprr_group_get_current(struct mprr_map *map);
void mprr_group_switch(struct mprr_map *map, struct mprr_group *group);
void mprr_group_bypass(struct mprr_group *group, bool on);
void mprr_group_probed_locked(struct mprr_map *map) __must_hold(&map->lock);
void mprr_path_activate(struct mprr_path *path);
void mprr_path_fail(struct mprr_path *path);
void mprr_path_reinstate(struct mprr_path *path);

/* dm-mpath-probe.c */
int mprr_probe_paths(struct mprr_map *map);

/* dm-mpath-no-path.c */
bool mprr_is_lost(struct mprr_map *map);
unsigned long mprr_no_path_timeout_default(void);
void mprr_no_path_timeout_changed(struct mprr_map *map);
void mprr_queue_if_no_path_set(struct mprr_map *map, bool on);
void mprr_queue_if_no_path_suspend(struct mprr_map *map);
void mprr_queue_if_no_path_resume(struct mprr_map *map);
void mprr_no_path_timer_start_locked(struct mprr_map *map) __must_hold(&map->lock);
void mprr_no_path_timer_stop_locked(struct mprr_map *map);
void mprr_no_path_work(struct work_struct *work);
void mprr_map_run_queue(struct mprr_map *map);

/* dm-mpath-pg-init.c */
int mprr_handler_attach(struct mprr_path *path, const char **what);
void mprr_pg_init_require_locked(struct mprr_map *map) __must_hold(&map->lock);
void mprr_pg_init_path_locked(struct mprr_path *path) __must_hold(&path->group->map->lock);
bool mprr_pg_init_start(struct mprr_map *map);
void mprr_pg_init_stop(struct mprr_map *map);
void mprr_pg_init_work(struct work_struct *work);
int mprr_pg_init_wq_init(void);
void mprr_pg_init_wq_exit(void);

/**
 * mprr_pg_init_pending - must I/O wait for an activation of the current group?
 * @map: the map
 *
 * Context: any; lockless.  A stale answer is harmless: whoever acts on it
 * takes the lock and looks again.
 * Return: true if it must.
 */
static inline bool mprr_pg_init_pending(const struct mprr_map *map)
{
	return READ_ONCE(map->flags) & (BIT(MPRR_QUEUE_IO) | BIT(MPRR_PG_INIT_REQUIRED));
}

/**
 * mprr_pg_init_running - is an activation under way, whose end runs the queue?
 * @map: the map
 *
 * Context: any; lockless.
 * Return: true if it is.
 */
static inline bool mprr_pg_init_running(const struct mprr_map *map)
{
	return mprr_pg_init_pending(map) && READ_ONCE(map->pg_init_in_progress);
}

#endif /* DM_MPATH_RR_H */
