/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the library's own files share: the wheel, and how errors are given. */
#ifndef TWHEEL_INTERNAL_H
#define TWHEEL_INTERNAL_H

#include <errno.h>

#include "twheel.h"

/* Events that one run of the loop reads: 3 KiB, few enough to stay in cache */
#define LOOP_EVENTS 64

struct twheel {
	int fd;

	/* Of loop.c: events that were read, from @next to @end not dealt with */
	unsigned int next;
	unsigned int end;
	struct twheel_event events[LOOP_EVENTS];
};

static inline int result(int ret)
{
	return ret < 0 ? -errno : ret;
}

/* What reading gave, in events. A count of expiries is no whole event. */
static inline int whole_events(long bytes)
{
	if (bytes < 0)
		return -errno;
	if (bytes % (long)sizeof(struct twheel_event))
		return -EINVAL;
	return bytes / (long)sizeof(struct twheel_event);
}

#endif
