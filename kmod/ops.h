/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of SUBMIT.
 */
#ifndef TW_OPS_H
#define TW_OPS_H

#include <linux/compiler_types.h>
#include <linux/types.h>

struct twheel;
struct twheel_op;

/**
 * struct tw_batch - what is common to operations under one hold of the lock
 * @uops: the operations in the program's memory. Any address is possible, 0 included
 * @copy: the copy of them that is worked on, or NULL if there is none: then they are done
 *	in the program's memory, which is pinned
 * @now: the present time in ns, or TW_TIMELESS
 * @quota: how many timers can be armed without a check of limits or memory, as that many
 *	nodes are free, and remain so
 * @no_period: an operation was not done, as no &struct tw_period was free
 * @error: why nodes could not be allocated, or 0
 * @expired: number of timers that were due when they were armed
 * @written: false if an operation was not done, as its result can't be written
 */
struct tw_batch {
	void __user *uops;
	const void *copy;
	s64 now;
	u32 quota;
	bool no_period;
	int error;
	u32 expired;
	bool written;
};

unsigned int tw_do_ops(struct twheel *tw, struct tw_batch *batch, void *ops,
		       unsigned int nr, u32 size);
s64 tw_jitter(u64 jitter);

#endif /* TW_OPS_H */
