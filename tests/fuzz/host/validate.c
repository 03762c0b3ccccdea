// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as what a program asks for: what kmod/validate.[ch] says of
 * it, against the rules of uapi/linux/twheel.h. These are written down here as
 * a list of what each field may be, since a second one written like the first
 * could have the same mistake.
 */
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <string.h>

#include "host.h"
#include "input.h"
#include "validate.h"

/**
 * struct rule - what a field of an operation may be
 * @offset: where it is
 * @bytes: how long
 * @zero: opcodes, as bits, for which it must be zero
 * @time: opcodes for which it must be a time
 */
struct rule {
	size_t offset;
	size_t bytes;
	unsigned int zero;
	unsigned int time;
};

#define ARM (1U << TWHEEL_OP_ARM)
#define MODIFY (1U << TWHEEL_OP_MODIFY)
#define CANCEL (1U << TWHEEL_OP_CANCEL)
#define QUERY (1U << TWHEEL_OP_QUERY)

static const struct rule rules[] = {
	{ offsetof(struct twheel_op, flags), 2, CANCEL | QUERY, 0 },
	{ offsetof(struct twheel_op, deadline), 8, CANCEL, ARM | MODIFY },
	{ offsetof(struct twheel_op, interval), 8, CANCEL, ARM | MODIFY },
	{ offsetof(struct twheel_op, slack), 8, CANCEL, ARM | MODIFY },
	{ offsetof(struct twheel_op, jitter), 8, CANCEL, ARM | MODIFY },
	{ offsetof(struct twheel_op, user_data), 8, CANCEL, 0 },
};

static u64 field(const struct twheel_op *op, const struct rule *rule)
{
	u64 value = 0;

	memcpy(&value, (const u8 *)op + rule->offset, rule->bytes);
	return value;
}

/* "unknown flag or opcode", "a time of more than KTIME_MAX" */
static bool op_ok(const struct twheel_op *op)
{
	unsigned int kind, i;

	if (op->opcode < TWHEEL_OP_ARM || op->opcode > TWHEEL_OP_QUERY)
		return false;
	kind = 1U << op->opcode;
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		u64 value = field(op, &rules[i]);

		if (rules[i].zero & kind && value)
			return false;
		if (rules[i].time & kind && value >> 63)
			return false;
	}
	if (op->flags != 0 && op->flags != TWHEEL_ABS)
		return false;
	/* "Not more than @interval in a periodic timer" */
	return !(kind & (ARM | MODIFY)) || op->interval == 0 ||
	       op->jitter <= op->interval;
}

static int expected_of_op(const struct twheel_op *op)
{
	if (op->size == TW_SIZE_TOO_BIG)
		return -E2BIG;
	return op->size == 64 && op_ok(op) ? 0 : -EINVAL;
}

static void check_op(struct input *in)
{
	struct twheel_op op = {
		.size = take_byte(in) ? sizeof(op) : (u32)take_number(in) - 1,
		.opcode = take_number(in),
		.flags = take_number(in),
		.result = take_number(in),
		.state = take_number(in),
		.id = take_number(in),
		.deadline = take_number(in),
		.interval = take_number(in),
		.slack = take_number(in),
		.jitter = take_number(in),
		.user_data = take_number(in),
	};
	struct twheel_op before = op;

	REQUIRE_EQ(tw_check_op(&op), expected_of_op(&op));
	REQUIRE(!memcmp(&op, &before, sizeof(op)));
	REQUIRE_EQ(tw_op_plain(&op), !op.interval && !op.slack && !op.jitter);
	REQUIRE_EQ(tw_time_ok(op.deadline), !(op.deadline >> 63));
	/* What is rejected by its head is rejected. */
	if (tw_check_head(op.size, op.opcode, op.flags))
		REQUIRE(expected_of_op(&op));
}

static bool one_of(u32 x, const u32 *list, unsigned int n)
{
	while (n--)
		if (list[n] == x)
			return true;
	return false;
}

static int expected_of_setup(const struct twheel_setup *setup)
{
	static const u32 clocks[] = { 0, 1, 7, 11 };
	bool tick_ok = setup->tick == 0 ||
		       (setup->tick >= 1000 && setup->tick <= 1000000000);

	/* "1 to %TWHEEL_SHARED_MAX; else 0", and not with %TWHEEL_SETUP_COUNT */
	if (setup->flags == 2 ? !setup->shared || setup->shared > 1U << 24 :
				setup->flags > 1 || setup->shared)
		return -EINVAL;
	if (setup->tick >> 63)
		return -EINVAL;
	if (!tick_ok || !one_of(setup->clock, clocks, ARRAY_SIZE(clocks)))
		return -EOPNOTSUPP;
	return 0;
}

static void check_setup(struct input *in)
{
	struct twheel_setup setup = {
		.size = take_number(in),
		.flags = take_number(in),
		.clock = take_number(in),
		.shared = take_number(in),
		.tick = take_number(in),
		.limit = take_number(in),
	};
	struct twheel_setup before = setup;

	REQUIRE_EQ(tw_check_setup(&setup), expected_of_setup(&setup));
	REQUIRE(!memcmp(&setup, &before, sizeof(setup)));
}

static int expected_of_array(u32 flags, u32 nr, u32 op_size)
{
	if (flags || nr >> 31 || op_size < 64)
		return -EINVAL;
	return op_size > 4096 ? -E2BIG : 0;
}

static void check_array(struct input *in)
{
	u32 flags = take_number(in);
	u32 nr = take_number(in);
	u32 op_size = take_number(in);

	REQUIRE_EQ(tw_check_array(flags, nr, op_size),
		   expected_of_array(flags, nr, op_size));
}

int fuzz_one_input(const u8 *data, size_t size)
{
	struct input in = { .at = data, .end = data + size };

	fuzz_abort_on_failure();
	while (in.at < in.end) {
		switch (take_choice(&in, 3)) {
		case 0:
			check_op(&in);
			break;
		case 1:
			check_setup(&in);
			break;
		default:
			check_array(&in);
			break;
		}
	}
	return 0;
}
