/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of CALENDAR= is read by a child, one at a time.
 */
#ifndef TWHEELD_HOLIDAYS_CHILD_H
#define TWHEELD_HOLIDAYS_CHILD_H

#include <stdbool.h>
#include <stdint.h>

struct dates;
struct dates_error;

/* A file's times, or its error */
struct aside {
	struct dates *dates;	/* NULL: the error says why */
	struct dates_error *error;
	int64_t digest;			/* of all times: files with the same times have the same */
	int64_t took;			/* ns of a processor */
};

int holidays_child_start(const char *path, const char *zone, unsigned int seconds);
void holidays_child_stop(void);
bool holidays_child_take(struct aside *aside);

#endif
