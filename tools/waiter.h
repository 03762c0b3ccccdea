/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel with one timer at a time, to wait until a time.
 */
#ifndef WAITER_H
#define WAITER_H

#include <stdbool.h>
#include <linux/types.h>
#include <twheel.h>

int waiter_open(struct twheel **tw);
int waiter_arm(struct twheel *tw, __u64 ns);
bool waiter_expired(struct twheel *tw);
bool waiter_wait(struct twheel *tw, int fd);

#endif /* WAITER_H */
