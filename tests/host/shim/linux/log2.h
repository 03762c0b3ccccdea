/* SPDX-License-Identifier: GPL-2.0 */
/* Logarithms, for a program. */
#ifndef SHIM_LINUX_LOG2_H
#define SHIM_LINUX_LOG2_H

#include <linux/bitops.h>

#define ilog2(x) (fls64(x) - 1)

#endif /* SHIM_LINUX_LOG2_H */
