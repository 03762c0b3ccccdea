// SPDX-License-Identifier: GPL-2.0
/*
 * Finds out whether the promises were kept: by the program's oracle, and by the
 * wheel's counters, which must tell the same story.
 */
#include <stdio.h>

#include "demo.h"
#include "format.h"
#include "promises.h"

/* Less than this for each timer can't be: a deadline and a place in a list. */
#define LEAST_BYTES 16

#define MAX_COUNTERS 8

struct counter {
	const char *name;
	__u64 wheel;
	__u64 program;
};

/* Expiries of the connections' timers, as the program saw them */
static __u64 expiries(const struct tally *t)
{
	return t->expired + t->twice + t->after_cancel;
}

/* What both backends have */
static unsigned int count_common(const struct result *r, struct counter *c)
{
	const struct twheel_stats *stats = &r->stats;
	const struct tally *t = &r->tally;

	/* (What expires in a BPF program is counted by the program that takes it, or reads it.) */
	bool all = r->backend->where != TWHEEL_BPF;

	c[0] = (struct counter){
		"expired", stats->expired, t->periods + t->withdrawn_periods +
		(all ? expiries(t) + t->withdrawn : 0)
	};
	c[1] = (struct counter){
		"read", stats->delivered, t->periods + (all ? expiries(t) - t->calls.taken : 0)
	};
	c[2] = (struct counter){ "overruns", stats->overruns, t->overruns };
	return 3;
}

static unsigned int count_ordinary(const struct result *r, struct counter *c)
{
	const struct twheel_stats *stats = &r->stats;
	const struct tally *t = &r->tally;

	c[0] = (struct counter){ "armed", stats->armed, t->armed };
	c[1] = (struct counter){ "re-armed", stats->modified, t->rearmed };
	c[2] = (struct counter){ "cancelled", stats->cancelled, t->cancelled };
	c[3] = (struct counter){
		"left over", r->info.pending + r->info.ready, t->pending
	};
	return 4;
}

/*
 * The module knows of shared timers only what its scans found. Each of these was
 * cancelled, or expired, or is in the wheel, which need not know yet that it was
 * cancelled.
 */
static unsigned int count_shared(const struct result *r, struct counter *c)
{
	const struct twheel_stats *stats = &r->stats;
	const struct tally *t = &r->tally;

	c[0] = (struct counter){
		"armed, and neither cancelled nor pending",
		stats->armed - stats->cancelled - r->info.pending,
		expiries(t) + t->withdrawn
	};
	c[1] = (struct counter){ "not read", r->info.ready, 0 };
	return 2;
}

static unsigned int count(const struct result *r, struct counter *counters)
{
	unsigned int nr = count_common(r, counters);

	if (r->backend->where == TWHEEL_BPF)
		return nr;
	if (r->backend == &backend_shared)
		return nr + count_shared(r, counters + nr);
	return nr + count_ordinary(r, counters + nr);
}

static unsigned int counted_otherwise(const struct result *r)
{
	struct counter counters[MAX_COUNTERS];
	unsigned int nr = count(r, counters);
	unsigned int broken = 0;

	while (nr--)
		broken += counters[nr].wheel != counters[nr].program;
	return broken;
}

void promises_explain(const struct result *r)
{
	struct counter counters[MAX_COUNTERS];
	unsigned int nr = count(r, counters);
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (counters[i].wheel != counters[i].program)
			printf("    %s, %s: the wheel counts %s, the program %s\n",
			       r->backend->name, counters[i].name,
			       number(counters[i].wheel),
			       number(counters[i].program));
}

bool is_measured(const struct tally *t)
{
	return t->memory_pending >= LEAST_MEASURED;
}

static __u64 not_charged(const struct tally *t)
{
	return is_measured(t) && t->memory < t->memory_pending * LEAST_BYTES ?
	       t->memory_pending : 0;
}

void promises_check(const struct result *r, struct promise promises[NR_PROMISES])
{
	const struct tally *t = &r->tally;
	bool in_kernel = r->backend->where == TWHEEL_KERNEL;
	const struct promise all[NR_PROMISES] = {
		{ "early", t->early },
		{ "lost", t->lost },
		{ "read twice", t->twice },
		{ "read after they were cancelled", t->after_cancel },
		{ "alive, but not found", t->refused },
		{ r->backend->where == TWHEEL_BPF ? NULL :
		  in_kernel ? "not charged to the opener's cgroup" :
			      "not found in the program's memory", not_charged(t) },
		{ "counted otherwise by the wheel", counted_otherwise(r) },
	};
	unsigned int i;

	for (i = 0; i < NR_PROMISES; i++)
		promises[i] = all[i];
}
