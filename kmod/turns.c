// SPDX-License-Identifier: GPL-2.0
/*
 * Shares, turns and places: accounting of the time, and the queues. See turns.h.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/workqueue.h>

#include "account.h"
#include "compat.h"
#include "context.h"
#include "turns.h"

/*
 * A processor's time is shared out in windows of 2^this ns. They are short, so that the
 * kernel does not find soft interrupts that never end, and leaves them to a thread.
 */
#define TW_WINDOW_SHIFT 18

/* Most of a window that the wheels of one user may keep a processor */
#define TW_SHARE_NS ((1UL << TW_WINDOW_SHIFT) / 8)

/*
 * A worker may use the shares of eight windows at once: coming back in each window would
 * cost as much again, and that time is not charged to anybody.
 */
#define TW_WORKER_NS (8 * TW_SHARE_NS)

/* So much cascading is free at once, and so much of it in each window later on */
#define TW_FREE_MOST_NS NSEC_PER_SEC
#define TW_FREE_NS (TW_SHARE_NS / 8)

/*
 * A user without wheels who has had no more than so much of it, and owes less than a share, is
 * forgotten. So who uses ever new uids has to keep a processor busy for each account that is
 * kept.
 */
#define TW_FREE_FORGOTTEN_NS (TW_FREE_MOST_NS / 4)

/* For how long wheels kept the processor, beyond what is paid off by now */
static u64 tw_share_owes(struct tw_share *share, ktime_t now)
{
	u64 window = now >> TW_WINDOW_SHIFT;

	lockdep_assert_held(&share->lock);
	/* @now may be old: another caller may have read the clock later and locked earlier. */
	if (window > share->window) {
		u64 windows = window - share->window;

		share->ns -= min(share->ns, windows * TW_SHARE_NS);
		share->free_ns -= min(share->free_ns, windows * TW_FREE_NS);
		share->window = window;
	}
	return share->ns;
}

/**
 * tw_share_may_run() - may the timer of a wheel do what there is to do?
 * @share: of the processor that it would keep
 * @now: by ktime_get()
 *
 * However little each wheel has to do, a user can have so many of them that all
 * together would keep a processor busy. What was taken beyond the share of one window
 * is paid off in the next ones.
 *
 * Context: bottom halves are off.
 * Return: false when the share is used up, or others wait.
 */
bool tw_share_may_run(struct tw_share *share, ktime_t now)
{
	bool may;

	spin_lock(&share->lock);
	may = tw_share_owes(share, now) < TW_SHARE_NS && list_empty(&share->waiting);
	spin_unlock(&share->lock);
	return may;
}

/**
 * tw_share_may_work() - may a worker do what there is to do?
 * @share: of the processor that it would keep
 * @now: by ktime_get()
 *
 * Context: bottom halves are off.
 * Return: false when the share is used up.
 */
bool tw_share_may_work(struct tw_share *share, ktime_t now)
{
	bool may;

	spin_lock(&share->lock);
	may = tw_share_owes(share, now) < TW_WORKER_NS;
	spin_unlock(&share->lock);
	return may;
}

/**
 * tw_share_ran() - the kernel has turned a wheel
 * @share: of the processor that it kept
 * @ns: for how long
 *
 * Context: bottom halves are off.
 */
void tw_share_ran(struct tw_share *share, u64 ns)
{
	spin_lock(&share->lock);
	share->ns += ns;
	spin_unlock(&share->lock);
}

/**
 * tw_share_ran_free() - a worker has cascaded, which is free as far as it goes
 * @share: of the processor that it kept
 * @ns: for how long
 *
 * Context: bottom halves are off.
 */
void tw_share_ran_free(struct tw_share *share, u64 ns)
{
	u64 over;

	spin_lock(&share->lock);
	share->free_ns += ns;
	over = share->free_ns - min_t(u64, share->free_ns, TW_FREE_MOST_NS);
	share->free_ns -= over;
	share->ns += over;
	spin_unlock(&share->lock);
}

/**
 * tw_share_paid_off() - for how long is what a user without wheels has had to be remembered?
 * @share: of a processor
 * @now: by ktime_get()
 *
 * Context: any process.
 * Return: until all of it is paid off, in ns; or 0 if it is too little.
 */
u64 tw_share_paid_off(struct tw_share *share, ktime_t now)
{
	u64 windows, free = 0;

	spin_lock_bh(&share->lock);
	windows = tw_share_owes(share, now) / TW_SHARE_NS;
	if (share->free_ns > TW_FREE_FORGOTTEN_NS)
		free = share->free_ns / TW_FREE_NS;
	spin_unlock_bh(&share->lock);
	return max(windows, free) << TW_WINDOW_SHIFT;
}

/* Come back in the first window that has a share left. */
static void tw_share_start(struct tw_share *share, ktime_t now)
{
	u64 windows = max(1ULL, tw_share_owes(share, now) / TW_SHARE_NS);

	hrtimer_start(&share->timer, (share->window + windows) << TW_WINDOW_SHIFT,
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * tw_share_wait() - have a wheel wait for its turn
 * @share: of this processor
 * @tw: the wheel, which waits nowhere
 * @now: by ktime_get()
 *
 * Context: holds @tw->lock.
 */
void tw_share_wait(struct tw_share *share, struct twheel *tw, ktime_t now)
{
	lockdep_assert_held(&tw->lock);
	spin_lock(&share->lock);
	list_add_tail(&tw->turn, &share->waiting);
	WRITE_ONCE(tw->waits_for, share);
	/* A timer whose callback is about to run finds this wheel in the queue. */
	if (!hrtimer_is_queued(&share->timer))
		tw_share_start(share, now);
	spin_unlock(&share->lock);
}

/**
 * tw_share_leave() - a wheel needs no turn, or has it
 * @tw: the wheel
 *
 * Context: holds @tw->lock.
 */
void tw_share_leave(struct twheel *tw)
{
	struct tw_share *share = tw->waits_for;

	lockdep_assert_held(&tw->lock);
	if (!share)
		return;
	spin_lock(&share->lock);
	list_del_init(&tw->turn);
	spin_unlock(&share->lock);
	WRITE_ONCE(tw->waits_for, NULL);
}

/**
 * tw_share_next() - whose turn is it?
 * @share: the share
 * @now: by ktime_get()
 *
 * The wheel stays until its turn is over, see tw_turn_over(), although its lock is not
 * held.
 *
 * Context: soft interrupt.
 * Return: the wheel that waits for longest, or NULL if none waits, or the share is used
 * up: then the timer comes again.
 */
struct twheel *tw_share_next(struct tw_share *share, ktime_t now)
{
	struct twheel *tw = NULL;

	spin_lock(&share->lock);
	if (list_empty(&share->waiting))
		goto out;
	if (tw_share_owes(share, now) >= TW_SHARE_NS) {
		tw_share_start(share, now);
		goto out;
	}
	tw = list_first_entry(&share->waiting, struct twheel, turn);
	list_del_init(&tw->turn);
	atomic_inc(&tw->turns);
out:
	spin_unlock(&share->lock);
	return tw;
}

/* Places of a user. Half of the processors are left to workers of other users. */
static unsigned int tw_most_places(void)
{
	return max(1U, num_online_cpus() / 2);
}

/**
 * tw_place_get() - get a place for a wheel, so that its worker may run
 * @tw: the wheel, without shared timers
 *
 * A second of cascading is charged to nobody, and each wheel of a user may have a large slot
 * to cascade. Without places, so many workers, which have a higher priority than
 * programs, would keep all processors from other users.
 *
 * Context: the wheel's worker.
 * Return: false if there is none. Then the wheel waits, and its worker is queued when it
 * is given a place.
 */
bool tw_place_get(struct twheel *tw)
{
	struct tw_user *user = tw->user;
	bool place;

	spin_lock(&user->lock);
	if (!tw->place && user->places < tw_most_places()) {
		tw->place = true;
		user->places++;
		/* It may have waited, while there were fewer processors. */
		list_del_init(&tw->place_wait);
	}
	place = tw->place;
	/* A wheel that is closing must not wait again, see tw_place_leave(). */
	if (!place && list_empty(&tw->place_wait) && !READ_ONCE(tw->closing))
		list_add_tail(&tw->place_wait, &user->waiting);
	spin_unlock(&user->lock);
	return place;
}

/**
 * tw_place_put() - put the place of a wheel: the wheel that waits for longest gets it
 * @tw: the wheel, which has a place
 *
 * Context: any process.
 */
void tw_place_put(struct twheel *tw)
{
	struct tw_user *user = tw->user;
	struct twheel *next;

	spin_lock(&user->lock);
	tw->place = false;
	next = list_first_entry_or_null(&user->waiting, struct twheel, place_wait);
	/* There may be fewer processors now, and so fewer places. */
	if (next && user->places <= tw_most_places()) {
		next->place = true;
		/* Under the lock, as the wheel may be freed once it does not wait. */
		mod_delayed_work(tw_workqueue_of(next), &next->work, 0);
		list_del_init(&next->place_wait);
	} else {
		user->places--;
	}
	spin_unlock(&user->lock);
}

/**
 * tw_place_leave() - end the worker of a wheel, and its wait for a place
 * @tw: the wheel, which is closing
 *
 * Context: may sleep.
 */
void tw_place_leave(struct twheel *tw)
{
	spin_lock(&tw->user->lock);
	list_del_init(&tw->place_wait);
	spin_unlock(&tw->user->lock);
	cancel_delayed_work_sync(&tw->work);
	/* It got a place while it waited, and its worker did not run. */
	if (tw->place)
		tw_place_put(tw);
}
