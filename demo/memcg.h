/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much memory the wheel takes.
 */
#ifndef DEMO_MEMCG_H
#define DEMO_MEMCG_H

#include <linux/types.h>

/* Moves the program into a memory cgroup of its own, which has that name in it. */
void memory_cgroup_enter(const char *name);

/* Watches the program's own memory instead, for which nobody has to be root. */
void memory_own_watch(void);

/*
 * Bytes charged to that cgroup: the program's own and the kernel's for it. Or those of the
 * program's memory that are there.
 */
__u64 memory_used(void);

#endif
