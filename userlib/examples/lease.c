// SPDX-License-Identifier: MIT
/*
 * A lease keeper: many leases are renewed again and again, each a little sooner or later
 * than its period says, so that they don't come all at once; one that can't be renewed
 * is lost.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <twheel_pool.h>

#define MS 1000000LL
#define LEASES 1000
#define RENEWALS 3

struct lease {
	struct twheel_task task;
	int renewals;
};

static struct lease leases[LEASES];
static int lost;

static int renew(struct twheel_task *task, const struct twheel_run *run)
{
	struct lease *lease = task->arg;

	(void)run;
	return ++lease->renewals == RENEWALS ? -1 : 0;
}

/* Up to a tenth of the period sooner. (A task has one worker at a time.) */
static int64_t with_jitter(struct twheel_task *task, uint64_t now, uint64_t period)
{
	unsigned int seed = now + (unsigned long)task;

	return period - rand_r(&seed) % (period / 10);
}

static void over(struct twheel_task *task, int why)
{
	(void)task;
	(void)why;
	__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = 2, .tick = MS,
	};
	struct twheel_pool *pool;
	int i, ret = twheel_pool_new(&options, &pool);

	for (i = 0; i < LEASES && !ret; i++) {
		leases[i].task = (struct twheel_task){
			.run = renew, .next = with_jitter, .end = over, .arg = &leases[i],
		};
		ret = twheel_task_start(pool, &leases[i].task, 0, i * MS / 10, 100 * MS);
	}
	/* Until all are lost: those with a period are still run */
	if (!ret)
		ret = twheel_pool_stop(pool, TWHEEL_RUN_PERIODIC, NULL, NULL);
	if (ret) {
		fprintf(stderr, "lease: %s\n", strerror(-ret));
		return 1;
	}
	for (i = 0; i < LEASES; i++)
		if (leases[i].renewals != RENEWALS)
			return 1;
	printf("%d leases were renewed %d times\n", lost, RENEWALS);
	return -twheel_pool_free(pool);
}
