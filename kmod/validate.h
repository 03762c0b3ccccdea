/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of what a program asks for. Pure: they look at nothing but their
 * arguments, so that they can be tested and fuzzed by themselves.
 */
#ifndef TW_VALIDATE_H
#define TW_VALIDATE_H

#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/types.h>
#include <uapi/linux/twheel.h>

int tw_check_setup(const struct twheel_setup *setup);
int tw_check_array(u32 flags, u32 nr, u32 op_size);

static inline bool tw_time_ok(u64 ns)
{
	return ns <= KTIME_MAX;
}

static inline int tw_check_times(const struct twheel_op *op)
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

/* &twheel_op.size of one with something set that this kernel does not know. */
#define TW_SIZE_TOO_BIG U32_MAX

/**
 * tw_check_op() - check an operation
 * @op: the operation; its size may be TW_SIZE_TOO_BIG
 *
 * Return: 0, -EINVAL or -E2BIG.
 */
static inline int tw_check_op(const struct twheel_op *op)
{
	if (unlikely(op->size != sizeof(*op)))
		return op->size == TW_SIZE_TOO_BIG ? -E2BIG : -EINVAL;
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

#endif /* TW_VALIDATE_H */
