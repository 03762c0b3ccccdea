// SPDX-License-Identifier: GPL-2.0
/*
 * For a command twheel in which no timer can be armed, as where the user's limit is reached.
 */
#include <errno.h>
#include <twheel.h>

int __wrap_twheel_arm(struct twheel *tw, struct twheel_op *op);

int __wrap_twheel_arm(struct twheel *tw, struct twheel_op *op)
{
	(void)tw;
	(void)op;
	return -ENOSPC;
}
