// SPDX-License-Identifier: GPL-2.0
/*
 * A 32-bit program on the 64-bit kernel: the same layout, the same numbers, and calls of
 * each kind.
 *
 * There is no 32-bit C library to link with, so this has its own system calls
 * and its own TAP.
 */
#include <asm/errno.h>
#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>

#include "golden.h"

#define O_RDWR 2
#define O_NONBLOCK 2048
#define POLLIN 1
#define CLOCK_MONOTONIC 1
#define PATIENCE_MS 20000

#define MSEC 1000000LL
#define SEC 1000000000LL
#define HOUR (3600 * SEC)

static int tests, failed, bad;

/* gcc calls these by itself */
void *memset(void *p, int c, size_t n)
{
	char *q = p;

	while (n--)
		*q++ = c;
	return p;
}

void *memcpy(void *to, const void *from, size_t n)
{
	const char *p = from;
	char *q = to;

	while (n--)
		*q++ = *p++;
	return to;
}

#ifdef __arm__
static long call(long nr, long a, long b, long c)
{
	register long r7 asm("r7") = nr;
	register long r0 asm("r0") = a;
	register long r1 asm("r1") = b;
	register long r2 asm("r2") = c;

	asm volatile("svc #0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
	return r0;
}

#define ENTRY
#else
static long call(long nr, long a, long b, long c)
{
	long ret;

	asm volatile("int $0x80" : "=a"(ret)
		     : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

/* The kernel starts a program with the stack as its ABI wants it for calls */
#define ENTRY __attribute__((force_align_arg_pointer))
#endif

static void text(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	call(__NR_write, 1, (long)s, n);
}

static void hex(long long n)
{
	char buf[24], *p = buf + sizeof(buf);
	unsigned long long v = n;

	/* (No division of 64 bits without the C library.) */
	*--p = 0;
	do {
		*--p = "0123456789abcdef"[v % 16];
		v /= 16;
	} while (v);
	text(p);
}

/* Small numbers are what it prints: tests are counted */
static void decimal(unsigned int n)
{
	char two[3] = { '0' + n / 10 % 10, '0' + n % 10, 0 };

	text(n < 10 ? two + 1 : two);
}

static void eq(long long got, long long want, const char *what)
{
	if (got == want)
		return;
	bad++;
	text("# ");
	text(what);
	text(": got 0x");
	hex(got);
	text(" want 0x");
	hex(want);
	text("\n");
}

#define EXPECT_EQ(got, want) eq(got, want, #got)
#define EXPECT_TRUE(cond) eq(!!(cond), 1, #cond)

static void run(void (*test)(void), const char *name)
{
	bad = 0;
	test();
	failed += !!bad;
	text(bad ? "not ok " : "ok ");
	decimal(++tests);
	text(" - ");
	text(name);
	text("\n");
}

static long do_ioctl(int fd, unsigned long cmd, void *arg)
{
	return call(__NR_ioctl, fd, cmd, (long)arg);
}

static int wheel_open(void)
{
	int fd = call(__NR_open, (long)"/dev/twheel", O_RDWR | O_NONBLOCK, 0);

	EXPECT_TRUE(fd >= 0);
	return fd;
}

static long long now(void)
{
	struct {
		long long sec;
		long long nsec;
	} ts = { 0 };

	EXPECT_EQ(call(__NR_clock_gettime64, CLOCK_MONOTONIC, (long)&ts, 0), 0);
	return ts.sec * SEC + ts.nsec;
}

static bool readable(int fd, int ms)
{
	struct {
		int fd;
		short events, revents;
	} p = { fd, POLLIN, 0 };

	return call(__NR_poll, (long)&p, 1, ms) == 1 && p.revents == POLLIN;
}

static struct twheel_op op_arm(__u8 flags, __u64 deadline, __u64 user_data)
{
	return (struct twheel_op){
		.opcode = TWHEEL_OP_ARM,
		.flags = flags,
		.deadline = deadline,
		.user_data = user_data,
	};
}

/* One operation, or so much of its beginning: its result */
static long do_op(int fd, struct twheel_op *op, __u8 opcode, __u32 op_size)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (unsigned long)op,
		.nr = 1,
		.op_size = op_size,
	};

	op->opcode = opcode;
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), 1);
	return op->result;
}

static void test_layout(void)
{
	const struct golden *g;

	EXPECT_EQ(sizeof(void *), 4);
	for (g = golden; g < golden + GOLDEN_LENGTH; g++) {
		eq(g->is, g->was, g->name);
		eq(g->is_at, g->was_at, g->name);
	}
}

static struct twheel_info wheel_info(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_INFO, &info), 0);
	return info;
}

static void test_setup(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_BOOTTIME,
		.event_size = 16,
		.tick = MSEC,
		.limit = 3,
	};
	struct twheel_eventfd none = { .size = sizeof(none), .fd = -1 };
	int fd = wheel_open();

	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_EVENTFD, &none), -ENOENT);
	EXPECT_EQ(wheel_info(fd).clock, TWHEEL_CLOCK_MONOTONIC);
	EXPECT_EQ(wheel_info(fd).event_size, sizeof(struct twheel_event));
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SETUP, &setup), 0);
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SETUP, &setup), -EBUSY);
	EXPECT_EQ(wheel_info(fd).clock, TWHEEL_CLOCK_BOOTTIME);
	EXPECT_EQ(wheel_info(fd).tick, MSEC);
	EXPECT_EQ(wheel_info(fd).limit, 3);
	EXPECT_EQ(wheel_info(fd).event_size, 16);
	call(__NR_close, fd, 0, 0);
}

static void test_single(void)
{
	struct twheel_op op = op_arm(TWHEEL_ABS, 0, 0xfedcba9876543210);
	struct twheel_event ev = { 0 };
	int fd = wheel_open();
	__u64 deadline;

	EXPECT_EQ(call(__NR_read, fd, (long)&ev, sizeof(ev)), -EAGAIN);
	deadline = now() + 20 * MSEC;
	op.deadline = deadline;
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_ARM, 32), 0);
	EXPECT_TRUE(op.id);
	EXPECT_TRUE(readable(fd, PATIENCE_MS));
	EXPECT_EQ(call(__NR_read, fd, (long)&ev, sizeof(ev) - 1), -EINVAL);
	EXPECT_EQ(call(__NR_read, fd, (long)&ev, sizeof(ev)), sizeof(ev));
	EXPECT_EQ(ev.id, op.id);
	EXPECT_EQ(ev.user_data, 0xfedcba9876543210);
	EXPECT_EQ(ev.deadline, deadline);
	EXPECT_TRUE((__u64)now() >= deadline);

	op.flags = 0;
	op.deadline = HOUR;
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_ARM, 64), 0);
	op.deadline = 2 * HOUR;
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_MODIFY, 32), 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_PENDING);
	op.deadline = 0;
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_QUERY, 64), 0);
	EXPECT_TRUE(op.deadline > (__u64)HOUR);
	EXPECT_EQ(op.user_data, 0xfedcba9876543210);
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_CANCEL, 64), -EINVAL);
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_CANCEL, 16), 0);
	EXPECT_EQ(do_op(fd, &op, TWHEEL_OP_CANCEL, 16), -ENOENT);
	call(__NR_close, fd, 0, 0);
}

static struct twheel_op ops[100], out[100];
static struct twheel_event events[100];

static void test_batch(void)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (unsigned long)ops,
		.nr = 100,
		.op_size = sizeof(ops[0]),
	};
	struct twheel_drain drain = {
		.size = sizeof(drain),
		.ops = (unsigned long)out,
		.nr = 100,
		.op_size = sizeof(out[0]),
	};
	struct twheel_stats stats = { .size = sizeof(stats) };
	int fd = wheel_open();
	long n;
	int i;

	for (i = 0; i < 100; i++) {
		ops[i] = op_arm(TWHEEL_ABS, i & 1 ? 1 : HOUR * 1000, i);
		ops[i].result = -1;
	}
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), 100);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(ops[i].result, 0);
	n = call(__NR_read, fd, (long)events, sizeof(events));
	EXPECT_EQ(n, 50 * sizeof(events[0]));
	for (i = 0; i < 50; i++)
		EXPECT_EQ(events[i].user_data, 2 * i + 1);
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_DRAIN, &drain), 50);
	for (i = 0; i < 50; i++) {
		EXPECT_EQ(out[i].deadline, HOUR * 1000);
		EXPECT_EQ(out[i].opcode, TWHEEL_OP_ARM);
	}
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_STATS, &stats), 0);
	EXPECT_EQ(stats.armed, 100);
	EXPECT_EQ(stats.delivered, 50);
	EXPECT_EQ(stats.drained, 50);
	call(__NR_close, fd, 0, 0);
}

/* Addresses have 64 bits here too, and the upper half is looked at */
static void test_addresses(void)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (unsigned long)ops | 1ULL << 32,
		.nr = 1,
		.op_size = sizeof(ops[0]),
	};
	int fd = wheel_open();

	ops[0] = op_arm(0, HOUR, 0);
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), -EFAULT);
	submit.ops = (unsigned long)ops | 0xffffffff00000000;
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), -EFAULT);
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, NULL), -EFAULT);
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, (void *)-8), -EFAULT);
	EXPECT_EQ(do_ioctl(fd, _IO(TWHEEL_IOC_TYPE, 7), ops), -ENOTTY);
	EXPECT_EQ(wheel_info(fd).pending, 0);
	submit.ops = (unsigned long)ops;
	EXPECT_EQ(do_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), 1);
	call(__NR_close, fd, 0, 0);
}

ENTRY void _start(void)
{
	text("TAP version 13\n");
	run(test_layout, "numbers, sizes and offsets are the published ones");
	run(test_setup, "SETUP, INFO and EVENTFD");
	run(test_single, "one timer, and read");
	run(test_batch, "SUBMIT, read, DRAIN and STATS");
	run(test_addresses, "addresses");
	text("1..");
	decimal(tests);
	text("\n");
	for (;;)
		call(__NR_exit, !!failed, 0, 0);
}
