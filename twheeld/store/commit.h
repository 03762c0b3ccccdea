/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is written to the store, by a thread of its own: many operations a transaction.
 */
#ifndef TWHEELD_COMMIT_H
#define TWHEELD_COMMIT_H

#include "base/histogram.h"
#include "base/tube_name.h"
#include "store/store.h"

struct job;
struct conn;
struct event_base;

/* Operations of the longest transaction, so that no reply waits for long */
#define COMMIT_MOST 1000

enum op_kind {
	OP_PUT, OP_CHANGE, OP_DELETE, OP_SKEW, OP_FORGET_TUBE, OP_DEFINE, OP_PAUSE, OP_FIRE,
	OP_PRUNE, OP_WAITING,
	/* Of a shared store alone: of the committer itself; and, from OP_TAKE on, struct request */
	OP_BEGIN, OP_EXTEND, OP_PUTS, OP_DELETES,
	OP_TOUCH, OP_TAKE, OP_TAKE_JOB, OP_REMOVE, OP_KICK, OP_KICK_JOB, OP_LOOK, OP_WHICH,
	OP_PAUSE_TUBE, OP_PROMOTE, OP_RENEW, OP_PAUSED,
	/* Not of the committer: struct runs_asked, of any store; struct counts; of a page */
	OP_RUNS, OP_COUNT, OP_NODES, OP_TUBES,
};

struct firing;
struct schedule_row;

/* What a tube looks like to the committer. Only that thread touches the rest. */
struct tube_commit {
	int64_t id;
	const char *name;
	bool touched;
	int64_t count[STORED_STATES];
	int64_t urgent;
	struct tube_commit *next;
};

struct op {
	struct op *next;
	enum op_kind kind;
	/* Of OP_SKEW: created is the skew; of OP_FORGET_TUBE: tube alone; of OP_PRUNE (struct
	 * prune): created is the time before which what is over is forgotten, and size how many
	 * runs were
	 */
	struct row row;
	struct schedule_row *schedule;	/* OP_DEFINE, OP_PAUSE */
	struct firing *firing;		/* OP_FIRE */
	struct tube_commit *tube, *to;	/* where it was, and where it shall be */
	bool unique;			/* OP_PUT: unless the tube has a job of the same body */
	int64_t same;			/* that one; else 0 */
	enum state from;		/* where the store has it (not OP_PUT) */
	bool from_urgent;
	bool failed;
	bool told;			/* its client has been, as it took long: op_told() */
	/* The committer's own: */
	bool left_out;			/* as nobody waits for it any more */
	bool more;			/* one statement was not enough for it */
	bool together;			/* it is done with others of its kind */
	/* Of a shared store: the job is not there, or is no longer this server's */
	bool gone;
	int64_t at;			/* when row.ord was found, by the server's time */
	int64_t due;			/* out: row.ord, by the database's clock */
	/* The loop's own */
	void (*done)(struct op *op);
	struct job *job;
	struct conn *conn;
};

/* A job that a shared store has given, or told of */
struct found_job {
	struct row row;
	char tube[TUBE_NAME_MAX + 1];
};

/* What is asked of a shared store */
struct request {
	struct op op;			/* op.row.id: of one job */
	char *tubes;			/* as an array of PostgreSQL */
	size_t tube_count;
	const char *tube;		/* the one; NULL: all, or any */
	enum state state;
	uint32_t count;			/* so many at most; out: so many there were */
	int64_t pause;			/* ns */
	bool used;			/* the tube is, by clients */
	/* Out: */
	struct found_job *jobs;
	size_t found;
	bool full;			/* there may be more, which were too much at a time */
	int64_t next;			/* when the next job is due */
	int64_t clock;			/* by which the database's is ahead of CLOCK_BOOTTIME */
	int64_t *ids;			/* OP_PAUSED */
	/* The loop's own */
	struct tube *serves;
	uint64_t news;
	char name[TUBE_NAME_MAX + 1];
};

/* The last runs of some schedules */
struct runs_asked {
	struct op op;			/* op.failed: they can't be read */
	void *arg;
	/* Out: those of a schedule are together, the last first */
	struct run_row *runs;		/* the one who asked frees them */
	size_t found, room;
	/* In: */
	int64_t most;			/* runs of each */
	size_t count;
	int64_t schedules[];
};

void commit_start(struct event_base *base, int64_t sync_ns);
void commit_submit(struct op *op);
void commit_drop(bool (*hopeless)(const struct op *op));
void commit_hold(bool hold);
void commit_told(struct op *op);
void commit_stop(void);
uint64_t commit_count(void);
uint64_t commit_failures(void);
int64_t commit_waits(void);
bool commit_fine_since(int64_t when);
struct histogram commit_times(void);

/* For those who write */
int64_t commit_now(void);

/* Has the loop told its client that it is not known what becomes of it? */
static inline bool op_told(const struct op *op)
{
	return __atomic_load_n(&op->told, __ATOMIC_RELAXED);
}

/* May it be left out when nobody waits for it? What is of a client's own job is done, still. */
static inline bool op_is_optional(const struct op *op)
{
	return op->kind == OP_PUT || op->kind >= OP_TAKE;
}

/* At most one message a second of a thread, as each client may try again at once */
#define commit_say(...) ({						\
	static __thread int64_t said;					\
									\
	if (!said || commit_now() - said >= SECOND) {			\
		said = commit_now();					\
		complain(__VA_ARGS__);					\
	} })

#endif
