// SPDX-License-Identifier: GPL-2.0
/*
 * The counters in the text format of Prometheus. A metric stands there with all its
 * samples, one for each wheel. (Nothing is to be escaped in the labels: names have only
 * printable characters, and of those quotes and backslashes are replaced here.)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stats.h"
#include "tool.h"

/*
 * Ends of the histogram's ranges: 2^n - 1 ns. Always the same ones, so that sums over wheels
 * make sense; fewer than the kernel has, as each is a time series.
 */
static const int ends[] = { 0, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 34 };

static void head(const char *name, const char *type, const char *help)
{
	printf("# HELP twheel_%s %s\n# TYPE twheel_%s %s\n", name, help, name, type);
}

static void labels(const struct counters *counters)
{
	const struct wheel *wheel = counters->wheel;
	char program[sizeof(wheel->program)], *c;

	strcpy(program, wheel->program);
	while ((c = strpbrk(program, "\"\\")))
		*c = '?';
	printf("wheel=\"%llu\",pid=\"%d\",program=\"%s\",uid=\"%llu\",clock=\"%s\"", wheel->nr,
	       wheel->pid, program, wheel->uid, wheel->clock);
}

static void sample(const char *name, const struct counters *counters, const char *value)
{
	printf("twheel_%s{", name);
	labels(counters);
	printf("} %s\n", value);
}

static void number(const char *name, const struct counters *counters, __u64 value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	sample(name, counters, text);
}

static void seconds(const char *name, const struct counters *counters, __u64 ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", ns / 1e9);
	sample(name, counters, text);
}

static void gauges(const struct counters *counters, size_t nr)
{
	static const struct {
		const char *name, *help;
		size_t offset;
		bool is_time;
	} gauge[] = {
		{ "pending", "Timers that are armed and not expired.",
		  offsetof(struct wheel, pending), false },
		{ "ready", "Timers that are expired and not read.",
		  offsetof(struct wheel, ready), false },
		{ "limit", "Most timers that the wheel may hold.",
		  offsetof(struct wheel, limit), false },
		{ "shared", "Shared timers of the wheel.",
		  offsetof(struct wheel, shared), false },
		{ "tick_seconds", "Length of a tick.", offsetof(struct wheel, tick), true },
		{ "lateness_max_seconds", "The largest lateness since the wheel was opened.",
		  offsetof(struct wheel, max_lateness), true },
	};
	size_t i, k;

	for (k = 0; k < ARRAY_SIZE(gauge); k++) {
		head(gauge[k].name, "gauge", gauge[k].help);
		for (i = 0; i < nr; i++) {
			__u64 value = *(const __u64 *)((const char *)counters[i].wheel +
						       gauge[k].offset);

			(gauge[k].is_time ? seconds : number)(gauge[k].name, &counters[i],
							      value);
		}
	}
}

static void totals(const struct counters *counters, size_t nr)
{
	const struct counter *counter;
	char name[32];
	size_t i;

	for (counter = counters_of_stats; counter->name; counter++) {
		snprintf(name, sizeof(name), "%s_total", counter->name);
		head(name, "counter", counter->help);
		for (i = 0; i < nr; i++)
			if (counters[i].full || counter->in_fdinfo)
				number(name, &counters[i],
				       counter_value(&counters[i], counter));
	}
}

static void bucket(const struct counters *counters, const char *end, __u64 count)
{
	printf("twheel_lateness_seconds_bucket{");
	labels(counters);
	printf(",le=\"%s\"} %llu\n", end, count);
}

static void histogram(const struct counters *counters)
{
	size_t i, end = 0;
	char text[32];
	__u64 sum = 0;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++) {
		sum += counters->stats.lateness[i];
		if (end == ARRAY_SIZE(ends) || (size_t)ends[end] != i)
			continue;
		snprintf(text, sizeof(text), "%.12g", ((1ULL << i) - 1) / 1e9);
		bucket(counters, text, sum);
		end++;
	}
	bucket(counters, "+Inf", sum);
	number("lateness_seconds_count", counters, sum);
}

int stats_prometheus(bool loaded, const struct counters *counters, size_t nr)
{
	size_t i;

	head("module_loaded", "gauge", "Whether the module twheel is loaded.");
	printf("twheel_module_loaded %d\n", loaded);
	head("wheels", "gauge", "Wheels that this program may see.");
	printf("twheel_wheels %zu\n", nr);
	gauges(counters, nr);
	totals(counters, nr);
	head("lateness_seconds", "histogram",
	     "Expiries by lateness, from the tick that a timer was due at. The kernel keeps "
	     "no sum.");
	for (i = 0; i < nr; i++)
		if (counters[i].full)
			histogram(&counters[i]);
	return finish_output(STATUS_OK);
}
