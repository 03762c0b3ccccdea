// SPDX-License-Identifier: GPL-2.0
/*
 * What tasks of a pool of libtwheel take, as lines of JSON.
 *
 * usage: pools ns WORKERS TASKS
 *        pools switches WORKERS TASKS
 *
 *	ns	processor time of all threads for each operation, and the bytes of a task
 *	switches	of threads, for each of the tasks, which are due 1 ms apart, and how many
 *		us of processor time each takes
 *
 * Tasks that are to run are started while the workers are held up, and these are let go when
 * all are due; a pool without workers is a delay queue, from which the only thread takes up to
 * 64 at a time. The backend is that of the environment's TWHEEL_BACKEND.
 */
#include <err.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <twheel_pool.h>
#include <unistd.h>

#include "../random.h"

#define MS 1000000ULL
#define SECOND 1000000000ULL

/* As of the peers */
#define TICK MS
#define DENSITY 256

#define MOST_THREADS 64

/* Everything is done with few tasks as often as makes this many. */
#define REPEAT 20000

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
	shuffle(order, count);
	draw(from, range);
	return each(reset);
}

static __u64 cancel_all(void)
{
	shuffle(order, count);
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

static void print(const char *operation, const char *metric, double value)
{
	printf("{\"peer\":\"pool, %u workers\",\"operation\":\"%s\",\"timers\":%zu,",
	       workers, operation, count);
	printf("\"batch\":1,\"metric\":\"%s\",\"value\":%.2f}\n", metric, value);
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The operations, called as the peers of bench/native call theirs */
static void uniform(void)
{
	static const char *const names[] = {
		"arm", "modify_later", "modify_earlier", "cancel", "expire_read",
	};
	__u64 took[5] = { 0 };
	size_t before = allocated(), rounds = count < REPEAT ? REPEAT / count : 1, i;
	double bytes;

	start_all(start, 100 * SECOND, 100 * SECOND);
	bytes = sizeof(tasks[0]) + (double)(allocated() - before) / count;
	cancel_all();
	for (i = 0; i < rounds; i++) {
		took[0] += start_all(start, 100 * SECOND, 100 * SECOND);
		took[1] += reset_all(200 * SECOND, 100 * SECOND);
		took[2] += reset_all(50 * SECOND, 100 * SECOND);
		took[3] += cancel_all();
		took[4] += expire();
	}
	for (i = 0; i < 5; i++)
		print(names[i], "ns", (double)took[i] / rounds / count);
	print("pending", "bytes", bytes);
}

static void *take_one_by_one(void *arg)
{
	struct twheel_task *task;

	(void)arg;
	while (twheel_pool_take(pool, &task, 1, -1) == 1)
		note_run(task, 0);
	return NULL;
}

/* Sums over all threads, whether they waited or were interrupted */
static long switched(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void switches(void)
{
	pthread_t takers[TAKERS];
	__u64 used;
	long before;
	size_t i;

	left = count;
	due = ~0ULL;
	for (i = 0; i < count; i++) {
		delays[i] = 100 * MS + i * RATE;
		start_to_run(i);
	}
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	before = switched();
	for (i = 0; i < TAKERS && !workers; i++)
		check(-pthread_create(&takers[i], NULL, take_one_by_one, NULL), "thread");
	sem_wait(&finished);
	print("expiry", "switches", (double)(switched() - before) / count);
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
	print("expiry", "us_of_processor", (double)used / count / 1000);
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

int main(int argc, char **argv)
{
	bool rate = argc == 4 && !strcmp(argv[1], "switches");

	if (argc != 4 || (!rate && strcmp(argv[1], "ns")))
		errx(2, "usage: %s ns|switches WORKERS TASKS", argv[0]);
	workers = strtoul(argv[2], NULL, 0);
	count = strtoul(argv[3], NULL, 0);
	if (!count || workers > MOST_THREADS)
		errx(2, "%s workers, %s tasks", argv[2], argv[3]);
	make_pool();
	if (rate)
		switches();
	else
		uniform();
	return 0;
}
