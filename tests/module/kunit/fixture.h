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

/* What memory is filled with that need not be zeroed, so that none is taken for it. */
#define FIXTURE_DIRT 0xa5

void fixture_room(struct kunit *test, struct tw_table *table);
struct tw_chunk *fixture_chunk(struct kunit *test, struct tw_table *table);
unsigned int fixture_free_chunks(struct kunit *test, struct tw_chunk *spare);
struct tw_wheel *fixture_wheel(struct kunit *test, s64 now, unsigned int nodes);
struct tw_node *fixture_alloc(struct kunit *test, struct tw_wheel *wheel);
u32 fixture_index(const struct tw_wheel *wheel, const struct tw_node *node);
void fixture_free(struct tw_wheel *wheel, struct tw_node *node);

s64 fixture_ns(const struct tw_wheel *wheel, s64 tick);
s64 fixture_deadline(struct tw_wheel *wheel, s64 tick);
s64 fixture_tick(const struct tw_wheel *wheel, const struct tw_node *node);

void fixture_add(struct tw_wheel *wheel, struct tw_node *node, s64 deadline, u16 flags);
struct tw_node *fixture_arm(struct kunit *test, struct tw_wheel *wheel, s64 tick);
struct tw_node *fixture_arm_at(struct kunit *test, struct tw_wheel *wheel,
			       s64 deadline);
struct tw_node *fixture_arm_slack(struct kunit *test, struct tw_wheel *wheel,
				  s64 tick, unsigned int slack_shift);
struct tw_node *fixture_arm_ready(struct kunit *test, struct tw_wheel *wheel,
				  s64 deadline);
void fixture_mod_at(struct tw_wheel *wheel, struct tw_node *node, s64 deadline,
		    unsigned int slack_shift);
void fixture_mod(struct tw_wheel *wheel, struct tw_node *node, s64 tick);
void fixture_del(struct tw_wheel *wheel, struct tw_node *node);
struct tw_node *fixture_first(const struct tw_wheel *wheel);
struct tw_node *fixture_first_ready(const struct tw_wheel *wheel);
struct tw_node *fixture_read(struct tw_wheel *wheel);
void fixture_set_back(struct kunit *test, struct tw_wheel *wheel, s64 ticks);
void fixture_set_back_far(struct tw_wheel *wheel);
u64 fixture_run(struct kunit *test, struct tw_wheel *wheel, s64 now);

void fixture_check_ready(struct kunit *test, const struct tw_wheel *wheel);
void fixture_check_wheel(struct kunit *test, const struct tw_wheel *wheel);

#endif /* TW_KUNIT_FIXTURE_H */
