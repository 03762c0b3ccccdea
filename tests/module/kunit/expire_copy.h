/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A copy of expire.c and chardev.c, which the suite of expiry is compiled with: so it can call
 * functions that are static there, and stand in for three functions of the kernel. What others
 * can see of the copy is called "copy_...". Timers and workers of wheels use the module's own.
 */
#ifndef TW_KUNIT_EXPIRE_COPY_H
#define TW_KUNIT_EXPIRE_COPY_H

#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>

struct twheel;

/**
 * struct copy_hooks - what a test has the copy do
 * @lock_taken: a lock is found taken by who does not wait for it
 * @after_run: called after each run for a program that catches up, or NULL
 * @tw: and that with this wheel
 * @sleeps: how often a worker made room for ksoftirqd
 */
static struct copy_hooks {
	bool lock_taken;
	void (*after_run)(struct twheel *tw);
	struct twheel *tw;
	unsigned int sleeps;
} copy_hooks;

/* (With one processor, no lock is ever found taken.) */
static inline int copy_spin_trylock(spinlock_t *lock)
{
	return !copy_hooks.lock_taken && spin_trylock(lock);
}

/* A program that catches up looks for a signal after each run. */
static inline int copy_signal_pending(struct task_struct *task)
{
	if (copy_hooks.after_run)
		copy_hooks.after_run(copy_hooks.tw);
	return signal_pending(task);
}

static inline void copy_usleep_range(unsigned long least, unsigned long most)
{
	copy_hooks.sleeps++;
}

#define spin_trylock copy_spin_trylock
#define signal_pending copy_signal_pending
#define usleep_range copy_usleep_range
#define tw_device_add copy_device_add
#define tw_device_del copy_device_del
#define tw_budget copy_budget
#define tw_timer_fn copy_timer_fn
#define tw_turns_fn copy_turns_fn
#define tw_work_fn copy_work_fn
#define tw_catch_up copy_catch_up
#define tw_assist copy_assist
#include "kmod/expire.c"
#include "kmod/chardev.c"
#undef spin_trylock
#undef signal_pending
#undef usleep_range

#endif /* TW_KUNIT_EXPIRE_COPY_H */
