// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: how they come into memory and leave it, and how they go from state to state.
 *
 * A lasting change: detach the job, write it, and once the store has it, attach the job in its
 * new state, or in the old one if it could not be written.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/engine.h"
#include "jobs/job.h"
#include "jobs/notice.h"
#include "jobs/trace.h"
#include "jobs/tube.h"

static struct job *jobs;
static int64_t next_id;
static size_t bodies;
static uint64_t put_count;

static void expired(struct twheel *tw, struct twheel_timer *timer,
		    const struct twheel_event *event)
{
	engine->expired(container_of(timer, struct job, timer));
}

void job_ids_begin(int64_t next)
{
	next_id = next;
}

static void remember(struct job *job)
{
	HASH_ADD(hash, jobs, row.id, sizeof(job->row.id), job);
}

/**
 * job_new - a job that is to be put
 * @tube: its tube, which stays as long as the job
 * @size: bytes of its body
 *
 * Return: the job, or NULL if there is no memory for the body and two further bytes.
 */
struct job *job_new(struct tube *tube, uint32_t size)
{
	struct job *job = zalloc(sizeof(*job));

	job->row.body = malloc((size_t)size + 2);
	if (!job->row.body) {
		free(job);
		return NULL;
	}
	job->row.size = size;
	job->row.id = next_id++;
	job->row.tube = tube->commit.id;
	job->tube = tube;
	tube->users++;
	alarm_init(&job->timer, expired);
	bodies += size;
	remember(job);
	return job;
}

/** job_from_row - a job of the store, which is counted already. It is cold. */
struct job *job_from_row(struct tube *tube, const struct row *row)
{
	struct job *job = zalloc(sizeof(*job));

	job->row = *row;
	job->tube = tube;
	tube->users++;
	job->stored = row->state;
	job->stored_pri = row->pri;
	job->counted = true;
	job->counted_urgent = row->state == READY && row->pri < URGENT;
	job->cold = true;
	alarm_init(&job->timer, expired);
	if (row->body)
		bodies += row->size;
	job_spare_body(job);
	remember(job);
	return job;
}

/* A job of an earlier session may be left under this number; its pending write comes to nothing. */
static void replace(int64_t id)
{
	struct job *job;

	HASH_FIND(hash, jobs, &id, sizeof(id), job);
	if (!job)
		return;
	if (job->busy) {
		HASH_DELETE(hash, jobs, job);
		job->replaced = true;
		return;
	}
	if (job->reserver)
		job_detach(job);
	job_forget(job);
}

/** job_own - a job of a shared store that this server has reserved, for nobody yet */
struct job *job_own(struct tube *tube, const struct row *row)
{
	struct job *job;

	replace(row->id);
	job = job_from_row(tube, row);
	job->cold = false;
	job->counted = false;
	return job;
}

/** job_take_body - take the body of a job, to be freed: the job has none any more */
char *job_take_body(struct job *job)
{
	char *body = job->row.body;

	if (body)
		bodies -= job->row.size;
	job->row.body = NULL;
	return body;
}

void job_drop_body(struct job *job)
{
	free(job_take_body(job));
}

/** job_free - take a job out of memory. What the store has of it stays there. */
void job_free(struct job *job)
{
	if (!job->replaced)
		HASH_DELETE(hash, jobs, job);
	job_drop_body(job);
	trace_free(job->trace);
	free(job->key);
	alarm_stop(&job->timer);
	tube_put(job->tube);
	free(job);
}

/** job_forget - take a job out of memory and out of the counts: it is elsewhere now, or no more */
void job_forget(struct job *job)
{
	job_uncount(job);
	job_free(job);
}

bool job_in_memory(int64_t id)
{
	struct job *job;

	HASH_FIND(hash, jobs, &id, sizeof(id), job);
	return job;
}

/** job_adopt - a job that was put, of the same body, is that of a schedule, too */
void job_adopt(int64_t id, int64_t schedule)
{
	struct job *job;

	HASH_FIND(hash, jobs, &id, sizeof(id), job);
	if (job)
		job->row.scheduled = schedule;
}

/**
 * job_find - find a job by its id, in memory or in the store
 * @id: the id
 * @jobp: out: the job; NULL if there is none. After use: job_unfind()
 *
 * With a store that servers share, only jobs in memory are found.
 */
enum found job_find(uint64_t id, struct job **jobp)
{
	int64_t key = id;

	*jobp = NULL;
	if (id > INT64_MAX)
		return NOT_THERE;
	HASH_FIND(hash, jobs, &key, sizeof(key), *jobp);
	if (*jobp) {
		/*
		 * A job that is being put is not there yet, and one that is being deleted is
		 * gone.
		 */
		if (!(*jobp)->counted || (*jobp)->deleting)
			*jobp = NULL;
		return *jobp ? FOUND : NOT_THERE;
	}
	return engine->find(key, jobp);
}

/** job_unfind - let go of a job that job_find() gave; NULL is allowed */
void job_unfind(struct job *job)
{
	if (job && job->cold)
		job_free(job);
}

/** job_need_body - have the body in memory; gives false if it can't be read */
bool job_need_body(struct job *job)
{
	if (job->row.body)
		return true;
	if (!store_body(job->row.id, &job->row.body, &job->row.size))
		return false;
	bodies += job->row.size;
	return true;
}

/** job_spare_body - drop a large body, or one too many: it is read again when it is needed */
void job_spare_body(struct job *job)
{
	if (job->row.size > SMALL_BODY || bodies > BODIES_MOST)
		job_drop_body(job);
}

/** job_spare_early_body - drop a delayed job's body: ready jobs need the room for theirs */
void job_spare_early_body(struct job *job)
{
	if (bodies > BODIES_MOST / 2)
		job_drop_body(job);
	else
		job_spare_body(job);
}

/** job_is_stored - does the store know all of a job that is ready or delayed? */
bool job_is_stored(const struct job *job)
{
	return job->stored == job->row.state && job->stored_pri == job->row.pri && !job->dirty;
}

static void uncount(struct job *job)
{
	if (!job->counted)
		return;
	job->tube->count[job->row.state]--;
	job->tube->urgent -= job->counted_urgent;
	job->counted = false;
}

void job_count(struct job *job, enum state state)
{
	if (state == RESERVED)
		uncount(job);
	else
		job_uncount(job);
	job->counted = true;
	job->counted_urgent = state == READY && job->row.pri < URGENT;
	job->row.state = state;
	job->tube->count[state]++;
	job->tube->urgent += job->counted_urgent;
	job->tube->stored = true;
}

void job_uncount(struct job *job)
{
	bool left = job->counted && job->row.state == RESERVED;

	uncount(job);
	if (left && job->tube->settings->limit.at_most)
		tube_serve_at(job->tube, alarm_now());
}

/** job_detach - take a job out of its state's list. It still counts there. */
void job_detach(struct job *job)
{
	struct reserver *reserver = job->reserver;

	alarm_stop(&job->timer);
	if (job->row.state != RESERVED) {
		engine->detach(job);
		return;
	}
	DL_DELETE(reserver->jobs, job);
	if (reserver->soonest == job)
		reserver->soonest = NULL;
}

/**
 * job_attach - put a detached job into a state's list
 * @job: the job, which may be out of memory after the call
 * @state: the state; for RESERVED, job->reserver and job->deadline are set
 */
void job_attach(struct job *job, enum state state)
{
	struct reserver *reserver = job->reserver;

	if (state != RESERVED) {
		trace_free(job->trace);
		job->trace = NULL;
		engine->attach(job, state);
		return;
	}
	job_count(job, RESERVED);
	DL_APPEND(reserver->jobs, job);
	if (reserver->soonest && job->deadline < reserver->soonest->deadline)
		reserver->soonest = job;
	alarm_set(&job->timer, job->deadline);
}

/** job_reserve - give a job that is detached to a client */
void job_reserve(struct job *job, struct reserver *reserver)
{
	job->row.reserves++;
	job->dirty = true;
	job->reserver = reserver;
	job->deadline = alarm_now() + job->row.ttr * SECOND;
	trace_begin(job, container_of(reserver, struct conn, reserver));
	job_attach(job, RESERVED);
}

/** job_soonest - of the jobs that a client has reserved, the one whose time is over first */
struct job *job_soonest(struct reserver *reserver)
{
	struct job *job;

	if (!reserver->soonest)
		DL_FOREACH(reserver->jobs, job)
			if (!reserver->soonest || job->deadline < reserver->soonest->deadline)
				reserver->soonest = job;
	return reserver->soonest;
}

/**
 * job_write - write a change of a job
 * @job: the job, detached, or new
 * @kind: the change
 * @row: the job after the change. Its tube may be another one, got by tube_get()
 * @conn: the client that wants it, or NULL
 * @done: called later, and has to call job_written() first
 *
 * Return: the operation, which is freed once @done has returned.
 */
struct op *job_write(struct job *job, enum op_kind kind, const struct row *row, struct conn *conn,
		     void (*done)(struct op *op))
{
	struct op *op = zalloc(sizeof(*op));

	op->kind = kind;
	op->row = *row;
	op->at = alarm_now();
	op->tube = &job->tube->commit;
	op->to = row->tube == job->row.tube ? op->tube : &tube_by_id(row->tube)->commit;
	op->unique = kind == OP_PUT && job->tube->settings->unique;
	op->key = job->key;
	op->leaves_room = job->tube->settings->limit.at_most;
	op->from = job->stored;
	op->from_urgent = job->stored_pri < URGENT;
	op->job = job;
	op->conn = conn;
	op->done = done;
	job->busy = true;
	job->deleting = kind == OP_DELETE;
	trace_end(op);
	notice_submit(op);
	return op;
}

/* Let go of the job's old tube once it has moved, or of the new one if it could not. */
static void move(struct op *op)
{
	struct tube *to = container_of(op->to, struct tube, commit), *from = op->job->tube;

	if (op->failed || op->gone) {
		tube_put(to);
		return;
	}
	job_uncount(op->job);
	op->job->tube = to;
	tube_put(from);
}

void (*job_run_ended)(int64_t schedule, bool failed, const struct trace *trace);

/* Counts the end of a try, before the job is what was written. */
static void count_end(const struct op *op)
{
	struct tube *tube = op->job->tube;
	int end = op->to != op->tube ? (int)TRY_DEAD :
		op->kind == OP_CHANGE && op->row.state == BURIED ? DEED_BURIED : trace_deed(op);

	if (op->job->row.scheduled && job_run_ended &&
	    (end == DEED_DONE || end == DEED_BURIED || end == (int)TRY_DEAD))
		job_run_ended(op->job->row.scheduled, end != DEED_DONE, op->trace);
	tube->ends[end]++;
	if (end == DEED_DONE)
		tube->done_at = alarm_wall();
}

/* What could not be written of a try goes on, if that does. */
static void end_trace(struct op *op)
{
	if (op->failed && op->trace && op->trace->begun)
		op->job->trace = op->trace;
	else
		trace_free(op->trace);
	op->trace = NULL;
}

/**
 * job_written - take over a change that was written, or could not be
 * @op: the operation
 *
 * Return: true once it was written: the job has all of the change but its state, which job_attach()
 * sets. False: the job is as before, or, if op->gone, no longer in the store.
 */
bool job_written(struct op *op)
{
	struct job *job = op->job;
	enum state state = job->row.state;
	char *body = job->row.body;

	job->busy = false;
	job->deleting = false;
	if (state == RESERVED && op->kind != OP_TOUCH && !op->failed && !op->gone)
		count_end(op);
	end_trace(op);
	if (op->to != op->tube)
		move(op);
	if (op->failed || op->gone || op->kind == OP_DELETE)
		return !op->failed && !op->gone;
	if (op->row.state == DELAYED && op->due)
		engine->due(op->due);
	job->row = op->row;
	job->row.state = state;
	job->row.body = body;
	job->stored = op->row.state;
	job->stored_pri = op->row.pri;
	job->dirty = false;
	return true;
}

/** job_each - call @each for all jobs in memory. It may free the job that it is given. */
void job_each(void (*each)(struct job *job, void *arg), void *arg)
{
	struct job *job, *next;

	HASH_ITER(hash, jobs, job, next)
		each(job, arg);
}

/** job_of_node - the job of a heap's node; NULL for NULL */
struct job *job_of_node(struct heap_node *node)
{
	return node ? container_of(node, struct job, node) : NULL;
}

/** job_comes_before - which of two jobs that are ready is reserved first? */
bool job_comes_before(const struct job *a, const struct job *b)
{
	if (a->row.pri != b->row.pri)
		return a->row.pri < b->row.pri;
	return a->row.id < b->row.id;
}

/** job_before - job_comes_before() for nodes of heaps */
bool job_before(const struct heap_node *a, const struct heap_node *b)
{
	return job_comes_before(container_of(a, struct job, node),
				container_of(b, struct job, node));
}

/** job_due_before - which of two delayed jobs is due first? For nodes of heaps */
bool job_due_before(const struct heap_node *one, const struct heap_node *other)
{
	const struct job *a = container_of(one, struct job, node);
	const struct job *b = container_of(other, struct job, node);

	if (a->deadline != b->deadline)
		return a->deadline < b->deadline;
	return a->row.id < b->row.id;
}

/** job_put - count a job that a client or a schedule has put */
void job_put(struct tube *tube)
{
	tube->total++;
	put_count++;
}

/** job_puts - how many jobs were put since the server's start */
uint64_t job_puts(void)
{
	return put_count;
}
