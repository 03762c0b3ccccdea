// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls of the program for a pool's tasks: see pool.c. */

#include <stddef.h>

#include "pool.h"

static int check_times(const struct twheel_pool *pool, uint32_t flags, uint64_t period)
{
	const uint32_t both = TWHEEL_FIXED_DELAY | TWHEEL_CATCH_UP;

	if (flags & ~(TWHEEL_ABS | both) || (flags & both) == both)
		return -EINVAL;
	return period && !pool->threads ? -EINVAL : 0;
}

static int start(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags, int64_t when,
		 uint64_t period)
{
	int ret;

	if (pool_state(task) != TASK_IDLE)
		return -EBUSY;
	if (pool->stopping)
		return -ESHUTDOWN;
	if (pool->tasks >= pool->capacity)
		return -ENOSPC;
	ret = pool_arm(pool, task, flags, pool_time(when));
	if (ret)
		return ret;
	pool_set_order(pool, task);
	task->flags = flags;
	task->period = period;
	pool->tasks++;
	return 0;
}

int twheel_task_start(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		      int64_t when, uint64_t period)
{
	int ret = check_times(pool, flags, period);

	if (!ret && pool->threads && !task->run)
		ret = -EINVAL;
	if (!ret)
		ret = pool_lock(pool);
	if (ret)
		return ret;
	ret = start(pool, task, flags, when, period);
	pool_unlock(pool);
	return ret;
}

/*
 * The state that a task is in, with the lock of its pool; or a negative error. Its end
 * may start it in another pool before the lock is had, or, as long as it is idle, even
 * after that: a state of that pool is not seen without the pool, which was stored before.
 * Any state but idle stays true until the lock is released.
 */
static inline int lock_of(struct twheel_task *task, struct twheel_pool **poolp)
{
	struct twheel_pool *pool = __atomic_load_n(&task->pool, __ATOMIC_RELAXED), *seen;
	int ret, state;

	while (pool) {
		ret = pool_lock(pool);
		if (ret)
			return ret;
		state = pool_state(task);
		seen = __atomic_load_n(&task->pool, __ATOMIC_RELAXED);
		if (seen == pool) {
			*poolp = pool;
			return state;
		}
		pool_unlock(pool);
		pool = seen;
	}
	return -ENOENT;
}

/* Who runs it will arm it, if nothing has been said against that. */
static int reset_running(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
			 uint64_t when, uint64_t period)
{
	if (task->flags & TASK_CANCELLED || !pool_keeps(pool, period))
		return -ENOENT;
	task->deadline = flags & TWHEEL_ABS ? when : pool_add(twheel_now(pool->tw), when);
	return 0;
}

static int reset(struct twheel_pool *pool, struct twheel_task *task, int state, uint32_t flags,
		 int64_t when, uint64_t period)
{
	int ret = -ENOENT;

	if (state == TASK_ARMED) {
		ret = pool_move(pool, task, flags, pool_time(when));
	} else if (state == TASK_DUE) {
		ret = pool_move_due(pool, task, flags, pool_time(when));
	} else if (state == TASK_RUNNING) {
		ret = reset_running(pool, task, flags, pool_time(when), period);
		flags |= TASK_RESET;
	}
	if (ret)
		return ret;
	pool_set_order(pool, task);
	task->flags = flags;
	task->period = period;
	return 0;
}

int twheel_task_reset(struct twheel_task *task, uint32_t flags, int64_t when, uint64_t period)
{
	struct twheel_pool *pool;
	int state = lock_of(task, &pool), ret;

	if (state < 0)
		return state;
	ret = check_times(pool, flags, period) ?:
	      reset(pool, task, state, flags, when, period);
	pool_unlock(pool);
	return ret;
}

int twheel_task_run_now(struct twheel_task *task)
{
	const uint32_t kept = TWHEEL_FIXED_DELAY | TWHEEL_CATCH_UP;
	struct twheel_pool *pool;
	int state = lock_of(task, &pool), ret = -ENOENT;

	if (state < 0)
		return state;
	if (state != TASK_IDLE)
		ret = reset(pool, task, state, task->flags & kept, 0, task->period);
	pool_unlock(pool);
	return ret;
}

/* With 0 it is not in the wheel any more, but its end was not called yet. */
static int cancel(struct twheel_pool *pool, struct twheel_task *task, int state)
{
	if (state == TASK_ARMED)
		return pool_disarm(pool, task);
	if (state == TASK_DUE) {
		pool_drop_due(pool, task);
		return 0;
	}
	if (state == TASK_RUNNING)
		task->flags |= TASK_CANCELLED;
	return state == TASK_IDLE ? -ENOENT : -EINPROGRESS;
}

/* A thread that is cancelled in there must not leave its note behind. */
static void call_end(struct twheel_pool *pool, struct twheel_task *task)
{
	struct pool_call call;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pool_begin_call(pool, &call, task);
	pool_end_task(pool, task, -ECANCELED);
	pool_end_call(pool, &call);
	pthread_setcancelstate(state, NULL);
}

/* Without an end there is nothing to wait for. */
static inline void cancelled(struct twheel_pool *pool, struct twheel_task *task)
{
	if (task->end)
		call_end(pool, task);
	else
		pool_leave(pool, task);
}

/* Is one of the calls the task's that were begun by then? One left may be in any that hand over. */
static bool is_called(const struct twheel_pool *pool, const struct twheel_task *task, bool left,
		      uint64_t nr)
{
	const struct pool_call *call;

	for (call = pool->calls; call; call = call->next)
		if (call->nr <= nr && (call->task == task || (left && call->left)))
			return true;
	return false;
}

/*
 * Do others call what is the last of it? Not for who does so too: that may have started
 * it again, and then be in the end of a later life.
 */
static bool is_ending(const struct twheel_pool *pool, const struct twheel_task *task)
{
	const struct pool_call *call;
	bool ending = false;

	for (call = pool->calls; call; call = call->next) {
		if (call->task != task)
			continue;
		if (pthread_equal(call->thread, pthread_self()))
			return false;
		ending = true;
	}
	return ending;
}

int twheel_task_cancel(struct twheel_task *task)
{
	struct twheel_pool *pool;
	int state = lock_of(task, &pool), ret;

	if (state < 0)
		return state;
	ret = cancel(pool, task, state);
	if (!ret)
		cancelled(pool, task);
	else if (ret == -ENOENT && is_ending(pool, task))
		ret = -EINPROGRESS;
	pool_unlock(pool);
	return ret;
}

/* Would it wait for itself? It does who hands over one task, and waits for another. */
static bool is_within(const struct twheel_pool *pool, const struct twheel_task *task, bool left)
{
	const struct pool_call *call;

	for (call = pool->calls; call; call = call->next)
		if (pthread_equal(call->thread, pthread_self()) &&
		    (call->task == task || (left && call->left)))
			return true;
	return false;
}

/* The task may be gone while it waits. */
static int wait_for(struct twheel_pool *pool, const struct twheel_task *task, bool left)
{
	uint64_t nr = pool->nr_calls;

	if (is_within(pool, task, left))
		return -EDEADLK;
	while (is_called(pool, task, left, nr))
		pthread_cond_wait(&pool->changed, &pool->lock);
	return 0;
}

static int cancel_wait(struct twheel_pool *pool, struct twheel_task *task, int state)
{
	int ret = cancel(pool, task, state), waited;

	if (!ret) {
		cancelled(pool, task);
		return 0;
	}
	waited = wait_for(pool, task, state == TASK_LEFT);
	if (waited)
		return waited;
	return ret == -EINPROGRESS ? 0 : ret;
}

/* A thread that is cancelled must not leave with the lock. */
int twheel_task_cancel_wait(struct twheel_task *task)
{
	struct twheel_pool *pool;
	int state = lock_of(task, &pool), ret, before;

	if (state < 0)
		return state;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	ret = cancel_wait(pool, task, state);
	pool_unlock(pool);
	pthread_setcancelstate(before, NULL);
	return ret;
}
