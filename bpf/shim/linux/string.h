/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory functions, for BPF. What core/ clears is of a wheel that is new, and so it is all zero:
 * see wheel.bpf.c, where it is made.
 */
#ifndef SHIM_LINUX_STRING_H
#define SHIM_LINUX_STRING_H

#define memset(at, byte, bytes) do { } while (0)

#endif /* SHIM_LINUX_STRING_H */
