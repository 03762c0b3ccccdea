/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: tables with memory, wheels on them, time that passes.
 */
#ifndef TW_KUNIT_FIXTURE_H
#define TW_KUNIT_FIXTURE_H

#include <kunit/test.h>

#include "table.h"
#include "wheel.h"

struct tw_node *fixture_chunk(struct kunit *test, struct tw_table *table,
			      unsigned int cap);
struct tw_wheel *fixture_wheel(struct kunit *test, s64 now, unsigned int nodes);
u32 fixture_arm(struct kunit *test, struct tw_wheel *wheel, s64 expires);
u32 fixture_arm_ready(struct kunit *test, struct tw_wheel *wheel, s64 stamp);
u64 fixture_run(struct kunit *test, struct tw_wheel *wheel, s64 now);
void fixture_check_list(struct kunit *test, const struct tw_wheel *wheel,
			const struct tw_list *list);
void fixture_check_wheel(struct kunit *test, const struct tw_wheel *wheel);

#endif /* TW_KUNIT_FIXTURE_H */
