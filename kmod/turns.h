/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A user's share of a processor's time, the wheels that wait for their turn, and the places
 * of a user's workers.
 *
 * Wheels run in soft interrupts and in workers, whose time the scheduler does not charge
 * to the user. So it is charged here: on each processor, the wheels of one user together
 * get a part of each short window of time. When that share is used up, a wheel is
 * throttled: it is put at the end of a queue. The timer of the share runs the wheels in
 * that queue, one after the other, as soon as there is time again.
 *
 * What a worker cascades is not charged where no timers are shared, as arming them has paid
 * for it. But that can be saved up, and a move to later pays little. So only a second of it
 * is free, and then a part of each window. And so that it does not fill the processors
 * meanwhile, workers run only so many of these wheels of a user at a time: each has a place,
 * and the others wait for one.
 */
#ifndef TW_TURNS_H
#define TW_TURNS_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct twheel;

/**
 * struct tw_share - a user's share of a processor's time
 * @timer: runs waiting wheels when there is time again. Set while some wait, or did
 * @lock: guards all that follows; may be taken under the lock of a wheel
 * @window: the number of the window of time in which a wheel ran last
 * @ns: the time that wheels owe in that window: how long they ran, less the shares of all
 *	windows since
 * @free_ns: for how long workers did what was free, less the free parts of all windows since
 * @waiting: wheels that wait for their turn, in the order in which they came
 */
struct tw_share {
	struct hrtimer timer;

	/* guards all that follows */
	spinlock_t lock;
	u64 window;
	u64 ns;
	u64 free_ns;
	struct list_head waiting;
};

bool tw_share_may_run(struct tw_share *share, ktime_t now);
bool tw_share_may_work(struct tw_share *share, ktime_t now);
void tw_share_ran(struct tw_share *share, u64 ns);
void tw_share_ran_free(struct tw_share *share, u64 ns);
u64 tw_share_paid_off(struct tw_share *share, ktime_t now);
void tw_share_wait(struct tw_share *share, struct twheel *tw, ktime_t now);
void tw_share_leave(struct twheel *tw);
struct twheel *tw_share_next(struct tw_share *share, ktime_t now);
bool tw_place_get(struct twheel *tw);
void tw_place_put(struct twheel *tw);
void tw_place_leave(struct twheel *tw);

#endif /* TW_TURNS_H */
