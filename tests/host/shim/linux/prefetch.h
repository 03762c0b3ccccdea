/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that will be needed, for a program. */
#ifndef SHIM_LINUX_PREFETCH_H
#define SHIM_LINUX_PREFETCH_H

#define prefetch(at) __builtin_prefetch(at)
#define prefetchw(at) __builtin_prefetch(at, 1)

#endif /* SHIM_LINUX_PREFETCH_H */
