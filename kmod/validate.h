/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of what a program asks for. Pure: they look at nothing but their
 * arguments, so that they can be tested and fuzzed by themselves.
 */
#ifndef TW_VALIDATE_H
#define TW_VALIDATE_H

#include <linux/types.h>
#include <uapi/linux/twheel.h>

int tw_check_op(const struct twheel_op *op);
int tw_check_setup(const struct twheel_setup *setup);
int tw_check_array(u32 flags, u32 nr, u32 op_size);

#endif /* TW_VALIDATE_H */
