/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each user holds: timers of all wheels that a user opened.
 */
#ifndef TW_USER_H
#define TW_USER_H

#include <linux/types.h>

struct tw_user;

struct tw_user *tw_user_get(void);
void tw_user_put(struct tw_user *user);
u32 tw_user_charge(struct tw_user *user, u32 nr, u32 limit);
void tw_user_uncharge(struct tw_user *user, u32 nr);

#endif /* TW_USER_H */
