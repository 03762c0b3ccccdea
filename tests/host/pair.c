// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel and a reference model side by side. See pair.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "pair.h"

#define TRACE 256
#define TRACE_SHOWN 40

/**
 * struct trace - an operation that was done
 * @name: which one
 * @now: the wheel's tick that it was
 * @index: the timer, or TW_NIL
 * @what: expiry, budget or time, whichever it has
 */
struct trace {
	const char *name;
	s64 now;
	u32 index;
	s64 what;
};

static struct trace traces[TRACE];
static const struct pair *traced;

static void print_trace(void)
{
	const struct tw_wheel *wheel = &traced->wheel;
	u64 nr = traced->nr_traced;
	u64 i = nr > TRACE_SHOWN ? nr - TRACE_SHOWN : 0;

	printf("# %llu operations, of which the last:\n", nr);
	for (; i < nr; i++) {
		const struct trace *t = &traces[i % TRACE];

		printf("#   at %lld: %s", t->now, t->name);
		if (t->index != TW_NIL)
			printf(" timer %u", t->index);
		printf(" %lld (%+lld)\n", t->what, t->what - t->now);
	}
	printf("# wheel: now %lld clk %lld next %lld levels %#x pending %u ready %u\n",
	       pair_now(traced), wheel->clk, wheel->next, wheel->levels,
	       wheel->pending, wheel->ready.count);
	printf("# model: first %lld pending %u ready %u\n", pair_first(traced),
	       traced->nr_pending, traced->nr_ready);
}

static void trace(struct pair *p, const char *name, u32 index, s64 what)
{
	traces[p->nr_traced++ % TRACE] = (struct trace){
		.name = name,
		.now = pair_now(p),
		.index = index,
		.what = what,
	};
}

static const struct tw_node *node_of(const struct pair *p, u32 index)
{
	return tw_node(&p->table, index);
}

static s64 tick_of(const struct pair *p, s64 due)
{
	return min(due + p->shift, TW_TICK_MAX);
}

static s64 refresh(const struct tw_wheel *wheel, const struct tw_node *node)
{
	const struct pair *p = (const void *)((const char *)wheel -
					      offsetof(struct pair, wheel));

	return max(tick_of(p, node->deadline), wheel->clk);
}

/**
 * pair_init() - make an empty wheel and its model
 * @p: the pair
 * @now: the tick that it is
 * @refresh_it: can the clock be set back?
 */
void pair_init(struct pair *p, s64 now, bool refresh_it)
{
	memset(p, 0, sizeof(*p));
	p->host_now = now;
	tw_table_init(&p->table);
	tw_wheel_init(&p->wheel, &p->table, now);
	tw_wheel_set_slots(&p->wheel, p->slots);
	REQUIRE_EQ(p->wheel.clk, now + 1);
	if (refresh_it)
		p->wheel.refresh = refresh;
	traced = p;
	host_print_trace = print_trace;
}

static void free_spare(struct pair *p)
{
	struct tw_spare *spare = tw_table_take_spare(&p->table);

	while (spare) {
		struct tw_spare *next = spare->next;

		free(spare);
		spare = next;
	}
}

/**
 * pair_end() - free what a pair holds
 * @p: the pair
 */
void pair_end(struct pair *p)
{
	u32 i;

	free_spare(p);
	for (i = 0; i < p->table.nr_chunks; i++)
		free(p->table.chunks[i].nodes);
	free(p->table.chunks);
	host_print_trace = NULL;
}

/**
 * pair_has_room() - can another chunk be added?
 * @p: the pair
 *
 * Return: true if its indices stay below PAIR_MOST.
 */
bool pair_has_room(const struct pair *p)
{
	return p->table.unused != TW_NIL ||
	       p->table.nr_chunks < PAIR_MOST_CHUNKS;
}

/**
 * pair_add_chunk() - make room for more timers
 * @p: the pair, which has room
 * @cap: for how many
 */
void pair_add_chunk(struct pair *p, unsigned int cap)
{
	struct tw_node *nodes = malloc(cap * sizeof(*nodes));
	u32 more = p->table.max_chunks + 1;

	if (tw_table_full(&p->table))
		free(tw_table_grow(&p->table, malloc(more *
						     sizeof(struct tw_chunk)),
				   more));
	tw_chunk_format(nodes, cap);
	tw_table_add(&p->table, nodes, cap);
}

/* Where in the sorted array an entry is, or would be. */
static u32 sorted_place(const struct pair *p, s64 due, u32 index)
{
	u32 low = 0, high = p->nr_pending;

	while (low < high) {
		u32 middle = (low + high) / 2;
		const struct pair_due *d = &p->sorted[middle];

		if (d->due > due || (d->due == due && d->index > index))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void model_add(struct pair *p, u32 index, s64 expires)
{
	s64 due = max(expires, p->wheel.clk) - p->shift;
	u32 place = sorted_place(p, due, index);

	REQUIRE(p->timers[index].state == PAIR_FREE);
	p->timers[index].state = PAIR_PENDING;
	p->timers[index].due = due;
	memmove(&p->sorted[place + 1], &p->sorted[place],
		(p->nr_pending - place) * sizeof(p->sorted[0]));
	p->sorted[place] = (struct pair_due){ .due = due, .index = index };
	p->nr_pending++;
	tw_node(&p->table, index)->deadline = due;
}

static void model_add_ready(struct pair *p, u32 index, s64 stamp)
{
	REQUIRE(p->timers[index].state == PAIR_FREE);
	p->timers[index].state = PAIR_READY;
	p->timers[index].stamp = stamp;
	p->timers[index].nr = ++p->last;
	p->nr_ready++;
}

static void model_del(struct pair *p, u32 index)
{
	struct pair_timer *timer = &p->timers[index];
	u32 place;

	REQUIRE(timer->state != PAIR_FREE);
	if (timer->state == PAIR_READY) {
		p->nr_ready--;
	} else {
		place = sorted_place(p, timer->due, index);
		p->nr_pending--;
		memmove(&p->sorted[place], &p->sorted[place + 1],
			(p->nr_pending - place) * sizeof(p->sorted[0]));
	}
	timer->state = PAIR_FREE;
}

/**
 * pair_first() - the tick at which the first timer expires, says the model
 * @p: the pair
 *
 * Return: that tick, or TW_NEVER.
 */
s64 pair_first(const struct pair *p)
{
	if (!p->nr_pending)
		return TW_NEVER;
	return tick_of(p, p->sorted[p->nr_pending - 1].due);
}

/* What can be compared at a glance, after every operation */
static void agree(const struct pair *p)
{
	const struct tw_wheel *wheel = &p->wheel;
	u32 first = tw_wheel_first(wheel);

	REQUIRE_EQ(wheel->pending, p->nr_pending);
	REQUIRE_EQ(wheel->ready.count, p->nr_ready);
	REQUIRE_EQ(p->table.used, p->nr_pending + p->nr_ready);
	REQUIRE(wheel->clk <= pair_now(p) + 1);
	REQUIRE(wheel->next <= pair_first(p));
	REQUIRE(tw_wheel_next(wheel) <= pair_first(p));
	if (p->nr_pending) {
		REQUIRE(first < PAIR_MOST);
		REQUIRE(p->timers[first].state == PAIR_PENDING);
	} else {
		REQUIRE_EQ(first, TW_NIL);
		REQUIRE_EQ(tw_wheel_next(wheel), TW_NEVER);
		REQUIRE_EQ(wheel->levels, 0);
	}
}

static void agree_on(const struct pair *p, u32 index)
{
	REQUIRE_EQ(tw_is_ready(&p->wheel, node_of(p, index)),
		   p->timers[index].state == PAIR_READY);
	agree(p);
}

static u32 alloc(struct pair *p)
{
	u32 index = tw_table_alloc(&p->table);

	REQUIRE(index < PAIR_MOST);
	p->timers[index].id = tw_id(node_of(p, index), index);
	REQUIRE_EQ(tw_table_find(&p->table, p->timers[index].id), index);
	return index;
}

/* A timer that is on no list has ended. */
static void end(struct pair *p, u32 index)
{
	tw_table_free(&p->table, index);
	REQUIRE_EQ(tw_table_find(&p->table, p->timers[index].id), TW_NIL);
	free_spare(p);
	agree(p);
}

/**
 * pair_add() - arm a new timer
 * @p: the pair, with a free node
 * @expires: tick at which it expires
 *
 * Return: its index.
 */
u32 pair_add(struct pair *p, s64 expires)
{
	u32 index = alloc(p);

	trace(p, "add", index, expires);
	model_add(p, index, expires);
	tw_wheel_add(&p->wheel, index, expires);
	agree_on(p, index);
	return index;
}

/**
 * pair_add_ready() - arm a new timer that is ready at once
 * @p: the pair, with a free node
 *
 * Return: its index.
 */
u32 pair_add_ready(struct pair *p)
{
	u32 index = alloc(p);

	trace(p, "add ready", index, pair_now(p));
	model_add_ready(p, index, ++p->ns);
	tw_wheel_add_ready(&p->wheel, index, p->ns);
	agree_on(p, index);
	return index;
}

/**
 * pair_mod() - let a timer expire at another time
 * @p: the pair
 * @index: the timer, pending or ready
 * @expires: tick at which it expires
 */
void pair_mod(struct pair *p, u32 index, s64 expires)
{
	trace(p, "mod", index, expires);
	model_del(p, index);
	model_add(p, index, expires);
	tw_wheel_mod(&p->wheel, index, expires);
	agree_on(p, index);
}

/**
 * pair_cancel() - end a timer
 * @p: the pair
 * @index: the timer, pending or ready
 */
void pair_cancel(struct pair *p, u32 index)
{
	bool pending = p->timers[index].state == PAIR_PENDING;

	trace(p, pending ? "cancel" : "cancel ready", index, pair_now(p));
	model_del(p, index);
	tw_wheel_del(&p->wheel, index);
	if (pending && !p->nr_pending)
		REQUIRE_EQ(p->wheel.next, TW_NEVER);
	end(p, index);
}

/* Read the event of the first ready timer, as kmod/take.c does. */
static u32 take(struct pair *p)
{
	u32 index = p->wheel.ready.first;
	s64 stamp = p->wheel.stamp;

	REQUIRE(index < PAIR_MOST);
	REQUIRE(p->timers[index].state == PAIR_READY);
	if (tw_is_stamp(node_of(p, index)->expires))
		stamp = tw_stamp_ns(node_of(p, index)->expires);
	REQUIRE_EQ(stamp, p->timers[index].stamp);
	model_del(p, index);
	tw_wheel_pop_ready(&p->wheel);
	return index;
}

/**
 * pair_read() - read the event of the first ready timer, which ends
 * @p: the pair, with a ready timer
 */
void pair_read(struct pair *p)
{
	trace(p, "read", p->wheel.ready.first, pair_now(p));
	end(p, take(p));
}

/**
 * pair_read_periodic() - read the event of the first ready timer, which goes on
 * @p: the pair, with a ready timer
 * @expires: tick at which it expires again
 */
void pair_read_periodic(struct pair *p, s64 expires)
{
	u32 index;

	trace(p, "read periodic", p->wheel.ready.first, expires);
	index = take(p);
	model_add(p, index, expires);
	tw_wheel_add(&p->wheel, index, expires);
	agree_on(p, index);
}

/**
 * pair_drain() - take out whichever pending timer the wheel gives
 * @p: the pair, with a pending timer
 */
void pair_drain(struct pair *p)
{
	u32 index = tw_wheel_first(&p->wheel);

	trace(p, "drain", index, pair_now(p));
	REQUIRE(p->timers[index].state == PAIR_PENDING);
	model_del(p, index);
	tw_wheel_del(&p->wheel, index);
	end(p, index);
}

/**
 * pair_advance() - let time pass, or the clock be set forward
 * @p: the pair
 * @now: the tick that it becomes
 */
void pair_advance(struct pair *p, s64 now)
{
	trace(p, "advance", TW_NIL, now);
	p->host_now += now - pair_now(p);
	agree(p);
}

/**
 * pair_set_back() - set the clock back, as kmod/context.c has it in tw_now()
 * @p: the pair, which refreshes
 * @ticks: by how much, not to before 0
 */
void pair_set_back(struct pair *p, s64 ticks)
{
	trace(p, "set back", TW_NIL, pair_now(p) - ticks);
	p->host_now -= ticks;
	if (p->wheel.clk - 1 > pair_now(p))
		p->shift += p->wheel.clk - 1 - pair_now(p);
	agree(p);
}

/**
 * pair_forward() - what comes before operations: tw_wheel_forward()
 * @p: the pair
 */
void pair_forward(struct pair *p)
{
	trace(p, "forward", TW_NIL, pair_now(p));
	tw_wheel_forward(&p->wheel, pair_now(p));
	agree(p);
}

/* Those that a step put at the end of the ready list, after @last */
static void take_expired(struct pair *p, const struct tw_step *step, u32 last)
{
	u32 index = last == TW_NIL ? p->wheel.ready.first :
				     node_of(p, last)->next;
	u32 n;

	REQUIRE(!step->expired || step->tick <= step->now);
	for (n = 0; n < step->expired; n++) {
		REQUIRE(index < PAIR_MOST);
		REQUIRE(p->timers[index].state == PAIR_PENDING);
		REQUIRE_EQ(tick_of(p, p->timers[index].due), step->tick);
		REQUIRE_EQ(pair_first(p), step->tick);
		REQUIRE(tw_is_ready(&p->wheel, node_of(p, index)));
		model_del(p, index);
		model_add_ready(p, index, step->stamp);
		index = node_of(p, index)->next;
	}
	REQUIRE_EQ(index, TW_NIL);
}

static const struct tw_list *slot_at(const struct pair *p, unsigned int level,
				     s64 position)
{
	return &p->slots[level * TW_LEVEL_SLOTS + position % TW_LEVEL_SLOTS];
}

/* There is nothing more to do, the wheel says. */
static void agree_when_idle(const struct pair *p)
{
	const struct tw_wheel *wheel = &p->wheel;
	unsigned int level;

	REQUIRE_EQ(wheel->clk, pair_now(p) + 1);
	REQUIRE(pair_first(p) > pair_now(p));
	REQUIRE(wheel->next > pair_now(p));
	REQUIRE_EQ(wheel->next, tw_wheel_next(wheel));
	/* All that begins within the present slot was brought down in time. */
	for (level = 1; level < TW_LEVELS; level++) {
		s64 position = wheel->clk >> level * TW_TURN_BITS;

		REQUIRE(slot_at(p, level, position)->count <= TW_SMALL_SLOT);
		REQUIRE(slot_at(p, level, position + 1)->count <=
			TW_SMALL_SLOT);
	}
}

/**
 * pair_step() - one step of the wheel
 * @p: the pair
 * @budget: its budget
 *
 * Return: true when there may be more to do.
 */
bool pair_step(struct pair *p, u32 budget)
{
	struct tw_step step = {
		.now = pair_now(p),
		.stamp = ++p->ns,
		.budget = budget,
	};
	u32 last = p->wheel.ready.last;
	bool more;

	trace(p, "step with budget", TW_NIL, budget);
	more = tw_wheel_step(&p->wheel, &step);
	REQUIRE(step.budget <= budget);
	REQUIRE(step.moved <= budget - step.budget);
	/* A slot that is expired unseen costs nothing but itself. */
	if (step.moved || p->wheel.refresh)
		REQUIRE(step.moved + step.expired <= budget - step.budget);
	/* With room for a slot and a node, something gets done. */
	REQUIRE(!more || budget < 2 || step.moved || step.expired);
	REQUIRE(more || (!step.moved && !step.expired));
	take_expired(p, &step, last);
	agree(p);
	if (!more)
		agree_when_idle(p);
	return more;
}

static void check_links(const struct pair *p, const struct tw_list *list)
{
	u32 prev = TW_NIL, index = list->first, n;

	for (n = 0; n < list->count; n++) {
		REQUIRE(index < PAIR_MOST);
		REQUIRE_EQ(node_of(p, index)->prev, prev);
		prev = index;
		index = node_of(p, index)->next;
	}
	REQUIRE_EQ(index, TW_NIL);
	REQUIRE_EQ(list->last, prev);
}

static void check_node(const struct pair *p, u32 index, unsigned int level,
		       s64 position, bool moved)
{
	const struct tw_node *node = node_of(p, index);
	s64 width = 1LL << level * TW_TURN_BITS;
	s64 end = (position + 1) * width - 1;

	REQUIRE(p->timers[index].state == PAIR_PENDING);
	REQUIRE(!tw_is_ready(&p->wheel, node));
	REQUIRE_EQ(node->slot, level * TW_LEVEL_SLOTS +
			       position % TW_LEVEL_SLOTS);
	REQUIRE(node->expires >= position * width);
	REQUIRE(node->expires <= tick_of(p, p->timers[index].due));
	if (!p->wheel.refresh)
		REQUIRE_EQ(node->expires, tick_of(p, p->timers[index].due));
	/* It is looked at when it expires, or else before its slot's end. */
	REQUIRE(p->wheel.next <= min(node->expires, end));
	if (!level && !p->wheel.refresh && node->expires > end)
		REQUIRE(moved);
}

static bool list_is_empty(const struct tw_list *list)
{
	return list->first == TW_NIL && list->last == TW_NIL && !list->count;
}

static void check_slot(const struct pair *p, unsigned int level,
		       unsigned int nr)
{
	const struct tw_list *list = &p->slots[level * TW_LEVEL_SLOTS + nr];
	bool occupied = p->wheel.occupied[level][nr / 64] >> (nr % 64) & 1;
	bool moved = !level && p->wheel.moved[nr / 64] >> (nr % 64) & 1;
	s64 oldest = p->wheel.clk >> level * TW_TURN_BITS;
	s64 position = oldest + (nr + TW_LEVEL_SLOTS - oldest % TW_LEVEL_SLOTS) %
				TW_LEVEL_SLOTS;
	u32 index;

	if (!occupied) {
		REQUIRE(list_is_empty(list));
		REQUIRE(!moved);
		return;
	}
	REQUIRE(list->count);
	check_links(p, list);
	if (level && list->count > TW_SMALL_SLOT)
		REQUIRE(p->wheel.next <=
			(position - 1) << level * TW_TURN_BITS);
	for (index = list->first; index != TW_NIL;
	     index = node_of(p, index)->next)
		check_node(p, index, level, position, moved);
}

static void check_ready(const struct pair *p)
{
	s64 stamp = p->wheel.stamp;
	u64 nr = 0;
	u32 index;

	check_links(p, &p->wheel.ready);
	for (index = p->wheel.ready.first; index != TW_NIL;
	     index = node_of(p, index)->next) {
		const struct tw_node *node = node_of(p, index);

		REQUIRE(p->timers[index].state == PAIR_READY);
		REQUIRE(tw_is_ready(&p->wheel, node));
		REQUIRE(p->timers[index].nr > nr);
		nr = p->timers[index].nr;
		if (tw_is_stamp(node->expires))
			stamp = tw_stamp_ns(node->expires);
		REQUIRE_EQ(stamp, p->timers[index].stamp);
	}
}

/**
 * pair_check() - compare all that there is
 * @p: the pair
 */
void pair_check(const struct pair *p)
{
	unsigned int level, nr;
	u32 pending = 0;

	for (level = 0; level < TW_LEVELS; level++) {
		u32 count = 0;

		for (nr = 0; nr < TW_LEVEL_SLOTS; nr++) {
			check_slot(p, level, nr);
			count += p->slots[level * TW_LEVEL_SLOTS + nr].count;
		}
		REQUIRE_EQ(p->wheel.levels >> level & 1, !!count);
		pending += count;
	}
	REQUIRE_EQ(pending, p->nr_pending);
	check_ready(p);
}
