// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of what a program asks for, with all combinations of values at the
 * edges, against the rules of uapi/linux/twheel.h said once more.
 */
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/mm.h>

#include "host.h"
#include "validate.h"

static const u64 values[] = {
	0, 1, 1000, KTIME_MAX - 1, KTIME_MAX, (u64)KTIME_MAX + 1, U64_MAX,
};

#define NR_VALUES ARRAY_SIZE(values)

static int expected_of_op(const struct twheel_op *op)
{
	bool times_ok = op->deadline <= KTIME_MAX && op->interval <= KTIME_MAX &&
			op->slack <= KTIME_MAX && op->jitter <= KTIME_MAX;
	bool in_period = !op->interval || op->jitter <= op->interval;
	bool nothing = !op->deadline && !op->interval && !op->slack &&
		       !op->jitter && !op->user_data;
	bool ok = false;

	if (op->opcode == TWHEEL_OP_ARM || op->opcode == TWHEEL_OP_MODIFY)
		ok = times_ok && in_period && (op->flags & ~TWHEEL_ABS) == 0;
	else if (op->opcode == TWHEEL_OP_CANCEL)
		ok = nothing && !op->flags;
	else if (op->opcode == TWHEEL_OP_QUERY)
		ok = !op->flags;
	return ok ? 0 : -EINVAL;
}

static u64 value(unsigned int *n)
{
	u64 v = values[*n % NR_VALUES];

	*n /= NR_VALUES;
	return v;
}

static void one_op(u16 opcode, u16 flags)
{
	unsigned int i, n, end = 1;

	for (i = 0; i < 5; i++)
		end *= NR_VALUES;
	for (i = 0; i < end; i++) {
		struct twheel_op op = {
			.size = sizeof(op),
			.opcode = opcode,
			.flags = flags,
		};

		n = i;
		op.deadline = value(&n);
		op.interval = value(&n);
		op.slack = value(&n);
		op.jitter = value(&n);
		op.user_data = value(&n);
		REQUIRE_EQ(tw_check_op(&op), expected_of_op(&op));
		REQUIRE_EQ(tw_op_plain(&op),
			   !op.interval && !op.slack && !op.jitter);
	}
}

static void ops(void)
{
	u16 opcode;
	unsigned int bit;

	for (opcode = 0; opcode < 8; opcode++) {
		one_op(opcode, 0);
		for (bit = 0; bit < 16; bit++)
			one_op(opcode, 1U << bit);
		one_op(opcode, 3);
	}
	one_op(1U << 15 | TWHEEL_OP_ARM, 0);
	one_op(U16_MAX, 0);
}

static void sizes(void)
{
	struct twheel_op op = { .opcode = TWHEEL_OP_ARM };
	u32 size;

	for (size = 0; size < 4096; size++) {
		op.size = size;
		REQUIRE_EQ(tw_check_op(&op),
			   size == sizeof(op) ? 0 : -EINVAL);
	}
	op.size = TW_SIZE_TOO_BIG;
	REQUIRE_EQ(tw_check_op(&op), -E2BIG);
}

static int expected_of_setup(const struct twheel_setup *setup)
{
	u32 clock = setup->clock;

	bool shared = setup->flags == TWHEEL_SETUP_SHARED;

	if (setup->flags > TWHEEL_SETUP_SHARED || setup->tick > KTIME_MAX ||
	    shared != !!setup->shared || setup->shared > 16777216)
		return -EINVAL;
	if (clock != TWHEEL_CLOCK_REALTIME && clock != TWHEEL_CLOCK_MONOTONIC &&
	    clock != TWHEEL_CLOCK_BOOTTIME && clock != TWHEEL_CLOCK_TAI)
		return -EOPNOTSUPP;
	if (setup->tick && (setup->tick < 1000 || setup->tick > 1000000000))
		return -EOPNOTSUPP;
	return 0;
}

static void setups(void)
{
	static const u64 ticks[] = {
		0, 1, 999, 1000, 1001, 4000000, 999999999, 1000000000,
		1000000001, U32_MAX, 1ULL << 32, (1ULL << 32) + 1000, KTIME_MAX,
		(u64)KTIME_MAX + 1, U64_MAX,
	};
	static const u32 shared[] = {
		0, 1, 2, 3, 4096, (1U << 24) - 1, 1U << 24, (1U << 24) + 1,
		1U << 25, 1U << 31, U32_MAX,
	};
	unsigned int clock, flag, many, i;

	for (clock = 0; clock < 66; clock++)
		for (flag = 0; flag < 34; flag++)
			for (many = 0; many < ARRAY_SIZE(shared); many++)
				for (i = 0; i < ARRAY_SIZE(ticks); i++) {
					struct twheel_setup setup = {
						.clock = clock < 33 ? clock :
							 1U << (clock - 33) % 32,
						.flags = flag == 33 ? 3 : 1ULL << flag,
						.shared = shared[many],
						.tick = ticks[i],
					};

					REQUIRE_EQ(tw_check_setup(&setup),
						   expected_of_setup(&setup));
				}
}

static int expected_of_array(u32 flags, u32 nr, u32 op_size)
{
	if (flags || nr >= 1U << 31 || op_size < sizeof(struct twheel_op))
		return -EINVAL;
	return op_size > PAGE_SIZE ? -E2BIG : 0;
}

static void arrays(void)
{
	static const u32 nrs[] = {
		0, 1, 2, 1U << 30, (1U << 31) - 1, 1U << 31, U32_MAX,
	};
	static const u32 large[] = { 1U << 31, U32_MAX };
	unsigned int flag, i;
	u32 op_size;

	for (flag = 0; flag < 33; flag++)
		for (i = 0; i < ARRAY_SIZE(nrs); i++) {
			u32 flags = 1ULL << flag;

			for (op_size = 0; op_size < 2 * PAGE_SIZE; op_size++)
				REQUIRE_EQ(tw_check_array(flags, nrs[i], op_size),
					   expected_of_array(flags, nrs[i],
							     op_size));
			REQUIRE_EQ(tw_check_array(flags, nrs[i], large[i % 2]),
				   expected_of_array(flags, nrs[i],
						     large[i % 2]));
		}
}

int main(void)
{
	host_plan(4);
	host_test("operations", ops);
	host_test("sizes of operations", sizes);
	host_test("set-ups", setups);
	host_test("arrays of operations", arrays);
	return host_end();
}
