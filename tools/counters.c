// SPDX-License-Identifier: GPL-2.0
/*
 * Asks other processes' wheels for their counters. A process that one may trace lends its
 * descriptor: pidfd_getfd(2). See counters.h.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters.h"
#include "module.h"
#include "tool.h"

#define COUNTER(field, in_fdinfo, help) \
	{ #field, offsetof(struct twheel_stats, field), in_fdinfo, help }
const struct counter counters_of_stats[] = {
	COUNTER(armed, true, "Timers armed."),
	COUNTER(modified, false, "Timers given new times."),
	COUNTER(cancelled, false, "Timers cancelled."),
	COUNTER(expired, true, "Expiries, without overruns."),
	COUNTER(overruns, true, "Periods that went by before their event was read."),
	COUNTER(delivered, false, "Events read."),
	COUNTER(drained, false, "Timers drained."),
	COUNTER(refused, true, "Times that a limit refused a timer."),
	COUNTER(wakeups, false, "Times that the timer of the wheel ran."),
	{}
};

/* The request is one of this device only, and the descriptor can be another's by now. */
static bool is_wheel(int fd)
{
	struct stat st;
	dev_t rdev;

	return module_device(&rdev) && !fstat(fd, &st) && S_ISCHR(st.st_mode) &&
		st.st_rdev == rdev;
}

static bool ask(const struct wheel *wheel, struct twheel_stats *stats)
{
	int pidfd = pidfd_open(wheel->pid, 0), fd;
	bool done;

	if (pidfd < 0)
		return false;
	fd = pidfd_getfd(pidfd, wheel->fd, 0);
	close(pidfd);
	if (fd < 0)
		return false;
	stats->size = sizeof(*stats);
	done = is_wheel(fd) && !ioctl(fd, TWHEEL_IOC_STATS, stats);
	close(fd);
	return done;
}

static void fill(struct counters *counters, const struct wheel *wheel)
{
	counters->wheel = wheel;
	counters->full = ask(wheel, &counters->stats);
	if (counters->full)
		return;
	counters->stats = (struct twheel_stats){
		.armed = wheel->armed,
		.expired = wheel->expired,
		.overruns = wheel->overruns,
		.refused = wheel->refused,
		.max_lateness = wheel->max_lateness,
	};
}

/* Read the counters of each wheel in the list, once. To be freed. */
struct counters *counters_get(const struct wheels *wheels, size_t *nr)
{
	struct counters *all = need(calloc(wheels->nr + 1, sizeof(*all)));
	size_t i;

	*nr = 0;
	for (i = 0; i < wheels->nr; i++) {
		if (!wheel_first(wheels, i))
			continue;
		all[*nr].index = i;
		fill(&all[(*nr)++], &wheels->at[i]);
	}
	return all;
}
