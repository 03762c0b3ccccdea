// SPDX-License-Identifier: GPL-2.0
/*
 * Wheels for bench: in the kernel and in the program, with one operation in a call and with
 * 256. See bench.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <twheel.h>

#include "bench.h"
#include "tool.h"

#define BATCH 256

static struct twheel *tw;
static __u64 *ids;
/* How many operations there are in a call */
static unsigned int batch;

static int wheel_open(int where, unsigned int size, unsigned int nr)
{
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC, .tick = MSEC,
	};
	int ret = twheel_open(where, &tw);

	if (ret)
		return ret;
	ret = twheel_setup(tw, &setup);
	if (ret) {
		twheel_close(tw);
		return ret;
	}
	batch = size;
	ids = need(calloc(nr, sizeof(*ids)));
	return 0;
}

static int kernel_one(unsigned int nr) { return wheel_open(TWHEEL_KERNEL, 1, nr); }
static int kernel_many(unsigned int nr) { return wheel_open(TWHEEL_KERNEL, BATCH, nr); }
static int user_one(unsigned int nr) { return wheel_open(TWHEEL_USER, 1, nr); }
static int user_many(unsigned int nr) { return wheel_open(TWHEEL_USER, BATCH, nr); }

/* Does them, and says the first thing that went wrong. */
static int submit(struct twheel_op *ops, unsigned int nr)
{
	unsigned int i;
	int ret = twheel_submit(tw, ops, nr);

	if (ret < 0)
		return ret;
	if ((unsigned int)ret < nr)
		return -EINTR;
	for (i = 0; i < nr; i++)
		if (ops[i].result)
			return ops[i].result;
	return 0;
}

static int wheel_arm(unsigned int nr, __u64 deadline)
{
	struct twheel_op ops[BATCH];
	unsigned int i, k, n;
	int ret = 0;

	for (i = 0; !ret && i < nr; i += n) {
		n = nr - i < batch ? nr - i : batch;
		for (k = 0; k < n; k++)
			ops[k] = twheel_op_arm(TWHEEL_ABS, deadline, 0, i + k);
		ret = n == 1 ? twheel_arm(tw, ops) : submit(ops, n);
		for (k = 0; k < n; k++)
			ids[i + k] = ops[k].id;
	}
	return ret;
}

static int wheel_move(const unsigned int *order, unsigned int nr, __u64 deadline)
{
	struct twheel_op ops[BATCH];
	unsigned int i, k, n;
	int ret = 0;

	for (i = 0; !ret && i < nr; i += n) {
		n = nr - i < batch ? nr - i : batch;
		for (k = 0; k < n; k++)
			ops[k] = twheel_op_modify(ids[order[i + k]], TWHEEL_ABS, deadline, 0,
						  order[i + k]);
		ret = n == 1 ? twheel_modify(tw, ops) : submit(ops, n);
	}
	return ret;
}

static int wheel_cancel(const unsigned int *order, unsigned int nr)
{
	struct twheel_op ops[BATCH];
	unsigned int i, k, n;
	int ret = 0;

	for (i = 0; !ret && i < nr; i += n) {
		n = nr - i < batch ? nr - i : batch;
		if (n == 1) {
			ret = twheel_cancel(tw, ids[order[i]]);
			continue;
		}
		for (k = 0; k < n; k++)
			ops[k] = twheel_op_cancel(ids[order[i + k]]);
		ret = submit(ops, n);
	}
	return ret;
}

static int wheel_take(unsigned int nr)
{
	struct twheel_event events[BATCH];
	unsigned int taken;
	int ret;

	for (taken = 0; taken < nr; taken += ret) {
		ret = twheel_read(tw, events, batch);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static void wheel_close(void)
{
	twheel_close(tw);
	free(ids);
}

#define WHEEL(name, open) \
	{ name, open, wheel_arm, wheel_move, wheel_cancel, wheel_take, wheel_close }

const struct bench_way bench_wheels[BENCH_WHEELS] = {
	WHEEL("twheel, kernel, 256 in a call", kernel_many),
	WHEEL("twheel, kernel, one in a call", kernel_one),
	WHEEL("twheel, program, 256 in a call", user_many),
	WHEEL("twheel, program, one in a call", user_one),
};
