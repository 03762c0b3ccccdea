/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SUBMIT: arrays of operations, from a program's memory to ops.c and back.
 */
#ifndef TW_SUBMIT_H
#define TW_SUBMIT_H

#include <linux/types.h>

struct twheel;

long tw_submit(struct twheel *tw, u64 ops, u32 nr, u32 size);

#endif /* TW_SUBMIT_H */
