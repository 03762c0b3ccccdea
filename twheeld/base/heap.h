/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A heap, with the least node first. Nodes are members of the structures in it.
 */
#ifndef TWHEELD_HEAP_H
#define TWHEELD_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
	size_t place;
};

struct heap {
	struct heap_node **nodes;
	size_t length;
	size_t room;
	bool (*less)(const struct heap_node *a, const struct heap_node *b);
};

void heap_add(struct heap *heap, struct heap_node *node);
void heap_remove(struct heap *heap, struct heap_node *node);
struct heap_node *heap_first(const struct heap *heap);
void heap_free(struct heap *heap);

#endif
