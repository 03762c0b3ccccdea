/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding bits, for a program. */
#ifndef SHIM_LINUX_BITOPS_H
#define SHIM_LINUX_BITOPS_H

#include <linux/types.h>

static inline int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline unsigned long __ffs(unsigned long x)
{
	return __builtin_ctzl(x);
}

static inline unsigned long __ffs64(u64 x)
{
	return __builtin_ctzll(x);
}

static inline unsigned int hweight64(u64 x)
{
	return __builtin_popcountll(x);
}

#endif /* SHIM_LINUX_BITOPS_H */
