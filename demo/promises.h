/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the program's oracle has, and whether the promises were kept by it.
 */
#ifndef DEMO_PROMISES_H
#define DEMO_PROMISES_H

#include <stdbool.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "holds.h"
#include "backend.h"

/* As in &struct twheel_stats */
struct lateness {
	__u64 buckets[TWHEEL_LATENESS_BUCKETS];
	__u64 most;
};

/* What the program counted itself, without asking the wheel. */
struct tally {
	__u64 armed;
	__u64 rearmed;
	__u64 cancelled;
	__u64 expired;	/* of the connections' timers */
	__u64 lapsed;	/* of these: pushed or closed too late */
	__u64 withdrawn;	/* expired, but re-armed or cancelled before it was read */
	__u64 periods;	/* events of periodic timers */
	__u64 overruns;	/* periods that these events counted besides */
	__u64 withdrawn_periods;

	__u64 pending;
	__u64 peak_pending;
	__u64 peak_time;	/* as it is played, in ns */
	__u64 memory_pending;	/* pending when @memory was measured */
	__u64 memory;	/* more than before the wheel was set up */

	__u64 early;
	__u64 lost;
	__u64 twice;
	__u64 after_cancel;
	__u64 refused;	/* live timers that the wheel didn't know */

	struct lateness read;	/* from deadline until the program had it */
	__u64 machine_stop;	/* longest stop of a busy loop without timers */
	__u64 elapsed;

	struct calls calls;
	__u64 change_time;	/* in calls to arm, re-arm and cancel */
	__u64 read_time;	/* in calls to read, not to wait */
};

struct result {
	const struct backend *backend;
	struct tally tally;
	struct twheel_info info;
	struct twheel_stats stats;
	struct holds holds;
};

struct promise {
	const char *name;
	__u64 broken;	/* how often */
};

#define NR_PROMISES 7

void promises_check(const struct result *r, struct promise promises[NR_PROMISES]);

/* Says in what the wheel counts otherwise, if it does. */
void promises_explain(const struct result *r);

/* Were there enough timers to measure their memory? */
bool is_measured(const struct tally *t);

/* A cgroup is charged in advance, for some hundred kilobytes at a time. */
#define LEAST_MEASURED 100000

#endif
