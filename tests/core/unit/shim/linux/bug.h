/* SPDX-License-Identifier: GPL-2.0 */
/* Warnings, each of which ends the test, for a program. */
#ifndef SHIM_LINUX_BUG_H
#define SHIM_LINUX_BUG_H

#include <linux/types.h>

__attribute__((noreturn))
void host_fail(const char *file, int line, const char *fmt, ...);

#define WARN_ON_ONCE(cond)						\
({									\
	bool bad = (cond);						\
									\
	if (bad)							\
		host_fail(__FILE__, __LINE__, "warning: %s", #cond);	\
	bad;								\
})

#define WARN_ONCE(cond, ...)						\
({									\
	bool wrong = (cond);						\
									\
	if (wrong)							\
		host_fail(__FILE__, __LINE__, __VA_ARGS__);		\
	wrong;								\
})

#endif /* SHIM_LINUX_BUG_H */
