// SPDX-License-Identifier: GPL-2.0
/*
 * What a program does to timers: arm, modify, cancel, query.
 */
#include <linux/math64.h>
#include <linux/random.h>

#include "context.h"
#include "trace.h"
#include "user.h"
#include "validate.h"

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

static u64 tw_user_data(const struct tw_node *node)
{
	return node->flags & TW_NODE_PERIODIC ? node->period->user_data :
						node->user_data;
}

static int tw_limit_hit(struct twheel *tw, u32 limit)
{
	tw->stats.limited++;
	trace_twheel_limit(tw, limit);
	return -ENOSPC;
}

/* The operation can be done only after tw_begin() has reserved nodes for it. */
#define TW_RESERVE 1

/* How many timers may be armed: these nodes can't be taken away from the batch. */
static void tw_measure_room(struct twheel *tw, struct tw_batch *batch)
{
	u32 left = tw->limit - min(tw->limit, tw_timers(tw));

	batch->room = min(left, tw->table.free);
	tw_table_reserve(&tw->table, batch->room);
}

/* There are no nodes: reserve some, or say why there are none. */
static int tw_no_nodes(struct twheel *tw, const struct tw_batch *batch)
{
	if (!batch->error)
		return TW_RESERVE;
	if (batch->error == -ENOSPC)
		return tw_limit_hit(tw, READ_ONCE(tw_max_user_timers));
	return batch->error;
}

/* There is no room: look again, or say why. */
static int tw_make_room(struct twheel *tw, struct tw_batch *batch)
{
	tw_measure_room(tw, batch);
	if (batch->room)
		return 0;
	if (tw_timers(tw) >= tw->limit)
		return tw_limit_hit(tw, tw->limit);
	return tw_no_nodes(tw, batch);
}

/*
 * Make a timer periodic or not, as @op wants it, and have its user data where
 * it then is.
 */
static int tw_set_period(struct twheel *tw, struct tw_batch *batch,
			 struct tw_node *node, const struct twheel_op *op,
			 s64 nominal)
{
	struct tw_period *period = node->period;

	if (!op->interval) {
		if (node->flags & TW_NODE_PERIODIC)
			tw_table_free(&tw->table, (struct tw_node *)period);
		node->flags &= ~TW_NODE_PERIODIC;
		node->user_data = op->user_data;
		return 0;
	}
	if (!(node->flags & TW_NODE_PERIODIC)) {
		if (!tw->table.free)
			return tw_no_nodes(tw, batch);
		period = (void *)tw_table_alloc_hidden(&tw->table);
		node->period = period;
		node->flags |= TW_NODE_PERIODIC;
		/* It may be one of those that are reserved. */
		batch->room = min(batch->room, tw->table.free);
	}
	period->nominal = nominal;
	period->interval = op->interval;
	period->jitter = op->jitter;
	period->user_data = op->user_data;
	return 0;
}

static int tw_arm(struct twheel *tw, struct tw_batch *batch,
		  struct twheel_op *op)
{
	struct tw_node *node;
	s64 nominal;
	u64 id;
	int ret;

	if (!batch->room) {
		ret = tw_make_room(tw, batch);
		if (ret)
			return ret;
	}
	batch->room--;
	node = tw_table_alloc(&tw->table, &id);
	node->special = 0;
	nominal = tw_op_deadline(tw, batch, op);
	ret = tw_set_period(tw, batch, node, op, nominal);
	if (ret) {
		tw_table_free(&tw->table, node);
		return ret;
	}
	node->deadline = tw_time_add(nominal, tw_jitter(op->jitter));
	node->slack_shift = tw_clock_slack_shift(&tw->wheel.clock, op->slack);
	if (node->deadline > batch->now) {
		tw_wheel_add(&tw->wheel, node);
	} else {
		tw_wheel_add_ready(&tw->wheel, node, batch->now);
		batch->expired++;
	}
	tw->stats.armed++;
	op->id = id;
	trace_twheel_arm(tw, node);
	return 0;
}

static int tw_modify(struct twheel *tw, struct tw_batch *batch,
		     struct twheel_op *op)
{
	unsigned int slack_shift;
	struct tw_node *node;
	s64 deadline;
	u32 state;
	int ret;

	if (!tw_table_find(&tw->table, op->id, &node))
		return -ENOENT;
	state = tw_state(tw, node);
	deadline = tw_op_deadline(tw, batch, op);
	ret = tw_set_period(tw, batch, node, op, deadline);
	if (ret)
		return ret;
	deadline = tw_time_add(deadline, tw_jitter(op->jitter));
	slack_shift = tw_clock_slack_shift(&tw->wheel.clock, op->slack);
	if (deadline > batch->now) {
		tw_wheel_mod(&tw->wheel, node, deadline, slack_shift);
	} else {
		tw_wheel_del(&tw->wheel, node);
		node->deadline = deadline;
		node->slack_shift = slack_shift;
		tw_wheel_add_ready(&tw->wheel, node, batch->now);
		batch->expired++;
	}
	op->state = state;
	tw->stats.modified++;
	trace_twheel_modify(tw, node);
	return 0;
}

static int tw_cancel(struct twheel *tw, struct twheel_op *op)
{
	struct tw_node *node;

	if (!tw_table_find(&tw->table, op->id, &node))
		return -ENOENT;
	op->state = tw_state(tw, node);
	tw_wheel_del(&tw->wheel, node);
	tw_free_timer(tw, node);
	tw->stats.cancelled++;
	trace_twheel_cancel(tw, op->id, op->state);
	return 0;
}

/**
 * tw_fill_op() - the operation that would arm a timer again
 * @tw: the wheel
 * @node: the timer
 * @op: out
 *
 * Context: holds @tw->lock.
 */
void tw_fill_op(struct twheel *tw, const struct tw_node *node,
		struct twheel_op *op)
{
	const struct tw_clock *clock = &tw->wheel.clock;
	s64 deadline = node->deadline;

	lockdep_assert_held(&tw->lock);
	*op = (struct twheel_op){
		.size = sizeof(*op),
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.state = tw_state(tw, node),
		.id = tw_id(node),
		.slack = tw_clock_slack(clock, node->slack_shift),
		.user_data = tw_user_data(node),
	};
	if (node->flags & TW_NODE_PERIODIC) {
		deadline = node->period->nominal;
		op->interval = node->period->interval;
		op->jitter = node->period->jitter;
	}
	op->deadline = tw_clock_to_user(clock, deadline);
}

static int tw_query(struct twheel *tw, struct twheel_op *op)
{
	struct tw_node *node;

	if (!tw_table_find(&tw->table, op->id, &node))
		return -ENOENT;
	tw_fill_op(tw, node, op);
	op->opcode = TWHEEL_OP_QUERY;
	return 0;
}

/**
 * tw_do_op() - do an operation, whatever it is
 * @tw: the wheel
 * @batch: what tw_begin() filled in
 * @op: the operation, which nobody else can change meanwhile. Result, state and
 *	id are filled in, and the rest by QUERY
 *
 * Context: holds @tw->lock.
 * Return: false if it can be done only after a tw_begin() for one timer at least.
 */
bool tw_do_op(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op)
{
	int ret = tw_check_op(op);

	op->state = TWHEEL_STATE_NONE;
	if (!ret) {
		switch (op->opcode) {
		case TWHEEL_OP_ARM:
			ret = tw_arm(tw, batch, op);
			break;
		case TWHEEL_OP_MODIFY:
			ret = tw_modify(tw, batch, op);
			break;
		case TWHEEL_OP_CANCEL:
			ret = tw_cancel(tw, op);
			break;
		case TWHEEL_OP_QUERY:
			ret = tw_query(tw, op);
			break;
		}
	}
	if (ret == TW_RESERVE)
		return false;
	op->result = ret;
	return true;
}

/*
 * Take the lock, with so many free nodes if they can be had. Returns why not, or 0:
 * what needs none can be done anyway.
 */
static int tw_lock_with_nodes(struct twheel *tw, unsigned int nodes)
	__acquires(&tw->lock)
{
	for (;;) {
		int ret = nodes ? tw_add_nodes(tw, nodes) : 0;

		spin_lock_bh(&tw->lock);
		/* Unless other threads have taken them. */
		if (tw->table.free >= nodes)
			return 0;
		if (ret)
			return ret;
		spin_unlock_bh(&tw->lock);
	}
}

/**
 * tw_begin() - begin with operations
 * @tw: the wheel
 * @batch: filled in
 * @timers: how many of them at most arm a timer; 0 if that need not be known yet
 *
 * Context: may sleep; returns with @tw->lock held.
 */
void tw_begin(struct twheel *tw, struct tw_batch *batch, unsigned int timers)
	__acquires(&tw->lock)
{
	*batch = (struct tw_batch){};
	/* Each may want a second one, for its period. */
	batch->error = tw_lock_with_nodes(tw, 2 * timers);
	if (timers)
		tw_measure_room(tw, batch);
}

/**
 * tw_batch_time() - what arms and modifies timers needs to know the time
 * @tw: the wheel
 * @batch: what tw_begin() filled in
 *
 * Context: holds @tw->lock.
 */
void tw_batch_time(struct twheel *tw, struct tw_batch *batch)
{
	s64 tick;

	batch->now = tw_now(tw, &tick);
	tw_wheel_forward(&tw->wheel, tick);
}

/**
 * tw_end() - end with operations
 * @tw: the wheel
 * @batch: what was done
 *
 * Context: may sleep; releases @tw->lock.
 */
void tw_end(struct twheel *tw, struct tw_batch *batch)
	__releases(&tw->lock)
{
	struct tw_chunk *spare;

	if (tw->stats.armed)
		tw->fixed = true;
	if (batch->expired) {
		tw->stats.expired += batch->expired;
		tw->stats.lateness[0] += batch->expired;
	}
	tw_program(tw, tw->wheel.next);
	tw_table_reserve(&tw->table, 0);
	tw_check(tw, tw->wheel.next, batch->room);
	spare = tw_table_take_spare(&tw->table);
	spin_unlock_bh(&tw->lock);

	tw_free_spare(tw, spare);
	if (batch->expired)
		tw_wake(tw);
}
