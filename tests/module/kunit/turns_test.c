// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of a user's shares of a processor's time, of the wheels that wait for their turn,
 * and of the places of workers. No time passes: it is what a test says.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/wait_bit.h>

#include "account.h"
#include "fixture.h"

#define SHARE FIXTURE_SHARE

/* What wheels of a user have had of a processor, and what they may have then */
static const struct use {
	const char *name;
	u64 ran;
	u64 cascaded;
	/* So many windows pass. */
	unsigned int windows;
	u64 cascaded_then;
	bool may_run;
	bool may_work;
} uses[] = {
	{ "nothing", .may_run = true, .may_work = true },
	{ "less than a share", .ran = SHARE - 1, .may_run = true, .may_work = true },
	{ "a share", .ran = SHARE, .may_work = true },
	{ "a share, a window ago", .ran = SHARE, .windows = 1, .may_run = true, .may_work = true },
	{ "less than a worker's eight shares", .ran = 8 * SHARE - 1, .may_work = true },
	{ "a worker's eight shares", .ran = 8 * SHARE },
	{ "20 shares, 12 windows ago", .ran = 20 * SHARE, .windows = 12 },
	{ "20 shares, 19 windows ago", .ran = 20 * SHARE, .windows = 19, .may_work = true },
	{ "20 shares, 20 windows ago", .ran = 20 * SHARE, .windows = 20, .may_run = true,
	  .may_work = true },
	{ "a free second", .cascaded = NSEC_PER_SEC, .may_run = true, .may_work = true },
	{ "a free second and a share", .cascaded = NSEC_PER_SEC + SHARE, .may_work = true },
	{ "a free second, and a share after eight windows", .cascaded = NSEC_PER_SEC,
	  .windows = 8, .cascaded_then = SHARE, .may_run = true, .may_work = true },
	{ "a free second, and two shares after eight windows", .cascaded = NSEC_PER_SEC,
	  .windows = 8, .cascaded_then = 2 * SHARE, .may_work = true },
	{ "20 shares, a free second, and four shares after 20 windows", .ran = 20 * SHARE,
	  .cascaded = NSEC_PER_SEC, .windows = 20, .cascaded_then = 4 * SHARE, .may_work = true },
};

static void describe_use(const struct use *use, char *desc)
{
	strscpy(desc, use->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(use, uses, describe_use);

static void expect_paid_off(struct kunit *test, const struct use *use, bool reopen)
{
	struct twheel *tw = fixture_wheel(test, NSEC_PER_SEC);
	ktime_t now = fixture_far(), then = ktime_add_ns(now, use->windows * FIXTURE_WINDOW);
	bool may_run, may_work;

	fixture_owe(fixture_share(tw), now, 0);
	local_bh_disable();
	tw_share_ran(fixture_share(tw), use->ran);
	tw_share_ran_free(fixture_share(tw), use->cascaded);
	local_bh_enable();
	if (reopen) {
		fixture_close(test, tw);
		tw = fixture_wheel(test, NSEC_PER_SEC);
	}
	local_bh_disable();
	tw_share_may_run(fixture_share(tw), then);
	tw_share_ran_free(fixture_share(tw), use->cascaded_then);
	may_run = tw_share_may_run(fixture_share(tw), then);
	may_work = tw_share_may_work(fixture_share(tw), then);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, may_run, use->may_run);
	KUNIT_EXPECT_EQ(test, may_work, use->may_work);
	fixture_close(test, tw);
	tw_users_exit();
}

static void share_paid_off_window_by_window(struct kunit *test)
{
	expect_paid_off(test, test->param_value, false);
}

/* Who closes all wheels and opens another owes as much, and has no second free second. */
static void debt_outlives_last_wheel(struct kunit *test)
{
	expect_paid_off(test, test->param_value, true);
}

static void wait_for_turn(struct twheel *tw, ktime_t now)
{
	spin_lock_bh(&tw->lock);
	tw_share_wait(fixture_share(tw), tw, now);
	spin_unlock_bh(&tw->lock);
}

/* Whose turn is it? It is over at once. */
static struct twheel *next_turn(struct tw_share *share, ktime_t now)
{
	struct twheel *tw;

	local_bh_disable();
	tw = tw_share_next(share, now);
	local_bh_enable();
	if (tw)
		atomic_dec(&tw->turns);
	return tw;
}

static void turn_comes_when_debt_is_paid_off(struct kunit *test)
{
	static const struct {
		u64 shares;
		u64 windows;
	} debts[] = { { 0, 1 }, { 1, 1 }, { 2, 2 }, { 20, 20 } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(debts); i++) {
		struct twheel *tw = fixture_wheel(test, NSEC_PER_SEC);
		struct tw_share *share = fixture_share(tw);
		ktime_t now = fixture_far();

		fixture_owe(share, now, debts[i].shares);
		wait_for_turn(tw, now);
		KUNIT_EXPECT_PTR_EQ(test, tw->waits_for, share);
		KUNIT_EXPECT_EQ(test, ktime_to_ns(hrtimer_get_expires(&share->timer)),
				(now / FIXTURE_WINDOW + debts[i].windows) * FIXTURE_WINDOW);
		fixture_close(test, tw);
		tw_users_exit();
	}
}

#define WHEELS 4

/* Those that wait run in the order in which they came, and one that is closed waits no more. */
static void waiting_wheels_run_in_order(struct kunit *test)
{
	ktime_t now = fixture_far(), later = ktime_add_ns(now, 4 * FIXTURE_WINDOW);
	struct twheel *tw[WHEELS];
	struct tw_share *share;
	unsigned int i;
	bool may_run;

	for (i = 0; i < WHEELS; i++)
		tw[i] = fixture_wheel(test, NSEC_PER_SEC);
	share = fixture_share(tw[0]);
	fixture_owe(share, now, 4);
	for (i = 0; i < WHEELS; i++)
		wait_for_turn(tw[i], now);
	fixture_close(test, tw[1]);
	KUNIT_EXPECT_NULL(test, next_turn(share, now));
	/* There is time again, but others were there before. */
	local_bh_disable();
	may_run = tw_share_may_run(share, later);
	local_bh_enable();
	KUNIT_EXPECT_FALSE(test, may_run);
	KUNIT_EXPECT_PTR_EQ(test, next_turn(share, later), tw[0]);
	KUNIT_EXPECT_PTR_EQ(test, next_turn(share, later), tw[2]);
	KUNIT_EXPECT_PTR_EQ(test, next_turn(share, later), tw[3]);
	KUNIT_EXPECT_NULL(test, next_turn(share, later));
}

/**
 * struct closing - a wheel that a thread closes
 * @test: the test
 * @tw: the wheel
 * @over: it is closed
 */
struct closing {
	struct kunit *test;
	struct twheel *tw;
	struct completion over;
};

static int close_wheel(void *arg)
{
	struct closing *closing = arg;

	fixture_close(closing->test, closing->tw);
	complete(&closing->over);
	return 0;
}

/* Who closes a wheel while it has its turn sleeps until that is over, and no longer. */
static void wheel_closed_in_its_turn_waits_for_its_end(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, NSEC_PER_SEC);
	struct tw_share *share = fixture_share(tw);
	struct closing closing = { .test = test, .tw = tw };
	struct task_struct *task;

	init_completion(&closing.over);
	atomic_inc(&tw->turns);
	task = kthread_run(close_wheel, &closing, "twheel-close");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&closing.over, HZ / 10));
	/* Nor does its turn begin anything that would come later. */
	KUNIT_EXPECT_TRUE(test, READ_ONCE(tw->closing));

	/* That turn again, which really takes place */
	atomic_dec(&tw->turns);
	local_bh_disable();
	spin_lock(&share->lock);
	list_add_tail(&tw->turn, &share->waiting);
	spin_unlock(&share->lock);
	tw_turns_fn(&share->timer);
	local_bh_enable();
	if (wait_for_completion_timeout(&closing.over, 10 * HZ))
		return;
	KUNIT_FAIL(test, "it sleeps still");
	wake_up_var(&tw->turns);
	wait_for_completion(&closing.over);
}

/* Wheels of a user that workers turn at a time; there is one processor here */
#define PLACES 1

/* Open some wheels, of which the first have places, and the others wait. */
static void open_in_places(struct kunit *test, struct twheel **tw, unsigned int nr)
{
	unsigned int i;

	if (num_online_cpus() > 1)
		kunit_skip(test, "this is for one processor");
	for (i = 0; i < nr; i++) {
		tw[i] = fixture_wheel(test, NSEC_PER_SEC);
		KUNIT_EXPECT_EQ(test, tw_place_get(tw[i]), i < PLACES);
	}
}

static void put_places(struct twheel **tw, unsigned int nr)
{
	while (nr--)
		if (tw[nr]->place)
			tw_place_put(tw[nr]);
}

/* The wheel that waits for longest gets the place that is put. */
static void place_put_waiting_wheel_gets_it(struct kunit *test)
{
	struct twheel *tw[PLACES + 3];
	struct tw_user *user;

	open_in_places(test, tw, ARRAY_SIZE(tw));
	user = tw[0]->user;
	/* Who is closed waits no more, and is not to begin it. */
	fixture_close(test, tw[PLACES]);
	list_del_init(&tw[PLACES + 1]->place_wait);
	tw[PLACES + 1]->closing = true;
	KUNIT_EXPECT_FALSE(test, tw_place_get(tw[PLACES + 1]));
	KUNIT_EXPECT_TRUE(test, list_empty(&tw[PLACES + 1]->place_wait));

	tw_place_put(tw[0]);
	KUNIT_EXPECT_FALSE(test, tw[0]->place);
	KUNIT_EXPECT_TRUE(test, tw[PLACES + 2]->place);
	KUNIT_EXPECT_EQ(test, work_busy(&tw[PLACES + 2]->work.work), WORK_BUSY_PENDING);
	KUNIT_EXPECT_EQ(test, user->places, PLACES);
	/* Nor does one that is closed keep it. */
	fixture_close(test, tw[PLACES + 2]);
	KUNIT_EXPECT_EQ(test, user->places, PLACES - 1);
}

/* Processors come while a wheel waits, so that it finds a place by itself. */
static void processor_added_place_got_once(struct kunit *test)
{
	struct twheel *tw[PLACES + 1];
	struct tw_user *user;

	open_in_places(test, tw, ARRAY_SIZE(tw));
	user = tw[0]->user;
	/* As if there was one more */
	user->places--;
	KUNIT_EXPECT_TRUE(test, tw_place_get(tw[PLACES]));
	user->places++;
	KUNIT_EXPECT_TRUE(test, list_empty(&tw[PLACES]->place_wait));
	put_places(tw, ARRAY_SIZE(tw));
	KUNIT_EXPECT_EQ(test, user->places, 0);
}

/* With fewer processors there are fewer places: the next wheel waits until one is left. */
static void processor_gone_place_not_handed_on(struct kunit *test)
{
	struct twheel *tw[PLACES + 2];
	struct tw_user *user;

	open_in_places(test, tw, ARRAY_SIZE(tw));
	user = tw[0]->user;
	/* As if there had been one more until now */
	user->places--;
	KUNIT_EXPECT_TRUE(test, tw_place_get(tw[PLACES]));
	user->places++;
	tw_place_put(tw[0]);
	KUNIT_EXPECT_EQ(test, user->places, PLACES);
	KUNIT_EXPECT_FALSE(test, tw[PLACES + 1]->place);
	tw_place_put(tw[PLACES]);
	KUNIT_EXPECT_EQ(test, user->places, PLACES);
	KUNIT_EXPECT_TRUE(test, tw[PLACES + 1]->place);
	KUNIT_EXPECT_TRUE(test, list_empty(&user->waiting));
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(share_paid_off_window_by_window, use_gen_params),
	KUNIT_CASE_PARAM(debt_outlives_last_wheel, use_gen_params),
	KUNIT_CASE(turn_comes_when_debt_is_paid_off),
	KUNIT_CASE(waiting_wheels_run_in_order),
	KUNIT_CASE(wheel_closed_in_its_turn_waits_for_its_end),
	KUNIT_CASE(place_put_waiting_wheel_gets_it),
	KUNIT_CASE(processor_added_place_got_once),
	KUNIT_CASE(processor_gone_place_not_handed_on),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_turns",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
