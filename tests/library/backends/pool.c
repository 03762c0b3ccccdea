// SPDX-License-Identifier: GPL-2.0
/* Tasks and pools: each sentence of twheel_pool(3), with whichever backend there is. */

#include "device.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>

#include <twheel_pool.h>

#define TICK (100 * USEC)

/* A task that can be watched, and that waits in its run while @held */
struct thing {
	struct twheel_task task;
	int runs, ends, why, inside, held, waiting;
	__u64 first, last, begun, over, missed;
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

static int made(__u32 threads, __u32 capacity)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = threads, .capacity = capacity,
		.tick = TICK,
	};

	return twheel_pool_new(&options, &pool);
}

static void new_pool(__u32 threads, __u32 capacity)
{
	int ret = made(threads, capacity);

	if (ret)
		tap_bail("twheel_pool_new: %s", strerror(-ret));
}

static void free_pool(void)
{
	EXPECT_EQ(twheel_pool_free(pool), 0);
	pool = NULL;
}

static int start(struct thing *thing, __s64 when, __u64 period)
{
	return twheel_task_start(pool, &thing->task, 0, when, period);
}

static void check_end(const struct thing *thing, int why, int line)
{
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends)), "of line %d", line);
	EXPECT_EQ(thing->ends, 1, "of line %d", line);
	EXPECT_EQ(thing->why, why, "of line %d", line);
}

#define ENDED(thing, why) check_end(thing, why, __LINE__)

/* A pool of one worker, who is in the run of this task until it is let go */
static struct thing *hold(int n)
{
	struct thing *thing = fresh(n);

	thing->held = 1;
	EXPECT_EQ(start(thing, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
	return thing;
}

static void let_go(struct thing *thing)
{
	STORE(thing->held, 0);
	ENDED(thing, 0);
}

static void test_options(void)
{
	struct twheel_pool_options options = { .size = sizeof(options), .threads = 1 };
	struct { struct twheel_pool_options options; __u64 more; } longer = {
		.options = { .size = sizeof(longer) },
	};
	static union { struct twheel_pool_options options; char bytes[8192]; } longest;
	struct twheel_pool_options bad;

	EXPECT_EQ(twheel_pool_new(&options, &pool), 0);
	free_pool();
	EXPECT_EQ(twheel_pool_new(&longer.options, &pool), 0);
	free_pool();
	longer.more = 1;
	EXPECT_EQ(twheel_pool_new(&longer.options, &pool), -E2BIG);
	memset(&longest, 0, sizeof(longest));
	longest.options.size = 4096;
	EXPECT_EQ(twheel_pool_new(&longest.options, &pool), 0);
	free_pool();
	longest.options.size++;
	EXPECT_EQ(twheel_pool_new(&longest.options, &pool), -E2BIG);
	bad = options;
	bad.size--;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EINVAL);
	bad = options;
	bad.flags = 1;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EINVAL);
	bad.flags = TWHEEL_KERNEL | TWHEEL_USER;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EINVAL);
	bad = options;
	bad.threads = 4097;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EINVAL);
	bad = options;
	bad.clock = 1;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EINVAL);
	bad = options;
	bad.__reserved = 1;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EINVAL);
	bad = options;
	bad.tick = 1;
	EXPECT_EQ(twheel_pool_new(&bad, &pool), -EOPNOTSUPP);
	EXPECT_EQ(twheel_pool_free(NULL), 0);
}

static void test_once(void)
{
	const __s64 delays[] = { 0, -1, INT64_MIN, 1, MSEC, 20 * MSEC };
	__u64 before;
	unsigned int i;

	new_pool(2, 0);
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		struct thing *thing = fresh(i);

		before = now(CLOCK_MONOTONIC);
		EXPECT_EQ(start(thing, delays[i], 0), 0);
		ENDED(thing, 0);
		EXPECT_EQ(thing->runs, 1);
		EXPECT_TRUE(thing->first >= before + (delays[i] > 0 ? delays[i] : 0));
		EXPECT_TRUE(thing->first <= thing->begun);
		EXPECT_EQ(thing->missed, 0);
		EXPECT_TRUE(WAIT_FOR(twheel_task_cancel(&thing->task) == -ENOENT));
		EXPECT_EQ(twheel_task_reset(&thing->task, 0, 0, 0), -ENOENT);
		EXPECT_EQ(twheel_task_run_now(&thing->task), -ENOENT);
	}
	before = now(CLOCK_MONOTONIC) + 5 * MSEC;
	fresh(0);
	EXPECT_EQ(twheel_task_start(pool, &things[0].task, TWHEEL_ABS, before, 0), 0);
	ENDED(&things[0], 0);
	EXPECT_EQ(things[0].first, before);
	free_pool();
}

/* It waits for the next run when its only worker has run another one */
static void after_first_run(struct thing *thing)
{
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->runs)));
	EXPECT_EQ(start(fresh(9), 0, 0), 0);
	ENDED(&things[9], 0);
	EXPECT_EQ(twheel_task_cancel(&thing->task), 0);
	EXPECT_EQ(thing->runs, 1);
}

/* Nobody has looked for what came due meanwhile. */
static void test_due_now_beside_others(void)
{
	struct twheel_pool_options options = { .size = sizeof(options), .tick = SEC / 2 };
	struct twheel_task *taken[1];
	__u64 time;
	int i;

	EXPECT_EQ(twheel_pool_new(&options, &pool), 0);
	EXPECT_EQ(start(fresh(0), MSEC, 0), 0);
	EXPECT_TRUE(readable(twheel_pool_fd(pool), 60000));
	time = now(CLOCK_MONOTONIC);
	EXPECT_EQ(twheel_task_start(pool, &fresh(1)->task, TWHEEL_ABS, time, 0), 0);
	EXPECT_EQ(start(fresh(2), 0, 0), 0);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(twheel_pool_take(pool, taken, 1, 0), 1);
		EXPECT_TRUE(taken[0] == &things[i].task, "%d", i);
	}
	free_pool();
}

static void test_huge(void)
{
	struct thing *thing = fresh(0);
	int round;

	new_pool(1, 0);
	EXPECT_EQ(start(thing, INT64_MAX, UINT64_MAX), 0);
	EXPECT_EQ(twheel_task_cancel(&thing->task), 0);
	ENDED(thing, -ECANCELED);
	thing = fresh(1);
	EXPECT_EQ(start(thing, 0, UINT64_MAX), 0);
	after_first_run(thing);
	thing = fresh(2);
	thing->task.next = next;
	thing->next_gives = INT64_MAX;
	EXPECT_EQ(twheel_task_start(pool, &thing->task, TWHEEL_FIXED_DELAY, 0, UINT64_MAX), 0);
	after_first_run(thing);
	free_pool();
	/* There and back, also where there is one place only */
	new_pool(1, 1);
	for (round = 0; round < 100; round++) {
		thing = fresh(0);
		EXPECT_EQ(start(thing, round % 2 ? HOUR : INT64_MAX, 0), 0);
		EXPECT_EQ(start(fresh(1), HOUR, 0), -ENOSPC);
		EXPECT_EQ(twheel_task_reset(&thing->task, 0, INT64_MAX, 0), 0);
		EXPECT_EQ(twheel_task_reset(&thing->task, TWHEEL_ABS, 1LL << 62, 0), 0);
		if (round % 3) {
			EXPECT_EQ(twheel_task_cancel(&thing->task), 0);
			continue;
		}
		EXPECT_EQ(twheel_task_run_now(&thing->task), 0);
		ENDED(thing, 0);
		EXPECT_TRUE(WAIT_FOR(twheel_task_cancel(&thing->task) == -ENOENT));
	}
	free_pool();
}

/* Each deadline is so many periods after the first one, to the ns */
static void test_rate(void)
{
	struct thing *thing = fresh(0);

	new_pool(2, 0);
	EXPECT_EQ(start(thing, MSEC, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->runs) >= 50));
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	EXPECT_EQ((thing->last - thing->first) % MSEC, 0);
	EXPECT_TRUE((thing->last - thing->first) / MSEC <= (__u64)thing->runs - 1 + thing->missed);
	EXPECT_TRUE((thing->last - thing->first) / MSEC >= (__u64)thing->runs - 1);
	ENDED(thing, -ECANCELED);
	free_pool();
}

/* It was held for many periods: they come as one run that knows, or as so many runs */
static void test_missed(void)
{
	struct thing *rate, *each;

	new_pool(2, 0);
	rate = fresh(0);
	each = fresh(1);
	rate->held = 1;
	each->held = 1;
	EXPECT_EQ(start(rate, 0, MSEC), 0);
	EXPECT_EQ(twheel_task_start(pool, &each->task, TWHEEL_CATCH_UP, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(rate->waiting) && LOAD(each->waiting)));
	sleep_ns(30 * MSEC);
	STORE(rate->held, 0);
	STORE(each->held, 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(rate->runs) >= 3));
	EXPECT_TRUE(WAIT_FOR(LOAD(each->runs) >= 30));
	EXPECT_EQ(twheel_task_cancel_wait(&rate->task), 0);
	EXPECT_EQ(twheel_task_cancel_wait(&each->task), 0);
	EXPECT_TRUE(rate->missed >= 28, "%llu", rate->missed);
	EXPECT_EQ((rate->last - rate->first) % MSEC, 0);
	EXPECT_TRUE((rate->last - rate->first) / MSEC <= (__u64)rate->runs - 1 + rate->missed);
	EXPECT_EQ(each->missed, 0);
	EXPECT_EQ((each->last - each->first) / MSEC, each->runs - 1, "each has a run");
	free_pool();
}

static void gap(struct thing *thing)
{
	if (thing->over)
		EXPECT_TRUE(thing->begun >= thing->over + 2 * MSEC);
	sleep_ns(MSEC);
}

/*
 * Within a long tick, at whose end another one is due: what is due now does not wait for
 * that. If it did, five in a row took more than four ticks.
 */
static void test_due_now(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = 2, .tick = SEC,
	};
	struct thing *other = fresh(0), *thing = fresh(1);
	__u64 begun;
	int i;

	if (!EXPECT_EQ(twheel_pool_new(&options, &pool), 0))
		return;
	EXPECT_EQ(start(other, 100 * MSEC, 300 * MSEC), 0);
	begun = now(CLOCK_MONOTONIC);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(start(thing, 0, 0), 0);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends) == 2 * i + 1));
		EXPECT_EQ(start(thing, HOUR, 0), 0);
		EXPECT_EQ(twheel_task_run_now(&thing->task), 0);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends) == 2 * i + 2));
	}
	EXPECT_TRUE(now(CLOCK_MONOTONIC) - begun < 4 * SEC);
	EXPECT_EQ(thing->runs, 10);
	free_pool();
}

static void test_fixed_delay(void)
{
	struct thing *thing = fresh(0);

	new_pool(2, 0);
	thing->within = gap;
	EXPECT_EQ(twheel_task_start(pool, &thing->task, TWHEEL_FIXED_DELAY, 0, 2 * MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->runs) >= 10));
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	EXPECT_EQ(thing->missed, 0);
	free_pool();
}

static void test_next(void)
{
	struct thing *thing = fresh(0);

	new_pool(2, 0);
	thing->task.next = next;
	thing->within = gap;		/* It gives twice the period */
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->runs) >= 10));
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	EXPECT_TRUE(thing->asked == thing->runs || thing->asked == thing->runs - 1);
	thing = fresh(0);
	thing->task.next = next;
	thing->next_gives = -EIO;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	ENDED(thing, -EIO);
	EXPECT_EQ(thing->runs, 1);
	/* One that has no period is not asked */
	thing = fresh(0);
	thing->task.next = next;
	EXPECT_EQ(start(thing, 0, 0), 0);
	ENDED(thing, 0);
	EXPECT_EQ(thing->asked, 0);
	free_pool();
}

/* A task that fails ends, and no other one with it; slow ones keep one worker each */
static void test_others(void)
{
	struct thing *bad = fresh(0), *good = fresh(1), *slow;

	new_pool(2, 0);
	bad->gives = -EPROTO;
	EXPECT_EQ(start(bad, 0, MSEC), 0);
	ENDED(bad, -EPROTO);
	EXPECT_EQ(bad->runs, 1);
	slow = hold(2);
	EXPECT_EQ(start(good, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(good->runs) >= 20));
	let_go(slow);
	EXPECT_EQ(twheel_task_cancel_wait(&good->task), 0);
	free_pool();
}

static void test_reset(void)
{
	struct thing *thing = fresh(0), *held;
	__u64 before;

	new_pool(1, 0);
	EXPECT_EQ(start(thing, HOUR, 0), 0);
	EXPECT_EQ(twheel_task_reset(&thing->task, 8, 0, 0), -EINVAL);
	before = now(CLOCK_MONOTONIC);
	EXPECT_EQ(twheel_task_reset(&thing->task, 0, 5 * MSEC, 0), 0);
	ENDED(thing, 0);
	EXPECT_TRUE(thing->begun >= before + 5 * MSEC);
	/* One that is due, but nobody had time */
	held = hold(1);
	thing = fresh(0);
	EXPECT_EQ(start(thing, 0, 0), 0);
	EXPECT_EQ(twheel_task_reset(&thing->task, 0, HOUR, 0), 0);
	/* And one that runs has another run */
	EXPECT_EQ(twheel_task_reset(&held->task, TWHEEL_ABS, now(CLOCK_MONOTONIC), 0), 0);
	STORE(held->held, 0);
	ENDED(held, 0);
	EXPECT_EQ(held->runs, 2);
	EXPECT_EQ(thing->runs, 0);
	EXPECT_EQ(twheel_task_run_now(&thing->task), 0);
	ENDED(thing, 0);
	EXPECT_EQ(thing->runs, 1);
	/* A period goes on from where it was run */
	thing = fresh(0);
	EXPECT_EQ(start(thing, HOUR, 5 * MSEC), 0);
	before = now(CLOCK_MONOTONIC);
	EXPECT_EQ(twheel_task_run_now(&thing->task), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->runs) >= 2));
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	EXPECT_TRUE(thing->first >= before && thing->last >= thing->first + 5 * MSEC);
	/* No period any more */
	held = hold(1);
	EXPECT_EQ(twheel_task_reset(&held->task, 0, 0, MSEC), 0);
	EXPECT_EQ(twheel_task_reset(&held->task, 0, 0, 0), 0);
	STORE(held->held, 0);
	ENDED(held, 0);
	EXPECT_EQ(held->runs, 2);
	free_pool();
}

static void test_cancel(void)
{
	struct thing *thing = fresh(0), *held;

	EXPECT_EQ(twheel_task_cancel(&thing->task), -ENOENT, "never started");
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), -ENOENT);
	new_pool(1, 0);
	EXPECT_EQ(start(thing, HOUR, 0), 0);
	EXPECT_EQ(twheel_task_cancel(&thing->task), 0);
	ENDED(thing, -ECANCELED);
	held = hold(1);
	thing = fresh(0);
	EXPECT_EQ(start(thing, 0, 0), 0);
	EXPECT_EQ(twheel_task_cancel(&thing->task), 0, "due, but not begun");
	ENDED(thing, -ECANCELED);
	EXPECT_EQ(twheel_task_cancel(&held->task), -EINPROGRESS);
	EXPECT_EQ(twheel_task_reset(&held->task, 0, 0, 0), -ENOENT, "cancelled");
	EXPECT_EQ(twheel_task_run_now(&held->task), -ENOENT);
	EXPECT_EQ(held->ends, 0);
	let_go(held);
	/* A reset while it runs is cancelled with it */
	held = hold(1);
	EXPECT_EQ(twheel_task_run_now(&held->task), 0);
	EXPECT_EQ(twheel_task_cancel(&held->task), -EINPROGRESS);
	STORE(held->held, 0);
	ENDED(held, -ECANCELED);
	EXPECT_EQ(held->runs, 1);
	/* So is a period, and it is not asked for a further one */
	held = fresh(1);
	held->held = 1;
	held->task.next = next;
	EXPECT_EQ(start(held, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(held->waiting)));
	EXPECT_EQ(twheel_task_cancel(&held->task), -EINPROGRESS);
	STORE(held->held, 0);
	ENDED(held, -ECANCELED);
	EXPECT_EQ(held->runs, 1);
	EXPECT_EQ(held->asked, 0);
	EXPECT_EQ(thing->runs, 0);
	free_pool();
}

/* Who comes after one that was due and is cancelled gets nothing of it, nor loses anything */
static void test_reuse(void)
{
	struct thing *held;
	int i, round;

	new_pool(1, 0);
	for (round = 0; round < 50; round++) {
		held = hold(0);
		for (i = 1; i < 10; i++)
			EXPECT_EQ(start(fresh(i), 0, 0), 0);
		for (i = 1; i < 10; i++)
			EXPECT_EQ(twheel_task_cancel(&things[i].task), 0);
		for (i = 10; i < 19; i++)
			EXPECT_EQ(start(fresh(i), i % 2 ? 0 : HOUR, 0), 0);
		let_go(held);
		for (i = 10; i < 19; i++) {
			if (i % 2) {
				ENDED(&things[i], 0);
			} else {
				EXPECT_EQ(things[i].runs, 0);
				EXPECT_EQ(twheel_task_run_now(&things[i].task), 0);
				ENDED(&things[i], 0);
			}
			EXPECT_EQ(things[i].runs, 1);
		}
		for (i = 1; i < 10; i++)
			EXPECT_EQ(things[i].runs, 0);
	}
	free_pool();
}

static void take_long(struct thing *thing)
{
	(void)thing;
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

	new_pool(1, 0);
	for (i = 0; i < n; i += 2) {
		fresh(i)->within = take_long;
		EXPECT_EQ(twheel_task_start(pool, &things[i].task, TWHEEL_FIXED_DELAY, MSEC,
					    MSEC), 0);
		EXPECT_EQ(twheel_task_start(pool, &fresh(i + 1)->task, TWHEEL_CATCH_UP, 0, 1), 0);
	}
	for (i = 0; i < n; i++)
		if (!EXPECT_TRUE(WAIT_FOR(LOAD(things[i].runs) >= 20), "%d: %d runs", i,
				 things[i].runs))
			break;
	for (i = 0; i < n; i++)
		EXPECT_EQ(twheel_task_cancel_wait(&things[i].task), 0);
	free_pool();
}

/* More tasks than a pool has shared timers; those that stay are run, once each */
#define CROWD 20000

static struct twheel_task crowd[CROWD];
static bool ran[CROWD];
static unsigned int nr_ran;

static int run_one_of_crowd(struct twheel_task *task, const struct twheel_run *run)
{
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= run->deadline, "early");
	EXPECT_TRUE(!__atomic_exchange_n(&ran[task - crowd], true, __ATOMIC_ACQ_REL));
	ADD(nr_ran);
	return 0;
}

static void start_crowd(int first, int step, __s64 when)
{
	int i;

	for (i = first; i < CROWD; i += step) {
		ran[i] = false;
		crowd[i] = (struct twheel_task){ .run = run_one_of_crowd };
		if (!EXPECT_EQ(twheel_task_start(pool, &crowd[i], 0, when + i * USEC, 0), 0))
			break;
	}
}

static void test_crowd(void)
{
	int i;

	new_pool(2, 0);
	nr_ran = 0;
	start_crowd(0, 1, HOUR);
	for (i = 0; i < CROWD; i += 2)
		EXPECT_EQ(twheel_task_cancel(&crowd[i]), 0);
	start_crowd(0, 2, HOUR);
	for (i = 0; i < CROWD; i += 4)
		EXPECT_EQ(twheel_task_cancel(&crowd[i]), 0);
	EXPECT_EQ(LOAD(nr_ran), 0);
	for (i = 0; i < CROWD; i++)
		EXPECT_EQ(twheel_task_reset(&crowd[i], 0, i % 50 * MSEC, 0), i % 4 ? 0 : -ENOENT);
	EXPECT_TRUE(WAIT_FOR(LOAD(nr_ran) == CROWD / 4 * 3), "%u", nr_ran);
	free_pool();
}

static void within_reset(struct thing *thing)
{
	if (thing->runs < 4)
		EXPECT_EQ(twheel_task_reset(&thing->task, 0, MSEC, 0), 0);
}

static void within_cancel(struct thing *thing)
{
	EXPECT_EQ(twheel_task_cancel(&thing->task), -EINPROGRESS);
}

static void within_wait(struct thing *thing)
{
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), -EDEADLK);
}

static void within_start(struct thing *thing)
{
	EXPECT_EQ(start(thing, 0, 0), -EBUSY);
}

static void within_stop(struct thing *thing)
{
	(void)thing;
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), -EDEADLK);
	EXPECT_EQ(twheel_pool_free(pool), -EDEADLK);
}

static void end_again(struct thing *thing)
{
	EXPECT_EQ(twheel_task_cancel(&thing->task), -ENOENT);
	EXPECT_EQ(twheel_task_reset(&thing->task, 0, 0, 0), -ENOENT);
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
	EXPECT_EQ(twheel_task_reset(task, 0, 0, MSEC), 0);
	return HOUR;
}

static int64_t next_cancels(struct twheel_task *task, uint64_t time, uint64_t period)
{
	(void)time;
	EXPECT_EQ(twheel_task_cancel(task), -EINPROGRESS);
	return period;
}

static void test_within(void)
{
	struct thing *thing = fresh(0);

	new_pool(2, 0);
	thing->within = within_reset;
	EXPECT_EQ(start(thing, 0, 0), 0);
	ENDED(thing, 0);
	EXPECT_EQ(thing->runs, 5);
	thing = fresh(0);
	thing->within = within_cancel;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	ENDED(thing, -ECANCELED);
	thing = fresh(0);
	thing->within = within_wait;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	ENDED(thing, -ECANCELED);
	thing = fresh(0);
	thing->within = within_start;
	EXPECT_EQ(start(thing, 0, 0), 0);
	ENDED(thing, 0);
	thing = fresh(0);
	thing->within_end = end_again;
	EXPECT_EQ(start(thing, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->ends) == 5));
	EXPECT_EQ(thing->runs, 5);
	thing = fresh(0);
	thing->task.next = next_resets;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	ENDED(thing, -EINTR);
	EXPECT_EQ(thing->runs, 2);
	thing = fresh(0);
	thing->task.next = next_cancels;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	ENDED(thing, -ECANCELED);
	thing = fresh(0);
	thing->within = within_stop;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	ENDED(thing, -ESHUTDOWN);
	EXPECT_EQ(start(fresh(1), 0, 0), -ESHUTDOWN);
	free_pool();
}

static void linger(struct thing *thing)
{
	STORE(thing->waiting, 2);
	sleep_ns(20 * MSEC);
	thing->got = 1;
}

static void linger_until_told(struct thing *thing)
{
	STORE(thing->waiting, 2);
	WAIT_FOR(LOAD(thing->got));
	sleep_ns(MSEC);
}

static void test_cancel_wait(void)
{
	struct thing *thing = fresh(0);

	new_pool(2, 0);
	EXPECT_EQ(start(thing, HOUR, 0), 0);
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	ENDED(thing, -ECANCELED);
	/* Through the run and the end */
	thing = fresh(0);
	thing->within = linger;
	thing->within_end = linger;
	EXPECT_EQ(start(thing, 0, MSEC), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	EXPECT_EQ(thing->ends, 1);
	/* Through the end of what has ended */
	thing = fresh(0);
	thing->within_end = linger_until_told;
	EXPECT_EQ(start(thing, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
	EXPECT_EQ(twheel_task_cancel(&thing->task), -EINPROGRESS, "not the caller's yet");
	STORE(thing->got, 1);
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), -ENOENT);
	EXPECT_EQ(thing->ends, 1);
	EXPECT_EQ(twheel_task_cancel(&thing->task), -ENOENT);
	free_pool();
}

static void test_start(void)
{
	struct thing *thing = fresh(0);

	new_pool(1, 0);
	EXPECT_EQ(start(thing, HOUR, 0), 0);
	EXPECT_EQ(start(thing, HOUR, 0), -EBUSY);
	EXPECT_EQ(twheel_task_cancel(&thing->task), 0);
	EXPECT_EQ(twheel_task_start(pool, &thing->task, 8, 0, 0), -EINVAL);
	EXPECT_EQ(twheel_task_start(pool, &thing->task, TWHEEL_FIXED_DELAY | TWHEEL_CATCH_UP,
				    0, 1), -EINVAL);
	thing->task.run = NULL;
	EXPECT_EQ(start(thing, 0, 0), -EINVAL);
	free_pool();
	new_pool(0, 0);
	EXPECT_EQ(start(thing, 0, 1), -EINVAL, "a period without workers");
	EXPECT_EQ(start(thing, 0, 0), 0);
	free_pool();
	EXPECT_EQ(thing->why, -ESHUTDOWN);
}

static void test_capacity(void)
{
	struct thing *held;
	int i;

	new_pool(1, 3);
	held = hold(0);
	EXPECT_EQ(start(fresh(1), HOUR, 0), 0);
	for (i = 0; i < 10000; i++) {
		fresh(2);
		if (!EXPECT_EQ(start(&things[2], HOUR, 0), 0) ||
		    !EXPECT_EQ(start(fresh(3), HOUR, 0), -ENOSPC) ||
		    !EXPECT_EQ(twheel_task_cancel(&things[2].task), 0))
			break;
	}
	EXPECT_EQ(start(fresh(2), HOUR, 0), 0);
	/* It has its place while it runs, also for the next time */
	EXPECT_EQ(twheel_task_reset(&held->task, 0, HOUR, 0), 0);
	STORE(held->held, 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(held->runs)));
	EXPECT_EQ(start(fresh(3), HOUR, 0), -ENOSPC);
	EXPECT_EQ(twheel_task_cancel_wait(&held->task), 0);
	held->within_end = end_again;
	held->ends = 0;
	held->got = 4;
	EXPECT_EQ(start(held, 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(held->ends) == 1));
	free_pool();
}

static int handed;

static void count_left(struct twheel_task *task, void *arg)
{
	struct thing *thing = task->arg;

	EXPECT_TRUE(arg == &handed);
	EXPECT_EQ(ADD(thing->got), 1);
	EXPECT_EQ(twheel_task_cancel(task), -ENOENT);
	EXPECT_EQ(twheel_task_cancel_wait(task), -EDEADLK);
	handed++;
}

static void test_stop(void)
{
	struct thing *held, *periodic;
	int i;

	new_pool(1, 0);
	held = hold(0);
	EXPECT_EQ(twheel_task_run_now(&held->task), 0);
	for (i = 1; i < 1000; i++)
		EXPECT_EQ(start(fresh(i), i % 2 ? 0 : HOUR, i % 3 ? 0 : MSEC), 0);
	handed = 0;
	STORE(held->held, 0);
	EXPECT_EQ(twheel_pool_stop(pool, 8, NULL, NULL), -EINVAL);
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
	free_pool();
	/* Without a function for what is left, each has its end */
	new_pool(1, 0);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(start(fresh(i), HOUR, 0), 0);
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), 0);
	for (i = 0; i < 100; i++)
		ENDED(&things[i], -ESHUTDOWN);
	free_pool();
	/* What was said to be run still is */
	new_pool(2, 0);
	periodic = fresh(100);
	EXPECT_EQ(start(periodic, HOUR, HOUR), 0);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(start(fresh(i), i * MSEC / 2, 0), 0);
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_ONCE, NULL, NULL), 0);
	for (i = 0; i < 100; i++) {
		ENDED(&things[i], 0);
		EXPECT_EQ(things[i].runs, 1);
	}
	ENDED(periodic, -ESHUTDOWN);
	free_pool();
}

/* Who does not wait learns whether it is over. */
static void test_stop_without_wait(void)
{
	struct thing *held, *late = fresh(1), *periodic = fresh(2);

	new_pool(1, 0);
	held = hold(0);
	EXPECT_EQ(start(late, 5 * MSEC, 0), 0);
	EXPECT_EQ(start(periodic, HOUR, HOUR), 0);
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_ONCE | TWHEEL_NO_WAIT, NULL, NULL),
		  -EINPROGRESS);
	ENDED(periodic, -ESHUTDOWN);
	EXPECT_EQ(start(fresh(3), 0, 0), -ESHUTDOWN);
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_ONCE | TWHEEL_NO_WAIT, NULL, NULL),
		  -EINPROGRESS);
	let_go(held);
	EXPECT_TRUE(WAIT_FOR(!twheel_pool_stop(pool, TWHEEL_RUN_ONCE | TWHEEL_NO_WAIT, NULL,
					       NULL)));
	ENDED(late, 0);
	EXPECT_EQ(late->runs, 1);
	free_pool();
}

/* What is still run comes as it would have. */
static void test_stop_keeps_order(void)
{
	__u64 time = now(CLOCK_MONOTONIC) - SEC;
	struct twheel_task *taken;
	int i;

	new_pool(0, 0);
	for (i = 0; i < 50; i++)
		EXPECT_EQ(twheel_task_start(pool, &fresh(i)->task, TWHEEL_ABS,
					    time + i * TICK, 0), 0);
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_ONCE | TWHEEL_NO_WAIT, NULL, NULL),
		  -EINPROGRESS);
	for (i = 0; i < 50; i++) {
		EXPECT_EQ(twheel_pool_take(pool, &taken, 1, -1), 1);
		EXPECT_TRUE(taken == &things[i].task, "task %d", i);
	}
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_NO_WAIT, NULL, NULL), 0);
	free_pool();
}

static void note_signals(struct thing *thing)
{
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	thing->got = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGALRM) &&
		     sigismember(&blocked, SIGINT);
	thing->missed = sigismember(&blocked, SIGSEGV) || sigismember(&blocked, SIGBUS) ||
			sigismember(&blocked, SIGFPE) || sigismember(&blocked, SIGABRT);
}

/* A worker takes no signal of the program's, but the handler of a crash runs. */
static void test_signals(void)
{
	struct thing *thing = fresh(0);

	new_pool(1, 0);
	thing->within = note_signals;
	EXPECT_EQ(start(thing, 0, 0), 0);
	ENDED(thing, 0);
	EXPECT_EQ(thing->got, 1);
	EXPECT_EQ(thing->missed, 0);
	free_pool();
}

static void *stop_periodic(void *arg)
{
	(void)arg;
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_PERIODIC, NULL, NULL), 0);
	return NULL;
}

static void within_stopping(struct thing *thing)
{
	WAIT_FOR(start(&things[1], HOUR, 0) == -ESHUTDOWN ||
		 twheel_task_cancel(&things[1].task));
	thing->got = twheel_task_reset(&thing->task, 0, 0, 0);
	EXPECT_EQ(twheel_task_reset(&thing->task, 0, 0, MSEC), -ENOENT);
	EXPECT_EQ(twheel_task_run_now(&thing->task), thing->got);
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
		EXPECT_EQ(twheel_pool_stop(pool, flags[i], NULL, NULL), 0);
		EXPECT_EQ(thing->got, flags[i] ? 0 : -ENOENT);
		EXPECT_EQ(thing->runs, flags[i] ? 2 : 1);
		ENDED(thing, 0);
		free_pool();
	}
}

static void test_stop_twice(void)
{
	struct thing *once = fresh(0), *periodic = fresh(1);
	pthread_t thread;

	new_pool(2, 0);
	EXPECT_EQ(start(once, HOUR, 0), 0);
	EXPECT_EQ(start(periodic, 0, MSEC), 0);
	pthread_create(&thread, NULL, stop_periodic, NULL);
	ENDED(once, -ESHUTDOWN);
	EXPECT_TRUE(WAIT_FOR(LOAD(periodic->runs) > 20));
	EXPECT_EQ(start(fresh(2), 0, 0), -ESHUTDOWN);
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_ONCE, NULL, NULL), 0);
	ENDED(periodic, -ESHUTDOWN);
	pthread_join(thread, NULL);
	free_pool();
}

static void *stop_all(void *arg)
{
	(void)arg;
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), 0);
	return NULL;
}

/* Which end a stop calls first is its affair; this one lets nobody by */
static void wait_in_end(struct thing *thing)
{
	STORE(thing->waiting, 1);
	WAIT_FOR(!LOAD(thing->held));
	sleep_ns(5 * MSEC);
	STORE(thing->waiting, 0);
}

static void *wait_for_left(void *arg)
{
	struct thing *thing = arg;
	int ret = twheel_task_cancel_wait(&thing->task);

	EXPECT_TRUE(!ret || ret == -ENOENT, "%d", ret);
	EXPECT_EQ(LOAD(thing->ends), 1, "it was not waited for");
	EXPECT_TRUE(!LOAD(thing->waiting));
	ADD(thing->got);
	return NULL;
}

static void test_wait_for_left(void)
{
	pthread_t stopper, waiters[3];
	int i;

	new_pool(1, 0);
	for (i = 0; i < 3; i++) {
		fresh(i)->within_end = wait_in_end;
		things[i].held = 1;
		EXPECT_EQ(start(&things[i], HOUR, 0), 0);
	}
	pthread_create(&stopper, NULL, stop_all, NULL);
	EXPECT_TRUE(WAIT_FOR(LOAD(things[0].waiting) + LOAD(things[1].waiting) +
			     LOAD(things[2].waiting) == 1));
	for (i = 0; i < 3; i++)
		pthread_create(&waiters[i], NULL, wait_for_left, &things[i]);
	sleep_ns(20 * MSEC);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(LOAD(things[i].got), 0);
	for (i = 0; i < 3; i++)
		STORE(things[i].held, 0);
	for (i = 0; i < 3; i++)
		pthread_join(waiters[i], NULL);
	pthread_join(stopper, NULL);
	free_pool();
}

/* A run that waits for one that another thread is handing over */
static void within_wait_left(struct thing *thing)
{
	WAIT_FOR(LOAD(things[0].waiting) + LOAD(things[1].waiting) == 1);
	thing = &things[LOAD(things[0].waiting)];
	STORE(things[0].held, 0);
	STORE(things[1].held, 0);
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	EXPECT_EQ(LOAD(thing->ends), 1);
}

static void test_run_waits_for_left(void)
{
	int i;

	new_pool(1, 0);
	for (i = 0; i < 2; i++) {
		fresh(i)->within_end = wait_in_end;
		things[i].held = 1;
		EXPECT_EQ(start(&things[i], HOUR, 0), 0);
	}
	fresh(2)->within = within_wait_left;
	EXPECT_EQ(start(&things[2], 0, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(things[2].inside)));
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), 0);
	ENDED(&things[2], 0);
	free_pool();
}

static void on_signal(int sig)
{
	(void)sig;
}

static bool over;

static void *interrupt(void *arg)
{
	while (!LOAD(over)) {
		syscall(SYS_tgkill, getpid(), *(pid_t *)arg, SIGUSR1);
		sleep_ns(5 * MSEC);
	}
	return NULL;
}

static void test_take(void)
{
	struct twheel_task *tasks[1000];
	pid_t self = gettid();
	pthread_t thread;
	__u64 before;
	int i, nr, taken;

	new_pool(0, 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 0, 0), -EINVAL);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 0), 0);
	before = now(CLOCK_MONOTONIC);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 5 * MSEC), 0);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= before + 5 * MSEC);
	EXPECT_EQ(start(fresh(0), 5 * MSEC, 0), 0);
	EXPECT_TRUE(!readable(twheel_pool_fd(pool), 0));
	EXPECT_EQ(twheel_pool_take(pool, tasks, 10, -1), 1);
	EXPECT_TRUE(tasks[0] == &things[0].task && now(CLOCK_MONOTONIC) >= before + 10 * MSEC);
	EXPECT_EQ(start(&things[0], 0, 0), 0, "in no pool any more");
	EXPECT_TRUE(readable(twheel_pool_fd(pool), 1000));
	EXPECT_EQ(twheel_task_cancel(&things[0].task), 0);
	/* Whatever others make of the descriptor */
	EXPECT_EQ(fcntl(twheel_pool_fd(pool), F_SETFL, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, MSEC), 0);
	/* The earliest first, also within a tick; no more than there is room for */
	before = now(CLOCK_MONOTONIC) + 20 * MSEC;
	for (i = 0; i < 1000; i++)
		EXPECT_EQ(twheel_task_start(pool, &fresh(i)->task, TWHEEL_ABS,
					    before + i * 7919 % 1000 * USEC, 0), 0);
	EXPECT_TRUE(WAIT_FOR(now(CLOCK_MONOTONIC) > before + 3 * MSEC));
	EXPECT_EQ(twheel_pool_take(pool, tasks, 10, -1), 10);
	/* A busy kernel may need several runs to make all of them ready. */
	for (taken = 0; taken < 990; taken += nr) {
		nr = twheel_pool_take(pool, tasks, 1000, -1);
		if (!EXPECT_TRUE(nr > 0, "%d", nr))
			break;
		for (i = 1; i < nr; i++)
			EXPECT_TRUE(tasks[i - 1]->deadline <= tasks[i]->deadline);
	}
	EXPECT_EQ(taken, 990);
	EXPECT_EQ(things[0].ends, 0, "taken");
	/* Cancelled in time, and run at once */
	EXPECT_EQ(start(fresh(0), 0, 0), 0);
	EXPECT_EQ(twheel_task_cancel(&things[0].task), 0);
	EXPECT_EQ(start(fresh(1), HOUR, 0), 0);
	EXPECT_EQ(twheel_task_run_now(&things[1].task), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 10, -1), 1);
	EXPECT_TRUE(tasks[0] == &things[1].task);
	/* A signal, and then the end */
	over = false;
	signal(SIGUSR1, on_signal);
	pthread_create(&thread, NULL, interrupt, &self);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, -1), -EINTR);
	STORE(over, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(start(fresh(0), 0, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, -1), 1, "nothing is left behind");
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, -1), -ESHUTDOWN);
	free_pool();
	new_pool(1, 0);
	EXPECT_EQ(twheel_pool_take(pool, tasks, 1, 0), -EINVAL);
	EXPECT_EQ(twheel_pool_fd(pool), -EINVAL);
	free_pool();
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

	new_pool(0, 0);
	taken = 0;
	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, taker, NULL);
	for (i = 0; i < 990; i++)
		EXPECT_EQ(start(fresh(i), i % 20 * MSEC, 0), 0);
	EXPECT_TRUE(WAIT_FOR(LOAD(taken) == 990));
	/* Those that wait go on when there is an end; what was kept can be taken still */
	for (i = 0; i < 100; i++)
		EXPECT_EQ(start(fresh(i), 10 * MSEC, 0), 0);
	EXPECT_EQ(twheel_pool_stop(pool, TWHEEL_RUN_ONCE, NULL, NULL), 0);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(taken, 1090);
	free_pool();
}

static void in_child(void)
{
	struct twheel_task *task;
	struct twheel_pool *parents = pool;

	EXPECT_EQ(start(fresh(1), 0, 0), -EBADF);
	EXPECT_EQ(twheel_task_cancel(&things[0].task), -EBADF);
	EXPECT_EQ(twheel_task_cancel_wait(&things[0].task), -EBADF);
	EXPECT_EQ(twheel_task_reset(&things[0].task, 0, 0, 0), -EBADF);
	EXPECT_EQ(twheel_task_run_now(&things[0].task), -EBADF);
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), -EBADF);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, 0), -EBADF);
	EXPECT_EQ(twheel_pool_fd(pool), -EBADF);
	new_pool(0, 0);
	EXPECT_EQ(start(fresh(1), 0, 0), 0);
	EXPECT_EQ(twheel_pool_take(pool, &task, 1, -1), 1, "one of its own");
	free_pool();
	EXPECT_EQ(twheel_pool_free(parents), 0);
}

static void fork_within(struct thing *thing)
{
	pid_t child = fork();
	int status;

	if (!child)
		return;
	waitpid(child, &status, 0);
	EXPECT_TRUE(WIFEXITED(status));
	thing->got = WEXITSTATUS(status);
}

#ifdef __SANITIZE_ADDRESS__
/* Its allocator may be locked in a child for good, if another thread allocates at a fork. */
#define ALLOCATES false
#else
#define ALLOCATES true
#endif

/* So many that memory comes and goes, whatever a child may find of it */
static void *start_and_cancel(void *arg)
{
	int *over = arg, i;

	while (ALLOCATES && !LOAD(*over)) {
		for (i = 100; i < 1000; i++)
			EXPECT_EQ(start(fresh(i), HOUR, 0), 0);
		for (i = 100; i < 1000; i++)
			EXPECT_EQ(twheel_task_cancel(&things[i].task), 0);
	}
	return NULL;
}

static void test_fork(void)
{
	struct thing *thing = fresh(0), *other;
	pthread_t thread;
	int i, over = 0;

	new_pool(2, 0);
	EXPECT_EQ(start(thing, MSEC, MSEC), 0);
	pthread_create(&thread, NULL, start_and_cancel, &over);
	for (i = 0; i < 50; i++)
		tap_join(tap_fork(in_child));
	STORE(over, 1);
	pthread_join(thread, NULL);
	i = LOAD(thing->runs);
	EXPECT_TRUE(WAIT_FOR(LOAD(thing->runs) > i + 10), "the parent's goes on");
	other = fresh(2);
	other->within = fork_within;
	EXPECT_EQ(start(other, 0, 0), 0);
	ENDED(other, 0);
	EXPECT_EQ(other->got, EXIT_FAILURE, "a child that comes back from a run");
	EXPECT_EQ(twheel_task_cancel_wait(&thing->task), 0);
	free_pool();
}

static int wheel_of_child = -1;

/* A library that has a wheel gives its child one of its own. */
static void begin_anew(void)
{
	struct twheel_op op = twheel_op_arm(0, 0, 0, 1);
	struct twheel *tw;

	wheel_of_child = twheel_open(TWHEEL_USER, &tw);
	if (!wheel_of_child)
		wheel_of_child = twheel_arm(tw, &op);
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
	/* Not negative, as pthread_create(3) has it */
	int error = nr_spawned == 3 ? EUSERS : 0;

	EXPECT_TRUE(arg == &nr_spawned);
	if (!error)
		error = pthread_create(&spawned[nr_spawned++], NULL, fn, worker);
	return error;
}

static void test_spawn(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = 3, .spawn = spawn, .arg = &nr_spawned,
	};
	struct thing *thing = fresh(0);
	int i;

	EXPECT_EQ(twheel_pool_new(&options, &pool), 0);
	EXPECT_EQ(nr_spawned, 3);
	EXPECT_EQ(start(thing, 0, 0), 0);
	ENDED(thing, 0);
	free_pool();
	for (i = 0; i < 3; i++)
		pthread_join(spawned[i], NULL);
	nr_spawned = 0;
	options.threads = 4;
	EXPECT_EQ(twheel_pool_new(&options, &pool), -EUSERS);
	for (i = 0; i < 3; i++)
		pthread_join(spawned[i], NULL);
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

static void linger_a_little(struct thing *thing)
{
	STORE(thing->waiting, 1);
	sleep_ns(MSEC);
}

static void *cancel_one(void *arg)
{
	struct thing *thing = arg;

	EXPECT_EQ(twheel_task_cancel(&thing->task), 0);
	pthread_testcancel();
	return NULL;
}

static void test_cancelled_thread(void)
{
	struct twheel_task *task;
	pthread_t thread;
	int i;

	new_pool(0, 0);
	for (i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, take_for_ever, NULL);
		EXPECT_EQ(start(fresh(i), i * 50 * USEC, 0), 0);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	EXPECT_EQ(start(fresh(50), 0, 0), 0);
	EXPECT_TRUE(twheel_pool_take(pool, &task, 1, -1) == 1);
	/* In an end that it calls itself */
	for (i = 0; i < 50; i++) {
		struct thing *thing = fresh(i);

		thing->within_end = linger_a_little;
		EXPECT_EQ(start(thing, HOUR, 0), 0);
		pthread_create(&thread, NULL, cancel_one, thing);
		EXPECT_TRUE(WAIT_FOR(LOAD(thing->waiting)));
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		ENDED(thing, -ECANCELED);
	}
	EXPECT_EQ(twheel_pool_stop(pool, 0, NULL, NULL), 0);
	free_pool();
}

/* With a cancellation that is due all the while */
static void *make_and_free(void *arg)
{
	struct twheel *tw;

	(void)arg;
	pthread_cancel(pthread_self());
	if (EXPECT_EQ(twheel_open(0, &tw), 0))
		twheel_close(tw);
	if (EXPECT_EQ(made(2, 0), 0))
		EXPECT_EQ(twheel_pool_free(pool), 0);
	handed = 1;
	pthread_testcancel();
	return NULL;
}

static void test_cancelled_maker(void)
{
	int fd = dup(0), i;
	pthread_t thread;
	void *ret;

	close(fd);
	for (i = 0; i < 5; i++) {
		handed = 0;
		pthread_create(&thread, NULL, make_and_free, NULL);
		pthread_join(thread, &ret);
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

	(void)arg;
	while ((thing = LOAD(moving)) != &things[MOVED])
		twheel_task_cancel(&thing->task);
	return NULL;
}

static void test_other_pool(void)
{
	pthread_t thread;
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
		pthread_create(&thread, NULL, cancel_moving, NULL);
		for (i = 0; i < MOVED; i++) {
			EXPECT_EQ(start(&things[i], 0, 0), 0);
			EXPECT_TRUE(WAIT_FOR(LOAD(things[i].ends)));
		}
		STORE(moving, &things[MOVED]);
		pthread_join(thread, NULL);
		for (i = 0; i < MOVED; i++)
			EXPECT_EQ(twheel_task_cancel(&things[500 + i].task), 0);
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

/* Of many that wait, one is woken. (Three tries: others use this machine as well.) */
static void test_herd(void)
{
	long before, switches = 0;
	int try, i, n = 1000;

	new_pool(8, 0);
	for (try = 0; try < 3; try++) {
		sleep_ns(20 * MSEC);
		before = sleeps();
		for (i = 0; i < n; i++)
			EXPECT_EQ(start(fresh(i), 10 * MSEC + i * MSEC, 0), 0);
		for (i = 0; i < n; i++)
			EXPECT_TRUE(WAIT_FOR(LOAD(things[i].ends)));
		switches = sleeps() - before;
		tap_diag("%ld switches of %d expiries", switches, n);
		if (switches <= 1.2 * n)
			break;
	}
	EXPECT_TRUE(switches <= 1.2 * n);
	free_pool();
}

int main(void)
{
	tap_start(120);
	pthread_atfork(NULL, NULL, begin_anew);
	RUN(test_options, "options");
	RUN(test_once, "once, not early; what is over is due now");
	RUN(test_due_now, "what is due now does not wait for the end of a tick");
	RUN(test_due_now_beside_others, "what is due now comes with what was not taken");
	RUN(test_huge, "huge delays and periods");
	RUN(test_rate, "a fixed rate does not drift");
	RUN(test_missed, "missed periods");
	RUN(test_fixed_delay, "a fixed delay");
	RUN(test_next, "a task that says when next");
	RUN(test_others, "tasks that fail or are slow stop no other");
	RUN(test_reset, "reset and run_now");
	RUN(test_cancel, "cancel");
	RUN(test_reuse, "what comes after one that was due and is cancelled");
	RUN(test_turns, "more than one worker can run");
	RUN(test_crowd, "more tasks than shared timers");
	RUN(test_within, "all that from within a run, next, end");
	RUN(test_cancel_wait, "cancel_wait");
	RUN(test_start, "start");
	RUN(test_capacity, "capacity, and places that are free at once");
	RUN(test_stop, "stop hands over each exactly once");
	RUN(test_stop_without_wait, "a stop that does not wait");
	RUN(test_stop_keeps_order, "a stop leaves the order as it is");
	RUN(test_signals, "signals of workers");
	RUN(test_reset_while_stopping, "a reset while a stop waits");
	RUN(test_stop_twice, "a stop that runs some still, and one that does not");
	RUN(test_wait_for_left, "cancel_wait of those that a stop hands over");
	RUN(test_run_waits_for_left, "a run waits for one that another thread hands over");
	RUN(test_take, "a delay queue");
	RUN(test_takers, "many takers");
	RUN(test_fork, "fork");
	RUN(test_fork_handler, "fork, and who begins anew in the child");
	RUN(test_spawn, "threads that the caller makes");
	RUN(test_cancelled_thread, "a thread that is cancelled");
	RUN(test_cancelled_maker, "a thread that is cancelled while it makes and frees one");
	RUN(test_other_pool, "an end that starts its task in another pool");
	RUN(test_herd, "one worker is woken for an expiry");
	return tap_end();
}
