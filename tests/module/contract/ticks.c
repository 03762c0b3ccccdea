// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel has the tick that was asked for, or the shortest that the machine's timers can keep:
 * a jiffy, where they have no high resolution. (tests/library/backends/run boots a machine
 * with highres=off for that.)
 *
 * also in: both
 */
#include "device.h"

/* What the kernel's timers can keep, in ns */
static __u64 resolution(void)
{
	struct timespec ts;

	if (clock_getres(CLOCK_MONOTONIC, &ts))
		tap_bail("clock_getres: %s", strerror(errno));
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static void test_ticks(void)
{
	__u64 least = resolution(), asked[] = {
		TWHEEL_TICK_MIN_NS, 1001, 100 * USEC, MSEC, least - 1, least, least + 1,
		20 * MSEC, TWHEEL_TICK_MAX_NS,
	};
	unsigned int i;

	if (getenv("JIFFIES"))
		EXPECT_TRUE(least >= MSEC, "%llu", least);
	for (i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		struct twheel_info info;
		__u32 clock = i % 2 ? TWHEEL_CLOCK_BOOTTIME : TWHEEL_CLOCK_MONOTONIC;
		int fd;

		if (asked[i] < TWHEEL_TICK_MIN_NS)
			continue;
		fd = wheel_open(O_NONBLOCK);
		EXPECT_EQ(setup_with(fd, .clock = clock, .tick = asked[i]), 0);
		info = wheel_info(fd);
		EXPECT_EQ(info.tick, asked[i] > least ? asked[i] : least, "%llu", asked[i]);
		EXPECT_EQ(info.tick_min, least > TWHEEL_TICK_MIN_NS ? least : TWHEEL_TICK_MIN_NS);
		close(fd);
	}
}

static void test_kept(void)
{
	int fd = wheel_open(0);
	struct twheel_event event;
	__u64 tick, deadline;
	int kept = 0;
	bool early;

	EXPECT_EQ(setup_with(fd, .clock = TWHEEL_CLOCK_MONOTONIC, .tick = TWHEEL_TICK_MIN_NS), 0);
	tick = wheel_info(fd).tick;
	while (kept < 5) {
		deadline = now(CLOCK_MONOTONIC) + MSEC + kept;
		arm(fd, TWHEEL_ABS, deadline, 0);
		/* On a slow machine it is past by now, and then it is due without waiting. */
		early = now(CLOCK_MONOTONIC) < deadline;
		EXPECT_EQ(read(fd, &event, sizeof(event)), sizeof(event));
		if (!early)
			continue;
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= (deadline + tick - 1) / tick * tick);
		kept++;
	}
	close(fd);
}

int main(void)
{
	tap_start(60);
	RUN(test_ticks, "a tick is what was asked for, or what the machine can keep");
	RUN(test_kept, "timers expire at ticks of that length, never before");
	return tap_end();
}
