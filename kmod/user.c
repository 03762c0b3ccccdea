// SPDX-License-Identifier: GPL-2.0
/*
 * Users: who pays for a wheel. A user has an account from the first wheel that it opens to
 * the last that is closed, and longer if there is something to remember. See account.h.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>

#include "account.h"
#include "compat.h"
#include "expire.h"
#include "turns.h"
#include "user.h"

/* All users who have an account, by their uid */
static struct rb_root tw_users = RB_ROOT;

/* Those of them who have no wheel, the one who has had none for longest first */
static LIST_HEAD(tw_idle_users);

/* guards both */
static DEFINE_MUTEX(tw_users_lock);

static void tw_idle_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(tw_idle_work, tw_idle_fn);

/* A share of each processor, for a new user. Returns NULL if there is no memory. */
static struct tw_share __percpu *tw_shares_create(void)
{
	struct tw_share __percpu *shares;
	int cpu;

	shares = alloc_percpu_gfp(struct tw_share, TW_GFP);
	if (!shares)
		return NULL;
	for_each_possible_cpu(cpu) {
		struct tw_share *share = per_cpu_ptr(shares, cpu);

		spin_lock_init(&share->lock);
		INIT_LIST_HEAD(&share->waiting);
		hrtimer_setup(&share->timer, tw_turns_fn, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_PINNED_SOFT);
	}
	return shares;
}

/* The user has no wheels any more, and so none waits. */
static void tw_shares_destroy(struct tw_share __percpu *shares)
{
	int cpu;

	/* A timer may be set for wheels that did not wait for it. */
	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(shares, cpu)->timer);
	free_percpu(shares);
}

static void tw_user_free(struct tw_user *user)
{
	WARN_ON_ONCE(atomic64_read(&user->bytes) || user->places);
	tw_shares_destroy(user->shares);
	kfree(user);
}

static struct tw_user *tw_user_create(uid_t uid)
{
	struct tw_user *user = kzalloc(sizeof(*user), TW_GFP);

	if (!user)
		return NULL;
	user->uid = uid;
	INIT_LIST_HEAD(&user->idle);
	spin_lock_init(&user->lock);
	INIT_LIST_HEAD(&user->waiting);
	user->shares = tw_shares_create();
	if (!user->shares) {
		kfree(user);
		return NULL;
	}
	return user;
}

static int tw_user_compare(const void *key, const struct rb_node *node)
{
	uid_t uid = *(const uid_t *)key;
	uid_t other = rb_entry(node, struct tw_user, node)->uid;

	return uid < other ? -1 : uid > other;
}

static int tw_user_compare_nodes(struct rb_node *node, const struct rb_node *other)
{
	return tw_user_compare(&rb_entry(node, struct tw_user, node)->uid, other);
}

static struct tw_user *tw_user_find(uid_t uid)
{
	struct rb_node *node;

	lockdep_assert_held(&tw_users_lock);
	node = rb_find(&uid, &tw_users, tw_user_compare);
	return node ? rb_entry(node, struct tw_user, node) : NULL;
}

/* Give the user a wheel, and an account if it has none: @new, or none. */
static struct tw_user *tw_user_add_wheel(uid_t uid, struct tw_user *new)
{
	struct tw_user *user;

	mutex_lock(&tw_users_lock);
	user = tw_user_find(uid);
	if (!user && new) {
		user = new;
		rb_find_add(&user->node, &tw_users, tw_user_compare_nodes);
	}
	if (user) {
		user->wheels++;
		list_del_init(&user->idle);
	}
	mutex_unlock(&tw_users_lock);
	return user;
}

/*
 * The user that is charged for the current task. Anybody may make a user namespace, and can
 * have many uids in it. All of these count as the user who made the outermost namespace,
 * unless root made it: then an administrator gave out the uids, and each counts by itself.
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
	struct tw_user *user = tw_user_add_wheel(uid, NULL);
	struct tw_user *new;

	if (user)
		return user;
	/* Memory may be long in coming, and others open wheels meanwhile. */
	new = tw_user_create(uid);
	if (!new)
		return ERR_PTR(-ENOMEM);
	user = tw_user_add_wheel(uid, new);
	if (user != new)
		tw_user_free(new);
	return user;
}

static bool tw_user_to_keep(struct tw_user *user)
{
	ktime_t now = ktime_get();
	int cpu;

	for_each_possible_cpu(cpu)
		if (tw_share_to_keep(per_cpu_ptr(user->shares, cpu), now))
			return true;
	return false;
}

/**
 * tw_user_put() - a wheel of the user is gone, and all its memory
 * @user: the account
 *
 * Who has had much of what is free is remembered although there are no wheels: otherwise
 * the user would have as much again by closing all of them.
 *
 * Context: may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	bool keep = true;

	mutex_lock(&tw_users_lock);
	if (!--user->wheels) {
		keep = tw_user_to_keep(user);
		if (keep) {
			user->idle_until = jiffies + TW_PAID_OFF_SECS * HZ;
			/* Else the work comes for those before, and then again. */
			if (list_empty(&tw_idle_users))
				schedule_delayed_work(&tw_idle_work, TW_PAID_OFF_SECS * HZ);
			list_add_tail(&user->idle, &tw_idle_users);
		} else {
			rb_erase(&user->node, &tw_users);
		}
	}
	mutex_unlock(&tw_users_lock);
	if (!keep)
		tw_user_free(user);
}

/* Take out the user who has been idle for longest, if that is long enough, or @any. */
static struct tw_user *tw_user_take_idle(bool any)
{
	unsigned long now = jiffies;
	struct tw_user *user;

	mutex_lock(&tw_users_lock);
	user = list_first_entry_or_null(&tw_idle_users, struct tw_user, idle);
	if (user && !any && time_before(now, user->idle_until)) {
		schedule_delayed_work(&tw_idle_work, user->idle_until - now);
		user = NULL;
	}
	if (user) {
		list_del(&user->idle);
		rb_erase(&user->node, &tw_users);
	}
	mutex_unlock(&tw_users_lock);
	return user;
}

static void tw_users_free_idle(bool any)
{
	struct tw_user *user;

	while ((user = tw_user_take_idle(any))) {
		tw_user_free(user);
		cond_resched();
	}
}

static void tw_idle_fn(struct work_struct *work)
{
	tw_users_free_idle(false);
}

/**
 * tw_users_exit() - forget the users, who have no wheels any more
 *
 * Context: may sleep.
 */
void tw_users_exit(void)
{
	cancel_delayed_work_sync(&tw_idle_work);
	tw_users_free_idle(true);
}
