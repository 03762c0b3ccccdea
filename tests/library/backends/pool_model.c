// SPDX-License-Identifier: GPL-2.0
/*
 * Pools beside a model, at random: a delay queue, of which all is known but what time it
 * is; and workers among threads that start, reset, cancel and wait, where each task
 * counts what happens to it. SEED in the environment, and STEPS for another number of
 * steps.
 */

#include "device.h"

#include <pthread.h>
#include <stdint.h>

#include <twheel_pool.h>

#define TICK (20 * USEC)
#define TASKS 256

/* For a wheel in the program; in a virtual machine a step takes 20 times as long. */
#define STEPS 400000

static struct twheel_pool *pool;
static __u64 steps;
static bool in_kernel;

/* (splitmix64) */
static __u64 random_of(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void new_pool(__u32 threads, __u32 capacity)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = threads, .capacity = capacity,
		.tick = TICK,
	};
	int ret = twheel_pool_new(&options, &pool);

	if (ret)
		tap_bail("twheel_pool_new: %s", strerror(-ret));
}

/* What the model knows of a task: it is due somewhere from @after to @before */
struct queued {
	struct twheel_task task;
	bool in;
	__u64 after;
	__u64 before;
	int ended;
};

static struct queued queue[TASKS];
static unsigned int queued;
static bool stopped;

#define CAPACITY (TASKS * 3 / 4)

static void ended(struct twheel_task *task, int why)
{
	struct queued *entry = task->arg;

	EXPECT_EQ(why, stopped ? -ESHUTDOWN : -ECANCELED);
	entry->ended++;
}

static void set(struct queued *entry, __u64 before, __s64 when, bool absolute)
{
	__u64 after = now(CLOCK_MONOTONIC);

	entry->in = true;
	entry->after = absolute ? (__u64)when : before + when;
	entry->before = absolute ? (__u64)when : after + when;
}

static void start_one(struct queued *entry, __s64 delay, bool absolute)
{
	__u64 before = now(CLOCK_MONOTONIC);
	__s64 when = absolute ? (__s64)before + delay : delay;
	int ret = twheel_task_start(pool, &entry->task, absolute ? TWHEEL_ABS : 0, when, 0);

	if (entry->in) {
		EXPECT_EQ(ret, -EBUSY);
		return;
	}
	if (queued == CAPACITY) {
		EXPECT_EQ(ret, -ENOSPC);
		return;
	}
	if (!EXPECT_EQ(ret, 0))
		return;
	queued++;
	set(entry, before, when, absolute);
}

static void reset_one(struct queued *entry, __s64 delay, bool absolute)
{
	__u64 before = now(CLOCK_MONOTONIC);
	__s64 when = absolute ? (__s64)before + delay : delay;
	int ret = twheel_task_reset(&entry->task, absolute ? TWHEEL_ABS : 0, when, 0);

	EXPECT_EQ(ret, entry->in ? 0 : -ENOENT);
	if (entry->in)
		set(entry, before, when, absolute);
}

static void cancel_one(struct queued *entry, bool wait)
{
	int was = entry->ended;
	int ret = wait ? twheel_task_cancel_wait(&entry->task) :
			 twheel_task_cancel(&entry->task);

	EXPECT_EQ(ret, entry->in ? 0 : -ENOENT);
	EXPECT_EQ(entry->ended, was + entry->in);
	queued -= entry->in;
	entry->in = false;
}

/* Nothing before its time, and the earliest first */
static int take(unsigned int max, __s64 timeout)
{
	struct twheel_task *tasks[TASKS];
	__u64 after, last = 0;
	int i, nr = twheel_pool_take(pool, tasks, max, timeout);

	after = now(CLOCK_MONOTONIC);
	EXPECT_TRUE(nr >= 0, "%d", nr);
	for (i = 0; i < nr; i++) {
		struct queued *entry = tasks[i]->arg;

		EXPECT_TRUE(entry->in);
		EXPECT_TRUE(entry->after <= after, "early");
		EXPECT_TRUE(tasks[i]->deadline >= entry->after &&
			    tasks[i]->deadline <= entry->before);
		EXPECT_TRUE(tasks[i]->deadline >= last);
		last = tasks[i]->deadline;
		entry->in = false;
		queued--;
	}
	return nr;
}

static bool overdue(__u64 time)
{
	int i;

	for (i = 0; i < TASKS; i++)
		if (queue[i].in && queue[i].before + 2 * TICK <= time)
			return true;
	return false;
}

/*
 * All that is due, if there is room: of a wheel in the program at once; of one in the
 * kernel as soon as that had the time for it.
 */
static void take_some(unsigned int max)
{
	__u64 before = now(CLOCK_MONOTONIC);

	if (take(max, 0) == (int)max)
		return;
	EXPECT_TRUE(in_kernel || !overdue(before), "not taken");
	while (overdue(before))
		if (!EXPECT_TRUE(take(TASKS, PATIENCE_MS * MSEC) > 0, "not taken"))
			return;
}

static void test_queue(void)
{
	__u64 state = number_of("SEED", 1), n;
	int i;

	new_pool(0, CAPACITY);
	for (i = 0; i < TASKS; i++)
		queue[i] = (struct queued){ .task = { .end = ended, .arg = &queue[i] } };
	for (n = 0; n < steps && !tap_bad; n++) {
		__u64 r = random_of(&state);
		struct queued *entry = &queue[r >> 8 & (TASKS - 1)];
		__s64 delay = r >> 32 & ((1U << (r >> 16 & 31)) - 1);

		switch (r & 15) {
		case 0 ... 4:
			start_one(entry, delay, r & 128);
			break;
		case 5 ... 8:
			reset_one(entry, delay, r & 128);
			break;
		case 9 ... 12:
			cancel_one(entry, r & 128);
			break;
		case 13:
			EXPECT_EQ(twheel_task_run_now(&entry->task), entry->in ? 0 : -ENOENT);
			if (entry->in)
				set(entry, 0, now(CLOCK_MONOTONIC), true);
			if (entry->in)
				entry->after = 0;
			break;
		default:
			take_some(1 + (r >> 40 & (TASKS - 1)));
		}
	}
	stopped = true;
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

/* What a task among threads counts. Started and reset by any, it is nobody's. */
struct busy {
	struct twheel_task task;
	unsigned int inside, started, ended, runs;
	unsigned int cancelled;		/* cancels that gave 0 */
	unsigned int ends_cancelled;
	__u64 seed;
};

#define THREADS 3
#define BUSY 16

static struct busy busy[BUSY];

#define ADD(x) __atomic_add_fetch(&(x), 1, __ATOMIC_ACQ_REL)
#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)

static void disturb(struct busy *entry, __u64 r)
{
	__s64 delay = (r >> 32 & 0xffff) << (r & 0x700 ? 0 : 12);
	__u64 period = r & 64 ? r >> 48 : 0;
	int ret;

	switch (r & 7) {
	case 0:
	case 1:
		ret = twheel_task_start(pool, &entry->task, r >> 6 & 6 ? 0 : TWHEEL_CATCH_UP,
					delay, period * 4);
		EXPECT_TRUE(!ret || ret == -EBUSY, "%d", ret);
		if (!ret)
			ADD(entry->started);
		break;
	case 2:
	case 3:
		ret = twheel_task_reset(&entry->task, r & 128 ? TWHEEL_FIXED_DELAY : 0, delay,
					period * 4);
		EXPECT_TRUE(!ret || ret == -ENOENT, "%d", ret);
		break;
	case 4:
		ret = twheel_task_run_now(&entry->task);
		EXPECT_TRUE(!ret || ret == -ENOENT, "%d", ret);
		break;
	default:
		ret = twheel_task_cancel(&entry->task);
		EXPECT_TRUE(!ret || ret == -ENOENT || ret == -EINPROGRESS, "%d", ret);
		if (!ret)
			ADD(entry->cancelled);
	}
}

static int run_busy(struct twheel_task *task, const struct twheel_run *run)
{
	struct busy *entry = task->arg;
	__u64 r;

	EXPECT_EQ(__atomic_fetch_add(&entry->inside, 1, __ATOMIC_ACQ_REL), 0, "beside itself");
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= run->deadline, "early");
	r = random_of(&entry->seed);
	ADD(entry->runs);
	if (r % 4 == 0)
		disturb(entry, r >> 8);
	if (r % 16 == 1)
		disturb(&busy[r >> 8 & (BUSY - 1)], r >> 16);
	__atomic_sub_fetch(&entry->inside, 1, __ATOMIC_ACQ_REL);
	return r % 64 == 2 ? -EIO : 0;
}

static int64_t next_busy(struct twheel_task *task, uint64_t time, uint64_t period)
{
	(void)task;
	return period ? time % period : 0;
}

static void end_busy(struct twheel_task *task, int why)
{
	struct busy *entry = task->arg;

	EXPECT_TRUE(!why || why == -EIO || why == -ECANCELED || why == -ESHUTDOWN, "%d", why);
	if (why == -ECANCELED)
		ADD(entry->ends_cancelled);
	ADD(entry->ended);
}

static void *disturb_all(void *arg)
{
	__u64 state = (uintptr_t)arg, n;

	for (n = 0; n < steps / 4 && !tap_bad; n++) {
		__u64 r = random_of(&state);
		struct busy *entry = &busy[r >> 8 & (BUSY - 1)];

		if (r % 64 == 0)
			twheel_task_cancel_wait(&entry->task);
		else if (r % 64 < 4)
			sleep_ns((r >> 56) * USEC);	/* for some to be due meanwhile */
		else
			disturb(entry, r >> 16);
	}
	return NULL;
}

static int left_over;

static void count_left(struct twheel_task *task, void *arg)
{
	struct busy *entry = task->arg;

	(void)arg;
	left_over++;
	ADD(entry->ended);
}

static void test_workers(void)
{
	__u64 seed = number_of("SEED", 1);
	pthread_t threads[THREADS];
	__u64 runs = 0, started = 0;
	int i;

	new_pool(3, 0);
	for (i = 0; i < BUSY; i++)
		busy[i] = (struct busy){
			.task = { run_busy, i % 4 ? NULL : next_busy, end_busy, &busy[i],
				  NULL, NULL, 0, 0, 0, 0, 0 },
			.seed = seed + i,
		};
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, disturb_all,
			       (void *)(uintptr_t)(seed * THREADS + i));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(twheel_pool_stop(pool, 0, count_left, NULL), 0);
	for (i = 0; i < BUSY; i++) {
		/* A run has counted the tasks that it started as well */
		EXPECT_EQ(busy[i].ended, busy[i].started, "task %d", i);
		EXPECT_TRUE(busy[i].ends_cancelled >= busy[i].cancelled, "task %d", i);
		EXPECT_EQ(busy[i].inside, 0);
		runs += busy[i].runs;
		started += busy[i].started;
	}
	tap_diag("%llu starts, %llu runs, %d left over", started, runs, left_over);
	EXPECT_TRUE(runs && started);
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

/*
 * A task of a timer thread: which start or reset was its last; was it due by then, so that it
 * waits for no tick, as those before it may; and random numbers
 */
struct turn {
	struct twheel_task task;
	__u64 number;
	bool at_once;
	__u64 seed;
};

/* So long a tick is that most tasks share theirs with others. */
#define LONG_TICK (4 * MSEC)
#define TURNS 1024

static struct turn turns[TURNS];
static unsigned int ran, resets, begun;
/* Starts and resets, with the number that they have */
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;
static __u64 numbers;
/* The run before: its deadline, and the number of its start */
static __u64 last_when, last_number;

/*
 * Started, or reset, for one of few times, so that several have the same, or for a delay. Resets
 * are made by runs, since no other task runs meanwhile.
 */
static void set_turn(struct turn *turn, bool reset, __u64 r)
{
	__u64 in = (1 + (r >> 8) % 4 * 5) * MSEC, when = in, due;
	__u32 flags = 0;
	int ret;

	pthread_mutex_lock(&set_lock);
	due = now(CLOCK_MONOTONIC) + in;
	if (r & 1) {
		flags = TWHEEL_ABS;
		when = due / MSEC * MSEC + MSEC;
		due = when;
	}
	if (reset)
		ret = twheel_task_reset(&turn->task, flags, when, 0);
	else
		ret = twheel_task_start(pool, &turn->task, flags, when, 0);
	if (!ret) {
		turn->number = ++numbers;
		turn->at_once = due <= now(CLOCK_MONOTONIC);
		resets += reset;
		if (!reset)
			begun++;
	}
	pthread_mutex_unlock(&set_lock);
}

/* Each after those of earlier deadlines, and of equal ones after those that were started before */
static int run_turn(struct twheel_task *task, const struct twheel_run *run)
{
	struct turn *turn = task->arg, *other;
	__u64 number, r = random_of(&turn->seed);
	bool at_once;

	pthread_mutex_lock(&set_lock);
	number = turn->number;
	at_once = turn->at_once;
	pthread_mutex_unlock(&set_lock);
	ADD(ran);
	if (at_once)
		return 0;
	EXPECT_TRUE(run->deadline > last_when ||
		    (run->deadline == last_when && number > last_number),
		    "start %llu at %llu runs after start %llu at %llu", number,
		    (__u64)run->deadline, last_number, last_when);
	last_when = run->deadline;
	last_number = number;
	if (r % 64 == 0)
		sleep_ns((r >> 8) % (8 * MSEC));
	other = &turns[r >> 48 & (TURNS - 1)];
	if (r % 4 == 1 && other != turn)
		set_turn(other, true, r >> 8);
	return 0;
}

static void test_order(void)
{
	__u64 seed = number_of("SEED", 1), n;
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = 1, .tick = LONG_TICK,
	};
	unsigned int i;

	if (twheel_pool_new(&options, &pool))
		tap_bail("no pool");
	for (i = 0; i < TURNS; i++)
		turns[i] = (struct turn){
			.task = { .run = run_turn, .arg = &turns[i] }, .seed = i,
		};
	for (n = 1; n <= steps / 4 && !tap_bad; n++) {
		__u64 r = random_of(&seed);
		struct turn *turn = &turns[r >> 48 & (TURNS - 1)];

		if (r % 256 == 0)
			sleep_ns((r >> 32) % (3 * MSEC));
		else if (r % 8 == 1)
			begun -= !twheel_task_cancel(&turn->task);
		else
			set_turn(turn, false, r >> 8);
	}
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&ran, __ATOMIC_ACQUIRE) == begun));
	tap_diag("%u runs, %u resets", ran, resets);
	EXPECT_TRUE(ran > steps / 100 && resets > steps / 2000);
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

int main(void)
{
	struct twheel *tw;

	steps = STEPS;
	if (!twheel_open(0, &tw)) {
		in_kernel = twheel_backend(tw) == TWHEEL_KERNEL;
		if (in_kernel)
			steps /= 20;
		twheel_close(tw);
	}
	steps = number_of("STEPS", steps);
	tap_start(250);
	RUN(test_queue, "a delay queue beside a model");
	RUN(test_workers, "workers among threads");
	RUN(test_order, "one worker: by time, and then as they were started");
	return tap_end();
}
