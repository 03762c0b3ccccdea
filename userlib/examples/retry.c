// SPDX-License-Identifier: MIT
/*
 * A retry queue: what fails is tried again, after twice as long each time, by a pool of
 * two workers. (Here each request fails a few times, and the last one for good.)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <twheel_pool.h>

#define MS 1000000LL
#define REQUESTS 5
#define TRIES 4

struct request {
	struct twheel_task task;
	int number;
	int tries;
};

static int send_request(const struct request *request)
{
	return request->tries > request->number ? 0 : -1;
}

static int try(struct twheel_task *task, const struct twheel_run *run)
{
	struct request *request = task->arg;

	(void)run;
	request->tries++;
	if (!send_request(request))
		return 0;
	if (request->tries == TRIES)
		return -1;
	return twheel_task_reset(task, 0, 5 * MS << request->tries, 0);
}

static void done(struct twheel_task *task, int why)
{
	struct request *request = task->arg;

	printf("request %d: %s after %d tries\n", request->number, why ? "given up" : "sent",
	       request->tries);
	free(request);
}

int main(void)
{
	struct twheel_pool_options options = { .size = sizeof(options), .threads = 2 };
	struct twheel_pool *pool;
	int i, ret = twheel_pool_new(&options, &pool);

	for (i = 0; i < REQUESTS && !ret; i++) {
		struct request *request = calloc(1, sizeof(*request));

		if (!request)
			return 1;
		request->task.run = try;
		request->task.end = done;
		request->task.arg = request;
		request->number = i;
		ret = twheel_task_start(pool, &request->task, 0, 0, 0);
	}
	/* Until there is nothing left to try */
	if (!ret)
		ret = twheel_pool_stop(pool, TWHEEL_RUN_ONCE, NULL, NULL);
	if (ret) {
		fprintf(stderr, "retry: %s\n", strerror(-ret));
		return 1;
	}
	return -twheel_pool_free(pool);
}
