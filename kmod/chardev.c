// SPDX-License-Identifier: GPL-2.0
/*
 * The device /dev/twheel: open, ioctl, read, poll, mmap, io_uring and fdinfo. Arguments
 * are copied and checked here, and the work is done elsewhere.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/fs.h>
#include <linux/indirect_call_wrapper.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/uio.h>
#include <uapi/linux/twheel.h>

#include "account.h"
#include "compat.h"
#include "context.h"
#include "shared.h"
#include "validate.h"

/* The most runs that a reader does at a time: by io_uring it may hold a lock of the ring. */
#define TW_TURN_RUNS 64

/* Other threads can make a wheel due for ever: how often a read that does not wait looks. */
#define TW_TURN_TIMES 64

/*
 * The most operations, or events, while a ring of io_uring is locked: who waits for that lock
 * can't be killed.
 */
#define TW_URING_INLINE 65536

/* What it takes to have a worker of the kernel look, in nobody's time, about */
#define TW_WORKER_NS (2 * NSEC_PER_USEC)

static int tw_open(struct inode *inode, struct file *file)
{
	struct twheel *tw = tw_create();

	if (IS_ERR(tw))
		return PTR_ERR(tw);
	file->private_data = tw;
	/* Nothing here waits unless it is to wait for a timer. */
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int tw_release(struct inode *inode, struct file *file)
{
	tw_destroy(file->private_data);
	return 0;
}

static ssize_t tw_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	struct twheel *tw = file->private_data;
	bool nowait = file->f_flags & O_NONBLOCK ||
		      iocb->ki_flags & IOCB_NOWAIT;
	u32 most = iocb->ki_flags & IOCB_NOWAIT ? TW_URING_INLINE : U32_MAX;
	unsigned int times = 0;
	ssize_t ret;

	for (;;) {
		/*
		 * Without the lock: a SETUP at the same time comes before or after, and each
		 * way of reading can stand the other one beside it.
		 */
		u32 unit = READ_ONCE(tw->unit);
		bool due;

		/* The wheel may be set up while this waits, with another size of events. */
		if (iov_iter_count(to) < unit)
			return -EINVAL;
		due = unlikely(tw_is_due(tw)) && tw_turn(tw, TW_TURN_RUNS);
		if (unit == sizeof(u64))
			ret = tw_read_count(tw, to, most);
		else
			ret = tw_read_events(tw, to, unit, most);
		if (ret != -EAGAIN || (nowait && (!due || iocb->ki_flags & IOCB_NOWAIT ||
						  ++times == TW_TURN_TIMES)))
			return ret;
		/*
		 * With shared timers, a program can move the head so that the ring looks
		 * as if it had entries: once for each entry that was ever in it.
		 */
		if (signal_pending(current) || tw_dying())
			return -ERESTARTSYS;
		cond_resched();
		if (due)
			continue;
		/* In that order: it is due until what is ready can be seen. */
		ret = wait_event_interruptible(tw->wait, tw_is_due(tw) || tw_readable(tw));
		if (ret)
			return ret;
	}
}

/*
 * A wheel that is due is looked at. That is one run, as a lock of all users may be held, that of
 * nested epolls. If something is left, who looks is to look again. But who was killed does nothing
 * more: the second hrtimer has others look, to whom it was not said, as an epoll that they share
 * says it once.
 */
static void tw_look(struct twheel *tw)
{
	if (!tw_turn(tw, 1)) {
		return;
	} else if (tw_dying()) {
		/* Either this sees that it has left the queue, or the second hrtimer sees this. */
		smp_store_mb(tw->untold, true);
		tw_queue(tw, false);
	} else {
		wake_up_poll(&tw->wait, 0);
	}
}

static __poll_t tw_poll(struct file *file, poll_table *wait)
{
	struct twheel *tw = file->private_data;

	poll_wait(file, &tw->wait, wait);
	/* Pairs with wq_has_sleeper() of tw_wake(). Older kernels have none in poll_wait(). */
	smp_mb();
	/*
	 * A worker of the kernel polls for aio, and would turn the wheel in nobody's time. There is
	 * one for each poll, whatever that waits for.
	 */
	if (unlikely(current->flags & PF_KTHREAD)) {
		atomic64_add(TW_WORKER_NS, &tw->owed);
		WRITE_ONCE(tw->untold, true);
		tw_set_unattended(tw);
	/* Also if something is ready: who watches edges gets an event for each expiry. */
	} else if (tw_is_due(tw) && poll_requested_events(wait) & TW_READABLE) {
		tw_look(tw);
	}
	return tw_readable(tw) ? TW_READABLE : 0;
}

/* Copy from the program, as copy_from_user() does, which takes longer for so little. */
static __always_inline int tw_get_words(u64 *to, const u64 __user *from, u32 size)
{
	unsigned int i;

	if (should_fail_usercopy() || !user_read_access_begin(from, size))
		return -EFAULT;
	/* Four words at most: a loop would cost more than they do. */
#pragma GCC unroll 4
	for (i = 0; i < size / sizeof(*to); i++)
		unsafe_get_user(to[i], &from[i], fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* Copy a structure from a program, as much of it as this kernel knows. */
static __always_inline int tw_get_arg(void *arg, u32 size, void __user *uarg,
				      u32 usize)
{
	int ret;

	if (likely(usize == size))
		ret = tw_get_words(arg, uarg, size);
	else
		ret = copy_struct_from_user(arg, size, uarg, usize);
	/* The program may have changed the size since it was read first. */
	*(u32 *)arg = usize;
	return ret;
}

/*
 * Hand out the start of a structure, as much of it as the program knows. It may ask
 * again with the same one, so its size stays. Nothing else of it is an argument, but what
 * this kernel does not know may be one.
 */
static int tw_put_arg(void __user *to, void *arg, u32 size, u32 usize)
{
	int ret = usize > size ? check_zeroed_user(to + size, usize - size) : 1;

	if (ret <= 0)
		return ret ?: -E2BIG;
	*(u32 *)arg = usize;
	return copy_to_user(to, arg, min(size, usize)) ? -EFAULT : 0;
}

static long tw_ioctl_info(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_info info;

	tw_get_info(tw, &info);
	return tw_put_arg(uarg, &info, sizeof(info), usize);
}

static long tw_ioctl_setup(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_setup setup;
	int ret = tw_get_arg(&setup, sizeof(setup), uarg, usize);

	return ret ?: tw_setup(tw, &setup);
}

static long tw_ioctl_submit(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_submit submit __uninitialized;
	int ret = tw_get_arg(&submit, sizeof(submit), uarg, usize);

	if (!ret)
		ret = tw_check_array(submit.flags, submit.nr, submit.op_size);
	return ret ?: tw_submit(tw, submit.ops, submit.nr, submit.op_size);
}

static long tw_ioctl_drain(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_drain drain;
	int ret = tw_get_arg(&drain, sizeof(drain), uarg, usize);

	if (!ret)
		ret = tw_check_array(drain.flags, drain.nr, drain.op_size);
	return ret ?: tw_drain(tw, &drain);
}

static long tw_ioctl_eventfd(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_eventfd eventfd __aligned(8); /* for tw_get_words() */
	int ret = tw_get_arg(&eventfd, sizeof(eventfd), uarg, usize);

	if (ret)
		return ret;
	if (eventfd.flags || eventfd.__reserved)
		return -EINVAL;
	return tw_set_eventfd(tw, eventfd.fd);
}

static long tw_ioctl_doorbell(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_doorbell doorbell __aligned(8);
	int ret = tw_get_arg(&doorbell, sizeof(doorbell), uarg, usize);

	if (ret)
		return ret;
	if (doorbell.flags || !tw_shared_of(tw))
		return -EINVAL;
	tw_catch_up(tw);
	return 0;
}

static long tw_ioctl_stats(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_stats stats;

	tw_get_stats(tw, &stats, NULL);
	return tw_put_arg(uarg, &stats, sizeof(stats), usize);
}

/*
 * Each ioctl, by its number: what it does, and the least size that a program may
 * know of its argument, which is that of its first version.
 */
static const struct {
	long (*fn)(struct twheel *tw, void __user *uarg, u32 usize);
	u32 min_size;
} tw_ioctls[] = {
#define TW_IOCTL(cmd, handler, type, last) \
	[_IOC_NR(cmd)] = { handler, offsetofend(struct type, last) }
	TW_IOCTL(TWHEEL_IOC_INFO, tw_ioctl_info, twheel_info, shared_size),
	TW_IOCTL(TWHEEL_IOC_SETUP, tw_ioctl_setup, twheel_setup, __reserved),
	TW_IOCTL(TWHEEL_IOC_SUBMIT, tw_ioctl_submit, twheel_submit, op_size),
	TW_IOCTL(TWHEEL_IOC_DRAIN, tw_ioctl_drain, twheel_drain, op_size),
	TW_IOCTL(TWHEEL_IOC_EVENTFD, tw_ioctl_eventfd, twheel_eventfd,
		 __reserved),
	TW_IOCTL(TWHEEL_IOC_STATS, tw_ioctl_stats, twheel_stats, lateness),
	TW_IOCTL(TWHEEL_IOC_DOORBELL, tw_ioctl_doorbell, twheel_doorbell, flags),
};

static long tw_ioctl(struct file *file, unsigned int cmd, unsigned long uaddr)
{
	void __user *uarg = (void __user *)uaddr;
	unsigned int nr = _IOC_NR(cmd);
	u32 usize;

	if (nr >= ARRAY_SIZE(tw_ioctls) || cmd != _IO(TWHEEL_IOC_TYPE, nr))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(tw_ioctls));
	if (get_user(usize, (u32 __user *)uarg))
		return -EFAULT;
	if (usize < tw_ioctls[nr].min_size)
		return -EINVAL;
	if (usize > PAGE_SIZE)
		return -E2BIG;
	/*
	 * A piece of what is due, so that who makes calls gets on with it. But to ask for
	 * statistics, as an administrator does, changes nothing.
	 */
	if (unlikely(tw_is_due(file->private_data)) && cmd != TWHEEL_IOC_STATS)
		tw_turn(file->private_data, 1);
	return INDIRECT_CALL_1(tw_ioctls[nr].fn, tw_ioctl_submit, file->private_data, uarg, usize);
}

/*
 * SUBMIT by way of io_uring. It has no restart of system calls, so a signal gives EINTR. It
 * calls with the ring locked. So a long array is refused with EAGAIN, and a worker of
 * io_uring does it.
 */
static int tw_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct twheel_uring_submit *submit = tw_uring_command(cmd);
	u32 nr = READ_ONCE(submit->nr), op_size = READ_ONCE(submit->op_size);
	long ret;

	BUILD_BUG_ON(sizeof(*submit) > 16);
	if (cmd->cmd_op != TWHEEL_IOC_SUBMIT)
		return -EOPNOTSUPP;
	ret = tw_check_array(0, nr, op_size);
	if (!ret && nr > TW_URING_INLINE && issue_flags & IO_URING_F_NONBLOCK)
		return -EAGAIN;
	if (unlikely(tw_is_due(cmd->file->private_data)))
		tw_turn(cmd->file->private_data, 1);
	if (!ret)
		ret = tw_submit(cmd->file->private_data, READ_ONCE(submit->ops), nr,
				op_size);
	return tw_uring_result(cmd, ret == -ERESTARTSYS ? -EINTR : ret, issue_flags);
}

static int tw_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct twheel *tw = file->private_data;
	struct tw_shared *shared = tw_shared_of(tw);

	return shared ? tw_shared_mmap(shared, vma) : -ENODEV;
}

/*
 * What is new comes at the end, as programs take the first lines to be together. The
 * number of the wheel tells descriptors of one wheel from those of several: all have the
 * inode of the device. The user is the one whose limits count, as the reader calls him.
 */
static void tw_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct twheel *tw = file->private_data;
	kuid_t uid = KUIDT_INIT(tw->user->payer.uid);
	struct twheel_stats stats;
	struct twheel_info info;

	tw_get_info(tw, &info);
	tw_get_stats(tw, &stats, NULL);
	seq_printf(m, "clock:\t%s\n", tw_clock_name(info.clock));
	seq_printf(m, "tick:\t%llu\n", info.tick);
	seq_printf(m, "pending:\t%llu\n", info.pending);
	seq_printf(m, "ready:\t%llu\n", info.ready);
	seq_printf(m, "limit:\t%llu\n", info.limit);
	seq_printf(m, "next_expiry:\t%llu\n", info.next_expiry);
	seq_printf(m, "shared:\t%u\n", info.shared);
	seq_printf(m, "wheel:\t%llu\n", tw->nr);
	seq_printf(m, "uid:\t%u\n", from_kuid_munged(seq_user_ns(m), uid));
	seq_printf(m, "armed:\t%llu\n", stats.armed);
	seq_printf(m, "expired:\t%llu\n", stats.expired);
	seq_printf(m, "overruns:\t%llu\n", stats.overruns);
	seq_printf(m, "refused:\t%llu\n", stats.refused);
	seq_printf(m, "max_lateness:\t%llu\n", stats.max_lateness);
}

static const struct file_operations tw_fops = {
	.owner = THIS_MODULE,
	.open = tw_open,
	.release = tw_release,
	.read_iter = tw_read_iter,
	.poll = tw_poll,
	.unlocked_ioctl = tw_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = tw_uring_cmd,
	.mmap = tw_mmap,
	.show_fdinfo = tw_show_fdinfo,
};

/*
 * Not a miscdevice. All of these are opened under one mutex, and who has it may be throttled by
 * his control group: meanwhile nobody could open any other, such as /dev/fuse and /dev/kvm.
 */
static struct class tw_class = { .name = "twheel" };
static struct cdev tw_cdev;
static dev_t tw_number;

/**
 * tw_device_add() - make /dev/twheel, for root alone unless udev says else
 *
 * It can be opened from the last step on, so that nothing fails after that: a module whose start
 * failed goes, whoever has it open. Who finds the device earlier waits while the kernel looks for
 * a module by its number, and then opens it.
 *
 * Context: may sleep.
 * Return: 0 or a negative error.
 */
int tw_device_add(void)
{
	int ret;

	ret = alloc_chrdev_region(&tw_number, 0, 1, "twheel");
	if (ret)
		return ret;
	ret = class_register(&tw_class);
	if (ret)
		goto err_region;
	ret = PTR_ERR_OR_ZERO(device_create(&tw_class, NULL, tw_number, NULL, "twheel"));
	if (ret)
		goto err_class;
	cdev_init(&tw_cdev, &tw_fops);
	tw_cdev.owner = THIS_MODULE;
	ret = cdev_add(&tw_cdev, tw_number, 1);
	if (ret)
		goto err_device;
	return 0;

err_device:
	device_destroy(&tw_class, tw_number);
err_class:
	class_unregister(&tw_class);
err_region:
	unregister_chrdev_region(tw_number, 1);
	return ret;
}

/**
 * tw_device_del() - undo tw_device_add()
 *
 * Context: may sleep. Nobody has it open.
 */
void tw_device_del(void)
{
	cdev_del(&tw_cdev);
	device_destroy(&tw_class, tw_number);
	class_unregister(&tw_class);
	unregister_chrdev_region(tw_number, 1);
}
