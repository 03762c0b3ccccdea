// SPDX-License-Identifier: GPL-2.0
/*
 * Zones: how far their clocks are from UTC, and since when. GLib reads the zone database.
 *
 * To ask GLib for the offset of a time takes as long as all else of a calendar. So each zone
 * becomes a table once: 2 ms, and some KB.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "when/zone.h"

/* The database's files have all changes up to this time, and then a rule. */
#define RULE_BEGINS 2145916800LL
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+_/"

static struct zone *zones;

/* A name is that of a file, so that a mistake is not taken for a rule, like "Foo1". */
static FILE *open_file(const char *name)
{
	const char *dir = getenv("TZDIR");
	char path[300], magic[4];
	FILE *file;

	if (!*name || *name == '/' || name[strspn(name, NAME_CHARS)] ||
	    snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/usr/share/zoneinfo", name) >=
	    (int)sizeof(path))
		return NULL;
	file = fopen(path, "re");
	if (file && (fread(magic, 4, 1, file) != 1 || memcmp(magic, "TZif", 4))) {
		fclose(file);
		file = NULL;
	}
	return file;
}

/*
 * In a rule like IST-1GMT0,M10.5.0,M3.5.0/1, GLib takes the 0 for a missing offset, and puts one
 * hour more there. That is Europe/Dublin, whose normal time is in summer. Turned round, the rule
 * means the same, and GLib understands it.
 */
static GTimeZone *turned_rule(const char *name)
{
	char text[101] = "", normal[16], offset[16], other[16], begin[32], end[32], rule[120];
	FILE *file = open_file(name);

	if (!file)
		return NULL;
	if (fseek(file, -100, SEEK_END) == 0)
		text[fread(text, 1, 100, file)] = 0;
	fclose(file);
	/* Bytes of 0 stand before it. */
	char *line = memrchr(text, '\n', 99);

	if (!line || sscanf(line, "\n%15[A-Za-z]%15[-+0-9:]%15[A-Za-z]0,%31[^,],%31[^,\n]",
			    normal, offset, other, begin, end) != 5)
		return NULL;
	snprintf(rule, sizeof(rule), "%s0%s%s,%s,%s", other, normal, offset, end, begin);
	return g_time_zone_new_identifier(rule);
}

static int interval_at(GTimeZone *from, int64_t time)
{
	return g_time_zone_find_interval(from, G_TIME_TYPE_UNIVERSAL, time);
}

/* Make room for one more span; the room doubles each time. */
static bool zone_grow(struct zone *zone)
{
	struct zone_span *spans;

	if (zone->count & (zone->count - 1))
		return true;
	spans = realloc(zone->spans, (zone->count ? 2 * zone->count : 1) * sizeof(*spans));
	if (spans)
		zone->spans = spans;
	return spans;
}

static bool zone_add(struct zone *zone, int64_t start, int64_t offset)
{
	int64_t reached = INT64_MIN;

	if (zone->count) {
		const struct zone_span *last = &zone->spans[zone->count - 1];

		if (last->offset == offset)
			return true;
		reached = MAX(last->reached, start + last->offset);
	}
	if (!zone_grow(zone))
		return false;
	zone->spans[zone->count++] = (struct zone_span){ start, offset, reached };
	return true;
}

/* The changes after a time, up to another one */
static bool add_changes(struct zone *zone, GTimeZone *from, int64_t first, int64_t last)
{
	int64_t middle = first + (last - first) / 2;
	int end = interval_at(from, last);

	if (interval_at(from, first) == end)
		return true;
	if (last - first == 1)
		return zone_add(zone, last, g_time_zone_get_offset(from, end));
	return add_changes(zone, from, first, middle) && add_changes(zone, from, middle, last);
}

static bool add_all(struct zone *zone, GTimeZone *from, int64_t first, int64_t last)
{
	return zone_add(zone, first, g_time_zone_get_offset(from, interval_at(from, first))) &&
		add_changes(zone, from, first, last);
}

static bool zone_fill(struct zone *zone, GTimeZone *from)
{
	GTimeZone *rule = turned_rule(g_time_zone_get_identifier(from));
	bool done = add_all(zone, from, ZONE_FIRST, RULE_BEGINS - 1) &&
		add_all(zone, rule ? rule : from, RULE_BEGINS, ZONE_END);

	if (rule)
		g_time_zone_unref(rule);
	return done;
}

static void release(struct zone *zone)
{
	free(zone->name);
	free(zone->spans);
	free(zone);
}

static struct zone *build(const char *name, GTimeZone *from)
{
	struct zone *zone = calloc(1, sizeof(*zone));

	if (!zone)
		return NULL;
	zone->name = strdup(name ? name : "");
	if (!zone->name || !zone_fill(zone, from)) {
		release(zone);
		return NULL;
	}
	zone->digest = digest_numbers(zone->spans, zone->count * sizeof(*zone->spans));
	zone->users = 1;
	zone->next = zones;
	zones = zone;
	return zone;
}

/** zone_exists - is a name in the zone database? This is quick: no table is made. */
bool zone_exists(const char *name)
{
	FILE *file = open_file(name);

	if (file)
		fclose(file);
	return file;
}

/*
 * The zone of TZ, as for any program, or of /etc/localtime. A wrong one is an error, not UTC. GLib
 * keeps the first state of /etc/localtime, but not of a file of the database.
 */
static GTimeZone *machine_zone(void)
{
	const char *name = getenv("TZ");
	GTimeZone *kept = NULL, *from;

	if (name && *name == ':')
		name++;
	if (!name) {
		kept = g_time_zone_new_local();
		name = g_time_zone_get_identifier(kept);
		name = zone_exists(name) ? name : NULL;
	}
	from = g_time_zone_new_identifier(name && !*name ? "UTC" : name);
	if (kept)
		g_time_zone_unref(kept);
	return from;
}

/**
 * zone_get - a zone by its name in the zone database
 * @name: the name, or NULL: the zone of this machine, or that of the environment's TZ
 *
 * Until zone_forget(), the same name gives the same table. After it, a new version of the database
 * is read.
 *
 * Return: the zone, for zone_put(); NULL if there is none of this name, or no memory.
 */
struct zone *zone_get(const char *name)
{
	struct zone *zone;
	GTimeZone *from;

	/* The machine's zone is in the list as "". */
	if (name && !*name)
		return NULL;
	for (zone = zones; zone; zone = zone->next)
		if (!strcmp(zone->name, name ? name : "")) {
			zone->users++;
			return zone;
		}
	if (name && !zone_exists(name))
		return NULL;
	from = name ? g_time_zone_new_identifier(name) : machine_zone();
	if (!from)
		return NULL;
	zone = build(name, from);
	g_time_zone_unref(from);
	return zone;
}

/**
 * zone_made - a zone that is not in the database
 * @changes: in the order of time; of several at once, the last one counts
 * @count: of changes
 * @before: the offset before the first one
 *
 * Return: the zone, for zone_put(); NULL if there is no memory.
 */
struct zone *zone_made(const struct zone_change *changes, size_t count, int64_t before)
{
	struct zone *zone = calloc(1, sizeof(*zone));
	size_t i = 0;
	bool fine;

	if (!zone)
		return NULL;
	zone->old = true;
	zone->users = 1;
	for (; i < count && changes[i].start <= ZONE_FIRST; i++)
		before = changes[i].offset;
	fine = zone_add(zone, ZONE_FIRST, before);
	for (; fine && i < count && changes[i].start < ZONE_END; i++)
		if (i + 1 == count || changes[i + 1].start > changes[i].start)
			fine = zone_add(zone, changes[i].start, changes[i].offset);
	if (fine)
		return zone;
	release(zone);
	return NULL;
}

/* The tables of names stay until zone_forget(), as each takes ms to make. */
void zone_put(struct zone *zone)
{
	if (!--zone->users && zone->old)
		release(zone);
}

/** zone_forget - read zones anew when they are needed next; a zone in use stays as it is */
void zone_forget(void)
{
	while (zones) {
		struct zone *zone = zones;

		zones = zone->next;
		zone->old = true;
		if (!zone->users)
			release(zone);
	}
}

/** zone_at - the span that a time is in */
size_t zone_at(const struct zone *zone, int64_t time)
{
	size_t first = 0, last = zone->count - 1;

	while (first < last) {
		size_t middle = last - (last - first) / 2;

		if (zone->spans[middle].start <= time)
			first = middle;
		else
			last = middle - 1;
	}
	return first;
}

/** zone_end - the first second after a span */
int64_t zone_end(const struct zone *zone, size_t span)
{
	return span + 1 < zone->count ? zone->spans[span + 1].start : ZONE_END;
}

/** zone_clock - what the clock shows at a time */
int64_t zone_clock(const struct zone *zone, int64_t time)
{
	return time + zone->spans[zone_at(zone, time)].offset;
}

/** zone_time - when the clock first shows a time, or goes past it */
int64_t zone_time(const struct zone *zone, int64_t clock)
{
	size_t i = zone_at(zone, clock - 2 * 86400);

	while (i + 1 < zone->count && clock >= zone_end(zone, i) + zone->spans[i].offset)
		i++;
	return MAX(clock - zone->spans[i].offset, zone->spans[i].start);
}
