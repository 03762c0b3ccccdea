// SPDX-License-Identifier: GPL-2.0
/*
 * The account of a user: the memory of the user's wheels, and the limits. See account.h.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
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

/* What all hold together who lack CAP_SYS_RESOURCE */
static atomic64_t tw_unprivileged_bytes = ATOMIC64_INIT(0);

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

static u64 tw_user_limit(void)
{
	return (u64)READ_ONCE(tw_max_user_timers) * TW_TIMER_BYTES;
}

/* Never less than what one of them may have */
static u64 tw_unprivileged_limit(void)
{
	return max((u64)READ_ONCE(tw_max_unprivileged_timers) * TW_TIMER_BYTES, tw_user_limit());
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
	if (atomic64_read(&user->bytes) + bytes <= tw_user_limit() &&
	    (user->payer.privileged ||
	     atomic64_read(&tw_unprivileged_bytes) + bytes <= tw_unprivileged_limit()))
		return true;
	return tw_may_exceed_limits();
}

/* What is refused is never in the sum: it may be as much as all that others hold. */
static bool tw_add(atomic64_t *sum, u64 bytes, u64 limit)
{
	s64 held = atomic64_read(sum);

	do {
		if (held + bytes > limit && !tw_may_exceed_limits())
			return false;
	} while (!atomic64_try_cmpxchg(sum, &held, held + bytes));
	return true;
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
	/* Most that is refused is not in one of the sums for a moment, either. */
	if (!tw_user_has_room(user, bytes) || !tw_add(&user->bytes, bytes, tw_user_limit()))
		return false;
	if (user->payer.privileged ||
	    tw_add(&tw_unprivileged_bytes, bytes, tw_unprivileged_limit()))
		return true;
	atomic64_sub(bytes, &user->bytes);
	return false;
}

/**
 * tw_user_uncharge() - the user holds less memory
 * @user: the account
 * @bytes: how much less
 *
 * Context: any.
 */
void tw_user_uncharge(struct tw_user *user, u64 bytes)
{
	if (!user->payer.privileged)
		atomic64_sub(bytes, &tw_unprivileged_bytes);
	atomic64_sub(bytes, &user->bytes);
}

static unsigned int tw_timers_in(u64 bytes)
{
	return clamp_t(u64, div_u64(bytes, TW_TIMER_BYTES), 1, TW_MOST_TIMERS);
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
	u64 percent;

	si_meminfo(&info);
	percent = div_u64((u64)(info.totalram - info.totalhigh) * PAGE_SIZE, 100);
	if (!tw_max_user_timers)
		tw_max_user_timers = tw_timers_in(TW_USER_PERCENT * percent);
	if (!tw_max_unprivileged_timers)
		tw_max_unprivileged_timers = tw_timers_in(TW_UNPRIVILEGED_PERCENT * percent);
}
