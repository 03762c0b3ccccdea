// SPDX-License-Identifier: GPL-2.0
/*
 * DRAIN: what is pending is taken out, and can be armed again elsewhere.
 *
 * also in: both kunit matrix small
 */
#include "device.h"

#define N 500

static int fd;

static void fresh(void)
{
	wheel_replace(&fd, O_NONBLOCK);
}

static struct twheel_op kind(int i, __u64 base)
{
	struct twheel_op op = op_arm(i % 2 ? TWHEEL_ABS : 0,
				     (i % 2 ? base : 0) + HOUR + i * SEC, i);

	op.interval = i % 3 ? 0 : HOUR;
	op.slack = i % 5 ? 0 : MSEC * i;
	op.jitter = i % 7 ? 0 : MSEC * i;
	return op;
}

static void check_drained(const struct twheel_op *op,
			  const struct twheel_op *armed, __u64 before,
			  __u64 after)
{
	__u64 least = armed->deadline, most = armed->deadline + armed->jitter;

	if (!(armed->flags & TWHEEL_ABS)) {
		least += before;
		most += after;
	}
	EXPECT_EQ(op->__reserved, 0);
	EXPECT_EQ(op->opcode, TWHEEL_OP_ARM);
	EXPECT_EQ(op->flags, TWHEEL_ABS);
	EXPECT_EQ(op->result, 0);
	EXPECT_EQ(op->id, armed->id);
	EXPECT_EQ(op->interval, armed->interval);
	EXPECT_TRUE(op->slack <= armed->slack, "%llu of %llu", op->slack,
		    armed->slack);
	EXPECT_TRUE(op->jitter <= armed->jitter);
	EXPECT_TRUE(op->deadline >= least && op->deadline <= most,
		    "timer %llu: deadline %llu, not %llu to %llu", op->user_data,
		    op->deadline, least, most);
}

static void test_contents(void)
{
	static struct twheel_op armed[N], out[N];
	unsigned char seen[N] = { 0 };
	__u64 before, after;
	long n = 0, got;
	int i;

	fresh();
	before = now(CLOCK_MONOTONIC);
	for (i = 0; i < N; i++)
		armed[i] = kind(i, before);
	submit_all(fd, armed, N);
	after = now(CLOCK_MONOTONIC);
	for (i = 0; i < 10; i++)
		arm_past(fd, N + i);
	memset(out, 0xff, sizeof(out));
	while ((got = drain(fd, out + n, N - n < 70 ? N - n : 70)) > 0) {
		n += got;
		EXPECT_EQ(wheel_info(fd).pending, N - n);
		if (n == N)
			break;
	}
	EXPECT_EQ(n, N);
	for (i = 0; i < n; i++) {
		if (!EXPECT_TRUE(out[i].user_data < N, "%llu", out[i].user_data))
			continue;
		seen[out[i].user_data]++;
		check_drained(&out[i], &armed[out[i].user_data], before, after);
		EXPECT_EQ(cancel(fd, out[i].id), -ENOENT, "used up");
	}
	EXPECT_EACH_ONCE(seen, N);
	EXPECT_EQ(drain(fd, out, N), 0, "nothing is pending");
	EXPECT_EQ(wheel_info(fd).ready, 10, "what is ready stays");
	EXPECT_EQ(wheel_stats(fd).drained, N);
}

static void test_how_many(void)
{
	static struct twheel_op out[N];
	struct twheel_op untouched;
	int i;

	fresh();
	EXPECT_EQ(drain(fd, out, 0), 0);
	EXPECT_EQ(drain(fd, out, N), 0);
	for (i = 0; i < 10; i++)
		arm(fd, 0, HOUR, i);
	EXPECT_EQ(drain(fd, out, 0), 0);
	EXPECT_EQ(wheel_info(fd).pending, 10);
	memset(out, 0xee, sizeof(out));
	untouched = out[N - 1];
	EXPECT_EQ(drain(fd, out, 3), 3);
	EXPECT_TRUE(!memcmp(&out[3], &untouched, sizeof(untouched)),
		    "more was written than taken");
	EXPECT_EQ(drain(fd, out, N), 7);
	EXPECT_TRUE(!memcmp(&out[7], &untouched, sizeof(untouched)),
		    "more was written than taken");
}

/* The wheel goes on afterwards, and sleeps when nothing is left */
static void test_afterwards(void)
{
	struct twheel_op out[8];
	struct twheel_event ev;
	__u64 wakeups, lead = 100 * MSEC, start;
	long n;

	do {
		fresh();
		lead *= 2;
		start = now(CLOCK_MONOTONIC);
		arm(fd, 0, lead, 1);
		arm(fd, 0, HOUR, 2);
		n = drain(fd, out, 8);
	} while (now(CLOCK_MONOTONIC) >= start + lead);
	EXPECT_EQ(n, 2);
	wakeups = wheel_stats(fd).wakeups;
	EXPECT_EQ(readable(fd, lead / MSEC + 200), 0);
	EXPECT_TRUE(wheel_stats(fd).wakeups <= wakeups + 1, "%llu wake-ups, then %llu",
		    wakeups, wheel_stats(fd).wakeups);
	EXPECT_EQ(wheel_info(fd).next_expiry, 0);
	arm(fd, 0, 10 * MSEC, 3);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 3);
}

/* Taken from every level of the wheel, however far away */
static void test_far(void)
{
	static struct twheel_op out[64];
	__u64 sum = 0;
	long i, n;

	fresh();
	for (i = 0; i < 62; i++)
		arm(fd, 0, HOUR + (1ULL << i), 1ULL << i);
	n = drain(fd, out, 64);
	EXPECT_EQ(n, 62);
	for (i = 0; i < n; i++)
		sum += out[i].user_data;
	EXPECT_EQ(sum, (1ULL << 62) - 1);
}

/* The beginning of each: one that can be armed again, and one that can't */
static void prefixes(__u32 size)
{
	unsigned char out[5 * sizeof(struct twheel_op)];
	struct twheel_op op = { 0 };
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)out,
		.nr = 4,
		.op_size = size,
	};
	__u64 base = now(CLOCK_MONOTONIC) + HOUR, ids[4];
	__u32 i, k, seen = 0;

	fresh();
	for (i = 0; i < 4; i++)
		ids[i] = arm(fd, TWHEEL_ABS, base + i, i);
	memset(out, 0xee, sizeof(out));
	EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &arg), 4, "size %u", size);
	for (i = 0; i < 4; i++) {
		memcpy(&op, out + i * size, size);
		EXPECT_EQ(op.opcode, TWHEEL_OP_ARM, "size %u", size);
		EXPECT_EQ(op.flags, TWHEEL_ABS, "size %u", size);
		EXPECT_EQ(op.state, TWHEEL_STATE_PENDING, "size %u", size);
		EXPECT_EQ(op.result, 0, "size %u", size);
		for (k = 0; k < 4; k++)
			if (op.id == ids[k])
				seen |= 1U << k;
		EXPECT_TRUE(size < 32 || (op.user_data < 4 && op.id == ids[op.user_data] &&
					  op.deadline == base + op.user_data),
			    "size %u", size);
	}
	EXPECT_EQ(seen, 15, "size %u", size);
	EXPECT_EQ(out[4 * size], 0xee, "behind them, size %u", size);
	EXPECT_EQ(wheel_info(fd).pending, 0);
	/* so they can be submitted as they are, if they have all that ARM needs */
	EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_SUBMIT, &arg), 4, "size %u", size);
	EXPECT_EQ(wheel_info(fd).pending, size < 32 ? 0 : 4, "size %u", size);
	for (i = 0; i < 4; i++) {
		memcpy(&op, out + i * size, size);
		EXPECT_EQ(op.result, size < 32 ? -EINVAL : 0, "size %u", size);
	}
}

static void test_prefixes(void)
{
	prefixes(TWHEEL_OP_SIZE_ID);
	prefixes(TWHEEL_OP_SIZE_ONCE);
	prefixes(TWHEEL_OP_SIZE_FULL);
}

int main(void)
{
	tap_start(60);
	RUN(test_contents, "what is drained");
	RUN(test_how_many, "as many as asked for, or as there are");
	RUN(test_afterwards, "the wheel afterwards");
	RUN(test_far, "from every level");
	RUN(test_prefixes, "operations of each length");
	return tap_end();
}
