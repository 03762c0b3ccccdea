// SPDX-License-Identifier: GPL-2.0
/*
 * The operations of SUBMIT: arm, modify, cancel and query a timer.
 *
 * A batch goes tw_begin(), tw_do_sized(), tw_end(). tw_begin() allocates nodes, takes the
 * lock and reads the clock, once for all operations. tw_end() sets the hrtimer, drops the
 * lock, and frees what is not needed any more. A batch whose first operation needs no nodes,
 * or no time, begins without: an operation that lacks them ends it, and is the first of the
 * next, which has them.
 *
 * Operations may lie in the program's own memory. The program can write there at any
 * time, so what was checked is not read again. (A field may be read before that to choose
 * the way, and by ahead.h. Such a choice can be wrong, and does no harm then.)
 *
 * The result of an operation is written before the operation is done. So there is no
 * operation that was done and whose result could not be written.
 *
 * Most timers are plain, see tw_is_plain(). Each operation but QUERY has a fast path for
 * them, and a function with "more" in its name for all others.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/uaccess.h>

#include "account.h"
#include "ahead.h"
#include "context.h"
#include "ops.h"
#include "timer.h"
#include "trace.h"

/* An operation returns 0, a negative error, or one of these if it was not done. */
#define TW_LACKS 1		/* tw_begin() has to come first, with what it lacks */
#define TW_NOT_WRITTEN 2	/* its result can't be written */

/**
 * tw_jitter() - by how much to put off one expiry
 * @jitter: most, in ns
 *
 * Context: any.
 * Return: a random number from 0 to @jitter.
 */
s64 tw_jitter(u64 jitter)
{
	return jitter ? mul_u64_u64_shr(get_random_u64(), jitter + 1, 64) : 0;
}

/* Allow the batch to arm as many timers as there are free nodes: none is freed before its end. */
static void tw_set_quota(struct twheel *tw, struct tw_batch *batch)
{
	u32 left = tw->limit - min(tw->limit, tw_timers(tw));

	batch->quota = min(left, tw->table.free);
}

/* Later than all: the batch did not read the clock. No operation but CANCEL and QUERY is done. */
#define TW_TIMELESS S64_MAX

/* No node is free: have tw_begin() allocate some, or return why it could not. */
static int tw_no_nodes(const struct tw_batch *batch)
{
	return batch->error ?: TW_LACKS;
}

/* No period is free: have tw_begin() allocate some, or return why it could not. */
static int tw_no_period(struct tw_batch *batch)
{
	batch->no_period = true;
	return tw_no_nodes(batch);
}

/* The quota is used up: renew it, or return why that is not possible. */
static noinline int tw_renew_quota(struct twheel *tw, struct tw_batch *batch)
{
	if (batch->now == TW_TIMELESS)
		return TW_LACKS;
	tw_set_quota(tw, batch);
	if (batch->quota)
		return 0;
	return tw_timers(tw) >= tw->limit ? -ENOSPC : tw_no_nodes(batch);
}

/*
 * Write the result of an operation that was copied to the program's memory. @result comes
 * last, so that an operation that fails half way has none.
 */
static noinline bool tw_copy_result(const struct tw_batch *batch,
				    const struct twheel_op *op, u32 size, u32 state,
				    int result)
{
	const size_t rest = offsetof(struct twheel_op, deadline);
	struct twheel_op __user *uop;

	uop = batch->uops + ((const void *)op - batch->copy);
	if (op->opcode == TWHEEL_OP_QUERY && !result &&
	    copy_to_user(&uop->deadline, (void *)op + rest, size - rest))
		return false;
	if (should_fail_usercopy() || !user_write_access_begin(uop, size))
		return false;
	if (op->opcode == TWHEEL_OP_ARM && !result)
		unsafe_put_user(op->id, &uop->id, fault);
	unsafe_put_user(state, &uop->state, fault);
	unsafe_put_user(result, &uop->result, fault);
	user_write_access_end();
	return true;
fault:
	user_write_access_end();
	return false;
}

/* Returns false if it can't be written. */
static __always_inline bool tw_write_result(const struct tw_batch *batch, struct twheel_op *op,
					    u32 size, u32 state, int result)
{
	if (unlikely(batch->copy))
		return tw_copy_result(batch, op, size, state, result);
	WRITE_ONCE(op->state, state);
	WRITE_ONCE(op->result, result);
	return true;
}

static __always_inline int __tw_arm(struct twheel *tw, struct tw_batch *batch,
				    struct twheel_op *op, u32 size, unsigned int flags,
				    bool more)
{
	struct tw_want want __uninitialized;
	struct tw_node *node;
	s64 deadline;
	u32 index;
	int ret;

	ret = tw_read_want(&tw->wheel.clock, batch->now, op, size, flags, more, &want);
	if (unlikely(ret))
		return ret;
	if (unlikely(!batch->quota)) {
		ret = tw_renew_quota(tw, batch);
		if (ret)
			return ret;
	}
	if (more && want.interval && !tw->periods.free)
		return tw_no_period(batch);
	batch->quota--;
	node = tw_node_begin(&tw->table, &index);
	WRITE_ONCE(op->id, tw_id(node, index));
	if (!tw_write_result(batch, op, size, TWHEEL_STATE_NONE, 0)) {
		tw_node_end(&tw->table, node, index);
		return TW_NOT_WRITTEN;
	}
	node->flags = 0;
	node->user_data = want.user_data;
	deadline = want.deadline;
	if (more) {
		node->flags = tw_clock_slack_shift(&tw->wheel.clock, want.slack);
		tw_timer_set_more(&tw->periods, node, &want);
		deadline = tw_time_add(deadline, tw_jitter(want.jitter));
	}
	node->deadline = deadline;
	if (likely(deadline > batch->now)) {
		tw_wheel_add(&tw->wheel, node, index);
	} else {
		tw_wheel_add_ready(&tw->wheel, node, index);
		batch->expired++;
	}
	tw->stats.armed++;
	trace_twheel_arm(tw, node, index);
	return 0;
}

static noinline int tw_arm_more(struct twheel *tw, struct tw_batch *batch,
				struct twheel_op *op, u32 size, unsigned int flags)
{
	return __tw_arm(tw, batch, op, size, flags, true);
}

static __always_inline int tw_arm(struct twheel *tw, struct tw_batch *batch,
				  struct twheel_op *op, u32 size, unsigned int flags)
{
	if (unlikely(tw_wants_more(op, size)))
		return tw_arm_more(tw, batch, op, size, flags);
	return __tw_arm(tw, batch, op, size, flags, false);
}

/* MODIFY, if the timer is not plain or will not be */
static noinline int tw_modify_more(struct twheel *tw, struct tw_batch *batch,
				   struct twheel_op *op, u32 size, unsigned int flags)
{
	bool more = tw_wants_more(op, size);
	unsigned int slack_shift;
	struct tw_want want = {};
	struct tw_node *node;
	s64 deadline;
	u32 index;
	int ret;

	if (batch->now == TW_TIMELESS)
		return TW_LACKS;
	ret = tw_read_want(&tw->wheel.clock, batch->now, op, size, flags, more, &want);
	if (ret)
		return ret;
	if (!tw_table_find(&tw->table, READ_ONCE(op->id), &node, &index))
		return -ENOENT;
	if (want.interval && !(node->flags & TW_NODE_PERIODIC) && !tw->periods.free)
		return tw_no_period(batch);
	if (!tw_write_result(batch, op, size, tw_timer_state(&tw->wheel, node), 0))
		return TW_NOT_WRITTEN;
	tw_timer_set_more(&tw->periods, node, &want);
	slack_shift = tw_clock_slack_shift(&tw->wheel.clock, want.slack);
	deadline = tw_time_add(want.deadline, tw_jitter(want.jitter));
	if (deadline > batch->now) {
		tw_wheel_mod(&tw->wheel, node, index, deadline, slack_shift);
	} else {
		tw_wheel_del(&tw->wheel, node, index);
		node->deadline = deadline;
		node->flags = (node->flags & TW_NODE_PERIODIC) | slack_shift;
		tw_wheel_add_ready(&tw->wheel, node, index);
		batch->expired++;
	}
	tw->stats.modified++;
	trace_twheel_modify(tw, node, index);
	return 0;
}

static __always_inline int tw_modify(struct twheel *tw, struct tw_batch *batch,
				     struct twheel_op *op, u32 size, unsigned int flags,
				     struct tw_node *node, u32 index)
{
	struct tw_want want __uninitialized;
	int ret;

	if (unlikely(tw_wants_more(op, size)))
		return tw_modify_more(tw, batch, op, size, flags);
	ret = tw_read_want(&tw->wheel.clock, batch->now, op, size, flags, false, &want);
	if (unlikely(ret))
		return ret;
	if (!node)
		return -ENOENT;
	if (unlikely(!tw_is_plain(&tw->wheel, node) || want.deadline <= batch->now ||
		     want.deadline <= tw->wheel.done_ns))
		return tw_modify_more(tw, batch, op, size, flags);
	if (!tw_write_result(batch, op, size, TWHEEL_STATE_PENDING, 0))
		return TW_NOT_WRITTEN;
	node->user_data = want.user_data;
	tw_wheel_mod_plain(&tw->wheel, node, index, want.deadline);
	tw->stats.modified++;
	trace_twheel_modify(tw, node, index);
	return 0;
}

static __always_inline int __tw_cancel(struct twheel *tw, struct tw_batch *batch,
				       struct twheel_op *op, u32 size,
				       struct tw_node *node, u32 index, bool more)
{
	u32 state = more ? tw_timer_state(&tw->wheel, node) : TWHEEL_STATE_PENDING;
	u64 id;

	if (!tw_write_result(batch, op, size, state, 0))
		return TW_NOT_WRITTEN;
	id = tw_id(node, index);
	if (more) {
		tw_wheel_del(&tw->wheel, node, index);
		tw_timer_free(&tw->table, &tw->periods, node, index);
	} else {
		tw_wheel_del_plain(&tw->wheel, node, index);
		tw_node_end(&tw->table, node, index);
	}
	tw->stats.cancelled++;
	trace_twheel_cancel(tw, id, state);
	return 0;
}

static noinline int tw_cancel_more(struct twheel *tw, struct tw_batch *batch,
				   struct twheel_op *op, u32 size,
				   struct tw_node *node, u32 index)
{
	return __tw_cancel(tw, batch, op, size, node, index, true);
}

static __always_inline int tw_cancel(struct twheel *tw, struct tw_batch *batch,
				     struct twheel_op *op, u32 size, unsigned int flags,
				     struct tw_node *node, u32 index)
{
	if (unlikely(flags || !tw_rest_is_zero(op, size)))
		return -EINVAL;
	if (!node)
		return -ENOENT;
	if (unlikely(!tw_is_plain(&tw->wheel, node)))
		return tw_cancel_more(tw, batch, op, size, node, index);
	return __tw_cancel(tw, batch, op, size, node, index, false);
}

static int tw_query(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op,
		    u32 size, unsigned int flags)
{
	const size_t rest = offsetof(struct twheel_op, deadline);
	struct twheel_op found;
	struct tw_node *node;
	u32 index;

	if (flags)
		return -EINVAL;
	if (!tw_table_find(&tw->table, READ_ONCE(op->id), &node, &index))
		return -ENOENT;
	tw_fill_op(&tw->wheel, &tw->periods, node, index, &found);
	memcpy((void *)op + rest, (void *)&found + rest, size - rest);
	return tw_write_result(batch, op, size, found.state, 0) ? 0 : TW_NOT_WRITTEN;
}

static __always_inline struct tw_node *tw_timer(struct twheel *tw,
						const struct twheel_op *op, u32 *index)
{
	struct tw_node *node;

	return tw_table_find(&tw->table, READ_ONCE(op->id), &node, index) ? node : NULL;
}

static __always_inline int tw_do_op(struct twheel *tw, struct tw_batch *batch,
				    struct twheel_op *op, u32 size)
{
	unsigned int opcode = READ_ONCE(op->opcode);
	unsigned int flags = READ_ONCE(op->flags);
	struct tw_node *node;
	u32 index;

	if (opcode == TWHEEL_OP_MODIFY) {
		node = tw_timer(tw, op, &index);
		return tw_modify(tw, batch, op, size, flags, node, index);
	}
	if (opcode == TWHEEL_OP_ARM)
		return tw_arm(tw, batch, op, size, flags);
	if (opcode == TWHEEL_OP_CANCEL) {
		node = tw_timer(tw, op, &index);
		return tw_cancel(tw, batch, op, size, flags, node, index);
	}
	if (opcode == TWHEEL_OP_QUERY)
		return tw_query(tw, batch, op, size, flags);
	return -EINVAL;
}

/* Inlined for each @size, so that fields that an operation does not have cost nothing. */
static __always_inline unsigned int tw_do_sized(struct twheel *tw, struct tw_batch *batch,
						void *ops, unsigned int nr, u32 size)
{
	struct twheel_op *op = ops;
	struct tw_ahead ahead;
	unsigned int n;

	tw_ahead_begin(&ahead, &tw->table, ops, nr, size, batch->now);
	for (n = 0; n < nr; n++, op = (void *)op + size) {
		int ret;

		tw_ahead(&ahead, op, size);
		ret = tw_do_op(tw, batch, op, size);
		if (likely(!ret))
			continue;
		if (ret == TW_LACKS)
			break;
		if (ret == TW_NOT_WRITTEN ||
		    !tw_write_result(batch, op, size, TWHEEL_STATE_NONE, ret)) {
			batch->written = false;
			break;
		}
		tw->stats.refused += ret == -ENOSPC;
	}
	return n;
}

/*
 * Take the lock when @nodes nodes are free. Returns an error if they could not be
 * allocated. The lock is held then, too, for operations that need no node.
 */
static int tw_lock_with_nodes(struct twheel *tw, unsigned int nodes,
			      unsigned int periods)
	__acquires(&tw->lock)
{
	for (;;) {
		int ret = tw_add_nodes(tw, &tw->table, nodes);

		if (!ret)
			ret = tw_add_nodes(tw, &tw->periods, periods);
		spin_lock_bh(&tw->lock);
		/* Unless other threads have taken them. */
		if (tw->table.free >= nodes && tw->periods.free >= periods)
			return 0;
		if (ret)
			return ret;
		spin_unlock_bh(&tw->lock);
	}
}

/* Begin with operations that need @nodes nodes, and @periods of &struct tw_period. */
static __always_inline void tw_begin(struct twheel *tw, struct tw_batch *batch,
				     unsigned int nodes, unsigned int periods, bool timeless)
	__acquires(&tw->lock)
{
	s64 tick;

	batch->quota = 0;
	batch->expired = 0;
	batch->no_period = false;
	batch->written = true;
	batch->error = tw_lock_with_nodes(tw, nodes, periods);
	batch->now = TW_TIMELESS;
	if (timeless)
		return;
	if (nodes)
		tw_set_quota(tw, batch);
	batch->now = tw_now(tw, &tick);
	if (unlikely(tw->wheel.set_back))
		tw_wheel_settle(&tw->wheel);
	tw_wheel_forward(&tw->wheel, tick);
}

static __always_inline void tw_end(struct twheel *tw, struct tw_batch *batch)
	__releases(&tw->lock)
{
	struct tw_chunk *spare, *periods;
	bool far = tw->wheel.far;

	tw->wheel.far = false;
	if (batch->expired) {
		tw->stats.expired += batch->expired;
		tw->stats.lateness[0] += batch->expired;
	}
	tw_reprogram_timer(tw, tw->wheel.next);
	tw_check(tw, tw->wheel.next, batch->quota);
	spare = tw_table_detach_spare(&tw->table);
	periods = tw_table_detach_spare(&tw->periods);
	spin_unlock_bh(&tw->lock);

	if (unlikely(far))
		tw_add_all_slots(tw);
	if (unlikely(spare))
		tw_free_spare(tw, spare);
	if (unlikely(periods))
		tw_free_spare(tw, periods);
	if (batch->expired)
		tw_wake(tw);
}

/**
 * tw_do_ops() - do operations, each with its own result
 * @tw: the wheel
 * @batch: its @uops and @copy say where the results go
 * @ops: the operations, aligned to 8 bytes: in memory that can be written to but that
 *	the program may write to, too; or a copy, as @batch says
 * @nr: how many
 * @size: length of each, one of TWHEEL_OP_SIZE_*
 *
 * Context: may sleep.
 * Return: how many were done. If not all, the result of the next one can't be written.
 */
unsigned int tw_do_ops(struct twheel *tw, struct tw_batch *batch, void *ops,
		       unsigned int nr, u32 size)
{
	unsigned int first = READ_ONCE(((struct twheel_op *)ops)->opcode);
	/* A batch that does not begin with ARM may have no other. */
	unsigned int nodes = first == TWHEEL_OP_ARM ? nr : 0, periods = 0, done = 0;
	bool timeless = first == TWHEEL_OP_CANCEL;

	for (;;) {
		void *at = ops + done * size;
		unsigned int most = nr - done, n;

		tw_begin(tw, batch, nodes, periods, timeless);
		/*
		 * Others spin for the lock, and keep their processors. With PREEMPT_RT nothing says
		 * so, and one of them may be the thread in which the timers of all users expire.
		 */
		if (IS_ENABLED(CONFIG_PREEMPT_RT) || spin_is_contended(&tw->lock))
			most = min(most, TW_CONTENDED);
		pagefault_disable();
		if (size == TWHEEL_OP_SIZE_ID)
			n = tw_do_sized(tw, batch, at, most, TWHEEL_OP_SIZE_ID);
		else if (size == TWHEEL_OP_SIZE_ONCE)
			n = tw_do_sized(tw, batch, at, most, TWHEEL_OP_SIZE_ONCE);
		else
			n = tw_do_sized(tw, batch, at, most, TWHEEL_OP_SIZE_FULL);
		pagefault_enable();
		tw_end(tw, batch);
		done += n;
		if (done == nr || !batch->written)
			return done;
		nodes = min(nodes, nr - done);
		periods = min(periods, nr - done);
		if (n == most)
			continue;
		if (batch->now == TW_TIMELESS)
			timeless = false;
		else if (batch->no_period)
			periods = nr - done;
		else
			nodes = nr - done;
	}
}
