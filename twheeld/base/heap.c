// SPDX-License-Identifier: GPL-2.0
/*
 * A heap.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "base/util.h"

static void place(struct heap *heap, size_t at, struct heap_node *node)
{
	heap->nodes[at] = node;
	node->place = at;
}

static void up(struct heap *heap, size_t at, struct heap_node *node)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;

		if (!heap->less(node, heap->nodes[parent]))
			break;
		place(heap, at, heap->nodes[parent]);
		at = parent;
	}
	place(heap, at, node);
}

static void down(struct heap *heap, size_t at, struct heap_node *node)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= heap->length)
			break;
		if (child + 1 < heap->length &&
		    heap->less(heap->nodes[child + 1], heap->nodes[child]))
			child++;
		if (!heap->less(heap->nodes[child], node))
			break;
		place(heap, at, heap->nodes[child]);
		at = child;
	}
	place(heap, at, node);
}

void heap_add(struct heap *heap, struct heap_node *node)
{
	if (heap->length == heap->room) {
		heap->room = heap->room ? 2 * heap->room : 8;
		heap->nodes = must(realloc(heap->nodes, heap->room * sizeof(*heap->nodes)));
	}
	up(heap, heap->length++, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	size_t at = node->place;
	struct heap_node *last = heap->nodes[--heap->length];

	if (last == node)
		return;
	if (at > 0 && heap->less(last, heap->nodes[(at - 1) / 2]))
		up(heap, at, last);
	else
		down(heap, at, last);
}

/** heap_first - the least node; NULL if there is none */
struct heap_node *heap_first(const struct heap *heap)
{
	return heap->length ? heap->nodes[0] : NULL;
}

void heap_free(struct heap *heap)
{
	free(heap->nodes);
	heap->nodes = NULL;
	heap->length = 0;
	heap->room = 0;
}
