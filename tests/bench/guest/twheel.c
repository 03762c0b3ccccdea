// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of /dev/twheel: operations in batches and events in full buffers, or
 * with "single" as the first argument one operation in a call.
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
/* Aligned to their size, so that none lies in two pages. */
static struct twheel_op ops[BATCH] __attribute__((aligned(sizeof(struct twheel_op))));
static struct twheel_event events[BATCH];

static void tw_close(void)
{
	close(wheel);
}

static const uint16_t opcodes[] = {
	[ARM] = TWHEEL_OP_ARM,
	[MODIFY] = TWHEEL_OP_MODIFY,
	[CANCEL] = TWHEEL_OP_CANCEL,
};

static void prepare(enum operation op, const uint32_t *timer, const uint64_t *time,
		    bool absolute, unsigned int n)
{
	unsigned int i;

	operation = op;
	subject = timer;
	for (i = 0; i < n; i++) {
		memset(&ops[i], 0, sizeof(ops[i]));
		ops[i].size = sizeof(ops[i]);
		ops[i].opcode = opcodes[op];
		if (op != ARM)
			ops[i].id = handle[timer[i]];
		if (op == CANCEL)
			continue;
		ops[i].flags = absolute ? TWHEEL_ABS : 0;
		ops[i].deadline = time[i];
		ops[i].user_data = timer[i];
	}
}

static void submit(unsigned int n)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (uintptr_t)ops,
		.nr = n,
		.op_size = sizeof(ops[0]),
	};

	if (ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit) != (int)n)
		err(1, "submit");
}

/*
 * Has the memory for so many timers there, as in a program that has run for a
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
		for (j = 0; j < n; j++)
			ops[j] = (struct twheel_op){
				.size = sizeof(ops[0]),
				.opcode = TWHEEL_OP_ARM,
				.deadline = 1000000 * SECOND,
			};
		submit(n);
		for (j = 0; j < n; j++)
			ids[i + j] = ops[j].id;
	}
	for (i = 0; i < timers; i += n) {
		n = timers - i < BATCH ? timers - i : BATCH;
		for (j = 0; j < n; j++)
			ops[j] = (struct twheel_op){
				.size = sizeof(ops[0]),
				.opcode = TWHEEL_OP_CANCEL,
				.id = ids[i + j],
			};
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

static void submit_single(unsigned int n)
{
	static const unsigned int ioctls[] = {
		[ARM] = TWHEEL_IOC_ARM,
		[MODIFY] = TWHEEL_IOC_MODIFY,
		[CANCEL] = TWHEEL_IOC_CANCEL,
	};
	unsigned int i, cmd = ioctls[operation];

	for (i = 0; i < n; i++) {
		ops[i].opcode = 0;
		if (ioctl(wheel, cmd, &ops[i]))
			err(1, "ioctl");
	}
}

static void check(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (ops[i].result)
			errx(1, "operation %d: %s", operation, strerror(-ops[i].result));
		if (operation == ARM)
			handle[subject[i]] = ops[i].id;
		else if (ops[i].state != TWHEEL_STATE_PENDING)
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
	unsigned int i;

	for (i = 0; i < n; i++)
		note_expiry(events[i].user_data, events[i].expired);
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

	settled = argc < 2 || strcmp(argv[1], "memory");
	if (argc > 1 && !strcmp(argv[1], "single")) {
		argc--;
		argv++;
		twheel.batch = 1;
		twheel.whole = 100000;
		twheel.submit = submit_single;
		twheel.rest = submit;
		twheel.collect = NULL;
	}
	return bench(&twheel, argc, argv);
}
