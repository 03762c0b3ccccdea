// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program does to the timers of a wheel that it has itself: arm, modify,
 * cancel, query. To a program it is the same as with the module, so what changes here
 * changes in kmod/ops.c, too; tests/library/backends compares them.
 */

#include <string.h>

#include "ahead.h"
#include "context.h"
#include "validate.h"

/**
 * struct user_batch - operations that are done together
 * @uw: the wheel, locked
 * @now: the time that it is now, in ns
 * @size: length of each
 */
struct user_batch {
	struct user_wheel *uw;
	s64 now;
	u32 size;
};

/**
 * struct user_want - what ARM and MODIFY ask for
 * @deadline: time in ns, but for jitter
 * @interval: period, or 0
 * @slack: by how much it may be late
 * @jitter: by how much it may be put off
 */
struct user_want {
	s64 deadline;
	u64 interval;
	u64 slack;
	u64 jitter;
};

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

static u16 state_of(const struct user_wheel *uw, const struct tw_node *node)
{
	return tw_is_ready(&uw->wheel, node) ? TWHEEL_STATE_READY : TWHEEL_STATE_PENDING;
}

static __always_inline int read_want(const struct user_batch *batch,
				     const struct twheel_op *op,
				     struct user_want *want)
{
	if (op->flags & ~TWHEEL_ABS || batch->size < TWHEEL_OP_SIZE_ONCE ||
	    !tw_time_ok(op->deadline))
		return -EINVAL;
	want->deadline = op->flags & TWHEEL_ABS ? op->deadline :
						  tw_time_add(batch->now, op->deadline);
	want->interval = 0;
	want->slack = 0;
	want->jitter = 0;
	if (batch->size < TWHEEL_OP_SIZE_FULL)
		return 0;
	want->interval = op->interval;
	want->slack = op->slack;
	want->jitter = op->jitter;
	return op->__reserved ? -EINVAL :
	       tw_check_more(op->interval, op->slack, op->jitter);
}

static int have_node(struct user_batch *batch, struct tw_table *table)
{
	if (likely(table->free > batch->uw->nr_later))
		return 0;
	return user_add_nodes(batch->uw, table);
}

/*
 * Give a timer all that @want asks for, but for its deadline. The caller has seen to it that
 * a period is free, if the timer needs one.
 */
static void set_data(struct user_wheel *uw, struct tw_node *node,
		     const struct user_want *want, u64 user_data)
{
	struct tw_period *period;

	if (!want->interval) {
		if (node->flags & TW_NODE_PERIODIC)
			tw_table_free(&uw->periods, node->period);
		node->flags &= ~TW_NODE_PERIODIC;
		node->user_data = user_data;
		return;
	}
	if (!(node->flags & TW_NODE_PERIODIC)) {
		node->period = tw_table_alloc(&uw->periods);
		node->flags |= TW_NODE_PERIODIC;
	}
	period = user_period_of(uw, node);
	period->nominal = want->deadline;
	period->interval = want->interval;
	period->jitter = want->jitter;
	period->user_data = user_data;
}

/* It is on no list, and expires at once. */
static void add_ready(struct user_wheel *uw, struct tw_node *node, u32 index)
{
	tw_wheel_add_ready(&uw->wheel, node, index);
	uw->stats.expired++;
	uw->stats.lateness[0]++;
}

static int arm(struct user_batch *batch, struct twheel_op *op)
{
	struct user_wheel *uw = batch->uw;
	struct user_want want;
	struct tw_node *node;
	u32 index;
	int ret;

	ret = read_want(batch, op, &want);
	if (ret)
		return ret;
	if (user_timers(uw) >= uw->limit) {
		uw->stats.refused++;
		return -ENOSPC;
	}
	ret = have_node(batch, &uw->table);
	if (!ret && want.interval)
		ret = have_node(batch, &uw->periods);
	if (ret)
		return ret;
	node = tw_node_begin(&uw->table, &index);
	node->flags = tw_clock_slack_shift(&uw->wheel.clock, want.slack);
	set_data(uw, node, &want, op->user_data);
	node->deadline = tw_time_add(want.deadline, user_jitter(uw, want.jitter));
	if (likely(node->deadline > batch->now))
		tw_wheel_add(&uw->wheel, node, index);
	else
		add_ready(uw, node, index);
	uw->stats.armed++;
	uw->fixed = true;
	op->id = tw_id(node, index);
	return 0;
}

static int modify(struct user_batch *batch, struct twheel_op *op, struct tw_node *node,
		  u32 index)
{
	struct user_wheel *uw = batch->uw;
	unsigned int slack_shift;
	struct user_want want;
	s64 deadline;
	int ret;

	ret = read_want(batch, op, &want);
	if (ret)
		return ret;
	if (!node)
		return -ENOENT;
	if (want.interval && !(node->flags & TW_NODE_PERIODIC)) {
		ret = have_node(batch, &uw->periods);
		if (ret)
			return ret;
	}
	op->state = state_of(uw, node);
	set_data(uw, node, &want, op->user_data);
	slack_shift = tw_clock_slack_shift(&uw->wheel.clock, want.slack);
	deadline = tw_time_add(want.deadline, user_jitter(uw, want.jitter));
	if (likely(deadline > batch->now)) {
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

static bool rest_is_zero(const struct twheel_op *op, u32 size)
{
	u64 rest = 0;

	if (size >= TWHEEL_OP_SIZE_ONCE)
		rest |= op->deadline | op->user_data;
	if (size >= TWHEEL_OP_SIZE_FULL)
		rest |= op->interval | op->slack | op->jitter | op->__reserved;
	return !rest;
}

static void take_out(struct user_wheel *uw, struct tw_node *node, u32 index)
{
	tw_wheel_del(&uw->wheel, node, index);
	user_free_timer(uw, node, index);
	uw->stats.cancelled++;
}

static int cancel(struct user_batch *batch, struct twheel_op *op, struct tw_node *node,
		  u32 index)
{
	if (op->flags || !rest_is_zero(op, batch->size))
		return -EINVAL;
	if (!node)
		return -ENOENT;
	op->state = state_of(batch->uw, node);
	take_out(batch->uw, node, index);
	return 0;
}

/* The operation that would arm a timer again */
void user_fill_op(struct user_wheel *uw, const struct tw_node *node, u32 index,
		  struct twheel_op *op)
{
	*op = (struct twheel_op){
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.state = state_of(uw, node),
		.id = tw_id(node, index),
		.deadline = node->deadline,
		.user_data = node->user_data,
		.slack = tw_clock_slack(&uw->wheel.clock, node->flags & TW_NODE_SLACK),
	};
	if (node->flags & TW_NODE_PERIODIC) {
		const struct tw_period *period = user_period_of(uw, node);

		op->deadline = period->nominal;
		op->user_data = period->user_data;
		op->interval = period->interval;
		op->jitter = period->jitter;
	}
}

static int query(struct user_batch *batch, struct twheel_op *op,
		 const struct tw_node *node, u32 index)
{
	const size_t rest = offsetof(struct twheel_op, deadline);
	struct twheel_op found;

	if (op->flags)
		return -EINVAL;
	if (!node)
		return -ENOENT;
	user_fill_op(batch->uw, node, index, &found);
	op->state = found.state;
	memcpy((char *)op + rest, (char *)&found + rest, batch->size - rest);
	return 0;
}

static int do_op(struct user_batch *batch, struct twheel_op *op)
{
	struct tw_node *node;
	u32 index;

	op->state = TWHEEL_STATE_NONE;
	if (op->opcode == TWHEEL_OP_ARM)
		return arm(batch, op);
	if (!tw_table_find(&batch->uw->table, op->id, &node, &index))
		node = NULL;
	switch (op->opcode) {
	case TWHEEL_OP_MODIFY:
		return modify(batch, op, node, index);
	case TWHEEL_OP_CANCEL:
		return cancel(batch, op, node, index);
	case TWHEEL_OP_QUERY:
		return query(batch, op, node, index);
	default:
		return -EINVAL;
	}
}

/* A single operation, and a whole one: not short, as nothing is copied */
int user_do(struct user_wheel *uw, struct twheel_op *op)
{
	struct user_batch batch = { .uw = uw, .size = sizeof(*op) };
	int ret = user_begin(uw, &batch.now);

	if (ret)
		return ret;
	ret = do_op(&batch, op);
	op->result = ret;
	user_end(uw, batch.now);
	return ret;
}

/*
 * Nobody is told whether it was ready: so it is left to the next call to see what time it
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

int user_submit(struct user_wheel *uw, void *ops, __u32 nr, __u32 op_size)
{
	struct user_batch batch;
	struct tw_ahead ahead;
	char *at = ops;
	u32 n;
	int ret;

	ret = tw_check_array(0, nr, op_size) ?: user_begin(uw, &batch.now);
	if (ret)
		return ret;
	batch.uw = uw;
	batch.size = op_size;
	tw_ahead_begin(&ahead, &uw->table, ops, nr, op_size, batch.now);
	for (n = 0; n < nr; n++, at += op_size) {
		struct twheel_op *op = (struct twheel_op *)at;

		tw_ahead(&ahead, at, op_size);
		op->result = do_op(&batch, op);
	}
	user_end(uw, batch.now);
	return nr;
}
