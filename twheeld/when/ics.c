// SPDX-License-Identifier: GPL-2.0
/*
 * The times of the events of a calendar in the .ics format, RFC 5545.
 *
 * libical takes an event apart, and says on which dates of the clock it repeats. It is
 * not asked about zones: libical 3.0 is wrong on the day after a gap.
 *
 * It gets one event at a time, cut out of the text. So a mistake has a line, an event has a
 * longest size, and what is nested can't be deep. What could keep it busy for hours is refused:
 * events that repeat more often than each day.
 */
#include <glib.h>
#include <libical/ical.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "when/ics.h"

#define DAY_SECONDS 86400
#define EVENT_MOST (64 << 10)
/* Days, weeks, months or years that libical goes through: seconds or minutes. See aside.c. */
#define STEPS_MOST 500000
#define FIRST_YEAR 1900
#define LAST_YEAR 2199
#define LAST_REPEATED "20991231T235959"

/* A time that an event tells. It is on a clock; of dates, it is when they begin. */
struct moment {
	bool date;
	int64_t clock;
	const struct zone *zone;	/* NULL: UTC */
};

struct event {
	struct moment start;
	int64_t length;			/* of dates: days; else seconds */
	GArray *left_out_dates, *left_out_times;
	const char *uid;
};

struct reader {
	struct spans *times;
	const struct zone *zone;	/* of dates, and of times that say none */
	GPtrArray *zones;		/* that were asked for: they are kept to the end */
	GHashTable *moved;		/* repetitions that have an event of their own */
	size_t line;			/* where the event begins */
	int64_t steps;			/* that libical made, from one date to the next */
	struct dates_error *error;
};

static bool wrong(struct reader *reader, const char *what)
{
	return dates_wrong(reader->error, reader->line, "%s", what);
}

/* The zone that a TZID names: it, or what is after a slash: /example.org/Europe/Berlin */
static struct zone *find_zone(const char *name)
{
	struct zone *zone = zone_get(name);

	while (!zone && (name = strchr(name, '/')))
		zone = zone_get(++name);
	return zone;
}

static bool take_zone(struct reader *reader, const char *name, const struct zone **zone)
{
	struct zone *found = strlen(name) < 100 ? find_zone(name) : NULL;

	if (!found)
		return dates_wrong(reader->error, reader->line,
				       "the zone '%.60s' is not in the zone database", name);
	if (g_ptr_array_find(reader->zones, found, NULL))
		zone_put(found);
	else
		g_ptr_array_add(reader->zones, found);
	*zone = found;
	return true;
}

static int64_t clock_of(struct icaltimetype time)
{
	struct tm tm = {
		.tm_year = time.year - 1900, .tm_mon = time.month - 1, .tm_mday = time.day,
		.tm_hour = time.hour, .tm_min = time.minute, .tm_sec = time.second,
	};

	return timegm(&tm);
}

static bool take_moment(struct reader *reader, icalproperty *property, struct icaltimetype time,
			struct moment *moment)
{
	icalparameter *tzid = icalproperty_get_first_parameter(property, ICAL_TZID_PARAMETER);

	if (time.year < FIRST_YEAR || time.year > LAST_YEAR || time.month < 1 || time.month > 12)
		return wrong(reader, "the event has a time before 1900 or after 2199");
	*moment = (struct moment){ time.is_date, clock_of(time), reader->zone };
	if (time.is_date)
		return true;
	if (icaltime_is_utc(time))
		moment->zone = NULL;
	else if (tzid)
		return take_zone(reader, icalparameter_get_tzid(tzid), &moment->zone);
	return true;
}

static int64_t time_of(const struct moment *moment)
{
	return moment->zone ? zone_time(moment->zone, moment->clock) : moment->clock;
}

static int64_t day_of(int64_t clock)
{
	return (clock - (clock < 0 ? DAY_SECONDS - 1 : 0)) / DAY_SECONDS;
}

static int64_t length_of(const struct moment *start, const struct moment *end)
{
	if (start->date)
		return MAX(day_of(end->clock) - day_of(start->clock), 1);
	return time_of(end) - time_of(start);
}

static bool take_length(struct reader *reader, icalcomponent *component, struct event *event)
{
	icalproperty *end = icalcomponent_get_first_property(component, ICAL_DTEND_PROPERTY);
	icalproperty *duration =
		icalcomponent_get_first_property(component, ICAL_DURATION_PROPERTY);
	struct moment moment = event->start;

	if (end && !take_moment(reader, end, icalproperty_get_dtend(end), &moment))
		return false;
	if (!end && duration)
		moment.clock += icaldurationtype_as_int(icalproperty_get_duration(duration));
	event->length = length_of(&event->start, &moment);
	return true;
}

/* The name of a repetition that has an event of its own */
static char *name_moved(const char *uid, const struct moment *moment)
{
	return g_strdup_printf("%d %" G_GINT64_FORMAT " %s", moment->date,
			       (gint64)(moment->date ? moment->clock : time_of(moment)), uid);
}

static gint compare(gconstpointer a, gconstpointer b)
{
	gint64 one = *(const gint64 *)a, other = *(const gint64 *)b;

	return (one > other) - (one < other);
}

static bool is_in(GArray *array, gint64 value)
{
	return g_array_binary_search(array, &value, compare, NULL);
}

static bool is_left_out(struct reader *reader, const struct event *event,
			const struct moment *moment)
{
	bool moved = false;

	if (is_in(event->left_out_dates, day_of(moment->clock)) ||
	    (!moment->date && is_in(event->left_out_times, time_of(moment))))
		return true;
	if (event->uid && g_hash_table_size(reader->moved)) {
		char *name = name_moved(event->uid, moment);

		moved = g_hash_table_contains(reader->moved, name);
		g_free(name);
	}
	return moved;
}

/* Add a repetition of an event */
static bool add(struct reader *reader, const struct event *event, const struct moment *moment)
{
	int64_t from = time_of(moment);
	bool added;

	if (is_left_out(reader, event, moment))
		return true;
	added = moment->date ?
		spans_add_days(reader->times, reader->zone, day_of(moment->clock), event->length) :
		spans_add(reader->times, from, from + event->length);
	return added || wrong(reader, "the events leave out more than 500,000 times");
}

static bool take_left_out(struct reader *reader, icalcomponent *component, struct event *event)
{
	icalproperty *property;
	struct moment moment;

	for (property = icalcomponent_get_first_property(component, ICAL_EXDATE_PROPERTY); property;
	     property = icalcomponent_get_next_property(component, ICAL_EXDATE_PROPERTY)) {
		gint64 value;

		if (!take_moment(reader, property, icalproperty_get_exdate(property), &moment))
			return false;
		value = moment.date ? day_of(moment.clock) : time_of(&moment);
		g_array_append_val(moment.date ? event->left_out_dates : event->left_out_times,
				   value);
	}
	g_array_sort(event->left_out_dates, compare);
	g_array_sort(event->left_out_times, compare);
	return true;
}

/* Is it one that libical can go through in a short time? */
static bool check_rule(struct reader *reader, const struct icalrecurrencetype *rule)
{
	if (rule->freq < ICAL_DAILY_RECURRENCE || rule->freq > ICAL_YEARLY_RECURRENCE)
		return wrong(reader, "the event repeats more often than each day");
	if (rule->by_hour[0] != ICAL_RECURRENCE_ARRAY_MAX ||
	    rule->by_minute[0] != ICAL_RECURRENCE_ARRAY_MAX ||
	    rule->by_second[0] != ICAL_RECURRENCE_ARRAY_MAX)
		return wrong(reader, "BYHOUR, BYMINUTE and BYSECOND are not understood");
	return !rule->rscale ||
		wrong(reader, "the event has RSCALE, another calendar, which is not understood");
}

/* Until when it repeats, on the clock of the event, as libical compares it with that */
static struct icaltimetype until_of(struct icaltimetype until, const struct moment *start)
{
	struct icaltimetype last = icaltime_from_string(LAST_REPEATED);

	if (icaltime_is_null_time(until) || until.year > last.year)
		until = last;
	if (until.is_date) {
		until.hour = 23;
		until.minute = 59;
		until.second = 59;
	} else if (icaltime_is_utc(until) && start->zone && !start->date) {
		int64_t time = clock_of(until);
		size_t span = zone_at(start->zone, time);

		time += start->zone->spans[span].offset;
		until = icaltime_from_timet_with_zone(time, 0, NULL);
	}
	until.is_date = start->date;
	until.zone = NULL;
	return until;
}

/* Count what libical had to go through: days, weeks, months or years. */
static bool count_steps(struct reader *reader, const struct icalrecurrencetype *rule,
			int64_t first, int64_t last)
{
	static const int days[] = {
		[ICAL_DAILY_RECURRENCE] = 1, [ICAL_WEEKLY_RECURRENCE] = 7,
		[ICAL_MONTHLY_RECURRENCE] = 30, [ICAL_YEARLY_RECURRENCE] = 365,
	};

	reader->steps += (last - first) / DAY_SECONDS / days[rule->freq] / rule->interval;
	return reader->steps < STEPS_MOST || wrong(reader, "too many events repeat for too long");
}

/* All dates of a rule: how many there are, and the last one */
static bool add_repetitions(struct reader *reader, const struct event *event,
			    icalrecur_iterator *iterator, unsigned int *count, int64_t *last)
{
	struct moment moment = event->start;
	struct icaltimetype next;

	for (*count = 0; next = icalrecur_iterator_next(iterator), !icaltime_is_null_time(next);
	     ++*count) {
		moment.clock = clock_of(next);
		if (!add(reader, event, &moment))
			return false;
	}
	*last = moment.clock;
	return *count || wrong(reader, "the event repeats, but never takes place");
}

static bool add_rule(struct reader *reader, const struct event *event, icalproperty *property,
		     struct icaltimetype start)
{
	struct icalrecurrencetype rule = icalproperty_get_rrule(property);
	icalrecur_iterator *iterator;
	unsigned int count;
	int64_t last;
	bool fine;

	if (!check_rule(reader, &rule))
		return false;
	rule.until = until_of(rule.until, &event->start);
	start.zone = NULL;
	iterator = icalrecur_iterator_new(rule, start);
	if (!iterator)
		return wrong(reader, "how the event repeats is not understood, or it never does");
	fine = add_repetitions(reader, event, iterator, &count, &last);
	icalrecur_iterator_free(iterator);
	if (!rule.count || count < (unsigned int)rule.count)
		last = clock_of(rule.until);
	return fine && count_steps(reader, &rule, event->start.clock, last);
}

static bool add_rules(struct reader *reader, const struct event *event, icalcomponent *component,
		      struct icaltimetype start)
{
	icalproperty *property =
		icalcomponent_get_first_property(component, ICAL_RRULE_PROPERTY);

	if (!property)
		return add(reader, event, &event->start);
	for (; property;
	     property = icalcomponent_get_next_property(component, ICAL_RRULE_PROPERTY))
		if (!add_rule(reader, event, property, start))
			return false;
	return true;
}

/* Dates on which it takes place besides, of which some are periods with a length of theirs */
static bool add_dates(struct reader *reader, const struct event *event, icalcomponent *component)
{
	icalproperty *property;

	for (property = icalcomponent_get_first_property(component, ICAL_RDATE_PROPERTY); property;
	     property = icalcomponent_get_next_property(component, ICAL_RDATE_PROPERTY)) {
		struct icaldatetimeperiodtype rdate = icalproperty_get_rdate(property);
		bool period = !icalperiodtype_is_null_period(rdate.period);
		struct event one = *event;
		struct moment moment, end;

		if (!take_moment(reader, property,
				 period ? rdate.period.start : rdate.time, &moment))
			return false;
		end = moment;
		if (period && !icaltime_is_null_time(rdate.period.end)) {
			if (!take_moment(reader, property, rdate.period.end, &end))
				return false;
		} else if (period) {
			end.clock += icaldurationtype_as_int(rdate.period.duration);
		}
		if (period)
			one.length = length_of(&moment, &end);
		if (moment.date == event->start.date && !add(reader, &one, &moment))
			return false;
	}
	return true;
}

/* libical puts a comment in place of what it does not understand. */
static bool check_errors(struct reader *reader, icalcomponent *component)
{
	static const char * const needed[] = {
		"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID",
	};
	icalproperty *property;

	for (property = icalcomponent_get_first_property(component, ICAL_XLICERROR_PROPERTY);
	     property;
	     property = icalcomponent_get_next_property(component, ICAL_XLICERROR_PROPERTY)) {
		const char *text = icalproperty_get_xlicerror(property);

		for (size_t i = 0; text && i < G_N_ELEMENTS(needed); i++)
			if (strstr(text, needed[i]))
				return dates_wrong(reader->error, reader->line,
						       "the %s of the event can't be understood",
						       needed[i]);
	}
	return true;
}

static bool is_cancelled(icalcomponent *component)
{
	return icalcomponent_get_status(component) == ICAL_STATUS_CANCELLED;
}

static bool add_parts(struct reader *reader, icalcomponent *component, struct event *event)
{
	icalproperty *property =
		icalcomponent_get_first_property(component, ICAL_DTSTART_PROPERTY);
	struct icaltimetype start;

	if (!property)
		return wrong(reader, "the event has no DTSTART");
	start = icalproperty_get_dtstart(property);
	return take_moment(reader, property, start, &event->start) &&
		take_length(reader, component, event) &&
		take_left_out(reader, component, event) &&
		add_rules(reader, event, component, start) &&
		add_dates(reader, event, component);
}

static bool add_event(struct reader *reader, icalcomponent *component)
{
	struct event event = {
		.left_out_dates = g_array_new(FALSE, FALSE, sizeof(gint64)),
		.left_out_times = g_array_new(FALSE, FALSE, sizeof(gint64)),
	};
	bool fine;

	/* What has its own event is not left out there. */
	if (!icalcomponent_get_first_property(component, ICAL_RECURRENCEID_PROPERTY))
		event.uid = icalcomponent_get_uid(component);
	fine = is_cancelled(component) ||
		(check_errors(reader, component) && add_parts(reader, component, &event));
	g_array_unref(event.left_out_dates);
	g_array_unref(event.left_out_times);
	return fine;
}

static bool note_moved(struct reader *reader, icalcomponent *component)
{
	icalproperty *property =
		icalcomponent_get_first_property(component, ICAL_RECURRENCEID_PROPERTY);
	const char *uid = icalcomponent_get_uid(component);
	struct moment moment;

	if (!property || !uid)
		return true;
	if (!take_moment(reader, property, icalproperty_get_recurrenceid(property), &moment))
		return false;
	g_hash_table_add(reader->moved, name_moved(uid, &moment));
	return true;
}

typedef bool (*visit_fn)(struct reader *reader, icalcomponent *component);

static bool visit(struct reader *reader, const char *begin, const char *end, visit_fn fn)
{
	icalcomponent *component = NULL;
	bool fine;

	if (end - begin <= EVENT_MOST) {
		char *text = g_strndup(begin, end - begin);

		component = icalparser_parse_string(text);
		g_free(text);
	}
	fine = component && icalcomponent_isa(component) == ICAL_VEVENT_COMPONENT ?
		fn(reader, component) :
		wrong(reader, "the event can't be understood, or is longer than 64 KB");
	if (component)
		icalcomponent_free(component);
	icalmemory_free_ring();
	return fine;
}

static bool is_line(const char *line, const char *word)
{
	size_t length = strlen(word);

	return !strncasecmp(line, word, length) && strchr("\r\n", line[length]);
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

static bool each_event(struct reader *reader, const char *text, visit_fn fn)
{
	const char *begin = NULL;

	for (size_t number = 1; *text; text = next_line(text), number++) {
		if (is_line(text, "BEGIN:VEVENT")) {
			reader->line = number;
			begin = text;
		} else if (begin && is_line(text, "END:VEVENT")) {
			if (!visit(reader, begin, next_line(text), fn))
				return false;
			begin = NULL;
		}
	}
	return !begin || wrong(reader, "the event has no end");
}

static const char *skip_mark(const char *text)
{
	return strncmp(text, "\xef\xbb\xbf", 3) ? text : text + 3;
}

static bool read_all(struct reader *reader, const char *text)
{
	if (!is_line(skip_mark(text), "BEGIN:VCALENDAR"))
		return dates_wrong(reader->error, 1, "a file .ics begins with BEGIN:VCALENDAR");
	return each_event(reader, text, note_moved) && each_event(reader, text, add_event);
}

static void release(void *zone)
{
	zone_put(zone);
}

/**
 * ics_read - add the times of all events of a calendar
 * @text: the calendar
 * @zone: where its days are, and times that say no zone
 *
 * What is cancelled is not added; what does not make busy is, as most holidays are so.
 *
 * Return: false if something is wrong; @error says what.
 */
bool ics_read(struct spans *times, const char *text, const struct zone *zone,
	      struct dates_error *error)
{
	struct reader reader = {
		.times = times, .zone = zone, .error = error,
		.zones = g_ptr_array_new_with_free_func(release),
		.moved = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
	};
	bool fine;

	icalerror_set_errors_are_fatal(0);
	fine = read_all(&reader, text);
	g_hash_table_unref(reader.moved);
	g_ptr_array_unref(reader.zones);
	return fine;
}
