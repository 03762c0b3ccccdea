// SPDX-License-Identifier: GPL-2.0
/*
 * What a program does to timers, as it is most of the time: no period, no slack,
 * no jitter, a deadline to come, a timer that is pending, a clock that was not
 * set back. What is not like that is left to tw_do_op().
 *
 * The operations may be in the program's memory, which can write to them at any
 * time: so each word is read once.
 */
#include <linux/math64.h>
#include <linux/overflow.h>

#include "context.h"
#include "trace.h"
#include "validate.h"

/* The first word of an operation */
union tw_head {
	struct {
		u32 size;
		u16 opcode;
		u16 flags;
	};
	u64 word;
};

static inline u64 tw_head(const struct twheel_op *op)
{
	return READ_ONCE(*(const u64 *)&op->size);
}

/* The last words that are handed out: result, which is 0, and state */
union tw_outcome {
	struct {
		s32 result;
		u32 state;
	};
	u64 word;
};

static inline void tw_put_state(struct twheel_op *op, u32 state)
{
	union tw_outcome outcome = {{ .state = state }};

	WRITE_ONCE(*(u64 *)&op->result, outcome.word);
}

/*
 * From a time that an operation gives to its deadline: the base to be added, and
 * the last time that gives none to come.
 */
struct tw_base {
	s64 base;
	s64 last;
};

static struct tw_base tw_base(const struct twheel *tw,
			      const struct tw_batch *batch, u16 flags)
{
	const struct tw_clock *clock = &tw->wheel.clock;

	if (flags & TWHEEL_ABS)
		return (struct tw_base){
			.base = -clock->offset,
			.last = tw_clock_to_user(clock, batch->now),
		};
	return (struct tw_base){ .base = batch->now };
}

/*
 * Returns false unless the operation is plain, and its deadline to come. (What
 * need only be 0 is not kept, so it need not be read once.)
 */
static __always_inline bool
tw_read_plain(struct tw_base base, const struct twheel_op *op, s64 *deadline)
{
	s64 when = READ_ONCE(op->deadline);

	return likely(tw_op_plain(op) && when > base.last &&
		      !check_add_overflow(when, base.base, deadline));
}

static __always_inline bool
tw_arm_plain(struct twheel *tw, struct tw_base base, struct twheel_op *op)
{
	struct tw_node *node;
	s64 deadline;
	u64 id;

	if (!tw_read_plain(base, op, &deadline))
		return false;
	node = tw_table_alloc_uncounted(&tw->table, &id);
	node->deadline = deadline;
	node->user_data = READ_ONCE(op->user_data);
	tw_wheel_add_plain(&tw->wheel, node);
	WRITE_ONCE(op->id, id);
	tw_put_state(op, TWHEEL_STATE_NONE);
	trace_twheel_arm(tw, node);
	return true;
}

/*
 * Do operations as long as they are of one kind. What is counted is counted
 * after all of them.
 */
static struct twheel_op *
tw_arm_run(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op,
	   const struct twheel_op *end, union tw_head head)
{
	struct tw_base base = tw_base(tw, batch, head.flags);
	struct twheel_op *from = op;
	unsigned int nr;

	if (end - op > batch->room)
		end = op + batch->room;
	while (op < end && tw_head(op) == head.word && tw_arm_plain(tw, base, op))
		op++;
	nr = op - from;
	batch->room -= nr;
	tw->table.free -= nr;
	tw->wheel.pending += nr;
	tw->stats.armed += nr;
	return op;
}

static __always_inline bool
tw_modify_plain(struct twheel *tw, struct tw_base base, struct twheel_op *op)
{
	struct tw_node *node;
	s64 deadline;

	if (!tw_read_plain(base, op, &deadline) ||
	    !tw_table_find(&tw->table, READ_ONCE(op->id), &node) ||
	    !tw_wheel_mod_plain(&tw->wheel, node, deadline))
		return false;
	node->user_data = READ_ONCE(op->user_data);
	tw_put_state(op, TWHEEL_STATE_PENDING);
	trace_twheel_modify(tw, node);
	return true;
}

static struct twheel_op *
tw_modify_run(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op,
	      const struct twheel_op *end, union tw_head head)
{
	struct tw_base base = tw_base(tw, batch, head.flags);
	struct twheel_op *from = op;

	while (op < end && tw_head(op) == head.word &&
	       tw_modify_plain(tw, base, op))
		op++;
	tw->stats.modified += op - from;
	return op;
}

static void tw_count_cancelled(struct twheel *tw, unsigned int nr)
{
	tw->table.free += nr;
	tw->wheel.pending -= nr;
	tw->stats.cancelled += nr;
}

/* Timers that were cancelled from the operation @from on are not counted yet. */
static __always_inline bool
tw_cancel_plain(struct twheel *tw, struct twheel_op *op, struct twheel_op **from)
{
	u64 id = READ_ONCE(op->id);
	struct tw_chunk *chunk;
	struct tw_node *node;

	if (unlikely(op->deadline | op->interval | op->slack | op->jitter |
		     op->user_data))
		return false;
	if (!tw_table_find_in(&tw->table, id, &chunk, &node) ||
	    !tw_wheel_del_plain(&tw->wheel, node))
		return false;
	if (unlikely(tw_table_put(chunk, node))) {
		tw_count_cancelled(tw, op + 1 - *from);
		*from = op + 1;
		tw_chunk_freed(&tw->table, node);
	}
	tw_put_state(op, TWHEEL_STATE_PENDING);
	trace_twheel_cancel(tw, id, TWHEEL_STATE_PENDING);
	return true;
}

static struct twheel_op *
tw_cancel_run(struct twheel *tw, struct twheel_op *op,
	      const struct twheel_op *end, union tw_head head)
{
	struct twheel_op *from = op;

	while (op < end && tw_head(op) == head.word &&
	       tw_cancel_plain(tw, op, &from))
		op++;
	tw_count_cancelled(tw, op - from);
	return op;
}

/* Rare, and apart so that what is common needs fewer registers */
static noinline unsigned int
tw_do_set_back(struct twheel *tw, struct tw_batch *batch,
	       struct twheel_op *ops, unsigned int nr)
{
	return tw_wheel_settle(&tw->wheel) ? tw_do_plain(tw, batch, ops, nr) : 0;
}

/**
 * tw_do_plain() - do operations where they are, as far as they are plain
 * @tw: the wheel
 * @batch: what tw_begin() filled in
 * @ops: the operations, in the program's memory
 * @nr: how many
 *
 * Context: holds @tw->lock.
 * Return: how many were done. The next one is for tw_do_op().
 */
unsigned int tw_do_plain(struct twheel *tw, struct tw_batch *batch,
			 struct twheel_op *ops, unsigned int nr)
{
	struct twheel_op *op = ops, *end = ops + nr, *from;
	union tw_head head;

	lockdep_assert_held(&tw->lock);
	if (unlikely(tw->wheel.set_back))
		return tw_do_set_back(tw, batch, ops, nr);
	do {
		head.word = tw_head(op);
		from = op;
		if (tw_check_head(head.size, head.opcode, head.flags))
			break;
		switch (head.opcode) {
		case TWHEEL_OP_ARM:
			op = tw_arm_run(tw, batch, op, end, head);
			break;
		case TWHEEL_OP_MODIFY:
			op = tw_modify_run(tw, batch, op, end, head);
			break;
		case TWHEEL_OP_CANCEL:
			op = tw_cancel_run(tw, op, end, head);
			break;
		}
	} while (op != from && op != end);
	return op - ops;
}
