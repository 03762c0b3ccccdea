// SPDX-License-Identifier: GPL-2.0
/*
 * Operations between a program's memory and the wheel.
 *
 * An operation is done only when its result can be told: before a batch is done,
 * its array is written to, so that a bad address is found while nothing has
 * changed. Only a program that takes its array away meanwhile can lose results;
 * timers whose id it lost are cancelled again.
 */
#include <linux/limits.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "context.h"
#include "submit.h"
#include "validate.h"

/* Read operations. Returns how many could be read. */
static unsigned int tw_get_ops(struct twheel_op *ops, const void __user *from,
			       unsigned int nr, u32 op_size)
{
	unsigned int i;

	if (op_size == sizeof(*ops))
		return nr - DIV_ROUND_UP(copy_from_user(ops, from,
							nr * sizeof(*ops)),
					 sizeof(*ops));
	for (i = 0; i < nr; i++) {
		int zeroed;

		if (copy_from_user(&ops[i], from, sizeof(*ops)))
			break;
		zeroed = check_zeroed_user(from + sizeof(*ops),
					   op_size - sizeof(*ops));
		if (zeroed < 0)
			break;
		/* From here on, the size says whether it is as it should be. */
		if (!zeroed)
			ops[i].size = TW_SIZE_TOO_BIG;
		else if (ops[i].size == op_size)
			ops[i].size = sizeof(*ops);
		else
			ops[i].size = 0;
		from += op_size;
	}
	return i;
}

/* Write what operations hand out. Returns how many could be written. */
static unsigned int tw_put_ops(const struct twheel_op *ops, void __user *to,
			       unsigned int nr, u32 op_size)
{
	unsigned int i = 0;

	if (!user_write_access_begin(to, (size_t)nr * op_size))
		return 0;
	for (; i < nr; i++) {
		const struct twheel_op *from = &ops[i];
		struct twheel_op __user *op = to;

		unsafe_put_user(from->result, &op->result, fault);
		unsafe_put_user(from->state, &op->state, fault);
		unsafe_put_user(from->id, &op->id, fault);
		if (from->opcode == TWHEEL_OP_QUERY) {
			unsafe_put_user(from->deadline, &op->deadline, fault);
			unsafe_put_user(from->interval, &op->interval, fault);
			unsafe_put_user(from->slack, &op->slack, fault);
			unsafe_put_user(from->jitter, &op->jitter, fault);
			unsafe_put_user(from->user_data, &op->user_data, fault);
		}
		to += op_size;
	}
fault:
	user_write_access_end();
	return i;
}

/* Nobody knows the ids of these. */
static void tw_undo_arms(struct twheel *tw, struct twheel_op *ops,
			 unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		bool armed = ops[i].opcode == TWHEEL_OP_ARM && !ops[i].result;

		ops[i] = (struct twheel_op){
			.size = sizeof(ops[i]),
			.opcode = TWHEEL_OP_CANCEL,
			.id = armed ? ops[i].id : 0,
		};
	}
	tw_do_ops(tw, ops, nr);
}

/* Returns how many operations were done; fewer than @nr at a bad address. */
static unsigned int tw_submit_batch(struct twheel *tw, struct twheel_op *ops,
				    void __user *uops, unsigned int nr,
				    u32 op_size)
{
	unsigned int done;

	nr = tw_get_ops(ops, uops, nr, op_size);
	/* Prove that results can be written, by writing what is there. */
	nr = tw_put_ops(ops, uops, nr, op_size);
	if (!nr)
		return 0;
	tw_do_ops(tw, ops, nr);
	done = tw_put_ops(ops, uops, nr, op_size);
	if (unlikely(done < nr))
		tw_undo_arms(tw, ops + done, nr - done);
	return done;
}

/**
 * tw_submit() - do an array of operations of a program
 * @tw: the wheel
 * @submit: the array
 *
 * Context: may sleep.
 * Return: how many were done, -EFAULT, -ERESTARTSYS or -ENOMEM.
 */
long tw_submit(struct twheel *tw, const struct twheel_submit *submit)
{
	void __user *uops = u64_to_user_ptr(submit->ops);
	unsigned int done = 0;
	struct twheel_op *ops;
	long ret = 0;

	ops = kmalloc_array(min_t(u32, submit->nr, TW_BATCH), sizeof(*ops),
			    GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	while (done < submit->nr) {
		unsigned int nr = min_t(u32, submit->nr - done, TW_BATCH);
		unsigned int n;

		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			break;
		}
		n = tw_submit_batch(tw, ops, uops, nr, submit->op_size);
		done += n;
		if (n < nr) {
			ret = -EFAULT;
			break;
		}
		uops += (size_t)n * submit->op_size;
		cond_resched();
	}
	kfree(ops);
	return done ?: ret;
}

/**
 * tw_submit_one() - do one operation of a program
 * @tw: the wheel
 * @op: the operation
 * @uop: where the program has it
 *
 * Context: may sleep.
 * Return: 0 or the operation's error.
 */
int tw_submit_one(struct twheel *tw, struct twheel_op *op, void __user *uop)
{
	if (tw_put_ops(op, uop, 1, sizeof(*op)) != 1)
		return -EFAULT;
	tw_do_ops(tw, op, 1);
	if (op->result)
		return op->result;
	if (tw_put_ops(op, uop, 1, sizeof(*op)) != 1) {
		tw_undo_arms(tw, op, 1);
		return -EFAULT;
	}
	return 0;
}
