// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of /dev/twheel: operations in batches, each as long as a program needs it,
 * and events in full buffers.
 *
 * usage: twheel [single|batch OPERATIONS] [periodic] ...: in a call not 256
 *        operations, but one, or that number; timers that expire again and again
 */
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int wheel;
/* Not where memory is measured */
static bool settled = true;
static enum operation operation;
static const uint32_t *subject;
static uint64_t interval;
/* Operations of op_size bytes, aligned to that, so that none lies in two pages. */
static char ops[BATCH * TWHEEL_OP_SIZE_FULL] __attribute__((aligned(TWHEEL_OP_SIZE_FULL)));
static uint32_t op_size;
static unsigned int in_a_call = BATCH;
static struct twheel_event events[BATCH];

/* A period in which nothing that is measured ends. */
#define PERIOD (1000000 * SECOND)

static void tw_close(void)
{
	close(wheel);
}

static const uint8_t opcodes[] = {
	[ARM] = TWHEEL_OP_ARM,
	[MODIFY] = TWHEEL_OP_MODIFY,
	[CANCEL] = TWHEEL_OP_CANCEL,
};

/* The shortest that says it. */
static uint32_t size_of(enum operation op)
{
	if (op == CANCEL)
		return TWHEEL_OP_SIZE_ID;
	return interval ? TWHEEL_OP_SIZE_FULL : TWHEEL_OP_SIZE_ONCE;
}

static void set_op(unsigned int i, struct twheel_op op)
{
	memcpy(ops + i * op_size, &op, op_size);
}

/* The beginning of an operation, with what all have. */
static const struct twheel_op *op_at(unsigned int i)
{
	return (const struct twheel_op *)(ops + i * op_size);
}

static void prepare(enum operation op, const uint32_t *timer, const uint64_t *time,
		    bool absolute, unsigned int n)
{
	unsigned int i;

	operation = op;
	subject = timer;
	op_size = size_of(op);
	for (i = 0; i < n; i++) {
		struct twheel_op one = { .opcode = opcodes[op] };

		if (op != ARM)
			one.id = handle[timer[i]];
		if (op != CANCEL) {
			one.flags = absolute ? TWHEEL_ABS : 0;
			one.deadline = time[i];
			one.user_data = timer[i];
			one.interval = interval;
		}
		set_op(i, one);
	}
}

static void submit_from(unsigned int first, unsigned int n)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (uintptr_t)(ops + first * op_size),
		.nr = n,
		.op_size = op_size,
	};

	if (ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit) != (int)n)
		err(1, "submit");
}

static void submit(unsigned int n)
{
	submit_from(0, n);
}

static void submit_few(unsigned int n)
{
	unsigned int i;

	for (i = 0; i + in_a_call <= n; i += in_a_call)
		submit_from(i, in_a_call);
	if (i < n)
		submit_from(i, n - i);
}

/*
 * Has the memory for @nr timers there, as in a program that has run for a
 * while: of what was armed once, one in each 256 is left.
 */
static void settle(size_t timers)
{
	uint64_t *ids = calloc(timers, sizeof(*ids));
	size_t i, j;
	unsigned int n;

	if (!ids)
		err(1, "calloc");
	for (i = 0; i < timers; i += n) {
		n = timers - i < BATCH ? timers - i : BATCH;
		op_size = size_of(ARM);
		for (j = 0; j < n; j++)
			set_op(j, (struct twheel_op){
				.opcode = TWHEEL_OP_ARM,
				.deadline = 1000000 * SECOND,
				.interval = interval,
			});
		submit(n);
		for (j = 0; j < n; j++)
			ids[i + j] = op_at(j)->id;
	}
	for (i = 0; i < timers; i += n) {
		n = timers - i < BATCH ? timers - i : BATCH;
		op_size = size_of(CANCEL);
		for (j = 0; j < n; j++)
			set_op(j, (struct twheel_op){
				.opcode = TWHEEL_OP_CANCEL,
				.id = ids[i + j],
			});
		if (n > 1)
			submit(n - 1);
	}
	free(ids);
}

static void tw_open(size_t timers, bool deliver)
{
	(void)deliver;
	wheel = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (wheel < 0)
		err(1, "/dev/twheel");
	if (settled)
		settle(timers);
}

static void check(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct twheel_op *op = op_at(i);

		if (op->result)
			errx(1, "operation %d: %s", operation, strerror(-op->result));
		if (operation == ARM)
			handle[subject[i]] = op->id;
		else if (op->state != TWHEEL_STATE_PENDING)
			errx(1, "operation %d: not pending", operation);
	}
}

static unsigned int collect(void)
{
	ssize_t bytes = read(wheel, events, sizeof(events));

	if (bytes < 0) {
		if (errno != EAGAIN)
			err(1, "read");
		return 0;
	}
	return bytes / sizeof(events[0]);
}

static void check_collected(unsigned int n)
{
	uint64_t by = now();
	unsigned int i;

	for (i = 0; i < n; i++)
		note_expiry(events[i].user_data, by);
	if (!interval || !n)
		return;
	/* They would go on, and the next time there are others */
	op_size = size_of(CANCEL);
	for (i = 0; i < n; i++)
		set_op(i, (struct twheel_op){
			.opcode = TWHEEL_OP_CANCEL,
			.id = events[i].id,
		});
	submit(n);
}

int main(int argc, char **argv)
{
	struct peer twheel = {
		.name = "twheel",
		.batch = BATCH,
		.whole = SIZE_MAX,
		.open = tw_open,
		.prepare = prepare,
		.submit = submit,
		.check = check,
		.collect = collect,
		.check_collected = check_collected,
		.close = tw_close,
	};

	if (argc > 1 && !strcmp(argv[1], "single")) {
		in_a_call = 1;
		argc--;
		argv++;
	} else if (argc > 2 && !strcmp(argv[1], "batch")) {
		in_a_call = strtoul(argv[2], NULL, 0);
		if (!in_a_call || in_a_call > BATCH)
			errx(2, "a batch has 1 to %d operations", BATCH);
		argc -= 2;
		argv += 2;
	}
	if (argc > 1 && !strcmp(argv[1], "periodic")) {
		interval = PERIOD;
		twheel.name = "twheel-periodic";
		argc--;
		argv++;
	}
	if (in_a_call < BATCH) {
		twheel.batch = in_a_call;
		twheel.whole = 100000;
		twheel.submit = submit_few;
		twheel.rest = submit;
		twheel.collect = NULL;
	}
	settled = argc < 2 || strcmp(argv[1], "memory");
	return bench(&twheel, argc, argv);
}
