/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each user holds and takes: memory of all wheels that a user opened, and the time
 * of processors.
 */
#ifndef TW_USER_H
#define TW_USER_H

#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/types.h>

/* A program at the limit of its cgroup shall get an error, not be killed. */
#define TW_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* What a timer takes, in bytes: the unit of the limit of a user */
#define TW_TIMER_BYTES 40

struct tw_user;

/*
 * main.c: limits. They can be set at any time, without a lock, so each is read once
 * for one decision, which is by the old or by the new one.
 */
extern unsigned int tw_max_timers;
extern unsigned int tw_max_user_timers;

/* The end of what may be set */
#define TW_MOST_TIMERS BIT(30)

struct tw_user *tw_user_get(void);
void tw_user_put(struct tw_user *user);
bool tw_user_charge(struct tw_user *user, u64 bytes);
void tw_user_uncharge(struct tw_user *user, u64 bytes);
bool tw_may_exceed_limits(void);
unsigned int tw_user_default_limit(void);
u64 tw_user_held(const struct tw_user *user);
bool tw_user_may_run(struct tw_user *user);
bool tw_user_may_work(struct tw_user *user);
u64 tw_user_delay(struct tw_user *user);
void tw_user_ran(struct tw_user *user, u64 ns);

#endif /* TW_USER_H */
