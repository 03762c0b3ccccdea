// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a wheel in use: it is created, set up, given an eventfd, and destroyed. See
 * context.h.
 */
#include <linux/err.h>
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "account.h"
#include "compat.h"
#include "context.h"
#include "shared.h"
#include "validate.h"

/*
 * What a wheel costs its user: kmalloc() rounds up. Each is charged an account, too, as who has
 * many uids may have one for each wheel.
 */
#define TW_WHEEL_CHARGE \
	(roundup_pow_of_two(sizeof(struct twheel)) + roundup_pow_of_two(sizeof(struct tw_user)))

static atomic64_t tw_next_nr;

/**
 * tw_create() - make a wheel for the current task
 *
 * Context: may sleep.
 * Return: the wheel, or an error pointer: -ENOMEM or -ENOSPC.
 */
struct twheel *tw_create(void)
{
	struct tw_user *user;
	struct tw_clock clock;
	struct twheel *tw;

	BUILD_BUG_ON(sizeof(struct tw_node) != 32);
	BUILD_BUG_ON(sizeof(struct tw_period) != sizeof(struct tw_node));
	BUILD_BUG_ON(TW_SLOTS > U16_MAX);
	BUILD_BUG_ON(TW_FEW_NODES % TW_WORD_NODES);

	user = tw_user_get(TW_WHEEL_CHARGE);
	if (IS_ERR(user))
		return ERR_CAST(user);
	tw = kzalloc(sizeof(*tw), TW_GFP);
	if (!tw) {
		tw_user_uncharge(user, TW_WHEEL_CHARGE);
		tw_user_put(user);
		return ERR_PTR(-ENOMEM);
	}
	tw->user = user;
	tw->memcg = get_mem_cgroup_from_mm(current->mm);
	tw->nr = atomic64_inc_return(&tw_next_nr);
	spin_lock_init(&tw->lock);
	spin_lock_init(&tw->eventfd_lock);
	init_waitqueue_head(&tw->wait);
	INIT_LIST_HEAD(&tw->turn);
	hrtimer_setup(&tw->timer, tw_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	hrtimer_setup(&tw->again, tw_again_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	tw->timer_tick = TW_NEVER;
	tw->limit = READ_ONCE(tw_max_timers);
	tw->unit = TWHEEL_EVENT_SIZE_FULL;

	tw_clock_init(&clock);
	tw_table_init(&tw->table);
	tw_table_init(&tw->periods);
	tw_wheel_init(&tw->wheel, &tw->table, &clock,
		      tw_clock_floor(&clock, tw_clock_now(&clock)), tw->nr);
	tw_stats_add(tw);
	return tw;
}

/* Choose clock, tick, limit and mode, and give it shared timers or NULL. */
static int tw_set_up(struct twheel *tw, const struct twheel_setup *setup,
		     struct tw_shared *shared)
{
	u32 limit = setup->limit ?: tw->limit;
	struct tw_slot *slots;
	struct tw_clock clock;
	bool few;

	lockdep_assert_held(&tw->lock);
	if (tw->fixed || tw->stats.armed)
		return -EBUSY;
	if (setup->shared > limit)
		return -ENOSPC;
	WRITE_ONCE(tw->fixed, true);
	tw->flags = setup->flags;
	tw->limit = limit - setup->shared;
	WRITE_ONCE(tw->unit, setup->flags & TWHEEL_SETUP_COUNT ? sizeof(u64) :
		   setup->event_size ?: TWHEEL_EVENT_SIZE_FULL);
	hrtimer_setup(&tw->timer, tw_timer_fn, tw_clock_kernel_id(setup->clock),
		      HRTIMER_MODE_ABS);

	clock = tw->wheel.clock;
	tw_clock_set(&clock, setup->clock, setup->tick);
	slots = tw->wheel.slots;
	few = tw_wheel_is_small(&tw->wheel);
	tw_wheel_init(&tw->wheel, &tw->table, &clock,
		      tw_clock_floor(&clock, tw_clock_now(&clock)), tw->nr);
	if (slots)
		tw_wheel_set_slots(&tw->wheel, slots, few);
	/* Pairs with tw_shared_of(). */
	smp_store_release(&tw->shared, shared);
	if (shared)
		WRITE_ONCE(tw->unattended, true);
	return 0;
}

/**
 * tw_setup() - choose clock, tick, limit and mode
 * @tw: the wheel
 * @setup: what to choose
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -ENOSPC, -ENOMEM, -EBUSY or -EINTR.
 */
int tw_setup(struct twheel *tw, const struct twheel_setup *setup)
{
	struct tw_shared *shared = NULL;
	int ret;

	ret = tw_check_setup(setup);
	if (ret)
		return ret;
	if (setup->limit > TW_MOST_TIMERS ||
	    (setup->limit > READ_ONCE(tw_max_timers) && !tw_may_exceed_limits()))
		return -ENOSPC;
	/* Before so much is allocated for nothing. tw_set_up() looks once more. */
	if (READ_ONCE(tw->fixed) || data_race(READ_ONCE(tw->stats.armed)))
		return -EBUSY;
	if (setup->limit && setup->shared > setup->limit)
		return -ENOSPC;
	if (setup->shared) {
		shared = tw_shared_create(tw, setup->shared, tw_clock_tick(setup->tick));
		if (IS_ERR(shared))
			return PTR_ERR(shared);
	}

	spin_lock_bh(&tw->lock);
	ret = tw_set_up(tw, setup, shared);
	spin_unlock_bh(&tw->lock);
	if (ret)
		tw_shared_destroy(tw, shared);
	return ret;
}

/**
 * tw_set_eventfd() - set or end the eventfd to signal
 * @tw: the wheel
 * @fd: the eventfd, or -1
 *
 * Context: may sleep.
 * Return: 0, -EBADF, -EINVAL, -EBUSY or -ENOENT.
 */
int tw_set_eventfd(struct twheel *tw, int fd)
{
	struct eventfd_ctx *ctx = NULL;
	int ret = 0;

	if (fd != -1) {
		ctx = eventfd_ctx_fdget(fd);
		if (IS_ERR(ctx))
			return PTR_ERR(ctx);
	}
	spin_lock_bh(&tw->eventfd_lock);
	if (ctx && tw->eventfd)
		ret = -EBUSY;
	else if (!ctx && !tw->eventfd)
		ret = -ENOENT;
	else
		swap(ctx, tw->eventfd);
	spin_unlock_bh(&tw->eventfd_lock);
	if (ctx)
		eventfd_ctx_put(ctx);
	/* Either this sees what became ready, or is due, or that sees the eventfd. */
	if (!ret && fd != -1)
		tw_set_unattended(tw);
	if (!ret && tw_readable(tw))
		tw_wake(tw);
	return ret;
}

/**
 * tw_destroy() - end a wheel and everything in it
 * @tw: the wheel, which nobody uses any more
 *
 * Context: may sleep.
 */
void tw_destroy(struct twheel *tw)
{
	spin_lock_bh(&tw->lock);
	tw->closing = true;
	spin_unlock_bh(&tw->lock);
	tw_end_timers(tw);

	tw_stats_del(tw);
	if (tw->eventfd)
		eventfd_ctx_put(tw->eventfd);
	tw_shared_destroy(tw, tw->shared);
	tw_free_nodes(tw);
	tw_user_uncharge(tw->user, TW_WHEEL_CHARGE);
	tw_user_put(tw->user);
	mem_cgroup_put(tw->memcg);
	kfree(tw);
}
