// SPDX-License-Identifier: GPL-2.0
/*
 * Tabs: from a text to definitions.
 *
 * A line is a comment, an option that holds for the lines after it, or a schedule: when,
 * options of its own, and the body of its jobs. A schedule that is wrong is named and left
 * out. After an option that is wrong nothing is taken, as the lines there rely on it.
 */
#include <limits.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/tube_name.h"
#include "base/util.h"
#include "when/calendar.h"
#include "when/tab.h"
#include "when/zone.h"

#define SECOND 1000000000LL
#define SCHEDULE_BEGINS "0123456789*@?"
#define OPTION_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define ZONE_MOST 64
#define PATH_MOST 1024
#define MOMENT_MOST 40
#define MAILTO_MOST 1024
#define WITHIN_MOST (30 * 86400)
/* Some editors write this before a text in UTF-8. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
/* Bytes of a line's hash in a name: enough that hardly any two lines have the same by chance */
#define NAME_BYTES 6

enum on { ON_ANY, ON_EACH_NODE, ON_EACH_SITE, ON_EACH_WORKER };

struct values {
	char zone[ZONE_MOST], tube[TUBE_NAME_MAX + 1], dates_path[PATH_MOST];
	char name[SCHEDULE_NAME_MAX + 1], params[PATH_MOST];
	char after[SCHEDULE_NAME_MAX + 1];
	char tells[NEWS_KINDS][TUBE_NAME_MAX + 1], mailto[MAILTO_MOST];
	char from[MOMENT_MOST], start[MOMENT_MOST], end[MOMENT_MOST];
	uint32_t pri, shards, most, fields, count;
	int64_t ttr, late, jitter, within, on_late;
	int misfire, on, overlap;	/* of enum misfire, on, overlap */
	bool paused;
};

/* Lines of the same text, which have no name of their own */
struct seen {
	uint64_t hash;
	unsigned int count;
	UT_hash_handle hash_of_all;
};

struct tab {
	const char *text, *end;		/* the text that is left */
	char *file;
	const struct tab_host *host;
	struct tab_reader *reader;
	struct values values;		/* options that hold from here on */
	unsigned int line, complaints;
	const char *start;		/* of the line */
	bool skips;			/* the line is too long */
	bool ended;			/* an option was wrong: no more schedules are taken */
	struct seen *seen;
};

/* A piece of a line */
struct piece {
	const char *at;
	size_t length;
};

__attribute__((format(printf, 3, 4)))
static bool wrong(struct tab *tab, const char *at, const char *format, ...)
{
	char why[400];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	tab->complaints++;
	if (tab->complaints < TAB_COMPLAINTS || tab->reader->all)
		tab->reader->wrong(tab->reader, tab->line, at - tab->start + 1, why);
	else if (tab->complaints == TAB_COMPLAINTS)
		tab->reader->wrong(tab->reader, tab->line, at - tab->start + 1,
				   "this is a mistake, too, and the others are not named");
	return false;
}

/* Options */

static bool number_of(const char *text, uint32_t most, uint32_t *value)
{
	uint64_t sum = 0;

	if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 10)
		return false;
	for (; *text; text++)
		sum = 10 * sum + (*text - '0');
	*value = sum;
	return sum <= most;
}

static bool seconds_of(const char *text, int64_t *value)
{
	if (!duration_parse(text, SECOND, value) || *value % SECOND)
		return false;
	*value /= SECOND;
	return true;
}

static bool copy_text(char *to, size_t room, const char *text)
{
	if (strlen(text) >= room)
		return false;
	strcpy(to, text);
	return true;
}

enum where { ANYWHERE, IN_A_LINE, ABOVE };

/* An option; how its text is taken, and to where in struct values */
struct option {
	const char *name;
	enum where where;
	bool (*take)(const struct option *option, void *to, const char *text);
	size_t at, room;	/* bytes there */
	int64_t least, most;	/* of a number, or of seconds */
	const char *what;
};

static bool take_text(const struct option *option, void *to, const char *text)
{
	return copy_text(to, option->room, text);
}

static bool take_number(const struct option *option, void *to, const char *text)
{
	uint32_t *number = to;

	return number_of(text, option->most, number) && *number >= option->least;
}

static bool take_seconds(const struct option *option, void *to, const char *text)
{
	int64_t *seconds = to;

	return seconds_of(text, seconds) && *seconds >= option->least && *seconds <= option->most;
}

static bool take_seconds_or_nothing(const struct option *option, void *to, const char *text)
{
	*(int64_t *)to = 0;
	return !*text || take_seconds(option, to, text);
}

static bool take_zone(const struct option *option, void *to, const char *text)
{
	return take_text(option, to, text) && (!*text || zone_exists(text));
}

static bool take_tube(const struct option *option, void *to, const char *text)
{
	return tube_name_ok(text, strlen(text)) && take_text(option, to, text);
}

static bool take_tube_or_nothing(const struct option *option, void *to, const char *text)
{
	*(char *)to = 0;
	return !*text || take_tube(option, to, text);
}

/** tab_name - can a schedule have that name, by NAME=? */
bool tab_name(const char *name)
{
	return *name && strlen(name) <= TUBE_NAME_MAX && !name[strspn(name, TUBE_NAME_CHARS)];
}

static bool take_name(const struct option *option, void *to, const char *text)
{
	return tab_name(text) && take_text(option, to, text);
}

/* CRON_TZ= may come later, and says which moment it is; whether it is one is checked now. */
static bool take_moment(const struct option *option, void *to, const char *text)
{
	int64_t seconds;

	return calendar_moment(text, "UTC", false, &seconds) && take_text(option, to, text);
}

static bool take_moment_or_nothing(const struct option *option, void *to, const char *text)
{
	*(char *)to = 0;
	return !*text || take_moment(option, to, text);
}

static bool take_yes(const struct option *option, void *to, const char *text)
{
	bool yes = !strcmp(text, "yes");

	*(bool *)to = yes;
	return yes || !strcmp(text, "no");
}

/* Which of some words is it? */
static bool take_word_of(const char *const *words, int count, int *number, const char *text)
{
	for (*number = 0; *number < count; ++*number)
		if (!strcmp(text, words[*number]))
			return true;
	return false;
}

static bool take_overlap(const struct option *option, void *to, const char *text)
{
	static const char *const words[] = {
		[OVERLAP_NO] = "no", [OVERLAP_YES] = "yes", [OVERLAP_WAIT] = "wait",
	};

	return take_word_of(words, ARRAY_SIZE(words), to, text);
}

static bool take_on(const struct option *option, void *to, const char *text)
{
	static const char *const words[] = {
		[ON_ANY] = "any", [ON_EACH_NODE] = "each-node", [ON_EACH_SITE] = "each-site",
		[ON_EACH_WORKER] = "each-worker",
	};

	return take_word_of(words, ARRAY_SIZE(words), to, text);
}

static bool take_misfire(const struct option *option, void *to, const char *text)
{
	static const char *const words[] = { [MISFIRE_ONCE] = "once", [MISFIRE_SKIP] = "skip" };
	struct values *values = to;

	if (take_word_of(words, ARRAY_SIZE(words), &values->misfire, text))
		return true;
	values->misfire = MISFIRE_ALL;
	return !strncmp(text, "all:", 4) &&
		number_of(text + 4, MISFIRES_MOST, &values->most) && values->most;
}

#define WHOLE_SECONDS "60, 90s, 1.5h or 1h30m, in s, m, h, d or w"

#define OPTION(name, where, take, member, what) { name, where, take, \
	offsetof(struct values, member), sizeof(((struct values *)NULL)->member), 0, 0, what }
#define NUMBER(name, where, member, least, most, what) \
	{ name, where, take_number, offsetof(struct values, member), 0, least, most, what }
#define SECONDS(name, take, member, least, most, what) { name, ANYWHERE, take, \
	offsetof(struct values, member), 0, least, most, "whole seconds " what ": " WHOLE_SECONDS }

static const struct option options[] = {
	OPTION("CRON_TZ", ANYWHERE, take_zone, zone,
	       "a zone of the zone database, like Europe/Berlin"),
	OPTION("TUBE", ANYWHERE, take_tube, tube, "the name of a tube"),
	NUMBER("PRI", ANYWHERE, pri, 0, UINT32_MAX, "a priority, from 0 to 4294967295"),
	SECONDS("TTR", take_seconds, ttr, 1, UINT32_MAX, "from 1s on"),
	{ "MISFIRE", ANYWHERE, take_misfire, 0, 0, 0, 0,
	  "once, skip, or all:N with N from 1 to 1000" },
	SECONDS("MISFIRE_AFTER", take_seconds, late, 1, 86400, "from 1s to 1d"),
	OPTION("OVERLAP", ANYWHERE, take_overlap, overlap, "yes, no or wait"),
	NUMBER("SHARDS", ANYWHERE, shards, 1, SHARDS_MOST, "a number from 1 to 1024"),
	OPTION("ON", ANYWHERE, take_on, on, "any, each-node, each-site or each-worker"),
	SECONDS("JITTER", take_seconds, jitter, 0, 86400, "up to 1d"),
	OPTION("CALENDAR", ANYWHERE, take_text, dates_path, "the path of a file"),
	OPTION("NAME", IN_A_LINE, take_name, name,
	       "a name of letters, digits and -+/;.$_() up to 200 bytes"),
	OPTION("AFTER", IN_A_LINE, take_name, after, "the name of a schedule"),
	SECONDS("AFTER_WITHIN", take_seconds, within, 1, WITHIN_MOST, "from 1s to 30d"),
	OPTION("ON_FAILURE", ANYWHERE, take_tube_or_nothing, tells[NEWS_FAILED],
	       "the name of a tube, or nothing"),
	OPTION("ON_RECOVERY", ANYWHERE, take_tube_or_nothing, tells[NEWS_RECOVERED],
	       "the name of a tube, or nothing"),
	OPTION("ON_MISSED", ANYWHERE, take_tube_or_nothing, tells[NEWS_MISSED],
	       "the name of a tube, or nothing"),
	SECONDS("ON_LATE", take_seconds_or_nothing, on_late, 1, WITHIN_MOST,
		"from 1s to 30d, or nothing"),
	OPTION("MAILTO", ANYWHERE, take_text, mailto, "an address of up to 1023 bytes"),
	OPTION("START", ANYWHERE, take_moment_or_nothing, start, CALENDAR_MOMENT ", or nothing"),
	OPTION("END", ANYWHERE, take_moment_or_nothing, end, CALENDAR_MOMENT ", or nothing"),
	NUMBER("COUNT", IN_A_LINE, count, 1, COUNT_MOST, "a number from 1 to 1000"),
	OPTION("FROM", IN_A_LINE, take_moment, from, CALENDAR_MOMENT),
	OPTION("PAUSED", ANYWHERE, take_yes, paused, "yes or no"),
	/* SHARDS= may come later, and says how many there may be. */
	OPTION("SHARD_PARAMS", IN_A_LINE, take_text, params,
	       "like 0=Berlin,1=Paris, up to 1023 bytes"),
	NUMBER("FIELDS", ABOVE, fields, 5, 7, "5, 6 or 7"),
};

/* Complain about an unknown option, and name the one that was meant; @more follows. */
static bool no_option(struct tab *tab, const char *at, struct piece name, const char *more)
{
	int length = name.length < 40 ? (int)name.length : 40;
	unsigned int distance = 0;
	const char *meant = NULL;
	char word[41];

	snprintf(word, sizeof(word), "%.*s", length, name.at);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (nearer(word, options[i].name, &distance))
			meant = options[i].name;
	return wrong(tab, at, "there is no option '%s'%s%s%s%s", word,
		     meant ? ": did you mean " : "", meant ? meant : "", meant && !*more ? "?" : "",
		     more);
}

static const struct option *find_option(struct piece name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == name.length &&
		    !memcmp(options[i].name, name.at, name.length))
			return &options[i];
	return NULL;
}

static bool take_option(struct tab *tab, const struct option *option, struct values *values,
			struct piece value)
{
	char text[PATH_MOST];

	if (value.length < sizeof(text)) {
		memcpy(text, value.at, value.length);
		text[value.length] = 0;
		if (option->take(option, (char *)values + option->at, text))
			return true;
	}
	return wrong(tab, value.at, "%s is %s", option->name, option->what);
}

/* Pieces */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct piece rest_after_blanks(struct piece line)
{
	while (line.length && is_blank(*line.at)) {
		line.at++;
		line.length--;
	}
	return line;
}

/* A word, which is taken from the line's beginning */
static struct piece take_word(struct piece *line)
{
	struct piece word = { rest_after_blanks(*line).at, 0 };

	*line = rest_after_blanks(*line);
	while (line->length && !is_blank(*line->at)) {
		line->at++;
		line->length--;
		word.length++;
	}
	return word;
}

static bool is(struct piece word, const char *text)
{
	return word.length == strlen(text) && !strncasecmp(word.at, text, word.length);
}

static struct piece trimmed(struct piece text)
{
	text = rest_after_blanks(text);
	while (text.length && is_blank(text.at[text.length - 1]))
		text.length--;
	if (text.length >= 2 && strchr("'\"", *text.at) && text.at[text.length - 1] == *text.at)
		text = (struct piece){ text.at + 1, text.length - 2 };
	return text;
}

/* cron's own variables mean nothing for jobs: a worker has its environment. */
static bool is_of_cron(struct piece name)
{
	return is(name, "SHELL") || is(name, "PATH") || is(name, "HOME") || is(name, "LOGNAME");
}

static bool take_environment(struct tab *tab, struct piece line)
{
	const char *equals = memchr(line.at, '=', line.length);
	const struct option *option;
	struct piece name, value;

	if (!equals)
		return wrong(tab, line.at, "this is neither a schedule nor NAME=VALUE");
	name = trimmed((struct piece){ line.at, equals - line.at });
	value = trimmed((struct piece){ equals + 1, line.at + line.length - equals - 1 });
	option = find_option(name);
	if (!option && is_of_cron(name))
		return true;
	if (!option)
		return no_option(tab, line.at, name, "");
	if (option->where == IN_A_LINE)
		return wrong(tab, line.at, "%s is for one schedule: it goes after its time",
			     option->name);
	return take_option(tab, option, &tab->values, value);
}

/* Schedules */

/* Take the fields of the time, which may have blanks between them. */
static struct piece take_when(struct tab *tab, struct piece *line)
{
	struct piece first = take_word(line), last = first;
	uint32_t words = tab->values.fields;

	if (*first.at == '@')
		words = is(first, "@every") || is(first, "@at") ? 2 : 1;
	while (--words)
		last = take_word(line);
	return (struct piece){ first.at, last.at + last.length - first.at };
}

/* Is it a seventh field, and hardly anything else: 2099, 2027-2030, 2027/2? */
static bool is_year(struct piece word)
{
	size_t digits = 0;

	for (size_t i = 0; i < word.length; i++)
		if (!strchr("0123456789-,/*", word.at[i]))
			return false;
	while (digits < word.length && strchr("0123456789", word.at[digits]))
		digits++;
	return digits == 4 && (!strncmp(word.at, "19", 2) || !strncmp(word.at, "20", 2) ||
			       !strncmp(word.at, "21", 2));
}

/* OVRLAP=no as the body of a job would be a schedule that overlaps, and nobody would know. */
static bool is_body(struct tab *tab, struct piece word, struct piece name)
{
	size_t i = 0;

	while (i < name.length && strchr(OPTION_CHARS, name.at[i]))
		i++;
	if (name.length && i == name.length)
		return no_option(tab, word.at, name, "; before a body that begins so stands --");
	if (tab->values.fields == 6 && is_year(word))
		return wrong(tab, word.at,
			     "a year? FIELDS=7 stands above lines that end with one, and before a body that begins so --");
	if (is(word, "*") || is(word, "?"))
		return wrong(tab, word.at,
			     "one more field of a time? FIELDS=6 stands above lines with seconds, and before a body that begins so --");
	return true;
}

static bool take_words(struct tab *tab, struct piece *line, struct values *values)
{
	for (;;) {
		struct piece rest = *line, word = take_word(&rest);
		const char *equals = memchr(word.at, '=', word.length);
		struct piece name = { word.at, equals ? (size_t)(equals - word.at) : 0 };
		const struct option *option = find_option(name);

		if (is(word, "--"))
			*line = rest;
		if (!option)
			return is_body(tab, word, name);
		if (option->where == ABOVE)
			return wrong(tab, word.at, "%s stands above the schedules, by itself",
				     option->name);
		name = (struct piece){ equals + 1, word.length - name.length - 1 };
		if (!take_option(tab, option, values, name))
			return false;
		*line = rest;
	}
}

static bool check_body(struct tab *tab, struct piece body)
{
	if (!body.length)
		return wrong(tab, body.at, "there is no body, which says what is to be done");
	for (size_t i = 0; i < body.length; i++) {
		if (body.at[i] != '%')
			continue;
		if (++i == body.length || !strchr("tsnNp%", body.at[i]))
			return wrong(tab, body.at + i - 1,
				     "after %% comes t, s, n, N, p, or %% for a percent sign");
	}
	return true;
}

static uint64_t hash_of(struct piece line)
{
	uint8_t digest[NAME_BYTES];
	struct sha256_ctx ctx;
	uint64_t hash = 0;

	sha256_init(&ctx);
	sha256_update(&ctx, line.length, (const uint8_t *)line.at);
	sha256_digest(&ctx, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		hash = hash << 8 | digest[i];
	return hash;
}

/* How many lines like this one there were before */
static unsigned int count_same(struct tab *tab, uint64_t hash)
{
	struct seen *seen;

	HASH_FIND(hash_of_all, tab->seen, &hash, sizeof(hash), seen);
	if (!seen) {
		seen = zalloc(sizeof(*seen));
		seen->hash = hash;
		HASH_ADD(hash_of_all, tab->seen, hash, sizeof(hash), seen);
	}
	return seen->count++;
}

static void forget_seen(struct tab *tab)
{
	struct seen *seen, *next;

	HASH_ITER(hash_of_all, tab->seen, seen, next) {
		HASH_DELETE(hash_of_all, tab->seen, seen);
		free(seen);
	}
}

/*
 * A line without NAME= is named after its file and a hash of the line, so that it keeps its name
 * when other lines come, go or are edited.
 */
static char *name_of(struct tab *tab, struct piece line, const struct values *values)
{
	uint64_t hash = hash_of(line);
	unsigned int same;
	char *name;
	int ret;

	if (*values->name)
		return must(strdup(values->name));
	same = count_same(tab, hash);
	if (same)
		ret = asprintf(&name, "%.200s:%012llx.%u", tab->file,
			       (unsigned long long)hash, same + 1);
	else
		ret = asprintf(&name, "%.200s:%012llx", tab->file, (unsigned long long)hash);
	return ret < 0 ? must(NULL) : name;
}

static const char *place_of(const struct tab *tab, const struct values *values)
{
	return values->on == ON_EACH_SITE ? tab->host->site : tab->host->node;
}

/* In a shared store, schedules of ON=each-... have a name for each server. */
static char *name_there(struct tab *tab, struct piece line, const struct values *values)
{
	char *name = name_of(tab, line, values), *there;

	if (!tab->host->shared || values->on == ON_ANY)
		return name;
	if (asprintf(&there, "%s.%s", name, place_of(tab, values)) < 0)
		must(NULL);
	free(name);
	return there;
}

static char *tube_of(struct tab *tab, struct piece line, const struct values *values)
{
	const char *place = values->on == ON_EACH_WORKER ? "*" : place_of(tab, values);
	size_t length;
	char *tube;

	if (values->on == ON_ANY)
		return must(strdup(values->tube));
	if (!place) {
		wrong(tab, line.at, "ON=each-site needs the setting 'site' in the configuration");
		return NULL;
	}
	if (asprintf(&tube, "%s.%s", values->tube, place) < 0)
		must(NULL);
	length = strlen(tube);
	/* A worker's name comes in place of the star. */
	if (values->on == ON_EACH_WORKER)
		length--;
	if (tube_name_ok(tube, length))
		return tube;
	wrong(tab, line.at, "'%.60s...' can't be the name of a tube", tube);
	free(tube);
	return NULL;
}

/* Nobody can say who watched at a time that is over, or will when a run has ended. */
static bool check_each_worker(struct tab *tab, struct piece line, const struct values *values)
{
	if (values->on != ON_EACH_WORKER)
		return true;
	if (*values->after || values->overlap == OVERLAP_WAIT ||
	    values->misfire == MISFIRE_ALL || values->shards > 1)
		return wrong(tab, line.at, "ON=each-worker is for those who watch at the time: it"
			     " goes without AFTER, SHARDS, OVERLAP=wait and MISFIRE=all");
	return true;
}

static const char *zone_of(const struct values *values)
{
	return *values->zone ? values->zone : NULL;
}

/* The last time that COUNT= allows; times that CALENDAR= leaves out count, too. */
static int64_t last_of(const struct calendar *calendar, uint32_t count)
{
	int64_t time = INT64_MIN;

	while (count-- && time != CALENDAR_NEVER)
		time = calendar_next(calendar, time);
	return time;
}

static bool take_limits(struct tab *tab, struct calendar *calendar, struct piece when,
			const struct values *values)
{
	const char *zone = zone_of(values);
	int64_t first = 0, last = CALENDAR_NEVER;

	if (*values->from && !calendar_from(calendar, values->from, zone))
		return wrong(tab, when.at, "FROM is for @every");
	if ((*values->start && !calendar_moment(values->start, zone, false, &first)) ||
	    (*values->end && !calendar_moment(values->end, zone, true, &last)))
		return wrong(tab, when.at, "the zone of START and END can't be read");
	if (values->count && !*values->start && !*values->from)
		return wrong(tab, when.at, "COUNT counts from START, which is not there");
	if (*values->start)
		calendar_limit(calendar, first, CALENDAR_NEVER);
	calendar_limit(calendar, INT64_MIN, last);
	if (calendar_next(calendar, INT64_MIN) == CALENDAR_NEVER)
		return wrong(tab, when.at, "from START to END it never fires");
	if (values->count)
		calendar_limit(calendar, INT64_MIN, last_of(calendar, values->count));
	if (values->paused)
		calendar_limit(calendar, CALENDAR_NEVER, CALENDAR_NEVER);
	return true;
}

static struct calendar *calendar_of(struct tab *tab, struct piece when,
				    const struct values *values)
{
	struct calendar_error error = { .column = 0 };
	struct calendar *calendar;

	calendar = calendar_parse(when.at, when.length, zone_of(values), &error);
	if (!calendar)
		wrong(tab, when.at + (error.column <= when.length ? error.column : 0), "%s",
		      error.text);
	if (calendar && !take_limits(tab, calendar, when, values)) {
		calendar_free(calendar);
		calendar = NULL;
	}
	return calendar;
}

/* The value of a shard in "0=Berlin,1=Paris", which may be empty */
static struct piece param_of(const char *params, uint32_t shard)
{
	for (const char *at = params; at && *at;) {
		size_t length = strcspn(at, ",");
		size_t number = strcspn(at, "=");

		if (number < length && strtoul(at, NULL, 10) == shard)
			return (struct piece){ at + number + 1, length - number - 1 };
		at += length + (at[length] == ',');
	}
	return (struct piece){ "", 0 };
}

static size_t longest_param(const char *params)
{
	size_t most = 0;

	for (const char *at = params; at && *at;) {
		size_t length = strcspn(at, ","), text = length - strcspn(at, "=") - 1;

		most = text > most ? text : most;
		at += length + (at[length] == ',');
	}
	return most;
}

static bool check_params(struct tab *tab, struct piece line, const struct values *values)
{
	const char *text = values->params;
	uint64_t seen[SHARDS_MOST / 64 + 1] = { 0 };

	while (*text) {
		size_t length = strcspn(text, ","), digits = strspn(text, "0123456789");
		unsigned long shard = digits && digits < 5 ? strtoul(text, NULL, 10) : ULONG_MAX;

		if (text[digits] != '=' || digits > length || shard == ULONG_MAX)
			return wrong(tab, line.at, "SHARD_PARAMS is like 0=Berlin,1=Paris");
		if (shard >= values->shards)
			return wrong(tab, line.at, "SHARD_PARAMS has shard %lu, and SHARDS is %u",
				     shard, values->shards);
		if (seen[shard / 64] >> shard % 64 & 1)
			return wrong(tab, line.at, "SHARD_PARAMS has shard %lu twice", shard);
		seen[shard / 64] |= 1ULL << shard % 64;
		text += length + (text[length] == ',');
	}
	return true;
}

static size_t digits(uint32_t number)
{
	return snprintf(NULL, 0, "%u", number);
}

/* The bytes of the longest body of a shard; stops counting beyond a limit. */
static size_t count_body(const struct definition *definition, size_t most)
{
	const size_t lengths[UCHAR_MAX + 1] = {
		['t'] = strlen("2027-01-01T00:00:00Z"), ['s'] = digits(definition->shards - 1),
		['n'] = digits(definition->shards), ['N'] = strlen(definition->name), ['%'] = 1,
		['p'] = longest_param(definition->params),
	};
	size_t size = 0;

	for (const char *at = definition->body; *at && size <= most; at++)
		size += *at == '%' ? lengths[(unsigned char)*++at] : 1;
	return size;
}

static void take_values(struct definition *definition, const struct values *values)
{
	definition->zone = must(strdup(values->zone));
	definition->dates_path = *values->dates_path ? must(strdup(values->dates_path)) : NULL;
	definition->pri = values->pri;
	definition->ttr = values->ttr;
	definition->shards = values->shards;
	definition->late = values->late;
	definition->jitter = values->jitter;
	definition->misfire = values->misfire;
	definition->most = values->most;
	definition->overlap = values->overlap;
	definition->paused = values->paused;
	definition->params = *values->params ? must(strdup(values->params)) : NULL;
	definition->after = *values->after ? must(strdup(values->after)) : NULL;
	definition->within = values->within;
	for (int news = 0; news < NEWS_KINDS; news++)
		if (*values->tells[news])
			definition->tells[news] = must(strdup(values->tells[news]));
	definition->mailto = *values->mailto ? must(strdup(values->mailto)) : NULL;
	definition->on_late = values->on_late;
}

static bool body_too_long(struct tab *tab, struct piece body)
{
	return wrong(tab, body.at, "the body is too long: job-size is %u bytes",
		     tab->host->body_most);
}

/* Refuse a schedule with too many bytes for one transaction. */
static bool check_size(struct tab *tab, const struct definition *definition, struct piece body)
{
	size_t jobs = definition->misfire == MISFIRE_ALL ? definition->most : 1, size;

	jobs *= definition->each_worker ? SHARDS_MOST : definition->shards;
	size = count_body(definition, tab->host->body_most);
	if (size > tab->host->body_most)
		return body_too_long(tab, body);
	if (jobs > FIRING_MOST)
		return wrong(tab, tab->start,
			     "all:%u of %u shards each are more than %u jobs at once",
			     definition->most, definition->shards, FIRING_MOST);
	if (jobs * size > FIRING_BYTES)
		return wrong(tab, body.at,
			     "%zu jobs at once with %zu bytes each are more than %d bytes",
			     jobs, size, FIRING_BYTES);
	return true;
}

static bool fill(struct tab *tab, struct definition *definition, struct piece line,
		 const struct values *values, struct piece when, struct piece body)
{
	definition->calendar = calendar_of(tab, when, values);
	if (!definition->calendar)
		return false;
	definition->tube = tube_of(tab, line, values);
	if (!definition->tube || !check_params(tab, line, values) ||
	    !check_each_worker(tab, line, values))
		return false;
	if (values->on_late && !*values->tells[NEWS_FAILED])
		return wrong(tab, line.at, "ON_LATE: ON_FAILURE=TUBE says who learns of it");
	take_values(definition, values);
	definition->name = name_there(tab, line, values);
	definition->each_worker = values->on == ON_EACH_WORKER;
	definition->own = tab->host->shared && values->on != ON_ANY;
	definition->when = must(strndup(when.at, when.length));
	definition->body = must(strndup(body.at, body.length));
	definition->size = body.length;
	definition->line = tab->line;
	return check_size(tab, definition, body);
}

static void take_schedule(struct tab *tab, struct piece line)
{
	struct values values = tab->values;
	struct piece rest = line, when = take_when(tab, &rest), body;
	struct definition *definition;

	if (!take_words(tab, &rest, &values))
		return;
	body = rest_after_blanks(rest);
	/* Two bytes of a line become at least one of a body. */
	if (body.length / 2 > tab->host->body_most) {
		body_too_long(tab, body);
		return;
	}
	if (!check_body(tab, body))
		return;
	definition = zalloc(sizeof(*definition));
	if (fill(tab, definition, line, &values, when, body))
		tab->reader->each(tab->reader, definition);
	else
		definition_free(definition);
}

/* No more schedules are taken: that is said, however many mistakes were named before. */
static bool end_there(struct tab *tab, const char *at)
{
	if (tab->ended)
		return false;
	tab->ended = true;
	tab->reader->wrong(tab->reader, tab->line, at - tab->start + 1,
			   "the lines after it are not taken, as they may rely on it");
	return false;
}

/* Was an option meant? A line of other words may be a schedule that went wrong. */
static bool is_option(struct piece line)
{
	const char *equals = memchr(line.at, '=', line.length);
	struct piece rest = line, word = take_word(&rest);

	if (equals && equals < word.at + word.length)
		return true;
	rest = rest_after_blanks(rest);
	return find_option(word) || (rest.length && *rest.at == '=');
}

/* Gives false if no later schedule is taken. Options still are, so that each wrong one is named. */
static bool take_line(struct tab *tab, struct piece line)
{
	const char *zero;

	tab->start = line.at;
	if (line.length && line.at[line.length - 1] == '\r')
		line.length--;
	line = rest_after_blanks(line);
	if (!line.length || *line.at == '#')
		return true;
	zero = memchr(line.at, 0, line.length);
	if (zero)
		return wrong(tab, zero, "a byte of 0 is no text") || end_there(tab, zero);
	if (strchr(SCHEDULE_BEGINS, *line.at)) {
		if (!tab->ended)
			take_schedule(tab, line);
	} else if (!take_environment(tab, line) && is_option(line)) {
		end_there(tab, line.at);
	}
	return true;
}

/* A schedule or a comment that is too long leaves the lines after it as they are. */
static void too_long(struct tab *tab)
{
	struct piece line = { tab->text, TAB_LINE_MOST };

	tab->start = line.at;
	tab->skips = true;
	wrong(tab, line.at, "this line is longer than %d bytes", TAB_LINE_MOST);
	line = rest_after_blanks(line);
	if (!line.length || !*line.at || !strchr("#" SCHEDULE_BEGINS, *line.at))
		end_there(tab, line.at);
}

/* Skip a long line in pieces: it may be the whole file. */
static void skip_piece(struct tab *tab)
{
	size_t left = tab->end - tab->text, piece = left < TAB_LINE_MOST ? left : TAB_LINE_MOST;
	const char *stop = memchr(tab->text, '\n', piece);

	tab->skips = !stop;
	tab->text = stop ? stop + 1 : tab->text + piece;
}

/**
 * tab_begin - begin to understand a tab
 * @text: what the file says, until tab_end()
 * @length: bytes of it
 * @file: the file's name without ".tab", for the names of schedules
 * @host: the names of the machine that it is for
 * @reader: gets the schedules and the mistakes
 */
struct tab *tab_begin(const char *text, size_t length, const char *file,
		      const struct tab_host *host, struct tab_reader *reader)
{
	struct tab *tab = zalloc(sizeof(*tab));

	*tab = (struct tab){
		.text = text, .end = text + length, .file = must(strdup(file)), .host = host,
		.reader = reader,
		.values = {
			.tube = "default", .pri = 1024, .ttr = 60, .shards = 1, .fields = 5,
			.late = 60, .within = 86400, .misfire = MISFIRE_ONCE,
			.overlap = OVERLAP_YES,
		},
	};
	copy_text(tab->values.zone, sizeof(tab->values.zone), host->zone);
	if (length >= strlen(BYTE_ORDER_MARK) &&
	    !memcmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)))
		tab->text += strlen(BYTE_ORDER_MARK);
	return tab;
}

/** tab_line - understand the next line, or a piece; gives false if there is none */
bool tab_line(struct tab *tab)
{
	const char *begin = tab->text, *stop;
	size_t left = tab->end - begin;

	if (begin >= tab->end)
		return false;
	if (tab->skips) {
		skip_piece(tab);
		return true;
	}
	stop = memchr(begin, '\n', left > TAB_LINE_MOST ? TAB_LINE_MOST + 1 : left);
	tab->line++;
	if (!stop && left > TAB_LINE_MOST) {
		too_long(tab);
		return true;
	}
	stop = stop ? stop : tab->end;
	tab->text = stop + 1;
	return take_line(tab, (struct piece){ begin, stop - begin });
}

void tab_end(struct tab *tab)
{
	forget_seen(tab);
	free(tab->file);
	free(tab);
}

void definition_free(struct definition *definition)
{
	if (!definition)
		return;
	calendar_free(definition->calendar);
	free(definition->name);
	free(definition->when);
	free(definition->zone);
	free(definition->dates_path);
	free(definition->params);
	free(definition->after);
	for (int news = 0; news < NEWS_KINDS; news++)
		free(definition->tells[news]);
	free(definition->mailto);
	free(definition->tube);
	free(definition->body);
	free(definition);
}

static void print_time(FILE *to, int64_t when)
{
	time_t seconds = when;
	char text[40];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		fputs(text, to);
}

static void print_word(FILE *to, const struct definition *definition, char word, int64_t when,
		       uint32_t shard)
{
	struct piece param;

	switch (word) {
	case 't':
		print_time(to, when);
		break;
	case 's':
		fprintf(to, "%u", shard);
		break;
	case 'n':
		fprintf(to, "%u", definition->shards);
		break;
	case 'N':
		fputs(definition->name, to);
		break;
	case 'p':
		param = param_of(definition->params, shard);
		fwrite(param.at, 1, param.length, to);
		break;
	default:
		putc(word, to);
	}
}

/**
 * definition_body - the body of a job
 * @definition: the schedule
 * @when: the time for which the job is, in seconds
 * @shard: which of its shards
 * @size: out: bytes
 *
 * Return: the body, to be freed; NULL if there is no memory for it.
 */
char *definition_body(const struct definition *definition, int64_t when, uint32_t shard,
		      size_t *size)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, size);
	bool fine;

	if (!to)
		return NULL;
	for (const char *at = definition->body; *at; at++)
		if (*at == '%' && at[1])
			print_word(to, definition, *++at, when, shard);
		else
			putc(*at, to);
	fine = !ferror(to);
	if (fclose(to) == 0 && fine)
		return text;
	free(text);
	return NULL;
}
