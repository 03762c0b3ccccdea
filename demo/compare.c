// SPDX-License-Identifier: GPL-2.0
/*
 * Draws the two backends beside each other, for a terminal of 80 columns.
 */
#include <stdio.h>

#include "demo.h"
#include "format.h"
#include "report.h"

static void row(const char *name, const char *left, const char *right)
{
	printf("  %-42s %15s %17s\n", name, left, right);
}

static void show_timers(const struct tally *l, const struct tally *r)
{
	printf("Timers\n");
	row("armed", number(l->armed), number(r->armed));
	row("re-armed", number(l->rearmed), number(r->rearmed));
	row("cancelled", number(l->cancelled), number(r->cancelled));
	row("expired", number(l->expired), number(r->expired));
	if (l->lapsed || r->lapsed)
		row("  re-armed too late by a slow machine",
		    number(l->lapsed), number(r->lapsed));
	row("periods of periodic timers", number(l->periods + l->overruns),
	    number(r->periods + r->overruns));
	row("pending, when most were", number(l->peak_pending),
	    number(r->peak_pending));
}

static void show_calls(const struct calls *l, const struct calls *r)
{
	printf("System calls\n");
	row("to arm, re-arm and cancel", number(l->submits + l->doorbells),
	    number(r->submits + r->doorbells));
	row("to wait for timers", number(l->waits), number(r->waits));
	row("to read what expired", number(l->reads), number(r->reads));
}

static double time_to_change(const struct tally *t)
{
	return (double)t->change_time / (t->armed + t->rearmed + t->cancelled);
}

/* 0 if nothing ever expired */
static double time_to_read(const struct tally *t)
{
	__u64 events = t->expired + t->periods;

	return events ? (double)t->read_time / events : 0;
}

/* How fast a computer is that may be emulated is no result: the lesser one is 1. */
static void show_ratio(const char *name, double l, double r)
{
	double least = l < r ? l : r;
	char left[16], right[16];

	if (!least)
		return;
	snprintf(left, sizeof(left), "%.1f", l / least);
	snprintf(right, sizeof(right), "%.1f", r / least);
	row(name, left, right);
}

static void bytes(char text[16], const struct tally *t)
{
	if (is_measured(t))
		snprintf(text, 16, "%.1f", (double)t->memory / t->memory_pending);
	else
		snprintf(text, 16, "unknown");
}

static void show_cost(const struct result *l, const struct result *r)
{
	char left[16], right[16];

	printf("Cost\n");
	show_ratio("time to arm, re-arm or cancel, relative",
		   time_to_change(&l->tally), time_to_change(&r->tally));
	show_ratio("time to read an expiry, relative",
		   time_to_read(&l->tally), time_to_read(&r->tally));
	bytes(left, &l->tally);
	bytes(right, &r->tally);
	row("bytes a timer", left, right);
	/* The counters never begin again, so the second day looks like the first */
	if (l->holds.known && r->holds.known) {
		row("longest hold until then", duration(l->holds.longest_run),
		    duration(r->holds.longest_run));
		row("most timers touched in one run until then",
		    number(l->holds.largest_run), number(r->holds.largest_run));
	}
	row("this machine stood still without timers",
	    duration(l->tally.machine_stop), duration(r->tally.machine_stop));
}

/* An upper bound for this part of a hundred */
static const char *within(const struct lateness *l, unsigned int percent)
{
	__u64 all = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++)
		all += l->buckets[i];
	for (i = 0; i < TWHEEL_LATENESS_BUCKETS - 1; i++) {
		sum += l->buckets[i];
		if (sum * 100 >= all * percent)
			break;
	}
	return duration(1ULL << i < l->most ? 1ULL << i : l->most);
}

static void show_lateness(const struct result *l, const struct result *r)
{
	const struct lateness *left = &l->tally.read, *right = &r->tally.read;

	printf("How late\n");
	row("half had been read after", within(left, 50), within(right, 50));
	row("99 % had been read after", within(left, 99), within(right, 99));
	row("all had been read after", duration(left->most), duration(right->most));
	row("at most, by the wheel's own count",
	    duration(l->stats.max_lateness), duration(r->stats.max_lateness));
}

static unsigned int show_promises(const struct result *l, const struct result *r)
{
	struct promise left[NR_PROMISES], right[NR_PROMISES];
	unsigned int broken = 0;
	unsigned int i;

	printf("Promises broken\n");
	promises_check(l, left);
	promises_check(r, right);
	for (i = 0; i < NR_PROMISES; i++) {
		row(left[i].name, number(left[i].broken), number(right[i].broken));
		broken += left[i].broken || right[i].broken;
	}
	promises_explain(l);
	promises_explain(r);
	return broken;
}

void report_backend(const struct backend *backend)
{
	printf("The timers of the connections: %s\n", backend->title);
}

unsigned int report_both(const struct result *ordinary, const struct result *shared)
{
	unsigned int broken;

	printf("\n");
	row("", ordinary->backend->title, shared->backend->title);
	show_timers(&ordinary->tally, &shared->tally);
	show_calls(&ordinary->tally.calls, &shared->tally.calls);
	show_cost(ordinary, shared);
	show_lateness(ordinary, shared);
	broken = show_promises(ordinary, shared);
	if (broken)
		printf("\n%u of the promises above DID NOT HOLD.\n\n", broken);
	else
		printf("\nAll promises were kept, with both backends.\n\n");
	return broken;
}
