// SPDX-License-Identifier: GPL-2.0
/*
 * What the readers of all formats use: lines of the tab, where each comes from, and what is said
 * to the user.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import.h"

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

/* import_place - note that the tab's new lines come from the line being read */
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
