// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation of the library costs where the wheel is in the program, in
 * instructions: in a guest in which one takes 1 ns (scripts/vm -i). Prints lines
 * as the programs of the benchmark do.
 */

#include <err.h>
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

/* Returns how long it took for timers number @first to @end - 1. */
static uint64_t each(void (*act)(unsigned int i), unsigned int first, unsigned int end)
{
	uint64_t begin = now();
	unsigned int i;

	for (i = first; i < end; i++)
		act(i);
	return now() - begin;
}

static void print(const char *operation, uint64_t took)
{
	printf("{\"suite\":\"cost\",\"peer\":\"libtwheel\",\"operation\":\"%s\",", operation);
	printf("\"timers\":%u,\"batch\":1,\"metric\":\"instructions\",\"value\":%.1f}\n",
	       STAY, (double)took / (GO * ROUNDS));
}

static void measure(const char *come, void (*comes)(unsigned int i),
		    const char *go, void (*goes)(unsigned int i))
{
	uint64_t coming = 0, going = 0;
	int i;

	each(comes, 0, STAY);
	for (i = 0; i < ROUNDS; i++) {
		coming += each(comes, STAY, STAY + GO);
		going += each(goes, STAY, STAY + GO);
	}
	print(come, coming);
	print(go, going);
}

static int run(struct twheel_task *task, const struct twheel_run *why)
{
	(void)task;
	(void)why;
	return 0;
}

int main(void)
{
	const struct twheel_pool_options options = {
		.size = sizeof(options), .flags = TWHEEL_USER, .threads = 1,
	};
	unsigned int i;

	must(twheel_open(TWHEEL_USER, &tw), "twheel_open");
	measure("library_arm", arm, "library_cancel", cancel);
	twheel_close(tw);

	for (i = 0; i < STAY + GO; i++)
		tasks[i].run = run;
	must(twheel_pool_new(&options, &pool), "twheel_pool_new");
	measure("pool_start", start, "pool_cancel", cancel_task);
	must(twheel_pool_free(pool), "twheel_pool_free");
	return 0;
}
