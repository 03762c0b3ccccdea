// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the accounts of users: how long there is one. (Here, time passes only when
 * nobody works.)
 */
#define tw_user_get test_user_get
#define tw_user_put test_user_put
#define tw_users_exit test_users_exit

#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/delay.h>

/* A second time, with users of its own */
#include "kmod/user.c"

/* After so many seconds, what spent_account_of() spends is paid off. */
#define SPENT_SECS 32

/* A user's share of a window of 262 us */
#define SHARE_NS 32768

static struct tw_user *account_of(struct kunit *test, uid_t uid)
{
	struct cred *cred = prepare_creds();
	const struct cred *old;
	struct tw_user *user;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->uid = make_kuid(&init_user_ns, uid);
	old = override_creds(cred);
	user = tw_user_get();
	revert_creds(old);
	put_cred(cred);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, user);
	return user;
}

static struct tw_user *known(uid_t uid)
{
	struct tw_user *user;

	spin_lock(&tw_users_lock);
	user = tw_user_find(uid);
	spin_unlock(&tw_users_lock);
	return user;
}

/* Workers have cascaded for the user. */
static void spend(struct tw_user *user, unsigned int ms)
{
	struct tw_share *share = raw_cpu_ptr(user->shares);

	local_bh_disable();
	tw_share_may_work(share, ktime_get());
	for (; ms; ms -= 10)
		tw_share_ran_free(share, 10 * NSEC_PER_MSEC);
	local_bh_enable();
}

/* The account of a user who has had so much that it is kept */
static struct tw_user *spent_account_of(struct kunit *test, uid_t uid)
{
	struct tw_user *user = account_of(test, uid);

	spend(user, 500);
	return user;
}

/* With ever new uids, accounts would fill the memory. */
static void account_with_little_spent_forgotten(struct kunit *test)
{
	struct tw_user *user = account_of(test, 1);

	spend(user, 250);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	tw_user_put(user);
	KUNIT_EXPECT_NULL(test, known(1));
	user = account_of(test, 1);
	spend(user, 260);
	tw_user_put(user);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
}

/* Wheels of the user kept the processor. */
static void owe(struct tw_user *user, u64 ns)
{
	struct tw_share *share = raw_cpu_ptr(user->shares);

	local_bh_disable();
	tw_share_may_work(share, ktime_get());
	tw_share_ran(share, ns);
	local_bh_enable();
}

/* Closing all wheels is no way to owe nothing. */
static void account_that_owes_kept(struct kunit *test)
{
	struct tw_user *user = account_of(test, 1);

	owe(user, 300 * SHARE_NS);
	tw_user_put(user);
	msleep(50);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	msleep(100);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* An account is not kept for what a processor has done in no time. */
static void account_that_owes_little_forgotten(struct kunit *test)
{
	struct tw_user *user = account_of(test, 1);

	owe(user, SHARE_NS - 1);
	tw_user_put(user);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* What has been paid off is spent no more. */
static void account_paid_off_forgotten(struct kunit *test)
{
	struct tw_user *user = spent_account_of(test, 1);

	ssleep(SPENT_SECS / 3 * 2);
	tw_user_put(user);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* The last wheel of user 1 is closed. */
static void expect_kept_for_a_while(struct kunit *test, struct tw_user *user)
{
	tw_user_put(user);
	/* The kernel's own timers may be an eighth late. */
	ssleep(SPENT_SECS / 4 * 3);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	ssleep(SPENT_SECS / 2);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* Who closes all wheels is remembered until all is paid off, and no longer. */
static void account_outlives_last_wheel(struct kunit *test)
{
	struct tw_user *user = spent_account_of(test, 1);

	KUNIT_EXPECT_PTR_EQ(test, account_of(test, 1), user);
	tw_user_put(user);
	expect_kept_for_a_while(test, user);
}

static void account_kept_for_a_new_wheel(struct kunit *test)
{
	struct tw_user *user = spent_account_of(test, 1);

	tw_user_put(user);
	KUNIT_EXPECT_PTR_EQ(test, account_of(test, 1), user);
	ssleep(2 * SPENT_SECS);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	spend(user, 500);
	expect_kept_for_a_while(test, user);
}

/* The work that is to forget a user finds that he has spent more since. */
static void account_kept_for_what_was_spent_since(struct kunit *test)
{
	struct tw_user *user = spent_account_of(test, 1);

	tw_user_put(user);
	ssleep(SPENT_SECS / 4 * 3);
	KUNIT_EXPECT_PTR_EQ(test, spent_account_of(test, 1), user);
	tw_user_put(user);
	ssleep(SPENT_SECS / 4 * 3);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	ssleep(SPENT_SECS);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* A wheel comes and goes, and a processor is kept busy, after it was looked who owes what. */
static void account_of_a_wheel_that_came_meanwhile_kept(struct kunit *test)
{
	struct tw_user *user = account_of(test, 1);

	KUNIT_ASSERT_FALSE(test, tw_user_put_not_last(user));
	KUNIT_ASSERT_EQ(test, tw_user_paid_off(user), 0);
	KUNIT_ASSERT_PTR_EQ(test, account_of(test, 1), user);
	KUNIT_EXPECT_FALSE(test, tw_user_put_last(user));
	owe(user, 300 * SHARE_NS);
	KUNIT_EXPECT_TRUE(test, tw_user_put_not_last(user));
	KUNIT_EXPECT_FALSE(test, tw_user_put_last(user));
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	/* Whoever looked first looks again. */
	tw_user_put(user);
	KUNIT_EXPECT_PTR_EQ(test, known(1), user);
	msleep(150);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* The module goes while the work that forgets the user looks what is owed. */
static void account_ended_once(struct kunit *test)
{
	struct tw_user *user = account_of(test, 1);

	KUNIT_ASSERT_FALSE(test, tw_user_put_not_last(user));
	KUNIT_ASSERT_PTR_EQ(test, tw_user_take_first(), user);
	KUNIT_EXPECT_FALSE(test, tw_user_put_last(user));
	tw_user_free(user);
}

/* Each has a time of its own. */
static void accounts_forgotten_one_by_one(struct kunit *test)
{
	struct tw_user *first = account_of(test, 1);
	struct tw_user *second = spent_account_of(test, 2);

	KUNIT_EXPECT_PTR_NE(test, first, second);
	tw_user_put(second);
	ssleep(SPENT_SECS / 2);
	spend(first, 500);
	tw_user_put(first);
	ssleep(SPENT_SECS / 4 * 3);
	KUNIT_EXPECT_NULL(test, known(2));
	KUNIT_EXPECT_PTR_EQ(test, known(1), first);
	ssleep(SPENT_SECS / 2);
	KUNIT_EXPECT_NULL(test, known(1));
}

/* The module is unloaded. */
static void all_forgotten_at_the_end(struct kunit *test)
{
	tw_user_put(spent_account_of(test, 1));
	tw_user_put(spent_account_of(test, 2));
	KUNIT_EXPECT_NOT_NULL(test, known(1));
	KUNIT_EXPECT_NOT_NULL(test, known(2));
	tw_users_exit();
	KUNIT_EXPECT_NULL(test, known(1));
	KUNIT_EXPECT_NULL(test, known(2));
}

static void forget(struct kunit *test)
{
	tw_users_exit();
}

static struct kunit_case cases[] = {
	KUNIT_CASE(account_with_little_spent_forgotten),
	KUNIT_CASE(account_that_owes_kept),
	KUNIT_CASE(account_that_owes_little_forgotten),
	KUNIT_CASE(account_paid_off_forgotten),
	KUNIT_CASE(account_outlives_last_wheel),
	KUNIT_CASE(account_kept_for_a_new_wheel),
	KUNIT_CASE(account_kept_for_what_was_spent_since),
	KUNIT_CASE(account_of_a_wheel_that_came_meanwhile_kept),
	KUNIT_CASE(account_ended_once),
	KUNIT_CASE(accounts_forgotten_one_by_one),
	KUNIT_CASE(all_forgotten_at_the_end),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_user",
	.exit = forget,
	.test_cases = cases,
};

kunit_test_suite(suite);
