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
#include <sys/stat.h>

#include "import.h"

#define FILE_MOST (16 << 20)

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

/* Is it a crontab of the system? There, the user comes before the command. */
static bool is_of_system(const char *path)
{
	char *whole = realpath(path, NULL);
	bool is = strstr(path, "cron.d/") || !strcmp(path, "/etc/crontab") ||
		(whole && (strstr(whole, "cron.d/") || !strcmp(whole, "/etc/crontab")));

	free(whole);
	return is;
}

/* Begin without the settings of the file before. */
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
