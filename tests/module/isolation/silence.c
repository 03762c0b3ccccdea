// SPDX-License-Identifier: GPL-2.0
/*
 * No timers, no interrupts: timers that are cancelled, or put off again and again, wake the
 * kernel a few times only, not in each slot that they came through.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 */
#include "shared.h"
#include "users.h"

#define TIMERS 1000

/* ---- shared timers that are tracked, and cancelled ---- */

#define CANCELLED_MOST 3

static __u64 wakeups(int fd)
{
	return wheel_stats(fd).wakeups;
}

static void cancel_shared(__u64 tick, __u64 spread)
{
	struct client c;
	__u64 before;
	__u32 i;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, tick, TIMERS);
	for (i = 0; i < TIMERS; i++)
		shared_arm(&c, i, now(CLOCK_MONOTONIC) + SEC + i * spread);
	doorbell(&c);
	EXPECT_EQ(wheel_info(c.fd).pending, TIMERS);
	for (i = 0; i < TIMERS; i++)
		shared_cancel(&c, i);
	before = wakeups(c.fd);
	sleep_ns(SEC + TIMERS * spread + SEC);
	tap_diag("%s: ticks of %llu us: %llu wake-ups", tap_name, tick / USEC,
		 wakeups(c.fd) - before);
	EXPECT_TRUE(wakeups(c.fd) - before <= CANCELLED_MOST, "%llu", wakeups(c.fd) - before);
	EXPECT_EQ(wheel_info(c.fd).pending, 0);
	client_close(&c);
}

static void test_cancelled(void)
{
	cancel_shared(USEC, 10 * MSEC);
	cancel_shared(MSEC, 10 * MSEC);
	cancel_shared(4 * MSEC, 10 * MSEC);
}

/* ---- one timer that is put off again and again ---- */

#define PUSHES 3000
#define AHEAD (10 * MSEC)
#define PUSHED_MOST 400

static void push(__u64 tick)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, tick), i;
	struct twheel_op op = op_arm(0, AHEAD, 0);
	__u64 nr;

	EXPECT_EQ(op_single(fd, &op), 0);
	for (i = 0; i < PUSHES; i++) {
		sleep_ns(MSEC);
		op.opcode = TWHEEL_OP_MODIFY;
		op.deadline = AHEAD;
		EXPECT_EQ(op_single(fd, &op), 0);
	}
	nr = wakeups(fd);
	tap_diag("%s: ticks of %llu us: %llu wake-ups", tap_name, tick / USEC, nr);
	EXPECT_TRUE(nr <= PUSHED_MOST, "%llu", nr);
	close(fd);
}

static void test_pushed(void)
{
	push(USEC);
	push(100 * USEC);
	push(MSEC);
}

static void test_pushed_shared(void)
{
	struct client c;
	__u64 nr;
	int i;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, USEC, 1);
	for (i = 0; i < PUSHES; i++) {
		shared_push(&c, 0);
		shared_arm(&c, 0, now(CLOCK_MONOTONIC) + AHEAD);
		sleep_ns(MSEC);
	}
	nr = wakeups(c.fd);
	tap_diag("%s: %llu wake-ups", tap_name, nr);
	EXPECT_TRUE(nr <= PUSHED_MOST, "%llu", nr);
	client_close(&c);
}

int main(void)
{
	tap_start(200);
	RUN(test_cancelled, "a thousand shared timers that are cancelled");
	RUN(test_pushed, "a timer that is put off in each millisecond");
	RUN(test_pushed_shared, "a shared timer that is put off in each millisecond");
	return tap_end();
}
