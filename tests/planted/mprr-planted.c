// SPDX-License-Identifier: GPL-2.0
/*
 * mprr-planted - one fault on purpose, to see that the debug kernel and the
 * test runner notice it.  Never built for, or loaded into, anything else.
 *
 * DOC: planted faults
 *
 * The fault named by the parameter happens while the module loads, in task
 * context.  "hang" lets insmod wait for a completion that does not come, as
 * a lost request does, but gives up after 90 s so that the guest can end.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

static char *fault = "";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "abba, sleep, leak, timer, shift, hang, uaf or bounds");

struct mprr_planted {
	struct timer_list timer;
	u8 bytes[24];
};

static DEFINE_MUTEX(mutex_a);
static DEFINE_MUTEX(mutex_b);
static DEFINE_SPINLOCK(planted_lock);
static DECLARE_COMPLETION(never);
static int outside = 33;
static int sink;

static void plant_abba(void)
{
	mutex_lock(&mutex_a);
	mutex_lock(&mutex_b);
	mutex_unlock(&mutex_b);
	mutex_unlock(&mutex_a);
	mutex_lock(&mutex_b);
	mutex_lock(&mutex_a);
	mutex_unlock(&mutex_a);
	mutex_unlock(&mutex_b);
}

static void plant_sleep(void)
{
	spin_lock(&planted_lock);
	mutex_lock(&mutex_a);
	mutex_unlock(&mutex_a);
	spin_unlock(&planted_lock);
}

static void plant_leak(void)
{
	void *p;
	int i;

	/* Several: an old pointer on some stack may hide one of them. */
	for (i = 0; i < 16; i++) {
		p = kzalloc(192, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(p);
	}
}

static void planted_timer(struct timer_list *timer)
{
}

static void plant_timer(void)
{
	struct mprr_planted *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return;
	timer_setup(&p->timer, planted_timer, 0);
	mod_timer(&p->timer, jiffies + 3600 * HZ);
	kfree(p);
}

static void plant_uaf(void)
{
	u8 *p = kzalloc(40, GFP_KERNEL);

	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	sink = READ_ONCE(*p);
}

static void plant_bounds(void)
{
	u8 *p = kzalloc(40, GFP_KERNEL);

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(outside);
	sink = READ_ONCE(p[outside + 8]);
	kfree(p);
}

static int __init mprr_planted_init(void)
{
	pr_info("mprr-planted: %s\n", fault);
	if (!strcmp(fault, "abba"))
		plant_abba();
	else if (!strcmp(fault, "sleep"))
		plant_sleep();
	else if (!strcmp(fault, "leak"))
		plant_leak();
	else if (!strcmp(fault, "timer"))
		plant_timer();
	else if (!strcmp(fault, "shift"))
		sink = 1 << READ_ONCE(outside);
	else if (!strcmp(fault, "hang"))
		wait_for_completion_timeout(&never, 90 * HZ);
	else if (!strcmp(fault, "uaf"))
		plant_uaf();
	else if (!strcmp(fault, "bounds"))
		plant_bounds();
	else
		return -EINVAL;
	return 0;
}

static void __exit mprr_planted_exit(void)
{
}

module_init(mprr_planted_init);
module_exit(mprr_planted_exit);
MODULE_DESCRIPTION("one fault on purpose, for the tests of the tests");
MODULE_LICENSE("GPL");
