/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs whose wheels want more of a processor than their user may have, so that
 * they wait for their turns.
 */
#ifndef TURNS_H
#define TURNS_H

#include "device.h"

#define TIMERS 50	/* of a wheel, each in a tick of its own */

static inline int open_wheel(__u64 due)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), k;
	struct twheel_op ops[TIMERS];

	for (k = 0; k < TIMERS; k++)
		ops[k] = op_arm(TWHEEL_ABS, due + k * USEC, k);
	submit_all(fd, ops, TIMERS);
	return fd;
}

/* What is due then is armed by now; or it takes a longer @lead, the next time. */
static inline void spin_until(__u64 due, __u64 *lead)
{
	if (now(CLOCK_MONOTONIC) > due && *lead < SEC)
		*lead *= 2;
	while (now(CLOCK_MONOTONIC) < due)
		;
}

/*
 * Have them wait, and see that some had to. Where a busy machine is too late to arm all before
 * they are due, it has four times as long the next time.
 */
static inline void expect_deferred(void (*play_all)(unsigned int slower))
{
	__u64 before = module_counter("deferred"), deferred = 0;
	unsigned int i;

	for (i = 0; i < 3 && !deferred; i++) {
		play_all(1 << (2 * i));
		deferred = module_counter("deferred") - before;
	}
	EXPECT_TRUE(deferred, "none was deferred");
	tap_diag("%llu times deferred", deferred);
}

#endif
