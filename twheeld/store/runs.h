/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the committer writes of schedules and their runs.
 *
 * A firing is one operation: the schedule's next time goes on, and its runs and their jobs
 * come into being, in the same transaction. What ends a job ends its run in the transaction
 * that writes it.
 */
#ifndef TWHEELD_RUNS_H
#define TWHEELD_RUNS_H

#include "base/limits.h"
#include "store/commit.h"

/* One job of a firing */
struct firing_run {
	int64_t time;
	uint32_t shard;
	struct op put;
	bool made;		/* out: the job is new, or one that is there serves for it */
	bool skipped;		/* out: by OVERLAP=no */
	bool waits;		/* out: until what is open has ended */
};

struct firing {
	struct schedule *schedule;
	int64_t id;		/* of the schedule */
	int64_t from, next;	/* its next time goes from this to that; the same: it stays */
	int64_t since;		/* what goes with @next: times before are not made up for */
	int64_t digest;		/* of its definition, and as a shared store has it: */
	struct schedule_row found;	/* if stale; id: is it there? */
	int64_t missed;		/* the first time for which no job is made; 0: there is none */
	bool overlap;		/* or else, while a run is open, none is made; or one after it: */
	bool waits;
	bool waited;		/* its one time is one that waits; if it does not, nothing is made */
	bool stale;		/* out: its next time is another one */
	void *request;		/* of the admin socket */
	size_t weight;		/* what it costs, in bytes */
	size_t count;
	struct firing_run runs[];
};

/* OP_PRUNE: what is over is forgotten, a piece at a time. */
struct prune {
	struct op op;
	/* Some of the schedules that no file has */
	size_t count;
	struct schedule *gone[PRUNE_PIECE];
	int64_t ids[PRUNE_PIECE];
	bool forgotten[PRUNE_PIECE];	/* out: the store has it no more */
};

/* Times that may be made at a time, which have waited */
#define WAITING_MOST 500

/* OP_WAITING: which times wait no longer for anything. */
struct waiting {
	struct op op;
	bool any;			/* out: are there any that wait? */
	size_t count;			/* out: of those that need not */
	struct waiting_time {
		int64_t schedule, time;
	} found[WAITING_MOST];
};

/* Where runs are kept. Each gives false if the transaction has failed. */
struct run_table {
	/* Times for which there was no job may have one, once. */
	bool (*may_run)(const struct firing *firing, const struct firing_run *run, bool *may);
	/* Is there a run of the schedule whose job was not ended? */
	bool (*any_open)(const struct firing *firing, bool *open);
	/* Does that time wait? */
	bool (*waits)(const struct firing *firing, int64_t time, bool *waits);
	/* Those that wait are left out, but for that time: there is one that does for them. */
	bool (*leave_out)(const struct firing *firing, int64_t time);
	/* What there is for a time stays, unless there was no job for it. */
	bool (*write)(const struct firing *firing, int64_t time, uint32_t shard, int64_t job,
		      enum result result);
	bool (*put)(struct op *op);
};

bool runs_make(struct firing *firing, const struct run_table *table);
void runs_told(struct runs_asked *asked, const struct run_row *run);

#endif
