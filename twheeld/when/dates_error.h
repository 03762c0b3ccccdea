/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mistakes in a file of times to leave out.
 */
#ifndef TWHEELD_DATES_ERROR_H
#define TWHEELD_DATES_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* A line's number, from 1, or 0: the file as a whole; and a sentence */
struct dates_error {
	size_t line;
	char text[160];
};

bool dates_wrong(struct dates_error *error, size_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
