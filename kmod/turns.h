/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For how long the wheels of a user may keep each processor, and those that wait for
 * their turn on it; and how many of them workers turn at a time.
 */
#ifndef TW_TURNS_H
#define TW_TURNS_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct twheel;

/**
 * struct tw_share - a user's share of a processor's time
 * @timer: gives those that wait their turns, when there is time again; is set while
 *	there are some
 * @lock: guards all that follows; may be taken under that of a wheel
 * @window: the last window in which a wheel was to be turned
 * @ns: for how long wheels kept the processor, by then, less the shares of the windows
 *	since
 * @waiting: wheels that wait for their turn, each behind those that came before
 */
struct tw_share {
	struct hrtimer timer;

	/* guards all that follows */
	spinlock_t lock;
	u64 window;
	u64 ns;
	struct list_head waiting;
};

struct tw_share __percpu *tw_shares_create(void);
void tw_shares_destroy(struct tw_share __percpu *shares);
bool tw_share_may_run(struct tw_share *share, ktime_t now);
bool tw_share_may_work(struct tw_share *share, ktime_t now);
void tw_share_ran(struct tw_share *share, u64 ns);
void tw_share_wait(struct tw_share *share, struct twheel *tw, ktime_t now);
void tw_share_leave(struct twheel *tw);
struct twheel *tw_share_next(struct tw_share *share, ktime_t now, u64 ran);
bool tw_place_take(struct twheel *tw);
void tw_place_give(struct twheel *tw);
void tw_place_leave(struct twheel *tw);

#endif /* TW_TURNS_H */
