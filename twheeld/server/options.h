/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options: from the command line, or else from the configuration file.
 */
#ifndef TWHEELD_OPTIONS_H
#define TWHEELD_OPTIONS_H

#include "jobs/settings.h"

struct options {
	const char *dir, *address, *port, *user, *file;
	int sync;			/* enum sync; below 0: not set */
	int64_t sync_ns;
	int64_t job_size, connections;
	const char *check;		/* -t: a tab to check, instead of serving */
	int check_times;
	bool check_json;
	const char *schedules, *node, *site, *admin;
	int64_t history, lease;
	int log_size;
	int verbose;
	struct settings *settings;		/* NULL: there is no file */
};

bool options_shared(const char *where);
void options_read(struct options *options, int argc, char **argv);

#endif
