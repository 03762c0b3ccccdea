/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits of the standard types, for a program. */
#ifndef SHIM_LINUX_LIMITS_H
#define SHIM_LINUX_LIMITS_H

#include_next <linux/limits.h>

/* Not <limits.h>, which includes this file. */
#ifndef INT_MAX
#define INT_MAX __INT_MAX__
#endif

#endif /* SHIM_LINUX_LIMITS_H */
