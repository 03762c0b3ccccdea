// SPDX-License-Identifier: GPL-2.0
/*
 * Durations on the command line, as coreutils have them: a number, which may have a
 * fraction, and s, m, h or d; also ms and us.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* The end of a wheel's time */
#define FOREVER 0x7fffffffffffffffULL

/* In ns, rounded up; what is too long for a wheel, as inf, is for ever. */
bool parse_duration(const char *s, __u64 *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "", 1e9 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 },
		{ "ms", 1e6 }, { "us", 1e3 },
	};
	char *end;
	double value;
	size_t i;

	errno = 0;
	value = strtod(s, &end);
	if (end == s || !(value >= 0))
		return false;
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].name))
			break;
	if (i == ARRAY_SIZE(units))
		return false;
	value = ceil(value * units[i].ns);
	*ns = value < (double)FOREVER ? (__u64)value : FOREVER;
	return true;
}
