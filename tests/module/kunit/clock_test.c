// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of clocks: ticks from nanoseconds and back, rounding, namespaces.
 */
#include <kunit/test.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "clock.h"

static const u32 ticks[] = {
	TWHEEL_TICK_MIN_NS, TWHEEL_TICK_MIN_NS + 1, 1 << 16, 999983, 1000000,
	3333333, TICK_NSEC, (1 << 29) - 1, 1 << 29, 999999937,
	TWHEEL_TICK_MAX_NS,
};

static void describe_tick(const u32 *tick, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "tick of %u ns", *tick);
}

KUNIT_ARRAY_PARAM(tick, ticks, describe_tick);

static struct tw_clock clock_of(u32 tick)
{
	struct tw_clock clock = {};

	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, tick);
	return clock;
}

/* Times at which rounding may go wrong, some of them of the tick. */
#define TIMES 36

static void edge_times(u32 tick, s64 *times)
{
	const s64 all = div_s64(KTIME_MAX, tick);
	const s64 bases[] = { 0, tick, 2LL * tick, 1000LL * tick,
			      (all / 2) * tick, (all - 1) * tick, all * tick,
			      1LL << 32, 1LL << 53, 1LL << 62,
			      KTIME_MAX / 3, KTIME_MAX };
	unsigned int i;

	BUILD_BUG_ON(3 * ARRAY_SIZE(bases) != TIMES);
	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		*times++ = max_t(s64, 1, bases[i] - 1);
		*times++ = max_t(s64, 1, bases[i]);
		*times++ = tw_time_add(bases[i], 1);
	}
}

static void check_rounding(struct kunit *test, const struct tw_clock *clock,
			   s64 ns)
{
	s64 down = div64_u64(ns, clock->tick);
	s64 up = down + (down * clock->tick < ns);
	s64 at;

	KUNIT_ASSERT_EQ(test, tw_clock_floor(clock, ns), down);
	KUNIT_ASSERT_EQ(test, tw_clock_expires(clock, ns, 0), up);
	KUNIT_ASSERT_LE(test, tw_clock_tick_ns(clock, down), ns);
	/* Never early; and less than a tick late. */
	at = tw_clock_tick_ns(clock, up);
	KUNIT_ASSERT_GE(test, at, ns);
	KUNIT_ASSERT_LT(test, at - ns, clock->tick);
}

static void edges_are_rounded(struct kunit *test)
{
	struct tw_clock clock = clock_of(*(const u32 *)test->param_value);
	s64 times[TIMES];
	unsigned int i;

	edge_times(clock.tick, times);
	for (i = 0; i < TIMES; i++)
		check_rounding(test, &clock, times[i]);
}

static void any_time_is_rounded(struct kunit *test)
{
	struct tw_clock clock = clock_of(*(const u32 *)test->param_value);
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, clock.tick);
	for (i = 0; i < 10000; i++) {
		u64 ns = (u64)prandom_u32_state(&rnd) << 32 |
			 prandom_u32_state(&rnd);

		/* Of all magnitudes. */
		check_rounding(test, &clock, max_t(s64, 1, ns >> (1 + i % 63)));
	}
}

/* A division by multiplication goes wrong at multiples, if anywhere. */
static void check_division(struct kunit *test, u32 tick)
{
	struct tw_clock clock = clock_of(tick);
	u64 most = div_u64(KTIME_MAX, tick);
	unsigned int bit;

	for (bit = 0; bit < 63; bit++) {
		u64 quotient = most >> bit;
		u64 ns = quotient * tick;

		KUNIT_ASSERT_EQ(test, tw_clock_divide(&clock, ns), quotient);
		KUNIT_ASSERT_EQ(test, tw_clock_divide(&clock,
						      tw_time_add(ns, tick - 1)),
				quotient);
		if (quotient)
			KUNIT_ASSERT_EQ(test, tw_clock_divide(&clock, ns - 1),
					quotient - 1);
	}
	KUNIT_ASSERT_EQ(test, tw_clock_divide(&clock, KTIME_MAX), most);
}

static void division_is_exact_around_powers_of_2(struct kunit *test)
{
	unsigned int bit;

	for (bit = 1; bit < 32; bit++) {
		if (bit > 1)
			check_division(test, (1U << bit) - 1);
		check_division(test, 1U << bit);
		check_division(test, (1U << bit) + 1);
	}
	check_division(test, U32_MAX);
}

static void division_is_exact_for_any_tick(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 1);
	for (i = 2; i < 2000; i++)
		check_division(test, i);
	for (i = 0; i < 2000; i++)
		check_division(test, max(2U, prandom_u32_state(&rnd) >> i % 22));
}

static void every_tick_begins_somewhere(struct kunit *test)
{
	struct tw_clock clock = clock_of(*(const u32 *)test->param_value);
	s64 all = div_s64(KTIME_MAX, clock.tick);
	const s64 which[] = { 0, 1, 2, 63, 64, 4097, all / 2, all - 1, all };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(which); i++) {
		s64 ns = tw_clock_tick_ns(&clock, which[i]);

		KUNIT_EXPECT_EQ(test, ns, which[i] * clock.tick);
		KUNIT_EXPECT_EQ(test, tw_clock_floor(&clock, ns), which[i]);
		if (ns)
			KUNIT_EXPECT_EQ(test, tw_clock_expires(&clock, ns, 0),
					which[i]);
	}
	KUNIT_EXPECT_EQ(test, tw_clock_tick_ns(&clock, all + 1), KTIME_MAX);
	KUNIT_EXPECT_EQ(test, tw_clock_tick_ns(&clock, TW_TICK_MAX), KTIME_MAX);
	KUNIT_EXPECT_EQ(test, tw_clock_tick_ns(&clock, S64_MAX), KTIME_MAX);
}

/* After the clock was set back, the wheel's ticks are ahead of the host's. */
static void clock_set_back_ticks_go_on(struct kunit *test)
{
	struct tw_clock clock = clock_of(*(const u32 *)test->param_value);
	struct tw_clock shifted = clock;
	static const s64 shifts[] = { 1, 63, 1000000, 1LL << 40 };
	s64 times[TIMES];
	unsigned int i, s;

	edge_times(clock.tick, times);
	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		shifted.tick_offset = shifts[s];
		for (i = 0; i < TIMES; i++) {
			s64 down = tw_clock_floor(&clock, times[i]);
			s64 up = tw_clock_expires(&clock, times[i], 0);

			KUNIT_ASSERT_EQ(test, tw_clock_floor(&shifted, times[i]),
					down + shifts[s]);
			KUNIT_ASSERT_EQ(test, tw_clock_expires(&shifted, times[i], 0),
					up + shifts[s]);
			KUNIT_ASSERT_EQ(test, tw_clock_tick_ns(&shifted, up + shifts[s]),
					tw_clock_tick_ns(&clock, up));
		}
		/* Before the host's time began. */
		KUNIT_ASSERT_EQ(test, tw_clock_tick_ns(&shifted, 0), 0);
		KUNIT_ASSERT_EQ(test, tw_clock_tick_ns(&shifted, shifts[s]), 0);
	}
	shifted.tick_offset = TW_TICK_MAX;
	KUNIT_EXPECT_EQ(test, tw_clock_expires(&shifted, KTIME_MAX, 0),
			TW_TICK_MAX);
}

static void slack_is_used_as_far_as_it_goes(struct kunit *test)
{
	struct tw_clock clock = clock_of(*(const u32 *)test->param_value);
	s64 slacks[TIMES], times[TIMES];
	unsigned int i, t;

	edge_times(clock.tick, slacks);
	edge_times(clock.tick, times);
	for (i = 0; i < TIMES; i++) {
		unsigned int shift = tw_clock_slack_shift(&clock, slacks[i]);
		u64 used = tw_clock_slack(&clock, shift);
		s64 wide = 1LL << shift;

		KUNIT_ASSERT_LE(test, used, (u64)slacks[i]);
		KUNIT_ASSERT_EQ(test, used, (u64)(wide - 1) * clock.tick);
		/* Twice as wide would be too much. */
		KUNIT_ASSERT_GT(test, (u64)(2 * wide - 1),
				div64_u64(slacks[i], clock.tick));
		for (t = 0; t < TIMES; t++) {
			s64 exact = tw_clock_expires(&clock, times[t], 0);
			s64 slack = tw_clock_expires(&clock, times[t], shift);

			KUNIT_ASSERT_GE(test, slack, exact);
			KUNIT_ASSERT_LE(test, slack, exact + wide - 1);
			if (slack != TW_TICK_MAX)
				KUNIT_ASSERT_EQ(test, slack & (wide - 1), 0);
		}
	}
}

static void neighbours_share_a_tick(struct kunit *test)
{
	struct tw_clock clock = clock_of(1000000);
	unsigned int shift = tw_clock_slack_shift(&clock, 7000000);
	s64 ns;

	KUNIT_EXPECT_EQ(test, shift, 3);
	KUNIT_EXPECT_EQ(test, tw_clock_slack(&clock, shift), 7000000);
	KUNIT_EXPECT_EQ(test, tw_clock_slack_shift(&clock, 6999999), 2);
	for (ns = 1; ns <= 8000000; ns += 333333)
		KUNIT_EXPECT_EQ(test, tw_clock_expires(&clock, ns, shift), 8);
	KUNIT_EXPECT_EQ(test, tw_clock_expires(&clock, 8000001, shift), 16);
}

static const struct known {
	u32 id;
	clockid_t kernel_id;
	const char *name;
} known[] = {
	{ TWHEEL_CLOCK_REALTIME, CLOCK_REALTIME, "realtime" },
	{ TWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC, "monotonic" },
	{ TWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME, "boottime" },
	{ TWHEEL_CLOCK_TAI, CLOCK_TAI, "tai" },
};

static void describe_known(const struct known *clock, char *desc)
{
	strscpy(desc, clock->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(known, known, describe_known);

static s64 now_of(u32 id)
{
	switch (id) {
	case TWHEEL_CLOCK_REALTIME:
		return ktime_get_real_ns();
	case TWHEEL_CLOCK_BOOTTIME:
		return ktime_get_boottime_ns();
	case TWHEEL_CLOCK_TAI:
		return ktime_get_clocktai_ns();
	default:
		return ktime_get_ns();
	}
}

static void clock_read_matches_kernel(struct kunit *test)
{
	const struct known *param = test->param_value;
	struct tw_clock clock;
	s64 before, now, after;

	tw_clock_init(&clock);
	tw_clock_set(&clock, param->id, 0);
	KUNIT_EXPECT_TRUE(test, tw_clock_known(param->id));
	KUNIT_EXPECT_STREQ(test, tw_clock_name(clock.id), param->name);
	KUNIT_EXPECT_EQ(test, tw_clock_kernel_id(param->id), param->kernel_id);
	KUNIT_EXPECT_EQ(test, clock.tick, TICK_NSEC);

	before = now_of(param->id);
	now = tw_clock_now(&clock);
	after = now_of(param->id);
	KUNIT_EXPECT_GE(test, now, before);
	KUNIT_EXPECT_LE(test, now, after);
}

static void unknown_clock_refused(struct kunit *test)
{
	unsigned int known_ids = 0;
	u32 id;

	for (id = 0; id < 1000; id++)
		known_ids += tw_clock_known(id);
	KUNIT_EXPECT_EQ(test, known_ids, ARRAY_SIZE(known));
	KUNIT_EXPECT_FALSE(test, tw_clock_known(U32_MAX));
	KUNIT_EXPECT_FALSE(test, tw_clock_known(1U << 31));
}

static void new_clock_is_monotonic(struct kunit *test)
{
	struct tw_clock clock;

	memset(&clock, 0xff, sizeof(clock));
	tw_clock_init(&clock);
	KUNIT_EXPECT_EQ(test, clock.id, TWHEEL_CLOCK_MONOTONIC);
	KUNIT_EXPECT_EQ(test, clock.tick, TICK_NSEC);
	KUNIT_EXPECT_EQ(test, clock.tick_offset, 0);
	/* The test lives in no time namespace. */
	KUNIT_EXPECT_EQ(test, clock.offset, 0);
}

/* A program's time and the host's, when the namespace's is ahead by an offset. */
static const struct ns_param {
	const char *name;
	s64 offset;
	u64 user;
	s64 host;
	u64 back;
} ns_params[] = {
	{ "same", 0, 1000, 1000, 1000 },
	{ "same, never", 0, KTIME_MAX, KTIME_MAX, KTIME_MAX },
	{ "ahead", 100, 1000, 900, 1000 },
	{ "ahead, at its start", 100, 100, 0, 100 },
	{ "ahead, before its start", 100, 99, 0, 100 },
	{ "ahead, at 0", 100, 0, 0, 100 },
	{ "ahead, never", 100, KTIME_MAX, KTIME_MAX - 100, KTIME_MAX },
	{ "far ahead", KTIME_MAX, KTIME_MAX - 1, 0, KTIME_MAX },
	{ "behind", -100, 1000, 1100, 1000 },
	{ "behind, at 0", -100, 0, 100, 0 },
	{ "behind, just before never", -100, KTIME_MAX - 101, KTIME_MAX - 1,
	  KTIME_MAX - 101 },
	{ "behind, beyond never", -100, KTIME_MAX - 50, KTIME_MAX, KTIME_MAX },
	{ "behind, never", -100, KTIME_MAX, KTIME_MAX, KTIME_MAX },
	{ "far behind", -KTIME_MAX, 1, KTIME_MAX, KTIME_MAX },
};

static void describe_ns(const struct ns_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(ns, ns_params, describe_ns);

static void namespace_has_its_own_time(struct kunit *test)
{
	const struct ns_param *param = test->param_value;
	struct tw_clock clock = clock_of(0);

	clock.offset = param->offset;
	KUNIT_EXPECT_EQ(test, tw_clock_to_host(&clock, param->user), param->host);
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, param->host), param->back);
}

static void host_time_before_namespace_0(struct kunit *test)
{
	struct tw_clock clock = clock_of(0);

	clock.offset = -100;
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, 99), 0);
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, 100), 0);
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, 101), 1);
}

static void host_time_after_namespace_never(struct kunit *test)
{
	struct tw_clock clock = clock_of(0);

	clock.offset = 100;
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, KTIME_MAX - 101),
			KTIME_MAX - 1);
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, KTIME_MAX - 99), KTIME_MAX);
	KUNIT_EXPECT_EQ(test, tw_clock_to_user(&clock, KTIME_MAX - 1), KTIME_MAX);
}

static void offset_goes_with_the_clock(struct kunit *test)
{
	const struct known *param = test->param_value;
	struct tw_clock clock = { .monotonic_offset = 11, .boottime_offset = 22 };

	tw_clock_set(&clock, param->id, 0);
	KUNIT_EXPECT_EQ(test, clock.offset,
			param->id == TWHEEL_CLOCK_MONOTONIC ? 11 :
			param->id == TWHEEL_CLOCK_BOOTTIME ? 22 : 0);
}

static const struct sum {
	u64 a;
	u64 b;
	s64 sum;
} sums[] = {
	{ 0, 0, 0 }, { 1, 2, 3 },
	{ KTIME_MAX, 0, KTIME_MAX }, { 0, KTIME_MAX, KTIME_MAX },
	{ KTIME_MAX - 1, 1, KTIME_MAX }, { KTIME_MAX, 1, KTIME_MAX },
	{ KTIME_MAX - 2, 1, KTIME_MAX - 1 },
	{ KTIME_MAX, KTIME_MAX, KTIME_MAX },
	{ 1ULL << 62, 1ULL << 62, KTIME_MAX },
};

static void describe_sum(const struct sum *sum, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%llu + %llu", sum->a, sum->b);
}

KUNIT_ARRAY_PARAM(sum, sums, describe_sum);

static void sums_saturate(struct kunit *test)
{
	const struct sum *param = test->param_value;

	KUNIT_EXPECT_EQ(test, tw_time_add(param->a, param->b), param->sum);
	KUNIT_EXPECT_EQ(test, tw_time_add(param->b, param->a), param->sum);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(edges_are_rounded, tick_gen_params),
	KUNIT_CASE_PARAM(any_time_is_rounded, tick_gen_params),
	KUNIT_CASE(division_is_exact_around_powers_of_2),
	KUNIT_CASE(division_is_exact_for_any_tick),
	KUNIT_CASE_PARAM(every_tick_begins_somewhere, tick_gen_params),
	KUNIT_CASE_PARAM(clock_set_back_ticks_go_on, tick_gen_params),
	KUNIT_CASE_PARAM(slack_is_used_as_far_as_it_goes, tick_gen_params),
	KUNIT_CASE(neighbours_share_a_tick),
	KUNIT_CASE_PARAM(clock_read_matches_kernel, known_gen_params),
	KUNIT_CASE(unknown_clock_refused),
	KUNIT_CASE(new_clock_is_monotonic),
	KUNIT_CASE_PARAM(namespace_has_its_own_time, ns_gen_params),
	KUNIT_CASE(host_time_before_namespace_0),
	KUNIT_CASE(host_time_after_namespace_never),
	KUNIT_CASE_PARAM(offset_goes_with_the_clock, known_gen_params),
	KUNIT_CASE_PARAM(sums_saturate, sum_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_clock",
	.test_cases = cases,
};

kunit_test_suite(suite);
