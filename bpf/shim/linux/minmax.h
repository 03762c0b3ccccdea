/* SPDX-License-Identifier: GPL-2.0 */
/* Least and greatest, for BPF. */
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

#endif /* SHIM_LINUX_MINMAX_H */
