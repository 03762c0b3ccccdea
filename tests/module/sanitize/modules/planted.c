// SPDX-License-Identifier: GPL-2.0
/*
 * A module with one bug of each kind that the kernels of these tests must report.
 * It commits the one that it is loaded with, and can be unloaded.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

struct thing {
	struct timer_list timer;
	char end;
};

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spinlock);
static DEFINE_RAW_SPINLOCK(raw_spinlock);
static unsigned long counter;

/* What the compiler must not see through */
static struct thing *new_thing(void)
{
	struct thing *thing = kzalloc(sizeof(*thing), GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(thing);
	return thing;
}

static void commit_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

/* On PREEMPT_RT the inner one sleeps. */
static void commit_nesting(void)
{
	raw_spin_lock(&raw_spinlock);
	spin_lock(&spinlock);
	spin_unlock(&spinlock);
	raw_spin_unlock(&raw_spinlock);
}

static void commit_sleep(void)
{
	spin_lock(&spinlock);
	kfree(kmalloc(sizeof(struct thing), GFP_KERNEL));
	spin_unlock(&spinlock);
}

static void never_runs(struct timer_list *timer)
{
}

static void commit_timer(void)
{
	struct thing *thing = new_thing();

	timer_setup(&thing->timer, never_runs, 0);
	mod_timer(&thing->timer, jiffies + 1000 * HZ);
	kfree(thing);
}

static void commit_bounds(void)
{
	struct thing *thing = new_thing();
	char *end = (char *)thing + sizeof(*thing);

	/* The first byte after it: farther on is somebody else's, in use or freed. */
	WRITE_ONCE(*end, 1);
	kfree(thing);
}

static void commit_freed(void)
{
	struct thing *thing = new_thing();

	kfree(thing);
	WRITE_ONCE(thing->end, 1);
}

static void commit_shift(void)
{
	int bits = 99;

	OPTIMIZER_HIDE_VAR(bits);
	counter = 1 << bits;
}

static void commit_leak(void)
{
	int i;

	/* A copy of the address of the last ones may be lying about. */
	for (i = 0; i < 100; i++)
		new_thing();
}

static int count(void *unused)
{
	int i;

	for (i = 0; i < 10000000 && !kthread_should_stop(); i++) {
		counter++;
		cond_resched();
	}
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static void commit_race(void)
{
	struct task_struct *threads[2];
	int i;

	for (i = 0; i < 2; i++)
		threads[i] = kthread_run(count, NULL, "count");
	msleep(2000);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(threads[i]))
			kthread_stop(threads[i]);
}

static const struct {
	const char *name;
	void (*commit)(void);
} bugs[] = {
	{ "order", commit_order },
	{ "nesting", commit_nesting },
	{ "sleep", commit_sleep },
	{ "timer", commit_timer },
	{ "bounds", commit_bounds },
	{ "freed", commit_freed },
	{ "shift", commit_shift },
	{ "leak", commit_leak },
	{ "race", commit_race },
};

static char *bug;
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "name of the bug to commit");

static int __init planted_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (bug && !strcmp(bug, bugs[i].name)) {
			bugs[i].commit();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("one bug of each kind");
MODULE_LICENSE("GPL");
