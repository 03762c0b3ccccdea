/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs that are in memory: those that are reserved, those that are to be reserved or due
 * soon, and those of which something is being written. All others are in the store alone.
 *
 * A job that is in memory is as memory says. One that is not is as the store says.
 */
#ifndef TWHEELD_JOB_H
#define TWHEELD_JOB_H

#include <uthash.h>

#include "alarm.h"
#include "commit.h"

/* Jobs with a priority below this are counted as urgent */
#define URGENT 1024

struct conn;
struct tube;

struct job {
	struct row row;		/* as it is now; row.state may be RESERVED */
	struct tube *tube;
	UT_hash_handle hash;
	enum state stored;	/* what the store says */
	uint32_t stored_pri;
	bool counted, counted_urgent;	/* in its tube's counts */
	bool dirty;		/* the store does not know some of its counters */
	bool busy;		/* something of it is being written: nobody may have it */
	bool deleting;		/* and that is its end */
	bool cold;		/* in memory for one command only */
	bool replaced;		/* of a shared store: it is stale, another one has its id */
	bool waits;		/* of a shared store: it is given back later, as that failed */
	int64_t deadline;	/* DELAYED: due; RESERVED: end of its time to run */
	size_t place;		/* in one of the tube's heaps */
	struct twheel_timer timer;	/* DELAYED, RESERVED */
	struct conn *reserver;
	struct job *prev, *next;	/* the reserver's list */
};

enum found { FOUND, NOT_THERE, UNREADABLE };

void job_ids_begin(int64_t next);
struct job *job_new(struct tube *tube, uint32_t size);
struct job *job_from_row(struct tube *tube, const struct row *row);
struct job *job_own(struct tube *tube, const struct row *row);
void job_forget(struct job *job);
void job_free(struct job *job);
bool job_in_memory(int64_t id);
enum found job_find(uint64_t id, struct job **job);
void job_unfind(struct job *job);
bool job_need_body(struct job *job);
void job_drop_body(struct job *job);
void job_spare_body(struct job *job);
bool job_is_stored(const struct job *job);

void job_detach(struct job *job);
void job_attach(struct job *job, enum state state);
void job_reserve(struct job *job, struct conn *conn);
void job_uncount(struct job *job);
void job_write(struct job *job, enum op_kind kind, const struct row *row, struct conn *conn,
	       void (*done)(struct op *op));
bool job_written(struct op *op);
void job_spill(struct job *job);

bool job_ready_less(const struct job *a, const struct job *b);
bool job_delayed_less(const struct job *a, const struct job *b);
size_t job_delayed_count(void);
void job_forget_delayed(int64_t after);
size_t job_delayed_dues(int64_t *dues);
uint64_t job_timeouts(void);
const struct histogram *job_lateness(void);

#endif
