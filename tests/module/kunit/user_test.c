// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the accounts of users: one to a payer, from the first wheel to the last.
 */
#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/cred.h>

/* A copy of account.c, with users and limits of its own */
#define tw_max_timers copy_max_timers
#define tw_max_user_timers copy_max_user_timers
#define tw_max_unprivileged_timers copy_max_unprivileged_timers
#define tw_user_get copy_user_get
#define tw_user_put copy_user_put
#define tw_user_has_room copy_user_has_room
#define tw_user_charge copy_user_charge
#define tw_user_uncharge copy_user_uncharge
#define tw_may_exceed_limits copy_may_exceed_limits
#define tw_default_limits copy_default_limits
#include "kmod/account.c"

/* The current task opens a wheel, as a user, with CAP_SYS_RESOURCE or without. */
static struct tw_user *open_as(struct kunit *test, uid_t uid, bool privileged)
{
	struct cred *cred = prepare_creds();
	const struct cred *old;
	struct tw_user *user;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->uid = make_kuid(&init_user_ns, uid);
	if (!privileged)
		cap_lower(cred->cap_effective, CAP_SYS_RESOURCE);
	copy_default_limits();
	old = override_creds(cred);
	user = copy_user_get(0);
	revert_creds(old);
	put_cred(cred);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, user);
	return user;
}

static void task_has_account_of_its_payer(struct kunit *test)
{
	struct tw_user *users[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		users[i] = open_as(test, 1 + i / 2, i % 2);
		KUNIT_EXPECT_EQ(test, users[i]->payer.uid, 1 + i / 2);
		KUNIT_EXPECT_EQ(test, users[i]->payer.privileged, i % 2);
		KUNIT_EXPECT_EQ(test, users[i]->wheels, 1);
	}
	while (i--)
		copy_user_put(users[i]);
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&tw_users));
}

/* Payers that differ in anything, and are equal to themselves only */
static void each_payer_has_one_account(struct kunit *test)
{
	struct tw_user *users = kunit_kcalloc(test, 8, sizeof(*users), GFP_KERNEL);
	unsigned int i, k;
	int order;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, users);
	for (i = 0; i < 8; i++)
		users[i].payer = (struct tw_payer){
			.uid = 1 + (i & 1),
			.container = i & 2 ? &init_pid_ns : NULL,
			.privileged = !!(i & 4),
		};
	for (i = 0; i < 8; i++)
		for (k = 0; k < 8; k++) {
			order = tw_user_compare(&users[i].node, &users[k].node);
			KUNIT_EXPECT_EQ(test, !order, i == k);
			KUNIT_EXPECT_EQ(test, order < 0,
					tw_user_compare(&users[k].node, &users[i].node) > 0);
		}
}

static void wheels_of_a_payer_share_its_account(struct kunit *test)
{
	struct tw_user *first = open_as(test, 7, false), *second = open_as(test, 7, false);

	KUNIT_EXPECT_PTR_EQ(test, first, second);
	KUNIT_EXPECT_EQ(test, first->wheels, 2);
	copy_user_put(first);
	KUNIT_EXPECT_FALSE(test, RB_EMPTY_ROOT(&tw_users));
	copy_user_put(second);
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&tw_users));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(task_has_account_of_its_payer),
	KUNIT_CASE(each_payer_has_one_account),
	KUNIT_CASE(wheels_of_a_payer_share_its_account),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_user",
	.test_cases = cases,
};

kunit_test_suite(suite);
