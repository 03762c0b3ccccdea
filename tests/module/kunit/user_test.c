// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the accounts of users: for how long there is one after the last wheel.
 */
#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/delay.h>

/* A copy of user.c, with users of its own, whose static functions can be called */
#define tw_user_get copy_user_get
#define tw_user_put copy_user_put
#define tw_users_exit copy_users_exit
#include "kmod/user.c"

#include "fixture.h"

#define UID 1

/* What is said in jiffies is exact to so many ms, and a test takes less than so many. */
#define EXACT_MS 20
#define TEST_MS 2000

static struct tw_user *account_of(struct kunit *test, uid_t uid)
{
	struct cred *cred = prepare_creds();
	const struct cred *old;
	struct tw_user *user;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->uid = make_kuid(&init_user_ns, uid);
	old = override_creds(cred);
	user = copy_user_get();
	revert_creds(old);
	put_cred(cred);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, user);
	return user;
}

static struct tw_user *known(uid_t uid)
{
	const struct tw_payer payer = { .uid = uid, .privileged = true };
	struct tw_user *user;

	spin_lock(&tw_users_lock);
	user = tw_user_find(&payer);
	spin_unlock(&tw_users_lock);
	return user;
}

/* Wheels of the user have kept the processor, and workers have cascaded for so many ms. */
static void spend(struct tw_user *user, u64 ran, unsigned int cascaded)
{
	struct tw_share *share = raw_cpu_ptr(user->shares);

	local_bh_disable();
	tw_share_may_work(share, ktime_get());
	tw_share_ran(share, ran);
	tw_share_ran_free(share, cascaded * NSEC_PER_MSEC);
	local_bh_enable();
}

/* The work that forgets the user does not wait for its time. */
static void let_forget(struct tw_user *user)
{
	flush_delayed_work(&user->forget);
}

/* What a user without wheels has had, and for how many ms that is remembered */
static const struct spent {
	const char *name;
	u64 ran;
	unsigned int cascaded;
	unsigned int kept;
} spents[] = {
	{ "nothing" },
	{ "less than a share", .ran = FIXTURE_SHARE - 1 },
	{ "a quarter of what is free", .cascaded = 250 },
	/* With ever new uids, accounts would fill the memory: so it takes that much. */
	{ "more than a quarter", .cascaded = 280, .kept = 64 * 280 },
	{ "half of what is free", .cascaded = 500, .kept = 64 * 500 },
	{ "all that is free", .cascaded = 1000, .kept = 64 * 1000 },
	{ "a debt", .ran = 20000 * FIXTURE_SHARE, .kept = 20000 * FIXTURE_WINDOW / NSEC_PER_MSEC },
	{ "a debt, and what is free", .ran = 20000 * FIXTURE_SHARE, .cascaded = 1000,
	  .kept = 64 * 1000 },
};

static void describe_spent(const struct spent *spent, char *desc)
{
	strscpy(desc, spent->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(spent, spents, describe_spent);

/* Closing all wheels is no way to owe nothing, but what is paid off is owed no more. */
static void account_kept_until_paid_off(struct kunit *test)
{
	const struct spent *spent = test->param_value;
	struct tw_user *user = account_of(test, UID);
	long ms;

	spend(user, spent->ran, spent->cascaded);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	copy_user_put(user);
	KUNIT_ASSERT_PTR_EQ(test, known(UID), spent->kept ? user : NULL);
	if (!spent->kept)
		return;
	ms = jiffies_to_msecs(user->forget.timer.expires - jiffies);
	KUNIT_EXPECT_LE(test, ms, spent->kept + EXACT_MS);
	KUNIT_EXPECT_GE(test, ms + TEST_MS, spent->kept);
	/* The work that forgets the user finds that it is too early. */
	let_forget(user);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&user->forget));
}

static void wait_until_forgotten(struct kunit *test)
{
	unsigned int ms;

	for (ms = 0; ms < 10000 && known(UID); ms += 20)
		msleep(20);
	KUNIT_EXPECT_NULL(test, known(UID));
}

static void account_paid_off_forgotten(struct kunit *test)
{
	struct tw_user *user = account_of(test, UID);

	spend(user, 1000 * FIXTURE_SHARE, 0);
	copy_user_put(user);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	wait_until_forgotten(test);

	/* Or at once, if it is paid off when the last wheel is closed. */
	user = account_of(test, UID);
	spend(user, FIXTURE_SHARE, 251);
	msleep(200);
	copy_user_put(user);
	KUNIT_EXPECT_NULL(test, known(UID));
}

/* A wheel is opened, and closed again, before the account of the last ones is forgotten. */
static void account_kept_for_a_new_wheel(struct kunit *test)
{
	struct tw_user *user = account_of(test, UID);

	spend(user, 1000 * FIXTURE_SHARE, 0);
	copy_user_put(user);
	KUNIT_EXPECT_PTR_EQ(test, account_of(test, UID), user);
	let_forget(user);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	spend(user, 0, 500);
	msleep(500);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	copy_user_put(user);
	/* What was spent since counts. */
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	let_forget(user);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
}

/* A wheel comes and goes, and a processor is kept busy, after it was looked who owes what. */
static void account_of_a_wheel_that_came_meanwhile_kept(struct kunit *test)
{
	struct tw_user *user = account_of(test, UID);

	KUNIT_ASSERT_FALSE(test, tw_user_put_not_last(user));
	KUNIT_ASSERT_EQ(test, tw_user_paid_off(user), 0);
	KUNIT_ASSERT_PTR_EQ(test, account_of(test, UID), user);
	KUNIT_EXPECT_FALSE(test, tw_user_put_last(user));
	spend(user, 1000 * FIXTURE_SHARE, 0);
	KUNIT_EXPECT_TRUE(test, tw_user_put_not_last(user));
	KUNIT_EXPECT_FALSE(test, tw_user_put_last(user));
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	/* Whoever looked first looks again. */
	copy_user_put(user);
	KUNIT_EXPECT_PTR_EQ(test, known(UID), user);
	wait_until_forgotten(test);
}

/* The module goes while the work that forgets the user looks what is owed. */
static void account_ended_once(struct kunit *test)
{
	struct tw_user *user = account_of(test, UID);

	KUNIT_ASSERT_FALSE(test, tw_user_put_not_last(user));
	KUNIT_ASSERT_PTR_EQ(test, tw_user_take_first(), user);
	KUNIT_EXPECT_FALSE(test, tw_user_put_last(user));
	tw_user_free(user);
}

/* The module is unloaded. */
static void all_forgotten_at_the_end(struct kunit *test)
{
	uid_t uid;

	for (uid = UID; uid < UID + 2; uid++) {
		struct tw_user *user = account_of(test, uid);

		spend(user, 0, 500);
		copy_user_put(user);
	}
	KUNIT_EXPECT_NOT_NULL(test, known(UID));
	KUNIT_EXPECT_NOT_NULL(test, known(UID + 1));
	copy_users_exit();
	KUNIT_EXPECT_NULL(test, known(UID));
	KUNIT_EXPECT_NULL(test, known(UID + 1));
}

static void forget(struct kunit *test)
{
	copy_users_exit();
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(account_kept_until_paid_off, spent_gen_params),
	KUNIT_CASE(account_paid_off_forgotten),
	KUNIT_CASE(account_kept_for_a_new_wheel),
	KUNIT_CASE(account_of_a_wheel_that_came_meanwhile_kept),
	KUNIT_CASE(account_ended_once),
	KUNIT_CASE(all_forgotten_at_the_end),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_user",
	.exit = forget,
	.test_cases = cases,
};

kunit_test_suite(suite);
