// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of what a program asks for. See validate.h; the rules stand in
 * uapi/linux/twheel.h.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "clock.h"
#include "validate.h"

static bool tw_time_ok(u64 ns)
{
	return ns <= KTIME_MAX;
}

static int tw_check_times(const struct twheel_op *op)
{
	if (op->flags & ~TWHEEL_ABS)
		return -EINVAL;
	if (!tw_time_ok(op->deadline | op->interval | op->slack | op->jitter))
		return -EINVAL;
	/* A period that is put off beyond the next would come out of order. */
	if (op->interval && op->jitter > op->interval)
		return -EINVAL;
	return 0;
}

/**
 * tw_check_op() - check an operation, but for its size
 * @op: the operation
 *
 * Return: 0 or -EINVAL.
 */
int tw_check_op(const struct twheel_op *op)
{
	switch (op->opcode) {
	case TWHEEL_OP_ARM:
	case TWHEEL_OP_MODIFY:
		return tw_check_times(op);
	case TWHEEL_OP_CANCEL:
		if (op->deadline | op->interval | op->slack | op->jitter |
		    op->user_data)
			return -EINVAL;
		return op->flags ? -EINVAL : 0;
	case TWHEEL_OP_QUERY:
		return op->flags ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

/**
 * tw_check_setup() - check a set-up, but for its size and its limit
 * @setup: the set-up
 *
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int tw_check_setup(const struct twheel_setup *setup)
{
	if (setup->flags & ~TWHEEL_SETUP_COUNT || setup->__reserved)
		return -EINVAL;
	if (!tw_time_ok(setup->tick))
		return -EINVAL;
	if (!tw_clock_known(setup->clock))
		return -EOPNOTSUPP;
	if (setup->tick && (setup->tick < TWHEEL_TICK_MIN_NS ||
			    setup->tick > TWHEEL_TICK_MAX_NS))
		return -EOPNOTSUPP;
	return 0;
}

/**
 * tw_check_array() - check what goes with an array of operations
 * @flags: flags of the call
 * @nr: number of operations
 * @op_size: size of each
 *
 * Return: 0, -EINVAL or -E2BIG.
 */
int tw_check_array(u32 flags, u32 nr, u32 op_size)
{
	if (flags || nr > INT_MAX || op_size < sizeof(struct twheel_op))
		return -EINVAL;
	if (op_size > PAGE_SIZE)
		return -E2BIG;
	return 0;
}
