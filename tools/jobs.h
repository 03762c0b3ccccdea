/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the commands of "twheel jobs".
 */
#ifndef JOBS_H
#define JOBS_H

#include "tool.h"

/* The clock for times that are printed: the user's own, that of the schedule's zone, or UTC */
enum clock { CLOCK_OWN, CLOCK_ZONE, CLOCK_UTC };

/* A command of "twheel jobs", and its words */
struct jobs {
	bool json;
	bool output;		/* of tries is printed, too */
	/* import, as said, or NULL: have lines users, which cron's are they, how many fields? */
	char *users, *cron, *seconds;
	enum clock clock;
	const char *how;	/* list: only such schedules; NULL: all */
	const char *count;	/* of a history, or of times of a check; NULL: not said */
	char **words;
	int nr_words;
};

int jobs_check(const struct jobs *jobs);
int jobs_push(const struct jobs *jobs);
int jobs_import(const struct jobs *jobs);
int jobs_list(const struct jobs *jobs);
int jobs_show(const struct jobs *jobs);
int jobs_history(const struct jobs *jobs);
int jobs_tries(const struct jobs *jobs);
int jobs_do(const struct jobs *jobs);
int jobs_backfill(const struct jobs *jobs);

#endif /* JOBS_H */
