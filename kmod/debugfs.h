/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file twheel/counters in debugfs: counters of the whole module.
 */
#ifndef TW_DEBUGFS_H
#define TW_DEBUGFS_H

struct twheel;

void tw_debugfs_init(void);
void tw_debugfs_exit(void);
void tw_debugfs_add(struct twheel *tw);
void tw_debugfs_del(struct twheel *tw);

#endif /* TW_DEBUGFS_H */
