/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: wheels in use, and timers in them. All wheels of a test are of one
 * user. What a test does not close is closed at its end, and the user is forgotten.
 */
#ifndef TW_KUNIT_FIXTURE_H
#define TW_KUNIT_FIXTURE_H

#include <kunit/test.h>

#include "context.h"
#include "turns.h"

/* A window in which a processor's time is shared out, and a user's share of it, in ns */
#define FIXTURE_WINDOW BIT(18)
#define FIXTURE_SHARE (FIXTURE_WINDOW / 8)

int fixture_init(struct kunit *test);
void fixture_exit(struct kunit *test);

struct twheel *fixture_wheel(struct kunit *test, u64 tick);
struct twheel *fixture_shared_wheel(struct kunit *test, u64 tick, u32 nr);
void fixture_close(struct kunit *test, struct twheel *tw);

u64 fixture_arm(struct kunit *test, struct twheel *tw, s64 deadline);
void fixture_sleep_until(s64 ns);

ktime_t fixture_far(void);
struct tw_share *fixture_share(struct twheel *tw);
void fixture_owe(struct tw_share *share, ktime_t now, u64 shares);

#endif /* TW_KUNIT_FIXTURE_H */
