/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logarithms, for a program. */
#ifndef SHIM_LINUX_LOG2_H
#define SHIM_LINUX_LOG2_H

#include <linux/bitops.h>

static inline int ilog2(u64 x)
{
	return fls64(x) - 1;
}

static inline int order_base_2(u64 x)
{
	return x > 1 ? fls64(x - 1) : 0;
}

#endif /* SHIM_LINUX_LOG2_H */
