// SPDX-License-Identifier: GPL-2.0
/*
 * The area of shared timers as memory: all that a program can do to a mapping, each
 * with its defined answer, and the timers go on.
 *
 * also in: matrix sanitize small
 */
#include "shared.h"

#include <sys/uio.h>

#define N 4096			/* several pages of everything */

static struct client c;

static void fresh(void)
{
	if (c.fd > 0)
		client_close(&c);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, N);
}

/* The negative error, or 0 and then unmapped again */
static long try_map(int fd, size_t size, int prot, int flags, off_t offset)
{
	void *p = mmap(NULL, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	if (munmap(p, size))
		tap_bail("munmap: %s", strerror(errno));
	return 0;
}

static const int rw = PROT_READ | PROT_WRITE;

static void must(int ret, const char *what)
{
	if (ret)
		tap_bail("%s: %s", what, strerror(errno));
}

static void take_of(struct client *from, __u32 want)
{
	__u32 i;

	EXPECT_TRUE(readable(c.fd, PATIENCE_MS), "timer %u", want);
	if (EXPECT_TRUE(shared_take(from, &i), "timer %u", want))
		EXPECT_EQ(i, want);
}

static void take(__u32 want)
{
	take_of(&c, want);
}

static void read_one(__u32 want)
{
	struct twheel_event ev;

	if (EXPECT_EQ(collect(c.fd, &ev, 1), 1))
		EXPECT_EQ(ev.user_data, want);
}

/* The wheel works, whatever was done to its area */
static void check_works(void)
{
	shared_arm(&c, 1, now(c.clock) + 5 * MSEC);
	take(1);
	shared_arm(&c, N - 1, now(c.clock) + 5 * MSEC);
	read_one(N - 1);
}

static void test_arguments(void)
{
	size_t size;

	fresh();
	size = c.size;
	EXPECT_TRUE(size >= 4 * PAGE, "%zu", size);
	EXPECT_EQ(try_map(c.fd, size, rw, MAP_SHARED, 0), 0);
	EXPECT_EQ(try_map(c.fd, size, rw, MAP_SHARED | MAP_POPULATE, 0), 0);
	EXPECT_EQ(try_map(c.fd, size, rw, MAP_SHARED_VALIDATE, 0), 0);
	EXPECT_EQ(try_map(c.fd, size, PROT_NONE, MAP_SHARED, 0), 0);
	/* whole pages, as everywhere */
	EXPECT_EQ(try_map(c.fd, size - 1, rw, MAP_SHARED, 0), 0);
	EXPECT_EQ(try_map(c.fd, size + 1, rw, MAP_SHARED, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size - PAGE, rw, MAP_SHARED, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size + PAGE, rw, MAP_SHARED, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, PAGE, rw, MAP_SHARED, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, 2 * size, rw, MAP_SHARED, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size, rw, MAP_SHARED, PAGE), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size - PAGE, rw, MAP_SHARED, PAGE), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size, rw, MAP_SHARED, 1L << 40), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size, rw, MAP_PRIVATE, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size, PROT_READ, MAP_PRIVATE, 0), -EINVAL);
	EXPECT_EQ(try_map(c.fd, size, rw | PROT_EXEC, MAP_SHARED, 0), -EACCES);
	EXPECT_EQ(try_map(c.fd, size, PROT_EXEC, MAP_SHARED, 0), -EACCES);
	check_works();
}

/* Neither longer nor elsewhere, by any of the ways; shorter is as with munmap */
static void test_mremap(void)
{
	char *other = map_pages(c.size / PAGE + 2, PROT_NONE);
	const size_t size = c.size;
	void *p;

	fresh();
	p = mremap(c.area, size, size + PAGE, 0);
	EXPECT_TRUE(p == MAP_FAILED, "longer");
	p = mremap(c.area, size, size + PAGE, MREMAP_MAYMOVE);
	EXPECT_TRUE(p == MAP_FAILED, "longer, elsewhere");
	p = mremap(c.area, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, other);
	EXPECT_TRUE(p == MAP_FAILED, "elsewhere");
	p = mremap(c.area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
	EXPECT_TRUE(p == MAP_FAILED, "a part of it, elsewhere");
	p = mremap(c.area, 0, size, MREMAP_MAYMOVE);
	EXPECT_TRUE(p == MAP_FAILED, "once more");
	p = mremap(c.area, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	EXPECT_TRUE(p == MAP_FAILED, "elsewhere and here");
	check_works();
	p = mremap(c.area, size, size - PAGE, 0);
	EXPECT_TRUE(p == c.area, "shorter");
	shared_arm(&c, 1, now(c.clock) + 5 * MSEC);
	take(1);
	p = mremap(c.area, size - PAGE, size, 0);
	EXPECT_TRUE(p == MAP_FAILED, "as long as it was");
}

static bool touch_kills(char *p, bool writes)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		if (writes)
			__atomic_store_n(p, 1, __ATOMIC_RELAXED);
		else
			__atomic_load_n(p, __ATOMIC_RELAXED);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid failed");
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

/* What is not mapped any more expires like the rest */
static void test_partial_munmap(void)
{
	char *end, *area;

	fresh();
	area = (char *)c.area;
	end = area + c.size;
	shared_arm(&c, N - 1, now(c.clock) + 20 * MSEC);
	must(munmap(end - PAGE, PAGE), "munmap");
	EXPECT_TRUE(touch_kills(end - PAGE, false));
	read_one(N - 1);
	shared_arm(&c, 1, now(c.clock) + 5 * MSEC);
	take(1);
	/* the head: all that is left is read(2) */
	shared_arm(&c, 2, now(c.clock) + 20 * MSEC);
	must(munmap(area, PAGE), "munmap");
	read_one(2);
	must(munmap(area + 2 * PAGE, PAGE), "munmap");
	EXPECT_EQ(wheel_info(c.fd).pending, 0);
	/* mapped anew it is whole, and what was there is there */
	must(munmap(area, c.size), "munmap");
	client_map(&c, c.fd);
	EXPECT_EQ(c.area->size, sizeof(*c.area));
	EXPECT_EQ(c.area->tail, 3);
	EXPECT_EQ(c.area->head, 3);
	check_works();
}

/* What can't be written to by the program is still written by the kernel */
static void test_mprotect(void)
{
	char *area;

	fresh();
	area = (char *)c.area;
	EXPECT_EQ(mprotect(area, c.size, rw | PROT_EXEC) ? -errno : 0, -EACCES);
	EXPECT_EQ(mprotect(area, PAGE, PROT_EXEC) ? -errno : 0, -EACCES);
	shared_arm(&c, 3, now(c.clock) + 20 * MSEC);
	must(mprotect(area, c.size, PROT_READ), "mprotect");
	EXPECT_TRUE(touch_kills((char *)&c.area->head, true));
	EXPECT_TRUE(readable(c.fd, PATIENCE_MS));
	EXPECT_TRUE(read64(&c.words[3]) & FIRED, "%llx", read64(&c.words[3]));
	must(mprotect(area, c.size, PROT_NONE), "mprotect");
	EXPECT_TRUE(touch_kills((char *)&c.area->head, false));
	must(mprotect(area + PAGE, PAGE, PROT_READ), "mprotect");
	must(mprotect(area, c.size, rw), "mprotect");
	take(3);
	check_works();
}

/* The mapping keeps the wheel when the descriptor is gone, and the other way round */
static void test_close(void)
{
	__u32 i = 0;

	fresh();
	shared_arm(&c, 3, now(c.clock) + HOUR);
	shared_arm(&c, 4, now(c.clock) + 50 * MSEC);
	close(c.fd);
	EXPECT_TRUE(WAIT_FOR(shared_take(&c, &i)));
	EXPECT_EQ(i, 4);
	EXPECT_EQ(shared_cancel(&c, 3), WAS_ARMED);
	must(munmap(c.area, c.size), "munmap");

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, N);
	shared_arm(&c, 3, now(c.clock) + 30 * MSEC);
	must(munmap(c.area, c.size), "munmap");
	read_one(3);
	client_map(&c, c.fd);
	check_works();
}

/* A descriptor that can't write maps what can't be written, and does the rest */
static void test_read_only(void)
{
	int fd = open(DEVICE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct twheel_shared *area;
	size_t size;

	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 100), 0);
	size = wheel_info(fd).shared_size;
	EXPECT_EQ(try_map(fd, size, rw, MAP_SHARED, 0), -EACCES);
	area = shared_map_as(fd, size, PROT_READ, MAP_SHARED);
	if (!EXPECT_TRUE(area != MAP_FAILED, "%s", strerror(errno)))
		return;
	EXPECT_EQ(mprotect(area, size, rw) ? -errno : 0, -EACCES);
	EXPECT_EQ(area->nr, 100);
	arm(fd, 0, 10 * MSEC, 1);
	EXPECT_TRUE(readable(fd, PATIENCE_MS));
	EXPECT_EQ(doorbell_ring(fd), 0);
	munmap(area, size);
	close(fd);
	/* one that is read-only beside one that is not */
	fresh();
	area = shared_map_as(c.fd, c.size, PROT_READ, MAP_SHARED);
	EXPECT_TRUE(touch_kills((char *)&area->head, true));
	shared_arm(&c, 1, 1);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&area->tail, __ATOMIC_ACQUIRE) == 1));
	munmap(area, c.size);
	take(1);
}

/* ---- calls whose arguments lie in the area itself ---- */

/* Words of timers that are not used, on a page that nobody has touched yet */
static char *scratch(size_t bytes)
{
	unsigned long at = (unsigned long)&c.words[N - 512 - bytes / 8];

	return (char *)(at & ~63UL);
}

static void test_buffers(void)
{
	struct twheel_event *ev;
	struct twheel_op *ops;
	struct twheel_info *info;
	__u32 i;

	fresh();
	for (i = 0; i < 20; i++)
		shared_arm(&c, i, 1);
	EXPECT_TRUE(WAIT_FOR(shared_waiting(&c) == 20));
	ev = (struct twheel_event *)scratch(20 * sizeof(*ev));
	EXPECT_EQ(read_events(c.fd, ev, 20), 20);
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(ev[i].flags, TWHEEL_EVENT_SHARED);
		EXPECT_TRUE(ev[i].user_data < 20, "%llu", ev[i].user_data);
	}
	EXPECT_EQ(shared_waiting(&c), 0);

	fresh();
	ops = (struct twheel_op *)scratch(10 * sizeof(*ops));
	for (i = 0; i < 10; i++)
		ops[i] = op_arm(0, HOUR, i);
	submit_all(c.fd, ops, 10);
	EXPECT_EQ(wheel_info(c.fd).pending, 10);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(cancel(c.fd, ops[i].id), 0);

	fresh();
	shared_arm(&c, 3, now(c.clock) + HOUR);
	ops = (struct twheel_op *)scratch(10 * sizeof(*ops));
	EXPECT_EQ(drain(c.fd, ops, 10), 1);
	EXPECT_EQ(ops->user_data, 3);

	fresh();
	info = (struct twheel_info *)scratch(sizeof(*info));
	info->size = sizeof(*info);
	EXPECT_EQ(wheel_ioctl(c.fd, TWHEEL_IOC_INFO, info), 0);
	EXPECT_EQ(info->shared, N);
	check_works();
}

/* Pages that something else holds would be there when the wheel and its account are gone. */
static void test_not_held(void)
{
	struct iovec area, here;
	char bytes[64];
	int ends[2];

	fresh();
	area = (struct iovec){ c.area, PAGE };
	here = (struct iovec){ bytes, sizeof(bytes) };
	if (pipe(ends))
		tap_bail("pipe: %s", strerror(errno));
	EXPECT_TRUE(vmsplice(ends[1], &area, 1, SPLICE_F_GIFT) < 0 && errno == EFAULT);
	/* (For another reason on a kernel that has no such calls) */
	EXPECT_TRUE(process_vm_readv(getpid(), &here, 1, &area, 1, 0) < 0);
	EXPECT_TRUE(process_vm_writev(getpid(), &here, 1, &area, 1, 0) < 0);
	/* What copies is as good as ever. */
	EXPECT_EQ(write(ends[1], c.area, PAGE), PAGE);
	close(ends[0]);
	close(ends[1]);
	check_works();
}

int main(void)
{
	tap_start(60);
	RUN(test_arguments, "what can be mapped, and how");
	RUN(test_mremap, "mremap");
	RUN(test_partial_munmap, "munmap of a part");
	RUN(test_mprotect, "mprotect");
	RUN(test_close, "closed while it is mapped, unmapped while it is open");
	RUN(test_read_only, "read-only");
	RUN(test_buffers, "calls whose arguments lie in the area");
	RUN(test_not_held, "nothing else holds its pages");
	return tap_end();
}
