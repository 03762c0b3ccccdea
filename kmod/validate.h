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

/* &twheel_op.size of one with something set that this kernel does not know. */
#define TW_SIZE_TOO_BIG U32_MAX

/**
 * tw_check_head() - check what kind of operation it is
 * @size: its size, may be TW_SIZE_TOO_BIG
 * @opcode: its opcode
 * @flags: its flags
 *
 * Return: 0, -EINVAL or -E2BIG.
 */
static inline int tw_check_head(u32 size, u16 opcode, u16 flags)
{
	if (size != sizeof(struct twheel_op))
		return size == TW_SIZE_TOO_BIG ? -E2BIG : -EINVAL;
	switch (opcode) {
	case TWHEEL_OP_ARM:
	case TWHEEL_OP_MODIFY:
		return flags & ~TWHEEL_ABS ? -EINVAL : 0;
	case TWHEEL_OP_CANCEL:
	case TWHEEL_OP_QUERY:
		return flags ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

/* Does an operation ask for more than a deadline? Few do. */
static inline bool tw_op_plain(const struct twheel_op *op)
{
	return likely(!(op->interval | op->slack | op->jitter));
}

/**
 * tw_check_rest() - check the rest of an operation
 * @op: the operation; its head is as it should be
 *
 * Return: 0 or -EINVAL.
 */
static inline int tw_check_rest(const struct twheel_op *op)
{
	switch (op->opcode) {
	case TWHEEL_OP_QUERY:
		return 0;
	case TWHEEL_OP_CANCEL:
		return op->deadline | op->user_data || !tw_op_plain(op) ?
		       -EINVAL : 0;
	}
	if (unlikely(!tw_time_ok(op->deadline)))
		return -EINVAL;
	if (tw_op_plain(op))
		return 0;
	if (!tw_time_ok(op->interval | op->slack | op->jitter))
		return -EINVAL;
	/* A period that is put off beyond the next would come out of order. */
	return op->interval && op->jitter > op->interval ? -EINVAL : 0;
}

/**
 * tw_check_op() - check an operation
 * @op: the operation; its size may be TW_SIZE_TOO_BIG
 *
 * Return: 0, -EINVAL or -E2BIG.
 */
static inline int tw_check_op(const struct twheel_op *op)
{
	return tw_check_head(op->size, op->opcode, op->flags) ?:
	       tw_check_rest(op);
}

#endif /* TW_VALIDATE_H */
