/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Checks of the arguments of a program. Pure: they read nothing but their parameters, so
 * they can be tested and fuzzed by themselves.
 */
#ifndef TW_VALIDATE_H
#define TW_VALIDATE_H

#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <uapi/linux/twheel.h>

int tw_check_setup(const struct twheel_setup *setup);

static inline bool tw_time_ok(u64 ns)
{
	return ns <= KTIME_MAX;
}

/**
 * tw_check_more() - check what few operations ask for
 * @interval: of an operation that arms or modifies a timer, in ns
 * @slack: of the same operation, in ns
 * @jitter: of the same operation, in ns
 *
 * Return: 0 or -EINVAL.
 */
static inline int tw_check_more(u64 interval, u64 slack, u64 jitter)
{
	if (!tw_time_ok(interval | slack | jitter))
		return -EINVAL;
	/* A period that is put off beyond the next would come out of order. */
	return interval && jitter > interval ? -EINVAL : 0;
}

/**
 * tw_check_array() - check what goes with an array of operations
 * @flags: flags of the call
 * @nr: number of operations
 * @op_size: length of each
 *
 * Return: 0 or -EINVAL.
 */
static inline int tw_check_array(u32 flags, u32 nr, u32 op_size)
{
	if (flags || nr > INT_MAX)
		return -EINVAL;
	return op_size == TWHEEL_OP_SIZE_ID || op_size == TWHEEL_OP_SIZE_ONCE ||
	       op_size == TWHEEL_OP_SIZE_FULL ? 0 : -EINVAL;
}

#endif /* TW_VALIDATE_H */
