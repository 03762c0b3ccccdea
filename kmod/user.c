// SPDX-License-Identifier: GPL-2.0
/*
 * The account of a user: who pays for a wheel, and how much memory is allowed. See user.h.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "turns.h"
#include "user.h"

/* The part of the memory that a user may have, unless set otherwise */
#define TW_LIMIT_PART 25

/* All users who have wheels open, by their uid */
static struct rb_root tw_users = RB_ROOT;
static DEFINE_MUTEX(tw_users_lock);

static void tw_user_free(struct tw_user *user)
{
	tw_shares_destroy(user->shares);
	kfree(user);
}

static struct tw_user *tw_user_create(uid_t uid)
{
	struct tw_user *user = kzalloc(sizeof(*user), TW_GFP);

	if (!user)
		return NULL;
	user->uid = uid;
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
	if (user)
		user->wheels++;
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

/**
 * tw_user_put() - a wheel of the user is gone, and all its memory
 * @user: the account
 *
 * Context: may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	bool last;

	mutex_lock(&tw_users_lock);
	last = !--user->wheels;
	if (last)
		rb_erase(&user->node, &tw_users);
	mutex_unlock(&tw_users_lock);
	if (!last)
		return;
	WARN_ON_ONCE(atomic64_read(&user->bytes) || user->places);
	tw_user_free(user);
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
