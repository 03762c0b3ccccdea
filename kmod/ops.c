// SPDX-License-Identifier: GPL-2.0
/*
 * What a program does to timers: arm, modify, cancel, query.
 */
#include <linux/capability.h>
#include <linux/math64.h>
#include <linux/random.h>

#include "context.h"
#include "trace.h"
#include "user.h"
#include "validate.h"

/**
 * struct tw_batch - operations under way under one hold of the lock
 * @now: the time that it is now, in ns
 * @tick: the wheel's tick that it is now
 * @granted: timers that the user may yet arm
 * @freed: timers that are gone
 * @expired: timers that were ready at once
 */
struct tw_batch {
	s64 now;
	s64 tick;
	u32 granted;
	u32 freed;
	u32 expired;
};

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

static u32 tw_state(const struct twheel *tw, const struct tw_node *node)
{
	return tw_is_ready(&tw->wheel, node) ? TWHEEL_STATE_READY :
					       TWHEEL_STATE_PENDING;
}

static u64 tw_user_data(const struct twheel *tw, const struct tw_node *node)
{
	if (node->flags & TW_NODE_PERIODIC)
		return tw_period(&tw->table, node)->user_data;
	return node->user_data;
}

/* Make the node periodic, as @op wants it. It may be so already. */
static int tw_set_period(struct twheel *tw, struct tw_node *node,
			 const struct twheel_op *op, s64 nominal)
{
	struct tw_period *period;
	u32 index;

	if (!(node->flags & TW_NODE_PERIODIC)) {
		index = tw_table_alloc_hidden(&tw->table);
		if (index == TW_NIL)
			return -ENOMEM;
		node->period = index;
		node->flags |= TW_NODE_PERIODIC;
	}
	period = tw_period(&tw->table, node);
	period->nominal = nominal;
	period->interval = op->interval;
	period->jitter = op->jitter;
	period->user_data = op->user_data;
	return 0;
}

/* Take over when a timer is to expire, and what to hand back then. */
static inline int tw_set_times(struct twheel *tw, const struct tw_batch *batch,
			       struct tw_node *node, const struct twheel_op *op)
{
	s64 deadline;
	int ret;

	if (op->flags & TWHEEL_ABS)
		deadline = tw_clock_to_host(&tw->clock, op->deadline);
	else
		deadline = tw_time_add(batch->now, op->deadline);
	if (unlikely(op->interval)) {
		ret = tw_set_period(tw, node, op, deadline);
		if (ret)
			return ret;
	} else {
		if (unlikely(node->flags & TW_NODE_PERIODIC))
			tw_table_free(&tw->table, node->period);
		node->flags = 0;
		node->user_data = op->user_data;
	}
	node->slack_shift = 0;
	if (unlikely(op->slack | op->jitter)) {
		deadline = tw_time_add(deadline, tw_jitter(op->jitter));
		node->slack_shift = tw_clock_slack_shift(&tw->clock, op->slack);
	}
	node->deadline = deadline;
	return 0;
}

static s64 tw_expires(const struct twheel *tw, const struct tw_node *node)
{
	return tw_clock_expires(&tw->clock, node->deadline, node->slack_shift);
}

static int tw_limit_hit(struct twheel *tw, u32 limit)
{
	tw->stats.limited++;
	trace_twheel_limit(tw, limit);
	return -ENOSPC;
}

static int tw_arm(struct twheel *tw, struct tw_batch *batch,
		  struct twheel_op *op)
{
	struct tw_node *node;
	u32 index;
	int ret;

	if (tw->timers >= tw->limit)
		return tw_limit_hit(tw, tw->limit);
	if (!batch->granted)
		return tw_limit_hit(tw, READ_ONCE(tw_max_user_timers));
	index = tw_table_alloc(&tw->table);
	if (index == TW_NIL)
		return -ENOMEM;
	node = tw_node(&tw->table, index);
	node->flags = 0;
	ret = tw_set_times(tw, batch, node, op);
	if (ret) {
		tw_table_free(&tw->table, index);
		return ret;
	}
	if (unlikely((s64)node->deadline <= batch->now)) {
		tw_wheel_add_ready(&tw->wheel, index, batch->now);
		batch->expired++;
	} else {
		tw_wheel_add(&tw->wheel, index, tw_expires(tw, node));
	}
	tw->timers++;
	tw->fixed = true;
	tw->stats.armed++;
	batch->granted--;
	op->id = tw_id(node, index);
	trace_twheel_arm(tw, op, node);
	return 0;
}

static int tw_modify(struct twheel *tw, struct tw_batch *batch,
		     struct twheel_op *op)
{
	u32 index = tw_table_find(&tw->table, op->id);
	struct tw_node *node;
	int ret;

	if (index == TW_NIL)
		return -ENOENT;
	node = tw_node(&tw->table, index);
	op->state = tw_state(tw, node);
	ret = tw_set_times(tw, batch, node, op);
	if (ret)
		return ret;
	if (unlikely((s64)node->deadline <= batch->now)) {
		tw_wheel_del(&tw->wheel, index);
		tw_wheel_add_ready(&tw->wheel, index, batch->now);
		batch->expired++;
	} else {
		tw_wheel_mod(&tw->wheel, index, tw_expires(tw, node));
	}
	tw->stats.modified++;
	trace_twheel_modify(tw, op, node);
	return 0;
}

static int tw_cancel(struct twheel *tw, struct tw_batch *batch,
		     struct twheel_op *op)
{
	u32 index = tw_table_find(&tw->table, op->id);

	if (index == TW_NIL)
		return -ENOENT;
	op->state = tw_state(tw, tw_node(&tw->table, index));
	tw_wheel_del(&tw->wheel, index);
	tw_free_timer(tw, index);
	tw->stats.cancelled++;
	batch->freed++;
	trace_twheel_cancel(tw, op);
	return 0;
}

/**
 * tw_fill_op() - the operation that would arm a timer again
 * @tw: the wheel
 * @index: the timer
 * @op: out
 *
 * Context: holds @tw->lock.
 */
void tw_fill_op(struct twheel *tw, u32 index, struct twheel_op *op)
{
	const struct tw_node *node = tw_node(&tw->table, index);
	const struct tw_period *period;
	s64 deadline = node->deadline;

	lockdep_assert_held(&tw->lock);
	*op = (struct twheel_op){
		.size = sizeof(*op),
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.state = tw_state(tw, node),
		.id = tw_id(node, index),
		.slack = tw_clock_slack(&tw->clock, node->slack_shift),
		.user_data = tw_user_data(tw, node),
	};
	if (node->flags & TW_NODE_PERIODIC) {
		period = tw_period(&tw->table, node);
		deadline = period->nominal;
		op->interval = period->interval;
		op->jitter = period->jitter;
	}
	op->deadline = tw_clock_to_user(&tw->clock, deadline);
}

static int tw_query(struct twheel *tw, struct twheel_op *op)
{
	u32 index = tw_table_find(&tw->table, op->id);

	if (index == TW_NIL)
		return -ENOENT;
	tw_fill_op(tw, index, op);
	op->opcode = TWHEEL_OP_QUERY;
	return 0;
}

static inline int tw_do_op(struct twheel *tw, struct tw_batch *batch,
			   struct twheel_op *op)
{
	int ret = tw_check_op(op);

	op->state = TWHEEL_STATE_NONE;
	if (unlikely(ret))
		return ret;
	switch (op->opcode) {
	case TWHEEL_OP_ARM:
		return tw_arm(tw, batch, op);
	case TWHEEL_OP_MODIFY:
		return tw_modify(tw, batch, op);
	case TWHEEL_OP_CANCEL:
		return tw_cancel(tw, batch, op);
	default:
		return tw_query(tw, op);
	}
}

static u32 tw_charge(struct twheel *tw, u32 timers)
{
	u32 limit = READ_ONCE(tw_max_user_timers);
	u32 granted = tw_user_charge(tw->user, timers, limit);

	if (granted < timers && capable(CAP_SYS_RESOURCE))
		granted += tw_user_charge(tw->user, timers - granted, U32_MAX);
	return granted;
}

/**
 * tw_do_ops() - do operations, each with its own result
 * @tw: the wheel
 * @ops: the operations; result, state and id are filled in, and the rest by
 *	QUERY
 * @nr: how many, 1 to TW_BATCH
 *
 * Context: may sleep.
 */
void tw_do_ops(struct twheel *tw, struct twheel_op *ops, unsigned int nr)
{
	struct tw_batch batch = {};
	unsigned int i, timers = 0, nodes = 0;
	struct tw_spare *spare;

	/* What they may need at most; bad ones among them will not take it. */
	for (i = 0; i < nr; i++) {
		timers += ops[i].opcode == TWHEEL_OP_ARM;
		nodes += !!ops[i].interval;
	}
	nodes += timers;
	if (timers)
		batch.granted = tw_charge(tw, timers);
	for (;;) {
		bool ok = !nodes || tw_reserve(tw, nodes);

		spin_lock_bh(&tw->lock);
		/* Without memory, those that need none can still be done. */
		if (tw->table.free >= nodes || !ok)
			break;
		spin_unlock_bh(&tw->lock);
	}
	batch.now = tw_now(tw, &batch.tick);
	tw_wheel_forward(&tw->wheel, batch.tick);
	for (i = 0; i < nr; i++)
		ops[i].result = tw_do_op(tw, &batch, &ops[i]);
	if (batch.expired) {
		tw->stats.expired += batch.expired;
		tw->stats.lateness[0] += batch.expired;
	}
	tw_program(tw, tw->wheel.next);
	spare = tw_table_take_spare(&tw->table);
	spin_unlock_bh(&tw->lock);

	tw_free_spare(spare);
	if (batch.granted + batch.freed)
		tw_user_uncharge(tw->user, batch.granted + batch.freed);
	if (batch.expired)
		tw_wake(tw);
}
