// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of Elastic-Job in Java's properties, as Spring Boot's application.properties has them:
 * elasticjob.jobs.NAME.KEY=VALUE.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"

#define BLANKS " \t\f"
#define JOBS "elasticjob.jobs"

/* Does a backslash at its end have the line go on? Two are one of the text. */
static bool goes_on(const char *line)
{
	size_t length = strlen(line), count = 0;

	while (count < length && line[length - count - 1] == '\\')
		count++;
	return count % 2;
}

/* A line, with those that it goes on in; NULL: there is none. */
static char *read_line(FILE *file, unsigned int *number, unsigned int *first)
{
	char *line = NULL, *whole = NULL, *more;
	size_t room = 0;

	while (getline(&line, &room, file) > 0) {
		char *text = line + strspn(line, BLANKS);

		text[strcspn(text, "\r\n")] = 0;
		*first = whole ? *first : *number + 1;
		++*number;
		if (asprintf(&more, "%s%s", whole ? whole : "", text) < 0)
			need(NULL);
		free(whole);
		whole = more;
		if (!goes_on(text) || strchr("#!", *whole))
			break;
		whole[strlen(whole) - 1] = 0;
	}
	free(line);
	return whole;
}

/* A character by its number, which Java writes as \u00e9; surrogates are not put together. */
static char *put_character(char *to, unsigned int code)
{
	if (code < 0x80) {
		*to++ = code;
	} else if (code < 0x800) {
		*to++ = 0xc0 | code >> 6;
		*to++ = 0x80 | (code & 0x3f);
	} else {
		*to++ = 0xe0 | code >> 12;
		*to++ = 0x80 | (code >> 6 & 0x3f);
		*to++ = 0x80 | (code & 0x3f);
	}
	return to;
}

/* The text up to one of the stops, without its backslashes; gives where it ends. */
static char *take_text(char *from, const char *stops, char *to)
{
	static const char named[] = "tnrf", means[] = "\t\n\r\f";
	unsigned int code;

	for (; *from && !strchr(stops, *from); from++) {
		const char *at;

		if (*from != '\\') {
			*to++ = *from;
			continue;
		}
		if (!*++from)
			break;
		at = strchr(named, *from);
		if (*from == 'u' && strspn(from + 1, "0123456789abcdefABCDEF") >= 4 &&
		    sscanf(from + 1, "%4x", &code) == 1 && code) {
			to = put_character(to, code);
			from += 4;
		} else {
			*to++ = at ? means[at - named] : *from;
		}
	}
	*to = 0;
	return from;
}

/* The name of a job, .NAME. or [NAME]., is taken from a key; gives what comes after it, or NULL. */
static char *take_name(char *key, char **name)
{
	bool brackets = *key == '[';
	char *end;

	if (!brackets && *key != '.')
		return NULL;
	*name = key + 1;
	end = strchr(*name, brackets ? ']' : '.');
	if (!end || (brackets && end[1] != '.'))
		return NULL;
	*end = 0;
	return end + 1 + brackets;
}

struct properties {
	struct import *import;
	json_t *jobs;		/* the texts of each */
	json_t *lines;		/* the first line of each */
};

/* Gives false if it is no UTF-8, of which JSON is. */
static bool take_value(struct properties *properties, const char *name, const char *key,
		       const char *value)
{
	json_t *job = json_object_get(properties->jobs, name);

	if (!job) {
		job = need(json_object());
		json_object_set_new(properties->lines, name,
				    json_integer(properties->import->line));
		if (json_object_set_new(properties->jobs, name, job))
			return false;
	}
	return json_object_set_new(job, key, json_string(value)) == 0;
}

static void take_line(struct properties *properties, char *line)
{
	size_t length = strlen(line) + 1;
	char *key = need(malloc(length)), *value = need(malloc(length)), *name, *rest;

	rest = take_text(line, BLANKS "=:", key);
	rest += strspn(rest, BLANKS);
	rest += *rest && strchr("=:", *rest);
	take_text(rest + strspn(rest, BLANKS), "", value);
	rest = strncmp(key, JOBS, strlen(JOBS)) ? NULL : take_name(key + strlen(JOBS), &name);
	if (rest && !strncmp(rest, "props.", strlen("props.")))
		rest += strlen("props.");
	if (rest && !take_value(properties, name, rest, value))
		import_leave_out(properties->import, "", "this is no UTF-8");
	free(key);
	free(value);
}

/* import_properties - the jobs of Elastic-Job in a file of properties */
void import_properties(struct import *import, FILE *file)
{
	struct properties properties = {
		.import = import, .jobs = need(json_object()), .lines = need(json_object()),
	};
	unsigned int number = 0;
	const char *name;
	json_t *job;
	char *line;

	import_tell(import, "properties of Elastic-Job");
	while ((line = read_line(file, &number, &import->line))) {
		if (!strchr("#!", *line))
			take_line(&properties, line);
		free(line);
	}
	json_object_foreach(properties.jobs, name, job) {
		import->line = json_integer_value(json_object_get(properties.lines, name));
		import_elastic(import, name, job, "false");
	}
	import->line = 0;
	if (!json_object_size(properties.jobs))
		import_leave_out(import, import->path, "there is no " JOBS ". in it");
	json_decref(properties.jobs);
	json_decref(properties.lines);
}
