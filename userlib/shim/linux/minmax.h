/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Least and greatest, for a program. */
#ifndef SHIM_LINUX_MINMAX_H
#define SHIM_LINUX_MINMAX_H

#define min(a, b)							\
({									\
	__auto_type min_a = (a);					\
	__auto_type min_b = (b);					\
									\
	min_a < min_b ? min_a : min_b;					\
})

#define max(a, b)							\
({									\
	__auto_type max_a = (a);					\
	__auto_type max_b = (b);					\
									\
	max_a > max_b ? max_a : max_b;					\
})

#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))

#define clamp(x, low, high) min(max(x, low), high)

#endif /* SHIM_LINUX_MINMAX_H */
