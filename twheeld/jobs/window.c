// SPDX-License-Identifier: GPL-2.0
/*
 * The window: delayed jobs that are due soon are in memory.
 *
 * The window is filled a piece at a time, so that clients don't wait for it, and it ends earlier
 * where too many jobs are due: memory has a bound.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/job.h"
#include "jobs/tube.h"
#include "jobs/window.h"

#define LEAD (WINDOW_LENGTH / 2)

static struct cursor end = { .ord = INT64_MIN };
static bool full;		/* no more is loaded until jobs have left it */
static size_t most = WINDOW_MOST;
static struct twheel_timer timer;
static size_t count;		/* of jobs */

struct piece {
	int left;
};

/** window_end - all delayed jobs after it are in the store alone */
struct cursor window_end(void)
{
	return end;
}

static bool window_load(struct row *row, void *arg)
{
	struct piece *piece = arg;
	struct tube *tube = tube_by_id(row->tube);
	struct job *job;

	if (!tube)
		complain("job %lld of the store is of no tube", (long long)row->id);
	if (!tube || job_in_memory(row->id)) {
		free(row->body);
		return --piece->left > 0;
	}
	job = job_from_row(tube, row);
	job->cold = false;
	/* The row is within the window: its end is known only when the piece is loaded. */
	end.ord = row->ord;
	job_attach(job, DELAYED);
	return --piece->left > 0;
}

static void window_fill(void)
{
	struct piece piece = { WINDOW_PIECE };
	int64_t until = alarm_now() + WINDOW_LENGTH;
	struct cursor cursor = end;
	bool last;

	full = count > most / 2;
	if (full)
		return;
	if (!store_due(&cursor, until, &last, window_load, &piece)) {
		end = cursor;
		alarm_set(&timer, alarm_now() + SECOND);
		return;
	}
	end = cursor;
	if (last && until > end.ord)
		end = (struct cursor){ until, INT64_MAX };
	alarm_set(&timer, last ? end.ord - LEAD : alarm_now());
}

static void fill_more(struct twheel *tw, struct twheel_timer *expired,
		      const struct twheel_event *event)
{
	window_fill();
}

void window_start(void)
{
	alarm_init(&timer, fill_more);
	window_fill();
}

static int window_compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

static bool holds(const struct job *job)
{
	return job->counted && job->row.state == DELAYED && !job->busy && !job->cold;
}

/* Due times of the jobs in the window */
struct dues {
	int64_t *at;
	size_t count;
};

static void add_due(struct job *job, void *arg)
{
	struct dues *dues = arg;

	if (holds(job) && dues->count < count)
		dues->at[dues->count++] = job->deadline;
}

static void leave_memory(struct job *job, void *arg)
{
	if (!holds(job) || job->deadline <= end.ord)
		return;
	heap_remove(&job->tube->delayed, &job->node);
	count--;
	job_free(job);
}

/* Too many jobs are in memory: the later half is in the store alone from now on. */
static void shorten(void)
{
	struct dues dues = { must(malloc(count * sizeof(*dues.at))), 0 };

	job_each(add_due, &dues);
	qsort(dues.at, dues.count, sizeof(*dues.at), window_compare);
	/* Jobs that are due at the same time stay together. */
	if (dues.at[dues.count / 2] < dues.at[dues.count - 1]) {
		end = (struct cursor){ dues.at[dues.count / 2], INT64_MAX };
		job_each(leave_memory, NULL);
		full = true;
		most = WINDOW_MOST;
	} else {
		most *= 2;
	}
	free(dues.at);
}

/** window_add - keep a delayed job in memory if it is due soon, or else in the store alone */
void window_add(struct job *job)
{
	if (job->deadline > end.ord) {
		job_free(job);
		return;
	}
	job_spare_early_body(job);
	heap_add(&job->tube->delayed, &job->node);
	alarm_set(&job->timer, job->deadline);
	if (++count > most)
		shorten();
}

/** window_remove - take a job out; a job in the store alone is not in the window */
void window_remove(struct job *job)
{
	if (job->cold)
		return;
	heap_remove(&job->tube->delayed, &job->node);
	count--;
	if (full && count <= most / 2) {
		full = false;
		alarm_set(&timer, alarm_now());
	}
}

/** window_jobs - how many it has */
size_t window_jobs(void)
{
	return count;
}
