// SPDX-License-Identifier: GPL-2.0
/*
 * Firings: the jobs of a schedule for one or several times.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cron/firing.h"
#include "jobs/notice.h"
#include "jobs/trace.h"
#include "jobs/tube.h"

/* Bytes that a job takes beside its body */
#define JOB_WEIGHT 1000

static struct job *new_job(const struct definition *definition, int64_t time, uint32_t shard,
			   const char *name)
{
	size_t size;
	char *body = definition_body(definition, time / SECOND,
				     definition->each_worker ? 0 : shard, &size);
	struct tube *tube;
	struct job *job;

	if (!body)
		return NULL;
	tube = tube_get(name);
	job = tube ? job_new(tube, size) : NULL;
	if (job)
		memcpy(job->row.body, body, size);
	/* A job holds its tube; without a job, let go of it. */
	if (tube)
		tube_put(tube);
	free(body);
	return job;
}

static bool add_run(struct firing_run *run, const struct schedule *schedule, int64_t time,
		    uint32_t shard, const char *tube)
{
	const struct definition *definition = schedule->definition;
	struct job *job = new_job(definition, time, shard, tube);

	if (!job)
		return false;
	job->row.pri = definition->pri;
	job->row.ttr = definition->ttr;
	job->row.created = alarm_now();
	job->row.state = READY;
	job->row.ord = definition->pri;
	job->row.scheduled = schedule->id;
	job->busy = true;
	run->time = time;
	run->shard = shard;
	run->put = (struct op){
		.kind = OP_PUT, .row = job->row, .job = job, .tube = &job->tube->commit,
		.to = &job->tube->commit, .unique = job->tube->settings->unique,
	};
	return true;
}

static void free_op(struct op *op)
{
	for (size_t i = 0; i < op->firing->count; i++)
		job_free(op->firing->runs[i].put.job);
	free(op->firing);
	free(op);
}

/* Tubes of ON=each-worker that clients of this server watch. Returns how many. */
static size_t workers_of(const struct definition *definition, const char **names)
{
	size_t count, found = 0, begins = strlen(definition->tube) - 1;
	struct tube **tubes = tube_list(&count);

	for (size_t i = 0; i < count; i++) {
		if (!tubes[i]->watching || !tubes[i]->name[begins] ||
		    strncmp(tubes[i]->name, definition->tube, begins))
			continue;
		if (found < SHARDS_MOST)
			names[found] = tubes[i]->name;
		found++;
	}
	if (found <= SHARDS_MOST)
		return found;
	complain("%s: %zu tubes %s are watched, and only %d get a job", definition->name, found,
		 definition->tube, SHARDS_MOST);
	return SHARDS_MOST;
}

/**
 * firing_new - an operation that makes a schedule's jobs
 * @schedule: the schedule, which a tab has
 * @times: the times, in ns; one with a fraction of a second is none of the schedule's own
 * @count: how many; may be 0
 *
 * Return: the operation, which leaves the schedule's next time as it is, and which has no runs
 * where ON=each-worker finds no worker; NULL without memory,
 * or if the store can't be asked for the tube.
 */
struct op *firing_new(struct schedule *schedule, const int64_t *times, size_t count)
{
	const struct definition *definition = schedule->definition;
	const char *tubes[SHARDS_MOST];
	size_t shards = definition->each_worker ? workers_of(definition, tubes) :
			definition->shards;
	size_t all = count * shards;
	struct firing *firing = calloc(1, sizeof(*firing) + all * sizeof(*firing->runs));
	struct op *op;

	if (!firing)
		return NULL;
	op = zalloc(sizeof(*op));
	op->kind = OP_FIRE;
	op->firing = firing;
	firing->schedule = schedule;
	firing->id = schedule->id;
	firing->overlap = definition->overlap == OVERLAP_YES;
	firing->waits = definition->overlap == OVERLAP_WAIT;
	for (; firing->count < all; firing->count++) {
		size_t shard = firing->count % shards;

		if (add_run(&firing->runs[firing->count], schedule,
			    times[firing->count / shards], shard,
			    definition->each_worker ? tubes[shard] : definition->tube)) {
			firing->weight += JOB_WEIGHT + firing->runs[firing->count].put.row.size;
			continue;
		}
		free_op(op);
		return NULL;
	}
	return op;
}

void firing_submit(struct op *op, void (*done)(struct op *op))
{
	op->done = done;
	commit_submit(op);
}

/* Put a job into its tube once it is stored, or another one of the same body serves for it. */
static void attach(struct op *put, int64_t schedule)
{
	struct job *job = put->job;

	if (put->same) {
		job_adopt(put->same, schedule);
		job_free(job);
		return;
	}
	job_written(put);
	job_put(job->tube);
	job_attach(job, READY);
}

/** firing_end - put the jobs that were made into their tubes, and free all else of the operation */
struct firing_counts firing_end(struct op *op)
{
	struct firing *firing = op->firing;
	struct firing_counts counts = { 0 };
	struct op *news;

	for (size_t i = 0; i < firing->count; i++) {
		struct firing_run *run = &firing->runs[i];

		if (!op->failed)
			schedule_watch_late(firing->schedule, run->time);
		if (!op->failed && !firing->stale && run->made) {
			counts.made++;
			attach(&run->put, firing->id);
			continue;
		}
		counts.skipped += run->skipped && !run->there;
		counts.waiting += run->waits && !run->there;
		counts.there += run->there || (!run->skipped && !run->waits);
		job_free(run->put.job);
	}
	while ((news = firing->news)) {
		firing->news = news->next;
		notice_end(news, op->failed || firing->stale);
	}
	free(firing);
	trace_free(op->trace);
	op->firing = NULL;
	return counts;
}
