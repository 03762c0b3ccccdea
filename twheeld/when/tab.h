/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tabs: files of schedules, twheeld.tab(5). From a text to definitions; no state, no files.
 */
#ifndef TWHEELD_TAB_H
#define TWHEELD_TAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/news.h"

#define SHARDS_MOST 1024
#define MISFIRES_MOST 1000
#define COUNT_MOST 1000
/* The most jobs of a schedule that are made in one go */
#define FIRING_MOST 4096
#define FIRING_BYTES (16 << 20)
#define SCHEDULE_NAME_MAX 255
/* The most bytes of a line: a line is done in one go. */
#ifndef TAB_LINE_MOST
#define TAB_LINE_MOST (128 << 10)
#endif
/* How many wrong lines of a file are named */
#define TAB_COMPLAINTS 20

struct calendar;
struct tab;

enum misfire { MISFIRE_ONCE, MISFIRE_SKIP, MISFIRE_ALL };
/* A time while an earlier run is open has no job, its job, or a job once that run has ended. */
enum overlap { OVERLAP_NO, OVERLAP_YES, OVERLAP_WAIT };

/* A schedule: its line, and the options that hold there */
struct definition {
	char *name;
	char *when, *zone;	/* as they are written */
	struct calendar *calendar;
	char *dates_path;	/* the file of CALENDAR=, or NULL */
	char *params;		/* SHARD_PARAMS=, or NULL */
	char *tube;		/* TUBE.* with @each_worker: all that are watched then */
	char *body;
	size_t size;		/* of the body, before its words are replaced */
	uint32_t pri, ttr, shards;
	int64_t late, jitter;	/* seconds: MISFIRE_AFTER= and JITTER= */
	enum misfire misfire;
	uint32_t most;		/* of MISFIRE_ALL */
	enum overlap overlap;
	bool paused;		/* by its line: it has no times */
	char *tells[NEWS_KINDS];	/* ON_FAILURE= and so on: the tube that learns, or NULL */
	char *mailto;		/* MAILTO=, or NULL */
	int64_t on_late;	/* seconds: ON_LATE=, or 0 */
	char *after;		/* AFTER=: the schedule that it waits for, or NULL */
	int64_t within;		/* seconds for which it waits: AFTER_WITHIN= */
	bool each_worker;	/* ON=each-worker */
	bool own;		/* each server of a shared store has its own */
	unsigned int line;
};

/* The machine that a tab is read for */
struct tab_host {
	const char *zone, *node, *site;	/* site: NULL if the configuration has none */
	uint32_t body_most;
	bool shared;		/* other servers have the same schedules in one store */
};

/* Callbacks for the schedules and mistakes of a tab. @each owns the definition. */
struct tab_reader {
	void (*each)(struct tab_reader *reader, struct definition *definition);
	void (*wrong)(struct tab_reader *reader, unsigned int line, size_t column,
		      const char *why);
	bool all;		/* name all mistakes, also after TAB_COMPLAINTS of them */
};

struct tab *tab_begin(const char *text, size_t length, const char *file,
		      const struct tab_host *host, struct tab_reader *reader);
bool tab_line(struct tab *tab);
void tab_end(struct tab *tab);
bool tab_name(const char *name);
void definition_free(struct definition *definition);
char *definition_body(const struct definition *definition, int64_t when, uint32_t shard,
		      size_t *size);

#endif
