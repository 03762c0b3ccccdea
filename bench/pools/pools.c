// SPDX-License-Identifier: GPL-2.0
/*
 * A pool of libtwheel, for compare.py: it does what a line of its input says, and
 * answers with a line of numbers, as the peers do (bench/native, -a; Peers.java).
 *
 * usage: pools WORKERS TASKS
 *        pools -c TASKS: count start and cancel under callgrind, without and with a pool
 *
 *	uniform	ns for all tasks to start, reset later, reset earlier, cancel, run
 *	memory	bytes a task, of the library and the task itself
 *	pairs N	ns by the clock for start and cancel, by N threads, beside all tasks; and ns
 *		of processor time
 *	rate	tasks that were run, 1 ms apart
 *
 * The ns of "uniform" are of all threads. Tasks that are to run are started while the
 * workers are held up, and these are let go when all are due; a pool without workers is
 * a delay queue, from which the only thread takes up to 64 at a time. The backend is that
 * of the environment's TWHEEL_BACKEND.
 */
#include <err.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <twheel_pool.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#define MS 1000000ULL
#define SECOND 1000000000ULL

/* As of the peers */
#define TICK MS
#define DENSITY 256

/* What a pair of operations is measured with */
#define PAIRS 200000
#define MOST_THREADS 64

#define TAKERS 8
#define RATE MS

static unsigned int workers;
static size_t count;
static struct twheel_pool *pool;
static struct twheel_task *tasks;
static __s64 *delays;
static __u32 *order;

/* Tasks to run yet, and the time by which all of them are due */
static atomic_size_t left;
static atomic_ullong due;
static sem_t held, released, finished;

static __u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static __u64 rnd(__u64 below)
{
	static __u64 seed = 1;

	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (__uint128_t)(seed * 0x2545f4914f6cdd1dULL) * below >> 64;
}

static void shuffle(void)
{
	size_t i;

	for (i = count - 1; i; i--) {
		size_t j = rnd(i + 1);
		__u32 task = order[i];

		order[i] = order[j];
		order[j] = task;
	}
}

static void draw(__u64 from, __u64 range)
{
	size_t i;

	for (i = 0; i < count; i++)
		delays[i] = from + rnd(range);
}

static void note_run(struct twheel_task *task, __u64 deadline)
{
	if (!task->arg || deadline > due)
		errx(1, "a task ran early, unasked or twice");
	task->arg = NULL;
	if (atomic_fetch_sub(&left, 1) == 1)
		sem_post(&finished);
}

static int run(struct twheel_task *task, const struct twheel_run *run)
{
	note_run(task, run->deadline);
	return 0;
}

static int hold_up(struct twheel_task *task, const struct twheel_run *run)
{
	(void)task;
	(void)run;
	sem_post(&held);
	sem_wait(&released);
	return 0;
}

static void check(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, strerror(-ret));
}

static void start(size_t i)
{
	check(twheel_task_start(pool, &tasks[i], 0, delays[i], 0), "start");
}

static void reset(size_t i)
{
	check(twheel_task_reset(&tasks[i], 0, delays[i], 0), "reset");
}

static void cancel(size_t i)
{
	check(twheel_task_cancel(&tasks[i]), "cancel");
}

static void start_to_run(size_t i)
{
	tasks[i].arg = &tasks[i];
	start(i);
}

/* For each task, in order[]; returns what it took. */
static __u64 each(void (*operation)(size_t i))
{
	__u64 from;
	size_t i;

	from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < count; i++)
		operation(order[i]);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from;
}

static __u64 start_all(void (*operation)(size_t i), __u64 from, __u64 range)
{
	size_t i;

	for (i = 0; i < count; i++)
		order[i] = i;
	draw(from, range);
	return each(operation);
}

static __u64 reset_all(__u64 from, __u64 range)
{
	shuffle();
	draw(from, range);
	return each(reset);
}

static __u64 cancel_all(void)
{
	shuffle();
	return each(cancel);
}

static void sleep_until(__u64 time)
{
	struct timespec ts = { time / SECOND, time % SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void take_all(void)
{
	struct twheel_task *taken[64];

	while (left) {
		int n = twheel_pool_take(pool, taken, 64, -1);

		if (n < 0)
			errx(1, "take: %s", strerror(-n));
		while (n--)
			note_run(taken[n], 0);
	}
}

static __u64 expire(void)
{
	struct twheel_task holders[MOST_THREADS] = { 0 };
	__u64 range = count * TICK / DENSITY, from, took;
	size_t i;

	for (i = 0; i < workers; i++) {
		holders[i].run = hold_up;
		check(twheel_task_start(pool, &holders[i], 0, 0, 0), "start");
		sem_wait(&held);
	}
	left = count;
	start_all(start_to_run, 0, range);
	due = clock_ns(CLOCK_MONOTONIC) + range + 10 * TICK;
	sleep_until(due);
	from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < workers; i++)
		sem_post(&released);
	if (!workers)
		take_all();
	sem_wait(&finished);
	took = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from;
	/* Nobody is in a run any more: those on the stack go, the others are started again */
	for (i = 0; i < workers; i++)
		twheel_task_cancel_wait(&holders[i]);
	for (i = 0; i < count; i++)
		twheel_task_cancel_wait(&tasks[i]);
	return took;
}

static void uniform(void)
{
	__u64 took[] = {
		start_all(start, 100 * SECOND, 100 * SECOND),
		reset_all(200 * SECOND, 100 * SECOND),
		reset_all(50 * SECOND, 100 * SECOND),
		cancel_all(),
		expire(),
	};

	printf("%llu %llu %llu %llu %llu\n", took[0], took[1], took[2], took[3], took[4]);
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void memory(void)
{
	size_t before = allocated();

	start_all(start, 100 * SECOND, 100 * SECOND);
	printf("%.1f\n", sizeof(tasks[0]) + (double)(allocated() - before) / count);
	cancel_all();
}

static void *start_and_cancel(void *barrier)
{
	struct twheel_task task = { .run = run };
	unsigned int i;

	pthread_barrier_wait(barrier);
	for (i = 0; i < PAIRS; i++) {
		check(twheel_task_start(pool, &task, 0, 150 * SECOND, 0), "start");
		check(twheel_task_cancel(&task), "cancel");
	}
	return NULL;
}

static void pairs(unsigned int threads)
{
	pthread_t thread[MOST_THREADS];
	pthread_barrier_t barrier;
	unsigned int i;
	__u64 from, used;

	if (!threads || threads > MOST_THREADS)
		errx(1, "%u threads", threads);
	start_all(start, 100 * SECOND, 100 * SECOND);
	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (i = 0; i < threads; i++)
		check(-pthread_create(&thread[i], NULL, start_and_cancel, &barrier), "thread");
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	from = clock_ns(CLOCK_MONOTONIC);
	pthread_barrier_wait(&barrier);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	from = clock_ns(CLOCK_MONOTONIC) - from;
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
	printf("%.1f %.1f\n", (double)from / PAIRS / threads, (double)used / PAIRS / threads);
	cancel_all();
}

static void *take_one_by_one(void *arg)
{
	struct twheel_task *task;

	(void)arg;
	while (twheel_pool_take(pool, &task, 1, -1) == 1)
		note_run(task, 0);
	return NULL;
}

static void rate(void)
{
	pthread_t takers[TAKERS];
	size_t i;

	left = count;
	due = ~0ULL;
	for (i = 0; i < count; i++) {
		delays[i] = 100 * MS + i * RATE;
		start_to_run(i);
	}
	for (i = 0; i < TAKERS && !workers; i++)
		check(-pthread_create(&takers[i], NULL, take_one_by_one, NULL), "thread");
	sem_wait(&finished);
	printf("%zu\n", count);
}

static void make_pool(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options),
		.threads = workers,
		.capacity = count + MOST_THREADS,
		.tick = TICK,
	};
	size_t i;

	check(twheel_pool_new(&options, &pool), "pool");
	tasks = calloc(count, sizeof(*tasks));
	delays = calloc(count, sizeof(*delays));
	order = calloc(count, sizeof(*order));
	if (!tasks || !delays || !order)
		err(1, "memory for %zu tasks", count);
	for (i = 0; i < count; i++) {
		tasks[i].run = run;
		order[i] = i;
	}
}

static void answer(const char *line)
{
	unsigned int threads;

	if (!strcmp(line, "uniform\n"))
		uniform();
	else if (!strcmp(line, "memory\n"))
		memory();
	else if (sscanf(line, "pairs %u", &threads) == 1)
		pairs(threads);
	else if (!strcmp(line, "rate\n"))
		rate();
	else
		errx(1, "what is '%s'?", line);
	fflush(stdout);
}

static void arm_and_cancel(struct twheel *wheel)
{
	struct twheel_op op = twheel_op_arm(0, 150 * SECOND, 0, 1);

	check(twheel_arm(wheel, &op), "arm");
	check(twheel_cancel(wheel, op.id), "cancel");
}

static void count_instructions(void)
{
	struct twheel_task task = { .run = run };
	struct twheel *wheel;
	size_t i;

	check(twheel_open(TWHEEL_USER, &wheel), "open");
	start_all(start, 100 * SECOND, 100 * SECOND);
	CALLGRIND_TOGGLE_COLLECT;
	for (i = 0; i < count; i++) {
		twheel_task_start(pool, &task, 0, 150 * SECOND, 0);
		twheel_task_cancel(&task);
	}
	CALLGRIND_TOGGLE_COLLECT;
	CALLGRIND_DUMP_STATS_AT("pool");
	CALLGRIND_TOGGLE_COLLECT;
	for (i = 0; i < count; i++)
		arm_and_cancel(wheel);
	CALLGRIND_TOGGLE_COLLECT;
	CALLGRIND_DUMP_STATS_AT("wheel");
}

int main(int argc, char **argv)
{
	char line[32];

	if (argc != 3)
		errx(2, "usage: %s WORKERS|-c TASKS", argv[0]);
	workers = !strcmp(argv[1], "-c") ? 1 : strtoul(argv[1], NULL, 0);
	count = strtoul(argv[2], NULL, 0);
	if (!count || workers > MOST_THREADS)
		errx(2, "%s workers, %s tasks", argv[1], argv[2]);
	make_pool();
	if (!strcmp(argv[1], "-c"))
		count_instructions();
	else
		while (fgets(line, sizeof(line), stdin))
			answer(line);
	return 0;
}
