/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a wheel tells of itself: its settings, what it holds, its counters; and the counters
 * of the whole module.
 */
#ifndef TW_STATS_H
#define TW_STATS_H

struct tw_inner;
struct twheel;
struct twheel_info;
struct twheel_stats;

void tw_get_info(struct twheel *tw, struct twheel_info *info);
void tw_get_stats(struct twheel *tw, struct twheel_stats *stats,
		  struct tw_inner *inner);

void tw_stats_init(void);
void tw_stats_exit(void);
void tw_stats_add(struct twheel *tw);
void tw_stats_del(struct twheel *tw);

#endif /* TW_STATS_H */
