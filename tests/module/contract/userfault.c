// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is protected by userfaultfd(2): at each fault, another thread decides whether
 * it can be written to. So the kernel finds that it can, tries again, and then it can't.
 */
#include "device.h"

#include <linux/userfaultfd.h>

#define UNTOLD 0x5a5a

/* Two pages, and between them an operation: what each has begins in the first. */
static char *pages;
static struct twheel_op *op;
static int uffd;
static bool watched;

/* What the thread is to do at the third fault, and how many there were */
static bool withdrawn;
static unsigned int faults;

static void protect(unsigned int page, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = { (unsigned long)pages + page * PAGE, PAGE },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	if (ioctl(uffd, UFFDIO_WRITEPROTECT, &wp))
		tap_bail("UFFDIO_WRITEPROTECT: %s", strerror(errno));
}

/*
 * The result lies in the first page, and what a QUERY gives in the second, where the kernel
 * tries to write first. While it tries the first page, the second one is protected again. So
 * it has to begin anew, and finds, if that is asked for, that the first page is read-only.
 */
static void answer_fault(unsigned int page)
{
	switch (__atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED)) {
	case 2:
		protect(1, true);
		break;
	case 3:
		if (withdrawn && mprotect(pages, PAGE, PROT_READ))
			tap_bail("mprotect: %s", strerror(errno));
	}
	protect(page, false);
}

static void *answer_faults(void *unused)
{
	struct uffd_msg msg;

	while (read(uffd, &msg, sizeof(msg)) == sizeof(msg))
		answer_fault((msg.arg.pagefault.address - (unsigned long)pages) / PAGE);
	return unused;
}

/* False if this processor's kernel can't protect memory so */
static bool watch(void)
{
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register area = {
		.range = { (unsigned long)pages, 2 * PAGE }, .mode = UFFDIO_REGISTER_MODE_WP,
	};
	pthread_t thread;

	/* A kernel without that feature may refuse to be asked for it. */
	if (ioctl(uffd, UFFDIO_API, &api)) {
		if (errno != EINVAL)
			tap_bail("UFFDIO_API: %s", strerror(errno));
		return false;
	}
	if (!(api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP))
		return false;
	if (ioctl(uffd, UFFDIO_REGISTER, &area))
		tap_bail("UFFDIO_REGISTER: %s", strerror(errno));
	thread_start(&thread, answer_faults, NULL);
	pthread_detach(thread);
	return true;
}

static bool is_there(void)
{
	if (!watched)
		tap_skip("no userfaultfd that protects here");
	return watched;
}

/* A QUERY that is answered once the kernel has tried twice, or is not */
static long query_watched(bool not_at_last)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, 0);
	long ret;

	withdrawn = not_at_last;
	faults = 0;
	*op = op_for(TWHEEL_OP_QUERY, arm(fd, 0, HOUR, 7));
	op->state = UNTOLD;
	op->result = UNTOLD;
	protect(0, true);
	protect(1, true);
	ret = submit(fd, op, 1);
	close(fd);
	return ret;
}

static void test_withdrawn(void)
{
	if (!is_there())
		return;
	EXPECT_EQ(query_watched(true), -EFAULT);
	EXPECT_EQ(faults, 3);
	EXPECT_EQ(op->state, UNTOLD);
	EXPECT_EQ(op->result, UNTOLD);
	if (mprotect(pages, PAGE, PROT_READ | PROT_WRITE))
		tap_bail("mprotect: %s", strerror(errno));
}

static void test_done_later(void)
{
	if (!is_there())
		return;
	EXPECT_EQ(query_watched(false), 1);
	EXPECT_TRUE(faults >= 3, "%u", faults);
	EXPECT_EQ(op->state, TWHEEL_STATE_PENDING);
	EXPECT_EQ(op->result, 0);
	EXPECT_EQ(op->user_data, 7);
}

int main(void)
{
	tap_start(60);
	pages = map_pages(2, PROT_READ | PROT_WRITE);
	memset(pages, 0, 2 * PAGE);
	op = (struct twheel_op *)(pages + PAGE - offsetof(struct twheel_op, deadline));
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd >= 0)
		watched = watch();
	else if (!access("/proc/sys/vm/unprivileged_userfaultfd", F_OK))
		tap_bail("userfaultfd: %s", strerror(errno));
	RUN(test_withdrawn, "memory that can be written to at first: nothing is told");
	RUN(test_done_later, "memory that can be written to in the end: all is told");
	return tap_end();
}
