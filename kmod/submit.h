/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arrays of operations between a program's memory and the wheel.
 */
#ifndef TW_SUBMIT_H
#define TW_SUBMIT_H

#include <linux/types.h>

struct twheel;

long tw_submit(struct twheel *tw, u64 ops, u32 nr, u32 size);

#endif /* TW_SUBMIT_H */
