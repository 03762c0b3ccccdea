/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The account of a user: the memory of all wheels that the user opened, and its shares of
 * the time of processors, see turns.h.
 */
#ifndef TW_ACCOUNT_H
#define TW_ACCOUNT_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/* A program at the limit of its cgroup shall get an error, not be killed. */
#define TW_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* The unit of the limit of a user, in bytes: about what a timer takes */
#define TW_TIMER_BYTES 40

struct tw_share;

/**
 * struct tw_payer - whom wheels are charged to
 * @uid: the user, in the initial user namespace
 * @privileged: the opener had CAP_SYS_RESOURCE
 */
struct tw_payer {
	uid_t uid;
	bool privileged;
};

/**
 * struct tw_user - a payer who has wheels open, or had not long ago
 * @payer: who it is
 * @refs: open wheels, and @forget if it is queued or runs; guarded like @used and @node by the
 *	lock of all users
 * @used: a reference was got since tw_user_put() found that there was one left
 * @node: entry in the tree of all users
 * @forget: comes when what the user has had is paid off
 * @bytes: memory of all wheels
 * @shares: of each processor
 * @lock: guards all that follows
 * @places: number of wheels that have a place, see turns.h
 * @waiting: wheels that wait for a place, in the order in which they came
 */
struct tw_user {
	struct tw_payer payer;
	unsigned int refs;
	bool used;
	struct rb_node node;
	struct delayed_work forget;
	atomic64_t bytes;
	struct tw_share __percpu *shares;

	/* guards all that follows */
	spinlock_t lock;
	unsigned int places;
	struct list_head waiting;
};

/*
 * Limits, which are parameters, see main.c. They can be set at any time, without a lock, so
 * each is read once for one decision, which is by the old or by the new one.
 */
extern unsigned int tw_max_timers;
extern unsigned int tw_max_user_timers;
extern unsigned int tw_max_unprivileged_timers;

/* The end of what may be set */
#define TW_MOST_TIMERS BIT(30)

bool tw_user_has_room(const struct tw_user *user, u64 bytes);
bool tw_user_charge(struct tw_user *user, u64 bytes);
void tw_user_uncharge(struct tw_user *user, u64 bytes);
bool tw_may_exceed_limits(void);
void tw_default_limits(void);

#endif /* TW_ACCOUNT_H */
