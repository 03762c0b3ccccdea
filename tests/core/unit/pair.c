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
		printf("%s%s\n", t->want.periodic ? " periodic" : "",
		       t->want.rare ? " rare" : "");
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
#define FIRST_INDEX (TW_FIRST_CHUNK << TW_CHUNK_SHIFT)

static struct tw_node *node_of(const struct pair *p, u32 index)
{
	return tw_node_at(&p->table, index + FIRST_INDEX);
}

/**
 * pair_index() - which timer is it?
 * @index: its index in the table
 *
 * Return: its index here.
 */
u32 pair_index(u32 index)
{
	index -= FIRST_INDEX;
	ASSERT_TRUE(index < PAIR_MOST);
	return index;
}

/**
 * pair_first_ready() - the timer that is read next
 * @p: the pair
 *
 * Return: its index, or PAIR_NONE.
 */
u32 pair_first_ready(const struct pair *p)
{
	struct tw_reader reader;
	u32 index;

	tw_reader_init(&p->wheel, &reader);
	return tw_reader_next(&p->wheel, &reader, &index) ? pair_index(index) :
							    PAIR_NONE;
}

/**
 * pair_first_pending() - a timer that is pending, as the wheel says
 * @p: the pair
 *
 * Return: its index, or PAIR_NONE.
 */
u32 pair_first_pending(const struct pair *p)
{
	u32 index;

	return tw_wheel_first(&p->wheel, &index) ? pair_index(index) : PAIR_NONE;
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
 * @small: it begins with few slots and nodes, and pair_grow() gives it all slots
 */
void pair_init(struct pair *p, u32 tick, s64 now, bool settable, s64 shift, bool small)
{
	struct tw_clock clock;

	memset(p, 0, sizeof(*p));
	p->tick = tick;
	p->now = now;
	p->shift = shift;
	tw_clock_init(&clock);
	tw_clock_set(&clock, settable ? TWHEEL_CLOCK_REALTIME :
					TWHEEL_CLOCK_MONOTONIC, tick);
	clock.tick_offset = shift;
	/* Whatever was in the memory before */
	memset(&p->table, 0xa5, sizeof(p->table));
	memset(&p->wheel, 0xa5, sizeof(p->wheel));
	tw_table_init(&p->table);
	tw_wheel_init(&p->wheel, &p->table, &clock, pair_tick(p), now);
	p->settable = settable;
	p->ordered = true;
	p->small = small;
	tw_wheel_set_slots(&p->wheel, small ? p->few : p->all, small);
	ASSERT_EQ(p->wheel.clk, pair_tick(p) + 1);
	traced = p;
	host_print_trace = print_trace;
}

static void free_chunks(struct tw_chunk *spare)
{
	while (spare) {
		struct tw_chunk *next = spare->next;

		free(spare->nodes);
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
	struct tw_chunk *chunk;

	while ((chunk = tw_table_take_chunk(&p->table)))
		free_chunks(chunk);
	free(tw_table_end(&p->table));
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
	return tw_table_short(&p->table) || p->table.first_unused ||
	       p->table.nr_chunks < TW_FIRST_CHUNK + PAIR_MOST_CHUNKS;
}

/**
 * pair_add_chunk() - make room for more timers
 * @p: the pair, which has room
 */
void pair_add_chunk(struct pair *p)
{
	u32 more = p->table.max_chunks + 1;
	u32 bytes = tw_table_next_bytes(&p->table, p->small ? 1 : TW_CHUNK_NODES);

	if (tw_table_short(&p->table)) {
		free(tw_table_lengthen(&p->table, calloc(1, TW_CHUNK_BYTES)));
		return;
	}
	if (tw_table_full(&p->table))
		free(tw_table_grow(&p->table, malloc(TW_DIR_BYTES(more)), more));
	tw_table_add(&p->table, malloc(sizeof(struct tw_chunk)),
		     calloc(1, bytes), bytes);
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

	ASSERT_TRUE(p->timers[index].state == PAIR_FREE);
	p->timers[index].state = PAIR_PENDING;
	p->timers[index].want = *want;
	p->timers[index].due = due;
	memmove(&p->sorted[place + 1], &p->sorted[place],
		(p->nr_pending - place) * sizeof(p->sorted[0]));
	p->sorted[place] = (struct pair_due){ .due = due, .index = index };
	p->nr_pending++;
}

/* The timer was made ready at @tick of the wheel, or at once, when there was no such tick. */
static void model_add_ready(struct pair *p, u32 index, s64 tick)
{
	struct pair_timer *timer = &p->timers[index];
	s64 own = due_of(p, &timer->want) + p->shift;

	ASSERT_TRUE(timer->state == PAIR_FREE);
	/* Never early */
	ASSERT_TRUE(p->now >= timer->want.deadline);
	timer->state = PAIR_READY;
	timer->tick = tick;
	timer->in_order = tick != TW_NEVER && !timer->want.slack_shift &&
			  pair_ns(p, own) >= timer->want.deadline &&
			  pair_ns(p, tick) - timer->want.deadline < p->tick;
	p->nr_ready++;
}

static void model_unlink_ready(struct pair *p)
{
	if (--p->nr_ready)
		return;
	p->read = 0;
	p->ordered = true;
}

/* Before the wheel does it */
static void model_del(struct pair *p, u32 index)
{
	struct pair_timer *timer = &p->timers[index];
	u32 place;

	ASSERT_TRUE(timer->state != PAIR_FREE);
	if (timer->state == PAIR_READY) {
		model_unlink_ready(p);
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

	ASSERT_EQ(wheel->pending, p->nr_pending);
	ASSERT_EQ(wheel->ready.count, p->nr_ready);
	ASSERT_TRUE(wheel->clk <= pair_tick(p) + 1);
	ASSERT_TRUE(wheel->inspect <= wheel->clk + TW_LVL_SIZE);
	ASSERT_EQ(wheel->clock.tick_offset, p->shift);
	ASSERT_TRUE(wheel->next <= pair_first(p));
	ASSERT_TRUE(tw_wheel_next(wheel) <= pair_first(p));
	if (!wheel->set_back)
		ASSERT_EQ(wheel->done_ns, pair_done(p));
	else
		ASSERT_TRUE(wheel->done_ns >= pair_done(p));
	if (p->nr_pending) {
		ASSERT_TRUE(p->timers[pair_first_pending(p)].state == PAIR_PENDING);
	} else {
		ASSERT_EQ(pair_first_pending(p), PAIR_NONE);
		ASSERT_EQ(tw_wheel_next(wheel), TW_NEVER);
		ASSERT_EQ(wheel->levels, 0);
	}
}

/**
 * pair_grow() - give a small wheel all its slots
 * @p: the pair
 */
void pair_grow(struct pair *p)
{
	trace(p, "grow", PAIR_NONE, p->now);
	tw_wheel_set_slots(&p->wheel, p->all, false);
	/* What was there is not looked at any more. */
	memset(p->few, 0xa5, sizeof(p->few));
	ASSERT_TRUE(!tw_wheel_is_small(&p->wheel) && !p->wheel.far);
	agree(p);
}

/* What of a node has to stay as it is, wherever it is */
static void check_fields(const struct pair *p, u32 index)
{
	const struct tw_node *node = node_of(p, index);
	const struct pair_timer *timer = &p->timers[index];

	ASSERT_EQ(tw_id(node, index + FIRST_INDEX), timer->id);
	ASSERT_EQ(node->user_data, ~timer->id);
	ASSERT_EQ(node->deadline, timer->want.deadline);
	ASSERT_EQ(node->flags & TW_NODE_SLACK, timer->want.slack_shift);
	ASSERT_EQ(!!(node->flags & TW_NODE_PERIODIC), timer->want.periodic);
	ASSERT_TRUE(timer->state != PAIR_FREE);
	ASSERT_EQ(tw_is_ready(&p->wheel, node), timer->state == PAIR_READY);
}

static void agree_on(const struct pair *p, u32 index)
{
	check_fields(p, index);
	agree(p);
}

static u32 alloc(struct pair *p)
{
	struct tw_node *node, *found;
	u32 index, at;
	u64 id;

	node = tw_node_begin(&p->table, &at);
	id = tw_id(node, at);
	index = pair_index(at);
	ASSERT_TRUE(node == node_of(p, index));
	ASSERT_TRUE(tw_table_find(&p->table, id, &found, &at) && found == node);
	ASSERT_EQ(at, index + FIRST_INDEX);
	p->timers[index].id = id;
	/* Whatever it was before, as in kmod/ops.c */
	node->user_data = ~id;
	node->flags = ~0;
	node->slot = ~0;
	node->prev = ~0;
	node->next = ~0;
	return index;
}

/* A timer that is on no list has ended. */
static void end(struct pair *p, u32 index)
{
	struct tw_node *found;
	u32 at;

	tw_node_end(&p->table, node_of(p, index), index + FIRST_INDEX);
	ASSERT_TRUE(!tw_table_find(&p->table, p->timers[index].id, &found, &at));
	free_chunks(tw_table_detach_spare(&p->table));
	agree(p);
}

/* Set the fields that the wheel leaves to its caller. */
static void set_fields(struct tw_node *node, const struct pair_want *want)
{
	node->deadline = want->deadline;
	node->flags = want->slack_shift | (want->periodic ? TW_NODE_PERIODIC : 0);
}

/*
 * As kmod/ops.c does it before operations. What was ready when the clock was set back
 * may stand in the way, and nothing else.
 */
static void settle(struct pair *p, const struct pair_want *want)
{
	if (want->rare || !p->wheel.set_back)
		return;
	if (tw_wheel_settle(&p->wheel)) {
		ASSERT_TRUE(!p->wheel.set_back);
		ASSERT_EQ(p->wheel.done_ns, pair_done(p));
	} else {
		ASSERT_TRUE(p->wheel.ready.count);
	}
}

static void wheel_add(struct pair *p, u32 index)
{
	tw_wheel_add(&p->wheel, node_of(p, index), index + FIRST_INDEX);
}

static void wheel_add_ready(struct pair *p, u32 index)
{
	tw_wheel_add_ready(&p->wheel, node_of(p, index), index + FIRST_INDEX);
}

static void wheel_del(struct pair *p, u32 index)
{
	tw_wheel_del(&p->wheel, node_of(p, index), index + FIRST_INDEX);
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

	trace_want(p, "add", index, want);
	settle(p, want);
	model_add(p, index, want);
	set_fields(node_of(p, index), want);
	wheel_add(p, index);
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
	model_add_ready(p, index, TW_NEVER);
	set_fields(node_of(p, index), want);
	wheel_add_ready(p, index);
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

	ASSERT_TRUE(want->deadline > pair_done(p));
	trace_want(p, "mod", index, want);
	settle(p, want);
	model_del(p, index);
	model_add(p, index, want);
	/* As kmod/ops.c does it */
	node->flags &= ~TW_NODE_PERIODIC;
	if (want->periodic)
		node->flags |= TW_NODE_PERIODIC;
	tw_wheel_mod(&p->wheel, node, index + FIRST_INDEX, want->deadline,
		     want->slack_shift);
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
	trace(p, "expire", index, deadline);
	model_del(p, index);
	wheel_del(p, index);
	p->timers[index].want.deadline = deadline;
	model_add_ready(p, index, TW_NEVER);
	node_of(p, index)->deadline = deadline;
	wheel_add_ready(p, index);
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
	check_fields(p, index);
	model_del(p, index);
	wheel_del(p, index);
	if (pending && !p->nr_pending)
		ASSERT_EQ(p->wheel.next, TW_NEVER);
	end(p, index);
}

/* An event is not read before those of earlier ticks. */
static void check_order(struct pair *p, const struct pair_timer *timer)
{
	if (!timer->in_order || !p->ordered)
		return;
	ASSERT_TRUE(timer->tick >= p->read);
	p->read = timer->tick;
}

/* Read the event of the first ready timer, as kmod/read.c does. */
static u32 take(struct pair *p)
{
	struct tw_reader reader;
	u32 index;

	tw_reader_init(&p->wheel, &reader);
	ASSERT_TRUE(tw_reader_next(&p->wheel, &reader, &index));
	index = pair_index(index);
	ASSERT_TRUE(p->timers[index].state == PAIR_READY);
	check_fields(p, index);
	check_order(p, &p->timers[index]);
	model_del(p, index);
	tw_reader_cut(&p->wheel, &reader);
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
 * pair_read_several() - read events of ready timers, which end
 * @p: the pair
 * @most: how many events there is room for
 * @read: there the timers are put
 *
 * Return: how many were read.
 */
u32 pair_read_several(struct pair *p, u32 most, u32 *read)
{
	struct tw_reader reader;
	u32 n, i, index;

	trace(p, "read several", PAIR_NONE, most);
	tw_reader_init(&p->wheel, &reader);
	for (n = 0; n < most && tw_reader_next(&p->wheel, &reader, &index); n++) {
		read[n] = pair_index(index);
		ASSERT_TRUE(p->timers[read[n]].state == PAIR_READY);
		check_fields(p, read[n]);
		check_order(p, &p->timers[read[n]]);
	}
	ASSERT_EQ(n, min(most, p->nr_ready));
	/* The model would not let one go twice. */
	for (i = 0; i < n; i++)
		model_del(p, read[i]);
	tw_reader_cut(&p->wheel, &reader);
	for (i = 0; i < n; i++)
		end(p, read[i]);
	return n;
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
	wheel_add(p, index);
	agree_on(p, index);
}

static u32 drain(struct pair *p, const char *name)
{
	u32 index = pair_first_pending(p);

	trace(p, name, index, p->now);
	ASSERT_TRUE(p->timers[index].state == PAIR_PENDING);
	model_del(p, index);
	wheel_del(p, index);
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
	wheel_add(p, index);
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
	ASSERT_TRUE(now >= p->now);
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
		ASSERT_TRUE(p->shift >= 0 && p->shift < TW_SPAN);
		ASSERT_EQ(p->wheel.clk, pair_tick(p) + 1);
		p->ordered = !p->nr_ready;
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
		ASSERT_EQ(p->wheel.clk, now + 1);
	agree(p);
}

/* Timers that a step put at the ends of the ready lists, after @last */
static void take_expired(struct pair *p, const struct tw_step *step,
			 const struct tw_list *last, unsigned int *marked)
{
	u32 n = 0, index;
	unsigned int i;

	*marked = 0;
	ASSERT_TRUE(!step->expired || step->tick <= step->now);
	for (i = 0; i < TW_READY_LISTS; i++) {
		const struct tw_node *node;

		index = last[i].last ? tw_node_at(&p->table, last[i].last)->next :
				       p->wheel.ready.list[i].first;
		for (; index; index = node->next, n++) {
			u32 at = pair_index(index);
			struct pair_timer *timer = &p->timers[at];

			node = tw_node_at(&p->table, index);
			ASSERT_TRUE(timer->state == PAIR_PENDING);
			ASSERT_EQ(tick_of(p, timer->due), step->tick);
			ASSERT_EQ(pair_first(p), step->tick);
			model_del(p, at);
			model_add_ready(p, at, step->tick);
			check_fields(p, at);
			*marked += !!(node->flags & TW_NODE_READY);
			/* That it is ready can't be said by its deadline. */
			if (timer->want.slack_shift || step->tick < p->wheel.inspect)
				ASSERT_TRUE(node->flags & TW_NODE_READY);
		}
	}
	ASSERT_EQ(n, step->expired);
	ASSERT_TRUE(!*marked || *marked == n);
}

static unsigned int slot_at(unsigned int level, s64 position)
{
	return level * TW_LVL_SIZE + position % TW_LVL_SIZE;
}

static u32 count_at(const struct pair *p, unsigned int level, s64 position)
{
	return p->wheel.slots[slot_at(level, position)].count;
}

/* In the first quarter of the slot before, where the wheel's phase says */
static s64 preload_start(const struct pair *p, unsigned int level, s64 position)
{
	s64 width = 1LL << level * TW_LVL_CLK_SHIFT;

	return (position - 1) * width + (width < 4 ? 0 : p->wheel.phase % (width / 4));
}

/* There is nothing more to do, the wheel says. */
static void agree_when_idle(const struct pair *p)
{
	const struct tw_wheel *wheel = &p->wheel;
	unsigned int level;

	ASSERT_EQ(wheel->clk, pair_tick(p) + 1);
	ASSERT_TRUE(pair_first(p) > pair_tick(p));
	ASSERT_TRUE(wheel->next > pair_tick(p));
	ASSERT_EQ(wheel->next, tw_wheel_next(wheel));
	/* What is due next, and what is to be preloaded by now, was cascaded. */
	for (level = 1; level < wheel->depth; level++) {
		s64 position = wheel->clk >> level * TW_LVL_CLK_SHIFT;

		ASSERT_TRUE(count_at(p, level, position) <= TW_SMALL_SLOT);
		ASSERT_TRUE(count_at(p, level, position + 1) <= TW_SMALL_SLOT ||
			    preload_start(p, level, position + 1) > pair_tick(p));
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
		.budget = budget,
	};
	struct tw_list last[TW_READY_LISTS];
	unsigned int marked;
	bool more;

	memcpy(last, p->wheel.ready.list, sizeof(last));
	trace(p, "step with budget", PAIR_NONE, budget);
	more = tw_wheel_step(&p->wheel, &step);
	ASSERT_TRUE(step.budget <= budget);
	ASSERT_TRUE(step.moved <= budget - step.budget);
	take_expired(p, &step, last, &marked);
	/* A slot that is expired whole costs nothing but itself. */
	if (step.moved || marked)
		ASSERT_TRUE(step.moved + marked <= budget - step.budget);
	/* With room for a slot and a node, something gets done. */
	ASSERT_TRUE(!more || budget < 2 || step.moved || step.expired);
	agree(p);
	if (!more)
		agree_when_idle(p);
	return more;
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
	tw_check_table(&p->table, true);
	tw_check_wheel(&p->wheel);
}

/* A pending timer is in a slot that is looked at when it expires, or before. */
static void check_place(const struct pair *p, u32 index)
{
	unsigned int slot = node_of(p, index)->slot, level = slot / TW_LVL_SIZE;
	s64 oldest = p->wheel.clk >> level * TW_LVL_CLK_SHIFT;
	s64 position = oldest + (slot + TW_LVL_SIZE - oldest % TW_LVL_SIZE) % TW_LVL_SIZE;
	s64 start = position << level * TW_LVL_CLK_SHIFT;
	s64 end = start + (1LL << level * TW_LVL_CLK_SHIFT) - 1;
	s64 tick = tick_of(p, p->timers[index].due);

	ASSERT_TRUE(tick >= start);
	ASSERT_TRUE(p->wheel.next <= min(tick, end));
}

/**
 * pair_check() - compare all that there is
 * @p: the pair
 *
 * How nodes, lists and slots hang together, kmod/check.c looks at.
 */
void pair_check(const struct pair *p)
{
	u32 index;

	tw_check_table(&p->table, true);
	tw_check_wheel(&p->wheel);
	for (index = 0; index < PAIR_MOST; index++) {
		if (p->timers[index].state == PAIR_FREE)
			continue;
		check_fields(p, index);
		if (p->timers[index].state == PAIR_PENDING)
			check_place(p, index);
	}
}
