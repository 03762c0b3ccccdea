/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files of CALENDAR=, each of which is read once for all schedules that name it.
 */
#ifndef TWHEELD_EXCLUDED_H
#define TWHEELD_EXCLUDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calendar;
struct event_base;
struct exclusion;

struct excluded {
	char *path, *zone;
	struct exclusion *exclusion;
	int64_t digest;		/* of its times */
	char *why;		/* what is wrong, or NULL */
	unsigned int users;
	struct excluded *prev, *next;
};

bool excluded_begin(struct event_base *base, void (*done)(void), const char *path,
		    const char *zone);
struct excluded *excluded_get(const char *path, const char *zone, char *why, size_t room);
bool excluded_named(const char *path);
void excluded_put(struct excluded *excluded);
void excluded_forget(void);
int64_t excluded_took(void);
int64_t excluded_next(const struct excluded *excluded, const struct calendar *calendar,
		      int64_t after);
bool excluded_always(const struct excluded *excluded, const struct calendar *calendar,
		     int64_t after);
int64_t excluded_prev(const struct excluded *excluded, const struct calendar *calendar,
		      int64_t before);

#endif
