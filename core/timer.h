/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * A timer of a program: what an operation asks for, what a timer keeps of it, and what is said of
 * a timer in events and operations. These rules are the same in the module and in a wheel of the
 * program itself, which differ in how they lock, and in where operations and events lie.
 *
 * Pure, as wheel.h. An operation may lie in memory that a program can write to at any time, so
 * each field is read once.
 */
#ifndef TW_TIMER_H
#define TW_TIMER_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <uapi/linux/twheel.h>

#include "validate.h"
#include "wheel.h"

/**
 * struct tw_want - what ARM and MODIFY ask for
 * @deadline: the host's time in ns, but for jitter
 * @user_data: handed back with each event
 * @interval: period, or 0
 * @slack: by how much it may be late
 * @jitter: by how much it may be put off
 */
struct tw_want {
	s64 deadline;
	u64 user_data;
	u64 interval;
	u64 slack;
	u64 jitter;
};

/* What a periodic timer has besides */
static inline struct tw_period *tw_timer_period(const struct tw_table *periods,
						const struct tw_node *node)
{
	return tw_period_at(periods, node->period);
}

static inline u32 tw_timer_state(const struct tw_wheel *wheel, const struct tw_node *node)
{
	return tw_is_ready(wheel, node) ? TWHEEL_STATE_READY : TWHEEL_STATE_PENDING;
}

/* Does an operation ask for more than a deadline? Few do. */
static __always_inline bool tw_wants_more(const struct twheel_op *op, u32 size)
{
	return size == TWHEEL_OP_SIZE_FULL &&
	       (READ_ONCE(op->interval) | READ_ONCE(op->slack) |
		READ_ONCE(op->jitter) | READ_ONCE(op->__reserved));
}

/**
 * tw_read_want() - what ARM or MODIFY asks for
 * @clock: the wheel's clock
 * @now: the host's time in ns, from which delays count
 * @op: the operation
 * @size: its length
 * @flags: its flags
 * @more: of tw_wants_more(); if false, only the deadline and @user_data are filled in
 * @want: filled in
 *
 * Return: 0 or -EINVAL.
 */
static __always_inline int tw_read_want(const struct tw_clock *clock, s64 now,
					const struct twheel_op *op, u32 size,
					unsigned int flags, bool more, struct tw_want *want)
{
	u64 when;

	if (unlikely(flags & ~TWHEEL_ABS || size < TWHEEL_OP_SIZE_ONCE))
		return -EINVAL;
	when = READ_ONCE(op->deadline);
	want->user_data = READ_ONCE(op->user_data);
	if (unlikely(!tw_time_ok(when)))
		return -EINVAL;
	if (flags & TWHEEL_ABS)
		want->deadline = tw_clock_to_host(clock, when);
	else
		want->deadline = tw_time_add(now, when);
	if (!more)
		return 0;
	want->interval = READ_ONCE(op->interval);
	want->slack = READ_ONCE(op->slack);
	want->jitter = READ_ONCE(op->jitter);
	return READ_ONCE(op->__reserved) ? -EINVAL :
	       tw_check_more(want->interval, want->slack, want->jitter);
}

/**
 * tw_timer_set_more() - set all of a timer but its deadline and slack
 * @periods: what periodic timers have besides; one is free if the timer becomes periodic
 * @node: the timer, which is on no list, or leaves its list next
 * @want: what it is to be, all filled in
 */
static inline void tw_timer_set_more(struct tw_table *periods, struct tw_node *node,
				     const struct tw_want *want)
{
	struct tw_period *period;

	if (!want->interval) {
		if (node->flags & TW_NODE_PERIODIC)
			tw_table_free(periods, node->period);
		node->flags &= ~TW_NODE_PERIODIC;
		node->user_data = want->user_data;
		return;
	}
	if (!(node->flags & TW_NODE_PERIODIC)) {
		node->period = tw_table_alloc(periods);
		node->flags |= TW_NODE_PERIODIC;
	}
	period = tw_timer_period(periods, node);
	period->nominal = want->deadline;
	period->interval = want->interval;
	period->jitter = want->jitter;
	period->user_data = want->user_data;
}

/**
 * tw_timer_free() - end a timer that is on no list of the wheel
 * @table: its table
 * @periods: what periodic timers have besides
 * @node: the timer
 * @index: its index
 */
static inline void tw_timer_free(struct tw_table *table, struct tw_table *periods,
				 struct tw_node *node, u32 index)
{
	if (unlikely(node->flags & TW_NODE_PERIODIC))
		tw_table_free(periods, node->period);
	tw_node_end(table, node, index);
}

/* CANCEL has an id, and nothing behind it. */
static __always_inline bool tw_rest_is_zero(const struct twheel_op *op, u32 size)
{
	u64 rest = 0;

	if (size >= TWHEEL_OP_SIZE_ONCE)
		rest |= op->deadline | op->user_data;
	if (size >= TWHEEL_OP_SIZE_FULL)
		rest |= op->interval | op->slack | op->jitter | op->__reserved;
	return !rest;
}

/**
 * tw_fill_op() - the operation that would arm a timer again
 * @wheel: the wheel
 * @periods: what periodic timers have besides
 * @node: the timer
 * @index: its index
 * @op: out
 */
static inline void tw_fill_op(const struct tw_wheel *wheel, const struct tw_table *periods,
			      const struct tw_node *node, u32 index, struct twheel_op *op)
{
	s64 deadline = node->deadline;

	*op = (struct twheel_op){
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.state = tw_timer_state(wheel, node),
		.id = tw_id(node, index),
		.user_data = node->user_data,
		.slack = tw_clock_slack(&wheel->clock, node->flags & TW_NODE_SLACK),
	};
	if (node->flags & TW_NODE_PERIODIC) {
		const struct tw_period *period = tw_timer_period(periods, node);

		deadline = period->nominal;
		op->user_data = period->user_data;
		op->interval = period->interval;
		op->jitter = period->jitter;
	}
	op->deadline = tw_clock_to_user(&wheel->clock, deadline);
}

/**
 * tw_overrun() - periods of a ready timer that went by after the one that made it ready
 * @period: what it has besides, as it is periodic
 * @node: the timer
 * @now: the host's time in ns
 *
 * They count from its deadline, jitter included, as a reader can't be earlier than that. So the
 * next period may have begun, and its deadline may be over.
 *
 * Return: their number; 0 if the clock was set back.
 */
static inline u64 tw_overrun(const struct tw_period *period, const struct tw_node *node, s64 now)
{
	if (now < node->deadline)
		return 0;
	return div64_u64(now - node->deadline, period->interval);
}

/* How often a ready timer has expired; @now may be anything if none is periodic. */
static inline u64 tw_expiries(const struct tw_table *periods, const struct tw_node *node, s64 now)
{
	if (likely(!(node->flags & TW_NODE_PERIODIC)))
		return 1;
	return 1 + tw_overrun(tw_timer_period(periods, node), node, now);
}

/**
 * tw_next_period() - the period of a timer that was read is over: the next begins
 * @wheel: the wheel
 * @period: what the timer has besides
 * @node: the timer, which is on no list
 * @index: its index
 * @overrun: of tw_overrun()
 * @jitter: by how much it is put off, 0 to its jitter, in ns
 */
static inline void tw_next_period(struct tw_wheel *wheel, struct tw_period *period,
				  struct tw_node *node, u32 index, u64 overrun, s64 jitter)
{
	period->nominal = min_t(u64, KTIME_MAX, period->nominal +
				(overrun + 1) * period->interval);
	node->deadline = tw_time_add(period->nominal, jitter);
	tw_wheel_add(wheel, node, index);
}

/* What an event of a periodic timer has besides */
static inline void tw_fill_period(const struct tw_table *periods, const struct tw_node *node,
				  s64 now, struct twheel_event *event, u32 unit)
{
	const struct tw_period *period = tw_timer_period(periods, node);

	event->user_data = period->user_data;
	if (unit == TWHEEL_EVENT_SIZE_ID)
		return;
	event->overrun = min_t(u64, tw_overrun(period, node, now), U32_MAX);
	event->flags = TWHEEL_EVENT_PERIODIC;
}

/**
 * tw_fill_event() - the event of a timer that is ready
 * @clock: the wheel's clock
 * @periods: what periodic timers have besides
 * @node: the timer
 * @index: its index
 * @now: as of tw_expiries()
 * @event: out; field by field, as clearing it first would cost more than all the rest
 * @unit: its length, one of TWHEEL_EVENT_SIZE_*
 */
static __always_inline void tw_fill_event(const struct tw_clock *clock,
					  const struct tw_table *periods,
					  const struct tw_node *node, u32 index, s64 now,
					  struct twheel_event *event, u32 unit)
{
	event->user_data = node->user_data;
	event->id = tw_id(node, index);
	if (unit > TWHEEL_EVENT_SIZE_ID) {
		event->deadline = tw_clock_to_user(clock, node->deadline);
		event->overrun = 0;
		event->flags = 0;
	}
	if (unlikely(node->flags & TW_NODE_PERIODIC))
		tw_fill_period(periods, node, now, event, unit);
}

#endif /* TW_TIMER_H */
