// SPDX-License-Identifier: GPL-2.0
/* Writes numbers and durations. */
#include <stdio.h>

#include "demo.h"
#include "format.h"
#include "workload.h"

const char *number(__u64 value)
{
	static char buffers[8][32];
	static unsigned int next;
	char *s = buffers[next++ % ARRAY_SIZE(buffers)] + 31;
	unsigned int digits = 0;

	*s = '\0';
	do {
		if (digits && digits % 3 == 0)
			*--s = ',';
		*--s = '0' + value % 10;
		value /= 10;
		digits++;
	} while (value);
	return s;
}

const char *duration(__u64 ns)
{
	static char buffers[8][32];
	static unsigned int next;
	char *s = buffers[next++ % ARRAY_SIZE(buffers)];
	static const struct {
		const char *name;
		__u64 ns;
	} units[] = {
		{ "s", SECOND }, { "ms", MS }, { "us", 1000 }, { "ns", 1 },
	};
	unsigned int i = 0;

	while (i < ARRAY_SIZE(units) - 1 && ns < units[i].ns)
		i++;
	snprintf(s, 32, "%.*f %s", ns < 10 * units[i].ns && ns % units[i].ns,
		 (double)ns / units[i].ns, units[i].name);
	return s;
}
