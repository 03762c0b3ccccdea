/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A heap of jobs: the least is first. A job knows its place (job->place).
 */
#ifndef TWHEELD_HEAP_H
#define TWHEELD_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct job;

struct heap {
	struct job **jobs;
	size_t length;
	size_t room;
	bool (*less)(const struct job *a, const struct job *b);
};

void heap_add(struct heap *heap, struct job *job);
void heap_remove(struct heap *heap, struct job *job);
struct job *heap_first(const struct heap *heap);
void heap_free(struct heap *heap);

#endif
