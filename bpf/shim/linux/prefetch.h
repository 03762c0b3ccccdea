/* SPDX-License-Identifier: GPL-2.0 */
/* BPF can't prefetch. */
#ifndef SHIM_LINUX_PREFETCH_H
#define SHIM_LINUX_PREFETCH_H

#define prefetch(what) do { } while (0)

#endif /* SHIM_LINUX_PREFETCH_H */
