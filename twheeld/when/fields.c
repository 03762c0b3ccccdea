// SPDX-License-Identifier: GPL-2.0
/*
 * The fields of an expression: from the text to sets of numbers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "when/fields.h"

#define FIELDS_MOST 7
#define SPACES " \t"

/* A kind of field: its values, and their names */
struct kind {
	const char *name;
	unsigned int low, high;
	unsigned int cycle;		/* how many different values there are */
	const char *names;		/* three letters each, from the value low on */
};

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, QUARTZ_WEEKDAY, YEAR };

#define WEEKDAY_NAMES "sunmontuewedthufrisat"

static const struct kind kinds[] = {
	{ "the second", 0, 59, 60, "" },
	{ "the minute", 0, 59, 60, "" },
	{ "the hour", 0, 23, 24, "" },
	{ "the day of the month", 1, 31, 31, "" },
	{ "the month", 1, 12, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
	{ "the day of the week", 0, 7, 7, WEEKDAY_NAMES },
	{ "the day of the week", 1, 7, 7, WEEKDAY_NAMES },
	{ "the year", 1970, 2199, 230, "" },
};

static const unsigned char cron_order[] = { MINUTE, HOUR, DAY, MONTH, WEEKDAY };
static const unsigned char quartz_order[] = {
	SECOND, MINUTE, HOUR, DAY, MONTH, QUARTZ_WEEKDAY, YEAR
};

/* The field that is being read */
struct reader {
	const char *text;		/* the whole expression */
	size_t at, end;
	const struct kind *kind;
	uint64_t set[4];
	struct fields *fields;
	struct calendar_error *error;
};

/** calendar_wrong - set a mistake and its place; gives false */
bool calendar_wrong(struct calendar_error *error, size_t column, const char *format, ...)
{
	va_list args;

	error->column = column;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return false;
}

static char peek(const struct reader *reader)
{
	return reader->at < reader->end ? reader->text[reader->at] : 0;
}

static bool fields_take(struct reader *reader, char c)
{
	if (peek(reader) != c || !c)
		return false;
	reader->at++;
	return true;
}

/* L and W: Quartz takes small ones, too */
static bool take_letter(struct reader *reader, char c)
{
	return fields_take(reader, c) || fields_take(reader, c - 'A' + 'a');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits, and stops at a number that is too large for any field. */
static unsigned int take_digits(struct reader *reader)
{
	unsigned int value = 0;

	for (; is_digit(peek(reader)); reader->at++)
		if (value < 10000)
			value = 10 * value + (peek(reader) - '0');
	return value;
}

static bool wrong_value(struct reader *reader, size_t column)
{
	const struct kind *kind = reader->kind;

	if (kind == &kinds[QUARTZ_WEEKDAY])
		return calendar_wrong(reader->error, column,
				      "the day of the week is from 1 to 7, where 1 is Sunday in six or seven fields, or the first three letters of its name");
	return calendar_wrong(reader->error, column, *kind->names ?
			      "%s is from %u to %u, or the first three letters of its name" :
			      "%s is from %u to %u", kind->name, kind->low, kind->high);
}

static bool take_name(struct reader *reader, unsigned int *value)
{
	const char *names = reader->kind->names;

	*value = reader->kind->low;
	for (; *names && reader->end - reader->at >= 3; names += 3, ++*value)
		if (!strncasecmp(names, reader->text + reader->at, 3)) {
			reader->at += 3;
			return true;
		}
	return wrong_value(reader, reader->at);
}

static bool take_value(struct reader *reader, unsigned int *value)
{
	size_t column = reader->at;

	if (!is_digit(peek(reader)))
		return take_name(reader, value);
	*value = take_digits(reader);
	return (*value >= reader->kind->low && *value <= reader->kind->high) ||
		wrong_value(reader, column);
}

/* A number that is no value of the field; @least to @most */
static bool take_count(struct reader *reader, unsigned int least, unsigned int most,
		       const char *what, unsigned int *count)
{
	size_t column = reader->at;

	*count = take_digits(reader);
	return (reader->at > column && *count >= least && *count <= most) ||
		calendar_wrong(reader->error, column, "%s is from %u to %u", what, least, most);
}

/* The number of a value's bit */
static unsigned int bit_of(const struct reader *reader, unsigned int value)
{
	return (value - reader->kind->low) % reader->kind->cycle;
}

static void add_range(struct reader *reader, unsigned int first, unsigned int last,
		      unsigned int step)
{
	if (last < first)
		last += reader->kind->cycle;
	for (unsigned int value = first; value <= last; value += step) {
		unsigned int bit = bit_of(reader, value);

		reader->set[bit / 64] |= 1ULL << bit % 64;
	}
}

static bool take_step(struct reader *reader, unsigned int *step)
{
	size_t column = reader->at;

	if (take_count(reader, 1, reader->kind->cycle, "the step", step))
		return true;
	if (*step > reader->kind->cycle && reader->kind <= &kinds[HOUR])
		calendar_wrong(reader->error, column,
			       "the step is from 1 to %u; for a longer time there is @every",
			       reader->kind->cycle);
	return false;
}

static bool take_range(struct reader *reader, unsigned int first, unsigned int last)
{
	unsigned int step = 1;

	if (fields_take(reader, '/') && !take_step(reader, &step))
		return false;
	add_range(reader, first, last, step);
	return true;
}

/* Read L, LW or L-N in the days of the month. */
static bool take_last(struct reader *reader)
{
	unsigned int before = 0;

	if (fields_take(reader, '-') && !take_count(reader, 1, 30, "the number after L-", &before))
		return false;
	if (take_letter(reader, 'W'))
		reader->fields->last_near |= 1ULL << before;
	else
		reader->fields->last |= 1ULL << before;
	return true;
}

/* Read L or #N after a day of the week, which make it one day of a month. */
static bool take_nth(struct reader *reader, unsigned int value)
{
	unsigned int nth;

	if (!take_count(reader, 1, 5, "the number after #", &nth))
		return false;
	reader->fields->nth_weekdays[nth - 1] |= 1ULL << bit_of(reader, value);
	return true;
}

static bool is_weekday(const struct reader *reader)
{
	return reader->kind >= &kinds[WEEKDAY] && reader->kind <= &kinds[QUARTZ_WEEKDAY];
}

static bool is_day(const struct reader *reader)
{
	return reader->kind == &kinds[DAY];
}

/* Read the rest of a range after its first value: its end and its step. */
static bool take_rest(struct reader *reader, unsigned int first)
{
	unsigned int last = first;

	if (is_day(reader) && take_letter(reader, 'W')) {
		reader->fields->near |= 1ULL << first;
		return true;
	}
	if (is_weekday(reader) && take_letter(reader, 'L')) {
		reader->fields->last_weekdays |= 1ULL << bit_of(reader, first);
		return true;
	}
	if (is_weekday(reader) && fields_take(reader, '#'))
		return take_nth(reader, first);
	if (fields_take(reader, '-')) {
		if (!take_value(reader, &last))
			return false;
	} else if (peek(reader) == '/') {
		last = reader->kind->high;
	}
	return take_range(reader, first, last);
}

static bool take_item(struct reader *reader)
{
	const struct kind *kind = reader->kind;
	unsigned int first;

	if (fields_take(reader, '*') ||
	    ((is_day(reader) || is_weekday(reader)) && fields_take(reader, '?')))
		return take_range(reader, kind->low, kind->high);
	if (is_day(reader) && take_letter(reader, 'L'))
		return take_last(reader);
	if (kind == &kinds[QUARTZ_WEEKDAY] && take_letter(reader, 'L'))
		return take_range(reader, 7, 7);
	return take_value(reader, &first) && take_rest(reader, first);
}

static bool take_list(struct reader *reader)
{
	do {
		if (!take_item(reader))
			return false;
	} while (fields_take(reader, ','));
	return reader->at == reader->end ||
		calendar_wrong(reader->error, reader->at,
			       "nothing can be understood from here on in %s", reader->kind->name);
}

/* Put a set into its place; those of months and days of the month begin with bit 1. */
static void keep(struct reader *reader)
{
	struct fields *fields = reader->fields;
	uint64_t set = reader->set[0];

	switch (reader->kind - kinds) {
	case SECOND:
		fields->seconds = set;
		break;
	case MINUTE:
		fields->minutes = set;
		break;
	case HOUR:
		fields->hours = set;
		break;
	case DAY:
		fields->days = set << 1;
		break;
	case MONTH:
		fields->months = set << 1;
		break;
	case YEAR:
		memcpy(fields->years, reader->set, sizeof(fields->years));
		break;
	default:
		fields->weekdays = set;
	}
}

/* Find where fields begin and end; gives how many there are. */
static unsigned int split(const char *text, size_t length, size_t (*places)[2])
{
	unsigned int count = 0;

	for (size_t at = 0; at < length && count <= FIELDS_MOST; count++) {
		while (at < length && strchr(SPACES, text[at]) && text[at])
			at++;
		if (at == length)
			break;
		places[count][0] = at;
		while (at < length && !(strchr(SPACES, text[at]) && text[at]))
			at++;
		places[count][1] = at;
	}
	return count;
}

static bool begins_with_star(const char *text, const size_t *place)
{
	return text[place[0]] == '*' || text[place[0]] == '?';
}

static bool read_field(struct fields *fields, const char *text, const size_t *place,
		       unsigned int kind, struct calendar_error *error)
{
	struct reader reader = {
		.text = text, .at = place[0], .end = place[1], .kind = &kinds[kind],
		.fields = fields, .error = error,
	};

	if (!take_list(&reader))
		return false;
	keep(&reader);
	if (kind <= HOUR && begins_with_star(text, place))
		fields->wild = true;
	return true;
}

static bool read_fields(struct fields *fields, const char *text, size_t (*places)[2],
			unsigned int count, struct calendar_error *error)
{
	const unsigned char *order = count == 5 ? cron_order : quartz_order;
	size_t (*days)[2] = places + (count == 5 ? 2 : 3);

	*fields = (struct fields){ .seconds = 1, .years = { -1, -1, -1, -1 } };
	for (unsigned int i = 0; i < count; i++)
		if (!read_field(fields, text, places[i], order[i], error))
			return false;
	fields->either = !begins_with_star(text, days[0]) && !begins_with_star(text, days[2]);
	return fields_next(fields, 0) != CALENDAR_NEVER ||
		calendar_wrong(error, days[0][0], "no month has such a day");
}

/**
 * fields_parse - understand five, six or seven fields
 *
 * Return: false if they can't be understood, or fit no day until 2199; @error says why then.
 */
bool fields_parse(struct fields *fields, const char *text, size_t length,
		  struct calendar_error *error)
{
	size_t places[FIELDS_MOST + 1][2];
	unsigned int count = split(text, length, places);

	if (count < 5)
		return calendar_wrong(error, count ? places[count - 1][1] : 0,
				      "%u fields are too few: five, or six with seconds", count);
	if (count > FIELDS_MOST)
		return calendar_wrong(error, places[FIELDS_MOST][0],
				      "more than seven fields: seconds come first, years last");
	return read_fields(fields, text, places, count, error);
}
