/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What "twheel jobs import" makes of crontabs and of timers of systemd: a tab.
 */
#ifndef JOBS_IMPORT_H
#define JOBS_IMPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct import {
	FILE *tab;		/* that is made */
	const char *path;	/* what is read, and where */
	unsigned int line;
	bool fields;		/* the tab is at times of seven fields */
	bool zone;		/* the file has said one */
	bool wrong;		/* something was left out */
};

void import_fields(struct import *import, bool seven);
void import_leave_out(struct import *import, const char *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void import_percent(struct import *import, const char *text);
void import_timer(struct import *import, FILE *file);

#endif /* JOBS_IMPORT_H */
