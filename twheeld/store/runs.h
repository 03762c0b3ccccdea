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

/* The run that comes before another one: numbers of BEFORE */
enum before { BEFORE_OPEN, BEFORE_DONE, BEFORE_FAILED };

/* One that was left out has failed, too. One that is not there may come. */
#define BEFORE(runs, schedule_, time_) "(SELECT CASE WHEN count(*) = 0 THEN 0" \
	" WHEN sum(CASE WHEN result > 2 THEN 1 ELSE 0 END) > 0 THEN 2" \
	" WHEN sum(CASE WHEN result < 2 THEN 1 ELSE 0 END) > 0 THEN 0 ELSE 1 END" \
	" FROM " runs " AS b WHERE b.schedule = " schedule_ " AND b.time = " time_ ")"

/* One job of a firing */
struct firing_run {
	int64_t time;
	uint32_t shard;
	struct op put;
	bool there;		/* out: it was, before */
	bool made;		/* out: the job is new, or one that is there serves for it */
	bool skipped;		/* out: by OVERLAP=no */
	bool waits;		/* out: until what is open has ended, or: */
	bool before;		/* out: until the run that comes before it is done */
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
	int64_t after, within;	/* a schedule whose run for that time is to be done first; ns */
	bool waited;		/* its one time is one that waits; if not, nothing is made */
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
	/* Does that time wait? And has it waited for too long? */
	bool (*waits)(const struct firing *firing, int64_t time, bool *waits, bool *over);
	/* What became of the run for that time which comes before it */
	bool (*before)(const struct firing *firing, int64_t time, enum before *before);
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
