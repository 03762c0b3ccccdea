/* SPDX-License-Identifier: GPL-2.0 */
/* Finding bits, for BPF, which has no instruction for it: a few steps each. */
#ifndef SHIM_LINUX_BITOPS_H
#define SHIM_LINUX_BITOPS_H

#include <linux/types.h>

static __always_inline unsigned int __ffs64(u64 x)
{
	unsigned int nr = __builtin_ctzll(x);

	/* The compiler knows that it is less than 64, but the verifier does not. */
	asm("" : "+r" (nr));
	return nr & 63;
}

static __always_inline unsigned int __ffs(u32 x)
{
	return __builtin_ctz(x);
}

static __always_inline unsigned int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

#endif /* SHIM_LINUX_BITOPS_H */
