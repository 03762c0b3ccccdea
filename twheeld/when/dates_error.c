// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes in a file of times to leave out.
 */
#include <stdarg.h>
#include <stdio.h>

#include "when/dates_error.h"

/** dates_wrong - set a mistake and its line; gives false */
bool dates_wrong(struct dates_error *error, size_t line, const char *format, ...)
{
	va_list args;

	error->line = line;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return false;
}
