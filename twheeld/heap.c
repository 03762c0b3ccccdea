// SPDX-License-Identifier: GPL-2.0
/*
 * A heap of jobs.
 */
#include <stdlib.h>

#include "heap.h"
#include "job.h"
#include "util.h"

static void place(struct heap *heap, size_t at, struct job *job)
{
	heap->jobs[at] = job;
	job->place = at;
}

static void up(struct heap *heap, size_t at, struct job *job)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;

		if (!heap->less(job, heap->jobs[parent]))
			break;
		place(heap, at, heap->jobs[parent]);
		at = parent;
	}
	place(heap, at, job);
}

static void down(struct heap *heap, size_t at, struct job *job)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= heap->length)
			break;
		if (child + 1 < heap->length &&
		    heap->less(heap->jobs[child + 1], heap->jobs[child]))
			child++;
		if (!heap->less(heap->jobs[child], job))
			break;
		place(heap, at, heap->jobs[child]);
		at = child;
	}
	place(heap, at, job);
}

void heap_add(struct heap *heap, struct job *job)
{
	if (heap->length == heap->room) {
		heap->room = heap->room ? 2 * heap->room : 8;
		heap->jobs = must(realloc(heap->jobs, heap->room * sizeof(*heap->jobs)));
	}
	up(heap, heap->length++, job);
}

void heap_remove(struct heap *heap, struct job *job)
{
	size_t at = job->place;
	struct job *last = heap->jobs[--heap->length];

	if (last == job)
		return;
	if (at > 0 && heap->less(last, heap->jobs[(at - 1) / 2]))
		up(heap, at, last);
	else
		down(heap, at, last);
}

struct job *heap_first(const struct heap *heap)
{
	return heap->length ? heap->jobs[0] : NULL;
}

void heap_free(struct heap *heap)
{
	free(heap->jobs);
	heap->jobs = NULL;
	heap->length = 0;
	heap->room = 0;
}
