/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that this builds for. All other code is written for the
 * newest kernel; Kbuild searches the kernel's headers for each feature.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#ifdef TW_HAVE_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

#ifndef TW_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

static inline void tw_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef TW_HAVE_EVENTFD_SIGNAL_1
	eventfd_signal(ctx);
#else
	eventfd_signal(ctx, 1);
#endif
}

static inline void tw_vm_flags_change(struct vm_area_struct *vma,
				      unsigned long set, unsigned long clear)
{
#ifdef TW_HAVE_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* The command itself: it may be in memory that the program can write to. */
static inline const void *tw_uring_command(const struct io_uring_cmd *cmd)
{
#ifdef TW_HAVE_URING_COMMAND
	return cmd->cmd;
#else
	return cmd->sqe->cmd;
#endif
}

/* The result of a command */
static inline int tw_uring_result(struct io_uring_cmd *cmd, int ret,
				  unsigned int issue_flags)
{
#ifndef TW_HAVE_URING_DONE32
	/*
	 * Kernels before 6.11, and some stable ones to this day, never complete a command that
	 * returns more than 0 in a worker of io_uring: it would keep the wheel for ever. No
	 * header says which; io_uring_cmd_done32() came after all of these.
	 */
	if (ret > 0) {
		io_uring_cmd_done(cmd, ret, 0, issue_flags);
		return -EIOCBQUEUED;
	}
#endif
	return ret;
}

#endif /* TW_COMPAT_H */
