// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program reads from a wheel that it has itself: events, counts, and drained
 * timers.
 */

#include <fcntl.h>
#include <string.h>

#include "context.h"
#include "validate.h"

/* Ready timers that are read together */
#define READ_BATCH 64

/**
 * struct read_batch - ready timers that are being read
 * @indices: which
 * @overruns: periods of each that went by after the one that made it ready
 * @reader: is behind the last of them
 */
struct read_batch {
	u32 indices[READ_BATCH];
	u64 overruns[READ_BATCH];
	struct tw_reader reader;
};

/* They count from its deadline, jitter included: so the next period may have begun. */
static u64 overrun_of(const struct user_wheel *uw, const struct tw_node *node, s64 now)
{
	if (!(node->flags & TW_NODE_PERIODIC) || now < node->deadline)
		return 0;
	return (now - node->deadline) / user_period_of(uw, node)->interval;
}

/* The period of a timer that was read is over, and the next begins. */
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
static void commit_read(struct user_wheel *uw, const struct read_batch *batch)
{
	unsigned int i;

	tw_reader_cut(&uw->wheel, &batch->reader);
	for (i = 0; i < batch->reader.nr; i++) {
		u32 index = batch->indices[i];
		struct tw_node *node = tw_node_at(&uw->table, index);

		if (node->flags & TW_NODE_PERIODIC)
			next_period(uw, node, index, batch->overruns[i]);
		else
			tw_node_end(&uw->table, node, index);
	}
	uw->stats.delivered += batch->reader.nr;
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
 * to @count, which stays at its maximum: a few timers with a period of 1 ns that are due
 * since 1970 would exceed it.
 */
static unsigned int read_some(struct user_wheel *uw, s64 now, char *to, unsigned int max,
			      u64 *count)
{
	struct read_batch batch;

	tw_reader_init(&uw->wheel, &batch.reader);
	while (batch.reader.nr < max) {
		unsigned int n = batch.reader.nr;
		struct tw_node *node = tw_reader_next(&uw->wheel, &batch.reader,
						      &batch.indices[n]);

		if (!node)
			break;
		batch.overruns[n] = overrun_of(uw, node, now);
		if (__builtin_add_overflow(*count, 1 + batch.overruns[n], count))
			*count = U64_MAX;
		if (to)
			fill_event(uw, node, batch.indices[n], batch.overruns[n],
				   (struct twheel_event *)(to + n * uw->unit));
	}
	commit_read(uw, &batch);
	return batch.reader.nr;
}

static ssize_t read_events(struct user_wheel *uw, s64 now, char *to, size_t max_nr)
{
	size_t total = 0;
	unsigned int nr;
	u64 count = 0;

	do {
		nr = read_some(uw, now, to + total * uw->unit,
			       min_t(size_t, max_nr - total, READ_BATCH), &count);
		total += nr;
	} while (nr == READ_BATCH && total < max_nr);
	return total ? (ssize_t)(total * uw->unit) : -EAGAIN;
}

static ssize_t read_count(struct user_wheel *uw, s64 now, u64 *to)
{
	u64 count = 0;
	unsigned int nr;

	do {
		nr = read_some(uw, now, NULL, READ_BATCH, &count);
	} while (nr == READ_BATCH);
	if (!count)
		return -EAGAIN;
	*to = count;
	return sizeof(*to);
}

static ssize_t read_ready(struct user_wheel *uw, s64 now, void *to, size_t bytes)
{
	ssize_t ret;

	if (bytes < uw->unit)
		return -EINVAL;
	if (uw->flags & TWHEEL_SETUP_COUNT)
		ret = read_count(uw, now, to);
	else
		ret = read_events(uw, now, to, bytes / uw->unit);
	/*
	 * The timerfd may have come too early, as the clock has been set back since. It is
	 * set anew, so that it does not wake the program for nothing again.
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
		ret = read_ready(uw, now, to, bytes);
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
	user_arm_later(uw);
	while (n < nr && (node = tw_wheel_first(&uw->wheel, &index))) {
		user_fill_op(uw, node, index, &op);
		memcpy(ops + (size_t)n++ * op_size, &op, op_size);
		tw_wheel_del(&uw->wheel, node, index);
		user_free_timer(uw, node, index);
	}
	uw->stats.drained += n;
	user_end(uw, now);
	return n;
}
