// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of a tube that are ready, of a store that is this server's alone.
 *
 * The first jobs are in memory, in a heap, and all others in the store alone, after the tube's
 * edge. When the heap has come to the edge, the next jobs are loaded. When it holds too many, the
 * later half leaves it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/ready.h"
#include "jobs/tube.h"

static int64_t spill_at;

/** ready_load - make a tube of the store */
void ready_load(const struct store_tube *stored)
{
	struct tube *tube = tube_make(stored->name, stored->id);

	memcpy(tube->count, stored->count, sizeof(stored->count));
	tube->urgent = stored->urgent;
	tube->stored = true;
	tube->cold = tube->count[READY];
	tube->edge = (struct cursor){ -1, 0 };
}

static bool after_edge(const struct tube *tube, const struct job *job)
{
	if (job->row.pri != tube->edge.ord)
		return job->row.pri > tube->edge.ord;
	return job->row.id > tube->edge.id;
}

struct page {
	struct tube *tube;
	int left;
};

static bool load(struct row *row, void *arg)
{
	struct page *page = arg;

	if (job_in_memory(row->id)) {
		free(row->body);
	} else {
		struct job *job = job_from_row(page->tube, row);

		job->cold = false;
		heap_add(&page->tube->ready, &job->node);
		page->tube->cold--;
	}
	return --page->left > 0;
}

static bool load_page(struct tube *tube)
{
	struct page page = { tube, READY_PAGE };
	bool end;

	if (!store_in_order(tube->commit.id, READY, &tube->edge, &end, load, &page))
		return false;
	if (end)
		tube->cold = 0;
	return true;
}

/** ready_unsure - may the next job be one that is being written, so that it may leave memory? */
bool ready_unsure(const struct tube *tube)
{
	struct heap_node *first = heap_first(&tube->ready);

	return tube->spilling && (!first || after_edge(tube, job_of_node(first)));
}

/**
 * ready_first - the job to be reserved next; NULL if there is none, or it can't be read, or if
 * ready_unsure()
 */
struct job *ready_first(struct tube *tube)
{
	struct job *first = job_of_node(heap_first(&tube->ready));

	if (ready_unsure(tube))
		return NULL;
	while (tube->cold > 0 && (!first || after_edge(tube, first))) {
		if (!load_page(tube))
			return NULL;
		first = job_of_node(heap_first(&tube->ready));
	}
	return first;
}

static int ready_compare(const void *a, const void *b)
{
	struct heap_node *const *one = a, *const *other = b;

	return job_before(*one, *other) ? -1 : 1;
}

/* The write after which a job may leave memory has failed: the job stays for a while. */
static void spilled(struct op *op)
{
	op->job->tube->spilling--;
	if (!job_written(op))
		spill_at = alarm_now() + SECOND;
	job_attach(op->job, READY);
}

/* Write that a job is ready, so that it may leave memory. */
static void spill(struct job *job)
{
	struct row row = job->row;

	job_detach(job);
	job->tube->spilling++;
	row.state = READY;
	row.ord = row.pri;
	job_write(job, OP_CHANGE, &row, NULL, spilled);
}

/* Keep the first half: an array in order is a heap, too. */
static void leave_half(struct tube *tube)
{
	struct heap *heap = &tube->ready;
	size_t half = heap->length / 2;
	struct job *last;

	qsort(heap->nodes, heap->length, sizeof(struct heap_node *), ready_compare);
	for (size_t i = 0; i < heap->length; i++)
		heap->nodes[i]->place = i;
	last = job_of_node(heap->nodes[half - 1]);
	if ((tube->cold == 0 && !tube->spilling) || !after_edge(tube, last))
		tube->edge = (struct cursor){ last->row.pri, last->row.id };
	while (heap->length > half) {
		struct job *job = job_of_node(heap->nodes[heap->length - 1]);

		if (job_is_stored(job)) {
			heap->length--;
			tube->cold++;
			job_free(job);
		} else {
			spill(job);
		}
	}
}

/** ready_add - keep a ready job in memory, or in the store alone if there are many */
void ready_add(struct tube *tube, struct job *job)
{
	if (tube->cold > 0 && after_edge(tube, job) && job_is_stored(job)) {
		tube->cold++;
		job_free(job);
		return;
	}
	heap_add(&tube->ready, &job->node);
	if (tube->ready.length > READY_MOST && alarm_now() >= spill_at)
		leave_half(tube);
}

/** ready_remove - take a job out; it is cold if it was in the store alone until now */
void ready_remove(struct tube *tube, struct job *job)
{
	if (!job->cold)
		heap_remove(&tube->ready, &job->node);
	else if (tube->cold > 0)
		tube->cold--;
}
