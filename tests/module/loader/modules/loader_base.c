// SPDX-License-Identifier: GPL-2.0
/*
 * Test module that loader_user.c depends on.
 */
#include <linux/module.h>

#include "loader_base.h"

int loader_base_answer(void)
{
	return 42;
}
EXPORT_SYMBOL_GPL(loader_base_answer);

MODULE_DESCRIPTION("Test module that another depends on");
MODULE_LICENSE("GPL");
