// SPDX-License-Identifier: MIT
/*
 * A batch: ten thousand timers armed, one half cancelled and the other
 * read, with a system call for 256 of them.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <twheel.h>

#define MS 1000000ULL
#define TIMERS 10000
#define BATCH 256

static __u64 ids[TIMERS];
static int cancelled;

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

/* Called for each operation once the kernel has done it */
static void done(const struct twheel_op *op, void *arg)
{
	(void)arg;
	must(op->result, "operation");
	if (op->opcode == TWHEEL_OP_ARM)
		ids[op->user_data] = op->id;
	else
		cancelled++;
}

int main(void)
{
	static struct twheel_event events[BATCH];
	struct twheel_batch *batch;
	struct twheel *tw;
	int expired = 0;

	must(twheel_open(0, &tw), "twheel_open");
	must(twheel_batch_new(tw, BATCH, done, NULL, &batch),
	     "twheel_batch_new");

	for (int i = 0; i < TIMERS; i++) {
		/* The first half soon, the second half never */
		__u64 delay = i < TIMERS / 2 ? 50 * MS : 3600000 * MS;
		struct twheel_op op = twheel_op_arm(0, delay, 0, i);

		must(twheel_batch_add(batch, &op), "twheel_batch_add");
	}
	must(twheel_batch_flush(batch), "twheel_batch_flush");

	for (int i = TIMERS / 2; i < TIMERS; i++) {
		struct twheel_op op = twheel_op_cancel(ids[i]);

		must(twheel_batch_add(batch, &op), "twheel_batch_add");
	}
	must(twheel_batch_flush(batch), "twheel_batch_flush");
	twheel_batch_free(batch);

	while (expired < TIMERS / 2)
		expired += must(twheel_read(tw, events, BATCH), "twheel_read");
	printf("%d cancelled, %d expired\n", cancelled, expired);
	twheel_close(tw);
	return 0;
}
