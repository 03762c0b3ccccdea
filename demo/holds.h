/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For how long the module kept a processor: what it counts of itself in debugfs.
 */
#ifndef DEMO_HOLDS_H
#define DEMO_HOLDS_H

#include <stdbool.h>
#include <linux/types.h>

/* Sums over all wheels, since the module was loaded */
struct holds {
	bool known;
	__u64 longest_run;	/* in ns */
	__u64 largest_run;	/* timers */
};

void holds_read(struct holds *holds);

#endif
