/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations between a program's memory and the wheel.
 */
#ifndef TW_SUBMIT_H
#define TW_SUBMIT_H

#include <uapi/linux/twheel.h>

struct twheel;

long tw_submit(struct twheel *tw, const struct twheel_submit *submit);
int tw_submit_one(struct twheel *tw, void __user *uarg, u32 usize, u16 opcode);

#endif /* TW_SUBMIT_H */
