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

/* A setting that may be in a group, and how it is taken */
struct key {
	const char *name;
	int type;
	bool (*take)(const config_setting_t *setting, void *to);
};

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
	return keys->take(setting, to);
}

/* Take all settings of a group, also after a wrong one, so that all mistakes are named at once. */
static bool take_group(const config_setting_t *group, const struct key *keys, void *to)
{
	bool fine = true;

	for (int i = 0; i < config_setting_length(group); i++)
		fine = take_key(config_setting_get_elem(group, i), keys, to) && fine;
	return fine;
}

static bool take_number(const config_setting_t *setting, int64_t *to, int64_t least, int64_t most)
{
	*to = config_setting_get_int64(setting);
	return (*to >= least && *to <= most) ||
		wrong(setting, "%s is from %lld to %lld", config_setting_name(setting),
		      (long long)least, (long long)most);
}

static bool is_address(const config_setting_t *setting, const char *text)
{
	const char *why = address_wrong(text);

	return !why || wrong(setting, "listen on \"%s\": %s", text, why);
}

static bool take_listen(const config_setting_t *setting, void *to)
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

static bool take_store(const config_setting_t *setting, void *to)
{
	const char *store = text_of(setting);

	((struct settings *)to)->store = store;
	return *store || wrong(setting, "store is a folder, or a database");
}

static bool take_user(const config_setting_t *setting, void *to)
{
	((struct settings *)to)->user = text_of(setting);
	return true;
}

static bool take_sync(const config_setting_t *setting, void *to)
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

static bool take_job_size(const config_setting_t *setting, void *to)
{
	return take_number(setting, &((struct settings *)to)->job_size, 0, JOB_SIZE_MOST);
}

static bool take_connections(const config_setting_t *setting, void *to)
{
	return take_number(setting, &((struct settings *)to)->connections, 1, INT32_MAX);
}

static bool take_limits(const config_setting_t *setting, void *to)
{
	static const struct key keys[] = {
		{ "job-size", CONFIG_TYPE_INT64, take_job_size },
		{ "connections", CONFIG_TYPE_INT64, take_connections },
		{ 0 }
	};

	return take_group(setting, keys, to);
}

static bool take_metrics_listen(const config_setting_t *setting, void *to)
{
	((struct settings *)to)->metrics = text_of(setting);
	return is_address(setting, text_of(setting));
}

static bool take_tokens(const config_setting_t *setting, void *to)
{
	((struct settings *)to)->tokens = text_of(setting);
	return *text_of(setting) == '/' ||
		wrong(setting, "tokens is the path of a file, which begins with /");
}

static bool take_metrics(const config_setting_t *setting, void *to)
{
	static const struct key keys[] = {
		{ "listen", CONFIG_TYPE_STRING, take_metrics_listen },
		{ "tokens", CONFIG_TYPE_STRING, take_tokens },
		{ 0 }
	};

	return take_group(setting, keys, to);
}

/* Schedules */

static bool take_schedules(const config_setting_t *setting, void *to)
{
	((struct settings *)to)->schedules = text_of(setting);
	return *text_of(setting) == '/' ||
		wrong(setting, "schedules is the path of a folder, which begins with /");
}

static bool take_admin(const config_setting_t *setting, void *to)
{
	((struct settings *)to)->admin = text_of(setting);
	return *text_of(setting) == '/' ||
		wrong(setting, "admin is the path of a socket, which begins with /");
}

static bool take_place(const config_setting_t *setting, const char **to)
{
	*to = text_of(setting);
	return tube_name_ok(*to, strlen(*to)) ||
		wrong(setting, "%s is the end of a tube's name: letters, digits and -+/;.$_()",
		      config_setting_name(setting));
}

static bool take_node(const config_setting_t *setting, void *to)
{
	return take_place(setting, &((struct settings *)to)->node);
}

static bool take_site(const config_setting_t *setting, void *to)
{
	return take_place(setting, &((struct settings *)to)->site);
}

static bool take_history(const config_setting_t *setting, void *to)
{
	int64_t *history = &((struct settings *)to)->history;

	return (duration_parse(text_of(setting), 0, history) && *history >= HISTORY_LEAST) ||
		wrong(setting, "history is a time of 1d at least: " DURATION_EXAMPLES);
}

static bool take_lease(const config_setting_t *setting, void *to)
{
	int64_t *lease = &((struct settings *)to)->lease;

	return (duration_parse(text_of(setting), 0, lease) && *lease >= SECOND &&
		*lease <= 3600 * SECOND) ||
		wrong(setting, "lease is a time from 1s to 1h: " DURATION_EXAMPLES);
}

/* Tubes */

static bool take_name(const config_setting_t *setting, void *to)
{
	const char *name = text_of(setting);

	((struct tube_settings *)to)->pattern = name;
	return (*name && strlen(name) <= TUBE_NAME_MAX &&
		!name[strspn(name, TUBE_NAME_CHARS "*?[]!^")]) ||
		wrong(setting, "no tube can have a name like '%s'", name);
}

static bool take_unique(const config_setting_t *setting, void *to)
{
	struct tube_settings *tube = to;

	tube->unique = !strcmp(text_of(setting), "body");
	return tube->unique || !strcmp(text_of(setting), "no") ||
		wrong(setting, "unique is \"body\" or \"no\"");
}

static bool take_tries(const config_setting_t *setting, void *to)
{
	int64_t tries;

	if (!take_number(setting, &tries, 0, INT32_MAX))
		return false;
	((struct tube_settings *)to)->tries = tries;
	return true;
}

static bool take_tube_name(const config_setting_t *setting, const char **name)
{
	*name = text_of(setting);
	return tube_name_ok(*name, strlen(*name)) ||
		wrong(setting, "'%s' can't be the name of a tube", *name);
}

static bool take_dead_letter(const config_setting_t *setting, void *to)
{
	return take_tube_name(setting, &((struct tube_settings *)to)->dead_letter);
}

static bool take_on_failure(const config_setting_t *setting, void *to)
{
	return take_tube_name(setting, &((struct tube_settings *)to)->on_failure);
}

static bool take_on_recovery(const config_setting_t *setting, void *to)
{
	return take_tube_name(setting, &((struct tube_settings *)to)->on_recovery);
}

static bool take_on_missed(const config_setting_t *setting, void *to)
{
	return take_tube_name(setting, &((struct tube_settings *)to)->on_missed);
}

/* A backoff grows by this factor where "backoff-factor" is not set. */
#define FACTOR 2

static bool take_backoff(const config_setting_t *setting, void *to)
{
	struct tube_settings *tube = to;

	return (duration_range(text_of(setting), 0, &tube->backoff, &tube->backoff_most) &&
		tube->backoff) ||
		wrong(setting, "backoff is a time, or two as in \"2s..1h\", the longer one last: "
		      DURATION_EXAMPLES);
}

static bool take_factor(const config_setting_t *setting, void *to)
{
	return take_number(setting, &((struct tube_settings *)to)->factor, 1, 10);
}

static bool take_jitter(const config_setting_t *setting, void *to)
{
	return take_number(setting, &((struct tube_settings *)to)->jitter, 0, 100);
}

static bool take_at_most(const config_setting_t *setting, void *to)
{
	return take_number(setting, &((struct tube_settings *)to)->limit.at_most, 1, INT32_MAX);
}

/* The most of a rate's burst and time keep their product within an int64_t. */
#define BURST_MOST 10000
#define RATE_TIME_MOST (86400 * SECOND)

/* NUMBER/TIME, where a unit is a time. What does not divide is a little longer, never shorter. */
static bool take_rate(const config_setting_t *setting, void *to)
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
	((struct tube_settings *)to)->limit.interval = (ns - 1) / count + 1;
	return true;
}

static bool take_burst(const config_setting_t *setting, void *to)
{
	return take_number(setting, &((struct tube_settings *)to)->limit.burst, 1, BURST_MOST);
}

static bool take_unit(const config_setting_t *setting, void *to)
{
	int64_t ns;

	if (!duration_parse(text_of(setting), 0, &ns) || ns < SECOND / 1000 || ns > SECOND)
		return wrong(setting, "delay-unit is a time from 1ms to 1s: " DURATION_EXAMPLES);
	((struct tube_settings *)to)->unit = ns;
	return true;
}

static bool take_keep(const config_setting_t *setting, void *to)
{
	int64_t *keep = &((struct tube_settings *)to)->keep;

	return (duration_parse(text_of(setting), 0, keep) && *keep >= SECOND &&
		*keep <= KEEP_MOST) ||
		wrong(setting, "keep is a time from 1s to 36500d: " DURATION_EXAMPLES);
}

static bool take_tube(const config_setting_t *setting, struct tube_settings *tube)
{
	static const struct key keys[] = {
		{ "name", CONFIG_TYPE_STRING, take_name },
		{ "unique", CONFIG_TYPE_STRING, take_unique },
		{ "tries", CONFIG_TYPE_INT64, take_tries },
		{ "dead-letter", CONFIG_TYPE_STRING, take_dead_letter },
		{ "backoff", CONFIG_TYPE_STRING, take_backoff },
		{ "backoff-factor", CONFIG_TYPE_INT64, take_factor },
		{ "backoff-jitter", CONFIG_TYPE_INT64, take_jitter },
		{ "delay-unit", CONFIG_TYPE_STRING, take_unit },
		{ "keep", CONFIG_TYPE_STRING, take_keep },
		{ "on-failure", CONFIG_TYPE_STRING, take_on_failure },
		{ "on-recovery", CONFIG_TYPE_STRING, take_on_recovery },
		{ "on-missed", CONFIG_TYPE_STRING, take_on_missed },
		{ "at-most", CONFIG_TYPE_INT64, take_at_most },
		{ "rate", CONFIG_TYPE_STRING, take_rate },
		{ "rate-burst", CONFIG_TYPE_INT64, take_burst },
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

static bool take_tubes(const config_setting_t *setting, void *to)
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
		{ "listen", CONFIG_TYPE_ARRAY, take_listen },
		{ "store", CONFIG_TYPE_STRING, take_store },
		{ "sync", CONFIG_TYPE_STRING, take_sync },
		{ "user", CONFIG_TYPE_STRING, take_user },
		{ "limits", CONFIG_TYPE_GROUP, take_limits },
		{ "metrics", CONFIG_TYPE_GROUP, take_metrics },
		{ "schedules", CONFIG_TYPE_STRING, take_schedules },
		{ "node", CONFIG_TYPE_STRING, take_node },
		{ "site", CONFIG_TYPE_STRING, take_site },
		{ "history", CONFIG_TYPE_STRING, take_history },
		{ "lease", CONFIG_TYPE_STRING, take_lease },
		{ "admin", CONFIG_TYPE_STRING, take_admin },
		{ "tubes", CONFIG_TYPE_LIST, take_tubes },
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
	settings->sync = -1;
	settings->job_size = -1;
	settings->connections = -1;
	settings->history = -1;
	settings->lease = -1;
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
 * settings_use - put a configuration into force
 * @settings: the configuration, which is kept
 *
 * Settings that settings_tube() gave before are stale: ask again.
 */
void settings_use(struct settings *settings)
{
	pthread_mutex_lock(&lock);
	settings_free(used);
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
		if (is_name(used->tubes[i].on_failure, name) ||
		    is_name(used->tubes[i].on_recovery, name) ||
		    is_name(used->tubes[i].on_missed, name))
			return true;
	return false;
}

/** settings_tube - the settings of a tube: those of the first section that fits its name */
const struct tube_settings *settings_tube(const char *name)
{
	static const struct tube_settings plain = { .unit = SECOND };

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
