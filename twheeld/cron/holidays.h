/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files of CALENDAR=, each of which is read once for all schedules that name it.
 */
#ifndef TWHEELD_HOLIDAYS_H
#define TWHEELD_HOLIDAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calendar;
struct event_base;
struct dates;

struct holidays {
	char *path, *zone;
	struct dates *dates;
	int64_t digest;		/* of the file's times */
	char *why;		/* what is wrong with the file, or NULL */
	bool lost;		/* it had days to come when it was read before */
	bool said;		/* the log has that no days are to come */
	unsigned int users;
	struct holidays *prev, *next;
};

bool holidays_begin(struct event_base *base, void (*done)(void), const char *path,
		    const char *zone);
struct holidays *holidays_get(const char *path, const char *zone, char *why, size_t room);
bool holidays_named(const char *path);
void holidays_put(struct holidays *holidays);
void holidays_forget(void);
void holidays_look(void);
size_t holidays_empty(void);
int64_t holidays_took(void);
int64_t holidays_next(const struct holidays *holidays, const struct calendar *calendar,
		      int64_t after);
bool holidays_always(const struct holidays *holidays, const struct calendar *calendar,
		     int64_t after);
int64_t holidays_prev(const struct holidays *holidays, const struct calendar *calendar,
		      int64_t before);

#endif
