// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a wheel: events, counts, and timers that are drained.
 *
 * Events are copied to the program in batches, under the lock, with page faults disabled.
 * A timer leaves the wheel only after its event was copied. So there is no state between
 * ready and read: a bad buffer loses nothing, and a cancel that races with a read finds
 * the timer either there or gone. If a copy was short, the lock is dropped, the memory is
 * faulted in, and the rest is tried again, see tw_fault_in().
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "context.h"
#include "copy.h"
#include "ops.h"
#include "shared.h"
#include "timer.h"
#include "trace.h"

/* Ready timers that are read under one hold of the lock */
#define TW_READ_BATCH (TW_EVENT_BYTES / TWHEEL_EVENT_SIZE_ID)

/* A count takes four times as many as are ready when it begins, and this many more */
#define TW_COUNT_MORE 1024

/**
 * struct tw_read - what is being read under one hold of the lock
 * @now: the time that it is now, in ns, if there have been periodic timers
 * @reader: is behind the last of them
 * @indices: of the timers
 */
struct tw_read {
	s64 now;
	struct tw_reader reader;
	u32 indices[TW_READ_BATCH];
};

/*
 * The time is read before the walk. If the clock was set back, it goes another way from then
 * on, and tw_read_less() has to walk the way that tw_fill_events() did.
 */
static __always_inline void tw_read_begin(struct twheel *tw, struct tw_read *read)
{
	s64 tick;

	if (unlikely(tw->periods.nr_chunks > TW_FIRST_CHUNK)) {
		read->now = tw_now(tw, &tick);
		/* A period that is over when it begins is to expire at the next tick, not late. */
		tw_wheel_forward(&tw->wheel, tick);
	}
	tw_reader_init(&tw->wheel, &read->reader);
}

/* Returns the next timer to be read, or NULL. */
static __always_inline struct tw_node *tw_read_next(struct twheel *tw, struct tw_read *read)
{
	return tw_reader_next(&tw->wheel, &read->reader,
			      &read->indices[read->reader.nr]);
}

/* Only @nr of them: walk a shorter way. */
static noinline void tw_read_less(struct twheel *tw, struct tw_read *read, unsigned int nr)
{
	tw_reader_init(&tw->wheel, &read->reader);
	while (read->reader.nr < nr)
		tw_read_next(tw, read);
}

/* One that is periodic was read. */
static void tw_read_period(struct twheel *tw, const struct tw_read *read,
			   struct tw_node *node, u32 index)
{
	struct tw_period *period = tw_timer_period(&tw->periods, node);
	u64 overrun = tw_overrun(period, node, read->now);

	tw->stats.overruns += overrun;
	tw_next_period(&tw->wheel, period, node, index, overrun, tw_jitter(period->jitter));
}

/* The first @nr of them were read: each goes on, or is gone. */
static void tw_read_commit(struct twheel *tw, struct tw_read *read, unsigned int nr)
{
	unsigned int i;

	if (unlikely(read->reader.nr != nr))
		tw_read_less(tw, read, nr);
	tw_reader_cut(&tw->wheel, &read->reader);
	for (i = 0; i < nr; i++) {
		u32 index = read->indices[i];
		struct tw_node *node = tw_node_at(&tw->table, index);

		if (unlikely(node->flags & TW_NODE_PERIODIC))
			tw_read_period(tw, read, node, index);
		else
			tw_node_end(&tw->table, node, index);
	}
	tw->stats.delivered += nr;
}

/* Give back what is not needed after a batch, and set the timer. */
static void tw_finish_batch(struct twheel *tw)
	__releases(&tw->lock)
{
	struct tw_chunk *spare, *periods;

	tw_reprogram_timer(tw, tw_next(tw));
	tw_check(tw, tw_next(tw), 0);
	spare = tw_table_detach_spare(&tw->table);
	periods = tw_table_detach_spare(&tw->periods);
	spin_unlock_bh(&tw->lock);
	tw_free_spare(tw, spare);
	tw_free_spare(tw, periods);
}

static unsigned int tw_fill_events(struct twheel *tw, struct tw_read *read,
				   void *events, unsigned int max_nr, u32 unit)
{
	/* A local copy, which the compiler can keep in registers. */
	struct tw_reader reader __uninitialized;
	struct tw_node *node;
	unsigned int n;

	tw_read_begin(tw, read);
	reader = read->reader;
	for (n = 0; n < max_nr; n++) {
		node = tw_reader_next(&tw->wheel, &reader, &read->indices[n]);
		if (!node)
			break;
		tw_fill_event(&tw->wheel.clock, &tw->periods, node, read->indices[n], read->now,
			      events, unit);
		events += unit;
	}
	read->reader = reader;
	return n;
}

/* Read events as tw_read_events() does, without shared timers. */
static ssize_t tw_read_ready(struct twheel *tw, struct iov_iter *to, u32 unit)
{
	u64 events[TW_EVENT_BYTES / sizeof(u64)] __uninitialized;
	struct tw_read read __uninitialized;
	bool faulted = false;
	ssize_t total = 0;

	while (iov_iter_count(to) >= unit) {
		unsigned int n, delivered;
		size_t copied;
		int ret;

		n = min_t(size_t, iov_iter_count(to), TW_EVENT_BYTES) / unit;
		spin_lock_bh(&tw->lock);
		n = tw_fill_events(tw, &read, events, n, unit);
		if (!n) {
			spin_unlock_bh(&tw->lock);
			return total ?: -EAGAIN;
		}
		copied = tw_copy_nofault(events, n * unit, unit, to);
		delivered = copied / unit;
		tw_read_commit(tw, &read, delivered);
		trace_twheel_read(tw, delivered);
		tw_finish_batch(tw);

		total += copied;
		if (total && signal_pending(current))
			break;
		if (delivered < n) {
			ret = tw_fault_in(to, unit, &faulted);
			if (ret)
				return total ?: ret;
		}
		cond_resched();
	}
	return total;
}

/**
 * tw_read_events() - read events as long as there are any
 * @tw: the wheel
 * @to: where to copy them, with room for one at least
 * @unit: length of an event
 * @most: how many at most
 *
 * Context: may sleep.
 * Return: bytes copied, -EAGAIN when nothing is ready, -EFAULT or -ERESTARTSYS.
 */
ssize_t tw_read_events(struct twheel *tw, struct iov_iter *to, u32 unit, u32 most)
{
	ssize_t done, more;

	iov_iter_truncate(to, (u64)most * unit);
	done = tw_read_ready(tw, to, unit);
	if (likely(!tw_shared_of(tw)) || (done < 0 && done != -EAGAIN))
		return done;
	more = tw_shared_read(tw, to, unit, most);
	if (done < 0)
		return more;
	return more < 0 ? done : done + more;
}

/*
 * Turn what is ready into a number. It stays with the wheel until it is read. Some timers may
 * expire again meanwhile; but other threads could make more ready for ever.
 */
static void tw_count(struct twheel *tw, u32 most)
{
	/* May be out of date: what is missing then is for the next read. */
	u64 left = 4ULL * data_race(READ_ONCE(tw->wheel.ready.count)) + TW_COUNT_MORE;
	struct tw_read read __uninitialized;
	bool more;

	left = min_t(u64, left, most);
	do {
		struct tw_node *node;
		unsigned int n;
		u64 counted, expiries;

		spin_lock_bh(&tw->lock);
		counted = tw->counted;
		tw_read_begin(tw, &read);
		for (n = 0; n < min_t(u64, left, TW_READ_BATCH); n++) {
			node = tw_read_next(tw, &read);
			if (!node)
				break;
			/* A few timers with a period of 1 ns, due since 1970, suffice. */
			expiries = tw_expiries(&tw->periods, node, read.now);
			if (check_add_overflow(counted, expiries, &counted))
				counted = U64_MAX;
		}
		WRITE_ONCE(tw->counted, counted);
		/* Pairs with tw_readable(), which must not miss it. */
		smp_wmb();
		tw_read_commit(tw, &read, n);
		left -= n;
		more = tw->wheel.ready.count && left;
		tw_finish_batch(tw);
		cond_resched();
	} while (more && !signal_pending(current));
}

/**
 * tw_read_count() - read the number of expiries since the last time
 * @tw: the wheel
 * @to: where to copy it, with room for it
 * @most: how many timers to count at most
 *
 * What was counted is not ready any more, and can't be cancelled. So nothing is counted for
 * memory that can't be written to.
 *
 * Context: may sleep.
 * Return: bytes copied, -EAGAIN when nothing is ready, -EFAULT or -ERESTARTSYS.
 */
ssize_t tw_read_count(struct twheel *tw, struct iov_iter *to, u32 most)
{
	const size_t size = sizeof(tw->counted);
	bool faulted = false;

	while (tw_readable(tw)) {
		size_t copied = 0;
		u64 counted;
		int ret;

		ret = tw_fault_in(to, size, &faulted);
		if (ret)
			return ret;
		tw_count(tw, most);
		spin_lock_bh(&tw->lock);
		counted = tw->counted;
		if (counted)
			copied = tw_copy_nofault(&counted, size, size, to);
		if (copied)
			tw->counted = 0;
		spin_unlock_bh(&tw->lock);
		if (copied)
			return copied;
		if (!counted)
			break;
	}
	return -EAGAIN;
}

/*
 * Take a pending timer out, once it is written. Returns 1; 0 if it was a shared timer that is
 * not pending any more, or whose word changes just now; or -EFAULT.
 */
static int tw_drain_one(struct twheel *tw, struct iov_iter *to, u32 size)
{
	struct twheel_op op;
	struct tw_node *node;
	u32 index;

	if (!tw->wheel.pending)
		return tw_shared_drain(tw, to, size);
	node = tw_wheel_first(&tw->wheel, &index);
	tw_fill_op(&tw->wheel, &tw->periods, node, index, &op);
	if (!tw_copy_nofault(&op, size, size, to))
		return -EFAULT;
	tw_wheel_del(&tw->wheel, node, index);
	tw_timer_free(&tw->table, &tw->periods, node, index);
	return 1;
}

/* Under one hold of the lock. Returns 0, -EFAULT, or -EAGAIN when no timer is pending. */
static int tw_drain_batch(struct twheel *tw, struct iov_iter *to, u32 size)
{
	unsigned int tries = TW_TAKEN;
	int ret = 0;

	spin_lock_bh(&tw->lock);
	while (tries-- && ret >= 0 && iov_iter_count(to)) {
		ret = tw_pending(tw) ? tw_drain_one(tw, to, size) : -EAGAIN;
		tw->stats.drained += ret > 0;
	}
	tw_finish_batch(tw);
	return min(ret, 0);
}

/**
 * tw_drain() - take pending timers out
 * @tw: the wheel
 * @drain: how many, and where to
 *
 * Context: may sleep.
 * Return: how many, -EFAULT or -ERESTARTSYS.
 */
long tw_drain(struct twheel *tw, const struct twheel_drain *drain)
{
	size_t bytes = (size_t)drain->nr * drain->op_size;
	bool faulted = false;
	struct iov_iter to;
	int ret = 0;

	/* What is due is ready then, and what a program armed in shared memory is in the wheel. */
	tw_catch_up(tw);
	iov_iter_ubuf(&to, ITER_DEST, u64_to_user_ptr(drain->ops), bytes);
	while (iov_iter_count(&to) && !ret) {
		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			break;
		}
		ret = tw_drain_batch(tw, &to, drain->op_size);
		if (ret == -EFAULT)
			ret = tw_fault_in(&to, drain->op_size, &faulted);
		cond_resched();
	}
	if (ret == -EAGAIN)
		ret = 0;
	bytes -= iov_iter_count(&to);
	return bytes ? bytes / drain->op_size : ret;
}
