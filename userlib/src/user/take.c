// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program takes out of a wheel that it has itself: events, counts, drained
 * timers.
 */

#include <fcntl.h>
#include <string.h>

#include "context.h"
#include "validate.h"

/* Ready timers that are taken out together */
#define TAKEN 64

/**
 * struct user_take - ready timers that are being taken out
 * @indices: which
 * @overruns: periods of each that went by after the one that made it ready
 * @reader: is behind the last of them
 */
struct user_take {
	u32 indices[TAKEN];
	u64 overruns[TAKEN];
	struct tw_reader reader;
};

static u64 overrun_of(const struct user_wheel *uw, const struct tw_node *node, s64 now)
{
	const struct tw_period *period;

	if (!(node->flags & TW_NODE_PERIODIC))
		return 0;
	period = user_period_of(uw, node);
	return now < period->nominal ? 0 : (now - period->nominal) / period->interval;
}

/* The period of a timer that was read is over: the next begins. */
static void next_period(struct user_wheel *uw, struct tw_node *node, u32 index,
			u64 overrun)
{
	struct tw_period *period = user_period_of(uw, node);

	uw->stats.overruns += overrun;
	period->nominal = min_t(u64, KTIME_MAX, period->nominal +
				(overrun + 1) * period->interval);
	node->deadline = tw_time_add(period->nominal, user_jitter(uw, period->jitter));
	tw_wheel_add(&uw->wheel, node, index);
}

/* Each goes on, or is gone. */
static void taken(struct user_wheel *uw, const struct user_take *take)
{
	unsigned int i;

	tw_reader_cut(&uw->wheel, &take->reader);
	for (i = 0; i < take->reader.nr; i++) {
		u32 index = take->indices[i];
		struct tw_node *node = tw_node_at(&uw->table, index);

		if (node->flags & TW_NODE_PERIODIC)
			next_period(uw, node, index, take->overruns[i]);
		else
			tw_node_end(&uw->table, node, index);
	}
	uw->stats.delivered += take->reader.nr;
}

static void fill_event(const struct user_wheel *uw, const struct tw_node *node, u32 index,
		       u64 overrun, struct twheel_event *event)
{
	bool periodic = node->flags & TW_NODE_PERIODIC;

	event->user_data = periodic ? user_period_of(uw, node)->user_data :
				      node->user_data;
	event->id = tw_id(node, index);
	if (uw->unit == TWHEEL_EVENT_SIZE_ID)
		return;
	event->deadline = node->deadline;
	event->overrun = min_t(u64, overrun, U32_MAX);
	event->flags = periodic ? TWHEEL_EVENT_PERIODIC : 0;
}

/*
 * At most @max, as events if @to is not NULL. Their number, overruns included, is added
 * to @count. (A few timers with a period of 1 ns, due since 1970, are more than that
 * holds.)
 */
static unsigned int take_some(struct user_wheel *uw, s64 now, char *to, unsigned int max,
			      u64 *count)
{
	struct user_take take;

	tw_reader_init(&uw->wheel, &take.reader);
	while (take.reader.nr < max) {
		unsigned int n = take.reader.nr;
		struct tw_node *node = tw_reader_next(&uw->wheel, &take.reader,
						      &take.indices[n]);

		if (!node)
			break;
		take.overruns[n] = overrun_of(uw, node, now);
		if (__builtin_add_overflow(*count, 1 + take.overruns[n], count))
			*count = U64_MAX;
		if (to)
			fill_event(uw, node, take.indices[n], take.overruns[n],
				   (struct twheel_event *)(to + n * uw->unit));
	}
	taken(uw, &take);
	return take.reader.nr;
}

static ssize_t take_events(struct user_wheel *uw, s64 now, char *to, size_t room)
{
	size_t total = 0;
	unsigned int nr;
	u64 count = 0;

	do {
		nr = take_some(uw, now, to + total * uw->unit,
			       min_t(size_t, room - total, TAKEN), &count);
		total += nr;
	} while (nr == TAKEN && total < room);
	return total ? (ssize_t)(total * uw->unit) : -EAGAIN;
}

static ssize_t take_count(struct user_wheel *uw, s64 now, u64 *to)
{
	u64 count = 0;
	unsigned int nr;

	do {
		nr = take_some(uw, now, NULL, TAKEN, &count);
	} while (nr == TAKEN);
	if (!count)
		return -EAGAIN;
	*to = count;
	return sizeof(*to);
}

static ssize_t take(struct user_wheel *uw, s64 now, void *to, size_t bytes)
{
	ssize_t ret;

	if (bytes < uw->unit)
		return -EINVAL;
	if (uw->flags & TWHEEL_SETUP_COUNT)
		ret = take_count(uw, now, to);
	else
		ret = take_events(uw, now, to, bytes / uw->unit);
	/*
	 * Whoever was woken for nothing is not to be woken for that again: the clock
	 * may have been set back since.
	 */
	if (ret == -EAGAIN && (uw->wheel.clock.id == TWHEEL_CLOCK_REALTIME ||
			       uw->wheel.clock.id == TWHEEL_CLOCK_TAI))
		uw->timer_ns = USER_TIMER_OLD;
	return ret;
}

/* As read(2) does, which does not wait where the descriptor has O_NONBLOCK. */
ssize_t user_read(struct user_wheel *uw, void *to, size_t bytes, bool nowait)
{
	ssize_t ret;
	s64 now;

	do {
		ret = user_begin(uw, &now);
		if (ret)
			return ret;
		ret = take(uw, now, to, bytes);
		user_free_spare(uw);
		user_end(uw, now);
		if (ret != -EAGAIN || nowait || fcntl(uw->epoll, F_GETFL) & O_NONBLOCK)
			return ret;
		ret = user_wait(uw);
	} while (!ret);
	return ret;
}

int user_drain(struct user_wheel *uw, void *ops, __u32 nr, __u32 op_size)
{
	struct tw_node *node;
	struct twheel_op op;
	u32 n = 0, index;
	s64 now;
	int ret;

	ret = tw_check_array(0, nr, op_size) ?: user_begin(uw, &now);
	if (ret)
		return ret;
	while (n < nr && (node = tw_wheel_first(&uw->wheel, &index))) {
		user_fill_op(uw, node, index, &op);
		memcpy(ops + (size_t)n++ * op_size, &op, op_size);
		tw_wheel_del(&uw->wheel, node, index);
		user_free_timer(uw, node, index);
	}
	uw->stats.drained += n;
	user_free_spare(uw);
	user_end(uw, now);
	return n;
}
