// SPDX-License-Identifier: GPL-2.0
/*
 * twheel jobs import: a tab, made of the files of other schedulers. It is printed, and nothing is
 * written.
 *
 * For each file is said what it was taken for. What can't be said in a tab is a comment there,
 * and is named, and so is what means something else.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "jobs_import.h"

#define FILE_MOST (16 << 20)

/* import_fields - have the times of the lines that follow @count fields */
void import_fields(struct import *import, unsigned int count)
{
	if (count != import->fields)
		fprintf(import->tab, "FIELDS=%u\n", count);
	import->fields = count;
}

static void vname(struct import *import, const char *format, va_list args, char *why, size_t room)
{
	vsnprintf(why, room, format, args);
	printable(why);
	if (import->line)
		say("%s:%u: %s", import->path, import->line, why);
	else
		say("%s: %s", import->path, why);
}

/* import_leave_out - a line can't be said in a tab */
void import_leave_out(struct import *import, const char *text, const char *format, ...)
{
	char why[500];
	va_list args;

	va_start(args, format);
	vname(import, format, args, why, sizeof(why));
	va_end(args);
	import->wrong = true;
	fprintf(import->tab, "# left out: %s%s", why, *text ? ": " : "");
	/* A comment is one line. */
	for (; *text; text++)
		putc(iscntrl((unsigned char)*text) && *text != '\t' ? '?' : *text, import->tab);
	putc('\n', import->tab);
}

/* import_name - say what becomes of a line that the tab can't have as it was */
void import_name(struct import *import, const char *format, ...)
{
	char why[500];
	va_list args;

	va_start(args, format);
	vname(import, format, args, why, sizeof(why));
	va_end(args);
	import->wrong = true;
}

/* import_tell - say what a file was taken for, or what only informs */
void import_tell(struct import *import, const char *format, ...)
{
	char why[2000];
	va_list args;

	va_start(args, format);
	vname(import, format, args, why, sizeof(why));
	va_end(args);
}

/* import_place - what was printed to the tab since comes from the line that is read */
void import_place(struct import *import)
{
	fflush(import->tab);
	for (; import->placed < import->size; import->placed++) {
		if (import->text[import->placed] != '\n')
			continue;
		/* A power of two: there is no more room */
		if (!(import->nr_origins & (import->nr_origins - 1)))
			import->origins = need(realloc(import->origins, 2 *
				(import->nr_origins + 1) * sizeof(*import->origins)));
		import->origins[import->nr_origins++] =
			(struct origin){ import->path, import->line };
	}
}

/* import_schedule_name - NAME=, in which what can't be there is a hyphen */
void import_schedule_name(struct import *import, const char *name)
{
	bool changed = false;

	fputs(" NAME=", import->tab);
	for (const char *at = name; *at; at++) {
		bool fine = isascii((unsigned char)*at) && (isalnum((unsigned char)*at) ||
			    (strchr("-+/;.$_()", *at) && (at > name || *at != '-')));

		putc(fine ? *at : at > name ? '-' : '_', import->tab);
		changed = changed || !fine;
	}
	if (changed)
		import_name(import, "'%s' can't be a name: it has hyphens in the tab", name);
}

/* import_is_word - has a text, which is to be a word of a line, no blank, and no other line? */
bool import_is_word(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at <= ' ')
			return false;
	return *text;
}

/* import_percent - a text in which a percent sign means nothing */
void import_percent(struct import *import, const char *text)
{
	for (; *text; text++) {
		if (*text == '%')
			putc('%', import->tab);
		putc(*text, import->tab);
	}
}

/* import_is_true - as YAML and Java have it */
bool import_is_true(const char *text)
{
	return !strcasecmp(text, "true") || !strcasecmp(text, "yes") || !strcasecmp(text, "on");
}

/* import_java_zone - CRON_TZ=, where Java says GMT+08:00, too: that is Etc/GMT-8 */
void import_java_zone(struct import *import, const char *zone)
{
	int hours, end = 0;
	char sign[2];

	if (sscanf(zone, "GMT%1[-+]%2d%n", sign, &hours, &end) == 2 &&
	    (!zone[end] || !strcmp(zone + end, ":00") || !strcmp(zone + end, "00")))
		fprintf(import->tab, " CRON_TZ=Etc/GMT%c%d", *sign == '+' ? '-' : '+', hours);
	else
		fprintf(import->tab, " CRON_TZ=%s", zone);
}

/* import_take_fields - an expression, with single blanks; gives how many fields there are, or 0 */
unsigned int import_take_fields(const char *text, char *to, size_t room)
{
	unsigned int count = 0;

	*to = 0;
	if (strlen(text) >= room)
		return 0;
	while (*(text += strspn(text, " \t\r\n"))) {
		size_t length = strcspn(text, " \t\r\n"), at = strlen(to);

		snprintf(to + at, room - at, "%s%.*s", count++ ? " " : "", (int)length, text);
		text += length;
	}
	return count;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* A path becomes a line of the tab, which control characters would break. */
static bool has_control(const char *path)
{
	for (; *path; path++)
		if (iscntrl((unsigned char)*path))
			return true;
	return false;
}

/* In those of the system, the user comes before the command. */
static bool is_of_system(const char *path)
{
	char *whole = realpath(path, NULL);
	bool is = strstr(path, "cron.d/") || !strcmp(path, "/etc/crontab") ||
		(whole && (strstr(whole, "cron.d/") || !strcmp(whole, "/etc/crontab")));

	free(whole);
	return is;
}

/* What was said in a file does not hold for the next one. */
static void begin_file(struct import *import, const char *path)
{
	import->path = path;
	import->line = 0;
	fprintf(import->tab, "# %s\n", path);
	if (import->zone)
		fputs("CRON_TZ=\n", import->tab);
	if (import->jitter)
		fputs("JITTER=0\n", import->tab);
	import->zone = false;
	import->jitter = false;
}

static void import_text(struct import *import, const char *path, char *text, size_t size)
{
	FILE *lines;

	if (ends_with(path, ".xml")) {
		import_xml(import, text, size);
		return;
	}
	if (ends_with(path, ".yaml") || ends_with(path, ".yml")) {
		import_yaml(import, text, size);
		return;
	}
	lines = need(fmemopen(text, size, "r"));
	if (ends_with(path, ".timer"))
		import_timer(import, lines);
	else if (ends_with(path, ".properties"))
		import_properties(import, lines);
	else
		import_crontab(import, lines, is_of_system(path));
	fclose(lines);
}

static bool import_file(struct import *import, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char *text;
	size_t size;
	bool fine;

	if (!file)
		return false;
	begin_file(import, path);
	text = need(malloc(FILE_MOST + 1));
	size = fread(text, 1, FILE_MOST + 1, file);
	fine = !ferror(file);
	if (size > FILE_MOST)
		import_leave_out(import, path, "it is longer than 16 MiB");
	else if (fine)
		import_text(import, path, text, size);
	import_place(import);
	free(text);
	if (file != stdin)
		fclose(file);
	return fine;
}

/* Cron takes such files of a folder, and no others. */
static bool is_name(const char *name)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (has_control(name))
		return false;
	return ends_with(name, ".timer") || ends_with(name, ".xml") || ends_with(name, ".yaml") ||
		ends_with(name, ".yml") || ends_with(name, ".properties") ||
		!name[strspn(name, chars)];
}

static int is_no_dot(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

static bool import_folder(struct import *import, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_no_dot, alphasort), taken = 0;
	bool fine = count >= 0;

	for (int i = 0; i < count; i++) {
		char *file;

		if (asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
			need(NULL);
		import->path = file;
		import->line = 0;
		if (!is_name(entries[i]->d_name)) {
			printable(file);
			import_tell(import, "cron takes no file of this name out of a folder, and "
				    "it is left out");
		} else if (fine) {
			fine = import_file(import, file);
			taken++;
		}
		free(entries[i]);
	}
	if (fine && !taken) {
		import->path = path;
		import_name(import, "there is no crontab in this folder");
	}
	if (count >= 0)
		free(entries);
	return fine;
}

static bool import_path(struct import *import, const char *path)
{
	struct stat st;

	if (strcmp(path, "-") && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return import_folder(import, path);
	return import_file(import, path);
}

int jobs_import(const struct jobs *jobs)
{
	struct import import = { .jobs = jobs, .fields = 5 };

	import.tab = need(open_memstream(&import.text, &import.size));
	/* Cron makes up for nothing, nor does a timer that is not Persistent. */
	fputs("MISFIRE=skip\n", import.tab);
	import.path = jobs->words[1];
	import_place(&import);
	for (int i = 1; i < jobs->nr_words; i++) {
		if (has_control(jobs->words[i]))
			return fail(STATUS_FAILED, "file %d has a control character in its name:"
				    " rename it", i);
		if (!import_path(&import, jobs->words[i]))
			return fail(STATUS_FAILED, "%s: %s", jobs->words[i], strerror(errno));
	}
	import.line = 0;
	import_crontabs_end(&import);
	return import_finish(&import);
}
