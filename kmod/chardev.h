/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device /dev/twheel.
 */
#ifndef TW_CHARDEV_H
#define TW_CHARDEV_H

int tw_chardev_init(void);
void tw_chardev_exit(void);

#endif /* TW_CHARDEV_H */
