// SPDX-License-Identifier: GPL-2.0
/*
 * twheel stats: what wheels have counted since they were opened.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "module.h"
#include "stats.h"
#include "tool.h"

#define BAR 40

static enum { AS_TEXT, AS_JSON, AS_PROMETHEUS } form;
static pid_t only_pid;
static int only_fd = -1;

static void parse_wheel(const char *arg, struct argp_state *state)
{
	long pid, fd = -1;
	char *end;

	errno = 0;
	pid = strtol(arg, &end, 10);
	if (end != arg && *end == ':') {
		const char *start = end + 1;

		fd = strtol(start, &end, 10);
		if (end == start || fd < 0)
			pid = 0;
	}
	if (errno || *end || pid <= 0 || pid > INT_MAX || fd > INT_MAX)
		argp_error(state, "'%s' is neither PID nor PID:FD", arg);
	only_pid = pid;
	only_fd = fd;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j':
		form = AS_JSON;
		return 0;
	case 'p':
		form = AS_PROMETHEUS;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one process only");
		parse_wheel(arg, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	OPTION_JSON,
	{ "prometheus", 'p', NULL, 0, "In the text format of Prometheus", 0 },
	{}
};

static const struct argp argp = {
	options, parse, "[PID[:FD]]",
	"Prints what wheels have counted: those of a process, one descriptor's, or all that "
	"you may see.\v"
	"Some counters are only for who may trace the process.",
	NULL, NULL, NULL
};

static json_t *lateness_json(const struct twheel_stats *stats)
{
	json_t *array = need(json_array());
	int i;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++)
		json_array_append_new(array, json_integer(stats->lateness[i]));
	return array;
}

static json_t *one_json(const struct wheels *wheels, const struct counters *counters)
{
	json_t *wheel = wheel_json(counters->wheel);
	const struct counter *counter;

	json_object_set_new(wheel, "holders", wheel_json_holders(wheels, counters->index));
	if (!counters->full)
		return wheel;
	for (counter = counters_of_stats; counter->name; counter++)
		json_object_set_new(wheel, counter->name,
				    json_integer(counter_value(counters, counter)));
	json_object_set_new(wheel, "max_lateness",
			    json_integer(counters->stats.max_lateness));
	json_object_set_new(wheel, "lateness", lateness_json(&counters->stats));
	return wheel;
}

static int print_as_json(const struct wheels *wheels, const struct counters *counters,
			 size_t nr)
{
	json_t *array = need(json_array());
	size_t i;

	for (i = 0; i < nr; i++)
		json_array_append_new(array, one_json(wheels, &counters[i]));
	return print_json(array);
}

static void print_number(const char *name, __u64 value)
{
	printf("  %-13s %15s\n", name, text_count(value).s);
}

/* From the first range with expiries in it to the last */
static void print_lateness(const struct twheel_stats *stats)
{
	int i, first = -1, last = -1;
	__u64 most = 0;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++) {
		if (!stats->lateness[i])
			continue;
		last = i;
		if (first < 0)
			first = i;
		if (stats->lateness[i] > most)
			most = stats->lateness[i];
	}
	for (i = first; last >= 0 && i <= last; i++)
		printf("  %s %-9s %15s %.*s\n", i ? "below" : "     ",
		       i ? text_ns(1ULL << i).s : "on time", text_count(stats->lateness[i]).s,
		       (int)((stats->lateness[i] * BAR + most - 1) / most),
		       "########################################");
}

static void print_one(const struct wheels *wheels, const struct counters *counters)
{
	const struct wheel *wheel = counters->wheel;
	const struct counter *counter;
	size_t i = counters->index;

	printf("wheel %llu of", wheel->nr);
	do {
		printf(" %s[%d] fd %d", wheels->at[i].program, wheels->at[i].pid,
		       wheels->at[i].fd);
		i++;
	} while (i < wheels->nr && !wheel_first(wheels, i));
	printf("\n  clock %s, a tick is %s\n", wheel->clock, text_ns(wheel->tick).s);
	print_number("pending", wheel->pending);
	print_number("ready", wheel->ready);
	print_number("limit", wheel->limit);
	if (wheel->shared)
		print_number("shared", wheel->shared);
	for (counter = counters_of_stats; counter->name; counter++)
		if (counters->full || counter->in_fdinfo)
			print_number(counter->name, counter_value(counters, counter));
	printf("  %-13s %15s\n", "latest", text_ns(counters->stats.max_lateness).s);
	if (counters->full)
		print_lateness(&counters->stats);
	else
		puts("  (the other counters are for who may trace the process: sudo twheel "
		     "stats)");
}

static int print(const struct wheels *wheels, const struct counters *counters, size_t nr)
{
	size_t i;

	if (form == AS_JSON)
		return print_as_json(wheels, counters, nr);
	if (form == AS_PROMETHEUS)
		return stats_prometheus(true, counters, nr);
	for (i = 0; i < nr; i++)
		print_one(wheels, &counters[i]);
	return finish_output(STATUS_OK);
}

static int not_found(int error)
{
	if (error == -EACCES)
		return fail(STATUS_NOT_ALLOWED,
			    "you may not look into process %d; as root: twheel stats %d",
			    only_pid, only_pid);
	if (error == -ENOENT)
		return fail(STATUS_FAILED, "there is no process %d", only_pid);
	if (error)
		return fail(STATUS_FAILED, "process %d: %s", only_pid, strerror(-error));
	if (only_fd >= 0)
		return fail(STATUS_FAILED, "descriptor %d of process %d is no wheel; twheel "
					   "list says which are",
			    only_fd, only_pid);
	return fail(STATUS_FAILED, "process %d has no wheel in the kernel; twheel list says "
				   "which have",
		    only_pid);
}

int cmd_stats(int argc, char **argv)
{
	struct counters *counters;
	struct wheels wheels;
	int status;
	size_t nr;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	status = module_missing();
	if (status) {
		if (form == AS_PROMETHEUS)
			stats_prometheus(false, NULL, 0);
		return status;
	}
	status = wheels_find(&wheels, only_pid, only_fd);
	if (status || (only_pid && !wheels.nr))
		return not_found(status);
	counters = counters_get(&wheels, &nr);
	status = print(&wheels, counters, nr);
	if (!nr && form == AS_TEXT)
		say(wheels.hidden ? "you have no wheels open; those of others only root can "
				    "see: sudo twheel stats" :
		    "no wheels are open");
	free(counters);
	wheels_free(&wheels);
	return status;
}
