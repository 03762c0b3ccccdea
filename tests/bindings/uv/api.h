/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One program over libuv's timers (-DNATIVE) and over ours: what the two call
 * differently. A program uses the names of this header.
 */
#ifndef API_H
#define API_H

#include <uv.h>

#ifdef NATIVE
#define any_timer_t uv_timer_t
#define timer_start uv_timer_start
#define timer_stop uv_timer_stop
#define timer_again uv_timer_again
#define timer_set_repeat uv_timer_set_repeat
#define timer_get_repeat uv_timer_get_repeat
#define timer_get_due_in uv_timer_get_due_in
#define timer_ref(t) uv_ref((uv_handle_t *)(t))
#define timer_unref(t) uv_unref((uv_handle_t *)(t))
#define timer_has_ref(t) uv_has_ref((uv_handle_t *)(t))
#define timer_is_active(t) uv_is_active((uv_handle_t *)(t))
#define timer_is_closing(t) uv_is_closing((uv_handle_t *)(t))
#else
#include "twheel_uv.h"
#define any_timer_t struct twheel_uv_timer
#define timer_start twheel_uv_timer_start
#define timer_stop twheel_uv_timer_stop
#define timer_again twheel_uv_timer_again
#define timer_set_repeat twheel_uv_timer_set_repeat
#define timer_get_repeat twheel_uv_timer_get_repeat
#define timer_get_due_in twheel_uv_timer_get_due_in
#define timer_ref twheel_uv_timer_ref
#define timer_unref twheel_uv_timer_unref
#define timer_has_ref twheel_uv_timer_has_ref
#define timer_is_active twheel_uv_timer_is_active
#define timer_is_closing twheel_uv_timer_is_closing
static struct twheel_uv wheel;
#endif

static uv_loop_t loop;

/* Shared timers: fewer than there are timers, so that both kinds are used */
#ifndef SHARED
#define SHARED 16
#endif

static inline int open_loop(void)
{
	int ret = uv_loop_init(&loop);

#ifndef NATIVE
	if (!ret)
		ret = twheel_uv_init(&loop, &wheel, 0, SHARED);
#endif
	return ret;
}

static inline void timer_init(any_timer_t *timer)
{
#ifdef NATIVE
	uv_timer_init(&loop, timer);
#else
	twheel_uv_timer_init(&wheel, timer);
#endif
}

#ifdef NATIVE
static void (*native_closed)(any_timer_t *timer);

static void native_close_cb(uv_handle_t *handle)
{
	native_closed((any_timer_t *)handle);
}
#endif

/* All that a program closes has the same callback, or none */
static inline void timer_close(any_timer_t *timer, void (*cb)(any_timer_t *timer))
{
#ifdef NATIVE
	if (cb)
		native_closed = cb;
	uv_close((uv_handle_t *)timer, cb ? native_close_cb : NULL);
#else
	twheel_uv_timer_close(timer, cb);
#endif
}

/* 0 if nothing is left behind */
static inline int close_loop(void)
{
#ifndef NATIVE
	int ret = twheel_uv_close(&wheel, NULL);

	if (ret)
		return ret;
	uv_run(&loop, UV_RUN_DEFAULT);
#endif
	return uv_loop_close(&loop);
}

#endif
