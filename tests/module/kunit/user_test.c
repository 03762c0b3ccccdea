// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the accounts of users: one to a payer, from the first wheel to the last.
 */
#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/cred.h>

/* A copy of user.c, with users of its own, whose static functions can be called */
#define tw_user_get copy_user_get
#define tw_user_put copy_user_put
#include "kmod/user.c"

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
	old = override_creds(cred);
	user = copy_user_get();
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

/* Two tasks of a payer open the first wheel, and each brings an account. */
static void each_payer_has_one_account(struct kunit *test)
{
	struct tw_payer payers[8];
	struct tw_user *users[8], *other;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		payers[i] = (struct tw_payer){
			.uid = 1 + (i & 1),
			.container = i & 2 ? &init_pid_ns : NULL,
			.privileged = i & 4,
		};
		users[i] = kzalloc(sizeof(*users[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, users[i]);
		users[i]->payer = payers[i];
		KUNIT_EXPECT_NULL(test, tw_user_add_wheel(&payers[i], NULL));
		KUNIT_EXPECT_PTR_EQ(test, tw_user_add_wheel(&payers[i], users[i]), users[i]);
	}
	other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_PTR_EQ(test, tw_user_add_wheel(&payers[i], other), users[i]);
		copy_user_put(users[i]);
		copy_user_put(users[i]);
		KUNIT_EXPECT_NULL(test, tw_user_add_wheel(&payers[i], NULL));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(task_has_account_of_its_payer),
	KUNIT_CASE(each_payer_has_one_account),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_user",
	.test_cases = cases,
};

kunit_test_suite(suite);
