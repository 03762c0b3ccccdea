// SPDX-License-Identifier: GPL-2.0
/*
 * A disk whose syncs take $SYNC_US microseconds, whatever else the machine does: to be
 * preloaded (LD_PRELOAD), with files that are in memory.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static int take_time(void)
{
	long us = atol(getenv("SYNC_US"));
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	prctl(PR_SET_TIMERSLACK, 1);
	return nanosleep(&ts, NULL);
}

int fsync(int fd)
{
	(void)fd;
	return take_time();
}

int fdatasync(int fd)
{
	(void)fd;
	return take_time();
}
