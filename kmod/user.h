/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users who have wheels open, or had not long ago.
 */
#ifndef TW_USER_H
#define TW_USER_H

struct tw_user;

struct tw_user *tw_user_get(void);
void tw_user_put(struct tw_user *user);
void tw_users_exit(void);

#endif /* TW_USER_H */
