// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pools: their life. What is done to tasks is in pool_task.c, workers in pool_run.c, and
 * the timers of tasks, which are of three kinds, in pool_timer.c.
 *
 * A pool has one lock, and under it are all changes of a task's state and all calls on
 * the wheel, but nothing of the caller's:
 *
 *	idle    --start-->           armed	its timer is in the wheel
 *	armed   --event read-->      running	by one worker, or idle: taken
 *	armed   --event read-->      due	where there is one worker, see pool_due.c
 *	due     --its turn-->        running	(reset and cancel are as of one that is armed)
 *	running --reset, period-->   armed	(a reset says when, and waits for the run's end)
 *	running --run is over-->     idle
 *	armed   --cancel-->          idle	at once; of one that runs it is only noted
 *	armed   --stop-->            left	drained; idle when it is handed over
 *
 * Timers expire once, and say whose they are: by user data that is the task's address, or
 * by the number of a shared timer, which a table has the task of. That is safe as an
 * event is read and its task made running under one hold of the lock: whoever finds a
 * task armed finds its timer in the wheel, pending or ready, and a cancel there means
 * that no event of it is ever read. So there is no event of a task that is gone, in
 * anybody's hand, and each race has one winner, who has the lock. Events are read one
 * by one: what is due and not begun stays in the wheel, where all can still reach it,
 * and where any worker gets it; or, with one worker, in a list in which all can. (A wheel in
 * the program puts timers off, and changes their ids meanwhile: see user/later.c. That is
 * under the same lock.)
 *
 * A task that is idle may be started in another pool, which has another lock. So it gets
 * its pool before its state, and who wants to know both reads them the other way round,
 * under that pool's lock: see lock_of().
 *
 * Who makes a task running, or takes it out to call its end, is the only one who may
 * call its functions, and makes a note of that (struct pool_call) until he has done it:
 * so others can wait for him without looking at the task, which may be gone by then. Of
 * all the tasks that a stop hands over there is one note, with the one that it is at.
 *
 * Workers wait in one epoll, in which the wheel is with EPOLLONESHOT. One of them is
 * woken; he reads an event, and then has the wheel watched again, by which another one
 * is woken if there is more: none for nothing, whatever is in his way. (With the lock
 * to a leader there are twice as many wake-ups; EPOLLEXCLUSIVE can't be had for an
 * epoll, which the descriptor of a wheel in the program is.) The end of the pool is an
 * eventfd, which wakes all.
 */

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pool.h"

/* More workers are nobody's wish */
#define MOST_THREADS 4096

#define BOTH (TWHEEL_RUN_ONCE | TWHEEL_RUN_PERIODIC)

/* Longer options than that nobody means, as of structures that the kernel is given */
#define MOST_OPTIONS 4096

/* After a function of the caller's, which must not bring a child back here. */
void pool_relock(struct twheel_pool *pool)
{
	if (pool_lock(pool))
		_exit(EXIT_FAILURE);
}

void pool_begin_call(struct twheel_pool *pool, struct pool_call *call,
		     const struct twheel_task *task)
{
	*call = (struct pool_call){
		.next = pool->calls,
		.at = &pool->calls,
		.task = task,
		.thread = pthread_self(),
		.nr = ++pool->nr_calls,
	};
	if (call->next)
		call->next->at = &call->next;
	pool->calls = call;
}

void pool_end_call(struct twheel_pool *pool, struct pool_call *call)
{
	*call->at = call->next;
	if (call->next)
		call->next->at = call->at;
	pthread_cond_broadcast(&pool->changed);
}

/* Not eventfd_write(3): a thread that has the lock must not be cancelled there. */
void pool_end_all(struct twheel_pool *pool)
{
	uint64_t one = 1;

	syscall(SYS_write, pool->over, &one, sizeof(one));
	pthread_cond_broadcast(&pool->changed);
}

/*
 * A task leaves the pool: its end is called, without the lock, which is held before and
 * afterwards. The caller has made a note of the call.
 */
void pool_end_task(struct twheel_pool *pool, struct twheel_task *task, int why)
{
	void (*end)(struct twheel_task *task, int why) = task->end;

	pool_leave(pool, task);
	if (!end)
		return;
	pool_unlock(pool);
	end(task, why);
	pool_relock(pool);
}

static int check_options(const struct twheel_pool_options *options)
{
	const char *bytes = (const char *)options;
	uint32_t i;

	if (options->size < sizeof(*options))
		return -EINVAL;
	if (options->size > MOST_OPTIONS)
		return -E2BIG;
	for (i = sizeof(*options); i < options->size; i++)
		if (bytes[i])
			return -E2BIG;
	if (options->flags & ~(TWHEEL_KERNEL | TWHEEL_USER | TWHEEL_BPF) || options->__reserved ||
	    options->threads > MOST_THREADS)
		return -EINVAL;
	return 0;
}

static int watch(struct twheel_pool *pool, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return result(epoll_ctl(pool->epoll, EPOLL_CTL_ADD, fd, &event));
}

static int open_all(struct twheel_pool *pool, const struct twheel_pool_options *options)
{
	int ret = user_watch_forks() ?: pool_open_timers(pool, options);

	if (ret)
		return ret;
	pool->forks = user_forks;
	pool->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (pool->epoll < 0)
		return -errno;
	pool->over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pool->over < 0)
		return -errno;
	return watch(pool, pool->over, EPOLLIN) ?:
	       watch(pool, twheel_fd(pool->tw), EPOLLIN | EPOLLONESHOT);
}

static void close_all(struct twheel_pool *pool)
{
	pool_close_timers(pool);
	if (pool->epoll >= 0)
		close(pool->epoll);
	if (pool->over >= 0)
		close(pool->over);
}

/*
 * Signals are for the threads of the program. But one that a thread causes itself would, if it
 * were blocked, end the process without a call of its handler.
 */
static int spawn_own(struct twheel_pool *pool)
{
	static const int crashes[] = {
		SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, 0
	};
	const int *crash;
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	for (crash = crashes; *crash; crash++)
		sigdelset(&all, *crash);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&pool->own[pool->nr_own], NULL, pool_work, pool);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pool->nr_own++;
	return -ret;
}

static int spawn_all(struct twheel_pool *pool, const struct twheel_pool_options *options)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pool->threads && !ret; i++) {
		/* Before it can be over */
		pthread_mutex_lock(&pool->lock);
		pool->inside++;
		pool_unlock(pool);
		if (options->spawn)
			ret = -abs(options->spawn(pool_work, pool, options->arg));
		else
			ret = spawn_own(pool);
	}
	if (!ret)
		return 0;
	pthread_mutex_lock(&pool->lock);
	pool->inside--;
	pool_unlock(pool);
	return ret;
}

int twheel_pool_fd(const struct twheel_pool *pool)
{
	if (pool_is_parents(pool))
		return -EBADF;
	return pool->threads ? -EINVAL : twheel_fd(pool->tw);
}

/*
 * All under one hold of the lock: those that are still to be run go back. If there is
 * no memory for that, they are not.
 */
static struct twheel_task *dismiss(struct twheel_pool *pool)
{
	struct twheel_task *task, *next, *left = NULL, **last = &left;

	for (task = pool_drain(pool); task; task = next) {
		next = task->link;
		if (pool_keeps(pool, task->period) &&
		    !pool_arm(pool, task, TWHEEL_ABS, task->deadline))
			continue;
		pool_set_state(task, TASK_LEFT);
		pool->tasks--;
		*last = task;
		last = &task->link;
	}
	*last = NULL;
	return left;
}

/* One broadcast for all tasks: a thread that waits for one can't know which were handed over. */
static void hand_over(struct twheel_pool *pool, struct twheel_task *task,
		      void (*left)(struct twheel_task *task, void *arg), void *arg)
{
	struct twheel_task *next;
	struct pool_call call;

	if (!task)
		return;
	pool_begin_call(pool, &call, task);
	call.left = true;
	for (; task; task = next) {
		next = task->link;
		call.task = task;
		if (left) {
			pool_set_state(task, TASK_IDLE);
			pool_unlock(pool);
			left(task, arg);
			pool_relock(pool);
		} else {
			pool_end_task(pool, task, -ESHUTDOWN);
		}
		/* Wake the threads that wait for this task. */
		pthread_cond_broadcast(&pool->changed);
	}
	pool_end_call(pool, &call);
}

static bool calls_itself(const struct twheel_pool *pool)
{
	const struct pool_call *call;

	for (call = pool->calls; call; call = call->next)
		if (pthread_equal(call->thread, pthread_self()))
			return true;
	return false;
}

static bool is_quiet(const struct twheel_pool *pool)
{
	return pool_is_over(pool) && !pool->inside && !pool->calls;
}

static int stop(struct twheel_pool *pool, uint32_t flags,
		void (*left)(struct twheel_task *task, void *arg), void *arg)
{
	int ret = pool_lock(pool);
	uint32_t kept;

	if (ret)
		return ret;
	/* In a delay queue none has a period, and all stay as they are. */
	if (!pool->threads && flags & TWHEEL_RUN_ONCE)
		flags |= BOTH;
	kept = pool->stopping ? pool->keep : BOTH;
	pool->keep = kept & flags;
	pool->stopping = true;
	/* Where no less is kept than before, there is nothing to take out */
	if (pool->keep != kept)
		hand_over(pool, dismiss(pool), left, arg);
	pool_tell_over(pool);
	if (calls_itself(pool))
		ret = -EDEADLK;
	else if (flags & TWHEEL_NO_WAIT && !is_quiet(pool))
		ret = -EINPROGRESS;
	while (!ret && !is_quiet(pool))
		pthread_cond_wait(&pool->changed, &pool->lock);
	pool_unlock(pool);
	return ret;
}

/* A thread that is cancelled must not leave with the lock. */
int twheel_pool_stop(struct twheel_pool *pool, uint32_t flags,
		     void (*left)(struct twheel_task *task, void *arg), void *arg)
{
	int ret, state;

	if (flags & ~(BOTH | TWHEEL_NO_WAIT))
		return -EINVAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = stop(pool, flags, left, arg);
	pthread_setcancelstate(state, NULL);
	return ret;
}

static int free_pool(struct twheel_pool *pool)
{
	int ret = twheel_pool_stop(pool, 0, NULL, NULL);
	uint32_t i;

	if (ret == -EDEADLK)
		return ret;
	/* A child after fork(2) has neither threads nor a lock that could be trusted */
	for (i = 0; !ret && i < pool->nr_own; i++)
		pthread_join(pool->own[i], NULL);
	close_all(pool);
	if (!ret) {
		pthread_cond_destroy(&pool->changed);
		pthread_mutex_destroy(&pool->lock);
	}
	free(pool);
	return 0;
}

/* A thread that is cancelled must not leave a part of it behind. */
int twheel_pool_free(struct twheel_pool *pool)
{
	int ret, state;

	if (!pool)
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = free_pool(pool);
	pthread_setcancelstate(state, NULL);
	return ret;
}

static int new_pool(const struct twheel_pool_options *options, struct twheel_pool **poolp)
{
	struct twheel_pool *pool;
	int ret = check_options(options);

	if (ret)
		return ret;
	pool = calloc(1, sizeof(*pool) + options->threads * sizeof(pool->own[0]));
	if (!pool)
		return -ENOMEM;
	pool->epoll = -1;
	pool->over = -1;
	pool->threads = options->threads;
	pool->capacity = options->capacity ?: UINT32_MAX;
	ret = open_all(pool, options);
	if (ret) {
		close_all(pool);
		free(pool);
		return ret;
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	/* One lock is enough */
	if (pool->tw->user)
		user_set_outer(pool->tw->user, &pool->lock);
	ret = spawn_all(pool, options);
	if (ret)
		free_pool(pool);
	else
		*poolp = pool;
	return ret;
}

/* As twheel_pool_free() */
int twheel_pool_new(const struct twheel_pool_options *options, struct twheel_pool **poolp)
{
	int ret, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = new_pool(options, poolp);
	pthread_setcancelstate(state, NULL);
	return ret;
}
