// SPDX-License-Identifier: GPL-2.0
/*
 * read and readv, of events and of counts, with each allocation, each copy and
 * each page of the buffer failing in turn: every event is read once.
 */
#include "model.h"

#include <sys/uio.h>

/* Events: more than the module copies at a time, twice */
#define N 60

#define EVENT sizeof(struct twheel_event)

/* Lengths of an event */
static const __u32 event_sizes[] = { TWHEEL_EVENT_SIZE_FULL, TWHEEL_EVENT_SIZE_ID };
#define BUFFER (2 * PAGE)

static char *buffer;
static bool *in_read;

/* Lazy: the pages, and the table of them, come when the kernel writes to them */
static void map_buffer(bool lazy)
{
	/* A mapping that nothing else shares page tables with */
	const unsigned long apart = 4UL << 20;

	if (!buffer) {
		buffer = mmap(NULL, 2 * apart, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (buffer == MAP_FAILED)
			tap_bail("mmap: %s", strerror(errno));
		buffer = (char *)(((unsigned long)buffer + apart - 1) & -apart);
	}
	munmap(buffer, BUFFER);
	if (mmap(buffer, BUFFER, PROT_READ | PROT_WRITE, MAP_FIXED |
		 MAP_PRIVATE | MAP_ANONYMOUS | (lazy ? 0 : MAP_POPULATE), -1, 0) !=
	    buffer)
		tap_bail("mmap: %s", strerror(errno));
}

/* A new wheel with events of that length */
static void open_sized(struct model *m, __u32 event_size)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = event_size,
	};

	model_open(m);
	EXPECT_EQ(wheel_ioctl(m->fd, TWHEEL_IOC_SETUP, &setup), 0);
}

/* Ready ones in order of their deadlines, and others */
static void add_timers(struct model *m)
{
	struct twheel_op ops[N + 6];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i] = op_arm(TWHEEL_ABS, i < N ? i + 1 : FAR, i);
		if (i % 4 == 0)
			ops[i].interval = FAR;
	}
	model_arm_all(m, ops, ARRAY_SIZE(ops));
}

/* What was read: whole events, the first of those that were ready. */
static void check_read(struct model *m, const char *from, long ret, __u32 size)
{
	struct twheel_event ev = {};
	long at;

	if (ret < 0)
		return;
	EXPECT_EQ(ret % size, 0);
	for (at = 0; at < ret; at += size) {
		struct timer *first = model_first(m, READY);

		memcpy(&ev, from + at, size);
		if (first)
			EXPECT_EQ(ev.id, first->op.id, "out of order");
		model_event(m, &ev, size);
	}
}

/* Read the rest without a fault */
static void check_rest(struct model *m, __u32 size)
{
	unsigned int left = model_count(m, READY);
	long ret;

	model_check(m);
	map_buffer(false);
	ret = NEG(read(m->fd, buffer, BUFFER));
	EXPECT_EQ(ret, left ? (long)(left * size) : -EAGAIN);
	check_read(m, buffer, ret, size);
	EXPECT_EQ(NEG(read(m->fd, buffer, BUFFER)), -EAGAIN);
	model_end(m);
}

static void read_faults(__u32 event, size_t size, bool lazy)
{
	struct faults f = { .lazy = lazy };

	while (faults_next(&f, COPY | (lazy ? PAGES : 0), lazy)) {
		long ret;

		open_sized(&model, event);
		add_timers(&model);
		map_buffer(lazy);
		ret = WITH_FAULT(&f, NEG(read(model.fd, buffer, size)));
		EXPECT_EXPLAINED(&f, ret);
		/* A copy that fails once is done again. */
		if (!f.kind || f.kind == COPY)
			EXPECT_EQ(ret, size / event * event, "fault %u", f.n);
		check_read(&model, buffer, ret, event);
		check_rest(&model, event);
	}
}

static void test_read(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(event_sizes); i++) {
		const size_t event = event_sizes[i];
		const size_t sizes[] = { N * event, N * event / 2 + 5, event };
		unsigned int k;

		for (k = 0; k < 2 * ARRAY_SIZE(sizes); k++)
			read_faults(event, sizes[k / 2], k % 2);
	}
}

/* Odd parts, more of them than the kernel has room for on its stack */
static void test_readv(void)
{
	struct iovec parts[20];
	struct faults f = { .lazy = true };
	unsigned int i;
	size_t at = 0;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		at += parts[i].iov_len = 1 + i * 53 % 400;
	while (faults_next(&f, SLAB | COPY | PAGES, 3)) {
		char *p;
		long ret;

		model_open(&model);
		add_timers(&model);
		map_buffer(true);
		for (i = 0, p = buffer; i < ARRAY_SIZE(parts); i++) {
			parts[i].iov_base = p;
			p += parts[i].iov_len;
		}
		ret = WITH_FAULT(&f, NEG(readv(model.fd, parts,
					       ARRAY_SIZE(parts))));
		EXPECT_EXPLAINED(&f, ret);
		check_read(&model, buffer, ret, EVENT);
		check_rest(&model, EVENT);
	}
	EXPECT_TRUE(at > EVENT);
}

/* Timers that expire while it waits */
static void test_wait(void)
{
	struct faults f = {};

	while (faults_next(&f, COPY, 0)) {
		struct twheel_event ev = {};
		struct twheel_op op;
		long ret;

		model_adopt(&model, wheel_open(0));
		op = op_arm(TWHEEL_ABS, now(CLOCK_MONOTONIC) + 3 * MSEC, f.n);
		op.id = arm_op(model.fd, op);
		ret = WITH_FAULT(&f, NEG(read(model.fd, &ev, EVENT)));
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= op.deadline, "early");
		EXPECT_EQ(ret, EVENT);
		EXPECT_TRUE(ev.id == op.id && ev.user_data == f.n &&
			    ev.deadline == op.deadline);
		EXPECT_EQ(wheel_stats(model.fd).delivered, 1);
		EXPECT_EQ(cancel(model.fd, op.id), -ENOENT);
		model_close(&model);
	}
}

static void test_nothing_ready(void)
{
	struct faults f = {};

	while (faults_next(&f, 0, 0)) {
		model_open(&model);
		EXPECT_EQ(WITH_FAULT(&f, NEG(read(model.fd, buffer, EVENT))),
			  -EAGAIN);
		EXPECT_EQ(NEG(read(model.fd, buffer, EVENT - 1)), -EINVAL);
		model_end(&model);
	}
}

/* All that was ready was counted. */
static void count_events(struct model *m)
{
	struct timer *t;

	while ((t = model_first(m, READY))) {
		struct twheel_event ev = {
			.id = t->op.id,
			.user_data = t->op.user_data,
			.deadline = t->op.deadline,
			.flags = t->op.interval ? TWHEEL_EVENT_PERIODIC : 0,
		};

		model_event(m, &ev, sizeof(ev));
	}
}

static void test_count(void)
{
	unsigned int lazy;

	for (lazy = 0; lazy < 2; lazy++) {
		struct faults f = { .lazy = lazy };

		while (faults_next(&f, COPY | (lazy ? PAGES : 0), lazy)) {
			__u64 count;
			long ret;

			model_open(&model);
			EXPECT_EQ(wheel_setup(model.fd, TWHEEL_CLOCK_MONOTONIC, 0, 0,
					      TWHEEL_SETUP_COUNT), 0);
			add_timers(&model);
			map_buffer(lazy);
			ret = WITH_FAULT(&f, NEG(read(model.fd, buffer, 20)));
			if (EXPECT_EXPLAINED(&f, ret) && ret < 0) {
				EXPECT_TRUE(readable(model.fd, 0));
				ret = NEG(read(model.fd, buffer, 8));
			}
			EXPECT_EQ(ret, sizeof(count));
			memcpy(&count, buffer, sizeof(count));
			EXPECT_EQ(count, N);
			count_events(&model);
			EXPECT_EQ(NEG(read(model.fd, buffer, 8)), -EAGAIN);
			model_end(&model);
		}
	}
}

/* Who reads needs no memory at all, and who closes neither. */
static void test_no_memory(void)
{
	long ret;

	model_open(&model);
	add_timers(&model);
	map_buffer(false);
	memory_fails(true);
	ret = NEG(read(model.fd, buffer, BUFFER));
	memory_fails(false);
	EXPECT_EQ(ret, N * EVENT);
	check_read(&model, buffer, ret, EVENT);
	model_end(&model);

	model_open(&model);
	add_timers(&model);
	memory_fails(true);
	ret = NEG(close(model.fd));
	memory_fails(false);
	EXPECT_EQ(ret, 0);
	test_nothing_left();
}

/* Every end that a buffer can have: bytes that can't be written from there on */
static void read_edges(__u32 event, int prot)
{
	unsigned int room;

	for (room = 0; room < 3 * event; room += 8) {
		long want = room / event * event, ret;

		open_sized(&model, event);
		add_timers(&model);
		map_buffer(false);
		mprotect(buffer + PAGE, PAGE, prot);
		ret = NEG(read(model.fd, buffer + PAGE - room, N * event));
		EXPECT_EQ(ret, want ? want : -EFAULT, "room for %u", room);
		check_read(&model, buffer + PAGE - room, ret, event);
		check_rest(&model, event);
	}
}

static void test_edge(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(event_sizes); i++) {
		read_edges(event_sizes[i], PROT_NONE);
		read_edges(event_sizes[i], PROT_READ);
	}
}

/*
 * Where no copy without faults ever succeeds, though the memory is there, a read goes on
 * until a signal comes, which need not kill. (Before faults_start(), so that none of
 * these faults is for this process.)
 */
static void endless_child(void)
{
	if (write_text("/proc/thread-self/make-it-fail", "1"))
		tap_bail("make-it-fail: %s", strerror(errno));
	*in_read = true;
	syscall(SYS_read, model.fd, buffer, N * EVENT);
}

static void endless(__u32 flags)
{
	const char *copies = fault_dirs[FAULT_KINDS - 1];
	clockid_t clock;
	__u64 start;
	int status;
	pid_t pid;

	in_read = map_shared(sizeof(*in_read));
	model_open(&model);
	EXPECT_EQ(wheel_setup(model.fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, flags), 0);
	add_timers(&model);
	map_buffer(false);
	fault_write(copies, "times", "-1");
	fault_write(copies, "task-filter", "Y");
	fault_write(copies, "verbose", "0");
	fault_write(copies, "probability", "100");
	pid = tap_fork(endless_child);
	if (clock_getcpuclockid(pid, &clock))
		tap_bail("clock_getcpuclockid failed");
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(in_read, __ATOMIC_ACQUIRE)));
	start = now(clock);
	EXPECT_TRUE(WAIT_FOR(now(clock) > start + 100 * MSEC), "it does not go on");
	kill(pid, SIGSTOP);
	EXPECT_TRUE(WAIT_FOR(waitpid(pid, &status, WUNTRACED | WNOHANG) == pid));
	fault_write(copies, "probability", "0");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void test_endless(void)
{
	endless(0);
	check_rest(&model, EVENT);
}

static void test_endless_count(void)
{
	__u64 count = 0;

	endless(TWHEEL_SETUP_COUNT);
	EXPECT_EQ(NEG(read(model.fd, &count, sizeof(count))), sizeof(count));
	EXPECT_EQ(count, N);
	count_events(&model);
	model_end(&model);
}

int main(void)
{
	tap_start(PATIENCE_S);
	RUN(test_endless, "copies that never succeed");
	RUN(test_endless_count, "copies that never succeed, of a count");
	faults_start();
	map_buffer(false);
	RUN(test_read, "read");
	RUN(test_readv, "readv with odd parts");
	RUN(test_wait, "read that waits");
	RUN(test_nothing_ready, "read with nothing ready");
	RUN(test_count, "count mode");
	RUN(test_no_memory, "read and close without any memory");
	RUN(test_edge, "buffers at the edge of memory");
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
