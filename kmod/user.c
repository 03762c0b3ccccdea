// SPDX-License-Identifier: GPL-2.0
/*
 * What each user holds. See user.h.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "user.h"

/**
 * struct tw_user - a user who has wheels open
 * @uid: the user, in the initial user namespace; its index in tw_users
 * @wheels: open wheels, guarded by tw_users_lock
 * @timers: timers of these wheels
 */
struct tw_user {
	uid_t uid;
	unsigned int wheels;
	atomic64_t timers;
};

static DEFINE_XARRAY(tw_users);
static DEFINE_MUTEX(tw_users_lock);

/**
 * tw_user_get() - account of the current user, for a new wheel
 *
 * Context: may sleep.
 * Return: the account, or NULL without memory.
 */
struct tw_user *tw_user_get(void)
{
	uid_t uid = from_kuid(&init_user_ns, current_uid());
	struct tw_user *user;

	mutex_lock(&tw_users_lock);
	user = xa_load(&tw_users, uid);
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (!user)
			goto out;
		user->uid = uid;
		if (xa_err(xa_store(&tw_users, uid, user, GFP_KERNEL))) {
			kfree(user);
			user = NULL;
			goto out;
		}
	}
	user->wheels++;
out:
	mutex_unlock(&tw_users_lock);
	return user;
}

/**
 * tw_user_put() - a wheel of the user is gone, and all its timers
 * @user: the account
 *
 * Context: may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	mutex_lock(&tw_users_lock);
	if (!--user->wheels) {
		WARN_ON_ONCE(atomic64_read(&user->timers));
		xa_erase(&tw_users, user->uid);
		kfree(user);
	}
	mutex_unlock(&tw_users_lock);
}

/**
 * tw_user_charge() - the user is to hold more timers
 * @user: the account
 * @nr: how many more
 * @limit: most that the user may hold
 *
 * Context: any.
 * Return: how many of them the user may have.
 */
u32 tw_user_charge(struct tw_user *user, u32 nr, u32 limit)
{
	s64 held = atomic64_read(&user->timers);
	s64 granted;

	do {
		granted = clamp_t(s64, (s64)limit - held, 0, nr);
		if (!granted)
			break;
	} while (!atomic64_try_cmpxchg(&user->timers, &held, held + granted));
	return granted;
}

/**
 * tw_user_uncharge() - the user holds fewer timers
 * @user: the account
 * @nr: how many fewer
 *
 * Context: any.
 */
void tw_user_uncharge(struct tw_user *user, u32 nr)
{
	atomic64_sub(nr, &user->timers);
}
