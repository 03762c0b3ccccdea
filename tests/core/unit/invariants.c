// SPDX-License-Identifier: GPL-2.0
/*
 * That each of the invariants of table and wheel is looked at: one thing is made
 * wrong at a time, and that has to be said. In a small world.
 */
#include <stdlib.h>
#include <string.h>
#include <uapi/linux/twheel.h>

#include "check.h"
#include "host.h"

#define CHUNKS 6
#define TICK 10

/* Nodes of the wheel: their ticks, those that are ready, and what some are */
static const s64 ticks[] = { 10, 9, 40, 41, 42, 1, 2 };

#define PLAIN 0
#define SLACK 1
#define LARGE 2
#define READY 5

/* Chunks of the table, each the only one of its kind */
enum { NONE, FULL, PARTIAL, OPEN, EMPTY, UNUSED };

static struct tw_table table;
static struct tw_chunk *chunks[CHUNKS];
static struct tw_wheel wheel;
static struct tw_slot slots[TW_SLOTS_BYTES / sizeof(struct tw_slot)];
static struct tw_table wheel_table;
static struct tw_node *nodes[ARRAY_SIZE(ticks)];
static u32 indices[ARRAY_SIZE(ticks)];

static u32 alloc(void)
{
	u32 index;

	tw_node_begin(&table, &index);
	return index;
}

static void end(u32 index)
{
	tw_node_end(&table, tw_node_at(&table, index), index);
}

static struct tw_chunk *add_chunk(struct tw_table *table)
{
	struct tw_chunk *chunk = malloc(sizeof(*chunk));

	tw_table_add(table, chunk, calloc(1, TW_CHUNK_BYTES), TW_CHUNK_BYTES);
	return chunk;
}

/*
 * The first chunk is full, of the second some nodes are free, those of the third are
 * handed out, the fourth is empty, and the fifth was given back.
 */
static void make_table(void)
{
	unsigned int i;

	tw_table_init(&table);
	tw_table_grow(&table, calloc(1, TW_DIR_BYTES(CHUNKS)), CHUNKS);
	for (i = FULL; i <= PARTIAL; i++) {
		chunks[i] = add_chunk(&table);
		while (table.free)
			alloc();
	}
	chunks[OPEN] = add_chunk(&table);
	alloc();
	add_chunk(&table);
	chunks[UNUSED] = add_chunk(&table);
	/* All that are empty go, and the first comes again. */
	tw_table_detach_spare(&table);
	chunks[EMPTY] = add_chunk(&table);
	ASSERT_EQ(chunks[EMPTY]->nr, EMPTY);
	alloc();
	end(PARTIAL << TW_CHUNK_SHIFT | 2);
	end(PARTIAL << TW_CHUNK_SHIFT | 3);
}

static void make_wheel(void)
{
	struct tw_clock clock;
	unsigned int i;

	tw_clock_init(&clock);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, TICK);
	tw_table_init(&wheel_table);
	tw_table_grow(&wheel_table, calloc(1, TW_DIR_BYTES(2)), 2);
	add_chunk(&wheel_table);
	memset(slots, 0, sizeof(slots));
	tw_wheel_init(&wheel, &wheel_table, &clock, 8, 0);
	tw_wheel_set_slots(&wheel, slots, false);
	for (i = 0; i < ARRAY_SIZE(nodes); i++) {
		nodes[i] = tw_node_begin(&wheel_table, &indices[i]);
		nodes[i]->deadline = ticks[i] * TICK;
		nodes[i]->flags = i == SLACK;
		if (i < READY)
			tw_wheel_add(&wheel, nodes[i], indices[i]);
		else
			tw_wheel_add_ready(&wheel, nodes[i], indices[i]);
	}
}

static struct tw_slot *slot_of(unsigned int node)
{
	return &slots[nodes[node]->slot];
}

/* Make one thing of a chunk wrong. Returns what has to be said. */
static const char *break_chunk(unsigned int nr)
{
	switch (nr) {
	case 0:
		chunks[PARTIAL]->free[0] |= 1ULL << 32;
		return "!(chunk->free[i] & ~TW_WORD_ALL)";
	case 1:
		chunks[FULL]->some = 1;
		return "(chunk->some >> i & 1) == !!chunk->free[i]";
	case 2:
		chunks[EMPTY]->all = 0;
		return "(chunk->all >> i & 1) == tw_is_all(chunk->free[i])";
	case 3:
		chunks[EMPTY]->some |= 1 << TW_WORDS;
		return "!(chunk->some & ~TW_WORDS_ALL)";
	case 4:
		chunks[PARTIAL]->nodes[2].gen = 1;
		return "!(gen & 1) || !tw_is_free(table, chunk, place)";
	case 5:
		table.nodes[table.word ? __ffs64(table.word) : 0].gen = 1;
		return "!(gen & 1) || !tw_is_free(table, chunk, place)";
	case 6:
		chunks[FULL]->nodes[1].gen = 5;
		return "gen <= chunk->bound || chunk->bound == TW_LAST_GEN - 1";
	case 7:
		chunks[FULL]->gen = 8;
		return "chunk->gen <= chunk->bound";
	case 8:
		chunks[FULL]->bound++;
		return "!(chunk->bound & 1)";
	case 9:
		chunks[FULL]->nr = EMPTY;
		return "chunk->nr == nr";
	case 10:
		table.dir[FULL] = table.dir[EMPTY];
		return "tw_table_nodes(table, nr) == chunk->nodes";
	case 11:
		chunks[FULL]->bytes = TW_FEW_BYTES;
		return "end == TW_CHUNK_NODES || (nr == TW_FIRST_CHUNK && last)";
	}
	return NULL;
}

/* What is broken in a table */
static const char *break_table(unsigned int nr)
{
	static struct tw_chunk stranger;

	switch (nr) {
	case 0:
		table.dir[UNUSED] = table.dir[FULL];
		return "tw_table_nodes(table, nr) == tw_zero_nodes";
	case 1:
		table.first = 9 << TW_CHUNK_SHIFT;
		return "table->first >> TW_CHUNK_SHIFT < table->nr_chunks";
	case 2:
		table.first = UNUSED << TW_CHUNK_SHIFT;
		return "chunk";
	case 3:
		table.first++;
		return "!(table->first % TW_WORD_NODES)";
	case 4:
		table.nodes++;
		return "table->nodes == tw_node_at(table, table->first)";
	case 5:
		table.gen = 2;
		return "table->gen == chunk->gen";
	case 6:
		table.word |= 1ULL << 32;
		return "!(table->word & ~TW_WORD_ALL)";
	case 7:
		chunks[OPEN]->free[0] = table.word;
		return "!(table->word & chunk->free[tw_word(table->first)])";
	case 8:
		stranger = *chunks[PARTIAL];
		stranger.nr = CHUNKS;
		table.partial = &stranger;
		return "chunk->nr < table->nr_chunks";
	case 9:
		stranger = *chunks[PARTIAL];
		table.partial = &stranger;
		return "table->chunks[chunk->nr] == chunk";
	case 10:
		chunks[FULL]->prev = NULL;
		table.partial = chunks[FULL];
		return "chunk->some";
	case 11:
		chunks[PARTIAL]->prev = chunks[FULL];
		return "chunk->prev == prev";
	case 12:
		table.partial = chunks[EMPTY];
		return "tw_is_empty(chunk) == empty";
	case 13:
		table.partial = NULL;
		return "!left";
	case 14:
		chunks[EMPTY]->next = chunks[FULL];
		return "!chunk";
	case 15:
		table.first_unused = CHUNKS;
		return "nr < table->nr_chunks";
	case 16:
		table.first_unused = EMPTY;
		return "!table->chunks[nr]";
	case 17:
		table.unused[UNUSED].gen = TW_LAST_GEN - 1;
		table.first_unused = 0;
		table.max_chunks = 1;
		return "table->nr_chunks <= table->max_chunks";
	case 18:
		table.first_unused = 0;
		return "!left";
	case 19:
		table.unused[UNUSED].next = UNUSED;
		return "!nr";
	case 20:
		table.dir[0] = table.dir[FULL];
		return "tw_table_nodes(table, 0) == tw_zero_nodes";
	case 21:
		table.nr_chunks = 0;
		return "table->nr_chunks >= TW_FIRST_CHUNK";
	case 22:
		table.free--;
		return "table->free == found.free";
	case 23:
		table.end--;
		return "table->end == (table->nr_chunks - 1UL) * TW_CHUNK_NODES";
	}
	return NULL;
}

/* What is broken in a wheel */
static const char *break_wheel(unsigned int nr)
{
	unsigned int stripe;

	switch (nr) {
	case 0:
		wheel.level[2].reach++;
		return "l->reach == ((wheel->clk >> turn) + 2) << turn";
	case 1:
		wheel.levels ^= 2;
		return "(wheel->levels >> level & 1) == tw_occupied(wheel, level)";
	case 2:
		wheel.done_ns--;
		return "wheel->done_ns == done_ns || (wheel->set_back && wheel->done_ns > done_ns)";
	case 3:
		wheel.pending = 0;
		return "!wheel->pending == !wheel->levels";
	case 4:
		while (wheel.pending) {
			u32 index;
			struct tw_node *node = tw_wheel_first(&wheel, &index);

			tw_wheel_del(&wheel, node, index);
		}
		wheel.next = 20;
		return "wheel->pending || wheel->next == TW_NEVER";
	case 5:
		wheel.slots = NULL;
		return "!wheel->depth == !wheel->slots";
	case 6:
		wheel.ready.count++;
		return "!left";
	case 7:
		nodes[READY]->prev = indices[PLAIN];
		return "node->prev == prev";
	case 8:
		wheel.ready.count--;
		return "!index";
	case 9:
		wheel.ready.list[TW_AT_ONCE].last = 0;
		return "list->last == prev";
	case 10:
		nodes[PLAIN]->slot++;
		return "node->slot == slot";
	case 11:
		nodes[PLAIN]->flags |= TW_NODE_READY;
		return "!tw_is_ready(wheel, node)";
	case 12:
		nodes[LARGE]->deadline = 20 * TICK;
		return "start <= due";
	case 13:
		wheel.next = 11;
		return "wheel->next <= min(due, end)";
	case 14:
		slot_of(SLACK)->inspect = 0;
		return "start < end || wheel->slots[slot].inspect";
	case 15:
		wheel.occupied[4][0] |= 8;
		return "occupied == !!slot->count";
	case 16:
		slots[0].inspect = 1;
		return "!slot->inspect";
	case 17:
		tw_wheel_del(&wheel, nodes[PLAIN], indices[PLAIN]);
		nodes[PLAIN]->deadline = 12 * TICK;
		wheel.level[0].reach++;
		tw_wheel_add(&wheel, nodes[PLAIN], indices[PLAIN]);
		wheel.level[0].reach--;
		return "start < wheel->level[level].reach";
	case 18:
		tw_wheel_del(&wheel, nodes[PLAIN], indices[PLAIN]);
		tw_wheel_del(&wheel, nodes[SLACK], indices[SLACK]);
		wheel.next = 20;
		return "!level || slot->count <= TW_SMALL_SLOT";
	case 19:
		nodes[READY]->flags = 0;
		nodes[READY]->deadline = 20 * TICK;
		return "tw_is_ready(wheel, node)";
	case 20:
		wheel.pending++;
		return "wheel->pending == pending";
	case 21:
		wheel.base++;
		return "wheel->base == wheel->clock.tick_offset + 1";
	case 22:
		nodes[READY]->next = 9 << TW_CHUNK_SHIFT;
		wheel.ready.count = U32_MAX;
		return "index >> TW_CHUNK_SHIFT < wheel->table->nr_chunks";
	case 23:
		stripe = !(indices[READY] % TW_STRIPES);
		wheel.ready.list[TW_READY_STRIPE(stripe)] = wheel.ready.list[TW_AT_ONCE];
		wheel.ready.list[TW_AT_ONCE] = (struct tw_list){};
		wheel.ready.lists = ~0;
		return "(index & mask) == stripe";
	case 24:
		while (wheel.ready.count)
			tw_wheel_del(&wheel, nodes[READY + wheel.ready.count - 1],
				     indices[READY + wheel.ready.count - 1]);
		wheel.ready.until = 1;
		return "ready->count || !ready->until";
	case 25:
		nodes[READY]->flags &= ~TW_NODE_AT_ONCE;
		nodes[READY]->flags |= TW_NODE_READY;
		return "!(node->flags & TW_NODE_AT_ONCE) == !at_once";
	case 26:
		wheel.ready.round = 1 << TW_READY_LISTS;
		return "!(ready->round >> TW_READY_LISTS)";
	case 27:
		slot_of(PLAIN)->stripes = 0;
		return "!lists[i].first || stripes >> i & 1";
	case 28:
		wheel.ready.lists = 0;
		return "!ready->list[i].first || ready->lists >> i & 1";
	case 29:
		wheel.depth = 1;
		return "!(wheel->levels >> wheel->depth)";
	}
	return NULL;
}

static void look(void)
{
	tw_check_table(&table, true);
	tw_check_wheel(&wheel);
}

static void make(void)
{
	make_table();
	make_wheel();
}

static void every_chunk(void)
{
	host_breaks(make, look, break_chunk);
}

static void every_table(void)
{
	host_breaks(make, look, break_table);
}

static void every_wheel(void)
{
	host_breaks(make, look, break_wheel);
}

int main(void)
{
	host_plan(3);
	host_test("what is wrong with a chunk is said", every_chunk);
	host_test("what is wrong with a table is said", every_table);
	host_test("what is wrong with a wheel is said", every_wheel);
	return host_end();
}
