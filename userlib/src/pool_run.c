// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who gets the tasks that are due: workers, and threads that take. See pool.c. */

#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#include "pool.h"

/*
 * What was waited for has come to this thread alone, which has read what it wanted. If
 * there is more, another one is woken now, else when there is.
 */
static void hand_on(struct twheel_pool *pool)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	epoll_ctl(pool->epoll, EPOLL_CTL_MOD, twheel_fd(pool->tw), &event);
}

/* Returns more than 0 when it is to be handed on, 0 when the time is over, or an error. */
static int wait_due(struct twheel_pool *pool, int timeout_ms)
{
	struct epoll_event event;

	return result(epoll_wait(pool->epoll, &event, 1, timeout_ms));
}

/* Periods that went by and have no run of their own */
static uint64_t missed_by(const struct twheel_task *task, uint64_t now)
{
	if (!task->period || task->next || task->flags & (TWHEEL_FIXED_DELAY | TWHEEL_CATCH_UP) ||
	    now < task->deadline)
		return 0;
	return (now - task->deadline) / task->period;
}

/* One task that is due becomes this thread's, or NULL. */
static struct twheel_task *begin_run(struct twheel_pool *pool, struct pool_call *call,
				     struct twheel_run *run)
{
	struct twheel_task *task = pool->threads == 1 ? pool_first_due(pool) :
							pool_next_due(pool);

	if (!task)
		return NULL;
	pool_set_state(task, TASK_RUNNING);
	run->deadline = task->deadline;
	run->missed = missed_by(task, task->period ? twheel_now(pool->tw) : 0);
	task->deadline += run->missed * task->period;
	pool_begin_call(pool, call, task);
	return task;
}

static bool asks_for_next(const struct twheel_pool *pool, const struct twheel_task *task)
{
	return task->period && task->next && !(task->flags & (TASK_CANCELLED | TASK_RESET)) &&
	       pool_keeps(pool, task->period);
}

/*
 * Find the time of the next run, which a reset has said already. Returns less than 0
 * if the task wants none. The lock is released in between.
 */
static int find_next(struct twheel_pool *pool, struct twheel_task *task)
{
	uint64_t now, deadline;
	int64_t delay = 0;

	if (task->flags & TASK_RESET || !task->period)
		return 0;
	now = task->next || task->flags & TWHEEL_FIXED_DELAY ? twheel_now(pool->tw) : 0;
	if (asks_for_next(pool, task)) {
		uint64_t period = task->period;

		pool_unlock(pool);
		delay = task->next(task, now, period);
		pool_relock(pool);
		deadline = pool_add(now, pool_time(delay));
	} else {
		deadline = pool_add(now ?: task->deadline, task->period);
	}
	if (!(task->flags & TASK_RESET))
		task->deadline = deadline;
	return delay < INT_MIN ? INT_MIN : delay < 0 ? delay : 0;
}

/* Returns 1 when the task is armed again, or why it ends. */
static int arm_again(struct twheel_pool *pool, struct twheel_task *task, int ret)
{
	if (ret >= 0)
		ret = find_next(pool, task);
	if (ret < 0)
		return ret;
	if (!(task->flags & TASK_RESET) && !task->period)
		return 0;
	if (task->flags & TASK_CANCELLED)
		return -ECANCELED;
	if (!pool_keeps(pool, task->period))
		return -ESHUTDOWN;
	pool_set_order(pool, task);
	return pool_arm(pool, task, TWHEEL_ABS, task->deadline) ?: 1;
}

static void end_run(struct twheel_pool *pool, struct twheel_task *task, int ret)
{
	ret = arm_again(pool, task, ret);
	if (ret <= 0)
		pool_end_task(pool, task, ret);
}

/* A worker. The pool is there until it is inside no more. */
void *pool_work(void *arg)
{
	struct twheel_pool *pool = arg;
	struct twheel_task *task;
	struct twheel_run run;
	struct pool_call call;
	bool woken = false;
	int ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_mutex_lock(&pool->lock);
	while (!pool_is_over(pool)) {
		task = begin_run(pool, &call, &run);
		pool_unlock(pool);
		if (woken)
			hand_on(pool);
		ret = task ? task->run(task, &run) : wait_due(pool, -1);
		woken = !task && ret > 0;
		pool_relock(pool);
		if (task) {
			end_run(pool, task, ret);
			pool_end_call(pool, &call);
		}
	}
	pool->inside--;
	pthread_cond_broadcast(&pool->changed);
	pool_unlock(pool);
	return NULL;
}

static int in_order(const void *a, const void *b)
{
	const struct twheel_task *const *x = a, *const *y = b;

	return pool_before(*y, *x) - pool_before(*x, *y);
}

/* As many as are due, but no more than @max; or an error, if there is nothing to come */
static int take_due(struct twheel_pool *pool, struct twheel_task **tasks, unsigned int max)
{
	unsigned int total = 0;
	int i, nr;

	if (pool_is_over(pool))
		return -ESHUTDOWN;
	do {
		nr = pool_read_due(pool, &tasks[total], max - total);
		for (i = 0; i < nr; i++)
			pool_set_state(tasks[total++], TASK_IDLE);
	} while (nr == POOL_TAKEN && total < max);
	if (total > 1)
		qsort(tasks, total, sizeof(tasks[0]), in_order);
	pool->tasks -= total;
	pool_tell_over(pool);
	return total;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* How long epoll_wait(2) is to wait, not less than that */
static int ms_until(uint64_t end)
{
	uint64_t time, ms;

	if (end == POOL_NEVER)
		return -1;
	time = end ? now() : 0;
	if (time >= end)
		return 0;
	ms = (end - time + 999999) / 1000000;
	return ms > INT_MAX ? INT_MAX : ms;
}

static int take(struct twheel_pool *pool, struct twheel_task **tasks, unsigned int max,
		uint64_t end)
{
	bool woken = false;
	int ret, ms;

	pool->inside++;
	while (!(ret = take_due(pool, tasks, max)) && (ms = ms_until(end))) {
		pool_unlock(pool);
		if (woken)
			hand_on(pool);
		ret = wait_due(pool, ms);
		pool_relock(pool);
		woken = ret > 0;
		if (ret < 0)
			break;
	}
	/* Before the pool can be freed */
	if (woken)
		hand_on(pool);
	pool->inside--;
	if (pool->stopping)
		pthread_cond_broadcast(&pool->changed);
	return ret;
}

/* A thread that is cancelled must not leave with the lock. */
int twheel_pool_take(struct twheel_pool *pool, struct twheel_task **tasks, unsigned int max,
		     int64_t timeout)
{
	uint64_t end = timeout < 0 ? POOL_NEVER : timeout ? pool_add(now(), timeout) : 0;
	int ret, state;

	if (pool_is_parents(pool))
		return -EBADF;
	if (pool->threads || !max)
		return -EINVAL;
	if (max > INT_MAX)
		max = INT_MAX;
	ret = pool_lock(pool);
	if (ret)
		return ret;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = take(pool, tasks, max, end);
	pool_unlock(pool);
	pthread_setcancelstate(state, NULL);
	return ret;
}
