/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options: from the command line, or else from the configuration file.
 */
#ifndef TWHEELD_OPTIONS_H
#define TWHEELD_OPTIONS_H

#include "jobs/settings.h"

struct options {
	const char *address, *port, *file;
	const char *check;		/* -t: a tab to check, instead of serving */
	int check_times;
	bool check_json;
	int log_size;
	int verbose;
	struct settings *settings;	/* of line and file; or defaults */
};

bool options_shared(const char *where);
void options_read(struct options *options, int argc, char **argv);

#endif
