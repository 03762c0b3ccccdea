/* SPDX-License-Identifier: GPL-2.0 */
/* An array without a length where C wants one, for a program. */
#ifndef SHIM_LINUX_STDDEF_H
#define SHIM_LINUX_STDDEF_H

#include_next <linux/stddef.h>

#define DECLARE_FLEX_ARRAY(type, name) __DECLARE_FLEX_ARRAY(type, name)

#endif /* SHIM_LINUX_STDDEF_H */
