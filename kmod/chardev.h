/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device /dev/twheel.
 */
#ifndef TW_CHARDEV_H
#define TW_CHARDEV_H

struct miscdevice;

/* main.c registers it. */
extern struct miscdevice tw_device;

#endif /* TW_CHARDEV_H */
