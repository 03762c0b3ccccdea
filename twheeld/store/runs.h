/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The committer's operations on schedules and their runs.
 *
 * A firing is one operation: one transaction moves the schedule's next time on, and makes its runs
 * and their jobs. The end of a job ends its run in the same transaction.
 */
#ifndef TWHEELD_RUNS_H
#define TWHEELD_RUNS_H

#include "base/limits.h"
#include "store/commit.h"

/* How the run is that has to come before another one: numbers of BEFORE */
enum before { BEFORE_OPEN, BEFORE_DONE, BEFORE_FAILED };

/*
 * A run that was left out counts as failed. One that is not there may still come, unless the run
 * before that time was missed, which is one row for all times from then until the next one.
 */
#define BEFORE(runs, schedules, schedule_, time_) \
	"(SELECT CASE WHEN count(*) = 0 THEN coalesce((SELECT CASE WHEN" \
	" m.result = 5 AND m.created >= " time_ " AND (SELECT next FROM " schedules \
	" WHERE id = " schedule_ ") > " time_ " THEN 2 ELSE 0 END FROM " runs " AS m" \
	" WHERE m.schedule = " schedule_ " AND m.time < " time_ \
	" ORDER BY m.time DESC, m.shard DESC LIMIT 1), 0)" \
	" WHEN sum(CASE WHEN result > 2 THEN 1 ELSE 0 END) > 0 THEN 2" \
	" WHEN sum(CASE WHEN result < 2 THEN 1 ELSE 0 END) > 0 THEN 0 ELSE 1 END" \
	" FROM " runs " AS b WHERE b.schedule = " schedule_ " AND b.time = " time_ ")"

/* One job of a firing */
struct firing_run {
	int64_t time;
	uint32_t shard;
	struct op put;
	bool there;		/* out: the run was there before */
	bool made;		/* out: the job is new, or one that is there serves for it */
	bool skipped;		/* out: by OVERLAP=no */
	bool waits;		/* out: until the open runs have ended; or with @before: */
	bool before;		/* out: until the run that has to come before it is done */
};

struct firing {
	struct schedule *schedule;
	int64_t id;		/* the schedule's number */
	int64_t from, next;	/* its next time, before and after; equal: it stays */
	int64_t since;		/* goes with @next: earlier times are not made up for */
	int64_t digest;		/* of its definition; a shared store may have another: */
	struct schedule_row found;	/* if stale: as the store has it; id 0: not at all */
	int64_t missed;		/* the first time for which no job is made; 0: there is none */
	int64_t missed_count;	/* how many times those are */
	struct op *news;	/* puts that go with that: of who learns of it; or NULL */
	unsigned int told;	/* the loop's own */
	bool overlap;		/* false: no job while a run is open; or one after it: */
	bool waits;
	int64_t after, within;	/* the schedule whose run for that time comes first; ns to wait */
	bool waited;		/* it makes one time that waits, if that still waits */
	bool stale;		/* out: the store's next time is another one */
	void *request;		/* the HTTP request that wants it */
	size_t weight;		/* bytes that it takes */
	size_t count;
	struct firing_run runs[];
};

/* OP_PRUNE: forget runs that are over, a piece at a time. */
struct prune {
	struct op op;
	/* Some of the schedules that no tab has */
	size_t count;
	struct schedule *gone[PRUNE_PIECE];
	int64_t ids[PRUNE_PIECE];
	bool forgotten[PRUNE_PIECE];	/* out: the store has deleted it */
};

/* Has a schedule a time that waits for what became of the run r? That is kept for it. */
#define AWAITED(runs) "EXISTS (SELECT 1 FROM " runs " AS w WHERE w.job = -r.schedule" \
	" AND w.time = r.time AND w.result < 2)"

/* OP_WAITING: which times need wait no longer? */
struct waiting {
	struct op op;
	bool any;			/* out: does any time wait? */
	size_t count;			/* out: times that need not, in this order */
	struct waiting_time {
		int64_t schedule, time;
	} found[WAITING_MOST], from;	/* in: those that come after this one */
};

/* OP_LATE: which runs of a schedule are open since then? */
struct late {
	struct op op;
	int64_t schedule, after, until;	/* times that come after one, up to another one */
	int64_t first, count, next;	/* out: of those; the first one after them; 0: none */
};

/* How many late runs are counted */
#define LATE_MOST 1000

/* A store's own part of runs_make(). Each gives false if the transaction has failed. */
struct run_table {
	/* May the time have a job? One that had none may have one, once. */
	bool (*may_run)(const struct firing *firing, const struct firing_run *run, bool *may);
	/* Is there a run of the schedule whose job was not ended? */
	bool (*any_open)(const struct firing *firing, bool *open);
	/* Does the time wait, for another schedule's run, and for too long? */
	bool (*waits)(const struct firing *firing, int64_t time, bool *waits, bool *before,
		      bool *over);
	/* How the run is that has to come before the time's */
	bool (*before)(const struct firing *firing, int64_t time, enum before *before);
	/* Leave out all times that wait but this one, which does for them. */
	bool (*leave_out)(const struct firing *firing, int64_t time);
	/* Write a run, unless the time has one with a job. */
	bool (*write)(const struct firing *firing, int64_t time, uint32_t shard, int64_t job,
		      enum result result);
	/* A job that was there, of the same body, is that of a run, too. */
	bool (*adopt)(const struct firing *firing, int64_t job);
	bool (*put)(struct op *op);
};

bool runs_make(struct firing *firing, const struct run_table *table);
void runs_add(struct runs_asked *asked, const struct run_row *run);
void runs_add_trace(struct runs_asked *asked, const struct trace *trace);
void runs_free(struct runs_asked *asked);

#endif
