// SPDX-License-Identifier: GPL-2.0
/*
 * twheeld -t: what is wrong in a tab, and when its schedules fire next.
 */
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "base/util.h"
#include "cron/check.h"
#include "cron/holidays.h"
#include "when/calendar.h"
#include "when/tab.h"

#define FILE_MOST (64 << 20)
#define TIMES 5

struct name {
	char *text;
	unsigned int line;
	UT_hash_handle hash;
};

struct check {
	struct tab_reader reader;
	const char *path;
	char *folder;
	struct name *names;
	size_t wrong;
};

static void wrong(struct tab_reader *reader, unsigned int line, size_t column, const char *why)
{
	struct check *check = (struct check *)reader;

	check->wrong++;
	fprintf(stderr, "%s:%u:%zu: %s\n", check->path, line, column, why);
}

static bool is_new(struct check *check, const struct definition *definition)
{
	char why[100];
	struct name *name;

	HASH_FIND(hash, check->names, definition->name, strlen(definition->name), name);
	if (name) {
		snprintf(why, sizeof(why), "line %u has this name, too", name->line);
		wrong(&check->reader, definition->line, 1, why);
		return false;
	}
	name = zalloc(sizeof(*name));
	name->text = must(strdup(definition->name));
	name->line = definition->line;
	HASH_ADD_KEYPTR(hash, check->names, name->text, strlen(name->text), name);
	return true;
}

static bool get_excluded(struct check *check, const struct definition *definition,
			 struct holidays **excluded)
{
	const char *name = definition->exclusion;
	char why[1500], *path;

	*excluded = NULL;
	if (!name)
		return true;
	if (asprintf(&path, "%s%s%s", *name == '/' ? "" : check->folder, *name == '/' ? "" : "/",
		     name) < 0)
		must(NULL);
	*excluded = holidays_get(path, definition->zone, why, sizeof(why));
	free(path);
	if (!*excluded)
		wrong(&check->reader, definition->line, 1, why);
	return *excluded;
}

static void print_times(const struct definition *definition, const struct holidays *excluded)
{
	int64_t when = time(NULL);
	int i;

	for (i = 0; i < TIMES; i++) {
		char text[40];
		time_t seconds;
		struct tm tm;

		when = holidays_next(excluded, definition->calendar, when);
		seconds = when;
		if (when == CALENDAR_NEVER || !gmtime_r(&seconds, &tm))
			break;
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		printf("  %s\n", text);
	}
	if (!i)
		puts("  never any more");
}

/* It may have control sequences of a terminal in it. */
static void print_body(const char *body)
{
	for (; *body; body++)
		putchar(iscntrl((unsigned char)*body) ? '?' : *body);
	putchar('\n');
}

static void each(struct tab_reader *reader, struct definition *definition)
{
	struct check *check = (struct check *)reader;
	struct holidays *excluded = NULL;

	if (is_new(check, definition) && get_excluded(check, definition, &excluded)) {
		printf("line %u, %s: %s, to %s: ", definition->line, definition->name,
		       definition->when, definition->tube);
		print_body(definition->body);
		print_times(definition, excluded);
	}
	holidays_put(excluded);
	definition_free(definition);
}

static char *read_all(const char *path, size_t *length)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char *text = file ? must(malloc(FILE_MOST + 1)) : NULL;

	*length = text ? fread(text, 1, FILE_MOST + 1, file) : 0;
	if (!file || ferror(file)) {
		complain("%s: %s", path, strerror(errno));
		free(text);
		text = NULL;
	} else if (*length > FILE_MOST) {
		complain("%s: this is longer than 64 MiB", path);
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

static void parse(struct check *check, const char *text, size_t length,
		  const struct tab_host *host)
{
	char *copy = must(strdup(check->path)), *name = basename(copy);
	char *dot = strrchr(name, '.');
	struct tab *tab;

	if (dot && !strcmp(dot, ".tab"))
		*dot = 0;
	tab = tab_begin(text, length, name, host, &check->reader);
	while (tab_line(tab))
		;
	tab_end(tab);
	free(copy);
}

/**
 * check_tab - print what is wrong in a tab, and when its schedules fire next
 * @path: the file; "-" is standard input
 * @host: what it is read for
 *
 * Return: what the program is to end with: 0 if nothing is wrong.
 */
int check_tab(const char *path, const struct tab_host *host)
{
	struct check check = { { each, wrong }, path, NULL, NULL, 0 };
	char *text, *copy = must(strdup(path));
	size_t length;

	setvbuf(stdout, NULL, _IOLBF, 0);
	text = read_all(path, &length);
	if (!text)
		return 1;
	check.folder = dirname(copy);
	parse(&check, text, length, host);
	free(text);
	free(copy);
	return check.wrong || ferror(stdout);
}
