// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel and a reference model side by side. See pair.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uapi/linux/twheel.h>

#include "check.h"
#include "host.h"
#include "pair.h"

#define TRACE 256
#define TRACE_SHOWN 40

/**
 * struct trace - an operation that was done
 * @name: which one
 * @tick: the wheel's tick that it was
 * @index: the timer, or PAIR_NONE
 * @what: deadline, budget or time, whichever it has
 * @want: what was asked for, or nothing
 */
struct trace {
	const char *name;
	s64 tick;
	u32 index;
	s64 what;
	struct pair_want want;
};

static struct trace traces[TRACE];
static const struct pair *traced;

static void print_trace(void)
{
	const struct tw_wheel *wheel = &traced->wheel;
	u64 nr = traced->nr_traced;
	u64 i = nr > TRACE_SHOWN ? nr - TRACE_SHOWN : 0;

	printf("# tick %u ns%s, %llu operations, of which the last:\n",
	       traced->tick, wheel->set_back ? ", set back" : "", nr);
	for (; i < nr; i++) {
		const struct trace *t = &traces[i % TRACE];

		printf("#   at %lld: %s", t->tick, t->name);
		if (t->index != PAIR_NONE)
			printf(" timer %u", t->index);
		printf(" %lld", t->what);
		if (t->want.slack_shift)
			printf(" slack 2^%u", t->want.slack_shift);
		printf("%s\n", t->want.periodic ? " periodic" : "");
	}
	printf("# wheel: tick %lld clk %lld next %lld levels %#x pending %u ready %u\n",
	       pair_tick(traced), wheel->clk, wheel->next, wheel->levels,
	       wheel->pending, wheel->ready.count);
	printf("# model: now %lld ns shift %lld first %lld pending %u ready %u\n",
	       traced->now, traced->shift, pair_first(traced),
	       traced->nr_pending, traced->nr_ready);
}

static struct trace *trace(struct pair *p, const char *name, u32 index, s64 what)
{
	struct trace *t = &traces[p->nr_traced++ % TRACE];

	*t = (struct trace){
		.name = name,
		.tick = pair_tick(p),
		.index = index,
		.what = what,
	};
	return t;
}

static void trace_want(struct pair *p, const char *name, u32 index,
		       const struct pair_want *want)
{
	trace(p, name, index, want->deadline)->want = *want;
}

/* Here, indices begin with 0. */
#define FIRST_INDEX ((TW_FIRST_CHUNK << TW_CHUNK_SHIFT) + 1)

static struct tw_node *node_of(const struct pair *p, u32 index)
{
	index += FIRST_INDEX;
	return &p->table.dir[index >> TW_CHUNK_SHIFT].chunk->nodes[index & TW_CHUNK_MASK];
}

/**
 * pair_index() - which timer is it?
 * @node: its node
 *
 * Return: its index.
 */
u32 pair_index(const struct tw_node *node)
{
	u32 index = (u32)tw_id(node) - FIRST_INDEX;

	REQUIRE(index < PAIR_MOST);
	return index;
}

/**
 * pair_first_ready() - the timer that is read next
 * @p: the pair
 *
 * Return: its index, or PAIR_NONE.
 */
u32 pair_first_ready(struct pair *p)
{
	const struct tw_node *node = tw_first_ready(&p->wheel);

	return node ? pair_index(node) : PAIR_NONE;
}

/* The node after it in a list, or NULL */
static const struct tw_node *after(const struct tw_slot *slot,
				   const struct tw_node *node)
{
	struct list_head *next = node ? node->entry.next : slot->nodes.next;

	return next == &slot->nodes ? NULL :
	       list_entry(next, struct tw_node, entry);
}

static s64 tick_of(const struct pair *p, s64 due)
{
	return min(due + p->shift, TW_TICK_MAX);
}

/* When a timer is to expire, in ticks of the host: not before its deadline */
static s64 due_of(const struct pair *p, const struct pair_want *want)
{
	s64 coarse = 1LL << want->slack_shift;
	s64 tick = want->deadline / p->tick + !!(want->deadline % p->tick);

	tick = tick / coarse * coarse + (tick % coarse ? coarse : 0);
	return max(tick, p->wheel.clk - p->shift);
}

/**
 * pair_init() - make an empty wheel and its model
 * @p: the pair
 * @tick: length of a tick in ns
 * @now: the time that it is, in ns
 * @settable: can the clock be set back?
 * @shift: tick of the wheel less tick of the host
 */
void pair_init(struct pair *p, u32 tick, s64 now, bool settable, s64 shift)
{
	struct tw_clock clock;

	memset(p, 0, sizeof(*p));
	p->tick = tick;
	p->now = now;
	p->shift = shift;
	tw_clock_init(&clock);
	tw_clock_set(&clock, settable ? TWHEEL_CLOCK_REALTIME :
					TWHEEL_CLOCK_MONOTONIC, tick);
	clock.shift = shift;
	/* Whatever was in the memory before */
	memset(&p->table, 0xa5, sizeof(p->table));
	memset(&p->wheel, 0xa5, sizeof(p->wheel));
	memset(p->slots, 0xa5, sizeof(p->slots));
	tw_table_init(&p->table);
	tw_wheel_init(&p->wheel, &clock, pair_tick(p));
	p->settable = settable;
	tw_wheel_set_slots(&p->wheel, p->slots);
	REQUIRE_EQ(p->wheel.clk, pair_tick(p) + 1);
	traced = p;
	host_print_trace = print_trace;
}

static void free_spare(struct pair *p)
{
	struct tw_chunk *spare = tw_table_take_spare(&p->table);

	while (spare) {
		struct tw_chunk *next = spare->next;

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
	free_spare(p);
	free(tw_table_clear(&p->table));
	free_spare(p);
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
	return p->table.unused != TW_NO_CHUNK ||
	       p->table.nr_chunks < TW_FIRST_CHUNK + PAIR_MOST_CHUNKS;
}

/**
 * pair_add_chunk() - make room for more timers
 * @p: the pair, which has room
 * @cap: for how many
 */
void pair_add_chunk(struct pair *p, unsigned int cap)
{
	u32 more = p->table.max_chunks + 1;
	void *chunk;

	REQUIRE(!posix_memalign(&chunk, TW_CHUNK_SIZE, (cap + 1) * sizeof(struct tw_node)));
	if (tw_table_full(&p->table))
		free(tw_table_grow(&p->table, malloc(more *
						     sizeof(struct tw_entry)),
				   more));
	tw_chunk_format(chunk, cap);
	tw_table_add(&p->table, chunk);
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

static void model_add(struct pair *p, u32 index, const struct pair_want *want)
{
	s64 due = due_of(p, want);
	u32 place = sorted_place(p, due, index);

	REQUIRE(p->timers[index].state == PAIR_FREE);
	p->timers[index].state = PAIR_PENDING;
	p->timers[index].want = *want;
	p->timers[index].due = due;
	memmove(&p->sorted[place + 1], &p->sorted[place],
		(p->nr_pending - place) * sizeof(p->sorted[0]));
	p->sorted[place] = (struct pair_due){ .due = due, .index = index };
	p->nr_pending++;
}

static void model_add_ready(struct pair *p, u32 index, s64 time)
{
	struct pair_timer *timer = &p->timers[index];

	REQUIRE(timer->state == PAIR_FREE);
	/* Never early */
	REQUIRE(time >= timer->want.deadline);
	timer->state = PAIR_READY;
	timer->nr = ++p->last;
	p->nr_ready++;
}

/* Before the wheel does it */
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
	const struct tw_node *first = tw_wheel_first(wheel);

	REQUIRE_EQ(wheel->pending, p->nr_pending);
	REQUIRE_EQ(wheel->ready.count, p->nr_ready);
	REQUIRE(wheel->clk <= pair_tick(p) + 1);
	REQUIRE(wheel->inspect <= wheel->clk + TW_LEVEL_SLOTS);
	REQUIRE_EQ(wheel->clock.shift, p->shift);
	REQUIRE(wheel->next <= pair_first(p));
	REQUIRE(tw_wheel_next(wheel) <= pair_first(p));
	if (!wheel->set_back)
		REQUIRE_EQ(wheel->done, pair_done(p));
	else
		REQUIRE(wheel->done >= pair_done(p));
	if (p->nr_pending) {
		REQUIRE(first);
		REQUIRE(p->timers[pair_index(first)].state == PAIR_PENDING);
	} else {
		REQUIRE(!first);
		REQUIRE_EQ(tw_wheel_next(wheel), TW_NEVER);
		REQUIRE_EQ(wheel->levels, 0);
	}
}

/* What of a node has to stay as it is, wherever it is */
static void check_fields(const struct pair *p, const struct tw_node *node)
{
	u32 index = pair_index(node);
	const struct pair_timer *timer = &p->timers[index];

	REQUIRE(node == node_of(p, index));
	REQUIRE_EQ(tw_id(node), timer->id);
	REQUIRE_EQ(node->user_data, ~timer->id);
	REQUIRE_EQ(node->deadline, timer->want.deadline);
	REQUIRE_EQ((u32)node->slack_shift, timer->want.slack_shift);
	REQUIRE_EQ(!!(node->flags & TW_NODE_PERIODIC), timer->want.periodic);
	REQUIRE(timer->state != PAIR_FREE);
	REQUIRE_EQ(tw_is_ready(&p->wheel, node), timer->state == PAIR_READY);
}

static void agree_on(const struct pair *p, u32 index)
{
	check_fields(p, node_of(p, index));
	agree(p);
}

static u32 alloc(struct pair *p)
{
	struct tw_node *node, *found;
	u64 id;
	u32 index;

	node = tw_table_alloc(&p->table, &id);
	index = pair_index(node);
	REQUIRE(node == node_of(p, index));
	REQUIRE_EQ(tw_id(node), id);
	REQUIRE(tw_table_find(&p->table, id, &found) && found == node);
	p->timers[index].id = id;
	/* Whatever it was before, as in kmod/ops.c */
	node->user_data = ~id;
	node->flags = ~0;
	node->slack_shift = 0x7f;
	node->slot = ~0;
	return index;
}

/* A timer that is on no list has ended. */
static void end(struct pair *p, u32 index)
{
	struct tw_node *found;

	tw_table_free(&p->table, node_of(p, index));
	REQUIRE(!tw_table_find(&p->table, p->timers[index].id, &found));
	free_spare(p);
	agree(p);
}

/* Set the fields that the wheel leaves to its caller. */
static void set_fields(struct tw_node *node, const struct pair_want *want)
{
	node->deadline = want->deadline;
	node->slack_shift = want->slack_shift;
	node->flags &= ~TW_NODE_PERIODIC;
	if (want->periodic)
		node->flags |= TW_NODE_PERIODIC;
}

/* As kmod/ops.c does it: what was ready when the clock was set back may be in the way. */
static void settle(struct pair *p)
{
	if (!p->wheel.set_back)
		return;
	if (tw_wheel_settle(&p->wheel)) {
		REQUIRE(!p->wheel.set_back);
		REQUIRE_EQ(p->wheel.done, pair_done(p));
	} else {
		REQUIRE(p->wheel.ready.count);
	}
}

/**
 * pair_add() - arm a new timer
 * @p: the pair, with a free node
 * @want: when it expires; in a wheel that is settable, after the wheel's time
 *
 * Return: its index.
 */
u32 pair_add(struct pair *p, const struct pair_want *want)
{
	u32 index = alloc(p);
	struct tw_node *node = node_of(p, index);

	trace_want(p, "add", index, want);
	model_add(p, index, want);
	settle(p);
	set_fields(node, want);
	tw_wheel_add(&p->wheel, node);
	agree_on(p, index);
	return index;
}

/**
 * pair_add_ready() - arm a new timer that is ready at once
 * @p: the pair, with a free node
 * @want: its deadline is not after the present
 *
 * Return: its index.
 */
u32 pair_add_ready(struct pair *p, const struct pair_want *want)
{
	u32 index = alloc(p);

	trace_want(p, "add ready", index, want);
	p->timers[index].want = *want;
	model_add_ready(p, index, p->now);
	set_fields(node_of(p, index), want);
	tw_wheel_add_ready(&p->wheel, node_of(p, index));
	agree_on(p, index);
	return index;
}

/**
 * pair_mod() - let a timer expire at another time
 * @p: the pair
 * @index: the timer, pending or ready
 * @want: when it expires, after the wheel's time
 */
void pair_mod(struct pair *p, u32 index, const struct pair_want *want)
{
	struct tw_node *node = node_of(p, index);

	REQUIRE(want->deadline > pair_done(p));
	trace_want(p, "mod", index, want);
	model_del(p, index);
	model_add(p, index, want);
	settle(p);
	node->flags &= ~TW_NODE_PERIODIC;
	if (want->periodic)
		node->flags |= TW_NODE_PERIODIC;
	tw_wheel_mod(&p->wheel, node, want->deadline, want->slack_shift);
	agree_on(p, index);
}

/**
 * pair_expire() - let a timer expire at once
 * @p: the pair
 * @index: the timer, pending or ready
 * @deadline: its new deadline, not after the present
 */
void pair_expire(struct pair *p, u32 index, s64 deadline)
{
	struct tw_node *node = node_of(p, index);

	trace(p, "expire", index, deadline);
	model_del(p, index);
	tw_wheel_del(&p->wheel, node);
	p->timers[index].want.deadline = deadline;
	model_add_ready(p, index, p->now);
	node->deadline = deadline;
	tw_wheel_add_ready(&p->wheel, node);
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

	trace(p, pending ? "cancel" : "cancel ready", index, p->now);
	check_fields(p, node_of(p, index));
	model_del(p, index);
	settle(p);
	tw_wheel_del(&p->wheel, node_of(p, index));
	if (pending && !p->nr_pending)
		REQUIRE_EQ(p->wheel.next, TW_NEVER);
	end(p, index);
}

/* Read the event of the first ready timer, as kmod/take.c does. */
static u32 take(struct pair *p)
{
	struct tw_node *node = tw_first_ready(&p->wheel);
	u32 index = pair_index(node);
	const struct pair_timer *timer = &p->timers[index];

	REQUIRE(timer->state == PAIR_READY);
	check_fields(p, node);
	model_del(p, index);
	tw_wheel_pop_ready(&p->wheel, node);
	return index;
}

/**
 * pair_read() - read the event of the first ready timer, which ends
 * @p: the pair, with a ready timer
 */
void pair_read(struct pair *p)
{
	trace(p, "read", pair_first_ready(p), p->now);
	end(p, take(p));
}

/**
 * pair_read_periodic() - read the event of the first ready timer, which goes on
 * @p: the pair, with a ready timer
 * @deadline: when it expires again; in a wheel that is settable, after the
 *	wheel's time
 */
void pair_read_periodic(struct pair *p, s64 deadline)
{
	struct pair_want want;
	u32 index;

	trace(p, "read periodic", pair_first_ready(p), deadline);
	index = take(p);
	want = p->timers[index].want;
	want.deadline = deadline;
	model_add(p, index, &want);
	node_of(p, index)->deadline = deadline;
	tw_wheel_add(&p->wheel, node_of(p, index));
	agree_on(p, index);
}

static u32 drain(struct pair *p, const char *name)
{
	struct tw_node *node = tw_wheel_first(&p->wheel);
	u32 index = pair_index(node);

	trace(p, name, index, p->now);
	REQUIRE(p->timers[index].state == PAIR_PENDING);
	model_del(p, index);
	tw_wheel_del(&p->wheel, node);
	return index;
}

/**
 * pair_drain() - take out whichever pending timer the wheel gives
 * @p: the pair, with a pending timer
 */
void pair_drain(struct pair *p)
{
	end(p, drain(p, "drain"));
}

/**
 * pair_undrain() - the same, but put it back, as the program's buffer was bad
 * @p: the pair, with a pending timer
 */
void pair_undrain(struct pair *p)
{
	u32 index = drain(p, "undrain");
	struct pair_want want = p->timers[index].want;

	model_add(p, index, &want);
	tw_wheel_add(&p->wheel, node_of(p, index));
	agree_on(p, index);
}

/**
 * pair_advance() - let time pass, or the clock be set forward
 * @p: the pair
 * @now: the time that it becomes, in ns
 */
void pair_advance(struct pair *p, s64 now)
{
	trace(p, "advance", PAIR_NONE, now);
	REQUIRE(now >= p->now);
	p->now = now;
	agree(p);
}

/**
 * pair_set_back() - set the clock back, as kmod/context.c does it in tw_now()
 * @p: the pair, which is settable
 * @now: the time that it becomes, in ns
 */
void pair_set_back(struct pair *p, s64 now)
{
	trace(p, "set back", PAIR_NONE, now);
	p->now = now;
	if (pair_tick(p) < p->wheel.clk - 1) {
		p->shift += tw_wheel_set_back(&p->wheel, pair_tick(p));
		/* However often that is done */
		REQUIRE(p->shift >= 0 && p->shift < TW_SPAN);
		REQUIRE_EQ(p->wheel.clk, pair_tick(p) + 1);
	}
	agree(p);
}

/**
 * pair_forward() - what comes before operations: tw_wheel_forward()
 * @p: the pair
 */
void pair_forward(struct pair *p)
{
	s64 now = pair_tick(p);
	bool idle = p->wheel.next > now;

	trace(p, "forward", PAIR_NONE, p->now);
	tw_wheel_forward(&p->wheel, now);
	if (idle)
		REQUIRE_EQ(p->wheel.clk, now + 1);
	agree(p);
}

/* Those that a step put at the end of the ready list, after @last */
static void take_expired(struct pair *p, const struct tw_step *step,
			 const struct tw_node *last, unsigned int *seen)
{
	const struct tw_node *node = after(&p->wheel.ready, last);
	u32 n;

	*seen = 0;
	REQUIRE(!step->expired || step->tick <= step->now);
	for (n = 0; n < step->expired; n++) {
		struct pair_timer *timer;
		u32 index;

		REQUIRE(node);
		index = pair_index(node);
		timer = &p->timers[index];
		REQUIRE(timer->state == PAIR_PENDING);
		REQUIRE_EQ(tick_of(p, timer->due), step->tick);
		REQUIRE_EQ(pair_first(p), step->tick);
		model_del(p, index);
		model_add_ready(p, index, step->stamp);
		check_fields(p, node);
		*seen += !!(node->flags & TW_NODE_READY);
		/* That it is ready can't be said by its deadline. */
		if (timer->want.slack_shift || step->tick < p->wheel.inspect)
			REQUIRE(node->flags & TW_NODE_READY);
		node = after(&p->wheel.ready, node);
	}
	REQUIRE(!node);
}

static const struct tw_slot *slot_at(const struct pair *p, unsigned int level,
				     s64 position)
{
	return &p->slots[level * TW_LEVEL_SLOTS + position % TW_LEVEL_SLOTS];
}

/* There is nothing more to do, the wheel says. */
static void agree_when_idle(const struct pair *p)
{
	const struct tw_wheel *wheel = &p->wheel;
	unsigned int level;

	REQUIRE_EQ(wheel->clk, pair_tick(p) + 1);
	REQUIRE(pair_first(p) > pair_tick(p));
	REQUIRE(wheel->next > pair_tick(p));
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
		.now = pair_tick(p),
		.stamp = p->now,
		.budget = budget,
	};
	struct tw_slot *ready = &p->wheel.ready;
	const struct tw_node *last = NULL;
	unsigned int seen;
	bool more;

	if (p->nr_ready)
		last = list_entry(ready->nodes.prev, struct tw_node, entry);
	trace(p, "step with budget", PAIR_NONE, budget);
	more = tw_wheel_step(&p->wheel, &step);
	REQUIRE(step.budget <= budget);
	REQUIRE(step.moved <= budget - step.budget);
	take_expired(p, &step, last, &seen);
	/* A slot that is expired unseen costs nothing but itself. */
	if (step.moved || seen)
		REQUIRE(step.moved + step.expired <= budget - step.budget);
	if (seen)
		REQUIRE_EQ(seen, step.expired);
	/* With room for a slot and a node, something gets done. */
	REQUIRE(!more || budget < 2 || step.moved || step.expired);
	REQUIRE(more || (!step.moved && !step.expired));
	agree(p);
	if (!more)
		agree_when_idle(p);
	return more;
}

static void check_links(const struct tw_slot *slot)
{
	const struct list_head *prev = &slot->nodes;
	u32 n;

	for (n = 0; n < slot->count; n++) {
		REQUIRE(prev->next != &slot->nodes);
		REQUIRE(prev->next->prev == prev);
		prev = prev->next;
	}
	REQUIRE(prev->next == &slot->nodes);
	REQUIRE(slot->nodes.prev == prev);
}

static void check_node(const struct pair *p, const struct tw_node *node,
		       unsigned int level, s64 position, bool inspect)
{
	s64 width = 1LL << level * TW_TURN_BITS;
	s64 end = (position + 1) * width - 1;
	const struct pair_timer *timer;
	s64 tick;

	check_fields(p, node);
	timer = &p->timers[pair_index(node)];
	REQUIRE(timer->state == PAIR_PENDING);
	tick = tick_of(p, timer->due);
	REQUIRE(tw_slot_at(&p->wheel, node->slot) ==
		slot_at(p, level, position));
	REQUIRE(tick >= position * width);
	/* It is looked at when it expires, or else before its slot's end. */
	REQUIRE(p->wheel.next <= min(tick, end));
	if (!level && (tick > end || timer->want.slack_shift))
		REQUIRE(inspect || position < p->wheel.inspect);
}

static bool slot_is_empty(const struct tw_slot *slot)
{
	return slot->nodes.next == &slot->nodes &&
	       slot->nodes.prev == &slot->nodes && !slot->count &&
	       !slot->inspect;
}

static void check_slot(const struct pair *p, unsigned int level,
		       unsigned int nr)
{
	const struct tw_slot *slot = &p->slots[level * TW_LEVEL_SLOTS + nr];
	bool occupied = p->wheel.occupied[level][nr / 64] >> (nr % 64) & 1;
	s64 oldest = p->wheel.clk >> level * TW_TURN_BITS;
	s64 position = oldest + (nr + TW_LEVEL_SLOTS - oldest % TW_LEVEL_SLOTS) %
				TW_LEVEL_SLOTS;
	const struct tw_node *node;

	if (!occupied) {
		REQUIRE(slot_is_empty(slot));
		return;
	}
	REQUIRE(slot->count);
	check_links(slot);
	if (level && slot->count > TW_SMALL_SLOT)
		REQUIRE(p->wheel.next <=
			(position - 1) << level * TW_TURN_BITS);
	list_for_each_entry(node, &slot->nodes, entry)
		check_node(p, node, level, position, slot->inspect);
}

static void check_ready(const struct pair *p)
{
	const struct tw_node *node;
	u64 nr = 0;

	check_links(&p->wheel.ready);
	list_for_each_entry(node, &p->wheel.ready.nodes, entry) {
		const struct pair_timer *timer = &p->timers[pair_index(node)];

		REQUIRE(timer->state == PAIR_READY);
		check_fields(p, node);
		REQUIRE(timer->nr > nr);
		nr = timer->nr;
	}
}

/**
 * pair_check_invariants() - look at what must be so, if it is time to do it
 * @p: the pair
 */
void pair_check_invariants(const struct pair *p)
{
	static u32 saved;

	if (!tw_check_due(&saved, tw_check_things(&p->table, &p->wheel)))
		return;
	tw_check_table(&p->table);
	tw_check_wheel(&p->wheel);
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
