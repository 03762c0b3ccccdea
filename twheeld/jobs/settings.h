/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The configuration file: twheeld.conf(5).
 */
#ifndef TWHEELD_SETTINGS_H
#define TWHEELD_SETTINGS_H

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/news.h"
#include "store/store.h"

/* Settings of the tubes whose names fit a pattern */
struct tube_settings {
	const char *pattern;
	bool unique;			/* no two jobs of a tube have the same body */
	int64_t tries;			/* how often a job is given out; 0: for ever */
	const char *dead_letter;	/* the tube for a job after that; NULL: it is buried */
	int64_t backoff, backoff_most;	/* ns of delay after the first try, and at most; 0: none */
	int64_t factor;			/* by which the delay is multiplied after each try */
	int64_t jitter;			/* percent of the delay: the most that chance adds */
	int64_t unit;			/* ns of a delay of 1 */
	const char *tells[NEWS_KINDS];	/* which tube learns; or NULL */
	int64_t keep;			/* what became of jobs is kept for so long, in ns; 0: not */
	struct limit limit;
};

/* What the file, or a default, says. A text that is NULL is not set. */
struct settings {
	const char **listen;
	size_t listens;
	const char *metrics, *tokens, *store, *user;
	const char *tls, *certificate, *key;
	int sync;			/* enum sync */
	int64_t sync_ns;
	int64_t job_size, connections;
	const char *schedules, *node, *site, *admin;
	int64_t history, lease;		/* ns */
	struct tube_settings *tubes;
	size_t tube_count;
	config_t file;			/* owns the strings */
};

/* The longest body: a row of the store may not be longer than 10^9 bytes */
#define JOB_SIZE_MOST 999000000

struct settings *settings_parse(const char *text, const char *name);
struct settings *settings_read(const char *path);
void settings_free(struct settings *settings);
void settings_use(struct settings *settings);
bool settings_learns(const char *name);
const struct tube_settings *settings_tube(const char *name);
bool settings_is_dead_letter(const char *name);
struct limit settings_limit(const char *name);

#endif
