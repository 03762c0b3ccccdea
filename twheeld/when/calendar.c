// SPDX-License-Identifier: GPL-2.0
/*
 * When a schedule fires: expressions, in a zone.
 *
 * A zone is a table of spans in which its clock is not set. In a span, the clock shows the
 * time plus an offset, and fields.h knows which times on a clock fit. An expression with a fixed
 * time counts only what the clock shows for the first time, and a time in a gap as the first one
 * of the next span. A wild one, like every 15 minutes, counts all that the clock shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "base/digest.h"
#include "base/duration.h"
#include "base/util.h"
#include "when/calendar.h"
#include "when/fields.h"
#include "when/zone.h"

#define SECOND 1000000000LL
#define EVERY_MOST (36525LL * DAY_SECONDS)
#define CLOCK_END 7258118400LL		/* 2200-01-01 */

enum kind { FIELDS, EVERY, ONCE };

struct calendar {
	enum kind kind;
	int64_t seconds;	/* EVERY: its period; ONCE: when, on the zone's clock */
	int64_t origin;		/* EVERY: its first time, on the zone's clock */
	int64_t first, last;	/* no time before and after these */
	struct fields fields;
	struct zone *zone;	/* NULL: UTC */
};

static void forget_zone(struct calendar *calendar)
{
	if (calendar->zone)
		zone_put(calendar->zone);
	calendar->zone = NULL;
}

static const struct {
	const char *name, *fields;
} nicknames[] = {
	{ "@yearly", "0 0 1 1 *" },
	{ "@annually", "0 0 1 1 *" },
	{ "@monthly", "0 0 1 * *" },
	{ "@weekly", "0 0 * * 0" },
	{ "@daily", "0 0 * * *" },
	{ "@midnight", "0 0 * * *" },
	{ "@hourly", "0 * * * *" },
};

static bool parse_every(struct calendar *calendar, const char *text, const char *at,
			struct calendar_error *error)
{
	int64_t ns;

	calendar->kind = EVERY;
	forget_zone(calendar);
	if (!duration_parse(at, 0, &ns) || !ns || ns % SECOND || ns / SECOND > EVERY_MOST)
		return calendar_wrong(error, at - text,
				      "@every wants whole seconds from 1s to 36525d: 90s, 5m, 1h30m, 2d");
	calendar->seconds = ns / SECOND;
	return true;
}

/* Does a text begin with this shape, with digits in place of its zeros? */
static bool has_shape(const char *text, const char *shape)
{
	for (; *shape; text++, shape++)
		if (*shape == '0' ? *text < '0' || *text > '9' : *text != *shape)
			return false;
	return true;
}

/* The offset from UTC at the end of a time of RFC 3339 */
static bool take_offset(const char *at, int64_t *seconds)
{
	int hours, minutes;

	*seconds = 0;
	if (!strcmp(at, "Z"))
		return true;
	if ((!has_shape(at, "+00:00") && !has_shape(at, "-00:00")) || at[6] ||
	    sscanf(at + 1, "%d:%d", &hours, &minutes) != 2 || hours > 23 || minutes > 59)
		return false;
	*seconds = (*at == '-' ? -60 : 60) * (60 * hours + minutes);
	return true;
}

/* Read a time on the clock; gives the rest of the text, or NULL: there is no such time. */
static const char *calendar_take_time(const char *at, int64_t *seconds)
{
	bool with_seconds = has_shape(at, "0000-00-00T00:00:00");
	struct tm tm = { 0 }, given;

	if (!has_shape(at, "0000-00-00T00:00"))
		return NULL;
	if (sscanf(at, "%4d-%2d-%2dT%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec) < 5)
		return NULL;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	given = tm;
	*seconds = timegm(&tm);
	if (given.tm_mon != tm.tm_mon || given.tm_mday != tm.tm_mday ||
	    given.tm_hour != tm.tm_hour || given.tm_min != tm.tm_min || given.tm_sec != tm.tm_sec)
		return NULL;
	return at + (with_seconds ? 19 : 16);
}

static bool parse_at(struct calendar *calendar, const char *text, const char *at,
		     struct calendar_error *error)
{
	const char *rest = calendar_take_time(at, &calendar->seconds);
	int64_t offset = 0;

	calendar->kind = ONCE;
	if (!rest || (*rest && !take_offset(rest, &offset)))
		return calendar_wrong(error, at - text,
				      "this is no time like 2027-01-01T00:00Z, 2027-01-01T00:00:00+01:00");
	if (*rest)
		forget_zone(calendar);
	calendar->seconds -= offset;
	return (calendar->seconds >= 0 && calendar->seconds < CLOCK_END) ||
		calendar_wrong(error, at - text, "this is no time from 1970 to 2199");
}

static bool parse_nickname(struct calendar *calendar, const char *text, const char *name,
			   struct calendar_error *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(nicknames); i++)
		if (!strcmp(nicknames[i].name, name)) {
			const char *fields = nicknames[i].fields;

			return fields_parse(&calendar->fields, fields, strlen(fields), error);
		}
	if (!strcmp(name, "@reboot"))
		return calendar_wrong(error, name - text,
				      "@reboot is not a time; let a service of systemd put that job");
	return calendar_wrong(error, name - text,
			      "there are @yearly, @monthly, @weekly, @daily, @hourly, @every 90s, @at 2027-01-01T00:00Z");
}

/* The text after a word and spaces; NULL: it does not begin with the word */
static const char *after(const char *text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(text, word, length) || !strchr(" \t", text[length]) || !text[length])
		return NULL;
	return text + length + strspn(text + length, " \t");
}

static bool parse_text(struct calendar *calendar, const char *text, struct calendar_error *error)
{
	const char *begin = text + strspn(text, " \t"), *at;

	if (*begin != '@')
		return fields_parse(&calendar->fields, text, strlen(text), error);
	at = after(begin, "@every");
	if (at)
		return parse_every(calendar, text, at, error);
	at = after(begin, "@at");
	if (at)
		return parse_at(calendar, text, at, error);
	return parse_nickname(calendar, text, begin, error);
}

/* A copy that ends with a byte of 0, without spaces at its end */
static bool copy_text(char *copy, const char *text, size_t length, struct calendar_error *error)
{
	if (length > CALENDAR_TEXT_MOST)
		return calendar_wrong(error, CALENDAR_TEXT_MOST, "more than %d characters",
				      CALENDAR_TEXT_MOST);
	if (memchr(text, 0, length))
		return calendar_wrong(error, (char *)memchr(text, 0, length) - text,
				      "there is a byte of 0");
	while (length && strchr(" \t", text[length - 1]))
		length--;
	memcpy(copy, text, length);
	copy[length] = 0;
	return true;
}

static bool get_zone(struct calendar *calendar, const char *name, struct calendar_error *error)
{
	calendar->zone = zone_get(name);
	if (calendar->zone)
		return true;
	if (!name)
		return calendar_wrong(error, 0, "the zone of this machine can't be read");
	return calendar_wrong(error, 0, "there is no zone '%.60s' in the zone database", name);
}

/**
 * calendar_parse - understand an expression
 * @text: the expression, see calendar.h, up to CALENDAR_TEXT_MOST characters, and spaces around it
 * @length: of the text
 * @zone: a name of the zone database, or NULL: the zone of this machine
 * @error: where it says what is wrong
 *
 * An expression that never fires, like 0 0 31 2 *, is wrong.
 *
 * Return: a calendar, for calendar_free(), or NULL.
 */
struct calendar *calendar_parse(const char *text, size_t length, const char *zone,
				struct calendar_error *error)
{
	struct calendar *calendar = calloc(1, sizeof(*calendar));
	char copy[CALENDAR_TEXT_MOST + 1];

	if (!calendar) {
		calendar_wrong(error, 0, "out of memory");
		return NULL;
	}
	calendar->first = ZONE_FIRST;
	calendar->last = CALENDAR_NEVER;
	if (!copy_text(copy, text, length, error) || !get_zone(calendar, zone, error) ||
	    !parse_text(calendar, copy, error)) {
		calendar_free(calendar);
		return NULL;
	}
	return calendar;
}

/* A calendar that has one moment alone */
static struct calendar *moment_of(const char *text, const char *zone, bool *day)
{
	struct calendar_error error;
	char expression[80];

	*day = has_shape(text, "0000-00-00") && !text[10];
	if (snprintf(expression, sizeof(expression), "@at %s%s", text, *day ? "T00:00" : "") >=
	    (int)sizeof(expression))
		return NULL;
	return calendar_parse(expression, strlen(expression), zone, &error);
}

/**
 * calendar_moment - understand a time, as of @at, or a day
 * @text: such as 2027-01-01T00:00Z, 2027-01-01T00:00 on the zone's clock, or 2027-01-01
 * @zone: a name of the zone database, or NULL: the zone of this machine
 * @end: take a day's last second, not its first
 * @seconds: out: the time
 *
 * Return: false: it is no time from 1970 to 2199.
 */
bool calendar_moment(const char *text, const char *zone, bool end, int64_t *seconds)
{
	bool day;
	struct calendar *moment = moment_of(text, zone, &day);

	if (!moment)
		return false;
	end &= day;
	if (end)
		moment->seconds += DAY_SECONDS;
	/* In the east, 1970 begins before it does in UTC. */
	*seconds = calendar_next(moment, INT64_MIN) - end;
	calendar_free(moment);
	return true;
}

/**
 * calendar_from - count the times of @every from a moment on
 * @calendar: the calendar, of @every
 * @text: the moment, as for calendar_moment()
 * @zone: as for calendar_parse(). Periods of whole days are days on its clock, others are not
 *
 * Return: false: it is no moment, or the calendar is none of @every.
 */
bool calendar_from(struct calendar *calendar, const char *text, const char *zone)
{
	struct calendar *moment;
	bool day;

	if (calendar->kind != EVERY)
		return false;
	moment = moment_of(text, zone, &day);
	if (!moment)
		return false;
	calendar->origin = calendar_next(moment, INT64_MIN);
	calendar_limit(calendar, calendar->origin, CALENDAR_NEVER);
	if (calendar->seconds % DAY_SECONDS == 0)
		calendar->zone = zone_get(zone);
	/* If the clock leaps over the moment, later days still have its time. */
	if (calendar->zone)
		calendar->origin = moment->zone ? moment->seconds :
			zone_clock(calendar->zone, moment->seconds);
	calendar_free(moment);
	return calendar->zone || calendar->seconds % DAY_SECONDS;
}

/** calendar_limit - leave a calendar its times from @first to @last, in seconds */
void calendar_limit(struct calendar *calendar, int64_t first, int64_t last)
{
	calendar->first = MAX(first, calendar->first);
	calendar->last = MIN(last, calendar->last);
}

/** calendar_digest - a digest of its zone's table, and of its limits */
int64_t calendar_digest(const struct calendar *calendar)
{
	int64_t digest = calendar->zone ? calendar->zone->digest : 0;
	int64_t limits[] = { calendar->origin, calendar->first, calendar->last };

	if (limits[0] || limits[1] != ZONE_FIRST || limits[2] != CALENDAR_NEVER)
		digest ^= digest_numbers(limits, sizeof(limits));
	return digest;
}

void calendar_free(struct calendar *calendar)
{
	if (!calendar)
		return;
	forget_zone(calendar);
	free(calendar);
}

static int64_t round_down(int64_t time, int64_t to)
{
	int64_t rest = time % to;

	return time - (rest < 0 ? rest + to : rest);
}

/* The first time on the clock, from one on, or CALENDAR_NEVER */
static int64_t clock_next(const struct calendar *calendar, int64_t from)
{
	int64_t next;

	switch (calendar->kind) {
	case FIELDS:
		return fields_next(&calendar->fields, from);
	case EVERY:
		from -= calendar->origin;
		next = from > 0 ? round_down(from + calendar->seconds - 1, calendar->seconds) : 0;
		next += calendar->origin;
		return next < CLOCK_END ? next : CALENDAR_NEVER;
	default:
		return calendar->seconds >= from ? calendar->seconds : CALENDAR_NEVER;
	}
}

/* The last time on the clock, up to one, or CALENDAR_NOT_YET */
static int64_t clock_prev(const struct calendar *calendar, int64_t from)
{
	if (from > CLOCK_END - 1)
		from = CLOCK_END - 1;
	switch (calendar->kind) {
	case FIELDS:
		return fields_prev(&calendar->fields, from);
	case EVERY:
		from -= calendar->origin;
		return from < 0 ? CALENDAR_NOT_YET :
			round_down(from, calendar->seconds) + calendar->origin;
	default:
		return calendar->seconds <= from ? calendar->seconds : CALENDAR_NOT_YET;
	}
}

static int64_t clamp(int64_t time)
{
	if (time < ZONE_FIRST)
		return ZONE_FIRST;
	return time < ZONE_END ? time : ZONE_END - 1;
}

static int64_t later(int64_t one, int64_t other)
{
	return one > other ? one : other;
}

/* The time on the clock from which a calendar looks at a span */
static int64_t begin_of(const struct calendar *calendar, const struct zone_span *span)
{
	if (calendar->kind == FIELDS && calendar->fields.wild)
		return span->start + span->offset;
	return later(span->reached, ZONE_FIRST);
}

/* When the clock shows a time of a span; the span's begin for a time in the gap before */
static int64_t time_in(const struct zone_span *span, int64_t clock)
{
	return later(clock - span->offset, span->start);
}

/*
 * Most often the clock's next time is in this span. Else it lies in a later one; it is searched
 * anew only where the clock is set back to before @from.
 */
static int64_t zone_next(const struct calendar *calendar, int64_t from)
{
	const struct zone *zone = calendar->zone;
	int64_t asked = INT64_MAX, clock = 0;

	for (size_t i = zone_at(zone, from); i < zone->count; i++) {
		const struct zone_span *span = &zone->spans[i];
		int64_t begin = begin_of(calendar, span);

		if (from > span->start)
			begin = later(begin, from + span->offset);
		if (begin < asked || begin > clock) {
			asked = begin;
			clock = clock_next(calendar, begin);
		}
		if (clock < zone_end(zone, i) + span->offset)
			return time_in(span, clock);
	}
	return CALENDAR_NEVER;
}

static int64_t zone_prev(const struct calendar *calendar, int64_t from)
{
	const struct zone *zone = calendar->zone;
	int64_t asked = INT64_MIN, clock = 0;

	for (size_t i = zone_at(zone, from) + 1; i-- > 0; from = zone->spans[i].start - 1) {
		const struct zone_span *span = &zone->spans[i];
		int64_t end = from + span->offset;

		if (end > asked || end < clock) {
			asked = end;
			clock = clock_prev(calendar, end);
		}
		if (clock >= begin_of(calendar, span))
			return time_in(span, clock);
	}
	return CALENDAR_NOT_YET;
}

/**
 * calendar_next - when a calendar fires next
 *
 * Return: the first time after @after, or CALENDAR_NEVER.
 */
int64_t calendar_next(const struct calendar *calendar, int64_t after)
{
	int64_t from = later(clamp(after) + (after >= ZONE_FIRST), calendar->first), next;

	if (after >= ZONE_END || from >= ZONE_END)
		return CALENDAR_NEVER;
	next = calendar->zone ? zone_next(calendar, from) : clock_next(calendar, from);
	return next <= calendar->last ? next : CALENDAR_NEVER;
}

/**
 * calendar_prev - when a calendar fired last
 *
 * Return: the last time before @before, or CALENDAR_NOT_YET.
 */
int64_t calendar_prev(const struct calendar *calendar, int64_t before)
{
	int64_t from = clamp(before) - (before > ZONE_FIRST), prev;

	if (from > calendar->last)
		from = calendar->last;
	prev = calendar->zone ? zone_prev(calendar, from) : clock_prev(calendar, from);
	return prev >= calendar->first ? prev : CALENDAR_NOT_YET;
}
