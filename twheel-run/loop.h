/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop that calls all else, and timers in it.
 */
#ifndef TWHEEL_RUN_LOOP_H
#define TWHEEL_RUN_LOOP_H

#include <event2/event.h>
#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

extern struct event_base *loop;

long long loop_now(void);
struct event *loop_timer(event_callback_fn fn, void *arg);
void loop_set(struct event *timer, long long ms);

#endif
