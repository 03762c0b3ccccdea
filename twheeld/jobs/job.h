/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs that are in memory: reserved ones, the next to be reserved or to fall due, and jobs with a
 * write under way. All others are in the store alone.
 *
 * Where memory and store differ, a job in memory is as memory says.
 */
#ifndef TWHEELD_JOB_H
#define TWHEELD_JOB_H

#include <uthash.h>

#include "base/alarm.h"
#include "base/heap.h"
#include "store/commit.h"

/* Jobs with a priority below this are counted as urgent */
#define URGENT 1024

struct conn;
struct job;
struct tube;

/* Whoever has reserved jobs */
struct reserver {
	struct job *jobs;
	struct job *soonest;	/* the job whose time is over first; NULL: job_soonest() finds it */
};

struct job {
	struct row row;		/* as it is now; row.state may be RESERVED */
	struct tube *tube;
	struct job_key *key;	/* of what is being written, or NULL */
	UT_hash_handle hash;
	enum state stored;	/* its state in the store */
	uint32_t stored_pri;
	bool counted, counted_urgent;	/* in its tube's counts */
	bool dirty;		/* the store does not know some of its counters */
	bool busy;		/* a write is under way: nobody may have the job */
	bool deleting;		/* that write deletes it */
	bool cold;		/* in memory for one command only */
	bool replaced;		/* shared store: stale, as another job has its id */
	bool waits;		/* shared store: giving it back failed, and is tried again */
	int64_t deadline;	/* DELAYED: due; RESERVED: end of its time to run */
	struct heap_node node;	/* in one of the tube's heaps */
	struct twheel_timer timer;	/* DELAYED, RESERVED */
	struct reserver *reserver;
	struct trace *trace;	/* RESERVED: what is kept of its try; NULL: nothing is */
	struct job *prev, *next;	/* the reserver's list */
};

/* Set by those who know schedules: a job of one was done, or has failed, with its last try */
extern void (*job_run_ended)(int64_t schedule, bool failed, const struct trace *trace);

enum found { FOUND, NOT_THERE, UNREADABLE };

void job_ids_begin(int64_t next);
struct job *job_new(struct tube *tube, uint32_t size);
struct job *job_from_row(struct tube *tube, const struct row *row);
struct job *job_own(struct tube *tube, const struct row *row);
void job_forget(struct job *job);
void job_free(struct job *job);
bool job_in_memory(int64_t id);
enum found job_find(uint64_t id, struct job **job);
void job_adopt(int64_t id, int64_t schedule);
void job_unfind(struct job *job);
bool job_need_body(struct job *job);
void job_drop_body(struct job *job);
char *job_take_body(struct job *job);
void job_spare_body(struct job *job);
void job_spare_early_body(struct job *job);
bool job_is_stored(const struct job *job);

void job_detach(struct job *job);
void job_attach(struct job *job, enum state state);
void job_reserve(struct job *job, struct reserver *reserver);
struct job *job_soonest(struct reserver *reserver);
void job_count(struct job *job, enum state state);
void job_uncount(struct job *job);
struct op *job_write(struct job *job, enum op_kind kind, const struct row *row, struct conn *conn,
		     void (*done)(struct op *op));
bool job_written(struct op *op);

void job_each(void (*each)(struct job *job, void *arg), void *arg);
struct job *job_of_node(struct heap_node *node);
bool job_comes_before(const struct job *a, const struct job *b);
bool job_before(const struct heap_node *a, const struct heap_node *b);
bool job_due_before(const struct heap_node *a, const struct heap_node *b);
void job_put(struct tube *tube);
uint64_t job_puts(void);

#endif
