// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation of the library costs, in instructions: where the wheel is in the
 * program, and of a pool also over the module, by its shared timers. In a guest in which
 * one takes 1 ns (scripts/vm -i). Prints lines as the programs of the benchmark do.
 */

#include <err.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <twheel.h>
#include <twheel_pool.h>

/* Timers that are armed all the time, and those that come and go beside them */
#define STAY 1000
#define GO 256
#define ROUNDS 400

/* From one deadline to the next, and the first */
#define MS 1000000ULL
#define HOUR (3600 * 1000 * MS)

static struct twheel *tw;
static struct twheel_pool *pool;
static struct twheel_task tasks[STAY + GO];
static __u64 ids[STAY + GO];

/* Cost of a worker that is held up until tasks are due, and runs them then */
static struct twheel_task holder;
static sem_t held, released, finished;
static unsigned int left;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, strerror(-ret));
}

static void arm(unsigned int i)
{
	struct twheel_op op = twheel_op_arm(0, HOUR + i * MS, 0, i);

	must(twheel_arm(tw, &op), "twheel_arm");
	ids[i] = op.id;
}

static void move(unsigned int i, uint64_t when)
{
	struct twheel_op op = twheel_op_modify(ids[i], 0, when + i * MS, 0, i);

	must(twheel_modify(tw, &op), "twheel_modify");
}

static void move_later(unsigned int i)
{
	move(i, 2 * HOUR);
}

static void move_earlier(unsigned int i)
{
	move(i, HOUR / 2);
}

static void cancel(unsigned int i)
{
	must(twheel_cancel(tw, ids[i]), "twheel_cancel");
}

static void start(unsigned int i)
{
	must(twheel_task_start(pool, &tasks[i], 0, HOUR + i * MS, 0), "twheel_task_start");
}

static void cancel_task(unsigned int i)
{
	must(twheel_task_cancel(&tasks[i]), "twheel_task_cancel");
}

static void reset_task(unsigned int i)
{
	must(twheel_task_reset(&tasks[i], 0, HOUR + (STAY + i) * MS, 0), "twheel_task_reset");
}

static void start_and_cancel(unsigned int i)
{
	start(i);
	cancel_task(i);
}

static void start_to_run(unsigned int i)
{
	must(twheel_task_start(pool, &tasks[i], 0, MS, 0), "twheel_task_start");
}

/* Returns how long it took for timers number @first to @end - 1. */
static uint64_t each(void (*act)(unsigned int i), unsigned int first, unsigned int end)
{
	uint64_t begin = now();
	unsigned int i;

	for (i = first; i < end; i++)
		act(i);
	return now() - begin;
}

static void print(const char *kind, const char *operation, uint64_t took)
{
	printf("{\"suite\":\"cost\",\"peer\":\"libtwheel\",\"operation\":\"%s_%s\",",
	       kind, operation);
	printf("\"timers\":%u,\"batch\":1,\"metric\":\"instructions\",\"value\":%.1f}\n",
	       STAY, (double)took / (GO * ROUNDS));
}

static void measure_wheel(void)
{
	uint64_t coming = 0, later = 0, earlier = 0, going = 0;
	int i;

	must(twheel_open(TWHEEL_USER, &tw), "twheel_open");
	each(arm, 0, STAY);
	for (i = 0; i < ROUNDS; i++) {
		coming += each(arm, STAY, STAY + GO);
		later += each(move_later, STAY, STAY + GO);
		earlier += each(move_earlier, STAY, STAY + GO);
		going += each(cancel, STAY, STAY + GO);
	}
	print("library", "arm", coming);
	print("library", "modify_later", later);
	print("library", "modify_earlier", earlier);
	print("library", "cancel", going);
	twheel_close(tw);
}

static int run(struct twheel_task *task, const struct twheel_run *why)
{
	(void)task;
	(void)why;
	if (!--left)
		sem_post(&finished);
	return 0;
}

static int hold_up(struct twheel_task *task, const struct twheel_run *why)
{
	(void)task;
	(void)why;
	sem_post(&held);
	sem_wait(&released);
	return 0;
}

/* How long it takes a worker to run all that are due, when it is let go */
static uint64_t run_all(void)
{
	const struct timespec long_enough = { .tv_nsec = 20 * MS };
	uint64_t begin;

	must(twheel_task_start(pool, &holder, 0, 0, 0), "twheel_task_start");
	sem_wait(&held);
	left = GO;
	each(start_to_run, STAY, STAY + GO);
	nanosleep(&long_enough, NULL);
	begin = now();
	sem_post(&released);
	sem_wait(&finished);
	return now() - begin;
}

static void wait_for_all(void)
{
	unsigned int i;

	twheel_task_cancel_wait(&holder);
	for (i = STAY; i < STAY + GO; i++)
		twheel_task_cancel_wait(&tasks[i]);
}

static void measure_pool(uint32_t backend, const char *kind)
{
	const struct twheel_pool_options options = {
		.size = sizeof(options), .flags = backend, .threads = 1,
	};
	uint64_t coming = 0, moving = 0, going = 0, pairs = 0, running = 0;
	int i;

	must(twheel_pool_new(&options, &pool), "twheel_pool_new");
	each(start, 0, STAY);
	for (i = 0; i < ROUNDS; i++) {
		coming += each(start, STAY, STAY + GO);
		going += each(cancel_task, STAY, STAY + GO);
	}
	for (i = 0; i < ROUNDS; i++)
		pairs += each(start_and_cancel, STAY, STAY + GO);
	for (i = 0; i < ROUNDS; i++) {
		each(start, STAY, STAY + GO);
		moving += each(reset_task, STAY, STAY + GO);
		each(cancel_task, STAY, STAY + GO);
	}
	for (i = 0; i < ROUNDS; i++) {
		running += run_all();
		wait_for_all();
	}
	print(kind, "start", coming);
	print(kind, "cancel", going);
	print(kind, "pair", pairs);
	print(kind, "reset", moving);
	print(kind, "run", running);
	must(twheel_pool_free(pool), "twheel_pool_free");
}

int main(void)
{
	unsigned int i;

	sem_init(&held, 0, 0);
	sem_init(&released, 0, 0);
	sem_init(&finished, 0, 0);
	holder.run = hold_up;
	for (i = 0; i < STAY + GO; i++)
		tasks[i].run = run;
	measure_wheel();
	measure_pool(TWHEEL_USER, "pool");
	measure_pool(TWHEEL_KERNEL, "pool_shared");
	return 0;
}
