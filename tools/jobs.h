/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the commands of "twheel jobs" share.
 */
#ifndef JOBS_H
#define JOBS_H

#include "tool.h"

/* What was asked for: a command and its words */
struct jobs {
	bool json;
	const char *socket;
	const char *count;	/* of a history */
	char **words;
	int nr_words;
};

void jobs_run_server(char *const *command);
int jobs_check(const struct jobs *jobs);
int jobs_import(const struct jobs *jobs);
int jobs_list(const struct jobs *jobs);
int jobs_show(const struct jobs *jobs);
int jobs_history(const struct jobs *jobs);
int jobs_do(const struct jobs *jobs);
int jobs_backfill(const struct jobs *jobs);

#endif /* JOBS_H */
