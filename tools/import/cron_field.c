// SPDX-License-Identifier: GPL-2.0
/*
 * How cron reads a field of a time: Debian's, which stops at what it does not understand, and
 * cronie, which refuses that. A tab has other rules for some of it: 5#3, 5/20, fri-mon.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import.h"
#include "tool.h"

static const struct kind {
	unsigned int low, high;
	unsigned int cycle;		/* a longer step is the same as this one */
	const char *names;		/* three letters each, from the value low on */
} kinds[] = {
	[CRON_MINUTE] = { 0, 59, 60, "" },
	[CRON_HOUR] = { 0, 23, 24, "" },
	[CRON_DAY] = { 1, 31, 31, "" },
	[CRON_MONTH] = { 1, 12, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
	[CRON_WEEKDAY] = { 0, 7, 7, "sunmontuewedthufrisat" },
};

/* One item of a list, and where its parts begin and end */
struct item {
	bool star, range;
	unsigned int first, last, step;
	const char *steps;		/* the text of the step; NULL: there is none */
	const char *first_text, *last_text, *end;
};

static size_t word_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]))
		length++;
	return length;
}

/* A number, or a name of the kind; NULL: it is none. */
static const char *take_number(const struct kind *kind, const char *text, unsigned int *value)
{
	size_t length = word_length(text);
	const char *names = kind ? kind->names : "";

	if (length && length < 10 && strspn(text, "0123456789") == length) {
		*value = atoi(text);
		return text + length;
	}
	*value = kind ? kind->low : 0;
	for (; length == 3 && *names; names += 3, ++*value)
		if (!strncasecmp(names, text, 3))
			return text + length;
	return NULL;
}

/* Gives false if it is refused. */
static bool take_item(const struct kind *kind, const char *at, bool cronie, struct item *item)
{
	*item = (struct item){ .star = *at == '*', .first = kind->low, .last = kind->high };
	item->first_text = at;
	item->step = 1;
	if (item->star) {
		at++;
	} else {
		at = take_number(kind, at, &item->first);
		item->last = item->first;
		if (!at || *at == '/')
			return false;
		item->range = *at == '-';
	}
	if (item->range) {
		item->last_text = at + 1;
		at = take_number(kind, at + 1, &item->last);
		if (!at)
			return false;
		/* To cronie, the Sunday at the end of a range is 7. */
		if (cronie && *at != '/' && item->first > item->last && !item->last)
			item->last = 7;
	}
	if (*at == '/') {
		item->steps = at + 1;
		at = take_number(NULL, at + 1, &item->step);
		if (!at || !item->step)
			return false;
	}
	item->end = at;
	return item->first >= kind->low && item->first <= kind->high &&
		item->last >= kind->low && item->last <= kind->high;
}

/* @first: only what begins with a star in cron, too, is to begin with one */
static void print_item(FILE *to, const struct kind *kind, const struct item *item, bool first)
{
	const char *first_end = item->first_text + word_length(item->first_text);

	if (item->star && first)
		fprintf(to, "%u-%u", kind->low, kind->high);
	else if (item->star)
		putc('*', to);
	else
		fwrite(item->first_text, 1, first_end - item->first_text, to);
	if (item->range && item->last == 7 && item->first < 7 && !isdigit(*item->last_text))
		fputs("-7", to);
	else if (item->range)
		fprintf(to, "-%.*s", (int)word_length(item->last_text), item->last_text);
	if (item->steps && item->step <= kind->cycle)
		fprintf(to, "/%.*s", (int)word_length(item->steps), item->steps);
	else if (item->steps)
		fprintf(to, "/%u", kind->cycle);
}

/**
 * cron_field - read a field as cron does
 * @field: which
 * @text: a word
 * @cronie: as cronie does, and not as Debian's cron
 * @to: out: what has the same meaning in a tab; of CRON_EMPTY and CRON_REFUSED, nothing.
 *	It has room for twice the text, and 16 bytes
 *
 * Return: whether that is the same text, or another one; whether it is fine, and never fits; or
 *	whether cron refuses it.
 */
enum cron_reading cron_field(enum cron_field field, const char *text, bool cronie, char *to)
{
	const struct kind *kind = &kinds[field];
	FILE *out = need(fmemopen(to, 2 * strlen(text) + 16, "w"));
	const char *at = text;
	struct item item;
	bool empty = true;

	*to = 0;
	for (;; at++) {
		if (!take_item(kind, at, cronie, &item)) {
			fclose(out);
			return CRON_REFUSED;
		}
		if (item.first <= item.last) {
			if (!empty)
				putc(',', out);
			print_item(out, kind, &item, empty && *text != '*');
			empty = false;
		}
		at = item.end;
		if (*at != ',')
			break;
	}
	fclose(out);
	if (cronie && *at)
		return CRON_REFUSED;
	if (empty)
		return CRON_EMPTY;
	return strcmp(text, to) ? CRON_OTHER : CRON_SAME;
}
