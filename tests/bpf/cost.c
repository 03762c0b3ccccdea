// SPDX-License-Identifier: GPL-2.0
/*
 * What shared timers cost without the module, in instructions of the kernel.
 *
 * time: counted
 */
#include "bpf.h"

/* One timer's scan and expiry; one doorbell, the system call and its callback included */
#define EXPIRY_MOST 322
#define DOORBELL_MOST 6000

#define INTERRUPT 2000	/* TW_BPF_INTERRUPT, which is no instructions */

static void test_expiry(void)
{
	unsigned int nr = 16384, each = 256, i, timers[256];
	struct twheel_bpf_stats before, stats;
	struct wheel wheel;
	uint64_t start, took;

	wheel_load(&wheel, nr, TICK, -1, 0);
	sleep_ns(200 * MSEC);
	before = stats_of(&wheel);
	start = now(CLOCK_MONOTONIC) + 200 * MSEC;
	for (i = 0; i < nr; i++)
		twheel_shared_arm(&wheel.area, i, start + i / each * TICK);
	while (wheel.area.shared->head != nr && wakes(&wheel, 1000))
		while (twheel_shared_take(&wheel.area, timers, 256))
			;
	stats = stats_of(&wheel);
	EXPECT_EQ(stats.expired - before.expired, nr);
	took = stats.took - before.took - (stats.runs - before.runs) * INTERRUPT;
	tap_diag("%llu instructions to find a timer and expire it, %u in a tick; %llu callbacks",
		 (unsigned long long)took / nr, each,
		 (unsigned long long)(stats.runs - before.runs));
	EXPECT_TRUE(took / nr <= EXPIRY_MOST);
	wheel_end(&wheel);
}

static void test_doorbell(void)
{
	const unsigned int times = 1000;
	struct twheel_bpf_stats before;
	struct wheel wheel;
	uint64_t start, took;
	unsigned int i;

	wheel_load(&wheel, 1024, TICK, -1, 0);
	sleep_ns(200 * MSEC);
	before = stats_of(&wheel);
	start = now(CLOCK_MONOTONIC);
	for (i = 0; i < times; i++)
		ring(&wheel);
	took = now(CLOCK_MONOTONIC) - start;
	tap_diag("%llu instructions to ring the doorbell; %llu callbacks of %u",
		 (unsigned long long)took / times,
		 (unsigned long long)(stats_of(&wheel).runs - before.runs), times);
	EXPECT_TRUE(took / times <= DOORBELL_MOST);
	wheel_end(&wheel);
}

int main(void)
{
	tap_start(100);
	RUN(test_expiry, "a timer's expiry costs what it did");
	RUN(test_doorbell, "a doorbell costs what it did");
	return tap_end();
}
