// SPDX-License-Identifier: GPL-2.0
/*
 * Never early: 100,000 expiries, on every clock and with ticks from the shortest to
 * the longest. How late they are is no matter here.
 *
 * Environment: TIMES=N for N times as many.
 *
 * also in: both small-a
 */
#include "device.h"

#define CLOCKS 4
#define TICKS 5
#define WHEELS (CLOCKS * TICKS)
#define EACH (5000 * (__u32)number_of("TIMES", 1))
#define BATCH 500
#define SPREAD (700 * MSEC)

/* In user data: a deadline as given, not the least that it can be */
#define EXACT 0x8000000000000000ULL

static const __u32 clocks[CLOCKS] = {
	TWHEEL_CLOCK_MONOTONIC, TWHEEL_CLOCK_BOOTTIME, TWHEEL_CLOCK_REALTIME, TWHEEL_CLOCK_TAI,
};

static const __u64 ticks[TICKS] = { USEC, 100 * USEC, MSEC, 0, SEC };

static void arm_some(int fd, __u32 clock, __u64 *seed)
{
	static struct twheel_op ops[BATCH];
	__u64 from = wheel_now(clock);
	__u32 i;

	for (i = 0; i < BATCH; i++) {
		__u64 delay = random_next(seed) % SPREAD;

		if (i & 1)
			ops[i] = op_arm(TWHEEL_ABS, from + delay, (from + delay) | EXACT);
		else
			ops[i] = op_arm(0, delay, from + delay);
	}
	submit_all(fd, ops, BATCH);
}

static void check_event(const struct twheel_event *ev, __u64 after)
{
	__u64 least = ev->user_data & ~EXACT;

	if (ev->user_data & EXACT)
		EXPECT_EQ(ev->deadline, least, "not the deadline that was given");
	else
		EXPECT_TRUE(ev->deadline >= least, "deadline %llu, at least %llu",
			    ev->deadline, least);
	EXPECT_TRUE(after >= ev->deadline, "early by %llu ns", ev->deadline - after);
}

static __u32 read_some(int fd, __u32 clock)
{
	static struct twheel_event ev[BATCH];
	long n = read_events(fd, ev, BATCH), i;
	__u64 after = wheel_now(clock);

	if (!EXPECT_TRUE(n > 0, "read: %ld", n))
		return 0;
	for (i = 0; i < n; i++)
		check_event(&ev[i], after);
	return n;
}

static void test_never_early(void)
{
	struct pollfd p[WHEELS];
	__u32 left = WHEELS * EACH, i, n;
	__u64 seed = 7;

	for (i = 0; i < WHEELS; i++) {
		p[i].fd = wheel_new(clocks[i % CLOCKS], ticks[i / CLOCKS]);
		p[i].events = POLLIN;
	}
	for (n = 0; n < EACH; n += BATCH)
		for (i = 0; i < WHEELS; i++)
			arm_some(p[i].fd, clocks[i % CLOCKS], &seed);
	while (left && EXPECT_TRUE(poll(p, WHEELS, PATIENCE_MS) > 0, "%u left", left))
		for (i = 0; i < WHEELS; i++)
			if (p[i].revents)
				left -= read_some(p[i].fd, clocks[i % CLOCKS]);
	for (i = 0; i < WHEELS; i++) {
		EXPECT_EQ(wheel_info(p[i].fd).pending, 0, "wheel %u", i);
		EXPECT_EQ(wheel_stats(p[i].fd).expired, EACH, "wheel %u", i);
		close(p[i].fd);
	}
}

int main(void)
{
	tap_start(120 * number_of("TIMES", 1));
	RUN(test_never_early, "every clock, from the shortest tick to the longest");
	return tap_end();
}
