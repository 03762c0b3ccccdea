/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Copying events to a program while the lock of the wheel is held.
 */
#ifndef TW_COPY_H
#define TW_COPY_H

#include <linux/uaccess.h>
#include <linux/uio.h>

/* Copy whole units only. Returns the bytes. */
static inline size_t tw_copy_units(const void *from, size_t bytes, size_t unit,
				   struct iov_iter *to)
{
	size_t copied = copy_to_iter(from, bytes, to);

	iov_iter_revert(to, copied % unit);
	return copied - copied % unit;
}

/**
 * tw_copy_nofault() - copy to a program's memory where that does not fault
 * @from: what
 * @bytes: how much
 * @unit: bytes of which all or nothing is copied
 * @to: where to
 *
 * Where a page ends, arm64 may have stored 8 bytes more than it says. So that a
 * reader whose room ends there comes on, the unit after the last is tried by
 * itself: if there is room for it, that does not fault.
 *
 * Context: any process.
 * Return: bytes copied.
 */
static inline size_t tw_copy_nofault(const void *from, size_t bytes, size_t unit,
				     struct iov_iter *to)
{
	size_t copied;

	pagefault_disable();
	copied = tw_copy_units(from, bytes, unit, to);
	if (unlikely(copied < bytes))
		copied += tw_copy_units(from + copied, unit, unit, to);
	pagefault_enable();
	return copied;
}

int tw_fault_in(struct iov_iter *to, size_t unit, bool *again);

#endif /* TW_COPY_H */
