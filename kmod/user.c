// SPDX-License-Identifier: GPL-2.0
/*
 * Users: who pays for a wheel. A payer has an account from the first wheel that it opens to
 * the last that is closed. See account.h.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/pid_namespace.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "account.h"
#include "context.h"

/* All accounts, by their payers */
static struct rb_root tw_users = RB_ROOT;

/*
 * Guards it. Not a mutex: whoever has that may be throttled by his control group, and all others
 * who open or close a wheel would wait for him. (With PREEMPT_RT they do, as for any spinlock.)
 */
static DEFINE_SPINLOCK(tw_users_lock);

static int tw_payer_compare(const struct tw_payer *a, const struct tw_payer *b)
{
	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	if (a->container != b->container)
		return a->container < b->container ? -1 : 1;
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

/* Give the payer a wheel, and an account if it has none: @new, or none. */
static struct tw_user *tw_user_add_wheel(const struct tw_payer *payer, struct tw_user *new)
{
	struct rb_node *node;
	struct tw_user *user = NULL;

	spin_lock(&tw_users_lock);
	node = rb_find(payer, &tw_users, tw_user_compare);
	if (node) {
		user = rb_entry(node, struct tw_user, node);
	} else if (new) {
		user = new;
		if (payer->container)
			get_pid_ns(payer->container);
		rb_find_add(&user->node, &tw_users, tw_user_compare_nodes);
	}
	if (user)
		user->wheels++;
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

/*
 * The container of the current task: root's outermost PID namespace that it is in. The root of a
 * container may take each uid of the host, but can't leave its namespace; and those that it, or
 * any user, makes do not count.
 */
static struct pid_namespace *tw_container(void)
{
	struct pid_namespace *ns = task_active_pid_ns(current);

	if (!ns->level)
		return NULL;
	while (ns->level > 1)
		ns = ns->parent;
	return uid_eq(ns->user_ns->owner, GLOBAL_ROOT_UID) ? ns : NULL;
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
		.container = tw_container(),
		.privileged = tw_may_exceed_limits(),
	};
	struct tw_user *user = tw_user_add_wheel(&payer, NULL);
	struct tw_user *new;

	if (user)
		return user;
	/* Memory may be long in coming, and others open wheels meanwhile. */
	new = kzalloc(sizeof(*new), TW_GFP);
	if (!new)
		return ERR_PTR(-ENOMEM);
	new->payer = payer;
	user = tw_user_add_wheel(&payer, new);
	if (user != new)
		kfree(new);
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

	spin_lock(&tw_users_lock);
	last = !--user->wheels;
	if (last)
		rb_erase(&user->node, &tw_users);
	spin_unlock(&tw_users_lock);
	if (!last)
		return;
	WARN_ON_ONCE(atomic64_read(&user->bytes) || atomic_read(&user->queued));
	if (user->payer.container)
		put_pid_ns(user->payer.container);
	kfree(user);
}
