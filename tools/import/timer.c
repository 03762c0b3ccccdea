// SPDX-License-Identifier: GPL-2.0
/*
 * A timer of systemd, as lines of a tab. What OnCalendar= means, systemd-analyze says in a form
 * in which all is there: DAYS YEAR-MONTH-DAY HOUR:MINUTE:SECOND ZONE, where days and zone may
 * be missing.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import.h"
#include "tool.h"

#define CALENDARS_MOST 64
#define PART 200

struct timer {
	char *calendars[CALENDARS_MOST];
	unsigned int lines[CALENDARS_MOST];
	size_t count;
	char *unit;
	long long jitter;	/* seconds */
	bool persistent;
};

/* What a timer says of OnCalendar=, in its normal form */
struct normal {
	char days[PART], year[PART], month[PART], day[PART];
	char hour[PART], minute[PART], second[PART], zone[PART];
};

/* What systemd-analyze says; NULL: it does not understand the text, or is not there. */
static char *normalize(const char *text)
{
	static const char key[] = "Normalized form: ";
	char *line = NULL, *found = NULL, *at;
	size_t room = 0;
	int ends[2];
	FILE *said;
	pid_t pid;

	if (pipe(ends) < 0)
		return NULL;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("LC_ALL", "C", 1);
		if (!freopen("/dev/null", "w", stderr))
			_exit(127);
		execlp("systemd-analyze", "systemd-analyze", "calendar", "--", text, NULL);
		_exit(127);
	}
	close(ends[1]);
	said = need(fdopen(ends[0], "r"));
	while (getline(&line, &room, said) > 0) {
		at = strstr(line, key);
		if (at && !found) {
			at[strcspn(at, "\n")] = 0;
			found = need(strdup(at + strlen(key)));
		}
	}
	free(line);
	fclose(said);
	waitpid(pid, NULL, 0);
	return found;
}

static bool take_apart(const char *text, struct normal *normal)
{
	static const char form[] =
		"%199[^- ]-%199[^-~ ]%1[-~]%199s %199[^: ]:%199[^: ]:%199s %199s";
	char last[2];
	int count, back;

	memset(normal, 0, sizeof(*normal));
	if (isalpha((unsigned char)*text)) {
		snprintf(normal->days, PART, "%.*s", (int)strcspn(text, " "), text);
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	count = sscanf(text, form, normal->year, normal->month, last, normal->day, normal->hour,
		       normal->minute, normal->second, normal->zone);
	if (count < 7)
		return false;
	/* The days of a month counted from its end: ~01 is the last one. */
	if (*last != '~')
		return true;
	back = atoi(normal->day) - 1;
	if (normal->day[strspn(normal->day, "0123456789")])
		return false;
	strcpy(normal->day, "L");
	if (back > 0)
		snprintf(normal->day, PART, "L-%d", back);
	return true;
}

/* a..b is a-b here. Gives false if a second has a fraction. */
static bool turn_ranges(char *part)
{
	char *to = part;

	for (char *at = part; *at; at++) {
		*to = *at;
		if (*at == '.') {
			*to = '-';
			if (*++at != '.')
				return false;
		}
		to++;
	}
	*to = 0;
	return true;
}

/* Sun in the days 1 to 7 is the first Sunday. Gives false if both days are said otherwise. */
static bool both_days(struct normal *normal)
{
	static const char * const weeks[] = { "01-07", "08-14", "15-21", "22-28" };
	char days[PART] = "", *name, *rest = normal->days;

	if (!*normal->days || !strcmp(normal->day, "*"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(weeks) && !strchr(normal->days, '-'); i++) {
		if (strcmp(normal->day, weeks[i]))
			continue;
		while ((name = strsep(&rest, ",")))
			snprintf(days + strlen(days), PART - strlen(days), "%s%s#%zu",
				 *days ? "," : "", name, i + 1);
		strcpy(normal->days, days);
		strcpy(normal->day, "*");
		return true;
	}
	return false;
}

static const char *convert(struct normal *normal)
{
	char *const parts[] = {
		normal->days, normal->year, normal->month, normal->day, normal->hour,
		normal->minute, normal->second,
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!turn_ranges(parts[i]))
			return "fractions of a second are not there";
	return both_days(normal) ? NULL :
		"a day of the week and one of the month would be 'or' here, not 'and'";
}

/* Only names that the server takes, and the first of several lines has it as it is. */
static void print_name(struct import *import, const char *path, size_t number)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int length = strlen(name) - strlen(".timer");

	if (length <= 0 || length > 190 || *name == '-')
		return;
	for (int i = 0; i < length; i++)
		if (!isascii((unsigned char)name[i]) ||
		    (!isalnum((unsigned char)name[i]) && !strchr("-+/;.$_()", name[i])))
			return;
	fprintf(import->tab, "NAME=%.*s", length, name);
	if (number)
		fprintf(import->tab, ".%zu", number + 1);
	putc(' ', import->tab);
}

static void print_unit(struct import *import, const struct timer *timer)
{
	const char *slash = strrchr(import->path, '/');
	char *name = need(strdup(slash ? slash + 1 : import->path));

	name[strlen(name) - strlen(".timer")] = 0;
	fputs("systemctl start ", import->tab);
	import_percent(import, timer->unit ? timer->unit : name);
	fputs(timer->unit ? "\n" : ".service\n", import->tab);
	free(name);
}

static void print_calendar(struct import *import, const struct timer *timer, size_t number)
{
	char *text = normalize(timer->calendars[number]);
	const char *why = NULL;
	struct normal normal;

	import->line = timer->lines[number];
	if (!text)
		why = "systemd-analyze does not understand it, or is not there";
	else if (!take_apart(text, &normal))
		why = "these times have no like here";
	else
		why = convert(&normal);
	free(text);
	if (why) {
		import_leave_out(import, timer->calendars[number], "%s", why);
		return;
	}
	import_fields(import, 7);
	fprintf(import->tab, "%s %s %s %s %s %s %s ", normal.second, normal.minute, normal.hour,
		normal.day, normal.month, *normal.days ? normal.days : "?", normal.year);
	print_name(import, import->path, number);
	if (*normal.zone)
		fprintf(import->tab, "CRON_TZ=%s ", normal.zone);
	if (timer->jitter)
		fprintf(import->tab, "JITTER=%lld ", timer->jitter);
	if (timer->persistent)
		fputs("MISFIRE=once ", import->tab);
	print_unit(import, timer);
}

/* As systemd writes it, "1h 30min", or seconds; gives -1 if it is no time of whole seconds. */
static long long seconds_of(const char *text)
{
	int64_t ns;

	return duration_parse(text, SEC, &ns) && ns % SEC == 0 ? ns / (int64_t)SEC : -1;
}

static void take_jitter(struct import *import, struct timer *timer, const char *text,
			const char *value)
{
	timer->jitter = seconds_of(value);
	if (timer->jitter >= 0)
		return;
	timer->jitter = 0;
	import_leave_out(import, text, "JITTER is in whole seconds here, up to 1d");
}

static void add_calendar(struct import *import, struct timer *timer, const char *value)
{
	if (!*value) {
		while (timer->count)
			free(timer->calendars[--timer->count]);
	} else if (timer->count == CALENDARS_MOST) {
		import_leave_out(import, value, "%d times are the most", CALENDARS_MOST);
	} else {
		timer->lines[timer->count] = import->line;
		timer->calendars[timer->count++] = need(strdup(value));
	}
}

/* What only says how a timer is served, or would be so anyway */
static bool means_nothing(const char *key)
{
	static const char * const keys[] = {
		"AccuracySec", "RemainAfterElapse", "FixedRandomDelay", "DeferReactivation",
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

static void take_setting(struct import *import, struct timer *timer, const char *text,
			 const char *key, const char *value)
{
	if (!strcmp(key, "OnCalendar"))
		add_calendar(import, timer, value);
	else if (!strcmp(key, "Unit") && !timer->unit)
		timer->unit = need(strdup(value));
	else if (!strcmp(key, "RandomizedDelaySec"))
		take_jitter(import, timer, text, value);
	else if (!strcmp(key, "Persistent"))
		timer->persistent = (*value && strchr("1yYtT", *value)) ||
			!strcasecmp(value, "on");
	else if (!means_nothing(key) && strncmp(key, "On", 2))
		import_leave_out(import, text, "%s= has no like here", key);
	else if (!means_nothing(key))
		import_leave_out(import, text,
				 "%s= is no time of the day; @every 1h is something like it", key);
}

static char *trimmed(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strcspn(text, "\r\n");
	while (length && strchr(" \t", text[length - 1]))
		length--;
	text[length] = 0;
	return text;
}

static void take_line(struct import *import, struct timer *timer, char *text)
{
	char *copy = need(strdup(text)), *equals = strchr(copy, '=');

	if (equals) {
		*equals = 0;
		take_setting(import, timer, text, trimmed(copy), trimmed(equals + 1));
	} else {
		import_leave_out(import, text, "this is no setting");
	}
	free(copy);
}

static bool is_template(const char *path)
{
	const char *at = strrchr(path, '@');

	return at && !strcmp(at, "@.timer");
}

/* import_timer - the times of a timer, and what it starts */
void import_timer(struct import *import, FILE *file)
{
	struct timer timer = { .count = 0 };
	bool ours = false;
	char *line = NULL;
	size_t room = 0;

	import_tell(import, "a timer of systemd");
	while (getline(&line, &room, file) > 0) {
		char *text = trimmed(line);

		import->line++;
		if (*text == '[')
			ours = !strcmp(text, "[Timer]");
		else if (ours && *text && !strchr("#;", *text))
			take_line(import, &timer, text);
	}
	if (is_template(import->path))
		import_leave_out(import, import->path,
				 "this is a template: import a file that has an instance's name, like x@1.timer");
	else if (!timer.count)
		import_leave_out(import, import->path, "there is no time, OnCalendar=, in [Timer]");
	else
		for (size_t i = 0; i < timer.count; i++) {
			print_calendar(import, &timer, i);
			import_place(import);
		}
	add_calendar(import, &timer, "");
	free(timer.unit);
	free(line);
}
