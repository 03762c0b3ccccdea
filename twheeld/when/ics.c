// SPDX-License-Identifier: GPL-2.0
/*
 * The times of the events of a calendar in the .ics format, RFC 5545.
 *
 * libical takes an event apart. repeat.h finds the days of a rule, and ics_zones.h the zones, as
 * libical 3.0 is wrong in some rules, and on the day after a gap.
 *
 * libical gets one event at a time, cut out of the text. So a mistake has a line, an event has a
 * longest size, and nothing can be nested deeply.
 *
 * Values need not have the type of DTSTART, as programs write them otherwise. A date stands for a
 * day on the event's clock. A time of an event of days stands for its date. A time that says no
 * zone is on the event's clock.
 */
#include <glib.h>
#include <libical/ical.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "when/ics.h"
#include "when/ics_zones.h"
#include "when/repeat.h"

#define EVENT_MOST (64 << 10)
#define FIRST_YEAR 1900
#define LAST_YEAR 2199
/* 2099-12-31: the last day on which something is repeated */
#define LAST_REPEATED 47481

/* A time in an event, on a clock; for a date, its midnight */
struct moment {
	bool date, floating;
	int64_t clock;
	const struct zone *zone;	/* NULL: UTC */
};

/* An event's length: its days are days of the clock, which may have more or less than 24 hours */
struct length {
	int64_t days, seconds;		/* a date's length has days alone */
};

struct event {
	struct moment start;
	struct length length;
	/* EXDATE: days, times, and times on the clock of an event without a zone */
	GArray *days, *times, *clocks;
};

struct reader {
	struct spans *times;
	const struct zone *zone;	/* of dates, and of times without a zone */
	struct ics_zones *zones;
	GHashTable *moved;		/* by UID: repetitions that have an event of their own */
	size_t line;			/* where the event begins */
	size_t events;
	int64_t days_left;		/* that repeat_each() may look at */
	struct dates_error *error;
};

/* For the callback of repeat_each() */
struct repetition {
	struct reader *reader;
	struct event *event;
	size_t count;
};

static bool ics_wrong(struct reader *reader, const char *what)
{
	return dates_wrong(reader->error, reader->line, "%s", what);
}

static bool take_zone(struct reader *reader, const char *name, const struct zone **zone)
{
	const char *why;

	*zone = ics_zones_find(reader->zones, name);
	if (*zone)
		return true;
	why = ics_zones_wrong(reader->zones, name);
	return dates_wrong(reader->error, reader->line,
			   "the zone '%.60s' is not in the zone database, and %s", name,
			   why ? why : "the file does not define it");
}

/* @start: the event's start, whose clock a time without a zone has; NULL: it is not known yet */
static bool take_moment(struct reader *reader, icalproperty *property, struct icaltimetype time,
			const struct moment *start, struct moment *moment)
{
	icalparameter *tzid = icalproperty_get_first_parameter(property, ICAL_TZID_PARAMETER);

	if (time.year < FIRST_YEAR || time.year > LAST_YEAR || time.month < 1 || time.month > 12)
		return ics_wrong(reader, "the event has a time before 1900 or after 2199");
	if (time.day < 1 || time.day > icaltime_days_in_month(time.month, time.year) ||
	    (!time.is_date && (time.hour > 24 || time.minute > 59 || time.second > 60)))
		return ics_wrong(reader,
				 "the event has a date, or a time of the day, that never is");
	*moment = (struct moment){ .date = time.is_date, .clock = ics_clock(time) };
	moment->zone = start && !start->date ? start->zone : reader->zone;
	if (time.is_date)
		return true;
	moment->floating = !tzid && !icaltime_is_utc(time);
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

/* The date that a moment stands for: some programs write midnight in UTC for a date. */
static int64_t date_of(const struct reader *reader, const struct moment *moment)
{
	if (!moment->date && !moment->zone && moment->clock % DAY_SECONDS)
		return day_of(zone_clock(reader->zone, moment->clock));
	return day_of(moment->clock);
}

/* An event with DTEND lasts for that time; in a DURATION, days are days of the clock. */
static struct length length_to(const struct moment *start, const struct moment *end)
{
	if (start->date)
		return (struct length){ MAX(day_of(end->clock) - day_of(start->clock), 1), 0 };
	return (struct length){ 0, time_of(end) - time_of(start) };
}

static struct length length_of(const struct moment *start, struct icaldurationtype duration)
{
	int64_t sign = duration.is_neg ? -1 : 1;
	int64_t days = 7LL * duration.weeks + duration.days;
	int64_t seconds = 3600LL * duration.hours + 60LL * duration.minutes + duration.seconds;

	if (start->date)
		return (struct length){ MAX(sign * (days + seconds / DAY_SECONDS), 1), 0 };
	return (struct length){ sign * days, sign * seconds };
}

static bool take_length(struct reader *reader, icalcomponent *component, struct event *event)
{
	icalproperty *end = ics_first(component, ICAL_DTEND_PROPERTY);
	icalproperty *duration = ics_first(component, ICAL_DURATION_PROPERTY);
	struct moment moment = event->start;

	if (end && !take_moment(reader, end, icalproperty_get_dtend(end), &event->start, &moment))
		return false;
	if (!end && duration)
		event->length = length_of(&event->start, icalproperty_get_duration(duration));
	else
		event->length = length_to(&event->start, &moment);
	return true;
}

static gint ics_compare(gconstpointer a, gconstpointer b)
{
	gint64 one = *(const gint64 *)a, other = *(const gint64 *)b;

	return (one > other) - (one < other);
}

static bool is_in(GArray *array, gint64 value)
{
	return g_array_binary_search(array, &value, ics_compare, NULL);
}

static bool is_left_out(const struct event *event, const struct moment *moment)
{
	return is_in(event->days, day_of(moment->clock)) ||
		(!moment->date && (is_in(event->times, time_of(moment)) ||
				   is_in(event->clocks, moment->clock)));
}

/* Add a repetition of an event */
static bool ics_add(struct reader *reader, const struct event *event, const struct moment *moment)
{
	struct moment end = *moment;
	bool added;

	if (is_left_out(event, moment))
		return true;
	end.clock += event->length.days * DAY_SECONDS;
	added = moment->date ?
		spans_add_days(reader->times, reader->zone, day_of(moment->clock),
			       event->length.days) :
		spans_add(reader->times, time_of(moment), time_of(&end) + event->length.seconds);
	return added || ics_wrong(reader, "the events leave out more than 500,000 times");
}

static void leave_out(const struct reader *reader, struct event *event, struct moment moment)
{
	gint64 value;

	if (moment.floating && !event->start.date)
		moment.zone = event->start.zone;
	if (moment.date || event->start.date) {
		value = date_of(reader, &moment);
		g_array_append_val(event->days, value);
		return;
	}
	value = time_of(&moment);
	g_array_append_val(event->times, value);
	if (event->start.floating && !moment.floating)
		g_array_append_val(event->clocks, moment.clock);
}

static bool take_exdates(struct reader *reader, icalcomponent *component, struct event *event)
{
	struct moment moment;

	for (icalproperty *property = ics_first(component, ICAL_EXDATE_PROPERTY); property;
	     property = ics_next(component, ICAL_EXDATE_PROPERTY)) {
		if (!take_moment(reader, property, icalproperty_get_exdate(property),
				 &event->start, &moment))
			return false;
		leave_out(reader, event, moment);
	}
	return true;
}

static void take_moved(const struct reader *reader, icalcomponent *component, struct event *event)
{
	const char *uid = icalcomponent_get_uid(component);
	GArray *moved = uid ? g_hash_table_lookup(reader->moved, uid) : NULL;

	for (guint i = 0; moved && i < moved->len; i++)
		leave_out(reader, event, g_array_index(moved, struct moment, i));
}

/* The last day of a rule: UNTIL is on the event's clock, or UTC, or a date. */
static int64_t last_day(const struct icalrecurrencetype *rule, const struct moment *start)
{
	int64_t clock, time = start->clock - day_of(start->clock) * DAY_SECONDS;

	if (icaltime_is_null_time(rule->until))
		return LAST_REPEATED;
	clock = ics_clock(rule->until);
	if (rule->until.is_date)
		clock += DAY_SECONDS - 1;
	else if (icaltime_is_utc(rule->until) && start->zone && !start->date)
		clock = zone_clock(start->zone, clock);
	return MIN(day_of(clock - time), LAST_REPEATED);
}

static struct moment repeated(const struct event *event, int64_t day)
{
	struct moment moment = event->start;

	moment.clock += (day - day_of(moment.clock)) * DAY_SECONDS;
	return moment;
}

static bool add_day(void *arg, int64_t day)
{
	struct repetition *repetition = arg;
	struct moment moment = repeated(repetition->event, day);

	repetition->count++;
	return ics_add(repetition->reader, repetition->event, &moment);
}

static bool leave_out_day(void *arg, int64_t day)
{
	struct repetition *repetition = arg;

	struct event *event = repetition->event;

	if (event->days->len + event->times->len >= TIMES_MOST)
		return ics_wrong(repetition->reader,
				 "the event has too many times that are left out");
	leave_out(repetition->reader, event, repeated(event, day));
	return true;
}

static bool take_rule(struct reader *reader, struct event *event,
		      const struct icalrecurrencetype *rule,
		      bool (*each)(void *arg, int64_t day), size_t *count)
{
	struct repetition repetition = { reader, event, 0 };
	const char *why = repeat_check(rule);
	bool fine;

	if (why)
		return ics_wrong(reader, why);
	fine = repeat_each(rule, day_of(event->start.clock), last_day(rule, &event->start),
			   &reader->days_left, each, &repetition);
	*count = repetition.count;
	return fine || (reader->days_left < 0 ?
			ics_wrong(reader, "too many events repeat for too long") : false);
}

static bool add_rules(struct reader *reader, struct event *event, icalcomponent *component)
{
	if (!ics_first(component, ICAL_RRULE_PROPERTY))
		return ics_add(reader, event, &event->start);
	for (icalproperty *property = ics_first(component, ICAL_RRULE_PROPERTY); property;
	     property = ics_next(component, ICAL_RRULE_PROPERTY)) {
		struct icalrecurrencetype rule = icalproperty_get_rrule(property);
		size_t count;

		if (!take_rule(reader, event, &rule, add_day, &count))
			return false;
		/*
		 * Google writes an UNTIL before DTSTART for an event that does not take place any
		 * more.
		 */
		if (!count && last_day(&rule, &event->start) >= day_of(event->start.clock))
			return ics_wrong(reader, "the event repeats, but never takes place");
	}
	return true;
}

static bool take_exrules(struct reader *reader, icalcomponent *component, struct event *event)
{
	for (icalproperty *property = ics_first(component, ICAL_EXRULE_PROPERTY); property;
	     property = ics_next(component, ICAL_EXRULE_PROPERTY)) {
		struct icalrecurrencetype rule = icalproperty_get_exrule(property);
		size_t count;

		if (!take_rule(reader, event, &rule, leave_out_day, &count))
			return false;
	}
	return true;
}

/* A date on which the event takes place besides, or a period with a length of its own */
static bool add_date(struct reader *reader, const struct event *event, icalproperty *property)
{
	struct icaldatetimeperiodtype rdate = icalproperty_get_rdate(property);
	bool period = !icalperiodtype_is_null_period(rdate.period);
	struct event one = *event;
	struct moment moment, end;

	if (!take_moment(reader, property, period ? rdate.period.start : rdate.time,
			 &event->start, &moment))
		return false;
	if (period && !icaltime_is_null_time(rdate.period.end)) {
		if (!take_moment(reader, property, rdate.period.end, &event->start, &end))
			return false;
		one.length = length_to(&moment, &end);
	} else if (period) {
		one.length = length_of(&moment, rdate.period.duration);
	} else if (event->start.date) {
		moment = repeated(event, date_of(reader, &moment));
	} else if (moment.date) {
		one.length = (struct length){ 1, 0 };
	}
	return ics_add(reader, &one, &moment);
}

static bool add_dates(struct reader *reader, const struct event *event, icalcomponent *component)
{
	for (icalproperty *property = ics_first(component, ICAL_RDATE_PROPERTY); property;
	     property = ics_next(component, ICAL_RDATE_PROPERTY))
		if (!add_date(reader, event, property))
			return false;
	return true;
}

static bool check_errors(struct reader *reader, icalcomponent *component)
{
	const char *name = ics_misunderstood(component);

	return !name || dates_wrong(reader->error, reader->line,
				    "the %s of the event can't be understood", name);
}

static bool is_cancelled(icalcomponent *component)
{
	return icalcomponent_get_status(component) == ICAL_STATUS_CANCELLED;
}

static void sort(struct event *event)
{
	g_array_sort(event->days, ics_compare);
	g_array_sort(event->times, ics_compare);
	g_array_sort(event->clocks, ics_compare);
}

/* An event with a RECURRENCE-ID is one repetition of another event, whatever rule it has. */
static bool add_parts(struct reader *reader, icalcomponent *component, struct event *event)
{
	icalproperty *property = ics_first(component, ICAL_DTSTART_PROPERTY);

	if (!property)
		return ics_wrong(reader, "the event has no DTSTART");
	if (!take_moment(reader, property, icalproperty_get_dtstart(property), NULL,
			 &event->start) ||
	    !take_length(reader, component, event))
		return false;
	if (ics_first(component, ICAL_RECURRENCEID_PROPERTY))
		return ics_add(reader, event, &event->start);
	if (!take_exdates(reader, component, event) || !take_exrules(reader, component, event))
		return false;
	take_moved(reader, component, event);
	sort(event);
	return add_rules(reader, event, component) && add_dates(reader, event, component);
}

static bool add_event(struct reader *reader, icalcomponent *component)
{
	struct event event = {
		.days = g_array_new(FALSE, FALSE, sizeof(gint64)),
		.times = g_array_new(FALSE, FALSE, sizeof(gint64)),
		.clocks = g_array_new(FALSE, FALSE, sizeof(gint64)),
	};
	bool fine;

	reader->events++;
	fine = is_cancelled(component) ||
		(check_errors(reader, component) && add_parts(reader, component, &event));
	g_array_unref(event.days);
	g_array_unref(event.times);
	g_array_unref(event.clocks);
	return fine;
}

static void free_array(void *array)
{
	g_array_unref(array);
}

static bool note_moved(struct reader *reader, icalcomponent *component)
{
	icalproperty *property = ics_first(component, ICAL_RECURRENCEID_PROPERTY);
	const char *uid = icalcomponent_get_uid(component);
	struct moment moment;
	GArray *moved;

	if (!property)
		return true;
	if (icalproperty_get_first_parameter(property, ICAL_RANGE_PARAMETER))
		return ics_wrong(reader,
			     "RANGE=THISANDFUTURE, a change of all later repetitions, is not understood");
	if (!take_moment(reader, property, icalproperty_get_recurrenceid(property), NULL, &moment))
		return false;
	moved = uid ? g_hash_table_lookup(reader->moved, uid) : NULL;
	if (uid && !moved) {
		moved = g_array_new(FALSE, FALSE, sizeof(moment));
		g_hash_table_insert(reader->moved, g_strdup(uid), moved);
	}
	if (uid)
		g_array_append_val(moved, moment);
	return true;
}

static bool define_zone(struct reader *reader, icalcomponent *component)
{
	ics_zones_define(reader->zones, component, &reader->days_left);
	return true;
}

/* A component to look for in the text, and its handler */
struct visit {
	const char *begin, *end;
	icalcomponent_kind kind;
	bool (*fn)(struct reader *reader, icalcomponent *component);
};

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

/*
 * Are the numbers of a rule too long? libical has 16 bits for most, 32 for COUNT, and drops the
 * rest. A line may go on after its end and a blank.
 */
static bool is_rule_long(const char *line)
{
	unsigned int digits = 0;
	char key = 0, before = 0;

	for (; *line && (*line != '\n' || strchr(" \t", line[1])); line++) {
		if (*line == '\n' && line[1]) {
			line++;
			continue;
		}
		if (*line == '\r')
			continue;
		if (before == ';' || before == ':')
			key = g_ascii_toupper(*line);
		before = *line;
		digits = g_ascii_isdigit(*line) ? digits + 1 : 0;
		if (digits > (key == 'C' ? 9 : 4) && key != 'U')
			return true;
	}
	return false;
}

/* Is it like TZOFFSETTO:-0330? libical takes another word for 0, and 99 hours for 23. */
static bool is_offset(const char *line)
{
	unsigned int hours, minutes;

	line += strcspn(line, ":\r\n");
	return *line == ':' && *++line && strchr("+-", *line) &&
		strspn(line + 1, "0123456789") >= 4 &&
		sscanf(line + 1, "%2u%2u", &hours, &minutes) == 2 &&
		hours <= 23 && minutes <= 59;
}

static bool begins(const char *line, const char *word)
{
	return !strncasecmp(line, word, strlen(word));
}

/* Mistakes that libical takes for something else, without a word */
static bool is_misread(const char *text)
{
	for (; *text; text = next_line(text))
		if ((begins(text, "RRULE") || begins(text, "EXRULE")) ? is_rule_long(text) :
		    begins(text, "TZOFFSET") && !is_offset(text))
			return true;
	return false;
}

static bool visit(struct reader *reader, const char *begin, const char *end,
		  const struct visit *how)
{
	bool zone = how->kind == ICAL_VTIMEZONE_COMPONENT, fine, misread = false;
	icalcomponent *component = NULL;

	if (end - begin <= EVENT_MOST) {
		char *text = g_strndup(begin, end - begin);

		misread = is_misread(text);
		component = misread ? NULL : icalparser_parse_string(text);
		g_free(text);
	}
	if (component && icalcomponent_isa(component) == how->kind)
		fine = how->fn(reader, component);
	else if (zone)
		fine = define_zone(reader, NULL);
	else
		fine = ics_wrong(reader, misread ?
			     "a rule has a number of more than 4 digits, or 9 in COUNT" :
			     "the event can't be understood, or is longer than 64 KB");
	if (component)
		icalcomponent_free(component);
	icalmemory_free_ring();
	return fine;
}

static bool is_line(const char *line, const char *word)
{
	size_t length = strlen(word);

	return !strncasecmp(line, word, length) &&
		strchr("\r\n", line[length + strspn(line + length, " \t")]);
}

static bool each(struct reader *reader, const char *text, const struct visit *how)
{
	const char *begin = NULL;

	for (size_t number = 1; *text; text = next_line(text), number++) {
		if (is_line(text, how->begin)) {
			if (begin && how->kind == ICAL_VEVENT_COMPONENT)
				break;
			reader->line = number;
			begin = text;
		} else if (begin && is_line(text, how->end)) {
			if (!visit(reader, begin, next_line(text), how))
				return false;
			begin = NULL;
		}
	}
	return !begin || ics_wrong(reader, "the event has no end");
}

static const char *skip_mark(const char *text)
{
	return strncmp(text, "\xef\xbb\xbf", 3) ? text : text + 3;
}

/* Does the text end as a calendar does? A file that broke off does not. */
static bool has_end(const char *text)
{
	const char *last = text;

	for (; *text; text = next_line(text))
		if (!strchr("\r\n", text[strspn(text, " \t")]))
			last = text;
	return is_line(last, "END:VCALENDAR");
}

static bool ics_read_all(struct reader *reader, const char *text)
{
	static const struct visit zones = {
		"BEGIN:VTIMEZONE", "END:VTIMEZONE", ICAL_VTIMEZONE_COMPONENT, define_zone,
	}, moved = {
		"BEGIN:VEVENT", "END:VEVENT", ICAL_VEVENT_COMPONENT, note_moved,
	}, events = {
		"BEGIN:VEVENT", "END:VEVENT", ICAL_VEVENT_COMPONENT, add_event,
	};

	if (!is_line(skip_mark(text), "BEGIN:VCALENDAR"))
		return dates_wrong(reader->error, 1, "a file .ics begins with BEGIN:VCALENDAR");
	if (!each(reader, text, &zones) || !each(reader, text, &moved) ||
	    !each(reader, text, &events))
		return false;
	if (!has_end(text))
		return dates_wrong(reader->error, 0,
				   "it does not end with END:VCALENDAR: did a download break off?");
	return reader->events || dates_wrong(reader->error, 0, "there is no event in it");
}

/**
 * ics_read - add the times of all events of a calendar
 * @text: the calendar
 * @zone: for its days, and for times without a zone
 *
 * A cancelled event is not added; one that does not make busy is, as most holidays are.
 *
 * Return: false if something is wrong; @error says what.
 */
bool ics_read(struct spans *times, const char *text, const struct zone *zone,
	      struct dates_error *error)
{
	struct reader reader = {
		.times = times, .zone = zone, .error = error, .days_left = REPEAT_DAYS_MOST,
		.zones = ics_zones_new(),
		.moved = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_array),
	};
	bool fine;

	icalerror_set_errors_are_fatal(0);
	fine = ics_read_all(&reader, text);
	g_hash_table_unref(reader.moved);
	ics_zones_free(reader.zones);
	return fine;
}
