// SPDX-License-Identifier: GPL-2.0
/*
 * Users: who pays for a wheel, and what they may have. A payer has an account from the first wheel
 * that it opens to the last that is closed. See account.h.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pid_namespace.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "account.h"

/*
 * The parts of the memory, in %, that a user may have, and all together who lack
 * CAP_SYS_RESOURCE, unless set otherwise
 */
#define TW_USER_PERCENT 4
#define TW_UNPRIVILEGED_PERCENT 12

unsigned int tw_max_timers = 1U << 24;
/* 0 until it is known how much memory there is */
unsigned int tw_max_user_timers;
unsigned int tw_max_unprivileged_timers;

/*
 * Guards all that follows, and what accounts hold, for some instructions at a time. Whoever has it
 * can't be preempted, nor throttled by his control group, also with PREEMPT_RT: all others who open
 * a wheel or need memory would wait for him.
 */
static DEFINE_RAW_SPINLOCK(tw_users_lock);

/* All accounts, by their payers */
static struct rb_root tw_users = RB_ROOT;

/* What all hold together who lack CAP_SYS_RESOURCE */
static u64 tw_unprivileged_bytes;

static int tw_user_compare(struct rb_node *node, const struct rb_node *other)
{
	return memcmp(&rb_entry(node, struct tw_user, node)->payer,
		      &rb_entry(other, struct tw_user, node)->payer, sizeof(struct tw_payer));
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

/* Would the user be within the limits with so much more? */
static bool tw_fits(const struct tw_user *user, u64 bytes)
{
	u64 most = (u64)READ_ONCE(tw_max_user_timers) * TW_TIMER_BYTES;
	u64 together = (u64)READ_ONCE(tw_max_unprivileged_timers) * TW_TIMER_BYTES;

	lockdep_assert_held(&tw_users_lock);
	/* Together they never have less than what one of them may have. */
	return user->bytes + bytes <= most &&
		(user->payer.privileged ||
		 tw_unprivileged_bytes + bytes <= max(together, most));
}

static void tw_user_add(struct tw_user *user, s64 bytes)
{
	lockdep_assert_held(&tw_users_lock);
	user->bytes += bytes;
	tw_unprivileged_bytes += user->payer.privileged ? 0 : bytes;
}

/**
 * tw_user_get() - account of the current task, for a new wheel
 * @bytes: what the wheel takes, which is charged; tw_user_uncharge() before tw_user_put()
 *
 * Context: may sleep.
 * Return: the account, or an error pointer: -ENOMEM, or -ENOSPC if the limits are reached.
 */
struct tw_user *tw_user_get(u64 bytes)
{
	struct tw_user *user = kzalloc(sizeof(*user), TW_GFP), *new = user;
	struct rb_node *node;
	unsigned int i;

	if (!new)
		return ERR_PTR(-ENOMEM);
	new->payer.uid = from_kuid(&init_user_ns, tw_accountable_uid());
	new->payer.container = tw_container();
	new->payer.privileged = tw_may_exceed_limits();
	for (i = 0; i < TW_QUEUES; i++)
		INIT_LIST_HEAD(&new->queued[i]);
	raw_spin_lock(&tw_users_lock);
	node = rb_find_add(&new->node, &tw_users, tw_user_compare);
	if (node)
		user = rb_entry(node, struct tw_user, node);
	else if (new->payer.container)
		get_pid_ns(new->payer.container);
	user->wheels++;
	raw_spin_unlock(&tw_users_lock);
	if (user != new)
		kfree(new);
	if (!tw_user_charge(user, bytes)) {
		tw_user_put(user);
		return ERR_PTR(-ENOSPC);
	}
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

	raw_spin_lock(&tw_users_lock);
	last = !--user->wheels;
	if (last)
		rb_erase(&user->node, &tw_users);
	raw_spin_unlock(&tw_users_lock);
	if (!last)
		return;
	WARN_ON_ONCE(user->bytes);
	if (user->payer.container)
		put_pid_ns(user->payer.container);
	kfree(user);
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
 * tw_user_has_room() - may the user hold more memory, as it is just now?
 * @user: the account
 * @bytes: how much more
 *
 * Context: any process.
 * Return: false if not; then there is no need to begin.
 */
bool tw_user_has_room(const struct tw_user *user, u64 bytes)
{
	bool fits;

	raw_spin_lock(&tw_users_lock);
	fits = tw_fits(user, bytes);
	raw_spin_unlock(&tw_users_lock);
	return fits || tw_may_exceed_limits();
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
 * Return: false if that is more than the user may have, or all together who lack
 * CAP_SYS_RESOURCE; then nothing is charged.
 */
bool tw_user_charge(struct tw_user *user, u64 bytes)
{
	bool may = tw_may_exceed_limits();

	raw_spin_lock(&tw_users_lock);
	may |= tw_fits(user, bytes);
	if (may)
		tw_user_add(user, bytes);
	raw_spin_unlock(&tw_users_lock);
	return may;
}

/**
 * tw_user_uncharge() - the user holds less memory
 * @user: the account
 * @bytes: how much less
 *
 * Context: any process.
 */
void tw_user_uncharge(struct tw_user *user, u64 bytes)
{
	raw_spin_lock(&tw_users_lock);
	tw_user_add(user, -(s64)bytes);
	raw_spin_unlock(&tw_users_lock);
}

/**
 * tw_default_limits() - what users may have, unless set otherwise
 *
 * As with epoll's watches, a small part of the memory, which can't be swapped: 4 % for one, and
 * 12 % for all together.
 *
 * Context: the module is being loaded.
 */
void tw_default_limits(void)
{
	struct sysinfo info;
	u64 timers;

	si_meminfo(&info);
	timers = div_u64((u64)(info.totalram - info.totalhigh) * PAGE_SIZE, 100 * TW_TIMER_BYTES);
	timers = clamp_t(u64, timers, 1, TW_MOST_TIMERS / TW_UNPRIVILEGED_PERCENT);
	if (!tw_max_user_timers)
		tw_max_user_timers = TW_USER_PERCENT * timers;
	if (!tw_max_unprivileged_timers)
		tw_max_unprivileged_timers = TW_UNPRIVILEGED_PERCENT * timers;
}
