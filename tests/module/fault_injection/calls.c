// SPDX-License-Identifier: GPL-2.0
/*
 * Every call but those that work on arrays and buffers, with each allocation and
 * each copy failing in turn: an error has changed nothing.
 */
#include "scene.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

/* An argument as long as a program of the future may have it, the rest zero */
union longer {
	struct twheel_info info;
	struct twheel_stats stats;
	struct twheel_setup setup;
	__u32 size;
	char bytes[PAGE];
};

static union longer arg;

#define LONGER(type) (sizeof(struct type) + 24)

static void set_user(long uid)
{
	if (syscall(SYS_setresuid, uid, -1, -1))
		tap_bail("setresuid: %s", strerror(errno));
}

static void test_open(void)
{
	struct faults f = {};

	/* Not user 0, for whom the module needs no memory to find the account. */
	set_user(1000);
	/* path, file, wheel, account; what finds the account is tried again */
	while (faults_next(&f, SLAB | COPY, 4)) {
		long fd = WITH_FAULT(&f, NEG(open(DEVICE, O_RDWR | O_NONBLOCK)));

		check_open_wheels(fd >= 0);
		if (!EXPECT_EXPLAINED(&f, fd) || fd < 0)
			continue;
		scene_adopt(fd, 1, "A");
		scene_close();
	}
	set_user(0);
}

/* With a bit more memory each time, until there is enough */
static void test_open_memory_ends(void)
{
	unsigned int bytes;
	long fd = -ENOMEM;

	set_user(1000);
	for (bytes = 0; fd == -ENOMEM && bytes < 4 * PAGE; bytes += 16) {
		memory_ends(bytes);
		fd = NEG(open(DEVICE, O_RDWR | O_NONBLOCK));
		memory_fails(false);
		check_open_wheels(fd >= 0);
	}
	set_user(0);
	if (!EXPECT_TRUE(fd >= 0, "%ld with %u bytes", fd, bytes))
		return;
	EXPECT_TRUE(bytes > sizeof(struct twheel_stats), "%u", bytes);
	scene_adopt(fd, 1, "A");
	scene_close();
}

/* Timers of each kind: TIMERS, of which two are ready */
#define SCENE "APIJ"
#define TIMERS 4
#define READY 2

static void info_faults(unsigned long cmd, __u32 size)
{
	struct faults f = {};

	while (faults_next(&f, COPY, 1)) {
		long ret;

		memset(&arg, 0, sizeof(arg));
		arg.size = size;
		ret = WITH_FAULT(&f, wheel_ioctl(wheel, cmd, &arg));
		EXPECT_EXPLAINED(&f, ret);
		if (!ret && cmd == TWHEEL_IOC_INFO)
			EXPECT_EQ(arg.info.ready, READY);
		else if (!ret)
			EXPECT_EQ(arg.stats.armed, model.armed);
		scene_check();
	}
}

static void test_info(void)
{
	scene_open(TIMERS, SCENE);
	info_faults(TWHEEL_IOC_INFO, sizeof(struct twheel_info));
	info_faults(TWHEEL_IOC_INFO, LONGER(twheel_info));
	info_faults(TWHEEL_IOC_STATS, sizeof(struct twheel_stats));
	info_faults(TWHEEL_IOC_STATS, LONGER(twheel_stats));
	scene_close();
}

static void setup_faults(__u32 size)
{
	struct faults f = {};

	while (faults_next(&f, COPY, 1)) {
		struct twheel_info info;
		long ret;

		memset(&arg, 0, sizeof(arg));
		arg.setup.size = size;
		arg.setup.clock = TWHEEL_CLOCK_BOOTTIME;
		arg.setup.limit = 77;
		wheel = wheel_open(O_NONBLOCK);
		ret = WITH_FAULT(&f, wheel_ioctl(wheel, TWHEEL_IOC_SETUP, &arg));
		EXPECT_EXPLAINED(&f, ret);
		info = wheel_info(wheel);
		EXPECT_EQ(info.clock, ret ? TWHEEL_CLOCK_MONOTONIC : TWHEEL_CLOCK_BOOTTIME);
		EXPECT_EQ(info.limit == 77, !ret);
		EXPECT_EQ(wheel_ioctl(wheel, TWHEEL_IOC_SETUP, &arg), ret ? 0 : -EBUSY);
		scene_adopt(wheel, TIMERS, SCENE);
		scene_close();
	}
}

static void test_setup(void)
{
	setup_faults(sizeof(struct twheel_setup));
	setup_faults(LONGER(twheel_setup));
}

static __u64 eventfd_count(int efd)
{
	__u64 count = 0;

	return read(efd, &count, sizeof(count)) < 0 ? 0 : count;
}

static void test_eventfd(void)
{
	struct twheel_eventfd set = { .size = sizeof(set) };
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct faults f = {}, g = {};
	long ret;

	scene_open(TIMERS, SCENE);
	while (faults_next(&f, COPY, 1)) {
		set.fd = efd;
		ret = WITH_FAULT(&f, wheel_ioctl(wheel, TWHEEL_IOC_EVENTFD,
						 &set));
		EXPECT_EXPLAINED(&f, ret);
		/* What is ready already signals it at once. */
		EXPECT_EQ(eventfd_count(efd), ret ? 0 : 1);
		EXPECT_EQ(wheel_eventfd(wheel, -1), ret ? -ENOENT : 0);
	}

	while (faults_next(&g, COPY, 1)) {
		EXPECT_EQ(wheel_eventfd(wheel, efd), 0);
		eventfd_count(efd);
		set.fd = -1;
		ret = WITH_FAULT(&g, wheel_ioctl(wheel, TWHEEL_IOC_EVENTFD,
						 &set));
		EXPECT_EXPLAINED(&g, ret);
		scene_add(1, "P");
		EXPECT_EQ(eventfd_count(efd), ret ? 1 : 0);
		EXPECT_EQ(wheel_eventfd(wheel, -1), ret ? 0 : -ENOENT);
	}
	scene_close();
	close(efd);
}

/* A wheel without a timer can be set up. */
static void first_arm(struct making *mk)
{
	make_submit(mk);
	EXPECT_EQ(wheel_setup(wheel, TWHEEL_CLOCK_MONOTONIC, 0, 0, 0), model.armed ? -EBUSY : 0);
}

/* The first timer of a wheel: all memory is yet to be had */
static void test_first_arm(void)
{
	static const char *const kinds[] = { "A", "P", "I", "J" };
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct making mk = scene_call(1, kinds[i % 4]);

		mk.op_size = i < 4 ? TWHEEL_OP_SIZE_FULL : TWHEEL_OP_SIZE_ONCE;
		/* directory, first chunk, and the argument, without which nothing is done */
		each_fault(first_arm, mk, 0, 0, SLAB | PAGES | COPY, 1);
	}
}

/*
 * Timers until there is no free node, which is when none can be had without memory. What
 * this program itself touches meanwhile has to be there.
 */
static void fill_table(const char *letters)
{
	struct making mk = scene_call(256, letters);
	__u64 before;

	mk.op_size = TWHEEL_OP_SIZE_FULL;
	do {
		before = model.armed;
		mk.seed += 2;
		no_memory = true;
		memory_fails(true);
		make_submit(&mk);
		memory_fails(false);
		no_memory = false;
	} while (model.armed == before + 256 && !halted());
}

/*
 * Where a chunk is added, and sometimes a directory. As soon as the fault is another's
 * (kmemleak's, which does without), there is a chunk, and no more to be denied: so each
 * time it begins further on.
 */
static void test_further_arms(void)
{
	static const char *const kinds[] = { "A", "P", "I", "J" };
	struct faults all = {};
	unsigned int i, j;

	scene_open(0, NULL);
	for (i = 0; i < 18; i++) {
		struct making mk = scene_call(1, kinds[i % 4]);

		fill_table("A");
		fault = (struct faults){ .n = i % 6, .kind = COPY };
		while (faults_next(&fault, 0, 0)) {
			mk.seed += 2;
			make_submit(&mk);
			model_check(&model, wheel);
		}
		for (j = 0; j < INJECTED_KINDS; j++)
			all.hits[j] += fault.hits[j];
		fault = (struct faults){};
	}
	tap_diag("%u slab, %u pages", all.hits[0], all.hits[1]);
	EXPECT_TRUE(all.hits[0] >= 3 && all.hits[1] >= 3);
	scene_close();
}

/*
 * A timer that becomes periodic needs memory, and without it stays as it is: there are nodes left,
 * but no more room for what periodic timers have besides.
 */
static void modify_full(struct making *mk)
{
	struct faults turn = fault;

	fault = (struct faults){};
	scene_add(400, "A");
	scene_add(1, "I");
	fill_table("I");
	fault = turn;
	mk->op_size = TWHEEL_OP_SIZE_FULL;
	make_submit(mk);
}

static void test_modify_full(void)
{
	/* Some of them are not periodic yet. */
	each_fault(modify_full, scene_call(8, "b"), 2, 0, PAGES, 0);
}

/* More than the kernel has room for on its stack */
static long poll_many(struct faults *f, int ms)
{
	struct pollfd p[40];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = (struct pollfd){ .fd = wheel, .events = POLLIN };
	return WITH_FAULT(f, NEG(poll(p, ARRAY_SIZE(p), ms)));
}

/* Nobody has read yet, and polling waits: all of it is registered under faults. */
static void test_poll_waiting(void)
{
	struct faults f = {};

	scene_open(0, NULL);
	while (faults_next(&f, SLAB | PAGES | COPY, 3)) {
		long ret = poll_many(&f, 1);

		EXPECT_EXPLAINED(&f, ret);
		EXPECT_TRUE(ret <= 0);
		/* Nobody is left in the wheel's queue: this would find out. */
		scene_add(1, "P");
		EXPECT_TRUE(readable(wheel, 0));
		scene_add(1, "N");
	}
	scene_close();
}

static void test_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN }, got;
	struct faults f = {}, g = {};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	scene_open(TIMERS, SCENE);
	while (faults_next(&f, SLAB | COPY, 3)) {
		long ret = WITH_FAULT(&f, NEG(epoll_ctl(ep, EPOLL_CTL_ADD,
							wheel, &event)));

		EXPECT_EXPLAINED(&f, ret);
		EXPECT_EQ(epoll_wait(ep, &got, 1, 0), !ret);
		EXPECT_EQ(NEG(epoll_ctl(ep, EPOLL_CTL_DEL, wheel, NULL)),
			  ret ? -ENOENT : 0);
	}

	EXPECT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, wheel, &event), 0);
	while (faults_next(&g, 0, 0)) {
		long ret = WITH_FAULT(&g, NEG(epoll_wait(ep, &got, 1, 0)));

		if (EXPECT_EXPLAINED(&g, ret) && ret >= 0)
			EXPECT_EQ(ret, 1);
	}
	scene_close();
	close(ep);
}

/* What can be read of a wheel without it */
static long read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long ret, got = 0;

	if (fd < 0)
		return -errno;
	do {
		ret = NEG(read(fd, text + got, size - 1 - got));
		got += ret > 0 ? ret : 0;
	} while (ret > 0);
	close(fd);
	text[got] = 0;
	return ret < 0 ? ret : got;
}

static void test_files(void)
{
	char paths[][64] = {
		"", DEBUGFS "twheel/counters", PARAMETERS "max_timers",
	};
	unsigned int i;

	scene_open(TIMERS, SCENE);
	snprintf(paths[0], sizeof(paths[0]), "/proc/self/fdinfo/%d", wheel);
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		static char want[2048], text[2048];
		struct faults f = {};

		EXPECT_TRUE(read_file(paths[i], want, sizeof(want)) > 0);
		while (faults_next(&f, SLAB | COPY, 3)) {
			long ret = WITH_FAULT(&f, read_file(paths[i], text,
							    sizeof(text)));

			if (EXPECT_EXPLAINED(&f, ret) && ret >= 0)
				EXPECT_TRUE(!strcmp(text, want), "%.200s", text);
			scene_check();
		}
	}
	scene_close();
}

int main(void)
{
	tap_start(PATIENCE_S);
	memory_init();
	faults_start();
	RUN(test_open, "open");
	RUN(test_open_memory_ends, "open, while memory comes to an end");
	RUN(test_info, "INFO and STATS");
	RUN(test_setup, "SETUP");
	RUN(test_eventfd, "EVENTFD");
	RUN(test_first_arm, "ARM, the first");
	RUN(test_further_arms, "ARM, thousands");
	RUN(test_modify_full, "MODIFY that needs memory");
	RUN(test_poll_waiting, "poll that waits");
	RUN(test_epoll, "epoll");
	RUN(test_files, "fdinfo and other files");
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
