/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is written to the store, by a thread of its own: many operations a transaction.
 */
#ifndef TWHEELD_COMMIT_H
#define TWHEELD_COMMIT_H

#include "histogram.h"
#include "store.h"

struct job;
struct conn;
struct event_base;

enum op_kind {
	OP_PUT, OP_CHANGE, OP_DELETE, OP_SKEW, OP_FORGET_TUBE, OP_DEFINE, OP_PAUSE, OP_FIRE,
	OP_PRUNE,
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
	/* Of OP_SKEW: created is the skew; of OP_FORGET_TUBE: tube alone; of OP_PRUNE:
	 * created is the time before which what is over is forgotten, and size how many were
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
	/* The loop's own */
	void (*done)(struct op *op);
	struct job *job;
	struct conn *conn;
};

void commit_start(struct event_base *base, int64_t sync_ns);
void commit_submit(struct op *op);
void commit_hold(bool hold);
void commit_stop(void);
uint64_t commit_count(void);
int64_t commit_waits(void);
struct histogram commit_times(void);

/* For those who write */
int64_t commit_now(void);

/* At most one message a second, as each client may try again at once */
#define commit_say(...) ({						\
	static int64_t said;						\
									\
	if (!said || commit_now() - said >= SECOND) {			\
		said = commit_now();					\
		complain(__VA_ARGS__);					\
	} })

#endif
