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

/* Returns false unless the operation is plain, and its deadline to come. */
static __always_inline bool
tw_read_plain(const struct twheel *tw, const struct tw_batch *batch,
	      const struct twheel_op *op, u16 flags, s64 *deadline)
{
	s64 when = READ_ONCE(op->deadline);

	if (unlikely(when < 0 || READ_ONCE(op->interval) | READ_ONCE(op->slack) |
				 READ_ONCE(op->jitter)))
		return false;
	if (flags & TWHEEL_ABS)
		*deadline = tw_clock_to_host(&tw->wheel.clock, when);
	else
		*deadline = tw_time_add(batch->now, when);
	return likely(*deadline > batch->now);
}

static __always_inline bool
tw_arm_plain(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op,
	     u16 flags)
{
	struct tw_node *node;
	s64 deadline;
	u64 id;

	if (unlikely(!batch->room) ||
	    !tw_read_plain(tw, batch, op, flags, &deadline))
		return false;
	batch->room--;
	node = tw_table_alloc(&tw->table, &id);
	node->deadline = deadline;
	node->user_data = READ_ONCE(op->user_data);
	tw_wheel_add_plain(&tw->wheel, node);
	tw->stats.armed++;
	WRITE_ONCE(op->id, id);
	tw_put_state(op, TWHEEL_STATE_NONE);
	trace_twheel_arm(tw, node);
	return true;
}

static __always_inline bool
tw_modify_plain(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op,
		u16 flags)
{
	struct tw_node *node;
	s64 deadline;

	if (!tw_read_plain(tw, batch, op, flags, &deadline) ||
	    !tw_table_find(&tw->table, READ_ONCE(op->id), &node) ||
	    !tw_wheel_mod_plain(&tw->wheel, node, deadline))
		return false;
	node->user_data = READ_ONCE(op->user_data);
	tw->stats.modified++;
	tw_put_state(op, TWHEEL_STATE_PENDING);
	trace_twheel_modify(tw, node);
	return true;
}

static __always_inline bool
tw_cancel_plain(struct twheel *tw, struct twheel_op *op)
{
	u64 id = READ_ONCE(op->id);
	struct tw_node *node;

	if (READ_ONCE(op->deadline) | READ_ONCE(op->interval) |
	    READ_ONCE(op->slack) | READ_ONCE(op->jitter) |
	    READ_ONCE(op->user_data))
		return false;
	if (!tw_table_find(&tw->table, id, &node) ||
	    !tw_wheel_del_plain(&tw->wheel, node))
		return false;
	tw_table_free(&tw->table, node);
	tw->stats.cancelled++;
	tw_put_state(op, TWHEEL_STATE_PENDING);
	trace_twheel_cancel(tw, id, TWHEEL_STATE_PENDING);
	return true;
}

/* Do operations as long as they are of one kind. */
static __always_inline struct twheel_op *
tw_do_run(struct twheel *tw, struct tw_batch *batch, struct twheel_op *op,
	  const struct twheel_op *end, union tw_head head, u16 opcode)
{
	bool done;

	do {
		switch (opcode) {
		case TWHEEL_OP_ARM:
			done = tw_arm_plain(tw, batch, op, head.flags);
			break;
		case TWHEEL_OP_MODIFY:
			done = tw_modify_plain(tw, batch, op, head.flags);
			break;
		default:
			done = tw_cancel_plain(tw, op);
			break;
		}
		op += done;
	} while (likely(done) && op < end && tw_head(op) == head.word);
	return op;
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
	if (tw->wheel.set_back)
		return 0;
	do {
		head.word = tw_head(op);
		from = op;
		if (tw_check_head(head.size, head.opcode, head.flags))
			break;
		switch (head.opcode) {
		case TWHEEL_OP_ARM:
			op = tw_do_run(tw, batch, op, end, head, TWHEEL_OP_ARM);
			break;
		case TWHEEL_OP_MODIFY:
			op = tw_do_run(tw, batch, op, end, head, TWHEEL_OP_MODIFY);
			break;
		case TWHEEL_OP_CANCEL:
			op = tw_do_run(tw, batch, op, end, head, TWHEEL_OP_CANCEL);
			break;
		}
	} while (op != from && op != end);
	return op - ops;
}
