/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each user holds and takes: timers of all wheels that a user opened, memory,
 * and the time of processors.
 */
#ifndef TW_USER_H
#define TW_USER_H

#include <linux/gfp.h>
#include <linux/types.h>

/* A program at the limit of its cgroup shall get an error, not be killed. */
#define TW_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct tw_user;

struct tw_user *tw_user_get(void);
void tw_user_put(struct tw_user *user);
u32 tw_user_charge(struct tw_user *user, u32 nr, u32 limit);
void tw_user_uncharge(struct tw_user *user, u32 nr);
bool tw_user_may_run(struct tw_user *user);
u64 tw_user_delay(const struct tw_user *user);
void tw_user_ran(struct tw_user *user, u64 ns);

#endif /* TW_USER_H */
