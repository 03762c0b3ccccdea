// SPDX-License-Identifier: GPL-2.0
/*
 * twheeld -t: the mistakes in a tab, and when its schedules fire next.
 */
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "base/util.h"
#include "cron/holidays.h"
#include "server/check.h"
#include "web/json.h"
#include "when/after.h"
#include "when/calendar.h"
#include "when/dates.h"
#include "when/tab.h"
#include "when/zone.h"

#define FILE_MOST (64 << 20)
#define TIME_FORMAT "%Y-%m-%dT%H:%M:%S"

struct name {
	char *text, *after;
	unsigned int line;
	UT_hash_handle hash;
};

struct check {
	struct tab_reader reader;
	const char *path;
	char *folder;
	struct name *names;
	size_t wrong;
	int times;		/* how many of each schedule */
	json_t *schedules, *mistakes;	/* NULL: print for people */
};

static void check_wrong(struct tab_reader *reader, unsigned int line, size_t column,
			const char *why)
{
	struct check *check = (struct check *)reader;

	check->wrong++;
	if (check->mistakes)
		json_array_append_new(check->mistakes,
				      json_pack("{si si so}", "line", line, "column", (int)column,
						"why", json_of_text(why)));
	fprintf(stderr, "%s:%u:%zu: %s\n", check->path, line, column, why);
}

static const char *after_of(void *arg, const char *text)
{
	struct check *check = arg;
	struct name *name;

	HASH_FIND(hash, check->names, text, strlen(text), name);
	return name ? name->after : NULL;
}

static bool is_new(struct check *check, const struct definition *definition)
{
	struct name *name;
	char why[800];

	HASH_FIND(hash, check->names, definition->name, strlen(definition->name), name);
	if (name) {
		snprintf(why, sizeof(why), "line %u has this name, too", name->line);
		check_wrong(&check->reader, definition->line, 1, why);
		return false;
	}
	if (definition->after &&
	    after_circle(definition->name, definition->after, after_of, check, why, sizeof(why))) {
		check_wrong(&check->reader, definition->line, 1, why);
		return false;
	}
	name = zalloc(sizeof(*name));
	name->after = definition->after ? must(strdup(definition->after)) : NULL;
	name->text = must(strdup(definition->name));
	name->line = definition->line;
	HASH_ADD_KEYPTR(hash, check->names, name->text, strlen(name->text), name);
	return true;
}

static void forget_names(struct check *check)
{
	struct name *name, *next;

	HASH_ITER(hash, check->names, name, next) {
		HASH_DELETE(hash, check->names, name);
		free(name->text);
		free(name->after);
		free(name);
	}
}

static bool get_holidays(struct check *check, const struct definition *definition,
			 struct holidays **holidays)
{
	const char *name = definition->dates_path;
	char why[1500], *path;

	*holidays = NULL;
	if (!name)
		return true;
	if (asprintf(&path, "%s%s%s", *name == '/' ? "" : check->folder, *name == '/' ? "" : "/",
		     name) < 0)
		must(NULL);
	*holidays = holidays_get(path, definition->zone, why, sizeof(why));
	free(path);
	if (!*holidays)
		check_wrong(&check->reader, definition->line, 1, why);
	return *holidays;
}

/* A time by the clock of its zone, with the day of the week */
static void check_text_of(const struct zone *zone, int64_t when, char *text, size_t room)
{
	int64_t offset = zone_clock(zone, when) - when, far = llabs(offset);
	time_t clock = when + offset;
	char day[10];
	struct tm tm;

	gmtime_r(&clock, &tm);
	strftime(text, room, TIME_FORMAT, &tm);
	strftime(day, sizeof(day), "%a", &tm);
	snprintf(text + strlen(text), room - strlen(text), "%c%02d:%02d %s", offset < 0 ? '-' : '+',
		 (int)(far / 3600), (int)(far / 60 % 60), day);
}

/* The names for numbers of days of the week in six fields: "SUN-THU". False: it has none. */
static bool name_weekdays(const char *when, char *names, size_t room)
{
	static const char *const days[] = { "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT" };
	FILE *to = must(fmemopen(names, room, "w"));
	bool any = false, is_day = true;

	*names = 0;
	for (int i = 0; i < 5 && *when; i++) {
		when += strcspn(when, " \t");
		when += strspn(when, " \t");
	}
	for (; *when && !strchr(" \t", *when); when++) {
		if (is_day && *when >= '1' && *when <= '7') {
			fputs(days[*when - '1'], to);
			any = true;
		} else {
			putc(*when, to);
		}
		is_day = strchr(",-", *when);
	}
	fclose(to);
	return any;
}

/* The times that CALENDAR= leaves out from now on */
struct left {
	int64_t days;
	char last[40];
};

static struct left left_of(const struct holidays *holidays, const struct zone *zone)
{
	struct left left = { 0 };
	int64_t last;

	left.days = dates_days(holidays->dates, zone, time(NULL), &last);
	if (last != CALENDAR_NOT_YET) {
		check_text_of(zone, last, left.last, sizeof(left.last));
		left.last[strlen("2027-01-01")] = 0;
	}
	return left;
}

static void print_left(const struct definition *definition, const struct left *left)
{
	if (left->days)
		printf("  CALENDAR=%s leaves out %lld day%s until %s, the last\n",
		       definition->dates_path, (long long)left->days, left->days == 1 ? "" : "s",
		       left->last);
	else
		printf("  CALENDAR=%s leaves out nothing from now on: %s%s\n",
		       definition->dates_path, *left->last ? "its last day was " : "it has no days",
		       left->last);
}

/* A body may have control sequences of a terminal in it. */
static void print_body(const char *body)
{
	for (; *body; body++)
		putchar(iscntrl((unsigned char)*body) ? '?' : *body);
	putchar('\n');
}

static void print(const struct definition *definition, char (*times)[40], int count,
		  const char *names, const struct left *left)
{
	printf("line %u, %s: %s, to %s: ", definition->line, definition->name, definition->when,
	       definition->tube);
	print_body(definition->body);
	if (*names)
		printf("  the days of the week are %s: %s\n", names,
		       "1 is Sunday here, as in Quartz. To croner, node-cron and Spring it is Monday");
	if (definition->dates_path)
		print_left(definition, left);
	if (definition->after)
		printf("  once that of %s is done\n", definition->after);
	for (int i = 0; i < count; i++)
		printf("  %s\n", times[i]);
	if (definition->paused)
		puts("  never, as long as PAUSED=yes is there");
	else if (!count)
		puts("  never any more");
}

static void add_json(const struct check *check, const struct definition *definition,
		     char (*times)[40], int count, const char *names, const struct left *left)
{
	json_t *array = must(json_array()), *one;

	for (int i = 0; i < count; i++)
		json_array_append_new(array, json_stringn(times[i], strcspn(times[i], " ")));
	one = must(json_pack("{si, sb, so, so, so, so, so, so}", "line", definition->line,
			     "paused", definition->paused,
			     "name", json_of_text(definition->name),
			     "when", json_of_text(definition->when),
			     "zone", json_of_text(definition->zone),
			     "tube", json_of_text(definition->tube),
			     "body", json_of_text(definition->body), "times", array));
	if (*names)
		json_object_set_new(one, "weekdays", json_string(names));
	if (definition->dates_path)
		json_object_set_new(one, "calendar",
				    json_pack("{so sI ss}", "path",
					      json_of_text(definition->dates_path), "days",
					      (json_int_t)left->days, "last", left->last));
	json_array_append_new(check->schedules, one);
}

static void check_show(const struct check *check, const struct definition *definition,
		       const struct holidays *holidays)
{
	struct zone *zone = must(zone_get(*definition->zone ? definition->zone : NULL));
	char (*times)[40] = must(calloc(check->times, sizeof(*times)));
	char names[CALENDAR_TEXT_MOST * 3];
	struct left left = { 0 };
	int64_t when = time(NULL);
	int count = 0;

	for (; count < check->times; count++) {
		when = holidays_next(holidays, definition->calendar, when);
		if (when == CALENDAR_NEVER)
			break;
		check_text_of(zone, when, times[count], sizeof(*times));
	}
	if (!name_weekdays(definition->when, names, sizeof(names)))
		*names = 0;
	if (holidays)
		left = left_of(holidays, zone);
	if (check->schedules)
		add_json(check, definition, times, count, names, &left);
	else
		print(definition, times, count, names, &left);
	free(times);
	zone_put(zone);
}

static void check_each(struct tab_reader *reader, struct definition *definition)
{
	struct check *check = (struct check *)reader;
	struct holidays *holidays = NULL;

	if (is_new(check, definition) && get_holidays(check, definition, &holidays))
		check_show(check, definition, holidays);
	holidays_put(holidays);
	definition_free(definition);
}

static char *check_read_all(const char *path, size_t *length)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char *text = file ? must(malloc(FILE_MOST + 1)) : NULL;

	*length = text ? fread(text, 1, FILE_MOST + 1, file) : 0;
	if (!file || ferror(file)) {
		complain("%s: %s", path, strerror(errno));
		free(text);
		text = NULL;
	} else if (*length > FILE_MOST) {
		complain("%s: this is longer than 64 MiB", path);
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

static void parse(struct check *check, const char *text, size_t length,
		  const struct tab_host *host)
{
	char *copy = must(strdup(check->path)), *name = basename(copy);
	char *dot = strrchr(name, '.');
	struct tab *tab;

	if (dot && !strcmp(dot, ".tab"))
		*dot = 0;
	tab = tab_begin(text, length, name, host, &check->reader);
	while (tab_line(tab))
		;
	tab_end(tab);
	free(copy);
}

/**
 * check_tab - print the mistakes in a tab, and when its schedules fire next
 * @path: the file; "-" is standard input
 * @host: the names of the machine that it is for
 * @times: how many of each schedule
 * @json: print it as JSON
 *
 * Return: the program's exit status: 0 if nothing is wrong.
 */
int check_tab(const char *path, const struct tab_host *host, int times, bool json)
{
	struct check check = {
		.reader = { check_each, check_wrong, true }, .path = path, .times = times,
	};
	char *text, *copy = must(strdup(path));
	size_t length;

	setvbuf(stdout, NULL, _IOLBF, 0);
	text = check_read_all(path, &length);
	if (!text)
		return 1;
	if (json) {
		check.schedules = must(json_array());
		check.mistakes = must(json_array());
	}
	check.folder = dirname(copy);
	parse(&check, text, length, host);
	if (json) {
		json_t *all = must(json_pack("{so so}", "schedules", check.schedules, "wrong",
					     check.mistakes));

		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(all);
	}
	forget_names(&check);
	free(text);
	free(copy);
	return check.wrong || fflush(stdout) || ferror(stdout);
}
