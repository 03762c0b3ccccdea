// SPDX-License-Identifier: GPL-2.0
/*
 * What each user holds and takes. See user.h.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "user.h"

/*
 * A processor's time is shared out in windows of 2^this ns. They are short, so that the
 * kernel does not find soft interrupts that never end, and leaves them to a thread.
 */
#define TW_WINDOW_SHIFT 18

/* Most of a window that the timers of one user's wheels may keep a processor */
#define TW_SHARE_NS ((1 << TW_WINDOW_SHIFT) / 8)

/* Wheels of a user that may want a window each to have their turn */
#define TW_WINDOW_WHEELS 64

/**
 * struct tw_share - how long a user's timers kept a processor
 * @window: in which window
 * @ns: for how long
 */
struct tw_share {
	u64 window;
	u64 ns;
};

/**
 * struct tw_user - a user who has wheels open
 * @uid: the user, in the initial user namespace; its index in tw_users
 * @wheels: open wheels, guarded by tw_users_lock
 * @timers: timers of these wheels
 * @shares: of each processor, used by its soft interrupts alone
 */
struct tw_user {
	uid_t uid;
	unsigned int wheels;
	atomic64_t timers;
	struct tw_share __percpu *shares;
};

static DEFINE_XARRAY(tw_users);
static DEFINE_MUTEX(tw_users_lock);

static void tw_user_free(struct tw_user *user)
{
	free_percpu(user->shares);
	kfree(user);
}

static struct tw_user *tw_user_create(uid_t uid)
{
	struct tw_user *user = kzalloc(sizeof(*user), TW_GFP);

	if (!user)
		return NULL;
	user->uid = uid;
	user->shares = alloc_percpu_gfp(struct tw_share, TW_GFP);
	if (!user->shares ||
	    xa_err(xa_store(&tw_users, uid, user, GFP_KERNEL))) {
		tw_user_free(user);
		return NULL;
	}
	return user;
}

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
	if (!user)
		user = tw_user_create(uid);
	if (user)
		user->wheels++;
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
		tw_user_free(user);
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

/**
 * tw_user_may_run() - may the timer of a wheel do what there is to do?
 * @user: the account
 *
 * However little each wheel has to do, a user can have so many of them that all
 * together would keep a processor in interrupts.
 *
 * Context: soft interrupt.
 * Return: false when the user's share of this processor's window is used up.
 */
bool tw_user_may_run(struct tw_user *user)
{
	struct tw_share *share = this_cpu_ptr(user->shares);
	u64 window = ktime_get() >> TW_WINDOW_SHIFT;

	if (share->window != window) {
		share->window = window;
		share->ns = 0;
	}
	return share->ns < TW_SHARE_NS;
}

/**
 * tw_user_delay() - for how long to put off what a wheel's timer may not do
 * @user: the account
 *
 * As with each wheel that asks in vain some time is lost, the more there are the
 * longer.
 *
 * Context: any.
 * Return: the time in ns.
 */
u64 tw_user_delay(const struct tw_user *user)
{
	/* Whatever the number is at this moment will do. */
	u64 wheels = data_race(READ_ONCE(user->wheels));

	return (1 + wheels / TW_WINDOW_WHEELS) << TW_WINDOW_SHIFT;
}

/**
 * tw_user_ran() - the timer of a wheel has run
 * @user: the account
 * @ns: for how long
 *
 * Context: soft interrupt.
 */
void tw_user_ran(struct tw_user *user, u64 ns)
{
	this_cpu_ptr(user->shares)->ns += ns;
}
