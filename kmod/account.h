/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The account of a user: the memory of all wheels that the user opened.
 */
#ifndef TW_ACCOUNT_H
#define TW_ACCOUNT_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/* A program at the limit of its cgroup shall get an error, not be killed. */
#define TW_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* The unit of the limit of a user, in bytes: about what a timer takes */
#define TW_TIMER_BYTES 40

struct pid_namespace;

/**
 * struct tw_payer - whom wheels are charged to
 * @uid: the user, in the initial user namespace
 * @container: PID namespace that is the user's container, held by the account; or NULL
 * @privileged: the opener had CAP_SYS_RESOURCE
 */
struct tw_payer {
	uid_t uid;
	struct pid_namespace *container;
	bool privileged;
};

/**
 * struct tw_user - a payer who has wheels open
 * @payer: who it is
 * @node: entry in the tree of all users, guarded like @wheels by the lock of that
 * @wheels: how many
 * @queued: how many of them are in the queue, see expire.c
 * @bytes: memory of all wheels
 */
struct tw_user {
	struct tw_payer payer;
	struct rb_node node;
	unsigned int wheels;
	atomic_t queued;
	atomic64_t bytes;
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
