// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a try: the client has released the job, had it for too long, or has gone. The job may
 * have a further try, now or later, or be buried.
 *
 * Where a tube counts tries, or puts them off, each such end is written. So the count survives a
 * crash, and no job comes before its time then.
 */
#include <string.h>

#include "base/digest.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/tube.h"

static int64_t last_burial;
static uint64_t timeouts;

void job_end_start(int64_t burial)
{
	last_burial = burial;
}

/** job_next_burial - the order of a job that is buried now: after all that were buried before */
int64_t job_next_burial(void)
{
	int64_t now = alarm_now();

	last_burial = now > last_burial ? now : last_burial + 1;
	return last_burial;
}

/*
 * The tube for a job that has no further try. NULL: it is buried, as it is in that tube already, or
 * the store can't be read.
 */
static struct tube *dead_letters(const struct tube *tube)
{
	const char *name = tube->settings->dead_letter;

	return name && strcmp(name, tube->name) ? tube_get(name) : NULL;
}

static void put_aside(const struct tube *tube, struct row *row)
{
	struct tube *to = dead_letters(tube);

	row->delay = 0;
	if (to) {
		row->state = READY;
		row->ord = row->pri;
		row->tube = to->commit.id;
	} else {
		row->state = BURIED;
		row->ord = job_next_burial();
		row->buries++;
	}
}

/* A random part, so that jobs that failed together are not tried again together */
static int64_t jitter(const struct row *row, int64_t most)
{
	const int64_t key[] = { row->id, row->reserves };

	return (uint64_t)digest_numbers(key, sizeof(key)) % (most / MILLISECOND + 1) * MILLISECOND;
}

static int64_t backoff(const struct tube_settings *settings, const struct row *row)
{
	int64_t ns = settings->backoff, factor = settings->factor;

	for (uint32_t i = 1; i < row->reserves && factor > 1 && ns < settings->backoff_most; i++)
		ns = ns <= settings->backoff_most / factor ? factor * ns : settings->backoff_most;
	return settings->jitter ? ns + jitter(row, ns / 100 * settings->jitter) : ns;
}

static int64_t delay_of(struct row *row, const struct tube_settings *settings)
{
	int64_t ns = row->delay * settings->unit, units;

	if (ns || !settings->backoff)
		return ns;
	ns = backoff(settings, row);
	units = (ns + settings->unit - 1) / settings->unit;
	row->delay = units < UINT32_MAX ? units : UINT32_MAX;
	return ns;
}

/* How often a job is given out; 0: for ever. What is in the dead letters has had its own tries. */
static uint32_t tries_of(const struct job *job)
{
	return job->row.tries && !settings_is_dead_letter(job->tube->name) ? job->row.tries :
		job->tube->settings->tries;
}

/**
 * job_end_row - work out state, order, delay and tube of a job whose try is over
 * @job: the job
 * @row: the job, with the delay that the client wants; out: its state, order and tube, too
 *
 * If that is another tube than the job's, it stays until job_written().
 */
void job_end_row(struct job *job, struct row *row)
{
	const struct tube_settings *settings = job->tube->settings;
	uint32_t tries = tries_of(job);
	int64_t ns;

	if (tries && row->reserves >= tries) {
		put_aside(job->tube, row);
		return;
	}
	ns = delay_of(row, settings);
	row->state = ns ? DELAYED : READY;
	row->ord = ns ? alarm_now() + ns : row->pri;
}

/** job_end_later - try the end again later, as other servers still take the job for reserved */
void job_end_later(struct job *job)
{
	job->reserver = NULL;
	job->waits = true;
	alarm_set(&job->timer, alarm_now() + SECOND);
}

static void written(struct op *op)
{
	bool fine = job_written(op);

	if (op->gone)
		job_forget(op->job);
	else if (fine)
		job_attach(op->job, op->row.state);
	else
		engine->not_written(op->job);
}

/** job_hand_back - write that a reserved job is ready again, without counting the try */
void job_hand_back(struct job *job)
{
	struct row row = job->row;

	row.state = READY;
	row.ord = row.pri;
	job_write(job, OP_CHANGE, &row, NULL, written);
}

/** job_end_try - end the try of a detached job that its client did not release */
void job_end_try(struct job *job)
{
	const struct tube_settings *settings = job->tube->settings;
	struct row row = job->row;

	job->reserver = NULL;
	if (!tries_of(job) && !settings->backoff && !job->trace) {
		if (!engine->counts_in_store)
			job->tube->ends[job->deadline <= alarm_now() ? DEED_TIMED_OUT :
					DEED_LEFT]++;
		engine->hand_back(job);
		return;
	}
	row.delay = 0;
	job_end_row(job, &row);
	job_write(job, OP_CHANGE, &row, NULL, written);
}

/** job_end_expired - end a try whose time to run is over, or whose end had to wait */
void job_end_expired(struct job *job)
{
	if (job->waits) {
		job->waits = false;
	} else {
		job_detach(job);
		timeouts++;
		job->row.timeouts++;
		job->dirty = true;
	}
	job_end_try(job);
}

/** job_timeouts - how many jobs had their time to run over */
uint64_t job_timeouts(void)
{
	return timeouts;
}
