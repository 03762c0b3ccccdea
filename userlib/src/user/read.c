// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program reads from a wheel that it has itself: events, counts, and drained
 * timers.
 */

#include <fcntl.h>
#include <string.h>

#include "context.h"
#include "timer.h"

/* Ready timers that are read together */
#define READ_BATCH 64

/**
 * struct read_batch - ready timers that are being read
 * @indices: which
 * @reader: is behind the last of them
 */
struct read_batch {
	u32 indices[READ_BATCH];
	struct tw_reader reader;
};

/* One that is periodic was read. */
static void next_period(struct user_wheel *uw, struct tw_node *node, u32 index, s64 now)
{
	struct tw_period *period = tw_timer_period(&uw->periods, node);
	u64 overrun = tw_overrun(period, node, now);
	s64 jitter = user_jitter(uw, period->jitter);

	uw->stats.overruns += overrun;
	tw_next_period(&uw->wheel, period, node, index, overrun, jitter);
}

/* Each goes on, or is gone. */
static void commit_read(struct user_wheel *uw, s64 now, const struct read_batch *batch)
{
	unsigned int i;

	tw_reader_cut(&uw->wheel, &batch->reader);
	for (i = 0; i < batch->reader.nr; i++) {
		u32 index = batch->indices[i];
		struct tw_node *node = tw_node_at(&uw->table, index);

		if (node->flags & TW_NODE_PERIODIC)
			next_period(uw, node, index, now);
		else
			tw_node_end(&uw->table, node, index);
	}
	uw->stats.delivered += batch->reader.nr;
}

/*
 * At most @max, as events if @to is not NULL. Else their number, overruns included, is added
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
		if (to)
			tw_fill_event(&uw->wheel.clock, &uw->periods, node, batch.indices[n], now,
				      (struct twheel_event *)(to + n * uw->unit), uw->unit);
		else if (__builtin_add_overflow(*count, tw_expiries(&uw->periods, node, now),
						count))
			*count = U64_MAX;
	}
	commit_read(uw, now, &batch);
	return batch.reader.nr;
}

static ssize_t read_events(struct user_wheel *uw, s64 now, char *to, size_t max_nr)
{
	size_t total = 0;
	unsigned int nr;

	do {
		nr = read_some(uw, now, to + total * uw->unit,
			       min_t(size_t, max_nr - total, READ_BATCH), NULL);
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
		tw_fill_op(&uw->wheel, &uw->periods, node, index, &op);
		memcpy(ops + (size_t)n++ * op_size, &op, op_size);
		tw_wheel_del(&uw->wheel, node, index);
		tw_timer_free(&uw->table, &uw->periods, node, index);
	}
	uw->stats.drained += n;
	user_end(uw, now);
	return n;
}
