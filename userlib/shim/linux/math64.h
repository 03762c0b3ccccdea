/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arithmetic of 64 bits and more, for a program. */
#ifndef SHIM_LINUX_MATH64_H
#define SHIM_LINUX_MATH64_H

#include <linux/types.h>

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *rest)
{
	*rest = dividend % divisor;
	return dividend / divisor;
}

#ifdef __SIZEOF_INT128__
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (__uint128_t)a * b >> shift;
}
#else
/* Only by 64, as the sources do that a program has. */
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	u64 a_low = (u32)a, a_high = a >> 32, b_low = (u32)b, b_high = b >> 32;
	u64 middle = a_high * b_low + (a_low * b_low >> 32);

	(void)shift;
	return a_high * b_high + (middle >> 32) +
	       ((a_low * b_high + (u32)middle) >> 32);
}
#endif

#endif /* SHIM_LINUX_MATH64_H */
