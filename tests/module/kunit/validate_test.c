// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the validators: what a program may ask for, and which error it
 * gets for what it may not. The rules stand in uapi/linux/twheel.h.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>

#include "validate.h"

#define TOO_LATE ((u64)KTIME_MAX + 1)

static const struct more_param {
	const char *name;
	int want;
	u64 interval;
	u64 slack;
	u64 jitter;
} more_params[] = {
	{ "nothing", 0 },
	{ "shortest interval", 0, .interval = 1 },
	{ "longest interval", 0, .interval = KTIME_MAX },
	{ "interval too long", -EINVAL, .interval = TOO_LATE },
	{ "interval -1", -EINVAL, .interval = U64_MAX },
	{ "longest slack", 0, .slack = KTIME_MAX },
	{ "slack too long", -EINVAL, .slack = TOO_LATE },
	{ "longest jitter", 0, .jitter = KTIME_MAX },
	{ "jitter too long", -EINVAL, .jitter = TOO_LATE },
	{ "jitter as long as the interval", 0, .interval = 9, .jitter = 9 },
	{ "jitter longer than the interval", -EINVAL, .interval = 9, .jitter = 10 },
	{ "slack longer than the interval", 0, .interval = 9, .slack = 10 },
	{ "all longest", 0, KTIME_MAX, KTIME_MAX, KTIME_MAX },
	{ "interval and jitter too long", -EINVAL, .interval = TOO_LATE,
	  .jitter = TOO_LATE },
};

static void describe_more(const struct more_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(more, more_params, describe_more);

static void more(struct kunit *test)
{
	const struct more_param *param = test->param_value;

	KUNIT_EXPECT_EQ(test, tw_check_more(param->interval, param->slack,
					    param->jitter), param->want);
}

static void time(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, tw_time_ok(0));
	KUNIT_EXPECT_TRUE(test, tw_time_ok(KTIME_MAX));
	KUNIT_EXPECT_FALSE(test, tw_time_ok(TOO_LATE));
	KUNIT_EXPECT_FALSE(test, tw_time_ok(U64_MAX));
}

static const struct setup_param {
	const char *name;
	int want;
	struct twheel_setup setup;
} setup_params[] = {
#define SETUP(name, want, ...) { name, want, { __VA_ARGS__ } }
#define SETUP_OF(name, want, ...) \
	SETUP(name, want, .clock = TWHEEL_CLOCK_MONOTONIC, __VA_ARGS__)
	SETUP("realtime", 0, .clock = TWHEEL_CLOCK_REALTIME),
	SETUP("monotonic", 0, .clock = TWHEEL_CLOCK_MONOTONIC),
	SETUP("boottime", 0, .clock = TWHEEL_CLOCK_BOOTTIME),
	SETUP("tai", 0, .clock = TWHEEL_CLOCK_TAI),
	SETUP("no clock", -EINVAL, .clock = 0),
	SETUP("clock of clock_gettime(2)", -EINVAL, .clock = CLOCK_MONOTONIC),
	SETUP("processor time", -EINVAL, .clock = 0x102),
	SETUP("clock after the last", -EINVAL, .clock = TWHEEL_CLOCK_TAI + 1),
	SETUP("clock with a bit more", -EINVAL, .clock = TWHEEL_CLOCK_TAI | 0x200),
	SETUP("largest clock", -EINVAL, .clock = U32_MAX),
	SETUP_OF("short events", 0, .event_size = TWHEEL_EVENT_SIZE_ID),
	SETUP_OF("whole events", 0, .event_size = TWHEEL_EVENT_SIZE_FULL),
	SETUP_OF("events of 1 byte", -EINVAL, .event_size = 1),
	SETUP_OF("events as counts are", -EINVAL, .event_size = 8),
	SETUP_OF("events of 24 bytes", -EINVAL, .event_size = 24),
	SETUP_OF("events of a later kernel", -EINVAL, .event_size = 64),
	SETUP_OF("largest events", -EINVAL, .event_size = U32_MAX),
	SETUP_OF("short events in count mode", -EINVAL, .flags = TWHEEL_SETUP_COUNT,
		 .event_size = TWHEEL_EVENT_SIZE_ID),
	SETUP_OF("events as counts are, in count mode", -EINVAL,
		 .flags = TWHEEL_SETUP_COUNT, .event_size = 8),
	SETUP_OF("short events and shared timers", 0, .shared = 1,
		 .flags = TWHEEL_SETUP_SHARED, .event_size = TWHEEL_EVENT_SIZE_ID),
	SETUP_OF("reserved field", -EINVAL, .__reserved = 1),
	SETUP_OF("reserved field, last bit", -EINVAL, .__reserved = 1U << 31),
	SETUP_OF("count mode", 0, .flags = TWHEEL_SETUP_COUNT),
	SETUP_OF("one shared timer", 0, .flags = TWHEEL_SETUP_SHARED, .shared = 1),
	SETUP_OF("most shared timers", 0, .flags = TWHEEL_SETUP_SHARED,
		 .shared = TWHEEL_SHARED_MAX),
	SETUP_OF("too many shared timers", -EINVAL, .flags = TWHEEL_SETUP_SHARED,
		 .shared = TWHEEL_SHARED_MAX + 1),
	SETUP_OF("far too many shared timers", -EINVAL,
		 .flags = TWHEEL_SETUP_SHARED, .shared = U32_MAX),
	SETUP_OF("no shared timer", -EINVAL, .flags = TWHEEL_SETUP_SHARED),
	SETUP_OF("shared timers without the flag", -EINVAL, .shared = 1),
	SETUP_OF("shared timers without the flag, last bit", -EINVAL,
		 .shared = 1U << 31),
	SETUP_OF("shared timers in count mode", -EINVAL, .shared = 1,
		 .flags = TWHEEL_SETUP_SHARED | TWHEEL_SETUP_COUNT),
	SETUP_OF("shared timers in count mode without the flag", -EINVAL,
		 .shared = 1, .flags = TWHEEL_SETUP_COUNT),
	SETUP_OF("both flags, no shared timer", -EINVAL,
		 .flags = TWHEEL_SETUP_SHARED | TWHEEL_SETUP_COUNT),
	SETUP("shared timers, unknown clock", -EINVAL, .clock = 2,
	      .flags = TWHEEL_SETUP_SHARED, .shared = 1),
	SETUP_OF("unknown flag", -EINVAL, .flags = 1U << 2),
	SETUP_OF("unknown flag beside shared timers", -EINVAL, .shared = 1,
		 .flags = TWHEEL_SETUP_SHARED | 1U << 2),
	SETUP_OF("last flag", -EINVAL, .flags = 1U << 31),
	SETUP_OF("unknown flag beside a known", -EINVAL,
		 .flags = TWHEEL_SETUP_COUNT | 1U << 15),
	SETUP_OF("shortest tick", 0, .tick = TWHEEL_TICK_MIN_NS),
	SETUP_OF("tick too short", -EOPNOTSUPP, .tick = TWHEEL_TICK_MIN_NS - 1),
	SETUP_OF("tick of 1 ns", -EOPNOTSUPP, .tick = 1),
	SETUP_OF("longest tick", 0, .tick = TWHEEL_TICK_MAX_NS),
	SETUP_OF("tick too long", -EOPNOTSUPP, .tick = TWHEEL_TICK_MAX_NS + 1),
	SETUP_OF("tick that fits 32 bits but for one", -EOPNOTSUPP,
		 .tick = TWHEEL_TICK_MIN_NS + (1ULL << 32)),
	SETUP_OF("tick of the end of time", -EOPNOTSUPP, .tick = KTIME_MAX),
	SETUP_OF("tick that is no time", -EINVAL, .tick = TOO_LATE),
	SETUP_OF("malformed before unknown", -EINVAL, .tick = 1, .flags = 4),
	SETUP_OF("any limit", 0, .limit = U64_MAX),
};

static void describe_setup(const struct setup_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(setup, setup_params, describe_setup);

static void setup(struct kunit *test)
{
	const struct setup_param *param = test->param_value;

	KUNIT_EXPECT_EQ(test, tw_check_setup(&param->setup), param->want);
}

static const struct array_param {
	const char *name;
	int want;
	u32 flags;
	u32 nr;
	u32 op_size;
} array_params[] = {
#define OP_SIZE TWHEEL_OP_SIZE_FULL
	{ "none", 0, 0, 0, OP_SIZE },
	{ "none of a wrong size", -EINVAL, 0, 0, OP_SIZE + 1 },
	{ "one", 0, 0, 1, OP_SIZE },
	{ "most", 0, 0, INT_MAX, OP_SIZE },
	{ "too many", -EINVAL, 0, INT_MAX + 1U, OP_SIZE },
	{ "far too many", -EINVAL, 0, U32_MAX, OP_SIZE },
	{ "flag", -EINVAL, 1, 1, OP_SIZE },
	{ "last flag", -EINVAL, 1U << 31, 1, OP_SIZE },
	{ "up to the id", 0, 0, 1, TWHEEL_OP_SIZE_ID },
	{ "up to the user data", 0, 0, 1, TWHEEL_OP_SIZE_ONCE },
	{ "operation without size", -EINVAL, 0, 1, 0 },
	{ "operation too small", -EINVAL, 0, 1, TWHEEL_OP_SIZE_ID - 1 },
	{ "operation too small by its id", -EINVAL, 0, 1, 8 },
	{ "operation with a deadline and no more", -EINVAL, 0, 1, 24 },
	{ "operation with an interval and no more", -EINVAL, 0, 1, 40 },
	{ "operation without what is reserved", -EINVAL, 0, 1, 56 },
	{ "operation of a byte more", -EINVAL, 0, 1, OP_SIZE + 1 },
	{ "operation of a later kernel", -EINVAL, 0, 1, 2 * OP_SIZE },
	{ "operation of a page", -EINVAL, 0, 1, PAGE_SIZE },
	{ "operation of 4 GiB", -EINVAL, 0, 1, U32_MAX },
};

static void describe_array(const struct array_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(array, array_params, describe_array);

static void array(struct kunit *test)
{
	const struct array_param *param = test->param_value;

	KUNIT_EXPECT_EQ(test, tw_check_array(param->flags, param->nr,
					     param->op_size), param->want);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(more, more_gen_params),
	KUNIT_CASE(time),
	KUNIT_CASE_PARAM(setup, setup_gen_params),
	KUNIT_CASE_PARAM(array, array_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_validate",
	.test_cases = cases,
};

kunit_test_suite(suite);
