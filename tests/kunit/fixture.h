/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: tables with memory, wheels on them, time that passes.
 */
#ifndef TW_KUNIT_FIXTURE_H
#define TW_KUNIT_FIXTURE_H

#include <kunit/test.h>

#include "table.h"
#include "wheel.h"

/* Length of a tick in ns: short, and awkward to divide by. */
#define FIXTURE_TICK 1009

/* The last tick that wheels are run to, a multiple of all slack that is used. */
#define FIXTURE_LAST ((KTIME_MAX / FIXTURE_TICK - 64) & ~63LL)

/* What memory is filled with, so that none is taken for zeroed. */
#define FIXTURE_DIRT 0xa5

struct tw_chunk *fixture_chunk(struct kunit *test, struct tw_table *table,
			       unsigned int cap);
struct tw_wheel *fixture_wheel(struct kunit *test, s64 now, unsigned int nodes);
struct tw_node *fixture_alloc(struct kunit *test, struct tw_wheel *wheel);
void fixture_free(struct tw_wheel *wheel, struct tw_node *node);

s64 fixture_ns(const struct tw_wheel *wheel, s64 tick);
s64 fixture_deadline(struct tw_wheel *wheel, s64 tick);
s64 fixture_tick(const struct tw_wheel *wheel, const struct tw_node *node);
s64 fixture_stamp(const struct tw_wheel *wheel, s64 tick);

struct tw_node *fixture_arm(struct kunit *test, struct tw_wheel *wheel, s64 tick);
struct tw_node *fixture_arm_at(struct kunit *test, struct tw_wheel *wheel,
			       s64 deadline);
struct tw_node *fixture_arm_slack(struct kunit *test, struct tw_wheel *wheel,
				  s64 tick, unsigned int slack_shift);
struct tw_node *fixture_arm_ready(struct kunit *test, struct tw_wheel *wheel,
				  s64 deadline);
void fixture_mod(struct tw_wheel *wheel, struct tw_node *node, s64 tick);
void fixture_set_back(struct kunit *test, struct tw_wheel *wheel, s64 ticks);
void fixture_set_back_far(struct tw_wheel *wheel);
u64 fixture_run(struct kunit *test, struct tw_wheel *wheel, s64 now);

void fixture_check_list(struct kunit *test, const struct tw_slot *slot);
void fixture_check_wheel(struct kunit *test, const struct tw_wheel *wheel);

#endif /* TW_KUNIT_FIXTURE_H */
