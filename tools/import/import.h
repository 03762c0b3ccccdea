/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What "twheel jobs import" makes of the files of other schedulers: a tab.
 */
#ifndef JOBS_IMPORT_H
#define JOBS_IMPORT_H

#include <jansson.h>
#include <libxml/tree.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "jobs.h"

/* Where a line of the tab comes from */
struct origin {
	const char *path;
	unsigned int line;
};

struct worker;

struct import {
	const struct jobs *jobs;
	FILE *tab;		/* that is made */
	char *text;		/* of it, and what of that has an origin */
	size_t size, placed;
	struct origin *origins;
	size_t nr_origins;
	const char *path;	/* what is read, and where */
	unsigned int line;
	unsigned int fields;	/* how many fields times have now in the tab */
	struct worker *workers;	/* of jobs of crontabs */
	size_t nr_workers;
	bool zone, jitter;	/* the file has said one, which holds for the lines after it */
	bool wrong;		/* something is not in the tab, or means something else there */
};

/* How one program takes a field of a time, and what a tab has for the same; see there. */
enum cron_field { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY };
enum cron_reading { CRON_SAME, CRON_OTHER, CRON_EMPTY, CRON_REFUSED };

enum cron_reading cron_field(enum cron_field field, const char *text, bool cronie, char *to);

void import_fields(struct import *import, unsigned int count);
void import_leave_out(struct import *import, const char *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void import_name(struct import *import, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void import_tell(struct import *import, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void import_schedule_name(struct import *import, const char *name);
bool import_is_word(const char *text);
bool import_is_true(const char *text);
void import_java_zone(struct import *import, const char *zone);
unsigned int import_take_fields(const char *text, char *to, size_t room);
void import_place(struct import *import);
void import_percent(struct import *import, const char *text);
int import_finish(struct import *import);
bool anacron_is_line(const char *line);
const char *anacron_when(const char *period, const char *delay, unsigned int start, char *when,
			 size_t room);
void import_crontab(struct import *import, FILE *file, bool of_system);
void import_crontabs_end(struct import *import);
void import_xml(struct import *import, const char *text, size_t size);
void import_spring(struct import *import, xmlNode *root);
void import_elastic(struct import *import, const char *name, json_t *values, const char *misfire);
void import_properties(struct import *import, FILE *file);
const char *import_quartz_odd(char *text);
void import_yaml(struct import *import, const char *text, size_t size);
void import_timer(struct import *import, FILE *file);

#endif /* JOBS_IMPORT_H */
