/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of pools share. How a pool works stands in pool.c. */
#ifndef TWHEEL_POOL_INTERNAL_H
#define TWHEEL_POOL_INTERNAL_H

#include <pthread.h>

#include "internal.h"
#include "twheel_pool.h"
#include "twheel_shared.h"

/* States of a task, changed under the lock of its pool only */
enum pool_state {
	TASK_IDLE,	/* In no pool */
	TASK_ARMED,	/* In the wheel: pending, or ready */
	TASK_DUE,	/* To be run by the one worker when it is its turn */
	TASK_RUNNING,	/* In the hand of a worker */
	TASK_LEFT,	/* In the hand of who stops the pool */
};

/* In a task's flags: what happened to it while it ran */
#define TASK_CANCELLED (1U << 30)
#define TASK_RESET (1U << 31)

/* Latest time */
#define POOL_NEVER 0x7fffffffffffffffULL

/* Tasks that are taken out of the wheel together */
#define POOL_TAKEN 64

/* What a shared timer's number has: the task that uses it, or the next number that is free */
union pool_number {
	struct twheel_task *task;
	uintptr_t next_free;
};

/**
 * struct pool_call - functions of tasks that are being called, on the caller's stack
 * @next: the next one of the pool
 * @at: what points to this one
 * @task: whose, now
 * @left: is it handed over, and then others?
 * @thread: by whom
 * @nr: how many calls there were before, from 1
 */
struct pool_call {
	struct pool_call *next;
	struct pool_call **at;
	const struct twheel_task *task;
	bool left;
	pthread_t thread;
	uint64_t nr;
};

/**
 * struct twheel_pool - a pool
 * @tw: the wheel, which is read without waiting
 * @epoll: what workers wait for: @tw for one of them at a time, and @over
 * @over: eventfd, readable when nothing will be run any more
 * @forks: how often the process had come out of fork(2) when it was made
 * @threads: workers that there were to be
 * @capacity: most tasks
 * @area: the shared timers, or none
 * @tick: length of a tick in ns
 * @lock: guards what follows, the tasks, and reading of @tw
 * @numbers: those of @area
 * @fresh: this number and those after it were never given out
 * @free: 1 more than a number that was given back, or 0
 * @ordinary: ordinary timers in the wheel, where it is the module's
 * @turn: is it the turn of these?
 * @due: where there is one worker: tasks that it has found due, in their order
 * @nr_orders: how often a task was given a time
 * @changed: for those who wait for a call to be over, or for the end of the pool
 * @tasks: tasks that are armed or running
 * @inside: workers, and threads that take
 * @stopping: no task is started any more
 * @keep: TWHEEL_RUN_*: which are still run
 * @calls: those that are being made
 * @nr_calls: how many there were
 * @nr_own: how many of @own there are
 * @own: threads that are to be joined
 */
struct twheel_pool {
	struct twheel *tw;
	int epoll;
	int over;
	unsigned int forks;
	uint32_t threads;
	uint32_t capacity;
	struct twheel_area area;
	uint64_t tick;
	pthread_mutex_t lock;
	union pool_number *numbers;
	uint32_t fresh;
	uint32_t free;
	uint32_t ordinary;
	bool turn;
	struct twheel_task *due;
	uint32_t nr_orders;
	pthread_cond_t changed;
	uint32_t tasks;
	uint32_t inside;
	bool stopping;
	uint32_t keep;
	struct pool_call *calls;
	uint64_t nr_calls;
	uint32_t nr_own;
	pthread_t own[];
};

/* pool.c */
void pool_relock(struct twheel_pool *pool);
void pool_begin_call(struct twheel_pool *pool, struct pool_call *call,
		     const struct twheel_task *task);
void pool_end_call(struct twheel_pool *pool, struct pool_call *call);
void pool_end_all(struct twheel_pool *pool);
void pool_end_task(struct twheel_pool *pool, struct twheel_task *task, int why);

/* pool_run.c */
void *pool_work(void *arg);

/* pool_due.c */
bool pool_before(const struct twheel_task *a, const struct twheel_task *b);
struct twheel_task *pool_first_due(struct twheel_pool *pool);
void pool_drop_due(struct twheel_pool *pool, struct twheel_task *task);
int pool_move_due(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		  uint64_t when);

/* pool_timer.c */
int pool_open_timers(struct twheel_pool *pool, const struct twheel_pool_options *options);
void pool_close_timers(struct twheel_pool *pool);
int pool_arm(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags, uint64_t when);
int pool_move_module(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		     uint64_t when);
int pool_disarm_module(struct twheel_pool *pool, struct twheel_task *task);
struct twheel_task *pool_next_due(struct twheel_pool *pool);
struct twheel_task *pool_all_due(struct twheel_pool *pool);
int pool_read_due(struct twheel_pool *pool, struct twheel_task **tasks, unsigned int max);
struct twheel_task *pool_drain(struct twheel_pool *pool);

/* The wheel in the program, if that has all timers of the pool: no shared ones are beside it. */
static inline struct user_wheel *pool_user(const struct twheel_pool *pool)
{
	return pool->area.nr ? NULL : pool->tw->user;
}

/* Another time for a task that is armed, and stays so whatever it returns. */
static inline int pool_move(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
			    uint64_t when)
{
	struct user_wheel *user = pool_user(pool);

	flags &= TWHEEL_ABS;
	if (user)
		return user_modify(user, flags, when, (uintptr_t)task, &task->id);
	return pool_move_module(pool, task, flags, when);
}

/* The timer of a task that is armed is out of the wheel, or a negative error is returned. */
static inline int pool_disarm(struct twheel_pool *pool, struct twheel_task *task)
{
	struct user_wheel *user = pool_user(pool);

	return user ? user_cancel(user, task->id) : pool_disarm_module(pool, task);
}

/* A child after fork(2) has neither workers nor who unlocks the lock. */
static inline bool pool_is_parents(const struct twheel_pool *pool)
{
	return pool->forks != user_forks;
}

/* Fails in a child */
static inline int pool_lock(struct twheel_pool *pool)
{
	if (pool_is_parents(pool))
		return -EBADF;
	user_mutex_lock(&pool->lock);
	return 0;
}

static inline void pool_unlock(struct twheel_pool *pool)
{
	pthread_mutex_unlock(&pool->lock);
}

/* Threads with the lock of another pool may look at it, too */
static inline enum pool_state pool_state(const struct twheel_task *task)
{
	return __atomic_load_n(&task->state, __ATOMIC_ACQUIRE);
}

static inline void pool_set_state(struct twheel_task *task, enum pool_state state)
{
	__atomic_store_n(&task->state, state, __ATOMIC_RELEASE);
}

/* The latest among those with the same deadline */
static inline void pool_set_order(struct twheel_pool *pool, struct twheel_task *task)
{
	task->order = pool->nr_orders++;
}

static inline bool pool_is_over(const struct twheel_pool *pool)
{
	return pool->stopping && !pool->tasks;
}

/* If nothing will be run any more, all who wait for that shall know. */
static inline void pool_tell_over(struct twheel_pool *pool)
{
	if (pool_is_over(pool))
		pool_end_all(pool);
}

/* A task is the caller's again, once the lock is released. */
static inline void pool_leave(struct twheel_pool *pool, struct twheel_task *task)
{
	if (task->state != TASK_LEFT)
		pool->tasks--;
	pool_set_state(task, TASK_IDLE);
	pool_tell_over(pool);
}

/* Is a task with that period to be run again, for all that the pool says? */
static inline bool pool_keeps(const struct twheel_pool *pool, uint64_t period)
{
	return !pool->stopping ||
	       pool->keep & (period ? TWHEEL_RUN_PERIODIC : TWHEEL_RUN_ONCE);
}

/* A time below 0 is over long since, as 0 is. */
static inline uint64_t pool_time(int64_t when)
{
	return when < 0 ? 0 : when;
}

static inline uint64_t pool_add(uint64_t time, uint64_t delay)
{
	return delay > POOL_NEVER - time ? POOL_NEVER : time + delay;
}

#endif
