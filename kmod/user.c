// SPDX-License-Identifier: GPL-2.0
/*
 * What each user holds and takes. See user.h.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
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

/* Most of a window that the wheels of one user may keep a processor */
#define TW_SHARE_NS ((1UL << TW_WINDOW_SHIFT) / 8)

/*
 * A worker may take the shares of so many windows at once: to come back in each window
 * would cost as much again, which nobody counts.
 */
#define TW_WORKER_NS (8 * TW_SHARE_NS)

/*
 * Whatever takes longer was interrupted by others: by the host of a virtual machine, say.
 * (With a hundred thousand to be woken it comes near to this.)
 */
#define TW_RAN_MOST_NS (10 * NSEC_PER_MSEC)

/* The part of the memory that a user may have, unless set otherwise */
#define TW_LIMIT_PART 25

/* Wheels of a user that may want a window each to have their turn */
#define TW_WINDOW_WHEELS 64

/**
 * struct tw_share - how long a user's wheels kept a processor
 * @window: the last window in which one was to be turned
 * @ns: for how long, by then, less the shares of the windows since
 */
struct tw_share {
	u64 window;
	u64 ns;
};

/**
 * struct tw_user - a user who has wheels open
 * @uid: the user, in the initial user namespace; its index in tw_users
 * @wheels: open wheels, guarded by tw_users_lock
 * @bytes: memory of these wheels
 * @shares: of each processor, used by that one alone, with bottom halves off
 */
struct tw_user {
	uid_t uid;
	unsigned int wheels;
	atomic64_t bytes;
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

/*
 * Who is accountable for what the current task does. Anybody may make a user namespace,
 * and can be many users there: all of them are the one who made the outermost of them.
 * Those that root made were given out by somebody who may.
 */
static kuid_t tw_accountable_uid(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	for (; ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/**
 * tw_user_get() - account of the current user, for a new wheel
 *
 * Context: may sleep.
 * Return: the account, or an error pointer: -ENOMEM.
 */
struct tw_user *tw_user_get(void)
{
	uid_t uid = from_kuid(&init_user_ns, tw_accountable_uid());
	struct tw_user *user;

	mutex_lock(&tw_users_lock);
	user = xa_load(&tw_users, uid);
	if (!user)
		user = tw_user_create(uid);
	if (user)
		user->wheels++;
	mutex_unlock(&tw_users_lock);
	return user ?: ERR_PTR(-ENOMEM);
}

/**
 * tw_user_put() - a wheel of the user is gone, and all its memory
 * @user: the account
 *
 * Context: may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	mutex_lock(&tw_users_lock);
	if (!--user->wheels) {
		WARN_ON_ONCE(atomic64_read(&user->bytes));
		xa_erase(&tw_users, user->uid);
		tw_user_free(user);
	}
	mutex_unlock(&tw_users_lock);
}

/**
 * tw_may_exceed_limits() - is the current task above the limits?
 *
 * To come to a limit is nothing that is to stand in the audit log.
 *
 * Context: any process.
 * Return: true if so.
 */
bool tw_may_exceed_limits(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/**
 * tw_user_charge() - the user is to hold more memory
 * @user: the account
 * @bytes: how much more
 *
 * Memory is what is counted, not timers: a user could otherwise have many wheels that
 * are large, with one timer left in each piece of them.
 *
 * Context: any process.
 * Return: false if that is more than the user may have; then nothing is charged.
 */
bool tw_user_charge(struct tw_user *user, u64 bytes)
{
	u64 limit = (u64)READ_ONCE(tw_max_user_timers) * TW_TIMER_BYTES;

	if (atomic64_add_return(bytes, &user->bytes) <= limit ||
	    tw_may_exceed_limits())
		return true;
	atomic64_sub(bytes, &user->bytes);
	return false;
}

#ifdef TW_CHECK
/**
 * tw_user_held() - how much memory is the user charged for?
 * @user: the account
 *
 * Context: any.
 * Return: how much, in bytes.
 */
u64 tw_user_held(const struct tw_user *user)
{
	return atomic64_read(&user->bytes);
}
#endif

/**
 * tw_user_uncharge() - the user holds less memory
 * @user: the account
 * @bytes: how much less
 *
 * Context: any.
 */
void tw_user_uncharge(struct tw_user *user, u64 bytes)
{
	atomic64_sub(bytes, &user->bytes);
}

/**
 * tw_user_default_limit() - what a user may have, unless set otherwise
 *
 * As with epoll's watches, a small part of the memory, which can't be swapped: 4 %.
 *
 * Context: any.
 * Return: the limit, in timers.
 */
unsigned int tw_user_default_limit(void)
{
	struct sysinfo info;
	u64 bytes;

	si_meminfo(&info);
	bytes = (u64)(info.totalram - info.totalhigh) * PAGE_SIZE;
	return clamp_t(u64, div_u64(bytes, TW_LIMIT_PART * TW_TIMER_BYTES),
		       1, TW_MOST_TIMERS);
}

/* For how long the user's wheels kept this processor, beyond what is paid off by now */
static u64 tw_user_owes(struct tw_user *user)
{
	struct tw_share *share = this_cpu_ptr(user->shares);
	u64 window = ktime_get() >> TW_WINDOW_SHIFT;
	u64 ns = share->ns;

	ns -= min(ns, (window - share->window) * TW_SHARE_NS);
	share->window = window;
	share->ns = ns;
	return ns;
}

/**
 * tw_user_may_run() - may the timer of a wheel do what there is to do?
 * @user: the account
 *
 * However little each wheel has to do, a user can have so many of them that all
 * together would keep a processor busy. What was taken beyond the share of one window
 * is paid off in the next ones.
 *
 * Context: soft interrupt.
 * Return: false when the user's share of this processor's time is used up.
 */
bool tw_user_may_run(struct tw_user *user)
{
	return tw_user_owes(user) < TW_SHARE_NS;
}

/**
 * tw_user_may_work() - may a worker do what there is to do?
 * @user: the account
 *
 * Context: bottom halves are off.
 * Return: false when the user's share of this processor's time is used up.
 */
bool tw_user_may_work(struct tw_user *user)
{
	return tw_user_owes(user) < TW_WORKER_NS;
}

/**
 * tw_user_delay() - for how long to put off what the kernel may not do
 * @user: the account
 *
 * As with each wheel that asks in vain some time is lost, the more there are the
 * longer.
 *
 * Context: bottom halves are off.
 * Return: the time in ns.
 */
u64 tw_user_delay(struct tw_user *user)
{
	/* Whatever the number is at this moment will do. */
	u64 wheels = data_race(READ_ONCE(user->wheels));
	u64 windows = this_cpu_ptr(user->shares)->ns / TW_SHARE_NS;

	return max(windows, 1 + wheels / TW_WINDOW_WHEELS) << TW_WINDOW_SHIFT;
}

/**
 * tw_user_ran() - the kernel has turned a wheel
 * @user: the account
 * @ns: for how long
 *
 * Context: bottom halves are off.
 */
void tw_user_ran(struct tw_user *user, u64 ns)
{
	this_cpu_ptr(user->shares)->ns += min_t(u64, ns, TW_RAN_MOST_NS);
}
