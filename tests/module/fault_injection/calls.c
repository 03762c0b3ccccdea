// SPDX-License-Identifier: GPL-2.0
/*
 * Every call but those that work on arrays and buffers, with each allocation and
 * each copy failing in turn: an error has changed nothing.
 */
#include "model.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

/* An argument as long as a program of the future may have it, the rest zero */
union longer {
	struct twheel_info info;
	struct twheel_stats stats;
	struct twheel_setup setup;
	struct twheel_op op;
	struct twheel_eventfd eventfd;
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
		model_adopt(&model, fd);
		model_end(&model);
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
	model_adopt(&model, fd);
	model_end(&model);
}

static void test_close(void)
{
	static struct twheel_op ops[2000];
	struct faults f = {};
	unsigned int i;

	while (faults_next(&f, 0, 0)) {
		model_open(&model);
		for (i = 0; i < ARRAY_SIZE(ops); i++)
			ops[i] = op_arm(TWHEEL_ABS, i % 2 ? 1 : FAR, i);
		submit_all(model.fd, ops, ARRAY_SIZE(ops));
		EXPECT_EQ(WITH_FAULT(&f, NEG(close(model.fd))), 0);
		EXPECT_EQ(fcntl(model.fd, F_GETFD), -1);
		test_nothing_left();
	}
}

/* A wheel with a timer of each kind, all of them in @ids */
enum { FUTURE, OVER, PERIODIC, OVER_PERIODIC, SLACK, TIMERS };

static struct twheel_op scene_op(unsigned int kind, __u64 user_data)
{
	bool over = kind == OVER || kind == OVER_PERIODIC;
	struct twheel_op op = op_arm(TWHEEL_ABS, over ? 1 + user_data :
						 FAR + user_data * SEC, user_data);

	if (kind == PERIODIC || kind == OVER_PERIODIC) {
		op.interval = FAR;
		op.jitter = kind == PERIODIC ? SEC : 0;
	}
	if (kind == SLACK)
		op.slack = HOUR;
	return op;
}

static void scene_add(struct model *m, unsigned int kind)
{
	struct twheel_op op = scene_op(kind, m->nr + 1);

	op.id = arm_op(m->fd, op);
	model_arm(m, &op);
}

static void scene_open(struct model *m)
{
	unsigned int i;

	model_open(m);
	for (i = 0; i < TIMERS; i++)
		scene_add(m, i);
}

static void test_info(void)
{
	static const struct { unsigned long cmd; __u32 size; } calls[] = {
		{ TWHEEL_IOC_INFO, sizeof(struct twheel_info) },
		{ TWHEEL_IOC_INFO, LONGER(twheel_info) },
		{ TWHEEL_IOC_STATS, sizeof(struct twheel_stats) },
		{ TWHEEL_IOC_STATS, LONGER(twheel_stats) },
	};
	unsigned int i;

	scene_open(&model);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		struct faults f = {};

		while (faults_next(&f, COPY, 1)) {
			long ret;

			memset(&arg, 0, sizeof(arg));
			arg.size = calls[i].size;
			ret = WITH_FAULT(&f, wheel_ioctl(model.fd, calls[i].cmd,
							 &arg));
			EXPECT_EXPLAINED(&f, ret);
			if (!ret && calls[i].cmd == TWHEEL_IOC_INFO)
				EXPECT_EQ(arg.info.ready, 2);
			else if (!ret)
				EXPECT_EQ(arg.stats.armed, TIMERS);
			model_check(&model);
		}
	}
	model_end(&model);
}

static void test_setup(void)
{
	static const __u32 sizes[] = {
		sizeof(struct twheel_setup), LONGER(twheel_setup),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct faults f = {};

		while (faults_next(&f, COPY, 1)) {
			struct twheel_info info;
			long ret;

			memset(&arg, 0, sizeof(arg));
			arg.setup = (struct twheel_setup){
				.size = sizes[i],
				.clock = TWHEEL_CLOCK_BOOTTIME,
				.tick = MSEC,
				.limit = 77,
			};
			model_open(&model);
			ret = WITH_FAULT(&f, wheel_ioctl(model.fd,
							 TWHEEL_IOC_SETUP, &arg));
			EXPECT_EXPLAINED(&f, ret);
			info = wheel_info(model.fd);
			EXPECT_EQ(info.clock, ret ? TWHEEL_CLOCK_MONOTONIC :
						    TWHEEL_CLOCK_BOOTTIME);
			EXPECT_EQ(info.limit == 77, !ret);
			EXPECT_EQ(wheel_ioctl(model.fd, TWHEEL_IOC_SETUP, &arg),
				  ret ? 0 : -EBUSY);
			model_end(&model);
		}
	}
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

	scene_open(&model);
	while (faults_next(&f, COPY, 1)) {
		set.fd = efd;
		ret = WITH_FAULT(&f, wheel_ioctl(model.fd, TWHEEL_IOC_EVENTFD,
						 &set));
		EXPECT_EXPLAINED(&f, ret);
		/* What is ready already signals it at once. */
		EXPECT_EQ(eventfd_count(efd), ret ? 0 : 1);
		EXPECT_EQ(wheel_eventfd(model.fd, -1), ret ? -ENOENT : 0);
	}

	while (faults_next(&g, COPY, 1)) {
		EXPECT_EQ(wheel_eventfd(model.fd, efd), 0);
		eventfd_count(efd);
		set.fd = -1;
		ret = WITH_FAULT(&g, wheel_ioctl(model.fd, TWHEEL_IOC_EVENTFD,
						 &set));
		EXPECT_EXPLAINED(&g, ret);
		scene_add(&model, OVER);
		EXPECT_EQ(eventfd_count(efd), ret ? 1 : 0);
		EXPECT_EQ(wheel_eventfd(model.fd, -1), ret ? 0 : -ENOENT);
	}
	model_end(&model);
	close(efd);
}

/* An operation of so many bytes, a batch of its own, under a fault */
static long faulty_op(struct faults *f, struct model *m, struct twheel_op *op,
		      __u32 size)
{
	long ret;

	memset(&arg, 0, sizeof(arg));
	memcpy(&arg, op, size);
	ret = WITH_FAULT(f, op_prefix(m->fd, &arg.op, size));
	EXPECT_EXPLAINED(f, ret);
	*op = arg.op;
	if (!ret)
		model_did(m, op, size);
	return ret;
}

static const __u32 op_sizes[] = {
	TWHEEL_OP_SIZE_FULL, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_ID,
};

/* Can a timer of that kind be armed with so many bytes? */
static bool kind_fits(unsigned int kind, __u32 size)
{
	return size == TWHEEL_OP_SIZE_FULL ||
	       (size == TWHEEL_OP_SIZE_ONCE && (kind == FUTURE || kind == OVER));
}

/* The first timer of a wheel: all memory is yet to be had */
static void test_first_arm(void)
{
	unsigned int i, kind;

	for (i = 0; i < ARRAY_SIZE(op_sizes); i++)
		for (kind = 0; kind < TIMERS; kind++) {
			struct faults f = {};

			if (!kind_fits(kind, op_sizes[i]))
				continue;
			/* argument, operation, directory and first chunk */
			while (faults_next(&f, SLAB | PAGES | COPY, 3)) {
				struct twheel_op op = scene_op(kind, 1);
				long ret;

				model_open(&model);
				ret = faulty_op(&f, &model, &op, op_sizes[i]);
				model_check_counts(&model);
				/* A wheel without a timer can be set up. */
				EXPECT_EQ(wheel_setup(model.fd, TWHEEL_CLOCK_MONOTONIC,
						      0, 0, 0), ret ? 0 : -EBUSY);
				model_end(&model);
			}
		}
}

/*
 * Timers until there is no free node, which is when none can be had without memory. What
 * this program itself touches meanwhile has to be there.
 */
static void fill_table(struct model *m)
{
	static struct twheel_op ops[256];
	unsigned int nr, i;
	long ret = 0;

	while (!ret) {
		for (i = 0; i < ARRAY_SIZE(ops); i++)
			ops[i] = scene_op(FUTURE, m->nr + 1 + i);
		memory_fails(true);
		for (nr = 0; nr < ARRAY_SIZE(ops); nr++) {
			ret = op_single(m->fd, &ops[nr]);
			if (ret)
				break;
		}
		memory_fails(false);
		for (i = 0; i < nr; i++)
			model_did(m, &ops[i], sizeof(ops[i]));
	}
	EXPECT_EQ(ret, -ENOMEM);
}

/*
 * Where a chunk is added, and sometimes a directory. As soon as the fault is another's
 * (kmemleak's, which does without), there is a chunk, and no more to be denied: so each
 * time it begins further on.
 */
static void test_further_arms(void)
{
	struct faults all = {};
	unsigned int i, j;

	model_open(&model);
	for (i = 0; i < 18; i++) {
		struct faults f = { .n = i % 6, .kind = COPY };

		fill_table(&model);
		while (faults_next(&f, 0, 0)) {
			struct twheel_op op = scene_op(i % TIMERS, i);

			faulty_op(&f, &model, &op, sizeof(op));
			model_check_counts(&model);
			/* Memory that can be had is not needed for the rest. */
			op = op_for(TWHEEL_OP_QUERY, model.timers[0].op.id);
			if (model.nr)
				EXPECT_EQ(op_single(model.fd, &op), 0);
		}
		for (j = 0; j < FAULT_KINDS; j++)
			all.hits[j] += f.hits[j];
		all.refused += f.refused;
	}
	tap_diag("%u slab, %u pages; %u refused", all.hits[0], all.hits[1],
		 all.refused);
	EXPECT_TRUE(all.hits[0] >= 3 && all.hits[1] >= 3 && all.refused >= 6);
	model_end(&model);
}

/* A timer that becomes periodic needs memory, and without it stays as it is */
static void test_modify_full(void)
{
	static const enum model_state states[] = { PENDING, READY };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		struct faults f = {};

		while (faults_next(&f, PAGES, 1)) {
			struct twheel_op op;

			model_open(&model);
			scene_add(&model, FUTURE);
			scene_add(&model, OVER);
			fill_table(&model);
			op = scene_op(PERIODIC, 5);
			op.opcode = TWHEEL_OP_MODIFY;
			op.id = model_first(&model, states[i])->op.id;
			faulty_op(&f, &model, &op, sizeof(op));
			model_end(&model);
		}
	}
}

/* Every operation on a timer of every kind */
static void test_op(__u8 opcode)
{
	unsigned int size, kind, to;

	for (size = 0; size < ARRAY_SIZE(op_sizes); size++)
		for (kind = 0; kind < TIMERS; kind++) {
			struct faults f = {};

			to = (kind + 1) % TIMERS;
			if (opcode == TWHEEL_OP_MODIFY && !kind_fits(to, op_sizes[size]))
				continue;
			/* The argument; a copy of one operation is tried again. */
			while (faults_next(&f, COPY, 1)) {
				struct twheel_op op = op_for(opcode, 0);

				scene_open(&model);

				if (opcode == TWHEEL_OP_MODIFY)
					op = scene_op(to, kind + 10);
				op.opcode = opcode;
				op.id = model.timers[kind].op.id;
				faulty_op(&f, &model, &op, op_sizes[size]);
				model_end(&model);
			}
		}
}

static void test_modify(void)
{
	test_op(TWHEEL_OP_MODIFY);
}

static void test_cancel(void)
{
	test_op(TWHEEL_OP_CANCEL);
}

static void test_query(void)
{
	test_op(TWHEEL_OP_QUERY);
}

/* What is not known of a timer stays unknown, whatever fails */
static void test_no_such_timer(void)
{
	__u8 opcode;

	scene_open(&model);
	for (opcode = TWHEEL_OP_MODIFY; opcode <= TWHEEL_OP_QUERY; opcode++) {
		struct faults f = {};

		while (faults_next(&f, COPY, 1)) {
			long ret;

			arg.op = op_for(opcode, model.timers[0].op.id + 1000000);
			ret = WITH_FAULT(&f, op_single(model.fd, &arg.op));
			EXPECT_TRUE(ret == -ENOENT || (f.kind && ret == -EFAULT), "%ld", ret);
			model_check(&model);
		}
	}
	model_end(&model);
}

static void test_poll(void)
{
	struct faults f = {}, g = {};

	scene_open(&model);
	while (faults_next(&f, SLAB | COPY, 2)) {
		struct pollfd p[40];
		unsigned int i;
		long ret;

		/* More than the kernel has room for on its stack */
		for (i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = (struct pollfd){ .fd = model.fd, .events = POLLIN };
		ret = WITH_FAULT(&f, NEG(poll(p, ARRAY_SIZE(p), 0)));
		if (EXPECT_EXPLAINED(&f, ret) && ret >= 0)
			EXPECT_EQ(ret, ARRAY_SIZE(p));
		model_check(&model);
	}

	while (faults_next(&g, COPY, 1)) {
		struct timeval none = {};
		fd_set set;
		long ret;

		FD_ZERO(&set);
		FD_SET(model.fd, &set);
		ret = WITH_FAULT(&g, NEG(select(model.fd + 1, &set, NULL, NULL,
						&none)));
		if (EXPECT_EXPLAINED(&g, ret) && ret >= 0)
			EXPECT_TRUE(ret == 1 && FD_ISSET(model.fd, &set));
	}
	model_end(&model);
}

/* Nobody has read yet, and polling waits: all of it is registered under faults */
static void test_poll_waiting(void)
{
	struct faults f = {};

	model_open(&model);
	while (faults_next(&f, SLAB | PAGES | COPY, 3)) {
		struct pollfd p[40];
		unsigned int i;
		long ret;

		for (i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = (struct pollfd){ .fd = model.fd, .events = POLLIN };
		ret = WITH_FAULT(&f, NEG(poll(p, ARRAY_SIZE(p), 1)));
		if (EXPECT_EXPLAINED(&f, ret))
			EXPECT_TRUE(ret <= 0);
		/* Nobody is left in the wheel's queue: this would find out. */
		scene_add(&model, OVER);
		EXPECT_TRUE(readable(model.fd, 0));
		EXPECT_EQ(cancel(model.fd, model.timers[model.nr - 1].op.id), 0);
		model.timers[model.nr - 1].state = GONE;
		model.stats.cancelled++;
	}
	model_end(&model);
}

static void test_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN }, got;
	struct faults f = {}, g = {};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	scene_open(&model);
	while (faults_next(&f, SLAB | COPY, 3)) {
		long ret = WITH_FAULT(&f, NEG(epoll_ctl(ep, EPOLL_CTL_ADD,
							model.fd, &event)));

		EXPECT_EXPLAINED(&f, ret);
		EXPECT_EQ(epoll_wait(ep, &got, 1, 0), !ret);
		EXPECT_EQ(NEG(epoll_ctl(ep, EPOLL_CTL_DEL, model.fd, NULL)),
			  ret ? -ENOENT : 0);
	}

	EXPECT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, model.fd, &event), 0);
	while (faults_next(&g, 0, 0)) {
		long ret = WITH_FAULT(&g, NEG(epoll_wait(ep, &got, 1, 0)));

		if (EXPECT_EXPLAINED(&g, ret) && ret >= 0)
			EXPECT_EQ(ret, 1);
	}
	model_end(&model);
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
		"", FAULTS "twheel/counters", PARAMETERS "max_timers",
	};
	unsigned int i;

	scene_open(&model);
	snprintf(paths[0], sizeof(paths[0]), "/proc/self/fdinfo/%d", model.fd);
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		static char want[2048], text[2048];
		struct faults f = {};

		EXPECT_TRUE(read_file(paths[i], want, sizeof(want)) > 0);
		while (faults_next(&f, SLAB | COPY, 3)) {
			long ret = WITH_FAULT(&f, read_file(paths[i], text,
							    sizeof(text)));

			if (EXPECT_EXPLAINED(&f, ret) && ret >= 0)
				EXPECT_TRUE(!strcmp(text, want), "%.200s", text);
			model_check(&model);
		}
	}
	model_end(&model);
}

static void test_mmap(void)
{
	struct faults f = {};

	scene_open(&model);
	while (faults_next(&f, 0, 0)) {
		long ret;

		fault_arm(f.n);
		ret = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, model.fd, 0) ==
		      MAP_FAILED ? -errno : 0;
		faults_done(&f, ret);
		EXPECT_TRUE(ret == -ENODEV || (f.kind && ret == -ENOMEM), "%ld", ret);
	}
	model_end(&model);
}

/*
 * What no injection reaches: the single words that the module reads and writes.
 * So let every ioctl's argument end, or end being writable, at each of its words.
 */
static void test_edges(void)
{
	/* What is written ends at @out. */
	static const struct { unsigned int nr, size, out; } calls[] = {
		{ TWHEEL_IOC_INFO, sizeof(struct twheel_info), sizeof(struct twheel_info) },
		{ TWHEEL_IOC_INFO, LONGER(twheel_info), sizeof(struct twheel_info) },
		{ TWHEEL_IOC_SETUP, sizeof(struct twheel_setup), 0 },
		{ TWHEEL_IOC_SUBMIT, sizeof(struct twheel_submit), 0 },
		{ TWHEEL_IOC_DRAIN, sizeof(struct twheel_drain), 0 },
		{ TWHEEL_IOC_EVENTFD, sizeof(struct twheel_eventfd), 0 },
		{ TWHEEL_IOC_STATS, sizeof(struct twheel_stats), sizeof(struct twheel_stats) },
		{ TWHEEL_IOC_STATS, LONGER(twheel_stats), sizeof(struct twheel_stats) },
	};
	static const int prots[] = { PROT_NONE, PROT_READ };
	unsigned int i, j, at;

	scene_open(&model);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (j = 0; j < ARRAY_SIZE(prots); j++) {
			char *edge = (char *)map_pages(2, PROT_READ | PROT_WRITE) +
				     PAGE;

			for (at = 0; at < calls[i].size; at += 4) {
				if (prots[j] == PROT_READ && at >= calls[i].out)
					continue;
				memset(&arg, 0, sizeof(arg));
				arg.size = calls[i].size;
				mprotect(edge, PAGE, PROT_READ | PROT_WRITE);
				memcpy(edge - at, &arg, calls[i].size);
				mprotect(edge, PAGE, prots[j]);
				EXPECT_EQ(wheel_ioctl(model.fd, calls[i].nr,
						      edge - at), -EFAULT,
					  "ioctl %u at %u", i, at);
			}
			model_check(&model);
			munmap(edge - PAGE, 2 * PAGE);
		}
	model_end(&model);
}

/* An operation that ends there, or ends being writable, is not done. */
static void op_edges(char *edge, const struct twheel_op *op, __u32 size, int prot)
{
	/* What is written to ends there. */
	__u32 out = op->opcode == TWHEEL_OP_ARM ? 16 :
		    op->opcode == TWHEEL_OP_QUERY && size > TWHEEL_OP_SIZE_ID ? size : 8;
	__u32 at;

	for (at = 0; at < (prot == PROT_READ ? out : size); at += 4) {
		mprotect(edge, PAGE, PROT_READ | PROT_WRITE);
		memcpy(edge - at, op, size);
		mprotect(edge, PAGE, prot);
		EXPECT_EQ(submit_sized(model.fd, edge - at, 1, size), -EFAULT,
			  "opcode %u of %u bytes at %u", op->opcode, size, at);
	}
}

static void test_op_edges(void)
{
	char *edge = (char *)map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	unsigned int i, opcode;

	scene_open(&model);
	for (i = 0; i < ARRAY_SIZE(op_sizes); i++)
		for (opcode = TWHEEL_OP_ARM; opcode <= TWHEEL_OP_QUERY; opcode++) {
			struct twheel_op op = op_for(opcode, 0);

			if (opcode <= TWHEEL_OP_MODIFY &&
			    op_sizes[i] < TWHEEL_OP_SIZE_ONCE)
				continue;
			if (opcode <= TWHEEL_OP_MODIFY)
				op = scene_op(OVER, 3);
			op.opcode = opcode;
			op.id = model.timers[FUTURE].op.id;
			op_edges(edge, &op, op_sizes[i], PROT_NONE);
			op_edges(edge, &op, op_sizes[i], PROT_READ);
			model_check(&model);
		}
	model_end(&model);
	munmap(edge - PAGE, 2 * PAGE);
}

/*
 * The memory of an operation is taken away while it is done: an error means that
 * nothing was done, and no error that it was, and that this was told.
 */
static struct twheel_op *shaky;
static __u64 shake_seed = 1;

/* What is in an operation's answer while the kernel has not written there */
#define UNTOLD 77

/* So many of each kind are to be done, and so many not. */
#define SHAKEN 1

/* How long to wait before it is taken away, in turns of a loop; 0: not now */
static unsigned int shake_after;
/*
 * Both processors are at it, though the computer may have one of them stand still at any time:
 * the wait has begun, and the operation is over.
 */
static bool shaking, returned;
static bool stop;

static void *shake(void *unused)
{
	unsigned int i, n;

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		n = __atomic_load_n(&shake_after, __ATOMIC_ACQUIRE);
		if (!n)
			continue;
		__atomic_store_n(&shaking, true, __ATOMIC_RELEASE);
		for (i = 0; i < n; i++)
			__asm__ volatile("");
		mprotect(shaky, PAGE, PROT_NONE);
		/* It comes back meanwhile, or not. */
		while (n % 2 && !__atomic_load_n(&returned, __ATOMIC_ACQUIRE))
			;
		mprotect(shaky, PAGE, PROT_READ | PROT_WRITE);
		__atomic_store_n(&shaking, false, __ATOMIC_RELAXED);
		__atomic_store_n(&shake_after, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* An operation, while its memory goes and comes back */
static long shaken_op(struct model *m)
{
	static unsigned int after = 1000;
	unsigned int step = 1 + random_next(&shake_seed) % (after / 8 + 2);
	long ret;

	__atomic_store_n(&returned, false, __ATOMIC_RELAXED);
	__atomic_store_n(&shake_after, after, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shaking, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&shake_after, __ATOMIC_ACQUIRE))
		;
	ret = submit(m->fd, shaky, 1);
	__atomic_store_n(&returned, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shake_after, __ATOMIC_ACQUIRE))
		;
	/*
	 * Where it does no longer fail is where the answer is written. If it never does, the
	 * memory may have been back before the operation began: begin somewhere else.
	 */
	if (ret < 0)
		after += step;
	else if (step < after)
		after -= step;
	else
		after = 1U << random_next(&shake_seed) % 18;
	return ret;
}

/* The page that comes and goes, and the same one as it always is */
static struct twheel_op *map_views(void)
{
	int memory = memfd_create("views", MFD_CLOEXEC);
	struct twheel_op *steady;

	if (memory < 0 || ftruncate(memory, PAGE))
		tap_bail("memfd: %s", strerror(errno));
	shaky = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	steady = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (shaky == MAP_FAILED || steady == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	close(memory);
	return steady;
}

/* The next operation that can be done on the last timer */
static struct twheel_op shaken_next(struct model *m, unsigned int i)
{
	struct timer *t = m->nr ? &m->timers[m->nr - 1] : NULL;
	struct twheel_op op = scene_op(i % TIMERS, i + 1);

	if (t && t->state == PENDING) {
		if (random_next(&shake_seed) % 2)
			return op_for(TWHEEL_OP_CANCEL, t->op.id);
		op.id = t->op.id;
		op.opcode = TWHEEL_OP_MODIFY;
	}
	return op;
}

static bool shaken_enough(const unsigned int *done, const unsigned int *refused)
{
	int opcode;

	for (opcode = TWHEEL_OP_ARM; opcode <= TWHEEL_OP_CANCEL; opcode++)
		if (done[opcode] < SHAKEN || refused[opcode] < SHAKEN)
			return false;
	return true;
}

static void test_withdrawn(void)
{
	struct twheel_op *steady = map_views();
	unsigned int done[5] = {}, refused[5] = {}, i;
	__u64 end = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;
	pthread_t thread;

	model_open(&model);
	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	if (pthread_create(&thread, NULL, shake, NULL))
		tap_bail("pthread_create");
	for (i = 0; now(CLOCK_MONOTONIC) < end; i++) {
		struct twheel_op op = shaken_next(&model, i);
		long ret;

		*steady = op;
		steady->state = UNTOLD;
		steady->result = UNTOLD;
		ret = shaken_op(&model);
		if (!EXPECT_TRUE(ret == 1 || ret == -EFAULT, "%ld", ret))
			break;
		if (ret == 1) {
			EXPECT_EQ(steady->result, 0, "opcode %u", op.opcode);
			EXPECT_TRUE(steady->state != UNTOLD, "opcode %u", op.opcode);
			op.id = steady->id;
			op.state = steady->state;
			model_did(&model, &op, sizeof(op));
			done[op.opcode]++;
		} else {
			refused[op.opcode]++;
		}
		model_check_counts(&model);
		if (tap_bad || shaken_enough(done, refused))
			break;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	tap_diag("%u operations: ARM %u of %u, MODIFY %u of %u, CANCEL %u of %u not done",
		 i, refused[1], refused[1] + done[1], refused[2], refused[2] + done[2],
		 refused[3], refused[3] + done[3]);
	EXPECT_TRUE(shaken_enough(done, refused));
	model_end(&model);
}

int main(void)
{
	tap_start(PATIENCE_S);
	faults_start();
	RUN(test_open, "open");
	RUN(test_open_memory_ends, "open, while memory comes to an end");
	RUN(test_close, "close");
	RUN(test_info, "INFO and STATS");
	RUN(test_setup, "SETUP");
	RUN(test_eventfd, "EVENTFD");
	RUN(test_first_arm, "ARM, the first");
	RUN(test_further_arms, "ARM, thousands");
	RUN(test_modify_full, "MODIFY that needs memory");
	RUN(test_modify, "MODIFY");
	RUN(test_cancel, "CANCEL");
	RUN(test_query, "QUERY");
	RUN(test_no_such_timer, "operations on no timer");
	RUN(test_poll, "poll and select");
	RUN(test_poll_waiting, "poll that waits");
	RUN(test_epoll, "epoll");
	RUN(test_files, "fdinfo and other files");
	RUN(test_mmap, "mmap");
	RUN(test_edges, "arguments at the edge of memory");
	RUN(test_op_edges, "operations at the edge of memory");
	RUN(test_withdrawn, "arguments whose memory is withdrawn meanwhile");
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
