// SPDX-License-Identifier: LGPL-2.1-or-later
/* Batches: operations are kept until there are enough for a system call. */

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
	bool flushing;
	struct twheel_op ops[];
};

int twheel_batch_new(struct twheel *tw, unsigned int capacity,
		     void (*done)(const struct twheel_op *op, void *arg),
		     void *arg, struct twheel_batch **batchp)
{
	struct twheel_batch *batch;
	size_t size;

	if (!capacity || !done)
		return -EINVAL;
	if (__builtin_mul_overflow(capacity, sizeof(batch->ops[0]), &size) ||
	    __builtin_add_overflow(size, sizeof(*batch), &size))
		return -ENOMEM;
	batch = malloc(size);
	if (!batch)
		return -ENOMEM;
	*batch = (struct twheel_batch){
		.tw = tw,
		.done = done,
		.arg = arg,
		.capacity = capacity,
	};
	*batchp = batch;
	return 0;
}

int twheel_batch_flush(struct twheel_batch *batch)
{
	if (batch->flushing)
		return -EBUSY;
	while (batch->nr) {
		int i, nr = twheel_submit(batch->tw, batch->ops, batch->nr);

		if (nr < 0)
			return nr;
		batch->flushing = true;
		for (i = 0; i < nr; i++)
			batch->done(&batch->ops[i], batch->arg);
		batch->flushing = false;
		batch->nr -= nr;
		memmove(batch->ops, batch->ops + nr,
			batch->nr * sizeof(batch->ops[0]));
	}
	return 0;
}

int twheel_batch_add(struct twheel_batch *batch, const struct twheel_op *op)
{
	int ret;

	if (op->size != sizeof(*op))
		return -EINVAL;
	if (batch->flushing)
		return -EBUSY;
	if (batch->nr == batch->capacity) {
		ret = twheel_batch_flush(batch);
		if (ret)
			return ret;
	}
	batch->ops[batch->nr++] = *op;
	return 0;
}

void twheel_batch_free(struct twheel_batch *batch)
{
	free(batch);
}
