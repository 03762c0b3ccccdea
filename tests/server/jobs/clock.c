// SPDX-License-Identifier: GPL-2.0
/*
 * For a program that is started with it as LD_PRELOAD, somebody has set the wall clock: by
 * as many seconds as stand in the file $STEP.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long step(void)
{
	const char *name = getenv("STEP");
	FILE *file = name ? fopen(name, "r") : NULL;
	long seconds = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%ld", &seconds) != 1)
		seconds = 0;
	fclose(file);
	return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int (*real)(clockid_t clock, struct timespec *ts) = dlsym(RTLD_NEXT, "clock_gettime");
	int ret = real(clock, ts);

	if (clock == CLOCK_REALTIME)
		ts->tv_sec += step();
	return ret;
}
