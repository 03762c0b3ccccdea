// SPDX-License-Identifier: GPL-2.0
/*
 * twheel jobs check: what is wrong in a tab, and when its schedules fire next. It reads a tab
 * by what the server reads it by.
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "../twheeld/calendar.h"
#include "../twheeld/excluded.h"
#include "../twheeld/tab.h"
#include "jobs.h"

#define FILE_MOST (64 << 20)
#define TIMES 5
/* The server's, unless it is told another one */
#define BODY_MOST 65535

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
	json_t *array;
	size_t wrong;
};

/* For what is shared with the server: its util.h */
void *must(void *memory);
void *zalloc(size_t size);
void *must(void *memory)
{
	return need(memory);
}

void *zalloc(size_t size)
{
	return need(calloc(1, size));
}

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
	name->text = need(strdup(definition->name));
	name->line = definition->line;
	HASH_ADD_KEYPTR(hash, check->names, name->text, strlen(name->text), name);
	return true;
}

static bool get_excluded(struct check *check, const struct definition *definition,
			 struct excluded **excluded)
{
	const char *name = definition->exclusion;
	char why[1500], *path;

	*excluded = NULL;
	if (!name)
		return true;
	if (asprintf(&path, "%s%s%s", *name == '/' ? "" : check->folder, *name == '/' ? "" : "/",
		     name) < 0)
		need(NULL);
	*excluded = excluded_get(path, definition->zone, why, sizeof(why));
	free(path);
	if (!*excluded)
		wrong(&check->reader, definition->line, 1, why);
	return *excluded;
}

static json_t *times_of(const struct definition *definition, const struct excluded *excluded)
{
	json_t *array = need(json_array());
	int64_t when = time(NULL);

	for (int i = 0; i < TIMES; i++) {
		char text[40];
		time_t seconds;
		struct tm tm;

		when = excluded_next(excluded, definition->calendar, when);
		seconds = when;
		if (when == CALENDAR_NEVER || !gmtime_r(&seconds, &tm))
			break;
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		json_array_append_new(array, json_string(text));
	}
	return array;
}

static void each(struct tab_reader *reader, struct definition *definition)
{
	struct check *check = (struct check *)reader;
	struct excluded *excluded = NULL;

	if (is_new(check, definition) && get_excluded(check, definition, &excluded))
		json_array_append_new(check->array, json_pack("{s:s, s:I, s:s, s:s, s:o}",
			"name", definition->name, "line", (json_int_t)definition->line, "when",
			definition->when, "tube", definition->tube, "times",
			times_of(definition, excluded)));
	excluded_put(excluded);
	definition_free(definition);
}

static void print(const json_t *array)
{
	const json_t *one, *when;
	size_t i, k;

	json_array_foreach(array, i, one) {
		const json_t *times = json_object_get(one, "times");

		printf("line %lld, %s: %s, to %s\n",
		       (long long)json_integer_value(json_object_get(one, "line")),
		       json_string_value(json_object_get(one, "name")),
		       json_string_value(json_object_get(one, "when")),
		       json_string_value(json_object_get(one, "tube")));
		json_array_foreach(times, k, when)
			printf("  %s\n", json_string_value(when));
		if (!json_array_size(times))
			puts("  never any more");
	}
}

static char *read_all(const char *path, size_t *length)
{
	FILE *file = fopen(path, "re");
	char *text = file ? need(malloc(FILE_MOST + 1)) : NULL;

	*length = text ? fread(text, 1, FILE_MOST + 1, file) : 0;
	if (!file || ferror(file)) {
		say("%s: %s", path, strerror(errno));
		free(text);
		text = NULL;
	} else if (*length > FILE_MOST) {
		say("%s: this is longer than 64 MiB", path);
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

static void parse(struct check *check, const char *text, size_t length)
{
	const struct tab_host host = { "", "NODE", "SITE", BODY_MOST };
	char *copy = need(strdup(check->path)), *name = basename(copy);
	char *dot = strrchr(name, '.');

	if (dot && !strcmp(dot, ".tab"))
		*dot = 0;
	tab_parse(text, length, name, &host, &check->reader);
	free(copy);
}

int jobs_check(const struct jobs *jobs)
{
	struct check check = { { each, wrong }, jobs->words[1], NULL, NULL, NULL, 0 };
	char *text, *copy = need(strdup(check.path));
	size_t length;
	int status;

	text = read_all(check.path, &length);
	if (!text)
		return STATUS_FAILED;
	check.folder = dirname(copy);
	check.array = need(json_array());
	parse(&check, text, length);
	free(text);
	if (jobs->json) {
		status = print_json(check.array);
	} else {
		print(check.array);
		status = finish_output(STATUS_OK);
	}
	free(copy);
	return check.wrong ? STATUS_FAILED : status;
}
