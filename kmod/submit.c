// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT: arrays of operations, from a program's memory to ops.c and back.
 *
 * Up to TW_COPIED operations are copied to the stack, and their results are written back
 * one by one. For more of them, the page that they lie in is pinned, and they are done
 * in place. Either way an operation is done only if its result can be written.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/highmem.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "context.h"
#include "ops.h"

/* Read operations in, as far as they can be read. Returns how many that are. */
static __always_inline unsigned int tw_copy_ops(u64 *copy, void __user *uops, unsigned int nr,
						u32 size)
{
	unsigned int i, words = nr * size / sizeof(*copy);
	u64 __user *from = uops;

	if (should_fail_usercopy())
		return 0;
	/* Some of the operations may be beyond all addresses. */
	if (!user_read_access_begin(from, nr * size)) {
		nr = 1;
		words = size / sizeof(*copy);
		if (!user_read_access_begin(from, size))
			return 0;
	}
	/*
	 * Two words at a time, as their number is even. copy_from_user() costs more for a length
	 * that is not constant.
	 */
	for (i = 0; i < words; i++) {
		unsafe_get_user(copy[i], &from[i], fault);
		i++;
		unsafe_get_user(copy[i], &from[i], fault);
	}
	user_read_access_end();
	return nr;
fault:
	user_read_access_end();
	return i * sizeof(*copy) / size;
}

/*
 * Can the result of an operation be written now? A write is the only proof,
 * see tw_fault_in(). Its result stays as the program gave it.
 */
static int tw_fault_in_op(const struct twheel_op *op, struct twheel_op __user *uop,
			  u32 size)
{
	if (signal_pending(current))
		return -ERESTARTSYS;
	if (op->opcode == TWHEEL_OP_ARM && put_user((u64)0, &uop->id))
		return -EFAULT;
	if (op->opcode == TWHEEL_OP_QUERY &&
	    clear_user(&uop->deadline, size - offsetof(struct twheel_op, deadline)))
		return -EFAULT;
	if (put_user(op->state, &uop->state) || put_user(op->result, &uop->result))
		return -EFAULT;
	return 0;
}

/*
 * At most as many as there is room for. Returns how many were done of those that can be
 * read, or -EFAULT or -ERESTARTSYS.
 */
static __always_inline int tw_submit_copied(struct twheel *tw, void __user *uops,
					    unsigned int nr, u32 size)
{
	u64 copy[TW_COPIED * sizeof(struct twheel_op) / sizeof(u64)] __uninitialized;
	struct tw_batch batch __uninitialized;
	unsigned int done = 0;
	int ret;

	nr = tw_copy_ops(copy, uops, nr, size);
	if (!nr)
		return -EFAULT;
	batch.uops = uops;
	batch.copy = copy;
	for (;;) {
		done += tw_do_ops(tw, &batch, (void *)copy + done * size, nr - done, size);
		if (done == nr)
			return done;
		ret = tw_fault_in_op((void *)copy + done * size, uops + done * size, size);
		if (ret)
			return done ?: ret;
		cond_resched();
	}
}

/* Operations from @uaddr on that lie in one page, for whole words, and in one batch */
static unsigned int tw_in_page(unsigned long uaddr, unsigned int nr, u32 size)
{
	if (!IS_ALIGNED(uaddr, sizeof(u64)))
		return 0;
	return min3(nr, (unsigned int)(PAGE_SIZE - offset_in_page(uaddr)) / size,
		    (unsigned int)TW_BATCH);
}

/* Returns how many were done, of those that lie in one page; none if they are few. */
static unsigned int tw_submit_held(struct twheel *tw, unsigned long uaddr,
				   unsigned int nr, u32 size)
{
	struct tw_batch batch __uninitialized;
	struct page *page;
	void *at;

	nr = tw_in_page(uaddr, nr, size);
	if (nr <= TW_COPIED)
		return 0;
	if (pin_user_pages_fast(uaddr & PAGE_MASK, 1, FOLL_WRITE, &page) != 1)
		return 0;
	at = kmap_local_page(page);
	batch.copy = NULL;
	/* All are done, as each result can be written: the page is held. */
	tw_do_ops(tw, &batch, at + offset_in_page(uaddr), nr, size);
	kunmap_local(at);
	flush_dcache_page(page);
	unpin_user_pages_dirty_lock(&page, 1, true);
	return nr;
}

/* An array of which @done were done */
static noinline long tw_submit_many(struct twheel *tw, void __user *uops, u32 nr, u32 size,
				    u32 done)
{
	while (done < nr) {
		void __user *at = uops + (size_t)done * size;
		int ret = 0;

		if (nr - done > TW_COPIED)
			ret = tw_submit_held(tw, (unsigned long)at, nr - done, size);
		if (!ret)
			ret = tw_submit_copied(tw, at, min_t(u32, nr - done, TW_COPIED), size);
		if (ret < 0)
			return done ?: ret;
		done += ret;
		if (done == nr || signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}

/* The short way, as most are few: up to TW_COPIED */
static noinline long tw_submit_few(struct twheel *tw, void __user *uops, u32 nr, u32 size)
{
	int ret = tw_submit_copied(tw, uops, nr, size);

	if (likely(ret < 0 || ret == nr))
		return ret;
	return tw_submit_many(tw, uops, nr, size, ret);
}

/**
 * tw_submit() - do an array of operations of a program
 * @tw: the wheel
 * @ops: address of the array
 * @nr: how many
 * @size: length of each, one of TWHEEL_OP_SIZE_*
 *
 * Context: may sleep.
 * Return: how many were done, -EFAULT or -ERESTARTSYS.
 */
long tw_submit(struct twheel *tw, u64 ops, u32 nr, u32 size)
{
	void __user *uops = u64_to_user_ptr(ops);

	if (nr && nr <= TW_COPIED)
		return tw_submit_few(tw, uops, nr, size);
	return tw_submit_many(tw, uops, nr, size, 0);
}
