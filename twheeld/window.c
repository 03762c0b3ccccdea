// SPDX-License-Identifier: GPL-2.0
/*
 * The window: delayed jobs that are due soon are in memory.
 *
 * It is filled a piece at a time, so that clients don't wait for it, and it ends earlier
 * when too many jobs are due: memory is for a number of jobs, not for all.
 */
#include <stdlib.h>

#include "job.h"
#include "limits.h"
#include "tube.h"
#include "util.h"
#include "window.h"

#define LEAD (WINDOW_LENGTH / 2)

static struct cursor end = { .ord = INT64_MIN };
static bool full;		/* it waits until jobs have left it */
static size_t most = WINDOW_MOST;
static struct twheel_timer timer;

struct piece {
	int left;
};

bool window_holds(int64_t due)
{
	return due <= end.ord;
}

/** window_end - all delayed jobs after it are in the store alone */
struct cursor window_end(void)
{
	return end;
}

static bool load(struct row *row, void *arg)
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
	/* It is within the window, whose end is only known when the piece is loaded */
	end.ord = row->ord;
	job_attach(job, DELAYED);
	return --piece->left > 0;
}

static void fill(void)
{
	struct piece piece = { WINDOW_PIECE };
	int64_t until = alarm_now() + WINDOW_LENGTH;
	struct cursor cursor = end;
	bool last;

	full = job_delayed_count() > most / 2;
	if (full)
		return;
	if (!store_due(&cursor, until, &last, load, &piece)) {
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
	(void)tw;
	(void)expired;
	(void)event;
	fill();
}

void window_start(void)
{
	alarm_init(&timer, fill_more);
	fill();
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

/** window_grew - a job was added to it; it may have become too many */
void window_grew(void)
{
	int64_t *dues;
	size_t count;

	if (job_delayed_count() <= most)
		return;
	dues = must(malloc(job_delayed_count() * sizeof(*dues)));
	count = job_delayed_dues(dues);
	qsort(dues, count, sizeof(*dues), compare);
	/* Jobs that are due together stay together */
	if (dues[count / 2] < dues[count - 1]) {
		end = (struct cursor){ dues[count / 2], INT64_MAX };
		job_forget_delayed(end.ord);
		full = true;
		most = WINDOW_MOST;
	} else {
		most *= 2;
	}
	free(dues);
}

/** window_shrank - a job has left it */
void window_shrank(void)
{
	if (full && job_delayed_count() <= most / 2) {
		full = false;
		alarm_set(&timer, alarm_now());
	}
}
