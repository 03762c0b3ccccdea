// SPDX-License-Identifier: GPL-2.0
/*
 * Accepted and refused operations of all kinds in one batch, around each number at which
 * something begins or ends inside; then calls at random, in memory that may be bad, with
 * signals. After each call all that the wheel says is as a model has it. (What several threads
 * do at once: race.c, and module/calls, beside the same model.)
 *
 * Environment: TIMES=N for N times as much at random, SEED=N for other calls. What fails
 * says the number of its sequence.
 *
 * also in: both matrix
 */
#define MODEL_TIMERS 24000
#include "wheel_calls.h"

#define USER_PARAMETER PARAMETERS "max_user_timers"
#define WHEELS 3
#define SEQUENCES 20
#define STEPS 50
#define SMALL_BATCHES 2000

static struct model models[WHEELS];
static int wheels[WHEELS];
static bool tight;		/* all wheels together may hold little memory */
static __u64 seed = 12345;

/*
 * Around these something begins or ends: batches, chunks, what is kept, nodes that are
 * handed out together, events and drained timers at a time, a page and the page that is
 * held, in the small world and in the large one.
 */
static const __u32 batch_sizes[] = { 1, 2, 4, 5, 8, 16, 24, 64, 128, 256, 320, 512 };
static const __u32 fills[] = { 5, 60, 64, 128, 1024, 1024 + 256, 2 * 1024 };
static const __u32 limits[] = { 1, 2, 4, 5, 8, 127, 256, 945 };

/* Kinds of operations, see LETTERS: the first ones, and those that come again and again */
struct shape {
	const char *head, *cycle;
};

static const struct shape shapes[] = {
	{ "xN", "A" },		/* empty a chunk, then fill it */
	{ "N", "A" },
	{ "sC", "A" },
	{ "AN", "NA" },
	{ "s", "CA" },		/* in turns */
	{ "s", "AC" },
	{ "sN", "I" },		/* two nodes each */
	{ "s", "mA" },		/* a second node for what was there */
	{ "sm", "MA" },		/* and its end */
	{ "", "mMA" },
	{ "sNd", "J" },
	{ "sb", "BJ" },		/* what is ready goes on, or ends */
	{ "s", "xAqQ" },
	{ "As", "C" },
	{ "P", "C" },
};

static const struct shape thin_shapes[] = {
	{ "sCC", "A" }, { "sCC", "I" }, { "sC", "CA" }, { "CC", "A" }, { "sCC", "m" },
	{ "sCm", "CA" }, { "smC", "CA" }, { "A", "CI" }, { "sCCC", "J" },
};

/* At a limit, a timer that ends makes room for the next operation. */
static const struct shape limit_shapes[] = {
	{ "", "A" }, { "", "CA" }, { "AC", "A" }, { "A", "sCA" }, { "sAN", "AI" },
	{ "AAC", "mAM" }, { "P", "CJ" },
};

/* A wheel that is not set up if no limit is given; else each second has short events. */
static void begin(__u32 w, __u64 limit)
{
	static __u32 opened;
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = opened++ % 2 ? TWHEEL_EVENT_SIZE_ID : TWHEEL_EVENT_SIZE_FULL,
		.limit = limit,
	};

	wheels[w] = wheel_open(O_NONBLOCK);
	if (limit && wheel_ioctl(wheels[w], TWHEEL_IOC_SETUP, &setup))
		tap_bail("setup with limit %llu failed", limit);
	model_begin(&models[w], wheels[w], w, true);
}

static void finish(__u32 w)
{
	model_query_all(&models[w], wheels[w]);
	model_finish(&models[w], wheels[w]);
	close(wheels[w]);
}

static struct making making(__u32 w, __u32 nr)
{
	models[w].tight = tight;
	return (struct making){
		.model = &models[w],
		.fd = wheels[w],
		.seed = random_next(&seed) | 1,
		.nr = nr,
		.far = true,
		.parts = FAULTS > 1,
	};
}

static void submit_shape(__u32 w, __u32 nr, const char *head, const char *cycle)
{
	struct making mk = making(w, nr);

	mk.op_size = TWHEEL_OP_SIZE_FULL;
	mk.head = head;
	mk.cycle = cycle;
	submit_array(&mk, NULL);
}

static void batch(__u32 w, __u32 nr, const char *head, const char *cycle)
{
	if (halted())
		return;
	submit_shape(w, nr, head, cycle);
	model_check(&models[w], wheels[w]);
}

static void fill(__u32 w, __u32 nr)
{
	while (models[w].live < nr && !halted())
		submit_shape(w, nr - models[w].live < 256 ? nr - models[w].live : 256, "", "A");
}

static void take_all(__u32 w)
{
	while (read_out(&models[w], wheels[w]) || drain_out(&models[w], wheels[w]))
		;
}

/* ---- walks along those numbers, always the same ---- */

/**
 * struct walk - what is done to a wheel
 * @timers: how many it has
 * @limit: how many it may have; or 0
 * @each: only each n-th of them stays, so that each is alone in a small chunk; or 0
 * @from: the first of these
 * @nr: length of the batches
 * @nr_end: and of the last of them
 */
struct walk {
	__u32 timers, limit, each, from, nr, nr_end;
};

/*
 * After a batch that reserves all and uses nothing, and one that begins a chunk. If it is to be
 * brief, one walk of four, and so each shape, each number, but not each with each.
 */
static void walk(struct walk w, const struct shape *shape)
{
	static __u32 walks;
	__u32 i, nr;

	if (halted() || (walks++ % 4 && brief()))
		return;
	snprintf(model_doing, sizeof(model_doing),
		 "%u timers, limit %u, each %u. from %u, then %u of %s(%s)", w.timers, w.limit,
		 w.each, w.from, w.nr, shape->head, shape->cycle);
	begin(0, w.limit);
	fill(0, w.timers);
	for (i = 0; w.each && i < w.timers; i++)
		if (i % w.each != w.from)
			model_cancel(&models[0], wheels[0], &models[0].timers[i]);
	batch(0, w.nr, "s", "d");
	batch(0, 1, "", w.limit || w.each ? "d" : "A");
	for (nr = w.nr; nr <= w.nr_end; nr++)
		batch(0, nr, shape->head, shape->cycle);
	batch(0, w.nr, shape->head, w.limit ? "AC" : shape->cycle);
	finish(0);
}

/* Each with each, as far as they are small: of that the small world consists. */
static void test_small_chunks(void)
{
	__u32 timers, nr;
	size_t s;

	for (timers = 0; timers <= 16; timers += timers % 5 == 1 ? 3 : 1)
		for (nr = 1; nr <= 6; nr++)
			for (s = 0; s < ARRAY_SIZE(shapes); s++)
				walk((struct walk){ timers, .nr = nr, .nr_end = nr }, &shapes[s]);
}

/* Chunks of which a batch empties several, when it has reserved what is in them */
static void test_thin_chunks(void)
{
	__u32 timers, from;
	size_t s;

	for (timers = 10; timers <= 30; timers += 5)
		for (from = 0; from < 5; from++)
			for (s = 0; s < ARRAY_SIZE(thin_shapes); s++)
				walk((struct walk){ timers, 0, 5, from, 3, 5 }, &thin_shapes[s]);
}

/* Each with a whole batch, and some with one that is shorter or longer */
static void test_chunks(void)
{
	static const struct shape reserves = { "sN", "A" };
	size_t f, s;
	__u32 k, nr;

	walk((struct walk){ 60, .nr = 256, .nr_end = 256 }, &reserves);
	for (f = 0; f < ARRAY_SIZE(fills); f++) {
		for (s = 0; s < ARRAY_SIZE(shapes); s++) {
			nr = s < 3 ? 255 + (s + f) % 3 : 256;
			for (k = 0; k < 3; k++)
				walk((struct walk){ fills[f] - 1 + k, .nr = nr, .nr_end = nr },
				     &shapes[s]);
		}
	}
}

static void test_directory(void)
{
	size_t s;
	__u32 k;

	for (k = 0; k < 3; k++)
		for (s = 0; s < ARRAY_SIZE(shapes); s += 4)
			walk((struct walk){ 15 * 1024 - 1 + k, .nr = 256, .nr_end = 256 },
			     &shapes[s]);
}

/* Batches of any size, one after the other, on the same wheel */
static void test_batch_sizes(void)
{
	size_t b, s;

	for (s = 0; s < ARRAY_SIZE(shapes); s++) {
		for (b = 0; b < ARRAY_SIZE(batch_sizes); b++) {
			__u32 nr = batch_sizes[b];

			walk((struct walk){ .nr = nr - 1, .nr_end = nr + 1 }, &shapes[s]);
		}
	}
}

static void test_wheel_limit(void)
{
	size_t l, s;
	__u32 k, nr;

	for (l = 0; l < ARRAY_SIZE(limits); l++) {
		for (s = 0; s < ARRAY_SIZE(limit_shapes); s++) {
			nr = s & 1 ? 256 : 5;
			for (k = 0; k < 3 && k <= limits[l]; k++)
				walk((struct walk){ limits[l] - k, limits[l], 0, 0, nr, nr },
				     &limit_shapes[s]);
		}
	}
}

/* What all wheels of the user may hold: any number, or so much that it is felt */
static void set_user_limit(__u32 limit)
{
	char text[32];
	long ret;

	if (!has_module())
		return;
	snprintf(text, sizeof(text), "%u", limit ? limit : 1U << 30);
	ret = write_text(USER_PARAMETER, text);
	if (ret)
		tap_bail("%s: %s", USER_PARAMETER, strerror(-ret));
	tight = limit;
}

static void user_limit(__u32 limit, const struct shape *shape)
{
	__u32 nr;

	if (halted())
		return;
	snprintf(model_doing, sizeof(model_doing), "user's limit %u, then %s(%s)", limit,
		 shape->head, shape->cycle);
	begin(0, 0);
	set_user_limit(limit);
	for (nr = 3; nr < 9; nr++)
		batch(0, nr, shape->head, shape->cycle);
	while (!models[0].refused && models[0].nr < MODEL_TIMERS / 2 && !halted())
		batch(0, 257, "", "A");
	for (nr = 3; nr < 6; nr++)
		batch(0, nr * nr * nr, shape->head, shape->cycle);
	EXPECT_TRUE(models[0].refused, "a limit of %u refused nothing", limit);
	take_all(0);
	/* A small first piece may be worn out by now. */
	tight = !models[0].armed || small_world();
	batch(0, 1, "", "A");
	set_user_limit(0);
	models[0].tight = false;
	finish(0);
}

/*
 * The user's limit is one of memory, which comes in pieces, so nobody says which timer
 * is the first that is refused. But what is done is done, what is refused is not, and
 * where a timer has ended one can be armed.
 */
static void test_user_limit(void)
{
	static const __u32 room_for[] = { 900, 1700, 1900, 2600, 4200 };
	size_t l, s;

	begin(1, 0);
	fill(1, 10);
	for (l = 0; l < ARRAY_SIZE(room_for); l++)
		for (s = 0; s < ARRAY_SIZE(limit_shapes); s++)
			user_limit(room_for[l], &limit_shapes[s]);
	finish(1);
}

/* ---- arrays and buffers that end too soon ---- */

/* Each call on @nr elements, of which only some bytes can be used */
static void cut_calls(__u32 op_size, __u32 nr)
{
	static const char *const kinds[] = { "A", "J", "M", "b", "C", "Q" };
	struct making mk;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds) + 2 && !halted(); i++) {
		mk = making(0, nr);
		mk.op_size = op_size;
		mk.head = "";
		mk.cycle = kinds[i % ARRAY_SIZE(kinds)];
		if (i < ARRAY_SIZE(kinds))
			submit_array(&mk, NULL);
		else if (i == ARRAY_SIZE(kinds))
			make_read(&mk);
		else
			make_drain(&mk);
		model_check(&models[0], wheels[0]);
	}
}

/* After each byte of few elements, or each third, and here and there in more of them */
static void cut(enum fault fault, __u32 op_size, __u32 nr)
{
	size_t usable, step = (nr > 2 ? 11 : 1) * (brief() ? 3 : 1);

	begin(0, 0);
	for (usable = 0; usable < nr * op_size && !halted(); usable += step) {
		snprintf(model_doing, sizeof(model_doing), "%zu bytes of %u of %u, then fault %d",
			 usable, nr, op_size, fault);
		fill(0, 2 * nr);
		cut_by = fault;
		cut_after = usable;
		cut_calls(op_size, nr);
		cut_by = FAULT_NONE;
	}
	finish(0);
}

static void test_cuts(void)
{
	__u32 op_size;

	for (op_size = TWHEEL_OP_SIZE_ID; FAULTS > 1 && op_size <= TWHEEL_OP_SIZE_FULL;
	     op_size *= 2) {
		cut(FAULT_READ_ONLY, op_size, 2);
		cut(FAULT_HIDDEN, op_size, 2);
		cut(FAULT_READ_ONLY, op_size, 20);
		cut(FAULT_HIDDEN, op_size, 20);
	}
}

/* ---- at random ---- */

/* Letters that come often are repeated. */
static void random_letters(char *to, size_t max)
{
	size_t n = 1 + below(&seed, max), i;

	for (i = 0; i < n; i++)
		to[i] = LETTERS[below(&seed, strlen(LETTERS))];
	to[n] = 0;
}

/*
 * Few timers, of which many come and go: where chunks and generations are few, they
 * empty and wear out all the time, in any order.
 */
static void test_small_random(void)
{
	__u64 nr = SMALL_BATCHES * number_of("TIMES", 1), i;
	char head[8], cycle[8];

	seed = number_of("SEED", 1) * 2 + 1;
	begin(0, 0);
	for (i = 0; i < nr && !halted(); i++) {
		if (models[0].nr > MODEL_TIMERS / 4) {
			finish(0);
			begin(0, 0);
		}
		random_letters(head, 4);
		random_letters(cycle, 3);
		if (models[0].live > 5 * (i % 9))
			strcpy(cycle, one_in(&seed, 3) ? "CCA" : "C");
		else if (one_in(&seed, 3))
			strcpy(cycle, one_in(&seed, 3) ? "I" : "A");
		snprintf(model_doing, sizeof(model_doing), "small batch %llu, %s(%s)", i, head,
			 cycle);
		batch(0, 1 + below(&seed, 9), head, cycle);
	}
	finish(0);
}

static __u32 near_boundary(void)
{
	if (one_in(&seed, 30))
		return MOST_OPS - 2;
	return batch_sizes[below(&seed, ARRAY_SIZE(batch_sizes))] - 1 + below(&seed, 3);
}

static void random_step(__u32 w, bool far)
{
	struct making mk = making(w, near_boundary());
	char head[8], cycle[8];

	random_letters(head, 6);
	random_letters(cycle, 4);
	if (one_in(&seed, 2)) {
		mk.head = head;
		mk.cycle = cycle;
	}
	mk.far = far;
	random_call(&mk);
	model_check(&models[w], wheels[w]);
	if (one_in(&seed, 8))
		set_user_limit(one_in(&seed, 2) ? 100 + below(&seed, 9999) : 0);
}

/* No timer comes due by itself, and all is known; or they do, and it is known nearly. */
static void random_sequence(__u64 which, bool far)
{
	__u32 i;

	seed = which * 2 + 1;
	for (i = 0; i < WHEELS; i++)
		begin(i, i ? 1 + below(&seed, i == 1 ? 300 : 4000) : 0);
	for (i = 0; i < STEPS && !halted(); i++) {
		snprintf(model_doing, sizeof(model_doing), "sequence %llu, step %u", which, i);
		random_step(below(&seed, WHEELS), far);
	}
	snprintf(model_doing, sizeof(model_doing), "sequence %llu, the end", which);
	set_user_limit(0);
	for (i = 0; i < WHEELS; i++) {
		models[i].tight = false;
		finish(i);
	}
}

static void random_sequences(bool far)
{
	__u64 nr = SEQUENCES * number_of("TIMES", 1) / (brief() ? 2 : 1);
	__u64 first = number_of("SEED", 1), i;

	tap_diag("sequences %llu to %llu", first, first + nr - 1);
	for (i = 0; i < nr && !halted(); i++)
		random_sequence(first + i, far);
}

static void test_random_far(void)
{
	random_sequences(true);
}

static void test_random_near(void)
{
	random_sequences(false);
}

int main(void)
{
	tap_start(300 * number_of("TIMES", 1));
	memory_init();
	signals_init();
	drop_resource();
	set_user_limit(0);
	RUN(test_small_chunks, "small batches around the ends of small chunks");
	RUN(test_thin_chunks, "batches that empty several small chunks");
	RUN(test_chunks, "batches around the ends of chunks");
	RUN(test_directory, "batches where the directory grows");
	RUN(test_batch_sizes, "batches of each size around those that are done at once");
	RUN(test_wheel_limit, "batches at the wheel's limit");
	RUN(test_user_limit, "batches at the user's limit");
	RUN(test_cuts, "arrays and buffers that end after each byte");
	RUN(test_small_random, "small random batches on few timers");
	RUN(test_random_far, "random calls, where no timer comes due by itself");
	RUN(test_random_near, "random calls, while timers come due");
	return tap_end();
}
