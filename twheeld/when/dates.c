// SPDX-License-Identifier: GPL-2.0
/*
 * Times at which schedules are left out: files of dates. Files .ics are read by ics.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "when/dates.h"
#include "when/ics.h"
#include "when/spans.h"
#include "when/zone.h"

#define SPACES " \t\r"

struct dates {
	struct spans times;
};

/* Read a date, as the days since 1970-01-01; gives the text after it, or NULL: it is no date. */
static const char *take_date(const char *at, int64_t *day)
{
	struct tm tm = { 0 };
	int month, date, length;

	if (strspn(at, "0123456789") != 4 ||
	    sscanf(at, "%4d-%2d-%2d%n", &tm.tm_year, &month, &date, &length) != 3 || length != 10)
		return NULL;
	tm.tm_year -= 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = date;
	*day = timegm(&tm) / DAY_SECONDS;
	if (tm.tm_mon != month - 1 || tm.tm_year < 70 || tm.tm_year > 299)
		return NULL;
	return at + length;
}

static bool read_line(struct spans *times, const char *line, const struct zone *zone,
		      size_t number, struct dates_error *error)
{
	int64_t first, last;
	const char *at = take_date(line, &first);

	last = first;
	if (at && !strncmp(at, "..", 2))
		at = take_date(at + 2, &last);
	if (!at || *at)
		return dates_wrong(error, number,
				       "this is no date from 1970 to 2199: 2027-01-01, or 2027-01-01..2027-01-06");
	if (last < first)
		return dates_wrong(error, number, "the second date is before the first one");
	return spans_add_days(times, zone, first, last - first + 1) ||
		dates_wrong(error, number, "too many dates");
}

/* Cut off a line's comment, and the spaces around it; the text is changed. */
static char *strip(char *line)
{
	char *end = line + strcspn(line, "#");

	while (end > line && strchr(SPACES, end[-1]))
		end--;
	*end = 0;
	return line + strspn(line, SPACES);
}

static bool read_dates(struct spans *times, char *text, const struct zone *zone,
		       struct dates_error *error)
{
	size_t number = 1;

	for (char *line; (line = strsep(&text, "\n")); number++) {
		line = strip(line);
		if (*line && !read_line(times, line, zone, number, error))
			return false;
	}
	return true;
}

static bool is_ics(const char *path)
{
	size_t length = strlen(path);

	return length > 4 && !strcasecmp(path + length - 4, ".ics");
}

static ssize_t dates_read_all(int fd, char *text, size_t room)
{
	size_t have = 0;
	ssize_t got;

	while ((got = read(fd, text + have, room - have)) > 0)
		have += got;
	return got < 0 ? got : (ssize_t)have;
}

static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* The whole file, with a byte of 0 after it; NULL: @error says why */
static char *read_file(int fd, struct dates_error *error)
{
	char *text = malloc(DATES_FILE_MOST + 1);
	ssize_t length = text ? dates_read_all(fd, text, DATES_FILE_MOST + 1) : -1;

	if (length >= 0 && length <= DATES_FILE_MOST && !memchr(text, 0, length)) {
		text[length] = 0;
		return text;
	}
	if (length < 0)
		dates_wrong(error, 0, "%s", strerror(errno));
	else if (length > DATES_FILE_MOST)
		dates_wrong(error, 0, "it is longer than 4 MiB");
	else
		dates_wrong(error, 0, "this is no text: it has a byte of 0");
	free(text);
	return NULL;
}

static char *read_path(const char *path, struct dates_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = NULL;

	if (fd < 0)
		dates_wrong(error, 0, "%s", strerror(errno));
	else if (!is_regular(fd))
		dates_wrong(error, 0, "this is no file");
	else
		text = read_file(fd, error);
	if (fd >= 0)
		close(fd);
	return text;
}

static struct dates *understand(char *text, bool ics, const struct zone *zone,
				struct dates_error *error)
{
	struct dates *dates = calloc(1, sizeof(*dates));

	if (!dates) {
		dates_wrong(error, 0, "out of memory");
		return NULL;
	}
	if (ics ? ics_read(&dates->times, text, zone, error) :
	    read_dates(&dates->times, text, zone, error)) {
		spans_sort(&dates->times);
		return dates;
	}
	dates_free(dates);
	return NULL;
}

/**
 * dates_read - read a file of times to leave out
 * @path: the file, which has the .ics format if its name ends so
 * @zone: for its days, and for times without a zone; NULL: the machine's
 * @error: where it says what is wrong
 *
 * Return: the times, for dates_free(), or NULL.
 */
struct dates *dates_read(const char *path, const char *zone, struct dates_error *error)
{
	struct zone *in = zone_get(zone);
	struct dates *dates = NULL;
	char *text = NULL;

	if (in)
		text = read_path(path, error);
	else
		dates_wrong(error, 0, "there is no zone '%.60s' in the zone database",
			    zone ? zone : "of this machine");
	if (text)
		dates = understand(text, is_ics(path), in, error);
	free(text);
	if (in)
		zone_put(in);
	return dates;
}

/** dates_of - make dates of the spans that dates_times() gave elsewhere; they are taken */
struct dates *dates_of(struct time_span *spans, size_t count)
{
	struct dates *dates = calloc(1, sizeof(*dates));

	if (dates)
		dates->times = (struct spans){ count, count, spans };
	return dates;
}

/** dates_times - the spans that are left out */
const struct spans *dates_times(const struct dates *dates)
{
	return &dates->times;
}

/**
 * dates_covers - is a time left out?
 * @until: if so, the first second after it that is not
 */
bool dates_covers(const struct dates *dates, int64_t when, int64_t *until)
{
	const struct time_span *span = spans_find(&dates->times, when);

	if (span)
		*until = span->until;
	return span;
}

/**
 * dates_since - is a time left out? Backwards
 * @from: if so, the first second of those before it that are all left out
 */
bool dates_since(const struct dates *dates, int64_t when, int64_t *from)
{
	const struct time_span *span = spans_find(&dates->times, when);

	if (span)
		*from = span->from;
	return span;
}

/**
 * dates_days - how many days have times that are left out, from a time on?
 * @zone: whose clock has the days
 * @last: out: the last left-out second, which may be before @from; INT64_MIN: there is none
 */
int64_t dates_days(const struct dates *dates, const struct zone *zone, int64_t from, int64_t *last)
{
	const struct spans *times = &dates->times;
	int64_t count = 0, counted = INT64_MIN;

	*last = times->count ? times->spans[times->count - 1].until - 1 : INT64_MIN;
	for (size_t i = 0; i < times->count; i++) {
		const struct time_span *span = &times->spans[i];
		int64_t first, end;

		if (span->until <= from)
			continue;
		first = day_of(zone_clock(zone, span->from > from ? span->from : from));
		end = day_of(zone_clock(zone, span->until - 1));
		first = first > counted ? first : counted + 1;
		count += end >= first ? end - first + 1 : 0;
		counted = end;
	}
	return count;
}

void dates_free(struct dates *dates)
{
	if (!dates)
		return;
	spans_free(&dates->times);
	free(dates);
}
