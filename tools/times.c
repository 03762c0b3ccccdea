// SPDX-License-Identifier: GPL-2.0
/*
 * Durations on the command line, as coreutils have them: seconds without a unit, and "inf".
 */
#include <string.h>

#include "tool.h"

/* The end of a wheel's time */
#define FOREVER 0x7fffffffffffffffULL

/* In ns, rounded up */
bool parse_duration(const char *s, __u64 *ns)
{
	int64_t value;

	*ns = FOREVER;
	if (!strcmp(s, "inf") || !strcmp(s, "infinity"))
		return true;
	if (!duration_parse(s, SEC, &value))
		return false;
	*ns = value;
	return true;
}
