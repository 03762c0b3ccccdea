// SPDX-License-Identifier: GPL-2.0
/*
 * That each of the invariants of table and wheel is looked at: one thing is made
 * wrong at a time, and that has to be said. In a small world.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uapi/linux/twheel.h>

#include "check.h"
#include "host.h"

#define CAP 4
#define CHUNKS 4
#define TICK 10

/* Nodes of the wheel: their ticks, those that are ready, and what some are */
static const s64 ticks[] = { 10, 9, 40, 41, 42, 1, 2 };

#define PLAIN 0
#define SLACK 1
#define LARGE 2
#define READY 5

static struct tw_table table;
static struct tw_entry dir[CHUNKS + 1];
static struct tw_chunk *chunks[CHUNKS + 1];
static struct tw_wheel wheel;
static struct tw_slot slots[TW_SLOTS];
static struct tw_node nodes[ARRAY_SIZE(ticks)];

static struct tw_node *alloc(void)
{
	u64 id;

	return tw_table_alloc(&table, &id);
}

static struct tw_chunk *add_chunk(void)
{
	void *chunk;

	REQUIRE(!posix_memalign(&chunk, TW_CHUNK_SIZE,
				(CAP + 1) * sizeof(struct tw_node)));
	tw_chunk_format(chunk, CAP);
	tw_table_add(&table, chunk);
	return chunk;
}

/*
 * The first chunk is full, the second is worn out and has a node in use, the third one
 * in use and three that are free, and the fourth is to be given back. All but the second
 * could be used on.
 */
static void make_table(void)
{
	unsigned int i;

	tw_table_init(&table);
	tw_table_grow(&table, dir, ARRAY_SIZE(dir));
	chunks[1] = add_chunk();
	for (i = 0; i < CAP; i++)
		tw_table_alloc_hidden(&table);
	chunks[2] = add_chunk();
	for (i = 0; i < CAP; i++)
		alloc();
	while (!tw_chunk_worn_out(chunks[2])) {
		tw_table_free(&table, &chunks[2]->nodes[CAP]);
		alloc();
	}
	for (i = 2; i <= CAP; i++)
		tw_table_free(&table, &chunks[2]->nodes[i]);
	chunks[3] = add_chunk();
	alloc();
	chunks[4] = add_chunk();
	tw_table_free(&table, tw_table_alloc_hidden(&table));
}

static void make_wheel(void)
{
	struct tw_clock clock;
	unsigned int i;

	tw_clock_init(&clock);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, TICK);
	tw_wheel_init(&wheel, &clock, 8);
	tw_wheel_set_slots(&wheel, slots);
	memset(nodes, 0, sizeof(nodes));
	for (i = 0; i < ARRAY_SIZE(nodes); i++) {
		nodes[i].deadline = ticks[i] * TICK;
		nodes[i].slack_shift = i == SLACK;
		if (i < READY)
			tw_wheel_add(&wheel, &nodes[i]);
		else
			tw_wheel_add_ready(&wheel, &nodes[i]);
	}
}

static struct tw_slot *slot_of(unsigned int node)
{
	return tw_slot_at(&wheel, nodes[node].slot);
}

static struct tw_node *first_free(void)
{
	return (void *)chunks[3] + chunks[3]->free;
}

/* Make one thing of a free list or of a chunk wrong. Returns what has to be said. */
static const char *break_chunk(unsigned int nr)
{
	switch (nr) {
	case 0:
		first_free()->free++;
		return "place * sizeof(struct tw_node) == offset";
	case 1:
		first_free()->free = (CAP + 1) * sizeof(struct tw_node);
		return "place && place < chunk->end";
	case 2:
		first_free()->gen = 1;
		return "!chunk->nodes[place].gen";
	case 3:
		first_free()->free = chunks[3]->free;
		return "left";
	case 4:
		first_free()->free = 0;
		return "!left || tw_chunk_worn_out(chunk)";
	case 5:
		chunks[3]->nodes[1].gen = 2;
		return "chunk->nodes[place].gen <= chunk->gen";
	case 6:
		chunks[2]->nodes[2].gen = 1;
		chunks[2]->nodes[3].gen = 1;
		return "live <= tw_chunk_used(chunk)";
	case 7:
		chunks[3]->used = CAP + 1;
		return "chunk->used <= tw_cap(chunk)";
	case 8:
		chunks[1]->kept = CAP;
		return "chunk->kept <= tw_cap(chunk) - chunk->used";
	case 9:
		chunks[3]->kept = 1;
		return "!chunk->kept";
	case 10:
		chunks[1]->kept--;
		chunks[1]->used++;
		return "chunk->used == 1";
	case 11:
		chunks[2]->used = 0;
		return "chunk->free || nr == TW_FIRST_CHUNK";
	case 12:
		chunks[1]->base = chunks[2]->base;
		return "chunk->base == nr << TW_CHUNK_SHIFT";
	case 13:
		chunks[3]->end = 1;
		return "chunk->end > 1";
	case 14:
		chunks[3]->end = U16_MAX;
		return "chunk->end * sizeof(struct tw_node) <= TW_CHUNK_SIZE";
	case 15:
		chunks[3]->no_gen = 1;
		return "!chunk->no_gen";
	case 16:
		chunks[2]->gen = TW_LAST_GEN + 1;
		return "chunk->gen <= TW_LAST_GEN - free";
	}
	return NULL;
}

/* The same, of a table */
static const char *break_table(unsigned int nr)
{
	static struct tw_chunk stranger;
	unsigned int place;

	switch (nr) {
	case 0:
		stranger = *chunks[3];
		table.partial = &stranger;
		return "table->dir[chunk->base >> TW_CHUNK_SHIFT].chunk == chunk";
	case 1:
		table.partial = chunks[1];
		return "chunk->free";
	case 2:
		chunks[3]->prev = chunks[1];
		return "chunk->prev == prev";
	case 3:
		table.partial = NULL;
		return "!left";
	case 4:
		chunks[3]->next = chunks[1];
		return "!chunk";
	case 5:
		table.unused = CHUNKS + 1;
		return "nr > TW_FIRST_CHUNK && nr < table->nr_chunks";
	case 6:
		table.unused = 3;
		return "table->dir[nr].chunk == &tw_no_chunk";
	case 7:
		dir[3].chunk = &tw_no_chunk;
		dir[3].gen = TW_WORN_GEN;
		table.unused = 3;
		table.partial = NULL;
		table.free = 0;
		return "table->dir[nr].gen < TW_WORN_GEN";
	case 8:
		table.unused = TW_NO_CHUNK;
		return "!left";
	case 9:
		dir[4].next = 4;
		return "nr == TW_NO_CHUNK";
	case 10:
		chunks[4]->used = 1;
		return "!tw_chunk_used(chunk)";
	case 11:
		for (place = 1; place <= CAP; place++)
			tw_table_free(&table, &chunks[1]->nodes[place]);
		table.spare = chunks[1];
		return "table->dir[chunk->base >> TW_CHUNK_SHIFT].chunk != chunk";
	case 12:
		tw_no_chunk.end = 2;
		return "tw_no_chunk.end == 1";
	case 13:
		tw_no_chunk.no_gen = 1;
		return "!tw_no_chunk.no_gen";
	case 14:
		dir[0].chunk = chunks[1];
		return "table->dir[0].chunk == &tw_no_chunk";
	case 15:
		table.nr_chunks = 0;
		return "table->nr_chunks >= TW_FIRST_CHUNK";
	case 16:
		table.max_chunks = 1;
		return "table->nr_chunks <= table->max_chunks";
	case 17:
		table.free--;
		return "table->free == found.free";
	}
	return NULL;
}

/* The same, of a wheel */
static const char *break_wheel(unsigned int nr)
{
	switch (nr) {
	case 0:
		wheel.level[2].reach++;
		return "l->reach == ((wheel->clk >> turn) + 2) << turn";
	case 1:
		wheel.levels ^= 2;
		return "(wheel->levels >> level & 1) == tw_occupied(wheel, level)";
	case 2:
		wheel.done--;
		return "wheel->done == done || (wheel->set_back && wheel->done > done)";
	case 3:
		wheel.pending = 0;
		return "!wheel->pending == !wheel->levels";
	case 4:
		while (wheel.pending)
			tw_wheel_del(&wheel, tw_wheel_first(&wheel));
		wheel.next = 20;
		return "wheel->pending || wheel->next == TW_NEVER";
	case 5:
		wheel.slots = NULL;
		return "wheel->slots || !wheel->pending";
	case 6:
		wheel.ready.count++;
		return "at->next != &slot->nodes";
	case 7:
		nodes[READY].entry.prev = &nodes[PLAIN].entry;
		return "at->next->prev == at";
	case 8:
		wheel.ready.count--;
		return "at->next == &slot->nodes";
	case 9:
		wheel.ready.nodes.prev = &nodes[READY].entry;
		return "slot->nodes.prev == at";
	case 10:
		nodes[PLAIN].slot++;
		return "tw_slot_at(wheel, node->slot) == slot";
	case 11:
		nodes[PLAIN].flags |= TW_NODE_READY;
		return "!tw_is_ready(wheel, node)";
	case 12:
		nodes[LARGE].deadline = 20 * TICK;
		return "start <= due";
	case 13:
		wheel.next = 11;
		return "wheel->next <= min(due, end)";
	case 14:
		slot_of(SLACK)->inspect = 0;
		return "start < end || slot->inspect";
	case 15:
		wheel.occupied[4][0] |= 8;
		return "occupied == !!slot->count";
	case 16:
		slots[0].inspect = 1;
		return "!slot->inspect";
	case 17:
		tw_wheel_del(&wheel, &nodes[PLAIN]);
		nodes[PLAIN].deadline = 12 * TICK;
		wheel.level[0].reach++;
		tw_wheel_add(&wheel, &nodes[PLAIN]);
		wheel.level[0].reach--;
		return "start < wheel->level[level].reach";
	case 18:
		tw_wheel_del(&wheel, &nodes[PLAIN]);
		tw_wheel_del(&wheel, &nodes[SLACK]);
		wheel.next = 20;
		return "!level || slot->count <= TW_SMALL_SLOT";
	case 19:
		nodes[READY].flags = 0;
		nodes[READY].deadline = 20 * TICK;
		return "tw_is_ready(wheel, node)";
	case 20:
		wheel.pending++;
		return "wheel->pending == pending";
	case 21:
		wheel.base++;
		return "wheel->base == wheel->clock.shift + 1";
	}
	return NULL;
}

static void look(void)
{
	tw_check_table(&table);
	tw_check_wheel(&wheel);
}

static void every(const char *(*break_one)(unsigned int nr))
{
	char said[512], text[160];
	unsigned int nr;

	for (nr = 0;; nr++) {
		const char *wrong;

		tw_no_chunk = (struct tw_chunk){ .end = 1 };
		memset(dir, 0, sizeof(dir));
		make_table();
		make_wheel();
		host_said(look, said, sizeof(said));
		REQUIRE(!*said);
		wrong = break_one(nr);
		if (!wrong)
			break;
		host_said(look, said, sizeof(said));
		snprintf(text, sizeof(text), ": not so: %s", wrong);
		if (!strstr(said, text))
			host_fail(__FILE__, __LINE__, "not '%s', but: %s", text, said);
	}
	host_note("%u things", nr);
}

static void every_chunk(void)
{
	every(break_chunk);
}

static void every_table(void)
{
	every(break_table);
}

static void every_wheel(void)
{
	every(break_wheel);
}

int main(void)
{
	host_plan(3);
	host_test("what is wrong with a chunk is said", every_chunk);
	host_test("what is wrong with a table is said", every_table);
	host_test("what is wrong with a wheel is said", every_wheel);
	return host_end();
}
