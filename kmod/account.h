/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The account of a user: all wheels that the user opened, and their memory.
 */
#ifndef TW_ACCOUNT_H
#define TW_ACCOUNT_H

#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* A program at the limit of its cgroup shall get an error, not be killed. */
#define TW_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* The unit of the limit of a user, in bytes: about what a timer takes */
#define TW_TIMER_BYTES 40

struct pid_namespace;

/**
 * struct tw_payer - whom wheels are charged to
 * @container: PID namespace that is the user's container, held by the account; or NULL
 * @uid: the user, in the initial user namespace
 * @privileged: the opener had CAP_SYS_RESOURCE
 *
 * Payers are compared byte by byte: there is no padding.
 */
struct tw_payer {
	struct pid_namespace *container;
	u32 uid;
	u32 privileged;
};

/*
 * There are this many queues of wheels that are due, see expire.c. Where there are more processors,
 * some share one: a user's part of each is not charged to the user.
 */
#define TW_QUEUES 8

/**
 * struct tw_queue - wheels that became due on a processor, see expire.c
 * @lock: guards @users, and the part of it that each user has
 * @users: how many have wheels in it
 */
struct tw_queue {
	raw_spinlock_t lock;	/* guards the next field */
	unsigned int users;
};

/**
 * struct tw_user - a payer who has wheels open
 * @payer: who it is
 * @node: entry in the tree of all users, guarded like @wheels and @bytes by the lock of that
 * @wheels: how many
 * @bytes: memory of all wheels
 * @run_cost: for how many ns the last callback of one kept a processor, see expire.c
 * @queued: the user's part of each queue; a wheel is in one at most. The first has its second
 *	hrtimer set
 */
struct tw_user {
	struct tw_payer payer;
	struct rb_node node;
	unsigned int wheels;
	u64 bytes;
	u32 run_cost;
	struct list_head queued[TW_QUEUES];
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

struct tw_user *tw_user_get(u64 bytes);
void tw_user_put(struct tw_user *user);
bool tw_user_has_room(const struct tw_user *user, u64 bytes);
bool tw_user_charge(struct tw_user *user, u64 bytes);
void tw_user_uncharge(struct tw_user *user, u64 bytes);
bool tw_may_exceed_limits(void);
void tw_default_limits(void);

#endif /* TW_ACCOUNT_H */
