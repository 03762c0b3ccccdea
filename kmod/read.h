/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading a wheel in use, and draining it.
 */
#ifndef TW_READ_H
#define TW_READ_H

#include <linux/types.h>

struct iov_iter;
struct twheel;
struct twheel_drain;

ssize_t tw_read_events(struct twheel *tw, struct iov_iter *to, u32 unit, u32 most);
ssize_t tw_read_count(struct twheel *tw, struct iov_iter *to, u32 most);
long tw_drain(struct twheel *tw, const struct twheel_drain *drain);

#endif /* TW_READ_H */
