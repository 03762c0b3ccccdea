// SPDX-License-Identifier: GPL-2.0
/*
 * Names of tubes.
 */
#include <string.h>

#include "base/tube_name.h"

/** tube_name_ok - may a tube be called that? */
bool tube_name_ok(const char *name, size_t length)
{
	return length > 0 && length <= TUBE_NAME_MAX && *name != '-' &&
		strspn(name, TUBE_NAME_CHARS) >= length;
}
