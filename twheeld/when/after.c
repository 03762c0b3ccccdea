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
 * @after: what it waits for
 * @after_of: gives what a schedule that is there waits for, or NULL
 * @arg: for @after_of
 * @why: out: the circle, with its names, cut off where it has no more room
 * @room: bytes of @why
 *
 * Those that are there may have a circle, too: who comes after one waits for ever, as one in it.
 */
bool after_circle(const char *name, const char *after,
		  const char *(*after_of)(void *arg, const char *name), void *arg, char *why,
		  size_t room)
{
	size_t length = snprintf(why, room, "AFTER= goes round in a circle: %s", name);
	const char *seen = name;

	/* Each that is a power of 2 is compared with what follows, so that any circle is found. */
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
