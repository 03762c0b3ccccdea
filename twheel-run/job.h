/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A job, as the server tells of it, and as the command sees it.
 */
#ifndef TWHEEL_RUN_JOB_H
#define TWHEEL_RUN_JOB_H

#include <stdbool.h>

/* A job's statistics, see the protocol's stats-job. */
struct job_stats {
	char tube[201], state[16];
	unsigned int pri;
	unsigned long long ttr, age, tries;
};

struct job {
	unsigned long long id;
	unsigned long long size;
	int body;			/* a file; less than 0: it could not be kept */
	long long learned;		/* when these were, by our clock */
	struct job_stats stats;
};

bool job_number(const char *text, unsigned long long *value);
bool job_learn(struct job_stats *stats, const char *text);
bool job_is_that(const struct job *job, const struct job_stats *now);
bool job_environment(const struct job *job);

#endif
