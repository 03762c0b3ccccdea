/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks, and pools of workers that run them: what a program has from JDK's Timer,
 * ScheduledThreadPoolExecutor and DelayQueue, Netty's HashedWheelTimer and others.
 *
 * A pool is one wheel and its workers: with one worker a timer thread, which runs tasks in
 * the order of their times, and of equal times as they were started; with several an
 * executor, with none a delay queue. A task is memory of the caller's. All times are
 * nanoseconds of the pool's clock. twheel_pool(3) says more.
 *
 * All functions may be called by any thread, from within a run too, unless they say
 * something else; none in a signal handler. No function of the caller's is called
 * under a lock of the pool, and they must return: not leave by pthread_exit(3),
 * longjmp(3) or an exception. In a child after fork(2) all that would use a pool give
 * -%EBADF, but for twheel_pool_free().
 */
#ifndef TWHEEL_POOL_H
#define TWHEEL_POOL_H

#include <stdint.h>
#include <twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct twheel_pool - a wheel and its workers */
struct twheel_pool;

/** TWHEEL_FIXED_DELAY: a period is counted from the end of a run, not from its deadline */
#define TWHEEL_FIXED_DELAY (1U << 1)
/** TWHEEL_CATCH_UP: a run for each period that was missed, not one for all of them */
#define TWHEEL_CATCH_UP (1U << 2)

/** TWHEEL_RUN_ONCE: a pool that ends still runs tasks that have no period */
#define TWHEEL_RUN_ONCE (1U << 0)
/** TWHEEL_RUN_PERIODIC: a pool that ends still runs tasks that have one */
#define TWHEEL_RUN_PERIODIC (1U << 1)
/** TWHEEL_NO_WAIT: the call does not wait for the end of a pool */
#define TWHEEL_NO_WAIT (1U << 2)

/**
 * struct twheel_pool_options - what a pool shall be
 * @size: sizeof(struct twheel_pool_options)
 * @flags: %TWHEEL_KERNEL, %TWHEEL_BPF, %TWHEEL_USER or 0, as for twheel_open(). With
 *	%TWHEEL_BPF, a pool with one worker and a delay queue are in the program, too
 * @threads: workers, 4,096 at most; 0 for a delay queue
 * @capacity: most tasks, or 0 for as many as the wheel can hold. Over the module, a pool
 *	with workers has this many shared timers, 65,536 at most; or with 0, 4,096. So has one
 *	with two workers or more by %TWHEEL_BPF
 * @clock: TWHEEL_CLOCK_*, or 0 for %TWHEEL_CLOCK_MONOTONIC
 * @__reserved: 0
 * @tick: length of a tick in ns, or 0 for one jiffy
 * @spawn: makes a thread that calls @fn with @worker, and gives 0 or a negative error;
 *	or NULL for threads of the library's own, in which all signals are blocked but
 *	those of a crash
 * @arg: for @spawn
 */
struct twheel_pool_options {
	uint32_t size;
	uint32_t flags;
	uint32_t threads;
	uint32_t capacity;
	uint32_t clock;
	uint32_t __reserved;
	uint64_t tick;
	int (*spawn)(void *(*fn)(void *), void *worker, void *arg);
	void *arg;
};

/**
 * struct twheel_run - why a task is run
 * @deadline: the time for which it was started or reset, or its period came to
 * @missed: periods that went by since and have no run of their own
 */
struct twheel_run {
	uint64_t deadline;
	uint64_t missed;
};

/**
 * struct twheel_task - something to be done later
 * @run: does it; less than 0 for no further run. Never called twice at a time
 * @next: or NULL: gives the delay to the next run from @now, in place of the period,
 *	after each run of a task that has one; less than 0 for no further run
 * @end: or NULL: called once for each start, as the last thing, unless the task was
 *	taken or handed over: with 0 when it has run, what @run or @next gave if that was
 *	less than 0, -%ECANCELED, -%ESHUTDOWN when the pool ended, -%ENOMEM or -%ENOSPC
 *	when there was no place for the next run in the wheel
 * @arg: the caller's
 * @pool: this and what follows is the library's own, and 0 at first
 *
 * The memory is the pool's from the start until @end is called, which may free it or
 * start it again; until a cancel gave 0; or until it was taken or handed over.
 */
struct twheel_task {
	int (*run)(struct twheel_task *task, const struct twheel_run *run);
	int64_t (*next)(struct twheel_task *task, uint64_t now, uint64_t period);
	void (*end)(struct twheel_task *task, int why);
	void *arg;

	struct twheel_pool *pool;
	struct twheel_task *link;
	uint64_t id;
	uint64_t deadline;
	uint64_t period;
	uint32_t state;
	uint32_t flags;
	uint32_t number;
	uint32_t order;
};

/**
 * twheel_pool_new - make a pool and start its workers
 * @options: what it shall be
 * @poolp: out: the pool
 *
 * Return: 0; -%EINVAL; -%E2BIG; -%ENOMEM; what @spawn gave; an error of twheel_open(),
 * twheel_setup() or of making a descriptor or a thread.
 */
int twheel_pool_new(const struct twheel_pool_options *options, struct twheel_pool **poolp);

/**
 * twheel_pool_free - end a pool as twheel_pool_stop() does, and free it
 * @pool: the pool, or NULL
 *
 * No other thread may use it any more, but its own workers. A task keeps in mind in
 * which pool it was last: one that was in this pool may be given back, or started in
 * another one, and no other function may be called for it until it was.
 *
 * Return: 0; -%EDEADLK from within a function that the pool calls: then it is there still.
 */
int twheel_pool_free(struct twheel_pool *pool);

/**
 * twheel_pool_fd - a descriptor that is readable while a task is due
 * @pool: a pool without workers, which goes on owning it
 *
 * For any event loop: twheel_pool_take() with a timeout of 0 is to be called then.
 *
 * Return: the descriptor; -%EINVAL for a pool with workers.
 */
int twheel_pool_fd(const struct twheel_pool *pool);

/**
 * twheel_pool_take - wait for tasks that are due, and have them
 * @pool: a pool without workers
 * @tasks: out: the tasks, the earliest first, and of equal ones that which was started or
 *	reset first; they are in no pool any more
 * @max: room in @tasks, at least 1
 * @timeout: longest wait in ns, 0 not to wait, less than 0 for without end
 *
 * Return: how many, 0 when the time was over; -%EINTR when a signal came first, or the
 * process was stopped and continued; -%ESHUTDOWN when the pool was stopped and has none
 * left; -%EINVAL.
 */
int twheel_pool_take(struct twheel_pool *pool, struct twheel_task **tasks, unsigned int max,
		     int64_t timeout);

/**
 * twheel_pool_stop - run nothing any more, and wait until nothing runs
 * @pool: the pool
 * @flags: %TWHEEL_RUN_ONCE, %TWHEEL_RUN_PERIODIC: which tasks still run, at their
 *	times, and are waited for, unless another call says less; %TWHEEL_NO_WAIT; or 0
 * @left: or NULL: called, in place of their end, for each task that is not to be run
 * @arg: for @left
 *
 * May be called more than once.
 *
 * Return: 0; -%EINVAL for other flags. With -%EDEADLK, from within a function that the pool
 * calls, and with -%EINPROGRESS, with %TWHEEL_NO_WAIT while something runs or is still to
 * be run, or a worker has yet to come to its end, the pool is stopped all the same, but
 * nobody waited.
 */
int twheel_pool_stop(struct twheel_pool *pool, uint32_t flags,
		     void (*left)(struct twheel_task *task, void *arg), void *arg);

/**
 * twheel_task_start - have a task run later
 * @pool: the pool
 * @task: the task, in no pool. Only one thread may start it at a time
 * @flags: 0, %TWHEEL_ABS, and %TWHEEL_FIXED_DELAY or %TWHEEL_CATCH_UP
 * @when: delay from now in ns, or with %TWHEEL_ABS the time; what is over is due now
 * @period: time between runs in ns, or 0 for one run; 0 where there are no workers
 *
 * Return: 0; -%EBUSY for a task that is in a pool; -%ENOSPC when the pool or its wheel is
 * full; -%ESHUTDOWN when the pool was stopped; -%EINVAL; -%ENOMEM.
 */
int twheel_task_start(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		      int64_t when, uint64_t period);

/**
 * twheel_task_reset - give a task other times
 * @task: the task
 * @flags: as of twheel_task_start(), like all that follows
 * @when: delay or time
 * @period: time between runs
 *
 * While it runs, they are those of its next run, which a task without a period has then,
 * too.
 *
 * Return: 0; -%ENOENT when it is in no pool, or not to be run again; -%EINVAL.
 */
int twheel_task_reset(struct twheel_task *task, uint32_t flags, int64_t when, uint64_t period);

/**
 * twheel_task_run_now - have a task run at once
 * @task: the task
 *
 * The rest is as it was: its period goes on from here. While it runs, once more.
 *
 * Return: 0; -%ENOENT as of twheel_task_reset().
 */
int twheel_task_run_now(struct twheel_task *task);

/**
 * twheel_task_cancel - take a task out of its pool
 * @task: the task
 *
 * After 0 it is not run, its end was called, and its memory is the caller's. No end may
 * free the task meanwhile.
 *
 * Return: 0; -%EINPROGRESS while it runs, is handed over or another thread calls its end:
 * then there is no further run, and its memory is not the caller's yet; -%ENOENT when it
 * is in no pool.
 */
int twheel_task_cancel(struct twheel_task *task);

/**
 * twheel_task_cancel_wait - take a task out of its pool, and wait until it is over
 * @task: the task
 *
 * Afterwards nothing that was called for the task before is going on. A task that its
 * end frees, or starts again, is not for this call. Two tasks that wait for each other
 * in their functions wait for ever.
 *
 * Return: 0; -%ENOENT when it was in no pool; -%EDEADLK from within a function that is
 * called for the task, or for one that is handed over with it: then there is no further
 * run.
 */
int twheel_task_cancel_wait(struct twheel_task *task);

#ifdef __cplusplus
}
#endif

#endif
