// SPDX-License-Identifier: GPL-2.0
/*
 * twheel: one file descriptor holding millions of timers.
 *
 * Here the module is loaded and unloaded, and has its parameters.
 */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "account.h"
#include "context.h"

static int tw_param_set_limit(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, TW_MOST_TIMERS);
}

static const struct kernel_param_ops tw_limit_ops = {
	.set = tw_param_set_limit,
	.get = param_get_uint,
};

static int tw_param_set_budget(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, TW_BUDGET_MIN, 1U << 16);
}

static const struct kernel_param_ops tw_budget_ops = {
	.set = tw_param_set_budget,
	.get = param_get_uint,
};

module_param_cb(max_timers, &tw_limit_ops, &tw_max_timers, 0644);
__MODULE_PARM_TYPE(max_timers, "uint");
MODULE_PARM_DESC(max_timers,
		 "Most timers in one wheel, pending and ready; 1 to 1073741824, default 16777216");

module_param_cb(max_user_timers, &tw_limit_ops, &tw_max_user_timers, 0644);
__MODULE_PARM_TYPE(max_user_timers, "uint");
MODULE_PARM_DESC(max_user_timers,
		 "Most memory of all wheels of one user, in timers of 40 bytes; 1 to 1073741824, default 4 % of the memory");

module_param_cb(max_unprivileged_timers, &tw_limit_ops, &tw_max_unprivileged_timers, 0644);
__MODULE_PARM_TYPE(max_unprivileged_timers, "uint");
MODULE_PARM_DESC(max_unprivileged_timers,
		 "Most memory of all wheels that were opened without CAP_SYS_RESOURCE, in timers of 40 bytes; 1 to 1073741824, default 12 % of the memory, and never less than max_user_timers");

module_param_cb(budget, &tw_budget_ops, &tw_budget, 0644);
__MODULE_PARM_TYPE(budget, "uint");
MODULE_PARM_DESC(budget,
		 "Timers and slots that are touched one by one in a run of expiry work, before it lets others go first; 16 to 65536, default 256");

static int __init twheel_init(void)
{
	int ret;

	tw_default_limits();
	tw_stats_init();
	ret = tw_device_add();
	if (ret)
		tw_stats_exit();
	return ret;
}
module_init(twheel_init);

static void __exit twheel_exit(void)
{
	tw_device_del();
	tw_stats_exit();
}
module_exit(twheel_exit);

MODULE_DESCRIPTION("One file descriptor holding millions of timers");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
/* Not where it is a part of the kernel, which has a version. */
#ifdef TW_VERSION
MODULE_VERSION(TW_VERSION);
#endif
