// SPDX-License-Identifier: GPL-2.0
/*
 * Which schedule comes after which: AFTER= of a tab.
 */
#include <stdio.h>
#include <string.h>

#include "when/after.h"

/**
 * after_circle - would a schedule wait for itself, by way of others?
 * @name: the schedule's, which is to come
 * @after: the schedule that it waits for
 * @after_of: gives the schedule that a known one waits for, or NULL
 * @arg: for @after_of
 * @why: out: the circle, with its names, cut off where it has no more room
 * @room: bytes of @why
 *
 * The known ones may have a circle, too: a schedule that waits for one in it waits for ever.
 */
bool after_circle(const char *name, const char *after,
		  const char *(*after_of)(void *arg, const char *name), void *arg, char *why,
		  size_t room)
{
	size_t length = snprintf(why, room, "AFTER= goes round in a circle: %s", name);
	const char *seen = name;

	/*
	 * Each name whose number is a power of 2 is compared with the next ones, which finds any
	 * circle.
	 */
	for (size_t count = 1; after; after = after_of(arg, after), count++) {
		if (length < room)
			length += snprintf(why + length, room - length, " after %s", after);
		if (!strcmp(after, name) || !strcmp(after, seen))
			return true;
		if (!(count & (count - 1)))
			seen = after;
	}
	return false;
}
