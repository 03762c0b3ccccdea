/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much memory the program makes the kernel use.
 */
#ifndef DEMO_MEMCG_H
#define DEMO_MEMCG_H

#include <linux/types.h>

/* Moves the program into a memory cgroup of its own, which has that name in it. */
void memory_cgroup_enter(const char *name);

/* Bytes charged to that cgroup: the program's own and the kernel's for it. */
__u64 memory_charged(void);

#endif
