/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Checks of the arguments of a program. Pure: they read nothing but their parameters, so
 * they can be tested and fuzzed by themselves.
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

/**
 * tw_check_more() - check what few operations ask for
 * @interval: of an operation that arms or modifies a timer, in ns
 * @slack: likewise
 * @jitter: likewise
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

#endif /* TW_VALIDATE_H */
