// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as operations on a wheel and its table, and on the
 * reference model of tests/core/unit: after each of them the two must agree.
 *
 * An input is a head, which says what kind of wheel it is, and operations, each
 * a byte with its arguments. Any bytes are operations: one that the module would
 * not ask for at that moment is left out.
 */
#include "host.h"
#include "input.h"
#include "pair.h"

#define LEVEL_TICKS(level) (1LL << (level) * TW_LVL_CLK_SHIFT)

/*
 * Spans have so many bits at most: beyond the reach of the levels, but not so
 * far that it takes the wheel for ever to get there.
 */
#define SPAN_BITS (TW_REACH_BITS < 54 ? TW_REACH_BITS + 6 : 61)

/* The kernel lets no clock be set to the last 30 years before KTIME_MAX. */
#define LAST_NOW (KTIME_MAX - (1LL << 59))

/* Timers at a time, and most that one operation adds: more than a small slot */
#define MOST 400
#define MOST_AT_ONCE (TW_SMALL_SLOT + 16)

/* Ids that have ended, and are looked up again */
#define ENDED 64

enum op {
	ADD,
	ADD_MANY,
	ADD_READY,
	MOD,
	MOD_TIME,
	EXPIRE,
	CANCEL,
	READ,
	READ_PERIODIC,
	DRAIN,
	UNDRAIN,
	ADVANCE,
	ADVANCE_TO_NEXT,
	FORWARD,
	STEP,
	FINISH,
	SET_BACK,
	FIND,
	CHUNK,
	TAKE,
	PUT,
	CHECK,
	OPS,
};

static struct pair pair;
static s64 latest;
static u32 used[MOST], nr_used;
static u64 ended[ENDED];
static unsigned int nr_ended;
static u32 taken[8];
static unsigned int nr_taken;

static s64 take_span(struct input *in, unsigned int bits)
{
	return take_number(in) & ((1ULL << bits) - 1);
}

static s64 take_tick(struct input *in)
{
	s64 now = pair_tick(&pair);
	s64 first = pair_first(&pair);
	s64 width, position;

	switch (take_choice(in, 6)) {
	case 0:
		return now + 1 + take_byte(in);
	case 1:
		return now + 1 + take_span(in, SPAN_BITS);
	case 2:
		/* Near a place where a slot begins */
		width = LEVEL_TICKS(take_choice(in, min(TW_LVL_DEPTH, 60 / TW_LVL_CLK_SHIFT)));
		position = now / width + take_byte(in);
		return position * width + take_choice(in, 5) - 2;
	case 3:
		return (first == TW_NEVER ? now : first) + take_choice(in, 9) - 4;
	case 4:
		if (!nr_used)
			return now;
		return pair.timers[used[take_number(in) % nr_used]].due + pair.shift;
	default:
		return now - take_choice(in, 4);
	}
}

/* The wheel can't be asked for anything that lies before. */
static s64 first_deadline(void)
{
	return pair_done(&pair) + 1;
}

/* Where it may be asked for what lies before, and does it as soon as it can */
static s64 first_deadline_added(void)
{
	return pair.settable ? first_deadline() : 1;
}

static s64 deadline_at(s64 tick, u64 before, s64 earliest)
{
	return max(min(pair_ns(&pair, tick) - (s64)(before % pair.tick), latest),
		   earliest);
}

static s64 take_deadline(struct input *in, s64 earliest)
{
	s64 tick = take_tick(in);

	return deadline_at(tick, take_number(in), earliest);
}

static s64 take_past(struct input *in)
{
	return pair.now - min_t(u64, pair.now, take_number(in));
}

static struct pair_want take_want(struct input *in, s64 deadline)
{
	u8 how = take_byte(in);

	return (struct pair_want){
		.deadline = deadline,
		.slack_shift = how & 4 ? take_choice(in, SPAN_BITS) : 0,
		.periodic = how & 1,
	};
}

/* As if it had given out so many generations before that few are left */
static void wear(struct tw_chunk *chunk, u32 left)
{
	u32 gen = (TW_LAST_GEN - left) & ~1U;

	if (gen <= chunk->gen)
		return;
	chunk->gen = gen;
	chunk->bound = gen;
}

static void add_chunk(u32 left)
{
	pair_add_chunk(&pair);
	if (left)
		wear(pair.table.empty, left);
}

static bool room(void)
{
	if (nr_used == MOST)
		return false;
	while (!pair.table.free) {
		if (!pair_has_room(&pair))
			return false;
		add_chunk(0);
	}
	return true;
}

/* What the pair is about to end */
static void forget(u32 index)
{
	u32 i = 0;

	while (used[i] != index)
		i++;
	used[i] = used[--nr_used];
	ended[nr_ended++ % ENDED] = pair.timers[index].id;
}

/* A new timer, whose id was never given out before */
static void remember(u32 index)
{
	unsigned int i;

	for (i = 0; i < min(nr_ended, ENDED); i++)
		ASSERT_TRUE(ended[i] != pair.timers[index].id);
	used[nr_used++] = index;
}

static void add(struct input *in)
{
	s64 deadline = take_deadline(in, first_deadline_added());
	struct pair_want want = take_want(in, deadline);

	if (room())
		remember(pair_add(&pair, &want));
}

/* Many in one tick, or each a bit later than the one before */
static void add_many(struct input *in)
{
	s64 deadline = take_deadline(in, first_deadline_added());
	struct pair_want want = take_want(in, deadline);
	unsigned int n = 1 + take_choice(in, MOST_AT_ONCE);
	u64 apart = take_number(in) % (2ULL * TW_LVL_CLK_DIV * pair.tick);

	while (n-- && room()) {
		remember(pair_add(&pair, &want));
		want.deadline += min_t(s64, apart, latest - want.deadline);
	}
}

static void add_ready(struct input *in)
{
	struct pair_want want = take_want(in, take_past(in));

	if (room())
		remember(pair_add_ready(&pair, &want));
}

static void mod_time(struct input *in, u32 index)
{
	struct pair_want want = pair.timers[index].want;

	want.deadline = take_deadline(in, first_deadline());
	pair_mod(&pair, index, &want);
}

static void do_to_one(enum op op, struct input *in)
{
	u32 index = used[take_number(in) % nr_used];
	struct pair_want want;

	switch (op) {
	case MOD:
		want = take_want(in, take_deadline(in, first_deadline()));
		pair_mod(&pair, index, &want);
		break;
	case MOD_TIME:
		mod_time(in, index);
		break;
	case EXPIRE:
		pair_expire(&pair, index, take_past(in));
		break;
	default:
		forget(index);
		pair_cancel(&pair, index);
		break;
	}
}

static void read_one(void)
{
	forget(pair_first_ready(&pair));
	pair_read(&pair);
}

static void drain_one(void)
{
	forget(pair_first_pending(&pair));
	pair_drain(&pair);
}

/* Does a tick of the wheel come at all? */
static bool comes(s64 tick)
{
	return tick < TW_TICK_MAX && pair_ns(&pair, tick) < min(latest, LAST_NOW);
}

static void advance_to(s64 tick, u64 after)
{
	s64 ns = pair_ns(&pair, tick);

	if (comes(tick) && comes(tick + 1) && ns + after % pair.tick >= pair.now)
		pair_advance(&pair, ns + after % pair.tick);
}

static void advance(struct input *in)
{
	s64 tick = take_tick(in);

	advance_to(tick, take_number(in));
}

static void set_back(struct input *in)
{
	s64 ticks = take_span(in, SPAN_BITS - 5);
	s64 ns = min((__int128)pair.now, (__int128)ticks * pair.tick +
					 take_number(in) % pair.tick);

	if (pair.settable)
		pair_set_back(&pair, pair.now - ns);
}

static void finish(u32 budget)
{
	while (pair_step(&pair, budget))
		;
}

/* An id finds the timer that has it, and nothing if none has it. */
static void look_up(u64 id)
{
	struct tw_node *node;
	u32 i = 0, index;

	while (i < nr_used && pair.timers[used[i]].id != id)
		i++;
	ASSERT_EQ(tw_table_find(&pair.table, id, &node, &index), i < nr_used);
	if (i == nr_used)
		return;
	ASSERT_EQ(pair_index(index), used[i]);
	ASSERT_TRUE(node == tw_node_at(&pair.table, index));
}

static void find(struct input *in)
{
	u64 id = 0;

	if (nr_used)
		id = pair.timers[used[take_number(in) % nr_used]].id;
	look_up(id ^ take_number(in));
	look_up(id ^ take_number(in) << 32);
}

/* Mere memory, which has no id */
static void take(void)
{
	u32 index;

	if (nr_taken == ARRAY_SIZE(taken) || !room())
		return;
	index = tw_table_alloc(&pair.table);
	ASSERT_TRUE(!(tw_node_at(&pair.table, index)->gen & 1));
	look_up(tw_id(tw_node_at(&pair.table, index), index));
	taken[nr_taken++] = index;
}

static void put(void)
{
	if (nr_taken)
		tw_table_free(&pair.table, taken[--nr_taken]);
}

static void do_op(enum op op, struct input *in)
{
	switch (op) {
	case ADD:
		add(in);
		break;
	case ADD_MANY:
		add_many(in);
		break;
	case ADD_READY:
		add_ready(in);
		break;
	case READ:
		if (pair.nr_ready)
			read_one();
		break;
	case READ_PERIODIC:
		if (pair.nr_ready)
			pair_read_periodic(&pair, take_deadline(in, first_deadline_added()));
		break;
	case DRAIN:
		if (pair.nr_pending)
			drain_one();
		break;
	case UNDRAIN:
		if (pair.nr_pending)
			pair_undrain(&pair);
		break;
	case ADVANCE:
		advance(in);
		break;
	case ADVANCE_TO_NEXT:
		advance_to(pair.wheel.next, take_byte(in));
		break;
	case FORWARD:
		pair_forward(&pair);
		break;
	case STEP:
		pair_step(&pair, 1 + take_byte(in));
		break;
	case FINISH:
		finish(2 + take_byte(in));
		break;
	case SET_BACK:
		set_back(in);
		break;
	case FIND:
		find(in);
		break;
	case CHUNK:
		if (pair_has_room(&pair))
			add_chunk(take_byte(in));
		break;
	case TAKE:
		take();
		break;
	case PUT:
		put();
		break;
	case CHECK:
		pair_check(&pair);
		pair_check_invariants(&pair);
		break;
	default:
		if (nr_used)
			do_to_one(op, in);
		break;
	}
}

static void begin(struct input *in)
{
	static const u32 lengths[] = {
		1000, 1001, 3333333, 4000000, 1000000000, 2, 7,
	};
	u32 tick = lengths[take_choice(in, ARRAY_SIZE(lengths))];
	u8 kind = take_byte(in);
	s64 start, end, shift = 0;

	/* The levels reach to KTIME_MAX only with the ticks that there are. */
	latest = min_t(__int128, KTIME_MAX, (__int128)tick << 53);
	end = min(latest, LAST_NOW) / tick - 2;
	start = take_number(in) % end;
	if (kind & 1)
		start = end - start;
	if (kind & 2)
		shift = take_span(in, SPAN_BITS);
	shift %= TW_SPAN;
	if (kind & 4)
		shift = TW_SPAN - 1 - shift;
	pair_init(&pair, tick, start * tick, kind & 7, kind & 6 ? shift : 0);
	fuzz_abort_on_failure();
	nr_used = 0;
	nr_ended = 0;
	nr_taken = 0;
}

/* Let all that is left expire as the module would: nothing may be lost. */
static void end(void)
{
	s64 last = TW_NEVER;
	unsigned int i;

	while (pair.nr_pending || pair.nr_ready) {
		while (pair.nr_ready)
			read_one();
		finish(256);
		if (pair.wheel.next == TW_NEVER)
			continue;
		ASSERT_TRUE(pair.wheel.next != last);
		last = pair.wheel.next;
		if (comes(last))
			pair_advance(&pair, max(pair.now, pair_ns(&pair, last)));
		else
			while (pair.nr_pending)
				drain_one();
	}
	ASSERT_TRUE(!pair_step(&pair, 2));
	ASSERT_EQ(pair.wheel.next, TW_NEVER);
	for (i = 0; i < min(nr_ended, ENDED); i++)
		look_up(ended[i]);
	while (nr_taken)
		put();
	pair_check(&pair);
	pair_end(&pair);
}

int fuzz_one_input(const u8 *data, size_t size)
{
	struct input in = { .at = data, .end = data + size };

	begin(&in);
	while (in.at < in.end)
		do_op(take_choice(&in, OPS), &in);
	pair_check(&pair);
	end();
	return 0;
}
