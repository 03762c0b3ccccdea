// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of the kernel's trace. See trace_line.h. Such a line is
 *
 *	 PROGRAM-PID   [CPU] FLAGS SECONDS: twheel_EVENT: wheel=1 ...
 *
 * where a program chooses its name: so it is taken apart from its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/twheel.h>

#include "tool.h"
#include "trace_line.h"
#include "wheels.h"

static const struct {
	const char *name;
	size_t offset;
} fields[] = {
#define FIELD(name, field) { name "=", offsetof(struct trace_line, field) }
	FIELD("wheel", wheel),
	FIELD("id", id),
	FIELD("deadline", deadline),
	FIELD("interval", interval),
	FIELD("user_data", user_data),
	FIELD("state", state),
	FIELD("timers", count),
	FIELD("events", count),
	FIELD("limit", count),
	FIELD("lateness", lateness),
};

static char *last(char *text, const char *what)
{
	char *found = NULL, *next = text;

	while ((next = strstr(next, what)))
		found = next++;
	return found;
}

static void parse_fields(struct trace_line *line, char *text)
{
	char *word, *state;
	size_t i;

	for (word = strtok_r(text, "\n ", &state); word; word = strtok_r(NULL, "\n ", &state))
		for (i = 0; i < ARRAY_SIZE(fields); i++)
			if (!strncmp(word, fields[i].name, strlen(fields[i].name)))
				*(__u64 *)((char *)line + fields[i].offset) =
					strtoull(strchr(word, '=') + 1, NULL, 0);
}

/* "PROGRAM-PID [CPU] FLAGS SECONDS" */
static bool parse_front(struct trace_line *line, char *text)
{
	unsigned long long seconds, usecs;
	char *time = strrchr(text, ' '), *cpu, *dash;

	if (!time || sscanf(time, " %llu.%llu", &seconds, &usecs) != 2)
		return false;
	line->time = seconds * SEC + usecs * USEC;
	*time = 0;
	cpu = last(text, " [");
	if (!cpu)
		return false;
	*cpu = 0;
	dash = strrchr(text, '-');
	if (!dash)
		return false;
	line->pid = atoi(dash + 1);
	*dash = 0;
	text += strspn(text, " ");
	snprintf(line->program, sizeof(line->program), "%.31s", text);
	printable(line->program);
	return true;
}

/* False for a line that is something else */
bool trace_line_parse(struct trace_line *line, char *text)
{
	char *event = last(text, ": twheel_"), *rest;

	memset(line, 0, sizeof(*line));
	if (!event)
		return false;
	*event = 0;
	event += strlen(": twheel_");
	rest = strchr(event, ':');
	if (!rest)
		return false;
	*rest = 0;
	snprintf(line->event, sizeof(line->event), "%.15s", event);
	parse_fields(line, rest + 1);
	return parse_front(line, text);
}

/*
 * The clock of a wheel, or -1 if that is not known. The wheels are looked for anew when
 * there is one that was not there before, but not all the time.
 */
static clockid_t clock_of(__u64 nr, __u64 time)
{
	static const struct {
		const char *name;
		clockid_t id;
	} clocks[] = {
		{ "monotonic", CLOCK_MONOTONIC }, { "boottime", CLOCK_BOOTTIME },
		{ "realtime", CLOCK_REALTIME }, { "tai", CLOCK_TAI },
	};
	static struct wheels wheels;
	static __u64 looked;
	size_t i, k, turn;

	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < wheels.nr && wheels.at[i].nr != nr; i++)
			;
		for (k = 0; i < wheels.nr && k < ARRAY_SIZE(clocks); k++)
			if (!strcmp(wheels.at[i].clock, clocks[k].name))
				return clocks[k].id;
		if (looked && time - looked < SEC)
			break;
		looked = time;
		wheels_free(&wheels);
		wheels_find(&wheels, 0, -1);
	}
	return -1;
}

/* A time of a wheel's clock, as how far off it was */
static void print_deadline(const struct trace_line *line)
{
	clockid_t clock = clock_of(line->wheel, line->time);
	struct timespec mono, own;
	__s64 off;

	if (clock < 0 || clock_gettime(CLOCK_MONOTONIC, &mono) || clock_gettime(clock, &own)) {
		printf(" at %llu ns of its clock", line->deadline);
		return;
	}
	off = line->deadline - line->time - (own.tv_sec - mono.tv_sec) * (__s64)SEC -
		(own.tv_nsec - mono.tv_nsec);
	if (off > 0)
		printf(" in %s", text_ns(off).s);
	else
		printf(", due at once");
}

static void print_times(const struct trace_line *line)
{
	printf("timer %#llx", line->id);
	print_deadline(line);
	if (line->interval)
		printf(", each %s", text_ns(line->interval).s);
	printf(", user data %#llx", line->user_data);
}

static const char *plural(__u64 count)
{
	return count == 1 ? "" : "s";
}

static const char *state_name(__u64 state)
{
	if (state == TWHEEL_STATE_NONE)
		return "none";
	return state == TWHEEL_STATE_READY ? "ready" : "pending";
}

void trace_line_print(const struct trace_line *line)
{
	char who[48];

	snprintf(who, sizeof(who), "%s[%d]", line->program, line->pid);
	printf("%5llu.%06llu  %-20s wheel %-4llu %-6s  ", line->time / SEC,
	       line->time % SEC / USEC, who, line->wheel, line->event);
	if (!strcmp(line->event, "arm") || !strcmp(line->event, "modify"))
		print_times(line);
	else if (!strcmp(line->event, "cancel"))
		printf("timer %#llx, which was %s", line->id, state_name(line->state));
	else if (!strcmp(line->event, "expire"))
		printf("%s timer%s, %s late", text_count(line->count).s, plural(line->count),
		       text_ns(line->lateness).s);
	else if (!strcmp(line->event, "read"))
		printf("%s event%s", text_count(line->count).s, plural(line->count));
	else if (!strcmp(line->event, "limit"))
		printf("refused: the limit is %s", text_count(line->count).s);
	putchar('\n');
}

/* (Ids and user data have 64 bits, which numbers of JSON need not have.) */
static void set_hex(json_t *json, const char *name, __u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%#llx", value);
	json_object_set_new(json, name, json_string(text));
}

static void set(json_t *json, const char *name, __u64 value)
{
	json_object_set_new(json, name, json_integer(value));
}

json_t *trace_line_json(const struct trace_line *line)
{
	json_t *json = need(json_pack("{s:I, s:s, s:i, s:s, s:I}", "time",
				      (json_int_t)line->time, "program", line->program, "pid",
				      line->pid, "event", line->event, "wheel",
				      (json_int_t)line->wheel));

	if (!strcmp(line->event, "arm") || !strcmp(line->event, "modify")) {
		set_hex(json, "id", line->id);
		set(json, "deadline", line->deadline);
		set(json, "interval", line->interval);
		set_hex(json, "user_data", line->user_data);
	} else if (!strcmp(line->event, "cancel")) {
		set_hex(json, "id", line->id);
		json_object_set_new(json, "state", json_string(state_name(line->state)));
	} else if (!strcmp(line->event, "expire")) {
		set(json, "timers", line->count);
		set(json, "lateness", line->lateness);
	} else {
		set(json, strcmp(line->event, "read") ? "limit" : "events", line->count);
	}
	return json;
}
