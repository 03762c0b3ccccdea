// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT, DRAIN and read with each allocation, each copy and each page of their arrays
 * failing in turn, for operations and events of each length, in few and in many: what
 * they say was done was done, and nothing else.
 */
#include "scene.h"

/* Operations in an array: two windows of the module, and a bit */
#define N 400

/* How memory lies, see memory_piece(): the program has not touched the last ones. */
#define IN_PLACE 0x40
#define ODD 0x42
#define LAZY 0x2c
#define LAZY_ODD 0x2e

static const __u8 shapes[] = { IN_PLACE, LAZY, ODD, LAZY_ODD };

static bool is_lazy(__u8 shape)
{
	return shape == LAZY || shape == LAZY_ODD;
}

/* What each length of an operation is there for */
static const char *letters_of(__u32 op_size, bool mixed)
{
	if (mixed)
		return "AMCQsPJxBbmd";
	return op_size < TWHEEL_OP_SIZE_ONCE ? "CN" : "A";
}

static void submit_faults(__u8 shape, __u32 op_size, __u32 nr, bool mixed)
{
	struct making mk = scene_call(nr, letters_of(op_size, mixed));

	mk.shape = shape;
	mk.op_size = op_size;
	/* The argument; a page that fails only once can be had when it is tried again. */
	each_fault(make_submit, mk, nr / 2, 0, COPY | (is_lazy(shape) ? PAGES : 0), 1);
}

/* When time is short, half of the ways in which it can lie */
static void test_submit(bool mixed)
{
	unsigned int i;

	for (i = 0; i < 3 * ARRAY_SIZE(shapes); i++)
		if (!quick() || i % 2 == mixed)
			submit_faults(shapes[i / 3], TWHEEL_OP_SIZE_ID << i % 3, N, mixed);
}

static void test_submit_plain(void)
{
	test_submit(false);
}

static void test_submit_mixed(void)
{
	test_submit(true);
}

/* One, and so few that they are copied, and one more than those */
static void test_submit_few(void)
{
	static const unsigned int few[] = { 1, 3, 8, 9, 17, 33 };
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		for (k = 0; k < ARRAY_SIZE(few); k++)
			if (!quick() || (i + k) % 3 == 0)
				submit_faults(shapes[i], TWHEEL_OP_SIZE_ID << (i + k) % 3,
					      few[k], k % 2);
}

/*
 * Array after array, until there are enough timers that the directory of the
 * chunks has grown, too: whatever has to be had on the way fails first.
 */
static void test_submit_growing(void)
{
	struct making mk = scene_call(250, "A");
	struct faults all = {};
	unsigned int i, rounds = 0;

	scene_open(0, NULL);
	mk.fd = wheel;
	mk.op_size = TWHEEL_OP_SIZE_FULL;
	while (model.nr < MODEL_TIMERS - 4000 && !halted()) {
		/* Begin further on each time: see test_further_arms() of calls.c. */
		fault = (struct faults){ .n = rounds++ % 6, .kind = COPY };
		while (faults_next(&fault, 0, 0)) {
			mk.seed += 2;
			make_submit(&mk);
		}
		for (i = 0; i < INJECTED_KINDS; i++)
			all.hits[i] += fault.hits[i];
		fault = (struct faults){};
	}
	tap_diag("%u slabs, %u pages, %u copies", all.hits[0], all.hits[1], all.hits[2]);
	/* Some of what 16 chunks and two directories need */
	EXPECT_TRUE(all.hits[0] >= 4 && all.hits[1] >= 4);
	scene_close();
}

/* No memory at all: what needs none is done nevertheless. */
static void test_no_memory(void)
{
	struct making mk = scene_call(3000, letters_of(0, true));

	scene_open(1500, "PAIJ");
	mk.fd = wheel;
	mk.op_size = TWHEEL_OP_SIZE_FULL;
	no_memory = true;
	memory_fails(true);
	make_submit(&mk);
	make_drain(&mk);
	make_read(&mk);
	memory_fails(false);
	no_memory = false;
	EXPECT_TRUE(model.cancelled && model.drained && model.events);
	scene_check();
	memory_fails(true);
	EXPECT_EQ(NEG(close(wheel)), 0);
	memory_fails(false);
	test_nothing_left();
}

static void test_drain(void)
{
	unsigned int i;

	for (i = 0; i < 3 * ARRAY_SIZE(shapes); i++) {
		struct making mk = scene_call(i % 2 ? N : 40, NULL);

		mk.shape = shapes[i / 3];
		mk.op_size = TWHEEL_OP_SIZE_ID << i % 3;
		each_fault(make_drain, mk, N, 0, COPY | (is_lazy(mk.shape) ? PAGES : 0), 1);
	}
}

/* A copy that fails once is done again, so that none need be refused. */
static void test_read(void)
{
	static const __u32 flags[] = { 0, TWHEEL_EVENT_SIZE_ID, TWHEEL_SETUP_COUNT };
	static const __u32 room[] = { 1, 30, 60, 0 };
	unsigned int i, k, s;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		for (k = 0; k < ARRAY_SIZE(room); k++)
			for (s = 0; s < ARRAY_SIZE(shapes); s++) {
				struct making mk = scene_call(room[k], NULL);

				mk.shape = shapes[s];
				mk.parts = k;
				each_fault(make_read, mk, 120, flags[i], room[k] ? COPY : 0, 0);
			}
}

static void test_read_nothing(void)
{
	each_fault(make_read, scene_call(4, NULL), 0, 0, 0, 0);
}

/* Everything in any order on one wheel, with any fault, and with one of each kind at least */
static void test_random(void)
{
	unsigned int rounds = quick() ? 100 : 5000, most = 10 * rounds, i, kinds[8] = {};
	struct making mk = scene_call(0, NULL);

	scene_open(0, NULL);
	for (i = 0; i < most && !halted(); i++) {
		if (i >= rounds && kinds[SLAB] && kinds[PAGES] && kinds[COPY])
			break;
		mk.fd = wheel;
		mk.seed += 2;
		mk.nr = 1 + below(&mk.seed, 2 << below(&mk.seed, 7));
		mk.shape = below(&mk.seed, 256);
		fault = (struct faults){ .n = 1 + below(&mk.seed, 10), .lazy = true };
		switch (below(&mk.seed, 8)) {
		case 0:
			make_drain(&mk);
			break;
		case 1:
			make_read(&mk);
			break;
		default:
			make_submit(&mk);
			break;
		}
		kinds[fault.kind]++;
		fault = (struct faults){};
		model_check(&model, wheel);
		if (i % 10 == 0 || model.nr > 1500)
			model_query_all(&model, wheel);
		if (model.nr <= 1500)
			continue;
		model_finish(&model, wheel);
		close(wheel);
		scene_open(0, NULL);
	}
	scene_close();
	tap_diag("%u rounds, in %u no fault", i, kinds[0]);
	EXPECT_TRUE(kinds[SLAB] && kinds[PAGES] && kinds[COPY]);
}

int main(void)
{
	tap_start(PATIENCE_S);
	memory_init();
	faults_start();
	RUN(test_submit_plain, "SUBMIT that arms or cancels");
	RUN(test_submit_mixed, "SUBMIT of everything");
	RUN(test_submit_few, "SUBMIT of few");
	RUN(test_submit_growing, "SUBMIT after SUBMIT");
	RUN(test_no_memory, "SUBMIT, DRAIN, read and close without any memory");
	RUN(test_drain, "DRAIN");
	RUN(test_read, "read of events and of counts, into one part or several");
	RUN(test_read_nothing, "read with nothing ready");
	RUN(test_random, "SUBMIT, DRAIN and read at random");
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
