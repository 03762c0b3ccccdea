/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store, as the event loop reads it. Writes are in commit.h.
 *
 * There are two kinds: jobs.db, of SQLite, which is this server's alone, and a database of
 * PostgreSQL, which servers share. With jobs.db, memory is ahead of the store, and says which job
 * is due and which comes next. With PostgreSQL, the database alone says so.
 */
#ifndef TWHEELD_STORE_H
#define TWHEELD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first three are numbers in the store. RESERVED is in memory alone. */
enum state { READY, DELAYED, BURIED, RESERVED, STATES };
#define STORED_STATES 3

/* Bytes: a body up to this size is kept in memory with a job that is soon to be reserved */
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
	uint32_t tries;		/* how often it is given out; 0: as its tube says */
	int64_t token;		/* shared store: a new one each time the job changes hands */
	int64_t scheduled;	/* the number of the schedule that has made it, or 0 */
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
 * How far a run has come, or how it ended, as a number in the store. With the first two, the job is
 * there if job is above 0. If not, the run waits: with 0 until no other run of its schedule is
 * open; below 0 until the run of schedule -job is done, or the time @ended is over.
 */
enum result { RUN_OPEN, RUN_BURIED, RUN_DONE, RUN_FAILED, RUN_SKIPPED, RUN_MISSED, RUN_RESULTS };

/* A schedule as the store has it. Times are in ns since 1970 by the wall clock. */
struct schedule_row {
	int64_t id;
	const char *name;
	int64_t digest;		/* of the fields that say when it fires */
	int64_t next;
	bool paused;
	int64_t gone;		/* since when no tab has it; 0: one has */
	int64_t since;		/* times before this one are not made up for */
};

/* A run. Its times are in ns since 1970; @created and @ended are by the wall clock. */
struct run_row {
	int64_t schedule;
	int64_t time;		/* the schedule's time that it is for */
	uint32_t shard;
	int64_t job;
	enum result result;
	int64_t created, ended;
	int64_t count;		/* times of which this row tells: those that were missed */
};

/*
 * What became of a try of a job; and, from DEED_KICKED on, what somebody did to a job or a
 * schedule. These are numbers in the store.
 */
enum deed {
	DEED_DONE, DEED_RELEASED, DEED_BURIED, DEED_TIMED_OUT, DEED_LEFT,
	DEED_KICKED, DEED_DELETED, DEED_PAUSED, DEED_RESUMED, DEED_RUN, DEED_BACKFILLED, DEEDS,
};

/* A deed, as it is kept beside the jobs. Times are in ns since 1970 by the wall clock; 0: none. */
struct trace {
	int64_t job;		/* less than 0: the schedule of that number, without the sign */
	int64_t keep;		/* so long it is kept, in ns */
	uint32_t try;		/* the first is 1 */
	enum deed deed;
	int64_t made, due, begun, ended;	/* the job was made, and due; the try */
	char *tube;		/* of what is read alone */
	char *by;		/* who did it: any bytes, as NOTE_MOST of a note */
	char *note;		/* what the worker said of it: a line, and its output; or NULL */
	uint32_t size;		/* of the note */
};

enum sync { SYNC_ALWAYS, SYNC_SOMETIMES, SYNC_NEVER };

/* The tube of the tabs that were pushed: the one job there that is delayed has them. */
#define TABS_TUBE "twheeld.tabs"

struct op;
struct pushed;
struct runs_asked;

/* How many jobs of a tube may be given out; of 0, any number may */
struct limit {
	int64_t at_most;	/* reserved at a time */
	int64_t interval;	/* ns from one to the next */
	int64_t burst;		/* but so many may come at once, where none came for long */
};

static inline bool limit_any(const struct limit *limit)
{
	return limit->at_most || limit->interval;
}

/* The functions that each kind has */
struct store {
	void (*open)(const char *where, enum sync sync);
	void (*close)(void);
	int64_t (*clock)(void);	/* how far its clock is ahead of CLOCK_BOOTTIME; shared */
	int64_t (*meta)(const char *name, int64_t otherwise);
	void (*schedules)(void (*each)(const struct schedule_row *row));
	bool (*pushed)(struct pushed *pushed);	/* false: can't be read; shared: until loaded() */
	void (*loaded)(void);	/* the loop has read all that it needs at the start; or NULL */
	/* Find the last runs of some schedules; asked->op.done() is called at once, or later */
	void (*runs)(struct runs_asked *asked);
	/* For the committer: */
	void (*write_start)(int64_t sync_ns);
	void (*write)(struct op *ops);
	/*
	 * After a transaction, once its clients were answered; or NULL. True: it wrote to the
	 * disk
	 */
	bool (*tidy)(void);
	bool (*sync)(void);	/* bring all that was written to the disk */
	bool (*gone)(void);	/* are its files not where the next start looks? For any thread */
	void (*write_end)(void);
};

/* Shared store: ns without a sign of life after which other servers end a session */
extern int64_t store_lease;
/* Shared store: this server's name, and its site's, if it has one */
extern const char *store_node, *store_site;
extern int64_t store_job_size;	/* the most bytes of a body */
extern int64_t store_history;	/* what schedules do is kept for so long, in ns */
extern int64_t store_tabs;	/* a digest of its tabs, or 0: it has none yet; atomic */
extern bool store_refuses;	/* it was asked to take no new jobs; atomic */
extern struct limit (*store_limit)(const char *tube);	/* of any thread */
extern const struct store *store, store_sqlite, store_postgres;

/* From here on: for a store that is this server's alone */

bool store_room(int64_t *left, int64_t *all);
bool store_reach(int64_t size);
void store_keep_past(int64_t boot, int64_t offset);
void store_tubes(void (*each)(const struct store_tube *tube));
int64_t store_last_burial(int64_t tube);
int64_t store_next_tube_id(void);

/* Calls that give false, having complained, if the store can't be read: */
bool store_tube_id(const char *name, int64_t *id);
bool store_job(int64_t id, struct row *row, bool *found);
bool store_letter(int64_t tube, int64_t after, int64_t *id, char *from);
bool store_body(int64_t id, char **body, uint32_t *size);

/* Where to go on reading in an order */
struct cursor {
	int64_t ord;
	int64_t id;
};

#define CURSOR_BEGIN ((struct cursor){ INT64_MIN, 0 })

/*
 * Read jobs after a cursor, which goes on, until @each gives false, or the end is reached.
 */
bool store_in_order(int64_t tube, enum state state, struct cursor *cursor, bool *end,
		    bool (*each)(struct row *row, void *arg), void *arg);
bool store_due(struct cursor *cursor, int64_t until, bool *end,
	       bool (*each)(struct row *row, void *arg), void *arg);

#endif
