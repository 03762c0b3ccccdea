// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the module's counters of itself. A kernel need not have debugfs, and what
 * is in it is no promise: so they may be unknown.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "holds.h"

#define DEBUGFS "/sys/kernel/debug"
#define COUNTERS DEBUGFS "/twheel/counters"

void holds_read(struct holds *holds)
{
	unsigned int found = 0;
	char name[64];
	__u64 value;
	FILE *f;

	*holds = (struct holds){ 0 };
	if (access(COUNTERS, R_OK))
		mount("none", DEBUGFS, "debugfs", 0, NULL);
	f = fopen(COUNTERS, "r");
	if (!f)
		return;
	while (fscanf(f, "%63s %llu", name, &value) == 2) {
		if (!strcmp(name, "longest_run")) {
			holds->longest_run = value;
			found++;
		} else if (!strcmp(name, "largest_run")) {
			holds->largest_run = value;
			found++;
		}
	}
	fclose(f);
	holds->known = found == 2;
}
