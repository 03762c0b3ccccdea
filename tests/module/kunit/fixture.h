/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: wheels in use, all of one user. They are closed at the end of a test.
 *
 * This is no file of its own, so that the wheels of a suite that has a copy of life.c are the
 * copy's.
 */
#ifndef TW_KUNIT_FIXTURE_H
#define TW_KUNIT_FIXTURE_H

#include <kunit/test.h>
#include <uapi/linux/twheel.h>

#include "context.h"

/* Wheels that are open */
static struct twheel *fixture_wheels[4];

/* Open a wheel with a tick of @tick ns, and @shared shared timers, or none. */
static inline struct twheel *fixture_open(struct kunit *test, u64 tick, u32 shared)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = shared ? TWHEEL_SETUP_SHARED : 0,
		.tick = tick,
		.shared = shared,
	};
	struct twheel *tw = tw_create();
	unsigned int i = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	while (i < ARRAY_SIZE(fixture_wheels) - 1 && fixture_wheels[i])
		i++;
	KUNIT_ASSERT_NULL(test, fixture_wheels[i]);
	fixture_wheels[i] = tw;
	KUNIT_ASSERT_EQ(test, tw_setup(tw, &setup), 0);
	return tw;
}

/* Close one before the test ends. */
static inline void fixture_close(struct twheel *tw)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fixture_wheels); i++)
		if (fixture_wheels[i] == tw)
			fixture_wheels[i] = NULL;
	tw_destroy(tw);
}

/* After a test */
static inline void fixture_exit(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fixture_wheels); i++)
		if (fixture_wheels[i])
			fixture_close(fixture_wheels[i]);
}

#endif /* TW_KUNIT_FIXTURE_H */
