/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of CALENDAR= is read by a child, one at a time.
 */
#ifndef TWHEELD_ASIDE_H
#define TWHEELD_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

struct exclusion;
struct exclusion_error;

/* What came of a file */
struct aside {
	struct exclusion *exclusion;	/* NULL: the error says why */
	struct exclusion_error *error;
	int64_t digest;			/* of all times: a file that says the same has the same */
	int64_t took;			/* ns of a processor */
};

int aside_start(const char *path, const char *zone, unsigned int seconds);
void aside_stop(void);
bool aside_take(struct aside *aside);

#endif
