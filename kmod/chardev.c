// SPDX-License-Identifier: GPL-2.0
/*
 * The device /dev/twheel: open, ioctl, read, poll, mmap, fdinfo.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <uapi/linux/twheel.h>

#include "chardev.h"
#include "context.h"
#include "submit.h"
#include "validate.h"

/* So many runs a reader does of what was deferred, before it sleeps as others do */
#define TW_ASSIST_RUNS 1024

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

/*
 * Does read(2) give a count? (Without the lock: a SETUP at the same time comes
 * before or after, and each way of reading can stand the other one beside it.)
 */
static bool tw_counts(const struct twheel *tw)
{
	return READ_ONCE(tw->flags) & TWHEEL_SETUP_COUNT;
}

static ssize_t tw_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	struct twheel *tw = file->private_data;
	bool nowait = file->f_flags & O_NONBLOCK ||
		      iocb->ki_flags & IOCB_NOWAIT;
	unsigned int runs = 0;
	ssize_t ret;

	if (iov_iter_count(to) < (tw_counts(tw) ? sizeof(u64) :
						  sizeof(struct twheel_event)))
		return -EINVAL;
	for (;;) {
		/* Others can make it that there is always more. */
		bool more = runs++ < TW_ASSIST_RUNS && tw_assist(tw);

		/* It may be set up while this waits: what is ready is a count then. */
		if (tw_counts(tw))
			ret = tw_take_count(tw, to);
		else
			ret = tw_take_events(tw, to);
		if (ret != -EAGAIN || nowait)
			return ret;
		/*
		 * With shared timers, a program can make it look as if there were some:
		 * once for each entry that the ring has had.
		 */
		if (signal_pending(current))
			return -ERESTARTSYS;
		cond_resched();
		if (more)
			continue;
		ret = wait_event_interruptible(tw->wait, tw_readable(tw));
		if (ret)
			return ret;
	}
}

static __poll_t tw_poll(struct file *file, poll_table *wait)
{
	struct twheel *tw = file->private_data;

	poll_wait(file, &tw->wait, wait);
	tw_assist(tw);
	return tw_readable(tw) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* Take a structure in, as much of it as this kernel knows. */
static __always_inline int tw_get_arg(void *arg, u32 size, void __user *uarg,
				      u32 usize)
{
	int ret;

	/* A constant length spares the kernel to check the bounds of @arg. */
	if (likely(usize == size))
		ret = copy_from_user(arg, uarg, size) ? -EFAULT : 0;
	else
		ret = copy_struct_from_user(arg, size, uarg, usize);
	/* It may have been changed since it was read first. */
	*(u32 *)arg = usize;
	return ret;
}

/*
 * Hand out the start of a structure, as much of it as the program knows. It may ask
 * again with the same one, so its size stays.
 */
static int tw_put_arg(void __user *to, void *arg, u32 size, u32 usize)
{
	*(u32 *)arg = usize;
	return copy_to_user(to, arg, min(size, usize)) ? -EFAULT : 0;
}

static long tw_ioctl_info(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_info info;
	int ret = tw_get_arg(&info, sizeof(info), uarg, usize);

	if (ret)
		return ret;
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
	struct twheel_submit submit;
	int ret = tw_get_arg(&submit, sizeof(submit), uarg, usize);

	if (!ret)
		ret = tw_check_array(submit.flags, submit.nr, submit.op_size);
	return ret ?: tw_submit(tw, &submit);
}

static long tw_ioctl_arm(struct twheel *tw, void __user *uarg, u32 usize)
{
	return tw_submit_one(tw, uarg, usize, TWHEEL_OP_ARM);
}

static long tw_ioctl_modify(struct twheel *tw, void __user *uarg, u32 usize)
{
	return tw_submit_one(tw, uarg, usize, TWHEEL_OP_MODIFY);
}

static long tw_ioctl_cancel(struct twheel *tw, void __user *uarg, u32 usize)
{
	return tw_submit_one(tw, uarg, usize, TWHEEL_OP_CANCEL);
}

static long tw_ioctl_query(struct twheel *tw, void __user *uarg, u32 usize)
{
	return tw_submit_one(tw, uarg, usize, TWHEEL_OP_QUERY);
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
	struct twheel_eventfd eventfd;
	int ret = tw_get_arg(&eventfd, sizeof(eventfd), uarg, usize);

	if (ret)
		return ret;
	if (eventfd.flags || eventfd.__reserved)
		return -EINVAL;
	return tw_set_eventfd(tw, eventfd.fd);
}

static long tw_ioctl_doorbell(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_doorbell doorbell;
	int ret = tw_get_arg(&doorbell, sizeof(doorbell), uarg, usize);

	if (!ret && doorbell.flags)
		ret = -EINVAL;
	return ret ?: tw_doorbell(tw);
}

static long tw_ioctl_stats(struct twheel *tw, void __user *uarg, u32 usize)
{
	struct twheel_stats stats;
	int ret = tw_get_arg(&stats, sizeof(stats), uarg, usize);

	if (ret)
		return ret;
	tw_get_stats(tw, &stats);
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
	TW_IOCTL(TWHEEL_IOC_INFO, tw_ioctl_info, twheel_info, next_expiry),
	TW_IOCTL(TWHEEL_IOC_SETUP, tw_ioctl_setup, twheel_setup, limit),
	TW_IOCTL(TWHEEL_IOC_SUBMIT, tw_ioctl_submit, twheel_submit, op_size),
	TW_IOCTL(TWHEEL_IOC_ARM, tw_ioctl_arm, twheel_op, user_data),
	TW_IOCTL(TWHEEL_IOC_MODIFY, tw_ioctl_modify, twheel_op, user_data),
	TW_IOCTL(TWHEEL_IOC_CANCEL, tw_ioctl_cancel, twheel_op, user_data),
	TW_IOCTL(TWHEEL_IOC_QUERY, tw_ioctl_query, twheel_op, user_data),
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
	return tw_ioctls[nr].fn(file->private_data, uarg, usize);
}

static int tw_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct twheel *tw = file->private_data;
	struct tw_shared *shared = tw_shared_of(tw);

	return shared ? tw_shared_mmap(shared, vma) : -ENODEV;
}

static void tw_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct twheel *tw = file->private_data;
	struct twheel_info info;

	tw_get_info(tw, &info);
	seq_printf(m, "clock:\t%s\n", tw_clock_name(info.clock));
	seq_printf(m, "tick:\t%llu\n", info.tick);
	seq_printf(m, "pending:\t%llu\n", info.pending);
	seq_printf(m, "ready:\t%llu\n", info.ready);
	seq_printf(m, "limit:\t%llu\n", info.limit);
	seq_printf(m, "next_expiry:\t%llu\n", info.next_expiry);
	seq_printf(m, "shared:\t%u\n", info.shared);
}

static const struct file_operations tw_fops = {
	.owner = THIS_MODULE,
	.open = tw_open,
	.release = tw_release,
	.read_iter = tw_read_iter,
	.poll = tw_poll,
	.unlocked_ioctl = tw_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = tw_mmap,
	.show_fdinfo = tw_show_fdinfo,
};

static struct miscdevice tw_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "twheel",
	.mode = 0600,
	.fops = &tw_fops,
};

int tw_chardev_init(void)
{
	return misc_register(&tw_device);
}

void tw_chardev_exit(void)
{
	misc_deregister(&tw_device);
}
