// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program does to the timers of a wheel that it has itself: arm, modify, cancel, query. What
 * an operation means is in core/timer.h. How it is done is like kmod/ops.c, so what changes there
 * changes here, too; tests/library/backends compares them.
 *
 * Most timers are plain, see tw_is_plain(). What takes other ones has "more" in its name.
 */

#include <string.h>

#include "ahead.h"
#include "context.h"
#include "timer.h"

/* By how much to put off one expiry: 0 to @jitter ns. (splitmix64) */
s64 user_jitter(struct user_wheel *uw, u64 jitter)
{
	u64 z;

	if (!jitter)
		return 0;
	z = uw->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return mul_u64_u64_shr(z ^ z >> 31, jitter + 1, 64);
}

static int have_node(struct user_wheel *uw, struct tw_table *table)
{
	if (likely(table->free > uw->nr_later))
		return 0;
	return user_add_nodes(uw, table);
}

/* Make a node, which is on no list, expire at once. */
static void add_ready(struct user_wheel *uw, struct tw_node *node, u32 index)
{
	tw_wheel_add_ready(&uw->wheel, node, index);
	uw->stats.expired++;
	uw->stats.lateness[0]++;
}

static __always_inline int __arm(struct user_wheel *uw, s64 now, struct twheel_op *op, u32 size,
				 bool more)
{
	struct tw_want want;
	struct tw_node *node;
	u32 index;
	int ret;

	ret = tw_read_want(&uw->wheel.clock, now, op, size, op->flags, more, &want);
	if (unlikely(ret))
		return ret;
	if (unlikely(user_timers(uw) >= uw->limit)) {
		uw->stats.refused++;
		return -ENOSPC;
	}
	ret = have_node(uw, &uw->table);
	if (more && !ret && want.interval)
		ret = have_node(uw, &uw->periods);
	if (unlikely(ret))
		return ret;
	node = tw_node_begin(&uw->table, &index);
	node->flags = 0;
	node->user_data = want.user_data;
	node->deadline = want.deadline;
	if (more) {
		node->flags = tw_clock_slack_shift(&uw->wheel.clock, want.slack);
		tw_timer_set_more(&uw->periods, node, &want);
		node->deadline = tw_time_add(want.deadline, user_jitter(uw, want.jitter));
	}
	if (likely(node->deadline > now))
		tw_wheel_add(&uw->wheel, node, index);
	else
		add_ready(uw, node, index);
	uw->stats.armed++;
	uw->fixed = true;
	op->id = tw_id(node, index);
	return 0;
}

static noinline int arm_more(struct user_wheel *uw, s64 now, struct twheel_op *op, u32 size)
{
	return __arm(uw, now, op, size, true);
}

static __always_inline int arm(struct user_wheel *uw, s64 now, struct twheel_op *op, u32 size)
{
	if (unlikely(tw_wants_more(op, size)))
		return arm_more(uw, now, op, size);
	return __arm(uw, now, op, size, false);
}

/* MODIFY, if the timer is not plain or will not be */
static noinline int modify_more(struct user_wheel *uw, s64 now, struct twheel_op *op, u32 size,
				struct tw_node *node, u32 index)
{
	unsigned int slack_shift;
	struct tw_want want = {};
	s64 deadline;
	int ret;

	ret = tw_read_want(&uw->wheel.clock, now, op, size, op->flags, tw_wants_more(op, size),
			   &want);
	if (ret)
		return ret;
	if (!node)
		return -ENOENT;
	if (want.interval && !(node->flags & TW_NODE_PERIODIC)) {
		ret = have_node(uw, &uw->periods);
		if (ret)
			return ret;
	}
	op->state = tw_timer_state(&uw->wheel, node);
	tw_timer_set_more(&uw->periods, node, &want);
	slack_shift = tw_clock_slack_shift(&uw->wheel.clock, want.slack);
	deadline = tw_time_add(want.deadline, user_jitter(uw, want.jitter));
	if (deadline > now) {
		tw_wheel_mod(&uw->wheel, node, index, deadline, slack_shift);
	} else {
		tw_wheel_del(&uw->wheel, node, index);
		node->deadline = deadline;
		node->flags = (node->flags & TW_NODE_PERIODIC) | slack_shift;
		add_ready(uw, node, index);
	}
	uw->stats.modified++;
	return 0;
}

static __always_inline int modify(struct user_wheel *uw, s64 now, struct twheel_op *op, u32 size,
				  struct tw_node *node, u32 index)
{
	struct tw_want want;
	int ret;

	if (unlikely(tw_wants_more(op, size)))
		return modify_more(uw, now, op, size, node, index);
	ret = tw_read_want(&uw->wheel.clock, now, op, size, op->flags, false, &want);
	if (unlikely(ret))
		return ret;
	if (!node)
		return -ENOENT;
	if (unlikely(!tw_is_plain(&uw->wheel, node) || want.deadline <= now ||
		     want.deadline <= uw->wheel.done_ns))
		return modify_more(uw, now, op, size, node, index);
	op->state = TWHEEL_STATE_PENDING;
	node->user_data = want.user_data;
	tw_wheel_mod_plain(&uw->wheel, node, index, want.deadline);
	uw->stats.modified++;
	return 0;
}

static __always_inline void take_out(struct user_wheel *uw, struct tw_node *node, u32 index)
{
	if (tw_is_plain(&uw->wheel, node)) {
		tw_wheel_del_plain(&uw->wheel, node, index);
		tw_node_end(&uw->table, node, index);
	} else {
		tw_wheel_del(&uw->wheel, node, index);
		tw_timer_free(&uw->table, &uw->periods, node, index);
	}
	uw->stats.cancelled++;
}

static __always_inline int cancel(struct user_wheel *uw, struct twheel_op *op, u32 size,
				  struct tw_node *node, u32 index)
{
	if (op->flags || !tw_rest_is_zero(op, size))
		return -EINVAL;
	if (!node)
		return -ENOENT;
	op->state = tw_timer_state(&uw->wheel, node);
	take_out(uw, node, index);
	return 0;
}

static int query(struct user_wheel *uw, struct twheel_op *op, u32 size,
		 const struct tw_node *node, u32 index)
{
	const size_t rest = offsetof(struct twheel_op, deadline);
	struct twheel_op found;

	if (op->flags)
		return -EINVAL;
	if (!node)
		return -ENOENT;
	tw_fill_op(&uw->wheel, &uw->periods, node, index, &found);
	op->state = found.state;
	memcpy((char *)op + rest, (char *)&found + rest, size - rest);
	return 0;
}

static __always_inline int do_op(struct user_wheel *uw, s64 now, struct twheel_op *op, u32 size)
{
	struct tw_node *node;
	u32 index;

	op->state = TWHEEL_STATE_NONE;
	if (op->opcode == TWHEEL_OP_ARM)
		return arm(uw, now, op, size);
	if (!tw_table_find(&uw->table, op->id, &node, &index))
		node = NULL;
	switch (op->opcode) {
	case TWHEEL_OP_MODIFY:
		return modify(uw, now, op, size, node, index);
	case TWHEEL_OP_CANCEL:
		return cancel(uw, op, size, node, index);
	case TWHEEL_OP_QUERY:
		return query(uw, op, size, node, index);
	default:
		return -EINVAL;
	}
}

/* A single operation, and a whole one: not short, as nothing is copied */
int user_do(struct user_wheel *uw, struct twheel_op *op)
{
	s64 now;
	int ret = user_begin(uw, &now);

	if (ret)
		return ret;
	ret = do_op(uw, now, op, sizeof(*op));
	op->result = ret;
	user_end(uw, now);
	return ret;
}

/*
 * Nobody learns whether it was ready: so it is left to the next call to see what time it
 * is, which would be half of the cost.
 */
static noinline int cancel_armed(struct user_wheel *uw, u64 id)
{
	struct tw_node *node;
	u32 index;
	int ret = user_lock(uw);

	if (ret)
		return ret;
	if (tw_table_find(&uw->table, id, &node, &index))
		take_out(uw, node, index);
	else
		ret = -ENOENT;
	user_unlock(uw);
	return ret;
}

/* Where timers are put off, the caller has the lock. */
int user_cancel(struct user_wheel *uw, __u64 id)
{
	if (id >= uw->nr_later)
		return cancel_armed(uw, id);
	user_take_later(uw, id);
	uw->stats.cancelled++;
	return 0;
}

/* Inlined for each @size, so that fields that an operation does not have cost nothing. */
static __always_inline void do_sized(struct user_wheel *uw, s64 now, void *ops, u32 nr, u32 size)
{
	struct twheel_op *op = ops;
	struct tw_ahead ahead;
	u32 n;

	tw_ahead_begin(&ahead, &uw->table, ops, nr, size, now);
	for (n = 0; n < nr; n++, op = (void *)op + size) {
		tw_ahead(&ahead, op, size);
		op->result = do_op(uw, now, op, size);
	}
}

int user_submit(struct user_wheel *uw, void *ops, __u32 nr, __u32 op_size)
{
	s64 now;
	int ret = tw_check_array(0, nr, op_size) ?: user_begin(uw, &now);

	if (ret)
		return ret;
	if (op_size == TWHEEL_OP_SIZE_ID)
		do_sized(uw, now, ops, nr, TWHEEL_OP_SIZE_ID);
	else if (op_size == TWHEEL_OP_SIZE_ONCE)
		do_sized(uw, now, ops, nr, TWHEEL_OP_SIZE_ONCE);
	else
		do_sized(uw, now, ops, nr, TWHEEL_OP_SIZE_FULL);
	user_end(uw, now);
	return nr;
}
