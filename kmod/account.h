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

/**
 * enum tw_turns - wheels in the queue, see expire.c
 * @TW_ANEW: those that became due just now
 * @TW_AGAIN: those for which there was no credit, or of which something was left
 * @TW_TURNS: how many lists that are
 */
enum tw_turns {
	TW_ANEW,
	TW_AGAIN,
	TW_TURNS,
};

/**
 * struct tw_user - a payer who has wheels open
 * @payer: who it is
 * @node: entry in the tree of all users, guarded like @wheels and @bytes by the lock of that
 * @wheels: how many
 * @bytes: memory of all wheels
 * @run_cost: for how many ns a callback of one keeps a processor, on average, see expire.c
 * @queue_lock: guards what follows
 * @queued: how many of them are in the queue
 * @turns: those wheels. The first of each list has its second hrtimer set
 */
struct tw_user {
	struct tw_payer payer;
	struct rb_node node;
	unsigned int wheels;
	u64 bytes;
	u32 run_cost;

	raw_spinlock_t queue_lock;	/* guards all that follows */
	unsigned int queued;
	struct list_head turns[TW_TURNS];
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

struct tw_user *tw_user_get(void);
void tw_user_put(struct tw_user *user);
bool tw_user_has_room(const struct tw_user *user, u64 bytes);
bool tw_user_charge(struct tw_user *user, u64 bytes);
void tw_user_uncharge(struct tw_user *user, u64 bytes);
bool tw_may_exceed_limits(void);
void tw_default_limits(void);

#endif /* TW_ACCOUNT_H */
