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

/* The part of the memory that a user may have, unless set otherwise */
#define TW_LIMIT_PART 25

unsigned int tw_max_timers = 1U << 24;
/* 0 until it is known how much memory there is */
unsigned int tw_max_user_timers;

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
	s64 held = atomic64_read(&user->bytes);

	/* What is refused is never in the account: it may be as much as all that others hold. */
	do {
		if (held + bytes > limit && !tw_may_exceed_limits())
			return false;
	} while (!atomic64_try_cmpxchg(&user->bytes, &held, held + bytes));
	return true;
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
