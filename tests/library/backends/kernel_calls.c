// SPDX-License-Identifier: GPL-2.0
/*
 * What the library makes of the kernel's answers, which no kernel gives when they are
 * wanted: errors, signals, arrays that are done in parts. And how long the operations are
 * that it asks for. Its system calls end up in a stand-in (by the linker's --wrap), which
 * notes each operation as it came. (Functions over real wheels are in device.c.)
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include <twheel.h>

#include "tap.h"

#define MOST 64

/* What came, and how: lengthened by zeros; of the last call, how long each was */
static struct twheel_op came[MOST];
static unsigned int nr_came, submits, polls;
static __u32 op_size;

/* What is given: ids up to the last one, errors if not 0, signals; how many are done */
static __u64 last_id;
static __u32 event_size;
static int ioctl_error, poll_error;
static unsigned int signals, most_done;

static int operation(struct twheel_op *op)
{
	if (op->opcode == TWHEEL_OP_ARM)
		op->id = ++last_id;
	return op->id <= last_id ? 0 : -ENOENT;
}

static int submit(const struct twheel_submit *arg)
{
	char *at = (void *)(uintptr_t)arg->ops;
	unsigned int i;

	submits++;
	op_size = arg->op_size;
	if (signals) {
		signals--;
		return -EINTR;
	}
	for (i = 0; i < arg->nr && i < most_done && nr_came < MOST; i++, at += op_size) {
		struct twheel_op *op = &came[nr_came++];

		memset(op, 0, sizeof(*op));
		memcpy(op, at, op_size);
		op->result = operation(op);
		memcpy(at, op, op_size);
	}
	return i ? (int)i : -EINTR;
}

int __wrap_ioctl(int fd, unsigned long cmd, ...)
{
	va_list ap;
	void *arg;
	int ret = 0;

	(void)fd;
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (ioctl_error)
		ret = ioctl_error;
	else if (cmd == TWHEEL_IOC_INFO)
		((struct twheel_info *)arg)->event_size = event_size;
	else if (cmd == TWHEEL_IOC_SUBMIT)
		ret = submit(arg);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int nr, off64_t at, int flags)
{
	(void)fd;
	(void)iov;
	(void)nr;
	(void)at;
	(void)flags;
	errno = EAGAIN;
	return -1;
}

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	(void)fds;
	(void)nr;
	(void)timeout;
	polls++;
	errno = poll_error;
	return poll_error ? -1 : 0;
}

static struct twheel *fresh_with(__u32 size)
{
	struct twheel *tw;

	event_size = size;
	nr_came = 0;
	submits = 0;
	polls = 0;
	last_id = 0;
	ioctl_error = 0;
	poll_error = 0;
	signals = 0;
	most_done = MOST;
	/* Closed by the library at the end, so it has to be a descriptor */
	if (twheel_from_fd(open("/dev/null", O_RDWR), &tw))
		tap_bail("twheel_from_fd");
	return tw;
}

static struct twheel *fresh(void)
{
	return fresh_with(TWHEEL_EVENT_SIZE_FULL);
}

static void test_errors(void)
{
	struct twheel *tw = fresh();
	struct twheel_timer timer = { .id = 0 };

	EXPECT_EQ(twheel_timer_arm(tw, &timer, 0, 1, 0), 0);
	ioctl_error = -EFAULT;
	EXPECT_EQ(twheel_timer_cancel(tw, &timer), -EFAULT);
	EXPECT_EQ(timer.id, 1, "still armed");
	ioctl_error = 0;
	EXPECT_EQ(twheel_timer_cancel(tw, &timer), 0);
	EXPECT_EQ(timer.id, 0);
	EXPECT_EQ(twheel_run_once(tw, 0), 0);
	EXPECT_EQ(polls, 0, "not to wait");
	EXPECT_EQ(twheel_run_once(tw, 10), 0);
	EXPECT_EQ(polls, 1);
	poll_error = EINTR;
	EXPECT_EQ(twheel_run_once(tw, 10), -EINTR);
	twheel_close(tw);
	twheel_close(NULL);
	tw = fresh_with(TWHEEL_EVENT_SIZE_ID);
	EXPECT_EQ(twheel_run_once(tw, 10), -EINVAL, "short events, set up before");
	EXPECT_EQ(polls, 0);
	twheel_close(tw);
}

static int do_one(struct twheel *tw, struct twheel_op *op)
{
	switch (op->opcode) {
	case TWHEEL_OP_ARM:
		return twheel_arm(tw, op);
	case TWHEEL_OP_MODIFY:
		return twheel_modify(tw, op);
	case TWHEEL_OP_QUERY:
		return twheel_query(tw, op);
	default:
		return twheel_cancel(tw, op->id);
	}
}

/* How long each is: not longer than it must be, and nothing is cut off */
static const struct {
	struct twheel_op op;
	__u32 size;
} sizes[] = {
	{ { .opcode = TWHEEL_OP_ARM, .deadline = 1, .user_data = 7 }, TWHEEL_OP_SIZE_ONCE },
	{ { .opcode = TWHEEL_OP_MODIFY, .id = 1, .interval = 5 }, TWHEEL_OP_SIZE_FULL },
	{ { .opcode = TWHEEL_OP_MODIFY, .id = 1, .deadline = 1 }, TWHEEL_OP_SIZE_ONCE },
	{ { .opcode = TWHEEL_OP_MODIFY, .id = 1, .slack = 1 }, TWHEEL_OP_SIZE_FULL },
	{ { .opcode = TWHEEL_OP_MODIFY, .id = 1, .jitter = 1 }, TWHEEL_OP_SIZE_FULL },
	{ { .opcode = TWHEEL_OP_MODIFY, .id = 1, .__reserved = 1 }, TWHEEL_OP_SIZE_FULL },
	{ { .opcode = TWHEEL_OP_QUERY, .id = 1 }, TWHEEL_OP_SIZE_FULL },
	{ { .opcode = TWHEEL_OP_CANCEL, .id = 1 }, TWHEEL_OP_SIZE_ID },
};

static void test_sizes(void)
{
	struct twheel *tw = fresh();
	struct twheel_op op;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		op = sizes[i].op;
		signals = i % 3;
		EXPECT_EQ(do_one(tw, &op), 0, "%u, whatever signals there are", i);
		EXPECT_EQ(op_size, sizes[i].size, "%u", i);
		EXPECT_EQ(signals, 0, "%u", i);
	}
	EXPECT_EQ(twheel_cancel(tw, 77), -ENOENT);
	op = sizes[0].op;
	EXPECT_EQ(twheel_modify(tw, &op), -EINVAL, "another operation");
	EXPECT_EQ(twheel_query(tw, &op), -EINVAL, "another operation");
	op = twheel_op_cancel(1);
	EXPECT_EQ(twheel_submit(tw, &op, 1), 1);
	EXPECT_EQ(op_size, TWHEEL_OP_SIZE_FULL, "the distance in an array");
	twheel_close(tw);
}

/* What a batch said was done */
static struct twheel_op said[MOST];
static unsigned int nr_said;

static struct twheel_batch *batch;

static void done(const struct twheel_op *op, void *arg)
{
	EXPECT_TRUE(arg == said);
	EXPECT_EQ(twheel_batch_add(batch, op), -EBUSY);
	EXPECT_EQ(twheel_batch_flush(batch), -EBUSY);
	said[nr_said++] = *op;
}

static void new_batch(struct twheel *tw, unsigned int capacity)
{
	nr_said = 0;
	EXPECT_EQ(twheel_batch_new(tw, 0, done, said, &batch), -EINVAL);
	EXPECT_EQ(twheel_batch_new(tw, capacity, NULL, said, &batch), -EINVAL);
	if (twheel_batch_new(tw, capacity, done, said, &batch))
		tap_bail("twheel_batch_new");
}

static void add(struct twheel_op op)
{
	EXPECT_EQ(twheel_batch_add(batch, &op), 0);
}

/* @nr came, and were said to be done, as they are here */
static void flush(const struct twheel_op *ops, unsigned int nr, __u32 size)
{
	unsigned int i;

	nr_came = 0;
	nr_said = 0;
	for (i = 0; i < nr; i++)
		add(ops[i]);
	EXPECT_EQ(twheel_batch_flush(batch), 0);
	EXPECT_EQ(op_size, size);
	EXPECT_EQ(nr_came, nr);
	EXPECT_EQ(nr_said, nr);
	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(!memcmp(&came[i], &said[i], sizeof(came[i])), "%u", i);
		said[i].result = ops[i].result;
		if (ops[i].opcode == TWHEEL_OP_ARM)
			said[i].id = 0;
		EXPECT_TRUE(!memcmp(&said[i], &ops[i], sizeof(ops[i])), "%u", i);
	}
}

/* A longer operation after shorter ones lengthens these, until the next batch */
static void test_batch_sizes(void)
{
	const struct twheel_op mixed[] = {
		twheel_op_cancel(3), twheel_op_cancel(77),
		twheel_op_arm(0, 9, 0, 5), twheel_op_arm(0, 8, 4, 6),
	};
	struct twheel_op cancel = { .opcode = TWHEEL_OP_CANCEL, .id = 1, .user_data = 1 };
	struct twheel *tw = fresh();

	new_batch(tw, 4);
	flush(&mixed[2], 1, TWHEEL_OP_SIZE_ONCE);
	flush(mixed, 2, TWHEEL_OP_SIZE_ID);
	most_done = 3;
	flush(mixed, 4, TWHEEL_OP_SIZE_FULL);
	EXPECT_EQ(came[1].result, -ENOENT);
	/* What is wrong in it is not cut off */
	flush(&cancel, 1, TWHEEL_OP_SIZE_ONCE);
	most_done = MOST;
	nr_came = 0;
	add(mixed[0]);
	twheel_batch_free(batch);
	twheel_batch_free(NULL);
	EXPECT_EQ(nr_came, 0, "dropped");
	twheel_close(tw);
}

static void test_batch_parts(void)
{
	struct twheel_op op = twheel_op_arm(0, 1, 0, 8);
	struct twheel *tw = fresh();
	unsigned int i;

	new_batch(tw, 8);
	for (i = 0; i < 8; i++)
		add(twheel_op_arm(0, 1, 0, i));
	EXPECT_EQ(submits, 0, "it is not full");
	most_done = 0;
	EXPECT_EQ(twheel_batch_flush(batch), -EINTR);
	EXPECT_EQ(twheel_batch_add(batch, &op), -EINTR);
	EXPECT_EQ(nr_said, 0);
	most_done = 3;
	EXPECT_EQ(twheel_batch_flush(batch), 0, "in three parts");
	EXPECT_EQ(submits, 5);
	EXPECT_EQ(twheel_batch_flush(batch), 0);
	EXPECT_EQ(submits, 5, "there is nothing to do");
	EXPECT_EQ(nr_said, 8);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(said[i].user_data, i, "in order");
		EXPECT_EQ(said[i].id, i + 1);
	}
	twheel_batch_free(batch);
	twheel_close(tw);
}

int main(void)
{
	tap_start(60);
	RUN(test_errors, "an error changes nothing, and ends the waiting");
	RUN(test_sizes, "operations are as short as they can be, and are not lost by signals");
	RUN(test_batch_sizes, "a batch of operations of different lengths");
	RUN(test_batch_parts, "a batch that is done in parts, and signals");
	return tap_end();
}
