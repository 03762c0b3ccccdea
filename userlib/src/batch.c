// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Batches: operations are kept until there are enough for a system call, all in
 * as few bytes as the longest of them needs.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct twheel_batch {
	struct twheel *tw;
	void (*done)(const struct twheel_op *op, void *arg);
	void *arg;
	unsigned int capacity;
	unsigned int nr;
	unsigned int op_size;
	bool flushing;
	char ops[] __attribute__((aligned(TWHEEL_OP_SIZE_FULL)));
};

int twheel_batch_new(struct twheel *tw, unsigned int capacity,
		     void (*done)(const struct twheel_op *op, void *arg),
		     void *arg, struct twheel_batch **batchp)
{
	struct twheel_batch *batch;
	size_t size;

	if (!capacity || !done)
		return -EINVAL;
	if (__builtin_mul_overflow(capacity, (size_t)TWHEEL_OP_SIZE_FULL, &size) ||
	    __builtin_add_overflow(size, sizeof(*batch), &size))
		return -ENOMEM;
	batch = aligned_alloc(__alignof__(struct twheel_batch), size);
	if (!batch)
		return -ENOMEM;
	*batch = (struct twheel_batch){
		.tw = tw,
		.done = done,
		.arg = arg,
		.capacity = capacity,
		.op_size = TWHEEL_OP_SIZE_ID,
	};
	*batchp = batch;
	return 0;
}

static char *op_at(struct twheel_batch *batch, unsigned int i)
{
	return batch->ops + (size_t)i * batch->op_size;
}

static struct twheel_op whole_op(struct twheel_batch *batch, unsigned int i)
{
	struct twheel_op op = { 0 };

	memcpy(&op, op_at(batch, i), batch->op_size);
	return op;
}

int twheel_batch_flush(struct twheel_batch *batch)
{
	if (batch->flushing)
		return -EBUSY;
	while (batch->nr) {
		int i, nr = submit_ops(batch->tw, batch->ops, batch->nr, batch->op_size);

		if (nr < 0)
			return nr;
		batch->flushing = true;
		for (i = 0; i < nr; i++) {
			struct twheel_op op = whole_op(batch, i);

			batch->done(&op, batch->arg);
		}
		batch->flushing = false;
		batch->nr -= nr;
		memmove(batch->ops, op_at(batch, nr),
			(size_t)batch->nr * batch->op_size);
	}
	batch->op_size = TWHEEL_OP_SIZE_ID;
	return 0;
}

/* The last is moved first, as there is room behind it only */
static void lengthen(struct twheel_batch *batch, unsigned int op_size)
{
	unsigned int i;

	for (i = batch->nr; i--; ) {
		struct twheel_op op = whole_op(batch, i);

		memcpy(batch->ops + (size_t)i * op_size, &op, op_size);
	}
	batch->op_size = op_size;
}

int twheel_batch_add(struct twheel_batch *batch, const struct twheel_op *op)
{
	unsigned int op_size = short_size(op);
	int ret;

	if (batch->flushing)
		return -EBUSY;
	if (batch->nr == batch->capacity) {
		ret = twheel_batch_flush(batch);
		if (ret)
			return ret;
	}
	if (op_size > batch->op_size)
		lengthen(batch, op_size);
	memcpy(op_at(batch, batch->nr++), op, batch->op_size);
	return 0;
}

void twheel_batch_free(struct twheel_batch *batch)
{
	free(batch);
}
