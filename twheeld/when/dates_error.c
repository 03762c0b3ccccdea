// SPDX-License-Identifier: GPL-2.0
/*
 * What is wrong in a file of times that are left out.
 */
#include <stdarg.h>
#include <stdio.h>

#include "when/dates_error.h"

/** dates_wrong - say what is wrong, and in which line; gives false */
bool dates_wrong(struct dates_error *error, size_t line, const char *format, ...)
{
	va_list args;

	error->line = line;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return false;
}
