// SPDX-License-Identifier: GPL-2.0
/*
 * twheel bench: what timers cost on this machine, beside timerfd and epoll. It is wall-clock
 * time, with all that the machine does besides in it: for figures that repeat, there is
 * bench/ of the source.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench_measure.h"
#include "tool.h"

#define BAR 36

static const char *const step_names[BENCH_STEPS] = {
	"arm", "re-arm", "cancel", "expire and read"
};

static bool as_json, timers_said;
static struct bench_result result = { .timers = 100000 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	unsigned long nr;
	char *end;

	switch (key) {
	case 'j':
		as_json = true;
		return 0;
	case 'q':
		result.timers = 2000;
		timers_said = true;
		return 0;
	case 'n':
		nr = strtoul(arg, &end, 10);
		if (*end || nr < 100 || nr > 1000000)
			argp_error(state, "'%s' is no number from 100 to 1000000", arg);
		result.timers = nr;
		timers_said = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	OPTION_JSON,
	{ "quick", 'q', NULL, 0, "With 2,000 timers: a second or so", 0 },
	{ "timers", 'n', "NUMBER", 0,
	  "How many timers (100000; fewer on a slow machine, or where ulimit -n is low)", 0 },
	{}
};

static const struct argp argp = {
	options, parse, NULL,
	"Measures what timers cost on this machine, in wheels and beside that in timerfd and "
	"epoll. It takes less than a minute.\v"
	"It is wall-clock time of this machine, as busy as it is now, and so not the same on "
	"every run.",
	NULL, NULL, NULL
};

static double each(unsigned int way, int step)
{
	return (double)result.least[way][step] / result.timers;
}

static int print_as_json(void)
{
	json_t *results = need(json_object());
	unsigned int i;
	int step;

	for (i = 0; i < BENCH_WAYS; i++) {
		json_t *way = need(json_object());

		for (step = 0; !result.errors[i] && step < BENCH_STEPS; step++)
			json_object_set_new(way, step_names[step],
					    json_real(each(i, step)));
		if (result.errors[i])
			json_object_set_new(way, "error",
					    json_string(strerror(-result.errors[i])));
		json_object_set_new(results, bench_way_of(i)->name, way);
	}
	return print_json(json_pack("{s:i, s:s, s:s, s:o}", "timers", (int)result.timers, "unit",
				    "ns for each timer", "clock", "wall-clock of this machine",
				    "results", results));
}

static void print_step(int step)
{
	double most = 0;
	unsigned int i;
	int bar;

	printf("\n%s\n", step_names[step]);
	for (i = 0; i < BENCH_WAYS; i++)
		if (!result.errors[i] && each(i, step) > most)
			most = each(i, step);
	for (i = 0; i < BENCH_WAYS; i++) {
		if (result.errors[i])
			continue;
		bar = most > 0 ? each(i, step) / most * BAR + 0.5 : 0;
		printf("  %-31s %8.0f ns %.*s\n", bench_way_of(i)->name, each(i, step),
		       bar ? bar : 1, "####################################");
	}
}

static const char *why(int error)
{
	if (error == -ENOENT)
		return "the module is not loaded; as root: modprobe twheel";
	if (error == -EACCES || error == -EPERM)
		return "you may not open /dev/twheel; twheel info says how";
	if (error == -EMFILE)
		return "this many descriptors are not allowed; ulimit -Hn says how many are, -n "
		       "NUMBER wants fewer";
	return strerror(-error);
}

static int print(void)
{
	unsigned int i;
	int step;

	printf("%s timers. Wall-clock time of this machine, as busy as it is now; for each "
	       "timer, the best of\n"
	       "up to %d rounds. \"arm\" of timerfd makes its descriptor, too.\n",
	       text_count(result.timers).s, BENCH_ROUNDS);
	for (step = 0; step < BENCH_STEPS; step++)
		print_step(step);
	putchar('\n');
	for (i = 0; i < BENCH_WAYS; i++)
		if (result.errors[i])
			printf("not measured: %s: %s\n", bench_way_of(i)->name,
			       why(result.errors[i]));
	return finish_output(STATUS_OK);
}

/* The library's own wheel is there everywhere, so an error of that is one. */
static int worst(void)
{
	return result.errors[2] || result.errors[3] ? STATUS_FAILED : STATUS_OK;
}

int cmd_bench(int argc, char **argv)
{
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!timers_said)
		result.timers = bench_fit(result.timers);
	bench_measure(&result, !isatty(STDERR_FILENO));
	status = as_json ? print_as_json() : print();
	return status ? status : worst();
}
