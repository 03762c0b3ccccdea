// SPDX-License-Identifier: GPL-2.0
/*
 * Users: who pays for a wheel. A payer has an account from the first wheel that it opens to
 * the last that is closed, and longer if there is something to remember. See account.h.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
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
#include "context.h"
#include "turns.h"

/* All accounts, by their payers */
static struct rb_root tw_users = RB_ROOT;

/*
 * Guards it. Not a mutex: whoever has that may be throttled by his control group, and all others
 * who open or close a wheel would wait for him. (With PREEMPT_RT they do, as for any spinlock.)
 */
static DEFINE_SPINLOCK(tw_users_lock);

static void tw_forget_fn(struct work_struct *work);

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

static struct tw_user *tw_user_create(const struct tw_payer *payer)
{
	struct tw_user *user = kzalloc(sizeof(*user), TW_GFP);

	if (!user)
		return NULL;
	user->payer = *payer;
	INIT_DELAYED_WORK(&user->forget, tw_forget_fn);
	spin_lock_init(&user->lock);
	INIT_LIST_HEAD(&user->waiting);
	user->shares = tw_shares_create();
	if (!user->shares) {
		kfree(user);
		return NULL;
	}
	return user;
}

static int tw_payer_compare(const struct tw_payer *a, const struct tw_payer *b)
{
	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return a->privileged - b->privileged;
}

static int tw_user_compare(const void *payer, const struct rb_node *node)
{
	return tw_payer_compare(payer, &rb_entry(node, struct tw_user, node)->payer);
}

static int tw_user_compare_nodes(struct rb_node *node, const struct rb_node *other)
{
	return tw_user_compare(&rb_entry(node, struct tw_user, node)->payer, other);
}

static struct tw_user *tw_user_find(const struct tw_payer *payer)
{
	struct rb_node *node;

	lockdep_assert_held(&tw_users_lock);
	node = rb_find(payer, &tw_users, tw_user_compare);
	return node ? rb_entry(node, struct tw_user, node) : NULL;
}

static void tw_user_ref(struct tw_user *user)
{
	lockdep_assert_held(&tw_users_lock);
	user->refs++;
	user->used = true;
}

/* Give the payer a wheel, and an account if it has none: @new, or none. */
static struct tw_user *tw_user_add_wheel(const struct tw_payer *payer, struct tw_user *new)
{
	struct tw_user *user;

	spin_lock(&tw_users_lock);
	user = tw_user_find(payer);
	if (!user && new) {
		user = new;
		rb_find_add(&user->node, &tw_users, tw_user_compare_nodes);
	}
	if (user)
		tw_user_ref(user);
	spin_unlock(&tw_users_lock);
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
 * tw_user_get() - account of the current task, for a new wheel
 *
 * Context: may sleep.
 * Return: the account, or an error pointer: -ENOMEM.
 */
struct tw_user *tw_user_get(void)
{
	struct tw_payer payer = {
		.uid = from_kuid(&init_user_ns, tw_accountable_uid()),
		.privileged = tw_may_exceed_limits(),
	};
	struct tw_user *user = tw_user_add_wheel(&payer, NULL);
	struct tw_user *new;

	if (user)
		return user;
	/* Memory may be long in coming, and others open wheels meanwhile. */
	new = tw_user_create(&payer);
	if (!new)
		return ERR_PTR(-ENOMEM);
	user = tw_user_add_wheel(&payer, new);
	if (user != new)
		tw_user_free(new);
	return user;
}

/* For how long is it to be remembered what the user has had? In ns, or 0 */
static u64 tw_user_paid_off(struct tw_user *user)
{
	ktime_t now = ktime_get();
	u64 longest = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		longest = max(longest, tw_share_paid_off(per_cpu_ptr(user->shares, cpu), now));
	return longest;
}

/* Put a reference, but not the last one. Returns true if it was put. */
static bool tw_user_put_not_last(struct tw_user *user)
{
	bool last;

	spin_lock(&tw_users_lock);
	last = user->refs == 1;
	if (last)
		user->used = false;
	else
		user->refs--;
	spin_unlock(&tw_users_lock);
	return !last;
}

/*
 * Put the reference that tw_user_put_not_last() left, unless there was another one since. Returns
 * true if it was put, and the account is the caller's.
 */
static bool tw_user_put_last(struct tw_user *user)
{
	bool last;

	spin_lock(&tw_users_lock);
	last = !user->used;
	if (last)
		rb_erase(&user->node, &tw_users);
	spin_unlock(&tw_users_lock);
	return last;
}

/**
 * tw_user_put() - a wheel of the user is gone, and all its memory
 * @user: the account
 *
 * Who has had more than a share of a processor, or much of what is free, is remembered although
 * there are no wheels: otherwise the user would have as much again by closing all of them. So
 * the last reference is handed on to the work that forgets the user, and by that to itself if
 * the user has had more meanwhile. So it is, too, if a wheel was opened while this looked: what
 * that has had is not known here.
 *
 * Context: may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	u64 ns;

	if (tw_user_put_not_last(user))
		return;
	/* Without the lock, as there may be many processors. */
	ns = tw_user_paid_off(user);
	if (!ns && tw_user_put_last(user))
		tw_user_free(user);
	else
		queue_delayed_work(tw_shared_workqueue, &user->forget,
				   nsecs_to_jiffies(ns) + 1);
}

static void tw_forget_fn(struct work_struct *work)
{
	tw_user_put(container_of(to_delayed_work(work), struct tw_user, forget));
}

/* Take a user out of the tree, and for the caller. Returns NULL if there is none. */
static struct tw_user *tw_user_take_first(void)
{
	struct tw_user *user = NULL;
	struct rb_node *node;

	spin_lock(&tw_users_lock);
	node = rb_first(&tw_users);
	if (node) {
		user = rb_entry(node, struct tw_user, node);
		rb_erase(node, &tw_users);
		tw_user_ref(user);
	}
	spin_unlock(&tw_users_lock);
	return user;
}

/**
 * tw_users_exit() - forget the users, who have no wheels any more
 *
 * Work that forgets a user by itself may still run: it ends with its workqueue.
 *
 * Context: may sleep.
 */
void tw_users_exit(void)
{
	struct tw_user *user;

	while ((user = tw_user_take_first())) {
		cancel_delayed_work_sync(&user->forget);
		tw_user_free(user);
		cond_resched();
	}
}
