// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The event loop of a small program: timers with callbacks.
 *
 * Events are read many at a time. So a callback may cancel a timer whose event
 * was read together with its own, where the kernel can't withdraw it any more:
 * the timer knows its event, and clears it.
 */

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "internal.h"

static void withdraw(struct twheel_timer *timer)
{
	if (!timer->event)
		return;
	timer->event->user_data = 0;
	timer->event = NULL;
}

int twheel_timer_arm(struct twheel *tw, struct twheel_timer *timer,
		     uint8_t flags, uint64_t deadline, uint64_t interval)
{
	struct twheel_op op = twheel_op_modify(timer->id, flags, deadline,
					       interval, (uintptr_t)timer);
	int ret = -ENOENT;

	if (timer->id)
		ret = twheel_modify(tw, &op);
	if (ret == -ENOENT) {
		op = twheel_op_arm(flags, deadline, interval, (uintptr_t)timer);
		ret = twheel_arm(tw, &op);
	}
	if (ret)
		return ret;
	timer->id = op.id;
	withdraw(timer);
	return 0;
}

int twheel_timer_cancel(struct twheel *tw, struct twheel_timer *timer)
{
	int ret = -ENOENT;

	if (timer->id)
		ret = twheel_cancel(tw, timer->id);
	if (ret && ret != -ENOENT)
		return ret;
	if (timer->event)
		ret = 0;
	timer->id = 0;
	withdraw(timer);
	return ret;
}

static int read_no_wait(struct twheel *tw)
{
	ssize_t bytes = read_bytes(tw, tw->events, sizeof(tw->events), true);

	return bytes < 0 ? bytes : bytes / (ssize_t)sizeof(tw->events[0]);
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* How long poll(2) is to wait, not less than that */
static int ms_until(int64_t end)
{
	int64_t left = end - now();

	return left > 0 ? (left + 999999) / 1000000 : 0;
}

/* A wheel in the program itself may be woken when nothing has expired: go on then */
static int wait_and_read(struct twheel *tw, int timeout_ms)
{
	struct pollfd pfd = { .fd = tw->fd, .events = POLLIN };
	int64_t end = timeout_ms > 0 ? now() + timeout_ms * 1000000LL : 0;
	int ret;

	do {
		ret = result(poll(&pfd, 1, timeout_ms));
		if (ret <= 0)
			return ret;
		ret = read_no_wait(tw);
		if (timeout_ms > 0)
			timeout_ms = ms_until(end);
	} while (ret == -EAGAIN && timeout_ms);
	return ret;
}

static int fill(struct twheel *tw, int timeout_ms)
{
	int i, nr = read_no_wait(tw);

	if (nr == -EAGAIN && timeout_ms)
		nr = wait_and_read(tw, timeout_ms);
	if (nr <= 0)
		return nr == -EAGAIN ? 0 : nr;

	for (i = 0; i < nr; i++) {
		struct twheel_event *event = &tw->events[i];
		struct twheel_timer *timer = (void *)(uintptr_t)event->user_data;

		timer->event = event;
		if (!(event->flags & TWHEEL_EVENT_PERIODIC))
			timer->id = 0;
	}
	tw->next = 0;
	tw->end = nr;
	return nr;
}

/* A copy of the event: when the loop is run within, its place is used again */
static int call(struct twheel *tw, struct twheel_event event)
{
	struct twheel_timer *timer = (void *)(uintptr_t)event.user_data;

	if (!timer)
		return 0;
	timer->event = NULL;
	timer->fn(tw, timer, &event);
	return 1;
}

int twheel_run_once(struct twheel *tw, int timeout_ms)
{
	int called = 0;

	/* A count is nothing for it, nor events that don't say whether to go on */
	if (tw->event_size != TWHEEL_EVENT_SIZE_FULL)
		return -EINVAL;
	do {
		/* A callback that runs the loop itself goes on with the events that were read. */
		if (tw->next == tw->end) {
			int ret = fill(tw, timeout_ms);

			if (ret <= 0)
				return ret;
		}
		while (tw->next < tw->end)
			called += call(tw, tw->events[tw->next++]);
	} while (!called);
	return called;
}
