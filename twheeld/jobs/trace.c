// SPDX-License-Identifier: GPL-2.0
/*
 * What is kept of each try of a job: the one place where it is said of which jobs, for how long,
 * and how much of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/engine.h"
#include "jobs/trace.h"

static size_t note_bytes;	/* of the notes in memory */
static int64_t forget_at;	/* when what is old is looked for again */

static int64_t keep_of(const struct tube *tube, bool scheduled)
{
	return scheduled ? store_history : tube->settings->keep;
}

static struct trace *new_trace(int64_t job, int64_t keep, enum deed deed, const char *by)
{
	size_t length = strlen(by) + 1;
	struct trace *trace = zalloc(sizeof(*trace) + length);

	trace->by = memcpy(trace + 1, by, length);
	trace->job = job;
	trace->keep = keep < KEEP_MOST ? keep : KEEP_MOST;
	trace->deed = deed;
	return trace;
}

/** trace_free - a trace was written, or is of no use; NULL is allowed */
void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	if (trace->note)
		note_bytes -= trace->size;
	free(trace->note);
	free(trace);
}

/* A store of this server's alone has the server's own time; another one, that of its clock. */
static int64_t by_wall(int64_t time)
{
	return engine->counts_in_store ? time : time - alarm_skew();
}

/** trace_begin - a client has reserved a job: begin the trace of its try, if its tube keeps any */
void trace_begin(struct job *job, struct conn *conn)
{
	int64_t keep = keep_of(job->tube, job->row.scheduled);
	struct trace *trace;

	if (!keep)
		return;
	trace = new_trace(job->row.id, keep, DEED_LEFT, conn_who(conn));
	trace->try = job->row.reserves;
	trace->made = by_wall(job->row.created);
	trace->begun = alarm_wall();
	if (trace->try == 1)
		trace->due = trace->made + job->row.delay * job->tube->settings->unit;
	trace_free(job->trace);
	job->trace = trace;
}

/**
 * trace_note - a worker says something of its try; what it said before is forgotten
 * @job: its own
 * @note: malloc()ed, and taken if it is kept
 * @size: bytes of it, NOTE_MOST at most
 */
enum noted trace_note(struct job *job, char *note, uint32_t size)
{
	struct trace *trace = job->trace;

	if (!trace)
		return NOT_KEPT;
	if (note_bytes - (trace->note ? trace->size : 0) + size > NOTES_MOST)
		return NO_ROOM;
	if (trace->note)
		note_bytes -= trace->size;
	free(trace->note);
	trace->note = note;
	trace->size = size;
	note_bytes += size;
	return NOTED;
}

/** trace_deed - how the try of a reserved job ends, by what is written of it */
enum deed trace_deed(const struct op *op)
{
	const struct job *job = op->job;

	if (op->kind == OP_DELETE)
		return DEED_DONE;
	if (!op->conn)
		return job->deadline <= alarm_now() ? DEED_TIMED_OUT : DEED_LEFT;
	return op->row.releases != job->row.releases ? DEED_RELEASED : DEED_BURIED;
}

/**
 * trace_end - have a trace written with what is done to a job
 * @op: the operation; that ends a try, or somebody does it to a job that is nobody's
 */
void trace_end(struct op *op)
{
	struct job *job = op->job;
	int64_t keep = keep_of(job->tube, job->row.scheduled);
	bool kicks = op->row.kicks != job->row.kicks;

	if (op->kind == OP_PUT || op->kind == OP_TOUCH)
		return;
	op->trace = job->trace;
	job->trace = NULL;
	if (op->trace) {
		op->trace->deed = trace_deed(op);
	} else if (keep && op->conn && job->row.state != RESERVED &&
		   (kicks || op->kind == OP_DELETE)) {
		op->trace = new_trace(job->row.id, keep, kicks ? DEED_KICKED : DEED_DELETED,
				      conn_who(op->conn));
		op->trace->try = job->row.reserves;
		op->trace->made = by_wall(job->row.created);
	}
	if (op->trace)
		op->trace->ended = alarm_wall();
}

/** trace_of_schedule - have a trace written with what somebody does to a schedule */
void trace_of_schedule(struct op *op, int64_t schedule, enum deed deed, const char *by)
{
	op->trace = new_trace(-schedule, store_history, deed, by);
	op->trace->ended = alarm_wall();
}

/**
 * trace_of_request - the same of jobs that a shared store has alone, as many as there are
 * @op: of a request; op->conn has asked
 * @tube: of the jobs; NULL: it is not known, and those of schedules alone leave a trace
 * @deed: what is done to them
 */
void trace_of_request(struct op *op, const struct tube *tube, enum deed deed)
{
	op->trace = new_trace(0, tube ? tube->settings->keep : 0, deed, conn_who(op->conn));
	op->trace->ended = alarm_wall();
}

static void start_forgetting(void);

/* Go on piece by piece as long as there is more to forget. */
static void forgotten(struct op *op)
{
	forget_at = alarm_now() + PRUNE;
	if (!op->failed && op->row.size)
		start_forgetting();
}

static void start_forgetting(void)
{
	struct op *op = zalloc(sizeof(*op));

	op->kind = OP_FORGET;
	op->done = forgotten;
	forget_at = INT64_MAX;
	commit_submit(op);
}

/** trace_tick - to be called each second: what was kept for long enough is forgotten */
void trace_tick(void)
{
	if (alarm_now() >= forget_at)
		start_forgetting();
}
