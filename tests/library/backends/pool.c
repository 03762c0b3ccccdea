// SPDX-License-Identifier: GPL-2.0
/* Tasks and pools: each sentence of twheel_pool(3), with whichever backend there is. */

#include "threads.h"

#include <stdint.h>
#include <sys/resource.h>

#include <twheel_pool.h>

#define TICK (100 * USEC)

/* A task that can be watched, and that waits in its run while @held, in its end while @kept */
struct thing {
	struct twheel_task task;
	int runs, ends, why, inside, held, kept, waiting;
	__u64 first, last, begun, over, missed, last_missed;
	__s64 gives, next_gives;
	int asked;
	void (*within)(struct thing *thing);
	void (*within_end)(struct thing *thing);
	int got;
};

static struct twheel_pool *pool;
static struct thing things[1000];

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)
#define ADD(x) __atomic_add_fetch(&(x), 1, __ATOMIC_ACQ_REL)

static int run(struct twheel_task *task, const struct twheel_run *why)
{
	struct thing *thing = task->arg;

	EXPECT_EQ(__atomic_fetch_add(&thing->inside, 1, __ATOMIC_ACQ_REL), 0, "beside itself");
	thing->begun = now(CLOCK_MONOTONIC);
	EXPECT_TRUE(thing->begun >= why->deadline, "early");
	if (!thing->runs)
		thing->first = why->deadline;
	if (thing->runs && thing->over)
		EXPECT_TRUE(why->deadline >= thing->last, "backwards");
	thing->last = why->deadline;
	thing->missed += why->missed;
	thing->last_missed = why->missed;
	if (LOAD(thing->held)) {
		STORE(thing->waiting, 1);
		WAIT_FOR(!LOAD(thing->held));
		STORE(thing->waiting, 0);
	}
	if (thing->within)
		thing->within(thing);
	thing->over = now(CLOCK_MONOTONIC);
	__atomic_sub_fetch(&thing->inside, 1, __ATOMIC_ACQ_REL);
	ADD(thing->runs);
	return thing->gives;
}

static int64_t next(struct twheel_task *task, uint64_t time, uint64_t period)
{
	struct thing *thing = task->arg;

	EXPECT_TRUE(time >= thing->over && time <= now(CLOCK_MONOTONIC));
	thing->asked++;
	return thing->next_gives ?: (__s64)period * 2;
}

static void end(struct twheel_task *task, int why)
{
	struct thing *thing = task->arg;

	thing->why = why;
	if (thing->within_end)
		thing->within_end(thing);
	ADD(thing->ends);
}

static struct thing *fresh(int n)
{
	struct thing *thing = &things[n];

	*thing = (struct thing){ .task = { .run = run, .end = end, .arg = thing } };
	return thing;
}

static int made(__u32 threads, __u32 capacity, __u64 tick)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = threads, .capacity = capacity,
		.tick = tick,
	};

	return twheel_pool_new(&options, &pool);
}

static void new_pool(__u32 threads, __u32 capacity)
{
	int ret = made(threads, capacity, TICK);

	if (ret)
		tap_bail("twheel_pool_new: %s", strerror(-ret));
}

static int pool_stop(__u32 flags)
{
	return twheel_pool_stop(pool, flags, NULL, NULL);
}

static void free_pool(void)
{
	EXPECT_EQ(twheel_pool_free(pool), 0);
	pool = NULL;
}

static void (*in_pool)(void);
static __u32 workers;

static void with_pool(void)
{
	new_pool(workers, 0);
	in_pool();
	free_pool();
}

/* A test that has a pool of its own, with @nr workers */
#define POOL(nr, test, name) ({ workers = nr; in_pool = test; RUN(with_pool, name); })

static int start_with(struct thing *thing, __u32 flags, __s64 when, __u64 period)
{
	return twheel_task_start(pool, &thing->task, flags, when, period);
}

static int start(struct thing *thing, __s64 when, __u64 period)
{
	return start_with(thing, 0, when, period);
}

static int reset(struct thing *thing, __s64 when, __u64 period)
{
	return twheel_task_reset(&thing->task, 0, when, period);
}

static int run_now(struct thing *thing)
{
	return twheel_task_run_now(&thing->task);
}

static int cancel_task(struct thing *thing)
{
	return twheel_task_cancel(&thing->task);
}

static int cancel_wait(struct thing *thing)
{
	return twheel_task_cancel_wait(&thing->task);
}

static void check_end(const struct thing *thing, int why, int line)
{
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends)), "of line %d", line);
	EXPECT_EQ(thing->ends, 1, "of line %d", line);
	EXPECT_EQ(thing->why, why, "of line %d", line);
}

#define ENDED(thing, why) check_end(thing, why, __LINE__)
#define RUNS(thing, nr) EXPECT_TRUE(WAIT_FOR(LOAD((thing)->runs) >= (nr)))

/* A pool of one worker, who is in the run of this task until it is let go */
static struct thing *hold(int n, __u64 period)
{
	struct thing *thing = fresh(n);

	thing->held = 1;
	thing->task.next = next;
	EXPECT_EQ(start(thing, 0, period), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
	return thing;
}

#define LET_GO(thing, why) ({						\
	__typeof__(thing) let_go = (thing);				\
									\
	STORE(let_go->held, 0);						\
	ENDED(let_go, why);						\
})

#define SIZE sizeof(struct twheel_pool_options)

/* Longer ones are as long as a later version's, of which all must be 0 that is not known. */
static void test_options(void)
{
	static const struct {
		struct twheel_pool_options options;
		char last;
		int ret;
	} cases[] = {
		{ { .size = SIZE, .threads = 1 }, 0, 0 },
		{ { .size = SIZE - 1 }, 0, -EINVAL },
		{ { .size = SIZE, .flags = 1 }, 0, -EINVAL },
		{ { .size = SIZE, .flags = TWHEEL_KERNEL | TWHEEL_USER }, 0, -EINVAL },
		{ { .size = SIZE, .threads = 4097 }, 0, -EINVAL },
		{ { .size = SIZE, .clock = 1 }, 0, -EINVAL },
		{ { .size = SIZE, .__reserved = 1 }, 0, -EINVAL },
		{ { .size = SIZE, .tick = 1 }, 0, -EOPNOTSUPP },
		{ { .size = SIZE + 8 }, 0, 0 },
		{ { .size = SIZE + 8 }, 1, -E2BIG },
		{ { .size = 4096 }, 0, 0 },
		{ { .size = 4097 }, 0, -E2BIG },
	};
	static union { struct twheel_pool_options options; char bytes[4097]; } room;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&room, 0, sizeof(room));
		room.options = cases[i].options;
		room.bytes[room.options.size - 1] |= cases[i].last;
		EXPECT_EQ(twheel_pool_new(&room.options, &pool), cases[i].ret, "%u", i);
		if (!cases[i].ret)
			free_pool();
	}
	EXPECT_EQ(twheel_pool_free(NULL), 0);
}

/* The task is in no pool any more. */
static void gone(struct thing *thing)
{
	EXPECT_TRUE(WAIT_FOR(cancel_task(thing) == -ENOENT));
	EXPECT_EQ(reset(thing, 0, 0), -ENOENT);
	EXPECT_EQ(run_now(thing), -ENOENT);
}

/*
 * Within a long tick, at whose end another one is due: what is due now does not wait for
 * that. If it did, twelve in a row took more than eleven ticks.
 */
static void test_due_now(void)
{
	struct thing *thing = fresh(1);
	__u64 begun;
	int i;

	if (!EXPECT_EQ(made(2, 0, SEC), 0))
		return;
	EXPECT_EQ(start(fresh(0), 100 * MSEC, 300 * MSEC), 0);
	begun = now(CLOCK_MONOTONIC);
	for (i = 0; i < 12; i++) {
		EXPECT_EQ(start(thing, 0, 0), 0);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends) == 2 * i + 1));
		EXPECT_EQ(start(thing, HOUR, 0), 0);
		EXPECT_EQ(run_now(thing), 0);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends) == 2 * i + 2));
	}
	EXPECT_TRUE(now(CLOCK_MONOTONIC) - begun < 8 * SEC);
	EXPECT_EQ(thing->runs, 24);
	free_pool();
}

/* Take @nr, which are due, and come in the order of their numbers. */
static void take_in_order(int nr)
{
	struct twheel_task *taken;
	int i;

	for (i = 0; i < nr; i++) {
		EXPECT_EQ(twheel_pool_take(pool, &taken, 1, 0), 1);
		EXPECT_TRUE(taken == &things[i].task, "task %d", i);
	}
}

/* Nobody has looked for what came due meanwhile. */
static void test_due_now_beside_others(void)
{
	EXPECT_EQ(made(0, 0, SEC / 2), 0);
	EXPECT_EQ(start(fresh(0), MSEC, 0), 0);
	EXPECT_TRUE(readable(twheel_pool_fd(pool), 60000));
	EXPECT_EQ(start_with(fresh(1), TWHEEL_ABS, now(CLOCK_MONOTONIC), 0), 0);
	EXPECT_EQ(start(fresh(2), 0, 0), 0);
	take_in_order(3);
	free_pool();
}

/* The task waits for the next run when its only worker has run another one. */
static void after_first_run(struct thing *thing)
{
	RUNS(thing, 1);
	EXPECT_EQ(start(fresh(9), 0, 0), 0);
	ENDED(&things[9], 0);
	EXPECT_EQ(cancel_task(thing), 0);
	EXPECT_EQ(thing->runs, 1);
}

static void test_huge(void)
{
	struct thing *thing = fresh(0);
	int round;

	new_pool(1, 0);
	EXPECT_EQ(start(thing, INT64_MAX, UINT64_MAX), 0);
	EXPECT_EQ(cancel_task(thing), 0);
	ENDED(thing, -ECANCELED);
	thing = fresh(1);
	EXPECT_EQ(start(thing, 0, UINT64_MAX), 0);
	after_first_run(thing);
	thing = fresh(2);
	thing->task.next = next;
	thing->next_gives = INT64_MAX;
	EXPECT_EQ(start_with(thing, TWHEEL_FIXED_DELAY, 0, UINT64_MAX), 0);
	after_first_run(thing);
	free_pool();
	/* There and back, also where there is one place only */
	new_pool(1, 1);
	for (round = 0; round < 12; round++) {
		thing = fresh(0);
		EXPECT_EQ(start(thing, round % 2 ? HOUR : INT64_MAX, 0), 0);
		EXPECT_EQ(start(fresh(1), HOUR, 0), -ENOSPC);
		EXPECT_EQ(reset(thing, INT64_MAX, 0), 0);
		EXPECT_EQ(twheel_task_reset(&thing->task, TWHEEL_ABS, 1LL << 62, 0), 0);
		EXPECT_EQ(round % 3 ? cancel_task(thing) : run_now(thing), 0);
		ENDED(thing, round % 3 ? -ECANCELED : 0);
		gone(thing);
	}
	free_pool();
}

/*
 * Each deadline is so many periods after the first one, to the ns. Both are held for many:
 * these come as one run that knows, or as so many runs.
 */
static void test_rate(void)
{
	struct thing *rate = fresh(0), *each = fresh(1);
	__u64 periods;

	rate->held = 1;
	each->held = 1;
	EXPECT_EQ(start(rate, 0, MSEC), 0);
	EXPECT_EQ(start_with(each, TWHEEL_CATCH_UP, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(rate->waiting) && LOAD(each->waiting)));
	sleep_ns(30 * MSEC);
	STORE(rate->held, 0);
	STORE(each->held, 0);
	RUNS(rate, 30);
	RUNS(each, 50);
	EXPECT_EQ(cancel_wait(rate), 0);
	EXPECT_EQ(cancel_wait(each), 0);
	ENDED(rate, -ECANCELED);
	EXPECT_TRUE(rate->missed >= 28, "%llu", rate->missed);
	periods = (rate->last - rate->first) / MSEC;
	EXPECT_EQ((rate->last - rate->first) % MSEC, 0);
	EXPECT_EQ(periods, rate->runs - 1 + rate->missed - rate->last_missed);
	EXPECT_EQ(each->missed, 0);
	EXPECT_EQ((each->last - each->first) / MSEC, each->runs - 1, "each has a run");
}

static void gap(struct thing *thing)
{
	if (thing->over)
		EXPECT_TRUE(thing->begun >= thing->over + 2 * MSEC);
	sleep_ns(MSEC);
}

/* A fixed delay, and a task that says when next: twice the period. */
static void test_gaps(void)
{
	struct thing *fixed = fresh(0), *asked = fresh(1);

	fixed->within = gap;
	asked->within = gap;
	asked->task.next = next;
	EXPECT_EQ(start_with(fixed, TWHEEL_FIXED_DELAY, HOUR, 2 * MSEC), 0);
	EXPECT_EQ(run_now(fixed), 0);
	EXPECT_EQ(start(asked, 0, MSEC), 0);
	RUNS(fixed, 10);
	RUNS(asked, 10);
	EXPECT_EQ(cancel_wait(fixed), 0);
	EXPECT_EQ(cancel_wait(asked), 0);
	EXPECT_EQ(fixed->missed + asked->missed, 0);
	EXPECT_TRUE(asked->asked == asked->runs || asked->asked == asked->runs - 1);
}

static void test_reset(void)
{
	struct thing *thing = fresh(0), *held = hold(1, 0);
	__u64 before;

	EXPECT_EQ(start(thing, HOUR, 0), 0);
	EXPECT_EQ(twheel_task_reset(&thing->task, 8, 0, 0), -EINVAL);
	EXPECT_EQ(reset(thing, 0, 0), 0);
	/* One that is due, but nobody had time; and one that runs has another run */
	EXPECT_EQ(reset(thing, HOUR, 0), 0);
	EXPECT_EQ(twheel_task_reset(&held->task, TWHEEL_ABS, now(CLOCK_MONOTONIC), 0), 0);
	LET_GO(held, 0);
	EXPECT_EQ(held->runs, 2);
	EXPECT_EQ(thing->runs, 0);
	before = now(CLOCK_MONOTONIC);
	EXPECT_EQ(reset(thing, 5 * MSEC, 0), 0);
	ENDED(thing, 0);
	EXPECT_TRUE(thing->begun >= before + 5 * MSEC);
	/* A period goes on from where it was run */
	thing = fresh(0);
	EXPECT_EQ(start(thing, HOUR, 5 * MSEC), 0);
	before = now(CLOCK_MONOTONIC);
	EXPECT_EQ(run_now(thing), 0);
	RUNS(thing, 2);
	EXPECT_EQ(cancel_wait(thing), 0);
	EXPECT_TRUE(thing->first >= before && thing->last >= thing->first + 5 * MSEC);
	/* No period any more */
	held = hold(1, 0);
	EXPECT_EQ(reset(held, 0, MSEC), 0);
	EXPECT_EQ(reset(held, 0, 0), 0);
	LET_GO(held, 0);
	EXPECT_EQ(held->runs, 2);
}

/* One that runs, and will not run again; that runs and was reset; that has a period */
static void test_cancel(void)
{
	struct thing *thing = fresh(0), *held;
	int kind;

	EXPECT_EQ(cancel_task(thing), -ENOENT, "never started");
	EXPECT_EQ(cancel_wait(thing), -ENOENT);
	for (kind = 0; kind < 3; kind++) {
		held = hold(1, kind == 2 ? MSEC : 0);
		thing = fresh(0);
		EXPECT_EQ(start(thing, 0, 0), 0);
		EXPECT_EQ(cancel_task(thing), 0, "due, but not begun");
		ENDED(thing, -ECANCELED);
		if (kind == 1)
			EXPECT_EQ(run_now(held), 0);
		EXPECT_EQ(cancel_task(held), -EINPROGRESS);
		EXPECT_EQ(reset(held, 0, 0), -ENOENT, "cancelled");
		EXPECT_EQ(run_now(held), -ENOENT);
		EXPECT_EQ(held->ends, 0);
		LET_GO(held, kind ? -ECANCELED : 0);
		EXPECT_EQ(held->runs, 1);
		EXPECT_EQ(held->asked, 0);
		EXPECT_EQ(thing->runs, 0);
	}
}

static void linger(struct thing *thing)
{
	STORE(thing->waiting, 1);
	sleep_ns(MSEC);
}

/*
 * More is due, all the time, than one worker can run: each is run again and again. Over the
 * module, what is due at once has ordinary timers; the others have shared ones, and take so
 * long that some of them are always due.
 */
static void test_turns(void)
{
	int i, n = 24;

	for (i = 0; i < n; i += 2) {
		fresh(i)->within = linger;
		EXPECT_EQ(start_with(&things[i], TWHEEL_FIXED_DELAY, MSEC, MSEC), 0);
		EXPECT_EQ(start_with(fresh(i + 1), TWHEEL_CATCH_UP, 0, 1), 0);
	}
	for (i = 0; i < n; i++)
		if (!RUNS(&things[i], 20))
			break;
	for (i = 0; i < n; i++)
		EXPECT_EQ(cancel_wait(&things[i]), 0);
}

static void within_reset(struct thing *thing)
{
	if (thing->runs < 4)
		EXPECT_EQ(reset(thing, MSEC, 0), 0);
}

static void within_cancel(struct thing *thing)
{
	EXPECT_EQ(cancel_task(thing), -EINPROGRESS);
}

static void within_wait(struct thing *thing)
{
	EXPECT_EQ(cancel_wait(thing), -EDEADLK);
}

static void within_start(struct thing *thing)
{
	EXPECT_EQ(start(thing, 0, 0), -EBUSY);
}

static void within_stop(struct thing *thing)
{
	(void)thing;
	EXPECT_EQ(pool_stop(0), -EDEADLK);
	EXPECT_EQ(twheel_pool_free(pool), -EDEADLK);
}

static void end_again(struct thing *thing)
{
	EXPECT_EQ(cancel_task(thing), -ENOENT);
	EXPECT_EQ(reset(thing, 0, 0), -ENOENT);
	if (thing->got++ < 4)
		EXPECT_EQ(start(thing, 0, 0), 0);
}

static int64_t next_resets(struct twheel_task *task, uint64_t time, uint64_t period)
{
	struct thing *thing = task->arg;

	(void)time;
	(void)period;
	if (thing->asked++)
		return -EINTR;
	EXPECT_EQ(reset(thing, 0, MSEC), 0);
	return HOUR;
}

static int64_t next_cancels(struct twheel_task *task, uint64_t time, uint64_t period)
{
	(void)time;
	EXPECT_EQ(twheel_task_cancel(task), -EINPROGRESS);
	return period;
}

/* A worker takes no signal of the program's, but the handler of a crash runs. */
static void within_look(struct thing *thing)
{
	sigset_t blocked;

	(void)thing;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	EXPECT_TRUE(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGALRM));
	EXPECT_TRUE(!sigismember(&blocked, SIGSEGV) && !sigismember(&blocked, SIGBUS) &&
		    !sigismember(&blocked, SIGFPE) && !sigismember(&blocked, SIGABRT));
}

/* A child must not come back from a run. */
static void within_fork(struct thing *thing)
{
	pid_t child = fork();
	int status;

	(void)thing;
	if (!child)
		return;
	waitpid(child, &status, 0);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
}

/* What they do, how they end then, and how often they have run */
static void test_within(void)
{
	static const struct {
		struct thing thing;
		__s64 when;
		__u64 period;
		int why, runs;
	} cases[] = {
		{ { .runs = 0 }, -1, 0, 0, 1 },
		{ { .runs = 0 }, INT64_MIN, 0, 0, 1 },
		{ { .runs = 0 }, 20 * MSEC, 0, 0, 1 },
		{ { .gives = -EPROTO }, 0, MSEC, -EPROTO, 1 },
		{ { .task.next = next, .next_gives = -EIO }, 0, MSEC, -EIO, 1 },
		{ { .within = within_reset }, 0, 0, 0, 5 },
		{ { .within = within_cancel }, 0, MSEC, -ECANCELED, 1 },
		{ { .within = within_wait }, 0, MSEC, -ECANCELED, 1 },
		{ { .within = within_start }, 0, 0, 0, 1 },
		{ { .within = within_look }, 0, 0, 0, 1 },
		{ { .within = within_fork }, 0, 0, 0, 1 },
		{ { .within_end = end_again }, 0, 0, 0, 5 },
		{ { .task.next = next_resets }, 0, MSEC, -EINTR, 2 },
		{ { .task.next = next_cancels }, 0, MSEC, -ECANCELED, 1 },
		{ { .within = within_stop }, 0, MSEC, -ESHUTDOWN, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		__u64 before = now(CLOCK_MONOTONIC);
		struct thing *thing = fresh(0);
		int ends;

		thing->gives = cases[i].thing.gives;
		thing->next_gives = cases[i].thing.next_gives;
		thing->within = cases[i].thing.within;
		thing->within_end = cases[i].thing.within_end;
		thing->task.next = cases[i].thing.task.next;
		EXPECT_EQ(start(thing, cases[i].when, cases[i].period), 0);
		ends = thing->within_end ? 5 : 1;
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends) == ends), "%u", i);
		EXPECT_EQ(thing->why, cases[i].why, "%u", i);
		EXPECT_EQ(thing->runs, cases[i].runs, "%u", i);
		if (cases[i].when > 0)
			before += cases[i].when;
		EXPECT_TRUE(thing->first >= before);
		gone(thing);
	}
	EXPECT_EQ(start(fresh(1), 0, 0), -ESHUTDOWN);
}

/* (Which end a stop calls first is its affair.) */
static void wait_in_end(struct thing *thing)
{
	STORE(thing->waiting, 1);
	WAIT_FOR(!LOAD(thing->kept));
	sleep_ns(5 * MSEC);
	STORE(thing->waiting, 0);
}

static void test_cancel_wait(void)
{
	struct thing *thing = fresh(0);

	/* Through the run and the end */
	thing->within = linger;
	thing->within_end = linger;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
	EXPECT_EQ(cancel_wait(thing), 0);
	EXPECT_EQ(thing->ends, 1);
	/* Through the end of what has ended */
	thing = fresh(0);
	thing->within_end = wait_in_end;
	thing->kept = 1;
	EXPECT_EQ(start(thing, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
	EXPECT_EQ(cancel_task(thing), -EINPROGRESS, "not the caller's yet");
	STORE(thing->kept, 0);
	EXPECT_EQ(cancel_wait(thing), -ENOENT);
	EXPECT_EQ(thing->ends, 1);
	EXPECT_EQ(cancel_task(thing), -ENOENT);
}

static void test_start(void)
{
	struct thing *thing = fresh(0);

	EXPECT_EQ(start(thing, HOUR, 0), 0);
	EXPECT_EQ(start(thing, HOUR, 0), -EBUSY);
	EXPECT_EQ(cancel_task(thing), 0);
	EXPECT_EQ(start_with(thing, 8, 0, 0), -EINVAL);
	EXPECT_EQ(start_with(thing, TWHEEL_FIXED_DELAY | TWHEEL_CATCH_UP, 0, 1), -EINVAL);
	thing->task.run = NULL;
	EXPECT_EQ(start(thing, 0, 0), -EINVAL);
	free_pool();
	new_pool(0, 0);
	EXPECT_EQ(start(thing, 0, 1), -EINVAL, "a period without workers");
	EXPECT_EQ(start(thing, 0, 0), 0);
}

/* A task has its place while it runs, also for the next time, and none in its end. */
static void test_capacity(void)
{
	struct thing *held;

	new_pool(1, 2);
	held = hold(0, 0);
	EXPECT_EQ(start(fresh(1), HOUR, 0), 0);
	EXPECT_EQ(start(fresh(2), HOUR, 0), -ENOSPC);
	EXPECT_EQ(reset(held, HOUR, 0), 0);
	STORE(held->held, 0);
	RUNS(held, 1);
	EXPECT_EQ(start(fresh(2), HOUR, 0), -ENOSPC);
	EXPECT_EQ(cancel_wait(held), 0);
	held->within_end = end_again;
	held->ends = 0;
	held->got = 3;
	EXPECT_EQ(start(held, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(held->ends) == 2));
	free_pool();
}

static int handed;

static void count_left(struct twheel_task *task, void *arg)
{
	struct thing *thing = task->arg;

	EXPECT_TRUE(arg == &handed);
	EXPECT_EQ(ADD(thing->got), 1);
	EXPECT_EQ(cancel_task(thing), -ENOENT);
	EXPECT_EQ(cancel_wait(thing), -EDEADLK);
	handed++;
}

static void test_stop(void)
{
	struct thing *held;
	int i;

	held = hold(0, 0);
	EXPECT_EQ(run_now(held), 0);
	for (i = 1; i < 1000; i++)
		EXPECT_EQ(start(fresh(i), i % 2 ? 0 : HOUR, i % 3 ? 0 : MSEC), 0);
	handed = 0;
	STORE(held->held, 0);
	EXPECT_EQ(pool_stop(8), -EINVAL);
	EXPECT_EQ(twheel_pool_stop(pool, 0, count_left, &handed), 0);
	for (i = 1; i < 1000; i++) {
		struct thing *thing = &things[i];

		EXPECT_EQ(thing->got + thing->ends, 1, "%d", i);
		EXPECT_TRUE(!thing->got || i % 3 == 0 || !thing->runs, "%d", i);
	}
	EXPECT_TRUE(handed >= 499);
	/* Who runs is to run again: that begins before the stop, or is left. */
	EXPECT_EQ(held->got + held->ends, 1);
	EXPECT_EQ(start(fresh(1), 0, 0), -ESHUTDOWN);
	EXPECT_EQ(twheel_pool_stop(pool, 0, count_left, &handed), 0, "once more");
}

/* Who does not wait learns whether it is over. */
static void test_stop_without_wait(void)
{
	const __u32 flags = TWHEEL_RUN_ONCE | TWHEEL_NO_WAIT;
	struct thing *held, *late = fresh(1), *periodic = fresh(2);

	held = hold(0, 0);
	EXPECT_EQ(start(late, 5 * MSEC, 0), 0);
	EXPECT_EQ(start(periodic, HOUR, HOUR), 0);
	EXPECT_EQ(pool_stop(flags), -EINPROGRESS);
	ENDED(periodic, -ESHUTDOWN);
	EXPECT_EQ(start(fresh(3), 0, 0), -ESHUTDOWN);
	EXPECT_EQ(pool_stop(flags), -EINPROGRESS);
	LET_GO(held, 0);
	EXPECT_TRUE(WAIT_FOR(!pool_stop(flags)));
	ENDED(late, 0);
	EXPECT_EQ(late->runs, 1);
}

/* What is still run comes as it would have. */
static void test_stop_keeps_order(void)
{
	__u64 time = now(CLOCK_MONOTONIC) - SEC;
	int i;

	for (i = 0; i < 50; i++)
		EXPECT_EQ(start_with(fresh(i), TWHEEL_ABS, time + i * TICK, 0), 0);
	EXPECT_EQ(pool_stop(TWHEEL_RUN_ONCE | TWHEEL_NO_WAIT), -EINPROGRESS);
	take_in_order(50);
	EXPECT_EQ(pool_stop(TWHEEL_NO_WAIT), 0);
}

static void within_stopping(struct thing *thing)
{
	WAIT_FOR(start(&things[1], HOUR, 0) == -ESHUTDOWN || cancel_task(&things[1]));
	thing->got = reset(thing, 0, 0);
	EXPECT_EQ(reset(thing, 0, MSEC), -ENOENT);
	EXPECT_EQ(run_now(thing), thing->got);
	thing->within = NULL;
}

/* What a stop does not keep is not run again, and a reset says so */
static void test_reset_while_stopping(void)
{
	const __u32 flags[] = { 0, TWHEEL_RUN_ONCE };
	struct thing *thing;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		new_pool(1, 0);
		fresh(1);
		thing = fresh(0);
		thing->within = within_stopping;
		EXPECT_EQ(start(thing, 0, 0), 0);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->inside)));
		EXPECT_EQ(pool_stop(flags[i]), 0);
		EXPECT_EQ(thing->got, flags[i] ? 0 : -ENOENT);
		EXPECT_EQ(thing->runs, flags[i] ? 2 : 1);
		ENDED(thing, 0);
		free_pool();
	}
}

static void *stop_with(void *flags)
{
	EXPECT_EQ(pool_stop((uintptr_t)flags), 0);
	return NULL;
}

static void test_stop_twice(void)
{
	struct thing *once = fresh(0), *periodic = fresh(1);
	pthread_t stopper;

	EXPECT_EQ(start(once, HOUR, 0), 0);
	EXPECT_EQ(start(periodic, 0, MSEC), 0);
	stopper = thread(stop_with, (void *)TWHEEL_RUN_PERIODIC);
	ENDED(once, -ESHUTDOWN);
	RUNS(periodic, 21);
	EXPECT_EQ(start(fresh(2), 0, 0), -ESHUTDOWN);
	EXPECT_EQ(pool_stop(TWHEEL_RUN_ONCE), 0);
	ENDED(periodic, -ESHUTDOWN);
	pthread_join(stopper, NULL);
}

#define LEFT 3

static void start_left(void)
{
	int i;

	for (i = 0; i < LEFT; i++) {
		fresh(i)->within_end = wait_in_end;
		things[i].kept = 1;
		EXPECT_EQ(start(&things[i], HOUR, 0), 0);
	}
}

/* The first of them is being handed over. Gives one that is not yet. */
static struct thing *wait_for_first(void)
{
	int i = 0;

	EXPECT_TRUE(WAIT_FOR(LOAD(things[i = (i + 1) % LEFT].waiting)));
	return &things[(i + 1) % LEFT];
}

static void let_all_go(void)
{
	int i;

	for (i = 0; i < LEFT; i++)
		STORE(things[i].kept, 0);
}

static void *wait_for_left(void *arg)
{
	struct thing *thing = arg;
	int ret = cancel_wait(thing);

	EXPECT_TRUE(!ret || ret == -ENOENT, "%d", ret);
	EXPECT_EQ(LOAD(thing->ends), 1, "it was not waited for");
	EXPECT_TRUE(!LOAD(thing->waiting));
	ADD(thing->got);
	return NULL;
}

static void test_wait_for_left(void)
{
	pthread_t stopper, waiters[LEFT];
	int i;

	start_left();
	stopper = thread(stop_with, NULL);
	wait_for_first();
	for (i = 0; i < LEFT; i++)
		waiters[i] = thread(wait_for_left, &things[i]);
	sleep_ns(20 * MSEC);
	for (i = 0; i < LEFT; i++)
		EXPECT_EQ(LOAD(things[i].got), 0);
	let_all_go();
	for (i = 0; i < LEFT; i++)
		pthread_join(waiters[i], NULL);
	pthread_join(stopper, NULL);
}

/* A run that waits for one that another thread is handing over */
static void within_wait_left(struct thing *thing)
{
	thing = wait_for_first();
	let_all_go();
	EXPECT_EQ(cancel_wait(thing), 0);
	EXPECT_EQ(LOAD(thing->ends), 1);
}

static void test_run_waits_for_left(void)
{
	struct thing *runs = fresh(LEFT);

	start_left();
	runs->within = within_wait_left;
	EXPECT_EQ(start(runs, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(runs->inside)));
	EXPECT_EQ(pool_stop(0), 0);
	ENDED(runs, 0);
}

static void test_take(void)
{
	struct twheel_task *tasks[10];
	__u64 before = now(CLOCK_MONOTONIC);

	EXPECT_EQ(twheel_pool_take(pool, tasks, 0, 0), -EINVAL);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 5 * MSEC), 0);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= before + 5 * MSEC);
	EXPECT_EQ(start(fresh(0), 5 * MSEC, 0), 0);
	EXPECT_TRUE(!readable(twheel_pool_fd(pool), 0) ||
		    now(CLOCK_MONOTONIC) >= before + 10 * MSEC);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 10, -1), 1);
	EXPECT_TRUE(tasks[0] == &things[0].task && now(CLOCK_MONOTONIC) >= before + 10 * MSEC);
	EXPECT_EQ(start(&things[0], 0, 0), 0, "in no pool any more");
	EXPECT_TRUE(readable(twheel_pool_fd(pool), PATIENCE_MS));
	EXPECT_EQ(cancel_task(&things[0]), 0);
	EXPECT_EQ(things[0].ends, 1, "and none when it was taken");
	/* Whatever others make of the descriptor */
	EXPECT_EQ(fcntl(twheel_pool_fd(pool), F_SETFL, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, MSEC), 0);
	free_pool();
	new_pool(1, 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 0), -EINVAL);
	EXPECT_EQ(twheel_pool_fd(pool), -EINVAL);
}

/* A signal, and then the end */
static void test_take_ends(void)
{
	struct twheel_task *task;

	signals_come(1);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, -1), -EINTR);
	signals_come(0);
	EXPECT_EQ(start(fresh(0), 0, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, -1), 1, "nothing is left behind");
	EXPECT_EQ(pool_stop(0), 0);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, -1), -ESHUTDOWN);
}

static int taken;

static void *taker(void *arg)
{
	struct twheel_task *tasks[3];
	int i, nr;

	(void)arg;
	while ((nr = twheel_pool_take(pool, tasks, 3, -1)) > 0) {
		for (i = 0; i < nr; i++)
			EXPECT_EQ(ADD(((struct thing *)tasks[i]->arg)->got), 1);
		__atomic_add_fetch(&taken, nr, __ATOMIC_ACQ_REL);
	}
	EXPECT_EQ(nr, -ESHUTDOWN);
	return NULL;
}

static void test_takers(void)
{
	pthread_t threads[8];
	int i;

	taken = 0;
	for (i = 0; i < 8; i++)
		threads[i] = thread(taker, NULL);
	for (i = 0; i < 990; i++)
		EXPECT_EQ(start(fresh(i), i % 20 * MSEC, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(taken) == 990));
	/* Threads that wait go on when there is an end; what was kept can be taken still */
	for (i = 0; i < 100; i++)
		EXPECT_EQ(start(fresh(i), 10 * MSEC, 0), 0);
	EXPECT_EQ(pool_stop(TWHEEL_RUN_ONCE), 0);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(taken, 1090);
}

static void in_child(void)
{
	struct twheel_task *task;
	struct twheel_pool *parents = pool;

	EXPECT_EQ(start(fresh(1), 0, 0), -EBADF);
	EXPECT_EQ(cancel_task(&things[0]), -EBADF);
	EXPECT_EQ(cancel_wait(&things[0]), -EBADF);
	EXPECT_EQ(reset(&things[0], 0, 0), -EBADF);
	EXPECT_EQ(run_now(&things[0]), -EBADF);
	EXPECT_EQ(pool_stop(0), -EBADF);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, 0), -EBADF);
	EXPECT_EQ(twheel_pool_fd(pool), -EBADF);
	new_pool(0, 0);
	EXPECT_EQ(start(fresh(1), 0, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, -1), 1, "one of its own");
	free_pool();
	EXPECT_EQ(twheel_pool_free(parents), 0);
}

#ifdef __SANITIZE_ADDRESS__
/* Its allocator may be locked in a child for good, if another thread allocates at a fork. */
#define ALLOCATES false
#else
#define ALLOCATES true
#endif

static bool over;

/* Enough tasks for memory to come and go, whatever a child finds of it */
static void *start_and_cancel(void *arg)
{
	int i;

	while (ALLOCATES && !LOAD(over)) {
		for (i = 100; i < 1000; i++)
			EXPECT_EQ(start(fresh(i), HOUR, 0), 0);
		for (i = 100; i < 1000; i++)
			EXPECT_EQ(cancel_task(&things[i]), 0);
	}
	return arg;
}

static void test_fork(void)
{
	struct thing *periodic = fresh(0);
	pthread_t other;
	int i;

	EXPECT_EQ(start(periodic, MSEC, MSEC), 0);
	over = false;
	other = thread(start_and_cancel, NULL);
	for (i = 0; i < 50; i++)
		tap_join(tap_fork(in_child));
	STORE(over, true);
	pthread_join(other, NULL);
	/* The parent's goes on */
	i = LOAD(periodic->runs);
	RUNS(periodic, i + 10);
	EXPECT_EQ(cancel_wait(periodic), 0);
}

static int wheel_of_child = -1;

/* A library that has a wheel gives its child one of its own. */
static void begin_anew(void)
{
	struct twheel_op op = twheel_op_arm(0, 0, 0, 1);
	struct twheel *tw;

	wheel_of_child = twheel_open(TWHEEL_USER, &tw) ?: twheel_arm(tw, &op);
}

static void child_with_wheel(void)
{
	EXPECT_EQ(wheel_of_child, 0);
}

/* Registered before all that the library does */
static void test_fork_handler(void)
{
	tap_join(tap_fork(child_with_wheel));
}

static pthread_t spawned[4];
static int nr_spawned;

static int spawn(void *(*fn)(void *worker), void *worker, void *arg)
{
	EXPECT_TRUE(arg == &nr_spawned);
	/* Not negative, as pthread_create(3) has it */
	return nr_spawned == 3 ? EUSERS :
	       pthread_create(&spawned[nr_spawned++], NULL, fn, worker);
}

static void test_spawn(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .spawn = spawn, .arg = &nr_spawned,
	};
	int i;

	for (options.threads = 3; options.threads <= 4; options.threads++) {
		int want = options.threads == 4 ? -EUSERS : 0;

		nr_spawned = 0;
		EXPECT_EQ(twheel_pool_new(&options, &pool), want);
		EXPECT_EQ(nr_spawned, 3);
		if (!want) {
			EXPECT_EQ(start(fresh(0), 0, 0), 0);
			ENDED(&things[0], 0);
			free_pool();
		}
		for (i = 0; i < 3; i++)
			pthread_join(spawned[i], NULL);
	}
}

static void *take_for_ever(void *arg)
{
	struct twheel_task *task;

	(void)arg;
	for (;;) {
		twheel_pool_take(pool, &task, 1, MSEC);
		pthread_testcancel();
	}
	return NULL;
}

static void *cancel_one(void *arg)
{
	EXPECT_EQ(cancel_task(arg), 0);
	pthread_testcancel();
	return NULL;
}

static void test_cancelled_thread(void)
{
	struct twheel_task *task;
	pthread_t other;
	int i;

	for (i = 0; i < 50; i++) {
		other = thread(take_for_ever, NULL);
		EXPECT_EQ(start(fresh(i), i * 50 * USEC, 0), 0);
		end_thread(other);
	}
	EXPECT_EQ(start(fresh(50), 0, 0), 0);
	EXPECT_TRUE(twheel_pool_take(pool, &task, 1, -1) == 1);
	/* In an end that it calls itself */
	for (i = 0; i < 50; i++) {
		struct thing *thing = fresh(i);

		thing->within_end = linger;
		EXPECT_EQ(start(thing, HOUR, 0), 0);
		other = thread(cancel_one, thing);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
		end_thread(other);
		ENDED(thing, -ECANCELED);
	}
	EXPECT_EQ(pool_stop(0), 0);
}

/* With a cancellation that is due all the while */
static void *make_and_free(void *arg)
{
	struct twheel *tw;

	(void)arg;
	pthread_cancel(pthread_self());
	if (EXPECT_EQ(twheel_open(0, &tw), 0))
		twheel_close(tw);
	if (EXPECT_EQ(made(2, 0, TICK), 0))
		EXPECT_EQ(twheel_pool_free(pool), 0);
	handed = 1;
	pthread_testcancel();
	return NULL;
}

static void test_cancelled_maker(void)
{
	int fd = dup(0), i;
	void *ret;

	close(fd);
	for (i = 0; i < 5; i++) {
		handed = 0;
		pthread_join(thread(make_and_free, NULL), &ret);
		EXPECT_TRUE(ret == PTHREAD_CANCELED);
		EXPECT_TRUE(handed, "cancelled within");
	}
	i = dup(0);
	EXPECT_EQ(i, fd, "descriptors are left");
	close(i);
}

/* One that its end starts in another pool, while it is cancelled */
#define MOVED 300

static struct twheel_pool *other_pool;
static struct thing *moving;

static void move(struct thing *thing)
{
	if (thing->why)
		return;
	STORE(moving, thing);
	EXPECT_EQ(twheel_task_start(other_pool, &thing->task, 0, HOUR, 0), 0);
}

static void *cancel_moving(void *arg)
{
	struct thing *thing;

	while ((thing = LOAD(moving)) != &things[MOVED])
		cancel_task(thing);
	return arg;
}

static void test_other_pool(void)
{
	pthread_t other;
	int i, round;

	for (round = 0; round < 20; round++) {
		new_pool(1, 0);
		other_pool = pool;
		new_pool(1, 0);
		/* The ids that it could have here, which nobody cancels */
		for (i = 0; i < MOVED; i++)
			EXPECT_EQ(start(fresh(500 + i), HOUR, 0), 0);
		for (i = 0; i < MOVED; i++)
			fresh(i)->within_end = move;
		moving = &things[0];
		other = thread(cancel_moving, NULL);
		for (i = 0; i < MOVED; i++) {
			EXPECT_EQ(start(&things[i], 0, 0), 0);
			EXPECT_TRUE(WAIT_FOR(LOAD(things[i].ends)));
		}
		STORE(moving, &things[MOVED]);
		pthread_join(other, NULL);
		for (i = 0; i < MOVED; i++)
			EXPECT_EQ(cancel_task(&things[500 + i]), 0);
		free_pool();
		EXPECT_EQ(twheel_pool_free(other_pool), 0);
	}
}

/* How often threads of this process but this one have gone to sleep */
static long sleeps(void)
{
	struct rusage all, own;

	getrusage(RUSAGE_SELF, &all);
	getrusage(RUSAGE_THREAD, &own);
	return all.ru_nvcsw - own.ru_nvcsw;
}

/*
 * One of many that wait is woken, and then another one to wait in its place: each goes to sleep
 * again. Were all woken, it would be eight for an expiry. (Three tries: others use this machine as
 * well.)
 */
static void test_herd(void)
{
	long before, switches = 0;
	int try, i, n = 1000;

	for (try = 0; try < 3; try++) {
		sleep_ns(20 * MSEC);
		before = sleeps();
		for (i = 0; i < n; i++)
			EXPECT_EQ(start(fresh(i), 10 * MSEC + i * MSEC, 0), 0);
		for (i = 0; i < n; i++)
			EXPECT_TRUE(WAIT_FOR(LOAD(things[i].ends)));
		switches = sleeps() - before;
		tap_diag("%ld switches of %d expiries", switches, n);
		if (switches <= 3 * n)
			break;
	}
	EXPECT_TRUE(switches <= 3 * n);
}

int main(void)
{
	tap_start(120);
	pthread_atfork(NULL, NULL, begin_anew);
	RUN(test_options, "options");
	RUN(test_due_now, "what is due now does not wait for the end of a tick");
	RUN(test_due_now_beside_others, "what is due now comes with what was not taken");
	RUN(test_huge, "huge delays and periods");
	POOL(2, test_rate, "a fixed rate does not drift, and knows missed periods");
	POOL(2, test_gaps, "a fixed delay, and a task that says when next");
	POOL(1, test_reset, "reset and run_now");
	POOL(1, test_cancel, "cancel");
	POOL(1, test_turns, "more than one worker can run");
	POOL(2, test_within, "once; and what runs, ends and next can do");
	POOL(2, test_cancel_wait, "cancel_wait");
	POOL(1, test_start, "start");
	RUN(test_capacity, "capacity, and places that are free at once");
	POOL(1, test_stop, "stop hands over each exactly once");
	POOL(1, test_stop_without_wait, "a stop that does not wait");
	POOL(0, test_stop_keeps_order, "a stop leaves the order as it is");
	RUN(test_reset_while_stopping, "a reset while a stop waits");
	POOL(2, test_stop_twice, "a stop that runs some still, and one that does not");
	POOL(1, test_wait_for_left, "cancel_wait of those that a stop hands over");
	POOL(1, test_run_waits_for_left, "a run waits for one that another thread hands over");
	POOL(0, test_take, "a delay queue");
	POOL(0, test_take_ends, "a delay queue, signals, and its end");
	POOL(0, test_takers, "many takers");
	POOL(2, test_fork, "fork");
	RUN(test_fork_handler, "fork, and who begins anew in the child");
	RUN(test_spawn, "threads that the caller makes");
	POOL(0, test_cancelled_thread, "a thread that is cancelled");
	RUN(test_cancelled_maker, "a thread that is cancelled while it makes and frees one");
	RUN(test_other_pool, "an end that starts its task in another pool");
	POOL(8, test_herd, "one worker is woken for an expiry");
	return tap_end();
}
