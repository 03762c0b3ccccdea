/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store: what is read of it by the event loop. What is written is in commit.h.
 *
 * There are two kinds: jobs.db, of SQLite, which is this server's alone, and a database of
 * PostgreSQL, which others share. Of the first, memory is ahead: it says what is due, and which
 * job comes next. Of the second, the database alone says that.
 */
#ifndef TWHEELD_STORE_H
#define TWHEELD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first three are numbers in the store. RESERVED is in memory alone. */
enum state { READY, DELAYED, BURIED, RESERVED, STATES };
#define STORED_STATES 3

/* Bodies up to this are kept in memory with a job that is soon to be reserved */
#define SMALL_BODY 2048

/* A job as the store has it */
struct row {
	int64_t id;
	int64_t tube;
	enum state state;
	int64_t ord;		/* its place in its state: priority, when due, when buried */
	uint32_t pri;
	uint32_t delay;		/* seconds */
	uint32_t ttr;		/* seconds */
	int64_t created;
	uint32_t reserves, timeouts, releases, buries, kicks;
	int64_t token;		/* of a shared store: another one each time it changes hands */
	bool scheduled;		/* a schedule has made it; known of a shared store alone */
	uint32_t size;		/* of the body */
	char *body;		/* malloc()ed, or NULL: not read */
};

struct store_tube {
	int64_t id;
	const char *name;
	int64_t count[STORED_STATES];
	int64_t urgent;
};

/*
 * How a run is. These are numbers in the store; of the first two the job is there, unless job is
 * not above 0. Then the run waits: if that is 0, until no other one of its schedule is open; else
 * until that of schedule -job is done, or the time @ended is over.
 */
enum result { RUN_OPEN, RUN_BURIED, RUN_DONE, RUN_FAILED, RUN_SKIPPED, RUN_MISSED, RUN_RESULTS };

/* A schedule as the store has it. Times are in ns since 1970 by the wall clock. */
struct schedule_row {
	int64_t id;
	const char *name;
	int64_t digest;		/* of what says when it fires */
	int64_t next;
	bool paused;
	int64_t gone;		/* since when no file has it; 0: one has */
	int64_t since;		/* times before this one are not made up for */
};

/* A run. Its times but the first are by the wall clock, too. */
struct run_row {
	int64_t schedule;
	int64_t time;		/* that it is for */
	uint32_t shard;
	int64_t job;
	enum result result;
	int64_t created, ended;
};

enum sync { SYNC_ALWAYS, SYNC_SOMETIMES, SYNC_NEVER };

struct op;
struct runs_asked;

/* What both kinds do */
struct store {
	void (*open)(const char *where, enum sync sync);
	void (*close)(void);
	int64_t (*clock)(void);	/* how far its clock is ahead of CLOCK_BOOTTIME; shared */
	int64_t (*meta)(const char *name, int64_t otherwise);
	void (*schedules)(void (*each)(const struct schedule_row *row));
	void (*loaded)(void);	/* what the loop reads at the start was read; or NULL */
	/* Tell the last runs of some schedules; asked->op.done() is called at once, or later */
	void (*runs)(struct runs_asked *asked);
	/* Of the committer: */
	void (*write_start)(int64_t sync_ns);
	void (*write)(struct op *ops);
	/* After that, when who waits for it was told; or NULL. Had the disk to do, and did it? */
	bool (*tidy)(void);
	bool (*sync)(void);	/* what was written is on the disk */
	bool (*gone)(void);	/* is it no more where the next start looks? Of any thread */
	void (*write_end)(void);
};

/* So long others leave a server alone that they do not hear of; of a shared store */
extern int64_t store_lease;
/* What others know it by; of a site, if it has one */
extern const char *store_node, *store_site;
extern int64_t store_job_size;	/* the most bytes of a body */
extern int64_t store_tabs;	/* a digest of its tabs, or 0: it has none yet; atomic */
extern bool store_refuses;	/* it takes no new jobs, as somebody said so; atomic */
extern const struct store *store, store_sqlite, store_postgres;

/* Further on: of a store that is this server's alone */

bool store_room(int64_t *left, int64_t *all);
bool store_reach(int64_t size);
void store_keep_past(int64_t boot, int64_t offset);
void store_tubes(void (*each)(const struct store_tube *tube));
int64_t store_last_burial(int64_t tube);
int64_t store_next_tube_id(void);

/* These give false when the store can't be read, having complained. */
bool store_tube_id(const char *name, int64_t *id);
bool store_job(int64_t id, struct row *row, bool *found);
bool store_body(int64_t id, char **body, uint32_t *size);

/* Where to go on reading in an order */
struct cursor {
	int64_t ord;
	int64_t id;
};

#define CURSOR_BEGIN ((struct cursor){ INT64_MIN, 0 })

/*
 * Reads jobs after a cursor, which goes on, until @each says no, or the end is reached.
 */
bool store_in_order(int64_t tube, enum state state, struct cursor *cursor, bool *end,
		    bool (*each)(struct row *row, void *arg), void *arg);
bool store_due(struct cursor *cursor, int64_t until, bool *end,
	       bool (*each)(struct row *row, void *arg), void *arg);

#endif
