// SPDX-License-Identifier: GPL-2.0
/*
 * The zones that a calendar in the .ics format names: of the zone database, by a name of Windows,
 * for which ICU has the table of CLDR, or defined in the file itself.
 *
 * The database goes first: it has all changes, where a file has the rules of one year.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unicode/ucal.h>
#include <unicode/ustring.h>

#include "when/ics_zones.h"
#include "when/repeat.h"

#define LAST_DAY (ZONE_END / DAY_SECONDS)
#define NAME_MOST 100
#define RULES_BEGIN (-10 * 365)
/* The most changes of a zone; zones of the database have a few hundred */
#define CHANGES_MOST 10000

struct ics_zones {
	GHashTable *found;	/* struct zone, by the name that the file has */
	GHashTable *defined;
	GHashTable *wrong;	/* mistakes in zones that the file defines, by name */
	bool unread;		/* a definition was too long, or none */
};

/* A part of a definition, STANDARD or DAYLIGHT */
struct observance {
	GArray *changes;	/* struct zone_change */
	int64_t clock, from, to;	/* the time of the day, and the offsets before and after */
	int64_t before;		/* the offset before the first change, which is there at: */
	int64_t first;
};

static void ics_zone_put(void *zone)
{
	zone_put(zone);
}

struct ics_zones *ics_zones_new(void)
{
	struct ics_zones *zones = g_new0(struct ics_zones, 1);

	zones->found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, ics_zone_put);
	zones->defined = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, ics_zone_put);
	zones->wrong = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return zones;
}

void ics_zones_free(struct ics_zones *zones)
{
	g_hash_table_unref(zones->found);
	g_hash_table_unref(zones->defined);
	g_hash_table_unref(zones->wrong);
	g_free(zones);
}

/* "W. Europe Standard Time" */
static struct zone *find_windows(const char *name)
{
	UErrorCode status = U_ZERO_ERROR;
	UChar wide[NAME_MOST], id[NAME_MOST];
	char text[NAME_MOST];
	size_t length = strlen(name);
	int32_t got;

	if (length >= NAME_MOST || !g_str_is_ascii(name))
		return NULL;
	u_uastrcpy(wide, name);
	got = ucal_getTimeZoneIDForWindowsID(wide, length, NULL, id, NAME_MOST - 1, &status);
	if (U_FAILURE(status) || got <= 0 || got >= NAME_MOST)
		return NULL;
	id[got] = 0;
	u_austrcpy(text, id);
	return zone_get(text);
}

/* Find a zone by its name, or by the part after a slash: /example.org/Europe/Berlin */
static struct zone *find_in_database(const char *name)
{
	struct zone *zone = zone_get(name);

	while (!zone && (name = strchr(name, '/')))
		zone = zone_get(++name);
	return zone;
}

/**
 * ics_zones_find - the zone that a TZID names
 *
 * Return: the zone, which is there until ics_zones_free(); NULL if there is none.
 */
const struct zone *ics_zones_find(struct ics_zones *zones, const char *name)
{
	struct zone *zone = g_hash_table_lookup(zones->found, name);

	if (zone)
		return zone;
	zone = strlen(name) < NAME_MOST ? find_in_database(name) : NULL;
	if (!zone)
		zone = find_windows(name);
	if (!zone)
		return g_hash_table_lookup(zones->defined, name);
	g_hash_table_insert(zones->found, g_strdup(name), zone);
	return zone;
}

/** ics_zones_wrong - the mistake in a zone that the file defines; NULL: it does not define it */
const char *ics_zones_wrong(const struct ics_zones *zones, const char *name)
{
	const char *why = g_hash_table_lookup(zones->wrong, name);

	return why || !zones->unread ? why :
		"a VTIMEZONE of the file can't be understood, or is longer than 64 KB";
}

/**
 * ics_misunderstood - which property of an event, or of a zone, could not be understood?
 *
 * libical puts a comment in place of a property that it does not understand, and drops an empty
 * one.
 *
 * Return: its name, if it matters, or NULL.
 */
const char *ics_misunderstood(icalcomponent *component)
{
	static const char * const needed[] = {
		"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "EXRULE",
		"RECURRENCE-ID", "TZOFFSETFROM", "TZOFFSETTO",
	};
	icalproperty *property;

	for (property = ics_first(component, ICAL_XLICERROR_PROPERTY); property;
	     property = ics_next(component, ICAL_XLICERROR_PROPERTY)) {
		const char *text = icalproperty_get_xlicerror(property);

		if (!text || !strncmp(text, "No value for", strlen("No value for")))
			continue;
		for (size_t i = 0; i < G_N_ELEMENTS(needed); i++)
			if (strstr(text, needed[i]))
				return needed[i];
	}
	return NULL;
}

/** ics_clock - the seconds since 1970 that a clock shows */
int64_t ics_clock(struct icaltimetype time)
{
	struct tm tm = {
		.tm_year = time.year - 1900, .tm_mon = time.month - 1, .tm_mday = time.day,
		.tm_hour = time.hour, .tm_min = time.minute, .tm_sec = time.second,
	};

	return timegm(&tm);
}

static bool add_change(void *arg, int64_t day)
{
	struct observance *part = arg;
	struct zone_change change = { day * DAY_SECONDS + part->clock - part->from, part->to };

	if (part->changes->len >= CHANGES_MOST)
		return false;
	g_array_append_val(part->changes, change);
	if (change.start < part->first) {
		part->first = change.start;
		part->before = part->from;
	}
	return true;
}

/* The last day of a rule, whose UNTIL is UTC or a date */
static int64_t last_day(const struct observance *part, struct icaltimetype until)
{
	int64_t clock;

	if (icaltime_is_null_time(until))
		return LAST_DAY;
	clock = ics_clock(until);
	if (until.is_date)
		clock += DAY_SECONDS - 1;
	else if (icaltime_is_utc(until))
		clock += part->from;
	return MIN(day_of(clock - part->clock), LAST_DAY);
}

/* The same day in 1960: Outlook's zones begin in 1601, and only years from 1970 on matter. */
static int64_t same_day(int64_t day)
{
	time_t seconds = day * DAY_SECONDS;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	tm.tm_year = 60;
	return timegm(&tm) / DAY_SECONDS;
}

static const char *add_rules(struct observance *part, icalcomponent *component, int64_t start,
			     int64_t *left)
{
	icalproperty *property = ics_first(component, ICAL_RRULE_PROPERTY);

	if (!property)
		add_change(part, start);
	for (; property;
	     property = ics_next(component, ICAL_RRULE_PROPERTY)) {
		struct icalrecurrencetype rule = icalproperty_get_rrule(property);
		const char *why = repeat_check(&rule);

		if (why)
			return why;
		if (start < RULES_BEGIN && rule.interval == 1 && !rule.count &&
		    rule.freq == ICAL_YEARLY_RECURRENCE)
			start = same_day(start);
		if (!repeat_each(&rule, start, last_day(part, rule.until), left, add_change, part))
			return "the rules of its VTIMEZONE repeat too often";
	}
	return NULL;
}

static const char *add_part(struct observance *part, icalcomponent *component, int64_t *left)
{
	icalproperty *start = ics_first(component, ICAL_DTSTART_PROPERTY);
	icalproperty *from = ics_first(component, ICAL_TZOFFSETFROM_PROPERTY);
	icalproperty *to = ics_first(component, ICAL_TZOFFSETTO_PROPERTY);
	struct icaltimetype time;
	const char *why;

	if (ics_misunderstood(component))
		return "a property of its VTIMEZONE can't be understood";
	if (!start || !from || !to)
		return "its VTIMEZONE lacks DTSTART, TZOFFSETFROM or TZOFFSETTO";
	time = icalproperty_get_dtstart(start);
	part->from = icalproperty_get_tzoffsetfrom(from);
	part->to = icalproperty_get_tzoffsetto(to);
	if (time.year < 1 || time.year > 2199 || time.month < 1 || time.month > 12 ||
	    llabs(part->from) > DAY_SECONDS || llabs(part->to) > DAY_SECONDS)
		return "its VTIMEZONE has a time or an offset that can't be";
	part->clock = ics_clock(time) - day_of(ics_clock(time)) * DAY_SECONDS;
	why = add_rules(part, component, day_of(ics_clock(time)), left);
	if (why)
		return why;
	for (icalproperty *more = ics_first(component, ICAL_RDATE_PROPERTY); more;
	     more = ics_next(component, ICAL_RDATE_PROPERTY)) {
		time = icalproperty_get_rdate(more).time;
		if (time.year < 1 || time.year > 2199 || time.month < 1 || time.month > 12)
			return "its VTIMEZONE has an RDATE that can't be";
		part->clock = ics_clock(time) - day_of(ics_clock(time)) * DAY_SECONDS;
		add_change(part, day_of(ics_clock(time)));
	}
	return NULL;
}

static gint ics_zone_compare(gconstpointer a, gconstpointer b)
{
	const struct zone_change *one = a, *other = b;

	return (one->start > other->start) - (one->start < other->start);
}

static const char *define(struct ics_zones *zones, const char *name, icalcomponent *component,
			  int64_t *left)
{
	struct observance part = {
		.changes = g_array_new(FALSE, FALSE, sizeof(struct zone_change)),
		.first = INT64_MAX,
	};
	icalcomponent *inner;
	const char *why = NULL;
	struct zone *zone;

	for (inner = icalcomponent_get_first_component(component, ICAL_ANY_COMPONENT);
	     inner && !why;
	     inner = icalcomponent_get_next_component(component, ICAL_ANY_COMPONENT))
		if (icalcomponent_isa(inner) == ICAL_XSTANDARD_COMPONENT ||
		    icalcomponent_isa(inner) == ICAL_XDAYLIGHT_COMPONENT)
			why = add_part(&part, inner, left);
	g_array_sort(part.changes, ics_zone_compare);
	if (!why && !part.changes->len)
		why = "its VTIMEZONE has neither STANDARD nor DAYLIGHT";
	zone = why ? NULL : zone_made((struct zone_change *)part.changes->data, part.changes->len,
				      part.before);
	if (zone)
		g_hash_table_insert(zones->defined, g_strdup(name), zone);
	g_array_unref(part.changes);
	return why;
}

/**
 * ics_zones_define - take a zone that the file defines
 * @component: a VTIMEZONE; NULL: one that can't be understood
 * @left: as for repeat_each()
 *
 * A mistake in it matters only if an event needs the zone: ics_zones_wrong() has it then.
 */
void ics_zones_define(struct ics_zones *zones, icalcomponent *component, int64_t *left)
{
	icalproperty *property = component ?
		icalcomponent_get_first_property(component, ICAL_TZID_PROPERTY) : NULL;
	const char *name = property ? icalproperty_get_tzid(property) : NULL;
	const char *why;

	if (!name) {
		zones->unread = true;
		return;
	}
	why = define(zones, name, component, left);
	if (why)
		g_hash_table_insert(zones->wrong, g_strdup(name), (void *)why);
}
