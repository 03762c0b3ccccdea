// SPDX-License-Identifier: GPL-2.0
/*
 * Test module with dependencies: on loader_base.c for a symbol, and on twheel,
 * which has no symbols for others, for its device.
 */
#include <linux/module.h>

#include "loader_base.h"

static int __init loader_user_init(void)
{
	return loader_base_answer() == 42 ? 0 : -EINVAL;
}
module_init(loader_user_init);

static void __exit loader_user_exit(void)
{
}
module_exit(loader_user_exit);

MODULE_DESCRIPTION("Test module that depends on another, and on /dev/twheel");
MODULE_LICENSE("GPL");
MODULE_SOFTDEP("pre: twheel");
