/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server's clock, and its timers: one wheel of libtwheel.
 *
 * The server's time is in ns since 1970. While the server runs it goes on with CLOCK_BOOTTIME, so
 * that no timer is early or late when somebody sets the wall clock. How far the two are apart is
 * kept in the store (the skew). Only while the machine was off does the wall clock count.
 *
 * With a database that servers share, its clock has the place of the wall clock.
 */
#ifndef TWHEELD_ALARM_H
#define TWHEELD_ALARM_H

#include <stdint.h>
#include <stddef.h>
#include <twheel.h>

#define SECOND 1000000000LL
#define MILLISECOND 1000000LL

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

struct event_base;

/* The server's time less CLOCK_BOOTTIME, and in which boot of the machine; 0: not known */
struct alarm_past {
	int64_t boot, offset;
};

void alarm_start(struct event_base *base, int64_t skew, struct alarm_past *past);
void alarm_follow(int64_t ahead);
int64_t alarm_now(void);
int64_t alarm_wall(void);
int64_t alarm_skew(void);
void alarm_init(struct twheel_timer *timer,
		void (*fn)(struct twheel *tw, struct twheel_timer *timer,
			   const struct twheel_event *event));
void alarm_set(struct twheel_timer *timer, int64_t when);
void alarm_stop(struct twheel_timer *timer);

#endif
