/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Is the module there, and may one use it?
 */
#ifndef MODULE_H
#define MODULE_H

#include <stdbool.h>
#include <sys/types.h>
#include <linux/twheel.h>

#define DEVICE "/dev/twheel"

/**
 * struct module - the module, as it is now
 * @loaded: it is
 * @version: its version, or "" if it does not say
 * @rdev: number of its device
 * @node: there is DEVICE
 * @uid: owner of DEVICE
 * @gid: its group
 * @mode: its permissions
 * @error: error of opening it, or 0
 * @features: TWHEEL_FEATURE_* bits, if it could be opened
 * @wheel_limit: most timers of a wheel, or 0 if that is not known
 * @user_limit: most timers of a user's wheels, or 0 if that is not known
 * @unprivileged_limit: the same of all together without CAP_SYS_RESOURCE
 * @budget: timers and slots in a run of expiry work, or 0 if that is not known
 */
struct module {
	bool loaded;
	char version[32];
	dev_t rdev;
	bool node;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	int error;
	__u64 features;
	__u64 wheel_limit;
	__u64 user_limit;
	__u64 unprivileged_limit;
	__u64 budget;
};

void module_look(struct module *module);
int module_explain(const struct module *module);
bool module_device(dev_t *rdev);
int module_missing(void);

#endif /* MODULE_H */
