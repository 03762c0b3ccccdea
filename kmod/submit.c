// SPDX-License-Identifier: GPL-2.0
/*
 * Operations between a program's memory and the wheel.
 *
 * An operation is done only when its result can be told. The pages of an array
 * are held while its operations are done, so results are simply written to
 * them; and what is most common is done right there, as copying would cost a
 * quarter of it.
 */
#include <linux/highmem.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "context.h"
#include "submit.h"
#include "validate.h"

/* Pages that are held at a time; two for an operation as long as a page. */
#define TW_WINDOW_PAGES 5

/**
 * struct tw_window - a part of a program's array, held in memory
 * @pages: its pages
 * @mapped: where the kernel sees them
 * @nr_pages: how many
 * @offset: of the first operation in the first page
 * @op_size: distance of the operations
 * @nr: operations that lie in it whole
 */
struct tw_window {
	struct page *pages[TW_WINDOW_PAGES];
	void *mapped[TW_WINDOW_PAGES];
	unsigned int nr_pages;
	unsigned int offset;
	u32 op_size;
	unsigned int nr;
};

/* Hold so much of the array from @uops on as goes into a window. */
static void tw_open_window(struct tw_window *win, unsigned long uops,
			   unsigned int nr, u32 op_size)
{
	unsigned int i, bytes;
	int held;

	win->offset = offset_in_page(uops);
	win->op_size = op_size;
	nr = min_t(unsigned int, nr,
		   (TW_WINDOW_PAGES * PAGE_SIZE - win->offset) / op_size);
	win->nr = min_t(unsigned int, nr, TW_BATCH);
	bytes = win->offset + win->nr * op_size;
	held = pin_user_pages_fast(uops - win->offset,
				   DIV_ROUND_UP(bytes, PAGE_SIZE), FOLL_WRITE,
				   win->pages);
	win->nr_pages = max(held, 0);
	bytes = win->nr_pages * PAGE_SIZE;
	bytes -= min(bytes, win->offset);
	win->nr = min(win->nr, bytes / op_size);
	for (i = 0; i < win->nr_pages; i++)
		win->mapped[i] = kmap_local_page(win->pages[i]);
}

static void tw_close_window(struct tw_window *win)
{
	unsigned int i = win->nr_pages;

	while (i--) {
		kunmap_local(win->mapped[i]);
		flush_dcache_page(win->pages[i]);
	}
	unpin_user_pages_dirty_lock(win->pages, win->nr_pages, true);
}

/* The bytes from @at on that lie in one page, @len of them at most. */
static void *tw_window_piece(const struct tw_window *win, unsigned int at,
			     size_t *len)
{
	*len = min_t(size_t, *len, PAGE_SIZE - offset_in_page(at));
	return win->mapped[at >> PAGE_SHIFT] + offset_in_page(at);
}

static void tw_window_read(const struct tw_window *win, unsigned int at,
			   void *to, size_t len)
{
	while (len) {
		size_t piece = len;
		void *from = tw_window_piece(win, at, &piece);

		memcpy(to, from, piece);
		to += piece;
		at += piece;
		len -= piece;
	}
}

static void tw_window_write(const struct tw_window *win, unsigned int at,
			    const void *from, size_t len)
{
	while (len) {
		size_t piece = len;
		void *to = tw_window_piece(win, at, &piece);

		memcpy(to, from, piece);
		from += piece;
		at += piece;
		len -= piece;
	}
}

static bool tw_window_zero(const struct tw_window *win, unsigned int at,
			   size_t len)
{
	while (len) {
		size_t piece = len;
		void *from = tw_window_piece(win, at, &piece);

		if (memchr_inv(from, 0, piece))
			return false;
		at += piece;
		len -= piece;
	}
	return true;
}

/*
 * What an operation hands out is @result, @state, and, of ARM, @id; of QUERY, also what
 * comes after @id. Nothing else is written: what the program stores to it meanwhile
 * stays.
 */
static void tw_window_put(const struct tw_window *win, unsigned int at,
			  const struct twheel_op *op)
{
	const size_t outcome = offsetof(struct twheel_op, result);
	const size_t rest = offsetof(struct twheel_op, deadline);
	size_t end = offsetofend(struct twheel_op, state);

	if (op->opcode == TWHEEL_OP_ARM)
		end = offsetofend(struct twheel_op, id);
	tw_window_write(win, at + outcome, &op->result, end - outcome);
	if (op->opcode == TWHEEL_OP_QUERY && !op->result)
		tw_window_write(win, at + rest, &op->deadline,
				sizeof(*op) - rest);
}

/* Do an operation by way of a copy. Returns false if it has to wait for room. */
static bool tw_do_copied(struct twheel *tw, struct tw_batch *batch,
			 const struct tw_window *win, unsigned int nr)
{
	unsigned int at = win->offset + nr * win->op_size;
	struct twheel_op op;

	tw_window_read(win, at, &op, sizeof(op));
	/* From here on, the size says whether all of it is as it should be. */
	if (op.size != win->op_size)
		op.size = 0;
	else if (!tw_window_zero(win, at + sizeof(op), win->op_size - sizeof(op)))
		op.size = TW_SIZE_TOO_BIG;
	else
		op.size = sizeof(op);
	if (!tw_do_op(tw, batch, &op))
		return false;
	tw_window_put(win, at, &op);
	return true;
}

/* Operations from the number @nr on that lie in one page, for whole words */
static unsigned int tw_in_page(const struct tw_window *win, unsigned int nr)
{
	unsigned int at = win->offset + nr * win->op_size;

	if (win->op_size != sizeof(struct twheel_op) ||
	    !IS_ALIGNED(at, sizeof(u64)))
		return 0;
	return min_t(unsigned int, win->nr - nr,
		     (PAGE_SIZE - offset_in_page(at)) / sizeof(struct twheel_op));
}

/* Do operations until one has to wait for room. Returns the next to be done. */
static unsigned int tw_do_window(struct twheel *tw, struct tw_batch *batch,
				 const struct tw_window *win, unsigned int nr)
{
	while (nr < win->nr) {
		unsigned int n = tw_in_page(win, nr);
		size_t len = n * sizeof(struct twheel_op);
		unsigned int at = win->offset + nr * win->op_size;

		if (n)
			n = tw_do_plain(tw, batch,
					tw_window_piece(win, at, &len), n);
		if (!n) {
			if (!tw_do_copied(tw, batch, win, nr))
				break;
			n = 1;
		}
		nr += n;
	}
	return nr;
}

/* Returns how many operations were done: none if the first can't be written. */
static unsigned int tw_submit_window(struct twheel *tw, unsigned long uops,
				     unsigned int nr, u32 op_size)
{
	struct tw_window win;
	struct tw_batch batch;
	unsigned int done = 0;
	u16 opcode = 0;

	tw_open_window(&win, uops, nr, op_size);
	/* Where the first arms a timer, others may, too. */
	if (win.nr)
		tw_window_read(&win, win.offset + offsetof(struct twheel_op, opcode),
			       &opcode, sizeof(opcode));
	nr = opcode == TWHEEL_OP_ARM ? win.nr : 0;
	while (done < win.nr) {
		tw_begin(tw, &batch, nr);
		tw_batch_time(tw, &batch);
		done = tw_do_window(tw, &batch, &win, done);
		tw_end(tw, &batch);
		nr = win.nr - done;
	}
	tw_close_window(&win);
	return win.nr;
}

/**
 * tw_submit() - do an array of operations of a program
 * @tw: the wheel
 * @submit: the array
 *
 * Context: may sleep.
 * Return: how many were done, -EFAULT or -ERESTARTSYS.
 */
long tw_submit(struct twheel *tw, const struct twheel_submit *submit)
{
	unsigned long uops = (unsigned long)u64_to_user_ptr(submit->ops);
	unsigned int n;
	long done = 0;

	for (; done < submit->nr; done += n) {
		if (signal_pending(current))
			return done ?: -ERESTARTSYS;
		n = tw_submit_window(tw, uops + done * submit->op_size,
				     submit->nr - done, submit->op_size);
		if (!n)
			return done ?: -EFAULT;
		cond_resched();
	}
	return done;
}

static void tw_do_one(struct twheel *tw, struct twheel_op *op)
{
	unsigned int nr = op->opcode == TWHEEL_OP_ARM;
	struct tw_batch batch;
	bool done;

	do {
		tw_begin(tw, &batch, nr);
		if (op->opcode != TWHEEL_OP_CANCEL)
			tw_batch_time(tw, &batch);
		done = tw_do_plain(tw, &batch, op, 1) ||
		       tw_do_op(tw, &batch, op);
		tw_end(tw, &batch);
		nr = 1;
	} while (!done);
}

/* What an operation hands out, see tw_window_put(). */
static int tw_put_op(const struct twheel_op *op, struct twheel_op __user *uop)
{
	const size_t rest = sizeof(*op) - offsetof(struct twheel_op, deadline);

	if (unlikely(op->opcode == TWHEEL_OP_QUERY) &&
	    copy_to_user(&uop->deadline, &op->deadline, rest))
		return -EFAULT;
	if (!user_write_access_begin(uop, sizeof(*uop)))
		return -EFAULT;
	unsafe_put_user(op->result, &uop->result, fault);
	unsafe_put_user(op->state, &uop->state, fault);
	if (op->opcode == TWHEEL_OP_ARM)
		unsafe_put_user(op->id, &uop->id, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

/*
 * Read an operation, and see that what it hands out can be written, by writing
 * what is there. (But for the most of QUERY, which changes nothing: so it can fail
 * later.)
 */
static int tw_get_op(struct twheel_op *op, struct twheel_op __user *uop,
		     u32 usize, u16 opcode)
{
	if (unlikely(usize != sizeof(*op))) {
		/* What it has more than this kernel knows is 0, or not. */
		int ret = copy_struct_from_user(op, sizeof(*op), uop, usize);

		if (ret)
			return ret;
	}
	if (!user_access_begin(uop, sizeof(*uop)))
		return -EFAULT;
	unsafe_get_user(op->opcode, &uop->opcode, fault);
	unsafe_get_user(op->flags, &uop->flags, fault);
	unsafe_get_user(op->result, &uop->result, fault);
	unsafe_get_user(op->state, &uop->state, fault);
	unsafe_get_user(op->id, &uop->id, fault);
	unsafe_get_user(op->deadline, &uop->deadline, fault);
	unsafe_get_user(op->interval, &uop->interval, fault);
	unsafe_get_user(op->slack, &uop->slack, fault);
	unsafe_get_user(op->jitter, &uop->jitter, fault);
	unsafe_get_user(op->user_data, &uop->user_data, fault);
	unsafe_put_user(op->result, &uop->result, fault);
	unsafe_put_user(op->state, &uop->state, fault);
	if (opcode == TWHEEL_OP_ARM)
		unsafe_put_user(op->id, &uop->id, fault);
	user_access_end();
	return 0;
fault:
	user_access_end();
	return -EFAULT;
}

/*
 * An operation was done, but the program took its memory away. An error says that
 * nothing was done, so a timer that nobody knows of is not left; of one that was
 * changed, only the state before can't be told.
 */
static noinline int tw_not_told(struct twheel *tw, const struct twheel_op *op)
{
	struct twheel_op undo = {
		.size = sizeof(undo),
		.opcode = TWHEEL_OP_CANCEL,
		.id = op->id,
	};

	switch (op->opcode) {
	case TWHEEL_OP_ARM:
		tw_do_one(tw, &undo);
		return -EFAULT;
	case TWHEEL_OP_QUERY:
		return -EFAULT;
	}
	return 0;
}

/**
 * tw_submit_one() - do one operation of a program
 * @tw: the wheel
 * @uarg: where the program has it
 * @usize: its size
 * @opcode: what it is
 *
 * Context: may sleep.
 * Return: 0 or the operation's error.
 */
int tw_submit_one(struct twheel *tw, void __user *uarg, u32 usize, u16 opcode)
{
	struct twheel_op op;
	int ret = tw_get_op(&op, uarg, usize, opcode);

	if (ret)
		return ret;
	if (op.opcode)
		return -EINVAL;
	op.size = sizeof(op);
	op.opcode = opcode;
	tw_do_one(tw, &op);
	if (op.result)
		return op.result;
	ret = tw_put_op(&op, uarg);
	return unlikely(ret) ? tw_not_told(tw, &op) : 0;
}
