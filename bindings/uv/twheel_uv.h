/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers for libuv, in place of uv_timer_t: all of a loop's are in one wheel of the module,
 * which the loop watches by one uv_poll_t. Functions, meaning, order and errors are those of
 * uv_timer_*(), with the same milliseconds of uv_now(); what is the library's own to
 * uv_close(), uv_ref(), uv_unref() and the like has a function here. Without the module they
 * are libuv's own timers.
 *
 * To be used instead of
 *
 *	uv_timer_t timer;		struct twheel_uv_timer timer;
 *	uv_timer_init(loop, &timer)	twheel_uv_timer_init(&wheel, &timer)
 *	uv_timer_start(&timer, ...)	twheel_uv_timer_start(&timer, ...)
 *	uv_close(&timer, cb)		twheel_uv_timer_close(&timer, cb)
 *	uv_is_active(&timer)		twheel_uv_timer_is_active(&timer), is_closing, has_ref
 *	uv_unref(&timer)		twheel_uv_timer_unref(&timer), ref
 *
 * between twheel_uv_init(loop, &wheel, 0, TWHEEL_UV_SHARED) and, once all are closed,
 * twheel_uv_close(&wheel, NULL), which wants a turn of the loop before uv_loop_close(). All in
 * the header: a program links to libtwheel and libuv. As with libuv, one thread calls what is
 * of one loop.
 *
 * What is different, over the module:
 * - Timers run when libuv runs its own, in its order: by time, and then as they were started.
 *   But libuv's own timers that are due by then run before all of these, or after them.
 * - The moment at which libuv would look is that at which the module has found a timer due: it
 *   may take some microseconds to be. And where callbacks took long, libuv waits so much longer
 *   for the next timer, unless uv_update_time() is called; a wheel does not.
 * - twheel_uv_timer_start() may fail with UV_ENOMEM or UV_ENOSPC, and then the timer is
 *   stopped. One that repeats is never lost by that.
 * - After fork(2) the child must not use the wheel: let it make a loop of its own.
 * uv_walk() meets some handles more. Who closes all that it meets leaves out those of which
 * twheel_uv_owns() says so.
 */
#ifndef TWHEEL_UV_H
#define TWHEEL_UV_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <twheel.h>
#include <twheel_shared.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/** TWHEEL_UV_SHARED: as many shared timers as most programs do well with; 2.6 MB */
#define TWHEEL_UV_SHARED 65536U

/* A place in a list; it comes first in what is in one */
struct twheel_uv_link {
	struct twheel_uv_link *next;
	struct twheel_uv_link *prev;
};

/**
 * struct twheel_uv_timer - a timer
 * @data: the caller's; all else is internal
 */
struct twheel_uv_timer {
	__extension__ union {
		/* Without the module */
		uv_timer_t own;

		__extension__ struct {
			struct twheel_uv_link link;
			uint64_t timeout;
			uint64_t repeat;
			uint64_t start_id;
			/* Id of an ordinary timer of the wheel, or 0 */
			uint64_t id;
			/* Number of a shared timer plus 1, or 0 */
			uint32_t number;
			uint32_t flags;
		};
	};
	void *data;
	struct twheel_uv *wheel;
	void (*cb)(struct twheel_uv_timer *timer);
	void (*close_cb)(struct twheel_uv_timer *timer);
};

/* The timer of a number, or the next free number */
union twheel_uv_number {
	struct twheel_uv_timer *timer;
	uintptr_t next_free;
};

/**
 * struct twheel_uv - the wheel of a loop
 * @data: the caller's; all else is internal
 * @tw: the wheel, or NULL without the module
 * @due: timers that are out of the wheel, or were never in it; their time may be to come
 * @unsorted: are they in no order?
 * @running: timers that are being run
 * @closing: timers whose close callback is to be called, the last one first
 * @soonest: no timer in the wheel is due before that, in ms
 * @runner: runs what is due, when libuv runs its own timers
 */
struct twheel_uv {
	void *data;
	uv_loop_t *loop;
	struct twheel *tw;
	struct twheel_area area;
	union twheel_uv_number *numbers;
	uint32_t nr_numbers;
	uint32_t fresh;
	uint32_t first_free;
	int unsorted;
	uint64_t starts;
	/* Timers of all kinds, and those that keep the loop alive */
	uint64_t timers;
	uint64_t alive;
	struct twheel_uv_link due;
	struct twheel_uv_link running;
	struct twheel_uv_timer *closing;
	uint64_t soonest;
	uint64_t runner_at;
	uv_poll_t *poll;
	uv_timer_t runner;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t closer;
	int to_close;
	void (*close_cb)(struct twheel_uv *wheel);
};

/* In a timer's flags */
#define TWHEEL_UV__ACTIVE 1U
#define TWHEEL_UV__REF 2U
#define TWHEEL_UV__CLOSING 4U

/* Timers that are taken out of the wheel together */
#define TWHEEL_UV__BATCH 128

#define TWHEEL_UV__NS 1000000ULL
#define TWHEEL_UV__NEVER 0x7fffffffffffffffULL

/* Since this version a timer that a callback starts with 0 runs in the next turn, not in this. */
#define TWHEEL_UV__QUEUE 0x013000U

static inline void twheel_uv__list_init(struct twheel_uv_link *list)
{
	list->next = list;
	list->prev = list;
}

static inline int twheel_uv__list_empty(const struct twheel_uv_link *list)
{
	return list->next == list;
}

static inline void twheel_uv__list_append(struct twheel_uv_link *list, struct twheel_uv_link *link)
{
	link->next = list;
	link->prev = list->prev;
	link->prev->next = link;
	list->prev = link;
}

/* Out of its list, if it is in any */
static inline void twheel_uv__unlink(struct twheel_uv_link *link)
{
	if (!link->next)
		return;
	link->next->prev = link->prev;
	link->prev->next = link->next;
	link->next = NULL;
}

/* All of a list to an empty one */
static inline void twheel_uv__list_move(struct twheel_uv_link *from, struct twheel_uv_link *to)
{
	if (twheel_uv__list_empty(from))
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	twheel_uv__list_init(from);
}

/* Does the first run before the second? */
static inline int twheel_uv__before(const struct twheel_uv_link *a, const struct twheel_uv_link *b)
{
	const struct twheel_uv_timer *x = (const struct twheel_uv_timer *)a;
	const struct twheel_uv_timer *y = (const struct twheel_uv_timer *)b;

	return x->timeout != y->timeout ? x->timeout < y->timeout : x->start_id < y->start_id;
}

/* Two sorted chains become one; only next counts, and NULL is the end */
static inline struct twheel_uv_link *twheel_uv__merge(struct twheel_uv_link *a,
						      struct twheel_uv_link *b)
{
	struct twheel_uv_link *first = NULL, **end = &first;

	while (a && b) {
		struct twheel_uv_link **from = twheel_uv__before(b, a) ? &b : &a;

		*end = *from;
		end = &(*end)->next;
		*from = *end;
	}
	*end = a ? a : b;
	return first;
}

/* Chains of 1, 2, 4, ... that wait for one of their length: no memory, no recursion */
static inline void twheel_uv__sort(struct twheel_uv_link *list)
{
	struct twheel_uv_link *waiting[64] = { 0 }, *chain, *next, *all = NULL;
	unsigned int i;

	list->prev->next = NULL;
	for (chain = list->next; chain; chain = next) {
		next = chain->next;
		chain->next = NULL;
		for (i = 0; waiting[i]; i++) {
			chain = twheel_uv__merge(waiting[i], chain);
			waiting[i] = NULL;
		}
		waiting[i] = chain;
	}
	for (i = 0; i < 64; i++)
		all = twheel_uv__merge(waiting[i], all);
	twheel_uv__list_init(list);
	for (chain = all; chain; chain = next) {
		next = chain->next;
		twheel_uv__list_append(list, chain);
	}
}

static inline void twheel_uv__add_due(struct twheel_uv_timer *timer)
{
	struct twheel_uv *wheel = timer->wheel;
	struct twheel_uv_link *due = &wheel->due;

	if (!twheel_uv__list_empty(due) && twheel_uv__before(&timer->link, due->prev))
		wheel->unsorted = 1;
	twheel_uv__list_append(due, &timer->link);
}

/* The first one that is due, or NULL */
static inline struct twheel_uv_timer *twheel_uv__first(struct twheel_uv *wheel)
{
	if (twheel_uv__list_empty(&wheel->due))
		return NULL;
	if (wheel->unsorted)
		twheel_uv__sort(&wheel->due);
	wheel->unsorted = 0;
	return (struct twheel_uv_timer *)wheel->due.next;
}

/* A number for a timer, as long as there are any */
static inline void twheel_uv__get_number(struct twheel_uv_timer *timer)
{
	struct twheel_uv *wheel = timer->wheel;
	uint32_t number = wheel->first_free;

	if (number)
		wheel->first_free = (uint32_t)wheel->numbers[number - 1].next_free;
	else if (wheel->fresh < wheel->nr_numbers)
		number = ++wheel->fresh;
	else
		return;
	wheel->numbers[number - 1].timer = timer;
	timer->number = number;
}

/* In the wheel, which it may be in already */
static inline int twheel_uv__place_ordinary(struct twheel_uv_timer *timer, uint64_t ns)
{
	struct twheel *tw = timer->wheel->tw;
	struct twheel_op op;
	int ret;

	if (timer->id) {
		op = twheel_op_modify(timer->id, TWHEEL_ABS, ns, 0, (uintptr_t)timer);
		return twheel_modify(tw, &op);
	}
	op = twheel_op_arm(TWHEEL_ABS, ns, 0, (uintptr_t)timer);
	ret = twheel_arm(tw, &op);
	if (!ret)
		timer->id = op.id;
	return ret;
}

static inline int twheel_uv__place(struct twheel_uv_timer *timer)
{
	uint64_t ms = timer->timeout, ns;
	int ret;

	ns = ms < TWHEEL_UV__NEVER / TWHEEL_UV__NS ? ms * TWHEEL_UV__NS : TWHEEL_UV__NEVER;
	if (!timer->number && !timer->id)
		twheel_uv__get_number(timer);
	if (!timer->number)
		return twheel_uv__place_ordinary(timer, ns);
	ret = twheel_shared_arm(&timer->wheel->area, timer->number - 1, ns);
	return ret < 0 ? ret : 0;
}

static inline void twheel_uv__run(uv_timer_t *runner);

/* The runner comes at that time, or earlier if it does so already. */
static inline void twheel_uv__run_at(struct twheel_uv *wheel, uint64_t ms)
{
	uint64_t now = uv_now(wheel->loop);

	if (uv_is_active((uv_handle_t *)&wheel->runner) && wheel->runner_at <= ms)
		return;
	wheel->runner_at = ms;
	uv_timer_start(&wheel->runner, twheel_uv__run, ms <= now ? 0 : ms - now, 0);
}

/* The loop lives as long as a timer is active that has a reference. */
static inline void twheel_uv__set_flags(struct twheel_uv_timer *timer, uint32_t flags)
{
	const uint32_t both = TWHEEL_UV__ACTIVE | TWHEEL_UV__REF;
	struct twheel_uv *wheel = timer->wheel;
	int before = (timer->flags & both) == both;
	int after = (flags & both) == both;

	timer->flags = flags;
	if (after && !before && !wheel->alive++)
		uv_ref((uv_handle_t *)wheel->poll);
	else if (before && !after && !--wheel->alive)
		uv_unref((uv_handle_t *)wheel->poll);
}

/* Nothing of the timer stays where its time would come. */
static inline void twheel_uv__displace(struct twheel_uv_timer *timer)
{
	if (timer->number)
		twheel_shared_cancel(&timer->wheel->area, timer->number - 1);
	if (timer->id)
		twheel_cancel(timer->wheel->tw, timer->id);
	timer->id = 0;
}

/**
 * twheel_uv_timer_stop - let a timer not be run
 * @timer: the timer, active or not
 *
 * Return: 0.
 */
static inline int twheel_uv_timer_stop(struct twheel_uv_timer *timer)
{
	if (!timer->wheel->tw)
		return uv_timer_stop(&timer->own);
	if (timer->flags & TWHEEL_UV__CLOSING)
		return 0;
	twheel_uv__unlink(&timer->link);
	if (!(timer->flags & TWHEEL_UV__ACTIVE))
		return 0;
	twheel_uv__displace(timer);
	twheel_uv__set_flags(timer, timer->flags & ~TWHEEL_UV__ACTIVE);
	return 0;
}

/* A new time for a timer, active or not. Returns 0 or an error of the wheel. */
static inline int twheel_uv__begin(struct twheel_uv_timer *timer, uint64_t timeout)
{
	struct twheel_uv *wheel = timer->wheel;
	uint64_t now = uv_now(wheel->loop);
	int ret = 0;

	twheel_uv__unlink(&timer->link);
	timer->timeout = now + timeout < now ? UINT64_MAX : now + timeout;
	timer->start_id = wheel->starts++;
	if (timeout) {
		ret = twheel_uv__place(timer);
		if (timer->timeout < wheel->soonest)
			wheel->soonest = timer->timeout;
	} else {
		twheel_uv__displace(timer);
		twheel_uv__add_due(timer);
	}
	twheel_uv__set_flags(timer, timer->flags | TWHEEL_UV__ACTIVE);
	twheel_uv__run_at(wheel, timer->timeout);
	return ret;
}

/* Without the module */
static inline void twheel_uv__called(uv_timer_t *own)
{
	struct twheel_uv_timer *timer = (struct twheel_uv_timer *)own;

	timer->cb(timer);
}

/**
 * twheel_uv_timer_start - start a timer, also one that is active
 * @timer: the timer
 * @cb: called when it is due
 * @timeout: when, in ms from uv_now(); 0 for the next turn of the loop
 * @repeat: or 0: period of the runs after that one, in ms
 *
 * Return: 0; %UV_EINVAL without @cb, and when it is closing; %UV_ENOMEM, %UV_ENOSPC.
 */
static inline int twheel_uv_timer_start(struct twheel_uv_timer *timer,
					void (*cb)(struct twheel_uv_timer *timer),
					uint64_t timeout, uint64_t repeat)
{
	int ret;

	if (!timer->wheel->tw) {
		ret = uv_timer_start(&timer->own, cb ? twheel_uv__called : NULL, timeout, repeat);
		if (!ret)
			timer->cb = cb;
		return ret;
	}
	if (!cb || timer->flags & TWHEEL_UV__CLOSING)
		return UV_EINVAL;
	timer->cb = cb;
	timer->repeat = repeat;
	ret = twheel_uv__begin(timer, timeout);
	if (ret)
		twheel_uv_timer_stop(timer);
	return ret;
}

/**
 * twheel_uv_timer_again - start a timer that repeats for a period from now
 * @timer: the timer; one that does not repeat is left as it is
 *
 * Return: 0; %UV_EINVAL when it was never started; as of twheel_uv_timer_start().
 */
static inline int twheel_uv_timer_again(struct twheel_uv_timer *timer)
{
	if (!timer->wheel->tw)
		return uv_timer_again(&timer->own);
	if (!timer->cb)
		return UV_EINVAL;
	if (!timer->repeat || timer->flags & TWHEEL_UV__CLOSING)
		return 0;
	return twheel_uv_timer_start(timer, timer->cb, timer->repeat, timer->repeat);
}

/**
 * twheel_uv_timer_set_repeat - set the period
 * @timer: the timer
 * @repeat: in ms, from the next run on; 0 for none
 */
static inline void twheel_uv_timer_set_repeat(struct twheel_uv_timer *timer, uint64_t repeat)
{
	if (timer->wheel->tw)
		timer->repeat = repeat;
	else
		uv_timer_set_repeat(&timer->own, repeat);
}

/**
 * twheel_uv_timer_get_repeat - the period
 * @timer: the timer
 *
 * Return: in ms, or 0.
 */
static inline uint64_t twheel_uv_timer_get_repeat(const struct twheel_uv_timer *timer)
{
	return timer->wheel->tw ? timer->repeat : uv_timer_get_repeat(&timer->own);
}

/**
 * twheel_uv_timer_get_due_in - how long until it is due
 * @timer: the timer
 *
 * Return: in ms from uv_now(), or 0 if it is over.
 */
static inline uint64_t twheel_uv_timer_get_due_in(const struct twheel_uv_timer *timer)
{
	uint64_t now = uv_now(timer->wheel->loop);

	if (!timer->wheel->tw)
		return uv_timer_get_due_in(&timer->own);
	return now >= timer->timeout ? 0 : timer->timeout - now;
}

/** twheel_uv_timer_ref - let @timer keep the loop alive, which is so at first */
static inline void twheel_uv_timer_ref(struct twheel_uv_timer *timer)
{
	if (timer->wheel->tw)
		twheel_uv__set_flags(timer, timer->flags | TWHEEL_UV__REF);
	else
		uv_ref((uv_handle_t *)&timer->own);
}

/** twheel_uv_timer_unref - let @timer not keep the loop alive */
static inline void twheel_uv_timer_unref(struct twheel_uv_timer *timer)
{
	if (timer->wheel->tw)
		twheel_uv__set_flags(timer, timer->flags & ~TWHEEL_UV__REF);
	else
		uv_unref((uv_handle_t *)&timer->own);
}

/** twheel_uv_timer_has_ref - does @timer keep the loop alive while it is active? */
static inline int twheel_uv_timer_has_ref(const struct twheel_uv_timer *timer)
{
	if (!timer->wheel->tw)
		return !!uv_has_ref((const uv_handle_t *)&timer->own);
	return !!(timer->flags & TWHEEL_UV__REF);
}

/** twheel_uv_timer_is_active - was @timer started, and neither stopped nor run? */
static inline int twheel_uv_timer_is_active(const struct twheel_uv_timer *timer)
{
	if (!timer->wheel->tw)
		return !!uv_is_active((const uv_handle_t *)&timer->own);
	return !!(timer->flags & TWHEEL_UV__ACTIVE);
}

/** twheel_uv_timer_is_closing - was @timer closed? */
static inline int twheel_uv_timer_is_closing(const struct twheel_uv_timer *timer)
{
	if (!timer->wheel->tw)
		return !!uv_is_closing((const uv_handle_t *)&timer->own);
	return !!(timer->flags & TWHEEL_UV__CLOSING);
}

/**
 * twheel_uv_timer_init - make a timer that is not active
 * @wheel: in which it is to be
 * @timer: the timer; its memory is the caller's, until @cb of its close was called
 *
 * Return: 0.
 */
static inline int twheel_uv_timer_init(struct twheel_uv *wheel, struct twheel_uv_timer *timer)
{
	timer->wheel = wheel;
	timer->cb = NULL;
	wheel->timers++;
	if (!wheel->tw) {
		uv_timer_init(wheel->loop, &timer->own);
		/* A mark that no other handle has: see twheel_uv_owns() */
		timer->own.data = &wheel->runner;
		return 0;
	}
	timer->link.next = NULL;
	timer->timeout = 0;
	timer->repeat = 0;
	timer->start_id = 0;
	timer->id = 0;
	timer->number = 0;
	timer->flags = TWHEEL_UV__REF;
	return 0;
}

static inline void twheel_uv__put_number(struct twheel_uv_timer *timer)
{
	struct twheel_uv *wheel = timer->wheel;

	if (!timer->number)
		return;
	wheel->numbers[timer->number - 1].next_free = wheel->first_free;
	wheel->first_free = timer->number;
	timer->number = 0;
}

/* The last of a turn of the loop */
static inline void twheel_uv__closed(uv_handle_t *closer)
{
	struct twheel_uv *wheel = (struct twheel_uv *)closer->data;
	struct twheel_uv_timer *timer = wheel->closing, *next;

	wheel->closing = NULL;
	for (; timer; timer = next) {
		next = (struct twheel_uv_timer *)timer->link.next;
		wheel->timers--;
		if (timer->close_cb)
			timer->close_cb(timer);
	}
}

/* Without the module */
static inline void twheel_uv__own_closed(uv_handle_t *own)
{
	struct twheel_uv_timer *timer = (struct twheel_uv_timer *)own;

	timer->wheel->timers--;
	if (timer->close_cb)
		timer->close_cb(timer);
}

/**
 * twheel_uv_timer_close - end a timer
 * @timer: the timer, not closed before
 * @cb: or NULL: called at the end of a turn of the loop; then the memory is the caller's
 */
static inline void twheel_uv_timer_close(struct twheel_uv_timer *timer,
					 void (*cb)(struct twheel_uv_timer *timer))
{
	struct twheel_uv *wheel = timer->wheel;

	timer->close_cb = cb;
	if (!wheel->tw) {
		uv_close((uv_handle_t *)&timer->own, twheel_uv__own_closed);
		return;
	}
	if (timer->flags & TWHEEL_UV__CLOSING)
		abort();
	twheel_uv_timer_stop(timer);
	twheel_uv__put_number(timer);
	timer->flags |= TWHEEL_UV__CLOSING;
	/* A handle for nothing but its end, which comes when the timer's is to come */
	if (!wheel->closing) {
		uv_idle_init(wheel->loop, &wheel->closer);
		wheel->closer.data = wheel;
		uv_close((uv_handle_t *)&wheel->closer, twheel_uv__closed);
	}
	timer->link.next = (struct twheel_uv_link *)wheel->closing;
	wheel->closing = timer;
}

/* All that is due by now, and is to run when the loop sees that it is. */
static inline void twheel_uv__collect(struct twheel_uv *wheel)
{
	struct twheel_event events[TWHEEL_UV__BATCH];
	int i, nr;

	do {
		nr = twheel_read(wheel->tw, events, TWHEEL_UV__BATCH);
		for (i = 0; i < nr; i++) {
			struct twheel_uv_timer *timer;

			if (events[i].flags & TWHEEL_EVENT_SHARED)
				timer = wheel->numbers[events[i].user_data].timer;
			else
				timer = (struct twheel_uv_timer *)(uintptr_t)events[i].user_data;
			timer->id = 0;
			twheel_uv__add_due(timer);
		}
	} while (nr == TWHEEL_UV__BATCH);
}

/* No timer in the wheel is due before that, in ms: neither one that the kernel knows, nor others */
static inline uint64_t twheel_uv__soonest(struct twheel_uv *wheel)
{
	uint64_t ns = UINT64_MAX;
	struct twheel_info info;

	/* In that order: what the kernel has not found by the first, it has by the second. */
	if (wheel->nr_numbers)
		ns = __atomic_load_n(&wheel->area.shared->next_wake, __ATOMIC_ACQUIRE);
	memset(&info, 0, sizeof(info));
	info.size = sizeof(info);
	if (!twheel_info(wheel->tw, &info) && info.pending && info.next_expiry < ns)
		ns = info.next_expiry;
	return ns == UINT64_MAX ? ns : ns / TWHEEL_UV__NS;
}

/* A timer that is due now goes on, or not, and is run. */
static inline void twheel_uv__call(struct twheel_uv_timer *timer)
{
	twheel_uv_timer_stop(timer);
	/* Where there is no place in the wheel, it needs none. */
	if (timer->repeat && twheel_uv__begin(timer, timer->repeat))
		twheel_uv__add_due(timer);
	timer->cb(timer);
}

static inline struct twheel_uv_timer *twheel_uv__next_due(struct twheel_uv *wheel)
{
	struct twheel_uv_timer *timer = twheel_uv__first(wheel);

	return timer && timer->timeout <= uv_now(wheel->loop) ? timer : NULL;
}

/* As of 1.48: first all that is due is stopped, and then each is run that is still to be. */
static inline void twheel_uv__run_queue(struct twheel_uv *wheel)
{
	struct twheel_uv_timer *timer;

	while ((timer = twheel_uv__next_due(wheel))) {
		twheel_uv_timer_stop(timer);
		twheel_uv__list_append(&wheel->running, &timer->link);
	}
	while (!twheel_uv__list_empty(&wheel->running))
		twheel_uv__call((struct twheel_uv_timer *)wheel->running.next);
}

/* As before: what becomes due while others are run is run, too. */
static inline void twheel_uv__run_each(struct twheel_uv *wheel)
{
	uint64_t looked = uv_now(wheel->loop);
	struct twheel_uv_timer *timer;

	while ((timer = twheel_uv__next_due(wheel))) {
		twheel_uv__call(timer);
		if (uv_now(wheel->loop) == looked)
			continue;
		looked = uv_now(wheel->loop);
		twheel_uv__collect(wheel);
	}
}

/* The runner comes for what is due first, if that is not before libuv polls for it. */
static inline void twheel_uv__set_runner(struct twheel_uv *wheel, uint64_t soonest)
{
	struct twheel_uv_timer *first = twheel_uv__first(wheel);

	uv_timer_stop(&wheel->runner);
	if (first && first->timeout < soonest)
		soonest = first->timeout;
	if (soonest != UINT64_MAX)
		twheel_uv__run_at(wheel, soonest);
}

static inline void twheel_uv__run(uv_timer_t *runner)
{
	struct twheel_uv *wheel = (struct twheel_uv *)runner->data;

	twheel_uv__collect(wheel);
	if (uv_version() < TWHEEL_UV__QUEUE)
		twheel_uv__run_each(wheel);
	else
		twheel_uv__run_queue(wheel);
	/* All timers that are due by now were found. */
	wheel->soonest = twheel_uv__soonest(wheel);
	if (wheel->soonest <= uv_now(wheel->loop))
		wheel->soonest = uv_now(wheel->loop) + 1;
	twheel_uv__set_runner(wheel, wheel->soonest);
}

/*
 * While the loop waits, the wheel wakes it, to the ms; the runner would do so for nothing where a
 * timer was stopped or started anew. It does for what is out of the wheel.
 */
static inline void twheel_uv__before_poll(uv_prepare_t *prepare)
{
	twheel_uv__set_runner((struct twheel_uv *)prepare->data, UINT64_MAX);
}

static inline void twheel_uv__after_poll(uv_check_t *check)
{
	struct twheel_uv *wheel = (struct twheel_uv *)check->data;

	twheel_uv__set_runner(wheel, wheel->soonest);
}

static inline void twheel_uv__readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	((struct twheel_uv *)poll->data)->soonest = 0;
}

/* With shared timers where that can be. Ticks are those of libuv. */
static inline int twheel_uv__setup(struct twheel_uv *wheel, unsigned int shared)
{
	struct twheel_setup setup;
	int ret;

	memset(&setup, 0, sizeof(setup));
	setup.size = sizeof(setup);
	setup.clock = TWHEEL_CLOCK_MONOTONIC;
	setup.tick = TWHEEL_UV__NS;
	if (!shared)
		return twheel_setup(wheel->tw, &setup);
	setup.flags = TWHEEL_SETUP_SHARED;
	setup.shared = shared;
	ret = twheel_setup(wheel->tw, &setup);
	if (ret == UV_ENOSPC || ret == UV_ENOMEM || ret == -EOPNOTSUPP) {
		setup.flags = 0;
		setup.shared = 0;
		return twheel_setup(wheel->tw, &setup);
	}
	if (ret)
		return ret;
	wheel->numbers = (union twheel_uv_number *)malloc(shared * sizeof(wheel->numbers[0]));
	if (!wheel->numbers)
		return UV_ENOMEM;
	wheel->nr_numbers = shared;
	ret = twheel_shared_map(wheel->tw, &wheel->area);
	if (ret)
		wheel->nr_numbers = 0;
	return ret;
}

static inline void twheel_uv__free(struct twheel_uv *wheel)
{
	if (wheel->nr_numbers)
		twheel_shared_unmap(&wheel->area);
	free(wheel->numbers);
	twheel_close(wheel->tw);
}

static inline void twheel_uv__free_poll(uv_handle_t *handle)
{
	free(handle);
}

/*
 * Memory of its own: a loop has a handle for a while after it was closed, and @wheel is the
 * caller's again as soon as it can't be watched.
 */
static inline int twheel_uv__poll(struct twheel_uv *wheel)
{
	int ret;

	wheel->poll = (uv_poll_t *)malloc(sizeof(*wheel->poll));
	if (!wheel->poll)
		return UV_ENOMEM;
	ret = uv_poll_init(wheel->loop, wheel->poll, twheel_fd(wheel->tw));
	if (ret) {
		free(wheel->poll);
		return ret;
	}
	wheel->poll->data = wheel;
	ret = uv_poll_start(wheel->poll, UV_READABLE, twheel_uv__readable);
	if (ret)
		uv_close((uv_handle_t *)wheel->poll, twheel_uv__free_poll);
	return ret;
}

/* The handles of its own, which do not keep the loop alive by themselves */
static inline int twheel_uv__watch(struct twheel_uv *wheel)
{
	int ret = twheel_uv__poll(wheel);

	if (ret)
		return ret;
	uv_timer_init(wheel->loop, &wheel->runner);
	uv_prepare_init(wheel->loop, &wheel->prepare);
	uv_check_init(wheel->loop, &wheel->check);
	wheel->runner.data = wheel;
	wheel->prepare.data = wheel;
	wheel->check.data = wheel;
	uv_prepare_start(&wheel->prepare, twheel_uv__before_poll);
	uv_check_start(&wheel->check, twheel_uv__after_poll);
	uv_unref((uv_handle_t *)wheel->poll);
	uv_unref((uv_handle_t *)&wheel->runner);
	uv_unref((uv_handle_t *)&wheel->prepare);
	uv_unref((uv_handle_t *)&wheel->check);
	return 0;
}

/**
 * twheel_uv_init - make the wheel of a loop
 * @loop: the loop
 * @wheel: the wheel; its memory is the caller's, until @cb of twheel_uv_close() was called
 * @flags: 0, or %TWHEEL_KERNEL or %TWHEEL_USER, as for twheel_open(); without the module it is
 *	libuv that has the timers
 * @shared: this many timers need no system call to start, where the module is: they take 40
 *	bytes each from now on; %TWHEEL_UV_SHARED, or 0. More timers than that are well.
 *
 * Return: 0; an error of twheel_open(), twheel_setup(), uv_poll_init() or uv_poll_start();
 * then the memory is the caller's at once, and the loop may want one more turn to its end.
 */
static inline int twheel_uv_init(uv_loop_t *loop, struct twheel_uv *wheel, int flags,
				 unsigned int shared)
{
	int ret;

	wheel->loop = loop;
	wheel->numbers = NULL;
	wheel->nr_numbers = 0;
	wheel->fresh = 0;
	wheel->first_free = 0;
	wheel->unsorted = 0;
	wheel->starts = 0;
	wheel->timers = 0;
	wheel->alive = 0;
	wheel->soonest = UINT64_MAX;
	wheel->poll = NULL;
	wheel->closing = NULL;
	wheel->to_close = 0;
	twheel_uv__list_init(&wheel->due);
	twheel_uv__list_init(&wheel->running);
	ret = twheel_open(flags | O_NONBLOCK, &wheel->tw);
	if (ret)
		return ret;
	if (twheel_backend(wheel->tw) != TWHEEL_KERNEL) {
		twheel_close(wheel->tw);
		wheel->tw = NULL;
		return uv_timer_init(loop, &wheel->runner);
	}
	ret = twheel_uv__setup(wheel, shared);
	if (!ret)
		ret = twheel_uv__watch(wheel);
	if (ret)
		twheel_uv__free(wheel);
	return ret;
}

/**
 * twheel_uv_owns - is it a handle of the wheel's own?
 * @wheel: the wheel
 * @handle: what uv_walk() met
 *
 * Return: 1 or 0.
 */
static inline int twheel_uv_owns(const struct twheel_uv *wheel, const uv_handle_t *handle)
{
	if (handle == (const uv_handle_t *)&wheel->runner)
		return 1;
	if (!wheel->tw)
		return handle->data == &wheel->runner;
	return handle == (const uv_handle_t *)wheel->poll ||
	       handle == (const uv_handle_t *)&wheel->prepare ||
	       handle == (const uv_handle_t *)&wheel->check ||
	       handle == (const uv_handle_t *)&wheel->closer;
}

static inline void twheel_uv__gone(uv_handle_t *handle)
{
	struct twheel_uv *wheel = (struct twheel_uv *)handle->data;

	if (--wheel->to_close)
		return;
	free(wheel->poll);
	if (wheel->tw)
		twheel_uv__free(wheel);
	if (wheel->close_cb)
		wheel->close_cb(wheel);
}

/**
 * twheel_uv_close - end the wheel
 * @wheel: the wheel, not closed before
 * @cb: or NULL: called in a later turn of the loop; then the memory is the caller's
 *
 * Return: 0; %UV_EBUSY while there are timers whose close callback was not called.
 */
static inline int twheel_uv_close(struct twheel_uv *wheel, void (*cb)(struct twheel_uv *wheel))
{
	if (wheel->timers)
		return UV_EBUSY;
	wheel->close_cb = cb;
	wheel->to_close = wheel->tw ? 4 : 1;
	wheel->runner.data = wheel;
	uv_close((uv_handle_t *)&wheel->runner, twheel_uv__gone);
	if (!wheel->tw)
		return 0;
	uv_close((uv_handle_t *)wheel->poll, twheel_uv__gone);
	uv_close((uv_handle_t *)&wheel->prepare, twheel_uv__gone);
	uv_close((uv_handle_t *)&wheel->check, twheel_uv__gone);
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif
