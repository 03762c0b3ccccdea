// SPDX-License-Identifier: MIT
/*
 * A delay queue between threads: one thread puts messages in, each with its own delay,
 * and two take them out, no message before its time.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <twheel_pool.h>

#define MS 1000000LL
#define MESSAGES 1000

struct message {
	struct twheel_task task;
	int number;
};

static struct message messages[MESSAGES];

static void *consume(void *arg)
{
	struct twheel_pool *pool = arg;
	struct twheel_task *due[8];
	long taken = 0;
	int nr;

	/* Until it was stopped, and there is no more; not only until it is suspended */
	while ((nr = twheel_pool_take(pool, due, 8, -1)) > 0 || nr == -EINTR) {
		while (nr-- > 0) {
			struct message *message = due[nr]->arg;

			taken += message->number > 0;
		}
	}
	return (void *)taken;
}

int main(void)
{
	struct twheel_pool_options options = { .size = sizeof(options), .tick = MS };
	struct twheel_pool *pool;
	pthread_t consumers[2];
	void *taken;
	long sum = 0;
	int i, ret = twheel_pool_new(&options, &pool);

	if (ret) {
		fprintf(stderr, "queue: %s\n", strerror(-ret));
		return 1;
	}
	for (i = 0; i < 2; i++)
		if (pthread_create(&consumers[i], NULL, consume, pool))
			return 1;
	for (i = 0; i < MESSAGES; i++) {
		messages[i].task.arg = &messages[i];
		messages[i].number = i + 1;
		if (twheel_task_start(pool, &messages[i].task, 0, i % 100 * MS, 0))
			return 1;
	}
	twheel_pool_stop(pool, TWHEEL_RUN_ONCE, NULL, NULL);
	for (i = 0; i < 2; i++) {
		pthread_join(consumers[i], &taken);
		sum += (long)taken;
	}
	printf("%ld of %d messages\n", sum, MESSAGES);
	twheel_pool_free(pool);
	return sum != MESSAGES;
}
