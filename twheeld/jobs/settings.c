// SPDX-License-Identifier: GPL-2.0
/*
 * The configuration file, in the format of libconfig: settings that have a type, groups and
 * lists of them, comments. The library knows the line of each setting, so that also a wrong
 * name or value is reported with its line.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libconfig.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/duration.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/util.h"
#include "jobs/protocol.h"
#include "jobs/settings.h"

#define FILE_MOST (1 << 20)
#define SECOND 1000000000LL
#define DEFAULT_JOB_SIZE 65535
#define DEFAULT_HISTORY (30 * 86400 * SECOND)
#define DEFAULT_LEASE (10 * SECOND)

/* A setting that may be in a group; how it is taken, and to where in the group's structure */
struct key {
	const char *name;
	int type;
	bool (*take)(const config_setting_t *setting, const struct key *key, void *to);
	size_t at;
	int64_t least, most;	/* of a number, or ns */
	const char *what;	/* that, of a time; what a path leads to */
};

#define OTHER(name, type, take, at) { name, type, take, at, 0, 0, NULL }
#define TEXT(name, take, at) OTHER(name, CONFIG_TYPE_STRING, take, at)
#define PATH(name, what, at) { name, CONFIG_TYPE_STRING, take_path, at, 0, 0, what }
#define TIME(name, at, least, most, what) \
	{ name, CONFIG_TYPE_STRING, take_time, at, least, most, what }
#define NUMBER(name, at, least, most) \
	{ name, CONFIG_TYPE_INT64, take_number, at, least, most, NULL }
/* Of the server, and of tubes */
#define OF(member) offsetof(struct settings, member)
#define OF_TUBE(member) offsetof(struct tube_settings, member)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings *used;	/* by @lock, but for the loop, which alone changes it */
static const char *file_name;	/* of the file that is being read */

__attribute__((format(printf, 2, 3)))
static bool wrong(const config_setting_t *setting, const char *format, ...)
{
	char text[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("%s:%u: %s", file_name, config_setting_source_line(setting), text);
	return false;
}

static const char *text_of(const config_setting_t *setting)
{
	return config_setting_get_string(setting);
}

/* A number may be written with or without an L at its end. */
static bool is_of(const config_setting_t *setting, int type)
{
	int is = config_setting_type(setting);

	return is == type || (type == CONFIG_TYPE_INT64 && is == CONFIG_TYPE_INT) ||
		(type == CONFIG_TYPE_ARRAY && is == CONFIG_TYPE_LIST &&
		 !config_setting_length(setting));
}

static const char *what_is(int type)
{
	switch (type) {
	case CONFIG_TYPE_STRING:
		return "a text in quotes: \"...\"";
	case CONFIG_TYPE_INT64:
		return "a whole number";
	case CONFIG_TYPE_ARRAY:
		return "texts in brackets: [ \"...\", \"...\" ]";
	case CONFIG_TYPE_LIST:
		return "groups in parentheses: ( { ... }, { ... } )";
	default:
		return "a group: { ... }";
	}
}

static bool no_setting(const config_setting_t *setting, const struct key *keys)
{
	const char *name = config_setting_name(setting), *meant = NULL;
	unsigned int distance = 0;

	for (; keys->name; keys++)
		if (nearer(name, keys->name, &distance))
			meant = keys->name;
	if (meant)
		return wrong(setting, "there is no setting '%s' here: did you mean %s?", name,
			     meant);
	return wrong(setting, "there is no setting '%s' here", name);
}

static bool take_key(const config_setting_t *setting, const struct key *keys, void *to)
{
	const char *name = config_setting_name(setting);
	const struct key *all = keys;

	while (keys->name && strcmp(keys->name, name))
		keys++;
	if (!keys->name)
		return no_setting(setting, all);
	if (!is_of(setting, keys->type))
		return wrong(setting, "%s is %s", name, what_is(keys->type));
	return keys->take(setting, keys, (char *)to + keys->at);
}

/* Take all settings of a group, also after a wrong one, so that all mistakes are named at once. */
static bool take_group(const config_setting_t *group, const struct key *keys, void *to)
{
	bool fine = true;

	for (int i = 0; i < config_setting_length(group); i++)
		fine = take_key(config_setting_get_elem(group, i), keys, to) && fine;
	return fine;
}

static bool take_number(const config_setting_t *setting, const struct key *key, void *to)
{
	int64_t number = config_setting_get_int64(setting);

	*(int64_t *)to = number;
	return (number >= key->least && number <= key->most) ||
		wrong(setting, "%s is from %lld to %lld", key->name, (long long)key->least,
		      (long long)key->most);
}

static bool take_time(const config_setting_t *setting, const struct key *key, void *to)
{
	int64_t ns;

	if (!duration_parse(text_of(setting), 0, &ns) || ns < key->least || ns > key->most)
		return wrong(setting, "%s is a time %s: " DURATION_EXAMPLES, key->name, key->what);
	*(int64_t *)to = ns;
	return true;
}

static bool take_text(const config_setting_t *setting, const struct key *key, void *to)
{
	*(const char **)to = text_of(setting);
	return *text_of(setting) || wrong(setting, "%s is empty", key->name);
}

static bool take_path(const config_setting_t *setting, const struct key *key, void *to)
{
	*(const char **)to = text_of(setting);
	return *text_of(setting) == '/' ||
		wrong(setting, "%s is the path of a %s, which begins with /", key->name, key->what);
}

/* The end of a tube's name */
static bool take_place(const config_setting_t *setting, const struct key *key, void *to)
{
	const char *text = text_of(setting);

	*(const char **)to = text;
	return tube_name_ok(text, strlen(text)) ||
		wrong(setting, "%s is the end of a tube's name: letters, digits and -+/;.$_()",
		      key->name);
}

static bool take_tube_name(const config_setting_t *setting, const struct key *key, void *to)
{
	const char *text = text_of(setting);

	*(const char **)to = text;
	return tube_name_ok(text, strlen(text)) ||
		wrong(setting, "'%s' can't be the name of a tube", text);
}

static bool is_address(const config_setting_t *setting, const char *text)
{
	const char *why = address_wrong(text);

	return !why || wrong(setting, "listen on \"%s\": %s", text, why);
}

static bool take_address(const config_setting_t *setting, const struct key *key, void *to)
{
	*(const char **)to = text_of(setting);
	return is_address(setting, text_of(setting));
}

static bool take_listen(const config_setting_t *setting, const struct key *key, void *to)
{
	struct settings *settings = to;
	bool fine = true;

	settings->listens = config_setting_length(setting);
	if (!settings->listens)
		return wrong(setting, "listen has no address; without it, it is port 11300");
	settings->listen = must(calloc(settings->listens + 1, sizeof(*settings->listen)));
	for (size_t i = 0; i < settings->listens; i++) {
		settings->listen[i] = config_setting_get_string_elem(setting, i);
		if (!settings->listen[i])
			return wrong(setting, "listen is %s", what_is(CONFIG_TYPE_ARRAY));
		fine = is_address(config_setting_get_elem(setting, i), settings->listen[i]) && fine;
	}
	return fine;
}

static bool take_sync(const config_setting_t *setting, const struct key *key, void *to)
{
	struct settings *settings = to;
	const char *text = text_of(setting);

	settings->sync = strcmp(text, "never") ? SYNC_ALWAYS : SYNC_NEVER;
	if (!strcmp(text, "never") || !strcmp(text, "always"))
		return true;
	settings->sync = SYNC_SOMETIMES;
	return (duration_parse(text, 0, &settings->sync_ns) && settings->sync_ns > 0 &&
		settings->sync_ns <= 3600 * SECOND) ||
		wrong(setting, "sync is \"always\", \"never\" or a time up to 1h: "
		      DURATION_EXAMPLES);
}

static bool take_limits(const config_setting_t *setting, const struct key *key, void *to)
{
	static const struct key keys[] = {
		NUMBER("job-size", OF(job_size), 0, JOB_SIZE_MOST),
		NUMBER("connections", OF(connections), 1, INT32_MAX),
		{ 0 }
	};

	return take_group(setting, keys, to);
}

static bool take_tls(const config_setting_t *setting, const struct key *key, void *to)
{
	static const struct key keys[] = {
		TEXT("listen", take_address, OF(tls)),
		PATH("certificate", "file", OF(certificate)),
		PATH("key", "file", OF(key)),
		{ 0 }
	};

	return take_group(setting, keys, to);
}

static bool take_metrics(const config_setting_t *setting, const struct key *key, void *to)
{
	static const struct key keys[] = {
		TEXT("listen", take_address, OF(metrics)),
		{ 0 }
	};

	return take_group(setting, keys, to);
}

/* Tubes */

static bool take_pattern(const config_setting_t *setting, const struct key *key, void *to)
{
	const char *name = text_of(setting);

	*(const char **)to = name;
	return (*name && strlen(name) <= TUBE_NAME_MAX &&
		!name[strspn(name, TUBE_NAME_CHARS "*?[]!^")]) ||
		wrong(setting, "no tube can have a name like '%s'", name);
}

static bool take_unique(const config_setting_t *setting, const struct key *key, void *to)
{
	bool unique = !strcmp(text_of(setting), "body");

	*(bool *)to = unique;
	return unique || !strcmp(text_of(setting), "no") ||
		wrong(setting, "unique is \"body\" or \"no\"");
}

/* A backoff grows by this factor where "backoff-factor" is not set. */
#define FACTOR 2

static bool take_backoff(const config_setting_t *setting, const struct key *key, void *to)
{
	struct tube_settings *tube = to;

	return (duration_range(text_of(setting), 0, &tube->backoff, &tube->backoff_most) &&
		tube->backoff) ||
		wrong(setting, "backoff is a time, or two as in \"2s..1h\", the longer one last: "
		      DURATION_EXAMPLES);
}

/* The most of a rate's burst and time keep their product within an int64_t. */
#define BURST_MOST 10000
#define RATE_TIME_MOST (86400 * SECOND)

/* NUMBER/TIME, where a unit is a time. What does not divide is a little longer, never shorter. */
static bool take_rate(const config_setting_t *setting, const struct key *key, void *to)
{
	const char *text = text_of(setting);
	char time[100];
	long long count;
	int64_t ns = 0;
	char *end;

	count = strtoll(text, &end, 10);
	if (isdigit((unsigned char)*text) && *end == '/' && count > 0) {
		snprintf(time, sizeof(time), "%s%s", isdigit((unsigned char)end[1]) ? "" : "1",
			 end + 1);
		if (!duration_parse(time, 0, &ns) || ns > RATE_TIME_MOST || count > ns)
			ns = 0;
	}
	if (!ns)
		return wrong(setting, "rate is a number of jobs and a time up to 1d, such as %s",
			     "\"10/s\" or \"100/5min\"");
	*(int64_t *)to = (ns - 1) / count + 1;
	return true;
}

static bool take_tube(const config_setting_t *setting, struct tube_settings *tube)
{
	static const struct key keys[] = {
		TEXT("name", take_pattern, OF_TUBE(pattern)),
		TEXT("unique", take_unique, OF_TUBE(unique)),
		NUMBER("tries", OF_TUBE(tries), 0, INT32_MAX),
		TEXT("dead-letter", take_tube_name, OF_TUBE(dead_letter)),
		TEXT("backoff", take_backoff, 0),
		NUMBER("backoff-factor", OF_TUBE(factor), 1, 10),
		NUMBER("backoff-jitter", OF_TUBE(jitter), 0, 100),
		TIME("delay-unit", OF_TUBE(unit), SECOND / 1000, SECOND, "from 1ms to 1s"),
		TIME("keep", OF_TUBE(keep), SECOND, KEEP_MOST, "from 1s to 36500d"),
		TEXT("on-failure", take_tube_name, OF_TUBE(tells[NEWS_FAILED])),
		TEXT("on-recovery", take_tube_name, OF_TUBE(tells[NEWS_RECOVERED])),
		TEXT("on-missed", take_tube_name, OF_TUBE(tells[NEWS_MISSED])),
		NUMBER("at-most", OF_TUBE(limit.at_most), 1, INT32_MAX),
		TEXT("rate", take_rate, OF_TUBE(limit.interval)),
		NUMBER("rate-burst", OF_TUBE(limit.burst), 1, BURST_MOST),
		{ 0 }
	};

	tube->unit = SECOND;
	tube->limit.burst = 1;
	tube->factor = FACTOR;
	if (config_setting_type(setting) != CONFIG_TYPE_GROUP)
		return wrong(setting, "tubes is %s", what_is(CONFIG_TYPE_LIST));
	if (!take_group(setting, keys, tube))
		return false;
	if (!tube->pattern)
		return wrong(setting, "these are tubes without a name: name = \"...\" is missing");
	if ((tube->factor != FACTOR || tube->jitter) && !tube->backoff)
		return wrong(setting, "backoff-factor, backoff-jitter are for tubes with backoff");
	if (tube->limit.burst > 1 && !tube->limit.interval)
		return wrong(setting, "rate-burst is for tubes with rate");
	return true;
}

static bool take_tubes(const config_setting_t *setting, const struct key *key, void *to)
{
	struct settings *settings = to;
	bool fine = true;

	settings->tube_count = config_setting_length(setting);
	settings->tubes = must(calloc(settings->tube_count + 1, sizeof(*settings->tubes)));
	for (size_t i = 0; i < settings->tube_count; i++)
		fine = take_tube(config_setting_get_elem(setting, i), &settings->tubes[i]) && fine;
	return fine;
}

static bool take_all(struct settings *settings)
{
	static const struct key keys[] = {
		OTHER("listen", CONFIG_TYPE_ARRAY, take_listen, 0),
		TEXT("store", take_text, OF(store)),
		TEXT("sync", take_sync, 0),
		TEXT("user", take_text, OF(user)),
		OTHER("limits", CONFIG_TYPE_GROUP, take_limits, 0),
		OTHER("metrics", CONFIG_TYPE_GROUP, take_metrics, 0),
		OTHER("tls", CONFIG_TYPE_GROUP, take_tls, 0),
		PATH("tokens", "file", OF(tokens)),
		PATH("schedules", "folder", OF(schedules)),
		TEXT("node", take_place, OF(node)),
		TEXT("site", take_place, OF(site)),
		TIME("history", OF(history), HISTORY_LEAST, INT64_MAX, "of 1d at least"),
		TIME("lease", OF(lease), SECOND, 3600 * SECOND, "from 1s to 1h"),
		PATH("admin", "socket", OF(admin)),
		OTHER("tubes", CONFIG_TYPE_LIST, take_tubes, 0),
		{ 0 }
	};

	return take_group(config_root_setting(&settings->file), keys, settings);
}

static bool parse(struct settings *settings, const char *text)
{
	/* The library ends the program where an included file can't be read. */
	if (strstr(text, "@include")) {
		complain("%s: @include is not for this file", file_name);
		return false;
	}
	if (config_read_string(&settings->file, text) == CONFIG_TRUE)
		return take_all(settings);
	complain("%s:%d: %s, here or just before; twheeld.conf(5) has examples", file_name,
		 config_error_line(&settings->file), config_error_text(&settings->file));
	return false;
}

/**
 * settings_parse - understand a configuration
 * @text: what the file says
 * @name: the file's name, for messages
 *
 * Return: the configuration; NULL, having complained, if something is wrong with it.
 */
struct settings *settings_parse(const char *text, const char *name)
{
	struct settings *settings = zalloc(sizeof(*settings));

	file_name = name;
	settings->job_size = DEFAULT_JOB_SIZE;
	settings->connections = INT32_MAX;
	settings->history = DEFAULT_HISTORY;
	settings->lease = DEFAULT_LEASE;
	config_init(&settings->file);
	if (parse(settings, text))
		return settings;
	settings_free(settings);
	return NULL;
}

static ssize_t read_all(int fd, char *text, size_t room)
{
	size_t have = 0;
	ssize_t got;

	while ((got = read(fd, text + have, room - have)) > 0)
		have += got;
	return got < 0 ? got : (ssize_t)have;
}

/** settings_read - read a configuration file; gives NULL, having complained, if it can't be */
struct settings *settings_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = zalloc(FILE_MOST + 1);
	ssize_t length = fd < 0 ? -1 : read_all(fd, text, FILE_MOST);
	struct settings *settings = NULL;

	if (length < 0)
		complain("%s: %s", path, strerror(errno));
	else if (length == FILE_MOST)
		complain("%s: this is no configuration: it is longer than a MiB", path);
	else if ((size_t)length != strlen(text))
		complain("%s: this is no text: it has a byte of 0", path);
	else
		settings = settings_parse(text, path);
	if (fd >= 0)
		close(fd);
	free(text);
	return settings;
}

void settings_free(struct settings *settings)
{
	if (!settings)
		return;
	config_destroy(&settings->file);
	free(settings->listen);
	free(settings->tubes);
	free(settings);
}

/**
 * settings_use - put the settings of tubes of a configuration into force
 * @settings: the configuration, which is kept
 *
 * Settings that settings_tube() gave before are stale: ask again. The first configuration stays, as
 * all that is not of tubes holds until the end.
 */
void settings_use(struct settings *settings)
{
	static struct settings *first;

	pthread_mutex_lock(&lock);
	if (used != first)
		settings_free(used);
	first = first ? first : settings;
	used = settings;
	pthread_mutex_unlock(&lock);
}

static bool is_name(const char *said, const char *name)
{
	return said && !strcmp(said, name);
}

/** settings_learns - is that the name of a tube which learns what became of others' jobs? */
bool settings_learns(const char *name)
{
	for (size_t i = 0; used && i < used->tube_count; i++)
		for (int news = 0; news < NEWS_KINDS; news++)
			if (is_name(used->tubes[i].tells[news], name))
				return true;
	return false;
}

/**
 * settings_tube - the settings of a tube: those of the first section that fits its name
 *
 * None is for the tabs that were pushed: in units of 1 ms, their delay would end after 50 days.
 */
const struct tube_settings *settings_tube(const char *name)
{
	static const struct tube_settings plain = { .unit = SECOND };

	if (!strcmp(name, TABS_TUBE))
		return &plain;
	for (size_t i = 0; used && i < used->tube_count; i++)
		if (fnmatch(used->tubes[i].pattern, name, 0) == 0)
			return &used->tubes[i];
	return &plain;
}

/** settings_is_dead_letter - do jobs of others come into a tube of that name that failed? */
bool settings_is_dead_letter(const char *name)
{
	for (size_t i = 0; used && i < used->tube_count; i++)
		if (used->tubes[i].dead_letter && !strcmp(used->tubes[i].dead_letter, name))
			return true;
	return false;
}

/** settings_limit - how many of its jobs may be given out; of any thread */
struct limit settings_limit(const char *name)
{
	struct limit limit;

	pthread_mutex_lock(&lock);
	limit = settings_tube(name)->limit;
	pthread_mutex_unlock(&lock);
	return limit;
}
