// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of time that passes for a wheel in use: when it goes on with what it may not do, or
 * need not do, at once. What has no effect that a program could see is called here directly.
 *
 * The kernel may be busy, and its clock goes on: so times are far ahead of what depends on them.
 */
#include "expire_copy.h"

#include <linux/bits.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/wait.h>
#include <uapi/linux/twheel.h>

#include "fixture.h"

#define TICK NSEC_PER_MSEC

/* When timers are due whose hrtimer is cancelled before it comes */
#define SOON NSEC_PER_SEC

static s64 after(s64 ns)
{
	return ktime_get_ns() + ns;
}

static bool all_expired(struct twheel *tw)
{
	return !READ_ONCE(tw->wheel.pending);
}

static bool waits_for_turn(struct twheel *tw)
{
	return READ_ONCE(tw->waits_for);
}

/* Sleep until that is so of a wheel. */
static void wait_until(struct kunit *test, bool (*is_so)(struct twheel *tw), struct twheel *tw)
{
	unsigned int ms;

	for (ms = 0; ms < 10000 && !is_so(tw); ms += 20)
		msleep(20);
	KUNIT_ASSERT_TRUE(test, is_so(tw));
}

/* The timers of a wheel become due, and it is as if its hrtimer was late. */
static void hold_back(struct kunit *test, struct twheel *tw)
{
	KUNIT_ASSERT_EQ(test, hrtimer_cancel(&tw->timer), 1);
}

/* The hrtimer is set again, for the same time. */
static void expect_set_for(struct kunit *test, struct twheel *tw, ktime_t expires)
{
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&tw->timer));
	KUNIT_EXPECT_EQ(test, hrtimer_get_expires(&tw->timer), expires);
}

/*
 * The clock was set back after the kernel took the time by which an hrtimer has expired: so
 * it comes before its time. To start it then would be for it to come at once, again.
 */
static void timer_early_not_restarted(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);
	ktime_t expires;

	fixture_arm(test, tw, after(1000 * NSEC_PER_SEC));
	expires = hrtimer_get_expires(&tw->timer);
	hold_back(test, tw);
	local_bh_disable();
	copy_timer_fn(&tw->timer);
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&tw->timer));
	local_bh_enable();

	/* Nor is what there is to do forgotten: the worker does it. */
	flush_delayed_work(&tw->work);
	expect_set_for(test, tw, expires);
}

/*
 * The callback came and found the lock taken, so that the worker does what it left. The
 * wheel must not take the callback for one that is still to come.
 */
static void timer_found_lock_taken_set_again(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);
	ktime_t expires;

	fixture_arm(test, tw, after(1000 * NSEC_PER_SEC));
	expires = hrtimer_get_expires(&tw->timer);
	hold_back(test, tw);
	queue_delayed_work(system_wq, &tw->work, 0);
	flush_delayed_work(&tw->work);
	expect_set_for(test, tw, expires);
}

/* What is over its user's share is late by what that owes, and does not wait for a tick. */
static void throttled_wheel_runs_when_paid_off(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, NSEC_PER_SEC);
	s64 due = (div_s64(ktime_get_ns(), NSEC_PER_SEC) + 2) * NSEC_PER_SEC;
	s64 now, paid_off = due + NSEC_PER_SEC / 4;

	fixture_arm(test, tw, due);
	now = ktime_get_ns();
	fixture_owe(fixture_share(tw), now, div_s64(paid_off - now, FIXTURE_WINDOW));
	wait_until(test, all_expired, tw);
	KUNIT_EXPECT_EQ(test, tw->inner.deferred, 1);
	KUNIT_EXPECT_NULL(test, tw->waits_for);
	KUNIT_EXPECT_GE(test, tw->stats.max_lateness, paid_off - due - 2 * FIXTURE_WINDOW);
	KUNIT_EXPECT_LT(test, tw->stats.max_lateness, NSEC_PER_SEC);
	/* Other tests judge what keeps the machine by this. */
	KUNIT_EXPECT_GT(test, tw->inner.largest_run, 0);
}

/* The user owes more than a worker may use, for longer than a test takes. */
static void use_up_shares(struct twheel *tw)
{
	fixture_owe(fixture_share(tw), fixture_far(), 20);
}

/* A worker, to whom a timer left a wheel, does nothing either when the shares are used up. */
static void worker_without_share_throttled(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);

	fixture_arm(test, tw, after(1000 * NSEC_PER_SEC));
	use_up_shares(tw);
	copy_work_fn(&tw->work.work);
	KUNIT_EXPECT_EQ(test, tw->inner.longest_run, 0);
	KUNIT_ASSERT_PTR_EQ(test, tw->waits_for, fixture_share(tw));

	/* It has no timer, also when all is cancelled and more is armed. */
	spin_lock_bh(&tw->lock);
	tw_reprogram_timer(tw, TW_NEVER);
	tw_reprogram_timer(tw, tw->wheel.next);
	spin_unlock_bh(&tw->lock);
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&tw->timer));
	KUNIT_EXPECT_PTR_EQ(test, tw->waits_for, fixture_share(tw));
}

/* One that is closing is not set to wait: nobody would take it out again. */
static void closing_wheel_not_throttled(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);

	use_up_shares(tw);
	tw->closing = true;
	copy_work_fn(&tw->work.work);
	KUNIT_EXPECT_NULL(test, tw->waits_for);
}

/* A run with few timers to a slot, or with few at all, was not paid for. */
static void only_full_slots_free(struct kunit *test)
{
	static const struct {
		u32 timers;
		u32 of_a_slot;
		bool paid;
	} runs[] = { { 1000, 1000, true }, { 300, 3, false }, { 10, 10, false } };
	struct twheel *tw[ARRAY_SIZE(runs)];
	s64 due = after(SOON), last = due;
	unsigned int i;
	u32 n;

	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		tw[i] = fixture_wheel(test, TICK);
		for (n = 0; n < runs[i].timers; n++)
			fixture_arm(test, tw[i], due + n / runs[i].of_a_slot * 8 * TICK);
		hold_back(test, tw[i]);
		last = max_t(s64, last, due + n / runs[i].of_a_slot * 8 * TICK);
	}
	fixture_sleep_until(last);
	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		struct tw_did did = {};

		spin_lock_bh(&tw[i]->lock);
		tw_run(tw[i], ktime_get(), &did);
		spin_unlock_bh(&tw[i]->lock);
		KUNIT_EXPECT_EQ(test, did.paid, runs[i].paid);
	}
}

/* Most that a run is charged */
static u64 most_charged(void)
{
	return 200 * NSEC_PER_USEC + 2000ULL * copy_budget;
}

/* Somebody else had the processor in the middle of a run: that is not charged. */
static void interrupted_run_charged_by_its_budget(struct kunit *test)
{
	unsigned int tries = 0;

	KUNIT_EXPECT_EQ(test, tw_ran_for(ktime_get() - NSEC_PER_SEC), most_charged());
	while (tw_ran_for(ktime_get()) == most_charged() && tries < 100)
		tries++;
	KUNIT_EXPECT_LT(test, tries, 100);
}

static void spin_for(s64 ns)
{
	s64 end = after(ns);

	while (ktime_get_ns() < end)
		udelay(5);
}

static void soft_interrupt(struct tasklet_struct *tasklet)
{
	spin_for(20 * NSEC_PER_MSEC);
}

static DECLARE_TASKLET(somebody_else, soft_interrupt);

/* What comes as soon as a worker lets soft interrupts in is not its user's time. */
static void worker_not_charged_for_others(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);
	struct tw_share *share = fixture_share(tw);
	unsigned int tries = 0;
	s64 start;

	/* So that nothing is paid off */
	fixture_owe(share, fixture_far(), 0);
	do {
		share->ns = 0;
		start = ktime_get_ns();
		tasklet_schedule(&somebody_else);
		copy_work_fn(&tw->work.work);
		KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 20 * NSEC_PER_MSEC);
		/* A run that was interrupted itself is charged as much as can be. */
	} while (share->ns >= most_charged() && ++tries < 20);
	KUNIT_EXPECT_LT(test, tries, 20);
	tasklet_kill(&somebody_else);
}

#define WHEELS 3

/* Wheels of one user, of which each has one timer, and waits as it is due */
static void have_all_wait(struct kunit *test, struct twheel **tw)
{
	unsigned int i;

	for (i = 0; i < WHEELS; i++) {
		tw[i] = fixture_wheel(test, TICK);
		use_up_shares(tw[i]);
		fixture_arm(test, tw[i], after(10 * NSEC_PER_MSEC));
	}
	for (i = 0; i < WHEELS; i++)
		wait_until(test, waits_for_turn, tw[i]);
}

static unsigned int wakeups;

static int count_wakeup(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	wakeups++;
	return 0;
}

static void begin_to_wait(struct twheel *tw, struct wait_queue_entry *reader)
{
	wakeups = 0;
	init_waitqueue_func_entry(reader, count_wakeup);
	add_wait_queue(&tw->wait, reader);
}

/* Who wants to know does what was deferred, and tells those that wait. */
static void assisted_wheel_leaves_queue(struct kunit *test)
{
	struct wait_queue_entry reader;
	struct twheel *tw[WHEELS];

	have_all_wait(test, tw);
	begin_to_wait(tw[0], &reader);
	KUNIT_EXPECT_FALSE(test, copy_assist(tw[0]));
	remove_wait_queue(&tw[0]->wait, &reader);
	KUNIT_EXPECT_EQ(test, wakeups, 1);
	KUNIT_EXPECT_EQ(test, tw[0]->stats.expired, 1);
	KUNIT_EXPECT_NULL(test, tw[0]->waits_for);
	KUNIT_EXPECT_EQ(test, tw[1]->stats.expired, 0);
	KUNIT_EXPECT_PTR_EQ(test, tw[1]->waits_for, fixture_share(tw[1]));
}

/* What a program that polls sees, and not a thread of the kernel, as this is one */
static u32 poll_of_program(struct file *file)
{
	u32 found;

	current->flags &= ~PF_KTHREAD;
	found = (__force u32)tw_fops.poll(file, NULL);
	current->flags |= PF_KTHREAD;
	return found;
}

/*
 * So does a program that polls, even if it never reads. A thread of the kernel does not, as
 * aio has one that polls: nobody would be charged.
 */
static void polled_wheel_assisted(struct kunit *test)
{
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	struct twheel *tw[WHEELS];

	KUNIT_ASSERT_NOT_NULL(test, file);
	have_all_wait(test, tw);
	file->private_data = tw[0];
	KUNIT_EXPECT_EQ(test, (__force u32)tw_fops.poll(file, NULL), 0);
	KUNIT_EXPECT_EQ(test, tw[0]->stats.expired, 0);
	KUNIT_EXPECT_EQ(test, poll_of_program(file), (__force u32)(EPOLLIN | EPOLLRDNORM));
	KUNIT_EXPECT_EQ(test, tw[0]->stats.expired, 1);
	KUNIT_EXPECT_EQ(test, tw[1]->stats.expired, 0);
}

/* The lock of a wheel is taken when a soft interrupt comes, for its timer or for its turn. */
static void expect_not_waited_for(struct kunit *test, struct twheel *tw,
				  enum hrtimer_restart (*callback)(struct hrtimer *timer),
				  struct hrtimer *timer)
{
	u64 expired;

	local_bh_disable();
	copy_hooks.lock_taken = true;
	callback(timer);
	copy_hooks.lock_taken = false;
	expired = tw->stats.expired;
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, expired, 0);
	wait_until(test, all_expired, tw);
}

/* Threads of a program may hold it one after the other: then the worker does the work. */
static void taken_lock_not_waited_for(struct kunit *test)
{
	s64 due = after(SOON);
	struct twheel *tw[2];
	struct tw_share *share;
	unsigned int i;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "locks are waited for there");
	for (i = 0; i < ARRAY_SIZE(tw); i++) {
		tw[i] = fixture_wheel(test, TICK);
		fixture_arm(test, tw[i], due);
		hold_back(test, tw[i]);
	}
	fixture_sleep_until(due + TICK);
	expect_not_waited_for(test, tw[0], copy_timer_fn, &tw[0]->timer);
	share = fixture_share(tw[1]);
	spin_lock_bh(&share->lock);
	list_add_tail(&tw[1]->turn, &share->waiting);
	spin_unlock_bh(&share->lock);
	expect_not_waited_for(test, tw[1], copy_turns_fn, &share->timer);
}

/* Who finds nothing to do leaves nothing to others. */
static void caught_up_worker_not_queued(struct kunit *test)
{
	struct twheel *tw = fixture_shared_wheel(test, TICK, 1);

	fixture_arm(test, tw, after(1000 * NSEC_PER_SEC));
	flush_delayed_work(&tw->work);
	copy_catch_up(tw);
	KUNIT_EXPECT_EQ(test, work_busy(&tw->work.work), 0);
}

/* The worker, with as little budget as can be */
static void work(struct twheel *tw)
{
	const u32 before = copy_budget;

	copy_budget = TW_BUDGET_MIN;
	copy_work_fn(&tw->work.work);
	copy_budget = before;
}

/* A worker keeps its thread for some runs, not for one, nor until nothing is left. */
static void worker_leaves_its_place_after_some_runs(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);
	const u32 nr = 2 * TW_PACE_RUNS * TW_BUDGET_MIN;
	s64 due = after(SOON);
	u64 expired;
	u32 i;

	/* Each at a tick of its own, which is a piece of work. */
	for (i = 0; i < nr; i++)
		fixture_arm(test, tw, due + i * TICK);
	hold_back(test, tw);
	fixture_sleep_until(due + nr * TICK);
	work(tw);
	expired = tw->stats.expired;
	KUNIT_EXPECT_GT(test, expired, TW_BUDGET_MIN);
	KUNIT_EXPECT_LE(test, expired, TW_PACE_RUNS * TW_BUDGET_MIN);
	/* What was left was put into the queue. */
	wait_until(test, all_expired, tw);
}

/* While there is time for what is left, the worker comes again after a rest. */
static void worker_rests_outside_of_its_place(struct kunit *test)
{
	const s64 tick = 16 * NSEC_PER_MSEC, slot = TW_LVL_CLK_DIV * tick;
	struct twheel *tw = fixture_wheel(test, tick);
	s64 start = (div_s64(ktime_get_ns(), slot) + 3) * slot;
	unsigned int i, tries = 0;

	tw->wheel.phase = 0;
	for (i = 0; i < 1000; i++)
		fixture_arm(test, tw, start);
	hold_back(test, tw);
	/* By then, the slot is to be cascaded. */
	fixture_sleep_until(start - slot + tick);
	/* Again if the rest was over before it was looked whether there is one. */
	do
		work(tw);
	while (!timer_pending(&tw->work.timer) && ++tries < 3);
	KUNIT_EXPECT_LT(test, tries, 3);
	KUNIT_EXPECT_GT(test, tw->inner.cascaded, TW_BUDGET_MIN);
}

/* There is time as long as each timer that is left has 20 us. */
static void time_enough_for_what_is_left(struct kunit *test)
{
	static const struct {
		u32 tick;
		s64 ahead;
		u32 left;
		bool enough;
	} works[] = {
		{ 16 * NSEC_PER_MSEC, 64, 51199, true },
		{ 16 * NSEC_PER_MSEC, 64, 51200, false },
		/* 20 us for each of so many is more than 32 bits. */
		{ 16 * NSEC_PER_MSEC, 64, 265000, false },
		{ 16 * NSEC_PER_MSEC, 0, 0, false },
		{ NSEC_PER_SEC, S64_MAX, U32_MAX, true },
		{ 1000, 1, 1, false },
	};
	struct twheel *tw = fixture_wheel(test, TICK);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(works); i++) {
		struct tw_step step = { .ahead = works[i].ahead, .left = works[i].left };

		tw_clock_set(&tw->wheel.clock, TWHEEL_CLOCK_MONOTONIC, works[i].tick);
		KUNIT_EXPECT_EQ(test, tw_has_time(tw, &step), works[i].enough);
	}
}

/* As if the clock was set back: the wheel's ticks go on, and its timer is for the same one. */
static void clock_set_back_ticks_go_on(struct kunit *test)
{
	struct twheel *tw = fixture_wheel(test, TICK);
	unsigned int armed;
	s64 tick, timer_tick;

	for (armed = 0; armed < 2; armed++) {
		spin_lock_bh(&tw->lock);
		tw_now(tw, &tick);
		tw_wheel_forward(&tw->wheel, tick + 100000);
		timer_tick = tw->timer_tick;
		tw_now(tw, &tick);
		spin_unlock_bh(&tw->lock);
		KUNIT_EXPECT_EQ(test, tick, tw->wheel.clk - 1);
		KUNIT_EXPECT_EQ(test, timer_tick == TW_NEVER, !armed);
		if (armed) {
			KUNIT_EXPECT_GT(test, tw->timer_tick, timer_tick + 90000);
			KUNIT_EXPECT_LE(test, tw->timer_tick, timer_tick + 100000);
		} else {
			KUNIT_EXPECT_EQ(test, tw->timer_tick, TW_NEVER);
			fixture_arm(test, tw, after(1000 * NSEC_PER_SEC));
		}
	}
}

/* Who rings the doorbell does all in one run, within its budget, and wakes who waits. */
static void due_shared_timers_wake_once(struct kunit *test)
{
	struct twheel *tw = fixture_shared_wheel(test, TICK, 10);
	struct tw_shared *shared = tw->shared;
	struct wait_queue_entry reader;
	u32 i;

	for (i = 0; i < 10; i++)
		atomic64_set(&shared->words[i], 1 | TWHEEL_WORD_ARMED);
	atomic64_set(&shared->dirty[0], GENMASK(9, 0));
	atomic64_set(&shared->groups[0], GENMASK(9 / TW_GROUP, 0));
	begin_to_wait(tw, &reader);
	copy_catch_up(tw);
	remove_wait_queue(&tw->wait, &reader);
	KUNIT_EXPECT_EQ(test, wakeups, 1);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 10);
	KUNIT_EXPECT_LE(test, tw->inner.largest_run, copy_budget);
}

/* Groups, each with more timers than a run may inspect */
#define GROUPS 8

/* Far more runs than it may take */
#define MOST_RUNS 1000

static unsigned int runs;

static void arm_groups(struct twheel *tw, unsigned int first, unsigned int nr, s64 deadline)
{
	struct tw_shared *shared = tw->shared;
	unsigned int i;

	for (i = first * TW_GROUP; i < (first + nr) * TW_GROUP; i++)
		atomic64_set(&shared->words[i], deadline | TWHEEL_WORD_ARMED);
	for (i = first * TW_GROUP_WORDS; i < (first + nr) * TW_GROUP_WORDS; i++)
		atomic64_set(&shared->dirty[i], U64_MAX);
	atomic64_set(&shared->groups[0], GENMASK(first + nr - 1, first));
}

/* What is not done by who catches up is done by nobody. */
static void stop_others(struct twheel *tw)
{
	hrtimer_cancel(&tw->timer);
	cancel_delayed_work_sync(&tw->work);
}

/* After a run, a tick passes. Is the program to go on? */
static bool ran(struct twheel *tw)
{
	local_bh_disable();
	spin_for(TICK);
	hrtimer_cancel(&tw->timer);
	local_bh_enable();
	stop_others(tw);
	return ++runs < MOST_RUNS;
}

static void catch_up_beside(struct twheel *tw, void (*other)(struct twheel *tw))
{
	const u32 before = copy_budget;

	stop_others(tw);
	copy_budget = TW_BUDGET_MIN;
	runs = 0;
	copy_hooks.tw = tw;
	copy_hooks.after_run = other;
	copy_catch_up(tw);
	copy_hooks.after_run = NULL;
	copy_budget = before;
	stop_others(tw);
}

static void armed_far_again(struct twheel *tw)
{
	if (ran(tw))
		arm_groups(tw, 0, GROUPS, after(1000 * NSEC_PER_SEC));
}

/* A program that arms faster than its timers are found gets back from the doorbell. */
static void catching_up_ends(struct kunit *test)
{
	struct twheel *tw = fixture_shared_wheel(test, TICK, GROUPS * TW_GROUP);

	arm_groups(tw, 0, GROUPS, after(1000 * NSEC_PER_SEC));
	catch_up_beside(tw, armed_far_again);
	KUNIT_EXPECT_LT(test, runs, MOST_RUNS);
	KUNIT_EXPECT_EQ(test, tw->shared->wheel.pending, GROUPS * TW_GROUP);
}

/* All timers are due. */
static struct twheel *due_groups(struct kunit *test, unsigned int first)
{
	struct twheel *tw = fixture_shared_wheel(test, TICK, GROUPS * TW_GROUP);
	s64 due = after(SOON);

	arm_groups(tw, first, GROUPS - first, due);
	copy_catch_up(tw);
	stop_others(tw);
	KUNIT_ASSERT_EQ(test, tw->stats.expired, 0);
	fixture_sleep_until(due + TICK);
	return tw;
}

/* What is moved to later is not dirty, and inspected when it was due. */
static void moved_again(struct twheel *tw)
{
	s64 deadline = after(3 * TICK);
	unsigned int i;

	if (ran(tw))
		for (i = 0; i < GROUPS * TW_GROUP; i++)
			atomic64_set(&tw->shared->words[i], deadline | TWHEEL_WORD_ARMED);
}

/* Nor does a program that moves timers faster than they are inspected wait. */
static void catching_up_ends_with_nothing_dirty(struct kunit *test)
{
	struct twheel *tw = due_groups(test, 0);

	catch_up_beside(tw, moved_again);
	KUNIT_EXPECT_GT(test, runs, 0);
	KUNIT_EXPECT_LT(test, runs, MOST_RUNS);
}

static void armed_near_again(struct twheel *tw)
{
	if (ran(tw))
		arm_groups(tw, 0, 1, after(TICK));
}

/* Nor does it wait for what became due meanwhile; but all that was due is done. */
static void catching_up_does_what_was_due(struct kunit *test)
{
	struct twheel *tw = due_groups(test, 1);

	catch_up_beside(tw, armed_near_again);
	KUNIT_EXPECT_LT(test, runs, MOST_RUNS);
	KUNIT_EXPECT_GE(test, tw->stats.expired, (GROUPS - 1) * TW_GROUP);
}

static void nothing(struct tasklet_struct *tasklet)
{
}

/* A worker makes room for soft interrupts twice. Returns how often it slept then. */
static unsigned int make_room_twice(s64 *took)
{
	s64 start = ktime_get_ns();

	copy_hooks.sleeps = 0;
	tw_yield_to_ksoftirqd();
	tw_yield_to_ksoftirqd();
	*took = ktime_get_ns() - start;
	return copy_hooks.sleeps;
}

/* However long soft interrupts are pending, workers make room for them only now and then. */
static void worker_yields_now_and_then(struct kunit *test)
{
	unsigned int none, sleeps, tries = 0;
	DECLARE_TASKLET(pending, nothing);
	s64 took;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "no worker yields there");
	/* Again if a soft interrupt was pending just then. */
	do {
		local_bh_disable();
		none = make_room_twice(&took);
		local_bh_enable();
	} while (none && ++tries < 20);
	tries = 0;
	local_bh_disable();
	tasklet_schedule(&pending);
	/* Again if somebody else had the processor between the two. */
	do {
		spin_for(TW_ROOM_EACH_NS + NSEC_PER_MSEC);
		sleeps = make_room_twice(&took);
	} while (took >= TW_ROOM_EACH_NS && ++tries < 20);
	local_bh_enable();
	tasklet_kill(&pending);
	KUNIT_EXPECT_EQ(test, none, 0);
	KUNIT_EXPECT_EQ(test, sleeps, TW_ROOM_TIMES);
}

/* Its worker runs while another wheel has the place, and does not take it from others. */
static void shared_wheel_needs_no_place(struct kunit *test)
{
	struct twheel *other = fixture_wheel(test, TICK);
	struct twheel *tw = fixture_shared_wheel(test, TICK, 1);
	s64 due = after(SOON);

	fixture_arm(test, tw, due);
	hold_back(test, tw);
	KUNIT_EXPECT_TRUE(test, tw_place_get(other));
	fixture_sleep_until(due + TICK);
	copy_work_fn(&tw->work.work);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&tw->place_wait));
	KUNIT_EXPECT_FALSE(test, tw->place);
	KUNIT_EXPECT_TRUE(test, other->place);
	tw_place_put(other);
	KUNIT_EXPECT_EQ(test, tw->user->places, 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(timer_early_not_restarted),
	KUNIT_CASE(timer_found_lock_taken_set_again),
	KUNIT_CASE(throttled_wheel_runs_when_paid_off),
	KUNIT_CASE(worker_without_share_throttled),
	KUNIT_CASE(closing_wheel_not_throttled),
	KUNIT_CASE(only_full_slots_free),
	KUNIT_CASE(interrupted_run_charged_by_its_budget),
	KUNIT_CASE(worker_not_charged_for_others),
	KUNIT_CASE(assisted_wheel_leaves_queue),
	KUNIT_CASE(polled_wheel_assisted),
	KUNIT_CASE(taken_lock_not_waited_for),
	KUNIT_CASE(caught_up_worker_not_queued),
	KUNIT_CASE(worker_leaves_its_place_after_some_runs),
	KUNIT_CASE(worker_rests_outside_of_its_place),
	KUNIT_CASE(time_enough_for_what_is_left),
	KUNIT_CASE(clock_set_back_ticks_go_on),
	KUNIT_CASE(due_shared_timers_wake_once),
	KUNIT_CASE(catching_up_ends),
	KUNIT_CASE(catching_up_ends_with_nothing_dirty),
	KUNIT_CASE(catching_up_does_what_was_due),
	KUNIT_CASE(worker_yields_now_and_then),
	KUNIT_CASE(shared_wheel_needs_no_place),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_expire",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
