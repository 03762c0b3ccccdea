// SPDX-License-Identifier: GPL-2.0
/*
 * Copying events to a program: what to do when a copy was short. See copy.h.
 */
#include <linux/errno.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "copy.h"

/**
 * tw_fault_in() - after a copy without faults that was short: can more be copied now?
 * @to: where to
 * @unit: bytes of which all or nothing is copied
 * @again: was that asked before? False at first
 *
 * A write is the only proof: a page that is there, and may be written to, does not
 * take it if its tags are others than the pointer's (arm64), or if it is a shadow stack
 * (x86). So zeros are written to where the next unit is to go, which is over what
 * read(2) will say that it gave, or beyond it.
 *
 * Another thread may unmap the memory again each time. A signal ends that, but not at the
 * first attempt, so that a page that is merely not there does not lead to EINTR.
 *
 * Context: may sleep.
 * Return: 0, -EFAULT or -ERESTARTSYS.
 */
int tw_fault_in(struct iov_iter *to, size_t unit, bool *again)
{
	size_t written;

	if (*again && signal_pending(current))
		return -ERESTARTSYS;
	*again = true;
	written = iov_iter_zero(unit, to);
	iov_iter_revert(to, written);
	return written == unit ? 0 : -EFAULT;
}
