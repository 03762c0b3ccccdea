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

static const struct op_param {
	const char *name;
	int want;
	struct twheel_op op;
} timed_params[] = {
#define OP(name, want, ...) { name, want, { __VA_ARGS__ } }
	OP("all zero", 0, .flags = 0),
	OP("absolute", 0, .flags = TWHEEL_ABS),
	OP("unknown flag", -EINVAL, .flags = 1 << 1),
	OP("last flag", -EINVAL, .flags = 1 << 15),
	OP("unknown flag beside a known", -EINVAL, .flags = TWHEEL_ABS | 1 << 7),
	OP("latest deadline", 0, .deadline = KTIME_MAX),
	OP("deadline too late", -EINVAL, .deadline = TOO_LATE),
	OP("deadline -1", -EINVAL, .deadline = U64_MAX),
	OP("shortest interval", 0, .interval = 1),
	OP("longest interval", 0, .interval = KTIME_MAX),
	OP("interval too long", -EINVAL, .interval = TOO_LATE),
	OP("longest slack", 0, .slack = KTIME_MAX),
	OP("slack too long", -EINVAL, .slack = TOO_LATE),
	OP("longest jitter", 0, .jitter = KTIME_MAX),
	OP("jitter too long", -EINVAL, .jitter = TOO_LATE),
	OP("jitter as long as the interval", 0, .interval = 9, .jitter = 9),
	OP("jitter longer than the interval", -EINVAL, .interval = 9, .jitter = 10),
	OP("all times longest", 0, .deadline = KTIME_MAX, .interval = KTIME_MAX,
	   .slack = KTIME_MAX, .jitter = KTIME_MAX),
	OP("any user data", 0, .user_data = U64_MAX),
	OP("any id", 0, .id = U64_MAX),
};

static const struct op_param op_params[] = {
	OP("cancel", 0, .opcode = TWHEEL_OP_CANCEL, .id = U64_MAX),
	OP("cancel, absolute", -EINVAL, .opcode = TWHEEL_OP_CANCEL,
	   .flags = TWHEEL_ABS),
	OP("cancel, unknown flag", -EINVAL, .opcode = TWHEEL_OP_CANCEL,
	   .flags = 1 << 15),
	OP("cancel, deadline", -EINVAL, .opcode = TWHEEL_OP_CANCEL,
	   .deadline = 1),
	OP("cancel, interval", -EINVAL, .opcode = TWHEEL_OP_CANCEL,
	   .interval = 1),
	OP("cancel, slack", -EINVAL, .opcode = TWHEEL_OP_CANCEL, .slack = 1),
	OP("cancel, jitter", -EINVAL, .opcode = TWHEEL_OP_CANCEL, .jitter = 1),
	OP("cancel, user data", -EINVAL, .opcode = TWHEEL_OP_CANCEL,
	   .user_data = 1),

	/* QUERY hands the rest out, so it does not matter on the way in. */
	OP("query", 0, .opcode = TWHEEL_OP_QUERY, .id = U64_MAX),
	OP("query, handed out before", 0, .opcode = TWHEEL_OP_QUERY,
	   .deadline = U64_MAX, .interval = U64_MAX, .slack = U64_MAX,
	   .jitter = U64_MAX, .user_data = U64_MAX),
	OP("query, absolute", -EINVAL, .opcode = TWHEEL_OP_QUERY,
	   .flags = TWHEEL_ABS),
	OP("query, unknown flag", -EINVAL, .opcode = TWHEEL_OP_QUERY,
	   .flags = 1 << 15),

	OP("no opcode", -EINVAL, .opcode = 0),
	OP("opcode after the last", -EINVAL, .opcode = TWHEEL_OP_QUERY + 1),
	OP("largest opcode", -EINVAL, .opcode = U16_MAX),
};

static void describe_op(const struct op_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(timed, timed_params, describe_op);
KUNIT_ARRAY_PARAM(op, op_params, describe_op);

static void check_op(struct kunit *test, u16 opcode)
{
	const struct op_param *param = test->param_value;
	struct twheel_op op = param->op;
	int head;

	/* What is only handed out. */
	op.size = sizeof(op);
	op.result = -1;
	op.state = U32_MAX;
	op.opcode = opcode;
	KUNIT_EXPECT_EQ(test, tw_check_op(&op), param->want);
	/* Piece by piece, as those are checked that are like most. */
	head = tw_check_head(op.size, op.opcode, op.flags);
	KUNIT_EXPECT_EQ(test, head ?: tw_check_rest(&op), param->want);
	/* The rest has no say in what the head is. */
	op = (struct twheel_op){ .size = op.size, .opcode = opcode,
				 .flags = op.flags };
	KUNIT_EXPECT_EQ(test, tw_check_op(&op), head);
}

static void arm(struct kunit *test)
{
	check_op(test, TWHEEL_OP_ARM);
}

static void modify(struct kunit *test)
{
	check_op(test, TWHEEL_OP_MODIFY);
}

static void other_op(struct kunit *test)
{
	const struct op_param *param = test->param_value;

	check_op(test, param->op.opcode);
}

static void every_flag_of_an_op(struct kunit *test)
{
	struct twheel_op op = { .size = sizeof(op) };
	unsigned int flag;

	for (op.opcode = TWHEEL_OP_ARM; op.opcode <= TWHEEL_OP_QUERY; op.opcode++)
		for (flag = 0; flag < 16; flag++) {
			bool known = 1U << flag == TWHEEL_ABS &&
				     op.opcode <= TWHEEL_OP_MODIFY;

			op.flags = 1U << flag;
			KUNIT_EXPECT_EQ(test, tw_check_op(&op),
					known ? 0 : -EINVAL);
			KUNIT_EXPECT_EQ(test, tw_check_head(op.size, op.opcode,
							    op.flags),
					known ? 0 : -EINVAL);
		}
}

static void every_opcode(struct kunit *test)
{
	unsigned int opcode;

	for (opcode = 0; opcode <= U16_MAX; opcode++) {
		bool known = opcode >= TWHEEL_OP_ARM &&
			     opcode <= TWHEEL_OP_QUERY;

		KUNIT_ASSERT_EQ(test, tw_check_head(sizeof(struct twheel_op),
						    opcode, 0),
				known ? 0 : -EINVAL);
	}
}

static const struct plain_param {
	const char *name;
	bool plain;
	struct twheel_op op;
} plain_params[] = {
#define PLAIN(name, plain, ...) { name, plain, { __VA_ARGS__ } }
	PLAIN("all zero", true, .flags = 0),
	PLAIN("deadline and user data", true, .deadline = 1, .user_data = 1),
	PLAIN("all but what counts", true, .size = U32_MAX, .opcode = U16_MAX,
	      .flags = U16_MAX, .result = -1, .state = U32_MAX, .id = U64_MAX,
	      .deadline = U64_MAX, .user_data = U64_MAX),
	PLAIN("interval", false, .interval = 1),
	PLAIN("interval, last bit", false, .interval = 1ULL << 63),
	PLAIN("slack", false, .slack = 1),
	PLAIN("slack, middle bit", false, .slack = 1ULL << 32),
	PLAIN("jitter", false, .jitter = 1),
	PLAIN("jitter, last bit", false, .jitter = 1ULL << 63),
	PLAIN("all that counts", false, .interval = 1, .slack = 1, .jitter = 1),
};

static void describe_plain(const struct plain_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(plain, plain_params, describe_plain);

static void plain_is_what_has_but_a_deadline(struct kunit *test)
{
	const struct plain_param *param = test->param_value;

	KUNIT_EXPECT_EQ(test, tw_op_plain(&param->op), param->plain);
}

static const struct size_param {
	u32 size;
	int want;
} size_params[] = {
	{ 0, -EINVAL }, { 1, -EINVAL },
	{ sizeof(struct twheel_op) - 1, -EINVAL },
	{ sizeof(struct twheel_op), 0 },
	{ sizeof(struct twheel_op) + 1, -EINVAL },
	{ U32_MAX - 1, -EINVAL },
	{ TW_SIZE_TOO_BIG, -E2BIG },
};

static void describe_size(const struct size_param *param, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes", param->size);
}

KUNIT_ARRAY_PARAM(size, size_params, describe_size);

static void size_of_an_op(struct kunit *test)
{
	const struct size_param *param = test->param_value;
	struct twheel_op op = { .size = param->size };

	for (op.opcode = TWHEEL_OP_ARM; op.opcode <= TWHEEL_OP_QUERY; op.opcode++)
		KUNIT_EXPECT_EQ(test, tw_check_op(&op), param->want);
	/* It says more than what kind of operation it is. */
	KUNIT_EXPECT_EQ(test, tw_check_head(param->size, U16_MAX, U16_MAX),
			param->want ?: -EINVAL);
}

static const struct setup_param {
	const char *name;
	int want;
	struct twheel_setup setup;
} setup_params[] = {
#define SETUP(name, want, ...) { name, want, { __VA_ARGS__ } }
	SETUP("realtime", 0, .clock = TWHEEL_CLOCK_REALTIME),
	SETUP("monotonic", 0, .clock = TWHEEL_CLOCK_MONOTONIC),
	SETUP("boottime", 0, .clock = TWHEEL_CLOCK_BOOTTIME),
	SETUP("tai", 0, .clock = TWHEEL_CLOCK_TAI),
	SETUP("processor time", -EOPNOTSUPP, .clock = 2),
	SETUP("clock after the last", -EOPNOTSUPP, .clock = 12),
	SETUP("largest clock", -EOPNOTSUPP, .clock = U32_MAX),
	SETUP("count mode", 0, .flags = TWHEEL_SETUP_COUNT),
	SETUP("one shared timer", 0, .flags = TWHEEL_SETUP_SHARED, .shared = 1),
	SETUP("most shared timers", 0, .flags = TWHEEL_SETUP_SHARED,
	      .shared = TWHEEL_SHARED_MAX),
	SETUP("too many shared timers", -EINVAL, .flags = TWHEEL_SETUP_SHARED,
	      .shared = TWHEEL_SHARED_MAX + 1),
	SETUP("far too many shared timers", -EINVAL,
	      .flags = TWHEEL_SETUP_SHARED, .shared = U32_MAX),
	SETUP("no shared timer", -EINVAL, .flags = TWHEEL_SETUP_SHARED),
	SETUP("shared timers without the flag", -EINVAL, .shared = 1),
	SETUP("shared timers without the flag, last bit", -EINVAL,
	      .shared = 1U << 31),
	SETUP("shared timers in count mode", -EINVAL, .shared = 1,
	      .flags = TWHEEL_SETUP_SHARED | TWHEEL_SETUP_COUNT),
	SETUP("shared timers in count mode without the flag", -EINVAL,
	      .shared = 1, .flags = TWHEEL_SETUP_COUNT),
	SETUP("both flags, no shared timer", -EINVAL,
	      .flags = TWHEEL_SETUP_SHARED | TWHEEL_SETUP_COUNT),
	SETUP("shared timers, unknown clock", -EOPNOTSUPP, .clock = 2,
	      .flags = TWHEEL_SETUP_SHARED, .shared = 1),
	SETUP("unknown flag", -EINVAL, .flags = 1U << 2),
	SETUP("unknown flag beside shared timers", -EINVAL, .shared = 1,
	      .flags = TWHEEL_SETUP_SHARED | 1U << 2),
	SETUP("last flag", -EINVAL, .flags = 1U << 31),
	SETUP("unknown flag beside a known", -EINVAL,
	      .flags = TWHEEL_SETUP_COUNT | 1U << 15),
	SETUP("shortest tick", 0, .tick = TWHEEL_TICK_MIN_NS),
	SETUP("tick too short", -EOPNOTSUPP, .tick = TWHEEL_TICK_MIN_NS - 1),
	SETUP("tick of 1 ns", -EOPNOTSUPP, .tick = 1),
	SETUP("longest tick", 0, .tick = TWHEEL_TICK_MAX_NS),
	SETUP("tick too long", -EOPNOTSUPP, .tick = TWHEEL_TICK_MAX_NS + 1),
	SETUP("tick that fits 32 bits but for one", -EOPNOTSUPP,
	      .tick = TWHEEL_TICK_MIN_NS + (1ULL << 32)),
	SETUP("tick of the end of time", -EOPNOTSUPP, .tick = KTIME_MAX),
	SETUP("tick that is no time", -EINVAL, .tick = TOO_LATE),
	SETUP("malformed before unknown", -EINVAL, .clock = 5, .flags = 4),
	SETUP("any limit", 0, .limit = U64_MAX),
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
#define OP_SIZE sizeof(struct twheel_op)
	{ "none", 0, 0, 0, OP_SIZE },
	{ "one", 0, 0, 1, OP_SIZE },
	{ "most", 0, 0, INT_MAX, OP_SIZE },
	{ "too many", -EINVAL, 0, INT_MAX + 1U, OP_SIZE },
	{ "far too many", -EINVAL, 0, U32_MAX, OP_SIZE },
	{ "flag", -EINVAL, 1, 1, OP_SIZE },
	{ "last flag", -EINVAL, 1U << 31, 1, OP_SIZE },
	{ "operation without size", -EINVAL, 0, 1, 0 },
	{ "operation too small", -EINVAL, 0, 1, OP_SIZE - 1 },
	{ "operation of a later kernel", 0, 0, 1, OP_SIZE + 1 },
	{ "operation of a page", 0, 0, 1, PAGE_SIZE },
	{ "operation of more than a page", -E2BIG, 0, 1, PAGE_SIZE + 1 },
	{ "operation of 4 GiB", -E2BIG, 0, 1, U32_MAX },
	{ "malformed before too big", -EINVAL, 1, 1, U32_MAX },
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
	KUNIT_CASE_PARAM(arm, timed_gen_params),
	KUNIT_CASE_PARAM(modify, timed_gen_params),
	KUNIT_CASE_PARAM(other_op, op_gen_params),
	KUNIT_CASE(every_flag_of_an_op),
	KUNIT_CASE(every_opcode),
	KUNIT_CASE_PARAM(plain_is_what_has_but_a_deadline, plain_gen_params),
	KUNIT_CASE_PARAM(size_of_an_op, size_gen_params),
	KUNIT_CASE_PARAM(setup, setup_gen_params),
	KUNIT_CASE_PARAM(array, array_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_validate",
	.test_cases = cases,
};

kunit_test_suite(suite);
