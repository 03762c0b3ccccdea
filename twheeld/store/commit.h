/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations that a thread of its own writes to the store: many in one transaction.
 */
#ifndef TWHEELD_COMMIT_H
#define TWHEELD_COMMIT_H

#include "base/histogram.h"
#include "base/job_key.h"
#include "base/tube_name.h"
#include "store/store.h"

struct job;
struct conn;
struct event_base;

/* The most operations of a transaction, so that no reply waits for long */
#define COMMIT_MOST 1000

enum op_kind {
	OP_PUT, OP_CHANGE, OP_DELETE, OP_SKEW, OP_FORGET_TUBE, OP_DEFINE, OP_PAUSE, OP_FIRE,
	OP_PRUNE, OP_WAITING, OP_LATE, OP_FORGET, OP_FIND_KEY, OP_NOTHING,
	/* A shared store's: the committer's own, and from OP_TAKE on, struct request */
	OP_BEGIN, OP_EXTEND, OP_PUTS, OP_DELETES,
	OP_TOUCH, OP_TAKE, OP_TAKE_JOB, OP_REMOVE, OP_KICK, OP_KICK_JOB, OP_BACK, OP_BACK_JOB,
	OP_LOOK, OP_WHICH, OP_PAUSE_TUBE, OP_PROMOTE, OP_RENEW, OP_PAUSED,
	/* Questions, not the committer's: struct runs_asked, struct counts, those for the page */
	OP_RUNS, OP_COUNT, OP_NODES, OP_TUBES, OP_JOBS,
};

struct firing;
struct schedule_row;

/* A tube as the committer knows it. Only that thread uses the fields after the name. */
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
	/*
	 * OP_SKEW: created is the skew. OP_FORGET_TUBE: only tube is used. OP_PRUNE: runs that
	 * were over before the time in created are forgotten; out: size, how many. OP_FORGET:
	 * so are traces; out: size is 0 if there are no more to be forgotten now.
	 */
	struct row row;
	struct schedule_row *schedule;	/* OP_DEFINE, OP_PAUSE */
	struct firing *firing;		/* OP_FIRE */
	struct trace *trace;		/* is written with it, or NULL; the loop frees it */
	struct tube_commit *tube, *to;	/* the job's tube, and its next one */
	/* OP_PUT: the job's; OP_CHANGE: it has a new body; OP_DELETE, OP_FIND_KEY: which job */
	const struct job_key *key;
	bool unique;			/* OP_PUT: only if the tube has no job of the same body */
	int64_t same;			/* out: the number of such a job, or 0 */
	enum state from;		/* the job's state in the store (not OP_PUT) */
	bool from_urgent;
	bool failed;
	bool given_up;			/* op_given_up(): its client has had an error */
	bool joined;			/* its transaction is that of the one before it */
	bool moot;			/* out: the first one of its transaction was not done */
	/*
	 * OP_CHANGE: the schedule has failed with that. OP_PUT: only if that schedule had, which
	 * has not any more then; else same is less than 0
	 */
	int64_t failing;
	/* The committer's own: */
	bool left_out;			/* not done, as nobody waits for it any more */
	bool more;			/* it needs another statement */
	bool untraced;			/* the disk has no room for its trace */
	bool together;			/* it is done with others of its kind */
	/* Shared store: the job is not there, or is no longer this server's */
	bool gone;
	bool leaves_room;		/* the tube has an at-most: another server may have a job */
	int64_t at;			/* the server's time for which row.ord was worked out */
	int64_t due;			/* out: row.ord, by the database's clock */
	/* The loop's own */
	void (*done)(struct op *op);
	struct job *job;
	struct conn *conn;
};

/* A job in the answer of a shared store */
struct found_job {
	struct row row;
	char tube[TUBE_NAME_MAX + 1];
};

/* The body of the job that has the tabs which were pushed */
struct pushed {
	int64_t known;			/* in: the version that is known, or 0 */
	int64_t version;		/* out: today's; 0: there are none */
	char *text;			/* out: malloc()ed; NULL: there are none, or it is known */
	size_t size;
};

/* A request to a shared store */
struct request {
	struct op op;			/* op.row.id: the job, if it is about one */
	char *tubes;			/* their names, as an array of PostgreSQL */
	size_t tube_count;
	const char *tube;		/* the only tube; NULL: all, or any */
	enum state state;
	uint32_t count;			/* the most; out: how many there were */
	int64_t pause;			/* ns */
	bool used;			/* clients use the tube */
	/* Out: */
	struct found_job *jobs;
	size_t found;
	bool full;			/* there may be more: the answer had no room for them */
	bool limited;			/* in: a tube has a limit */
	int64_t again;			/* out: ns until a rate lets more be taken, if not 0 */
	int64_t next;			/* when the next job is due */
	int64_t clock;			/* how far the database's is ahead of CLOCK_BOOTTIME */
	int64_t *ids;			/* OP_PAUSED */
	struct pushed pushed;		/* OP_PAUSED */
	/* The loop's own */
	struct tube *serves;
	uint64_t news;
	char name[TUBE_NAME_MAX + 1];
};

/*
 * Runs that say how a schedule is: the last one; the worst shard of the last time that has ended
 * and was not skipped, if one of its shards is among so many runs; and the first that is open.
 */
#define RUNS_HOW 256

/* The last runs of some schedules */
struct runs_asked {
	struct op op;			/* op.failed: the runs can't be read */
	void *arg;
	/* Out: schedule by schedule, the last run first */
	struct run_row *runs;		/* malloc()ed: op.done() frees them */
	size_t found, room;
	struct trace *traces;		/* of them and their jobs, the last first; so, too */
	size_t traced, trace_room, note_bytes;
	/* In: */
	int64_t most;			/* runs of each schedule; 0: only those of RUNS_HOW */
	bool trace, notes;		/* traces are wanted, too; with all of their notes */
	int64_t job;			/* traces of this job are wanted; or 0 */
	size_t count;
	int64_t schedules[];
};

void commit_start(struct event_base *base, int64_t sync_ns);
void commit_submit(struct op *op);
void commit_drop(bool (*hopeless)(const struct op *op));
void commit_hold(bool hold);
void commit_join(bool join);
void commit_answered(struct op *op);
void commit_stop(void);
uint64_t commit_count(void);
uint64_t commit_failures(void);
int64_t commit_waits(void);
bool commit_fine_since(int64_t when);
struct histogram commit_times(void);

/* For the threads of the store */
int64_t commit_now(void);

/* Has the client had an error, as the operation took too long? Its outcome is not known then. */
static inline bool op_given_up(const struct op *op)
{
	return __atomic_load_n(&op->given_up, __ATOMIC_RELAXED);
}

/* May the operation be left out when nobody waits for it? One on a client's own job may not. */
static inline bool op_is_optional(const struct op *op)
{
	return op->kind == OP_PUT || op->kind >= OP_TAKE;
}

/* At most one message a second and thread, as each client may try again at once */
#define commit_say(...) ({						\
	static __thread int64_t said;					\
									\
	if (!said || commit_now() - said >= SECOND) {			\
		said = commit_now();					\
		complain(__VA_ARGS__);					\
	} })

#endif
