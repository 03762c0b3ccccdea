// SPDX-License-Identifier: GPL-2.0
/*
 * What bad input gets: the error table of the uapi header, line by line, and
 * that nothing of it changes a wheel or loses an event. (Arrays that end too
 * soon, and fields of operations, are in disturb.c.)
 *
 * Three wheels are there all the time: the main one is planted with pending,
 * ready and periodic timers, the fresh one was never touched, and one has shared
 * timers. After each bad call all have to say the same of themselves as before.
 *
 * also in: both kunit matrix small 32-bits
 */
#include "device.h"

#include <sys/eventfd.h>

#define PENDING 40
#define READY 20
#define MONOTONIC TWHEEL_CLOCK_MONOTONIC
#define BOOTTIME TWHEEL_CLOCK_BOOTTIME

/* The first address that is the kernel's on x86-64, and one in the middle of it */
#define KERNEL_BEGINS ((char *)0x0000800000000000)
#define KERNEL_MEMORY ((char *)0xffff888000000000)

/* What the wheels say of themselves, without what goes on by itself */
struct shot {
	struct twheel_info info[3];
	struct twheel_stats stats[3];
};

static int main_fd, fresh_fd, empty_fd, shared_fd, efd;
static __u64 planted[PENDING], ready_ids[READY], victim;
static __u64 start;
static struct shot baseline;

static char *edge;		/* the end of some pages, nothing after it */
static char *readonly;		/* a page to copy to with readonly_put() */
static char *unmapped;		/* an address where nothing is */
static char *arg;		/* three pages of zeros, for any argument */

static void shot_take(struct shot *s)
{
	const int fds[] = { main_fd, fresh_fd, shared_fd };
	int i;

	for (i = 0; i < 3; i++) {
		s->info[i] = wheel_info(fds[i]);
		s->info[i].next_expiry = 0;
		s->info[i].now = 0;
		s->stats[i] = wheel_stats(fds[i]);
		s->stats[i].wakeups = 0;
	}
}

static void rebase(void)
{
	shot_take(&baseline);
}

static bool unchanged(void)
{
	struct shot s;
	const __u64 *was = (const __u64 *)&baseline, *is = (const __u64 *)&s;
	size_t i;

	shot_take(&s);
	if (!memcmp(&s, &baseline, sizeof(s)))
		return true;
	for (i = 0; i < sizeof(s) / sizeof(*is); i++)
		if (is[i] != was[i])
			tap_diag("word %zu of INFO and STATS was %llu and is %llu", i, was[i],
				 is[i]);
	baseline = s;
	return false;
}

/*
 * A call gives what it is to give, mostly an error, and leaves all wheels as they were. A
 * printf format with its arguments says what is bad about the call.
 */
#define EXPECT_HARMLESS(call, want, ...) do {				\
	long given = (call);						\
									\
	EXPECT_EQ(given, want, __VA_ARGS__);				\
	EXPECT_TRUE(unchanged(), __VA_ARGS__);				\
} while (0)

static void readonly_put(const void *p, size_t size)
{
	if (mprotect(readonly, PAGE, PROT_READ | PROT_WRITE))
		tap_bail("mprotect: %s", strerror(errno));
	memcpy(readonly, p, size);
	if (mprotect(readonly, PAGE, PROT_READ))
		tap_bail("mprotect: %s", strerror(errno));
}

static void victim_new(void)
{
	victim = arm(main_fd, 0, HOUR, 0x1234);
}

static void fresh_new(void)
{
	wheel_replace(&fresh_fd, O_NONBLOCK);
	rebase();
}

/* ---- each ioctl with a good argument ---- */

/**
 * struct command - an ioctl
 * @least: size of its argument as it was first published, which stays when that grows
 * @size: size as it is now
 * @fd: the wheel to call it for
 * @answers: the kernel writes to the argument
 * @fill: makes a good argument of what is zero
 * @undo: what a good call changed is to be put back
 */
struct command {
	const char *name;
	unsigned long cmd;
	size_t least;
	size_t size;
	int *fd;
	bool answers;
	void (*fill)(void *arg);
	void (*undo)(void);
};

static struct twheel_op lone_op;

static void fill_setup(void *p)
{
	((struct twheel_setup *)p)->clock = MONOTONIC;
}

/* For SUBMIT and DRAIN, whose arguments are alike */
static void fill_array(void *p, __u32 nr)
{
	*(struct twheel_submit *)p = (struct twheel_submit){
		.ops = (unsigned long)&lone_op,
		.nr = nr,
		.op_size = sizeof(lone_op),
	};
}

static void fill_submit(void *p)
{
	lone_op = op_for(TWHEEL_OP_QUERY, planted[1]);
	fill_array(p, 1);
}

static void fill_drain(void *p)
{
	fill_array(p, 0);
}

static void fill_eventfd(void *p)
{
	((struct twheel_eventfd *)p)->fd = efd;
}

static void undo_eventfd(void)
{
	EXPECT_EQ(wheel_eventfd(main_fd, -1), 0);
}

#define COMMAND(command, type) \
	.name = #command, .cmd = TWHEEL_IOC_##command, .size = sizeof(struct twheel_##type)

static const struct command commands[] = {
	{ COMMAND(INFO, info), .least = 112, .fd = &main_fd, .answers = true },
	{ COMMAND(SETUP, setup), .least = 40, .fd = &fresh_fd, .fill = fill_setup,
	  .undo = fresh_new },
	{ COMMAND(SUBMIT, submit), .least = 24, .fd = &main_fd, .fill = fill_submit },
	{ COMMAND(DRAIN, drain), .least = 24, .fd = &main_fd, .fill = fill_drain },
	{ COMMAND(EVENTFD, eventfd), .least = 16, .fd = &main_fd, .fill = fill_eventfd,
	  .undo = undo_eventfd },
	{ COMMAND(STATS, stats), .least = 600, .fd = &main_fd, .answers = true },
	{ COMMAND(DOORBELL, doorbell), .least = 8, .fd = &shared_fd },
};

static long call(const struct command *c, void *p)
{
	return wheel_ioctl(*c->fd, c->cmd, p);
}

/* An argument that is good if @size is. (It need not be aligned.) */
static void put_argument(const struct command *c, char *at, __u32 size)
{
	char good[sizeof(struct twheel_stats)] __attribute__((aligned(8))) = { 0 };

	if (c->fill)
		c->fill(good);
	memcpy(good, &size, sizeof(size));
	memcpy(at, good, c->size);
}

/* SUBMIT's good argument has one operation, and gives 1 */
static void expect_good(const struct command *c, void *p, const char *how)
{
	if (EXPECT_EQ(call(c, p), c->cmd == TWHEEL_IOC_SUBMIT, "%s %s", c->name, how) && c->undo)
		c->undo();
	rebase();
}

static void try_size(const struct command *c, __u32 size)
{
	const __u32 unknown[] = { c->size, size - 1 };	/* to this kernel: the ends of that */
	long want = size < c->least ? -EINVAL : size > PAGE ? -E2BIG : 0;
	int i;

	memset(arg, 0, 3 * PAGE);
	put_argument(c, arg, size);
	if (want)
		EXPECT_HARMLESS(call(c, arg), want, "%s: size %u", c->name, size);
	else
		expect_good(c, arg, "with a larger size and zeros");
	for (i = 0; i < 2 && !want && size > c->size; i++) {
		memset(arg, 0, 3 * PAGE);
		put_argument(c, arg, size);
		arg[unknown[i]] = 0x80;
		EXPECT_HARMLESS(call(c, arg), -E2BIG, "%s: size %u, byte %u is set", c->name,
				size, unknown[i]);
	}
}

static void test_sizes(void)
{
	static const __u32 large[] = {
		PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 65535, 65536, 0x7fffffff,
		0x80000000, 0xffffffff,
	};
	const struct command *c;
	__u32 size;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		for (size = 0; size <= c->size + 2; size++)
			try_size(c, size);
		for (size = 0; size < ARRAY_SIZE(large); size++)
			try_size(c, large[size]);
	}
}

/* ---- addresses of the arguments ---- */

static void try_nowhere(const struct command *c)
{
	char *const nowhere[] = {
		NULL, (char *)1, unmapped, unmapped + 1, edge, edge + 8,
		KERNEL_BEGINS - PAGE, KERNEL_BEGINS, KERNEL_MEMORY, (char *)0xffffffff81000000,
		(char *)-8, (char *)-1,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nowhere); i++)
		EXPECT_HARMLESS(call(c, nowhere[i]), -EFAULT, "%s at %p", c->name, nowhere[i]);
}

/* Arguments of which the end, or all but the end, is where memory ends */
static void try_edge(const struct command *c)
{
	char *last = edge - c->size;
	size_t left;

	for (left = 1; left < c->size; left++) {
		put_argument(c, arg, c->size);
		memcpy(edge - left, arg, left);
		EXPECT_HARMLESS(call(c, edge - left), -EFAULT, "%s: %zu bytes of it are there",
				c->name, left);
	}
	put_argument(c, last, c->size);
	expect_good(c, last, "that ends where memory ends");
	put_argument(c, last, c->size + 8);
	EXPECT_HARMLESS(call(c, last), -EFAULT,
			"%s: all that is known is there, but not all of its size", c->name);
	put_argument(c, last - 1, c->size);
	expect_good(c, last - 1, "that ends a byte before memory does");
}

static void try_readonly(const struct command *c)
{
	put_argument(c, arg, c->size);
	readonly_put(arg, c->size);
	if (c->answers)
		EXPECT_HARMLESS(call(c, readonly), -EFAULT, "%s in read-only memory", c->name);
	else
		expect_good(c, readonly, "in read-only memory");
}

/* What is read-only begins within the argument: the kernel may write to what is before */
static void try_split(const struct command *c)
{
	char *second = map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	size_t left;

	for (left = 8; c->answers && left < c->size; left += 8) {
		mprotect(second, PAGE, PROT_READ | PROT_WRITE);
		put_argument(c, second - left, c->size);
		mprotect(second, PAGE, PROT_READ);
		EXPECT_HARMLESS(call(c, second - left), -EFAULT, "%s: %zu bytes are writable",
				c->name, left);
	}
	munmap(second - PAGE, 2 * PAGE);
}

static void test_addresses(void)
{
	const struct command *c;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		try_nowhere(c);
		try_edge(c);
		try_readonly(c);
		try_split(c);
	}
}

static void test_top(void)
{
	char *other_edge = edge;
	const struct command *c;
	struct twheel_op *last;
	int nr, i;

	edge = map_top(1);
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		try_edge(c);
	/* All of an array is done that is there, be it said to be short or long. */
	last = (struct twheel_op *)edge - 4;
	for (nr = 5; nr <= 12; nr++) {
		for (i = 0; i < 4; i++)
			last[i] = op_for(TWHEEL_OP_QUERY, planted[i]);
		EXPECT_HARMLESS(submit(main_fd, last, nr), 4, "%d operations, 4 are there", nr);
	}
	munmap(edge - PAGE, PAGE);
	edge = other_edge;
}

/* 0 is an address like any other for who may map it: the answer is written there. */
static void test_null(void)
{
	struct twheel_op *ops = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (ops == MAP_FAILED)
		tap_bail("mmap of the page 0: %s", strerror(errno));
	/* (What the compiler knows of NULL does not matter then.) */
	__asm__ volatile("" : "+r" (ops));
	ops[0] = op_arm(0, HOUR, 1);
	ops[1] = op_for(TWHEEL_OP_CANCEL, 12345);
	ops[1].result = 1;
	EXPECT_EQ(submit(main_fd, ops, 2), 2);
	EXPECT_EQ(ops[1].result, -ENOENT);
	EXPECT_TRUE(ops[0].id, "no id was told");
	EXPECT_EQ(cancel(main_fd, ops[0].id), 0);
	munmap(ops, PAGE);
	rebase();
}

/* ---- the fields of SETUP ---- */

#define setup_fresh(...) setup_with(fresh_fd, __VA_ARGS__)
#define BAD_SETUP(error, ...) \
	EXPECT_HARMLESS(setup_fresh(__VA_ARGS__), error, "SETUP with " #__VA_ARGS__)

/* A number of each field that is none. (All that there are: tests/core/unit/validate.c) */
static void bad_fields(void)
{
	static const struct twheel_setup bad[] = {
		{ .clock = 0 },
		{ .clock = CLOCK_MONOTONIC },
		{ .clock = MONOTONIC | 1U << 31 },
		{ .clock = MONOTONIC, .flags = 1U << 2 },
		{ .clock = MONOTONIC, .flags = 1U << 31 },
		{ .clock = MONOTONIC, .shared = 8 },
		{ .clock = MONOTONIC, .flags = TWHEEL_SETUP_COUNT, .shared = 8 },
		{ .clock = MONOTONIC, .flags = TWHEEL_SETUP_SHARED },
		{ .clock = MONOTONIC, .flags = TWHEEL_SETUP_SHARED,
		  .shared = TWHEEL_SHARED_MAX + 1 },
		{ .clock = MONOTONIC, .event_size = 24 },
		{ .clock = MONOTONIC, .event_size = 48 },
		{ .clock = MONOTONIC, .flags = TWHEEL_SETUP_COUNT, .event_size = 16 },
		{ .clock = MONOTONIC, .__reserved = 1 },
	};
	struct twheel_setup setup;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		setup = bad[i];
		setup.size = sizeof(setup);
		EXPECT_HARMLESS(wheel_ioctl(fresh_fd, TWHEEL_IOC_SETUP, &setup), -EINVAL,
				"SETUP %zu", i);
	}
	BAD_SETUP(-EOPNOTSUPP, .clock = MONOTONIC, .tick = 999);
	BAD_SETUP(-EOPNOTSUPP, .clock = MONOTONIC, .tick = SEC + 1);
}

static void good_event_size(__u32 told, __u32 flags, __u32 shared, __u32 is)
{
	EXPECT_EQ(setup_fresh(.clock = MONOTONIC, .event_size = told, .flags = flags,
			      .shared = shared), 0, "event size %u", told);
	EXPECT_EQ(wheel_info(fresh_fd).event_size, is);
	fresh_new();
}

static void good_event_sizes(void)
{
	__u32 size;

	for (size = 0; size <= 32; size += 16) {
		good_event_size(size, 0, 0, size ?: 32);
		good_event_size(size, TWHEEL_SETUP_SHARED, 9, size ?: 32);
	}
	good_event_size(0, TWHEEL_SETUP_COUNT, 0, 8);
}

static void good_setup(__u32 flags, __u32 clock, __u32 shared, __u64 tick)
{
	struct twheel_info info;

	EXPECT_EQ(setup_fresh(.flags = flags, .clock = clock, .shared = shared, .tick = tick), 0,
		  "good after all the bad ones");
	info = wheel_info(fresh_fd);
	EXPECT_EQ(info.clock, clock);
	EXPECT_EQ(info.shared, shared);
	/* Where timers are coarse, see ticks.c */
	if (tick && tick < info.tick_min)
		tick = info.tick_min;
	EXPECT_TRUE(!tick || info.tick == tick, "%llu", info.tick);
	fresh_new();
}

static void test_setup_fields(void)
{
	bad_fields();
	good_event_sizes();
	good_setup(0, BOOTTIME, 0, 1000);
	good_setup(TWHEEL_SETUP_SHARED, MONOTONIC, 1, 0);
	good_setup(0, TWHEEL_CLOCK_REALTIME, 0, SEC);
}

static void test_setup_twice(void)
{
	__u64 id;

	EXPECT_HARMLESS(wheel_setup(main_fd, MONOTONIC, 0, 0, 0), -EBUSY, "with timers");
	EXPECT_EQ(setup_fresh(.clock = MONOTONIC), 0);
	rebase();
	BAD_SETUP(-EBUSY, .clock = MONOTONIC);
	BAD_SETUP(-EBUSY, .clock = BOOTTIME);
	BAD_SETUP(-EBUSY, .clock = MONOTONIC, .flags = TWHEEL_SETUP_SHARED, .shared = 4);
	fresh_new();
	id = arm(fresh_fd, 0, HOUR, 0);
	rebase();
	BAD_SETUP(-EBUSY, .clock = MONOTONIC);
	EXPECT_EQ(cancel(fresh_fd, id), 0);
	rebase();
	BAD_SETUP(-EBUSY, .clock = MONOTONIC);
	BAD_SETUP(-EBUSY, .clock = MONOTONIC, .flags = TWHEEL_SETUP_SHARED, .shared = 4);
	fresh_new();
}

/* What is only handed out may hold anything on the way in */
static void test_ignored(void)
{
	struct twheel_info info;
	struct twheel_stats stats;

	memset(&info, 0xff, sizeof(info));
	info.size = sizeof(info);
	EXPECT_HARMLESS(wheel_ioctl(main_fd, TWHEEL_IOC_INFO, &info), 0, "INFO");
	EXPECT_EQ(info.__reserved, 0);
	memset(&stats, 0xff, sizeof(stats));
	stats.size = sizeof(stats);
	EXPECT_HARMLESS(wheel_ioctl(main_fd, TWHEEL_IOC_STATS, &stats), 0, "STATS");
	EXPECT_EQ(stats.__reserved, 0);
}

/* A period that goes on to the end of time, and jitter beyond that */
static void test_last_period(void)
{
	struct twheel_op last = op_arm(TWHEEL_ABS, 1, 3), op;
	struct twheel_event ev;
	int i;

	last.interval = KTIME_MAX;
	last.jitter = USEC;
	for (i = 0; i < 16; i++) {
		__u64 id = arm_op(empty_fd, last);

		EXPECT_EQ(read_events(empty_fd, &ev, 1), 1);
		EXPECT_EQ(ev.overrun, 0);
		EXPECT_EQ(query(empty_fd, id, &op), 0);
		EXPECT_EQ(op.state, TWHEEL_STATE_PENDING);
		EXPECT_EQ(op.deadline, KTIME_MAX);
		EXPECT_TRUE(wheel_info(empty_fd).next_expiry > start + HOUR);
		EXPECT_EQ(cancel(empty_fd, id), 0);
	}
}

/* ---- batches ---- */

static long submit_raw(__u32 flags, void *ops, __u32 nr, __u32 size)
{
	struct twheel_submit s = {
		.size = sizeof(s),
		.flags = flags,
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = size,
	};

	return wheel_ioctl(main_fd, TWHEEL_IOC_SUBMIT, &s);
}

static long drain_raw(__u32 flags, void *ops, __u32 nr, __u32 size)
{
	struct twheel_drain d = {
		.size = sizeof(d),
		.flags = flags,
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = size,
	};

	return wheel_ioctl(main_fd, TWHEEL_IOC_DRAIN, &d);
}

/* The lengths that an operation may have */
static const __u32 op_sizes[] = {
	TWHEEL_OP_SIZE_ID, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_FULL,
};

typedef long (*batch_call)(__u32 flags, void *ops, __u32 nr, __u32 size);

static void bad_op_size(batch_call call, __u32 size)
{
	struct twheel_op op = op_arm(0, HOUR, 9);

	if (size == 16 || size == 32 || size == 64)
		return;
	EXPECT_HARMLESS(call(0, &op, 1, size), -EINVAL, "operations of %u bytes", size);
	EXPECT_HARMLESS(call(0, &op, 0, size), -EINVAL, "no operations of %u bytes", size);
	EXPECT_HARMLESS(call(0, NULL, 1, size), -EINVAL, "operations of %u bytes at 0", size);
}

/* With a length that is good */
static void batch_rest(batch_call call, __u32 size)
{
	char *const nowhere[] = { NULL, unmapped, (char *)-64, KERNEL_MEMORY, KERNEL_BEGINS };
	static const __u32 numbers[] = { 1, 20, 0x7fffffff };
	struct twheel_op op = op_arm(0, HOUR, 9);
	__u32 bit;
	size_t i, k;

	for (bit = 1; bit; bit <<= 1)
		EXPECT_HARMLESS(call(bit, &op, 1, size), -EINVAL, "flag %#x", bit);
	EXPECT_HARMLESS(call(0, &op, 0x80000000, size), -EINVAL, "2^31 operations");
	EXPECT_HARMLESS(call(0, &op, 0xffffffff, size), -EINVAL, "2^32 - 1 operations");
	EXPECT_HARMLESS(call(0, &op, 0, size), 0, "no operations");
	for (i = 0; i < ARRAY_SIZE(nowhere); i++)
		for (k = 0; k < ARRAY_SIZE(numbers); k++)
			EXPECT_HARMLESS(call(0, nowhere[i], numbers[k], size), -EFAULT,
					"%u operations at %p", numbers[k], nowhere[i]);
}

static void batch_fields(batch_call call)
{
	size_t i;

	for (i = 0; i < 300; i++)
		bad_op_size(call, i);
	for (i = 0; i < ARRAY_SIZE(op_sizes); i++)
		batch_rest(call, op_sizes[i]);
}

/* They have 64 bits in a program of 32, too. */
static void test_upper_half(void)
{
	struct twheel_op op = op_arm(0, HOUR, 9);
	struct twheel_submit submit = { .size = sizeof(submit), .nr = 1, .op_size = sizeof(op) };
	struct twheel_drain drain = { .size = sizeof(drain), .nr = 1, .op_size = sizeof(op) };
	const __u64 at = (unsigned long)&op, bad[] = { at ^ 1ULL << 46, at | ~0ULL << 32 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		submit.ops = bad[i];
		drain.ops = bad[i];
		EXPECT_HARMLESS(wheel_ioctl(main_fd, TWHEEL_IOC_SUBMIT, &submit), -EFAULT,
				"SUBMIT at %llx", bad[i]);
		EXPECT_HARMLESS(wheel_ioctl(main_fd, TWHEEL_IOC_DRAIN, &drain), -EFAULT,
				"DRAIN at %llx", bad[i]);
	}
}

/* ---- EVENTFD, DOORBELL, and what is no call of this device ---- */

static long set_eventfd(__u32 flags, int fd, __u32 reserved)
{
	struct twheel_eventfd e = {
		.size = sizeof(e),
		.flags = flags,
		.fd = fd,
		.__reserved = reserved,
	};

	return wheel_ioctl(main_fd, TWHEEL_IOC_EVENTFD, &e);
}

static void test_eventfd_fields(void)
{
	int null = open("/dev/null", O_RDWR), pipes[2];
	__u32 bit;
	size_t i;

	if (null < 0 || pipe(pipes))
		tap_bail("pipe and /dev/null: %s", strerror(errno));

	const struct {
		const char *what;
		int fd;
		long error;
	} no_eventfds[] = {
		{ "not open", 1000, -EBADF },
		{ "no descriptor", -2, -EBADF },
		{ "AT_FDCWD", -100, -EBADF },
		{ "the largest number", 0x7fffffff, -EBADF },
		{ "/dev/null", null, -EINVAL },
		{ "a pipe", pipes[0], -EINVAL },
		{ "the wheel", main_fd, -EINVAL },
		{ "none to end", -1, -ENOENT },
	};

	for (bit = 1; bit; bit <<= 1) {
		EXPECT_HARMLESS(set_eventfd(bit, efd, 0), -EINVAL, "flag %#x", bit);
		EXPECT_HARMLESS(set_eventfd(0, efd, bit), -EINVAL, "reserved %#x", bit);
	}
	for (i = 0; i < ARRAY_SIZE(no_eventfds); i++)
		EXPECT_HARMLESS(set_eventfd(0, no_eventfds[i].fd, 0), no_eventfds[i].error, "%s",
				no_eventfds[i].what);
	EXPECT_EQ(set_eventfd(0, efd, 0), 0);
	EXPECT_HARMLESS(set_eventfd(0, efd, 0), -EBUSY, "twice");
	EXPECT_EQ(set_eventfd(0, -1, 0), 0);
	EXPECT_HARMLESS(set_eventfd(0, -1, 0), -ENOENT, "ended already");
	close(null);
	close(pipes[0]);
	close(pipes[1]);
}

static long doorbell(int fd, __u32 flags)
{
	struct twheel_doorbell d = { .size = sizeof(d), .flags = flags };

	return wheel_ioctl(fd, TWHEEL_IOC_DOORBELL, &d);
}

static void test_doorbell_fields(void)
{
	__u32 bit;

	EXPECT_EQ(doorbell(shared_fd, 0), 0);
	for (bit = 1; bit; bit <<= 1)
		EXPECT_HARMLESS(doorbell(shared_fd, bit), -EINVAL, "flag %#x", bit);
	EXPECT_HARMLESS(doorbell(main_fd, 0), -EINVAL, "no shared timers");
	EXPECT_HARMLESS(doorbell(fresh_fd, 0), -EINVAL, "not set up");
	/* and it is as it was: it can still be set up */
	good_setup(0, BOOTTIME, 0, 1000);
}

/* The first number that means nothing */
#define END_OF_IOCTLS (TWHEEL_IOC_DOORBELL - TWHEEL_IOC_INFO + 1)

static void unknown_ioctl(unsigned int cmd)
{
	EXPECT_HARMLESS(wheel_ioctl(main_fd, cmd, arg), -ENOTTY, "ioctl %#x", cmd);
}

static void test_unknown_ioctls(void)
{
	static const unsigned int sizes[] = { 0, 1, 4, 8, 16, 24, 32, 40, 64, 112 };
	/* TCGETS, FIONREAD, and the largest number */
	static const unsigned int others[] = { 0x5401, 0x541b, 0xffffffff };
	unsigned int nr, dir;
	size_t i;

	memset(arg, 0, PAGE);
	for (nr = END_OF_IOCTLS; nr < 256; nr++)
		unknown_ioctl(_IO(TWHEEL_IOC_TYPE, nr));
	for (nr = 0; nr < END_OF_IOCTLS; nr++) {
		unknown_ioctl(_IO(TWHEEL_IOC_TYPE + 1, nr));
		unknown_ioctl(_IO(TWHEEL_IOC_TYPE - 1, nr));
		for (dir = 0; dir < 4; dir++)
			for (i = !dir; i < ARRAY_SIZE(sizes); i++)
				unknown_ioctl(_IOC(dir, TWHEEL_IOC_TYPE, nr, sizes[i]));
	}
	for (i = 0; i < ARRAY_SIZE(others); i++)
		unknown_ioctl(others[i]);
}

static long error_of(long ret)
{
	return ret < 0 ? -errno : 0;
}

static void test_other_calls(void)
{
	void *area = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, main_fd, 0);

	EXPECT_HARMLESS(area == MAP_FAILED ? -errno : 0, -ENODEV, "mmap");
	EXPECT_HARMLESS(error_of(write(main_fd, arg, 64)), -EINVAL, "write");
	EXPECT_HARMLESS(error_of(lseek(main_fd, 0, SEEK_SET)), -ESPIPE, "lseek");
	EXPECT_HARMLESS(error_of(pread(main_fd, arg, 64, 0)), -ESPIPE, "pread");
}

/* ---- nothing was lost in all that ---- */

static void test_nothing_lost(void)
{
	struct twheel_event ev[PENDING + READY + 8];
	unsigned char seen[PENDING + READY] = { 0 };
	struct twheel_op op;
	long i, n;

	for (i = 0; i < PENDING; i++) {
		EXPECT_EQ(query(main_fd, planted[i], &op), 0, "timer %ld", i);
		EXPECT_EQ(op.state, TWHEEL_STATE_PENDING, "timer %ld", i);
		EXPECT_EQ(op.user_data, i, "timer %ld", i);
		EXPECT_EQ(op.deadline, start + HOUR + i * SEC, "timer %ld", i);
		EXPECT_EQ(op.interval, i % 4 == 3 ? HOUR : 0, "timer %ld", i);
		op.opcode = TWHEEL_OP_MODIFY;
		op.flags = TWHEEL_ABS;
		op.deadline = 1;
		EXPECT_EQ(op_single(main_fd, &op), 0, "timer %ld", i);
	}
	EXPECT_EQ(cancel(main_fd, victim), 0);
	n = read_events(main_fd, ev, ARRAY_SIZE(ev));
	EXPECT_EQ(n, PENDING + READY, "events");
	for (i = 0; i < n; i++) {
		__u64 data = ev[i].user_data;

		if (!EXPECT_TRUE(data < PENDING + READY, "user data %llu", data))
			continue;
		seen[data]++;
		EXPECT_EQ(ev[i].id, data < PENDING ? planted[data] :
			  ready_ids[data - PENDING]);
	}
	EXPECT_EACH_ONCE(seen, PENDING + READY);
	EXPECT_EQ(read_events(main_fd, ev, 1), -EAGAIN);
}

static void plant(void)
{
	struct twheel_op op;
	int i;

	main_fd = wheel_open(O_NONBLOCK);
	fresh_fd = wheel_open(O_NONBLOCK);
	empty_fd = wheel_open(O_NONBLOCK);
	shared_fd = wheel_open(O_NONBLOCK);
	if (has_module())
		EXPECT_EQ(setup_with(shared_fd, .flags = TWHEEL_SETUP_SHARED, .clock = MONOTONIC,
				     .shared = 100), 0);
	start = now(CLOCK_MONOTONIC);
	for (i = 0; i < PENDING; i++) {
		op = op_arm(TWHEEL_ABS, start + HOUR + i * SEC, i);
		op.interval = i % 4 == 3 ? HOUR : 0;
		planted[i] = arm_op(main_fd, op);
	}
	for (i = 0; i < READY; i++)
		ready_ids[i] = arm_past(main_fd, PENDING + i);
	arm_numbered(empty_fd, 0, HOUR, 0, PENDING);
	for (i = 0; i < PENDING; i++)
		EXPECT_EQ(drain(empty_fd, &op, 1), 1);
	victim_new();
	rebase();
}

int main(void)
{
	tap_start(120);
	edge = map_edge(3);
	readonly = map_pages(1, PROT_READ);
	/* far from where mmap puts anything, and sanitizers */
	unmapped = (char *)0x480000000000;
	if (!msync(unmapped, PAGE, MS_ASYNC) || errno != ENOMEM)
		tap_bail("there is something at %p", unmapped);
	arg = map_pages(3, PROT_READ | PROT_WRITE);
	efd = eventfd(0, EFD_NONBLOCK);
	plant();
	RUN(test_sizes, "every size of every structure");
	RUN(test_addresses, "every address of every structure");
	RUN(test_null, "operations at the address 0");
	RUN(test_top, "structures at the end of all addresses");
	RUN(test_setup_fields, "every field of SETUP");
	RUN(test_setup_twice, "SETUP twice, or after a timer");
	RUN(test_ignored, "what is only handed out is not looked at");
	RUN(test_last_period, "a period that ends with all time");
	RUN_CALL(batch_fields(submit_raw), "every field of SUBMIT");
	RUN_CALL(batch_fields(drain_raw), "every field of DRAIN");
	RUN(test_upper_half, "the upper half of addresses");
	RUN(test_eventfd_fields, "every field of EVENTFD");
	RUN(test_doorbell_fields, "every field of DOORBELL");
	RUN(test_unknown_ioctls, "unknown ioctls");
	RUN(test_other_calls, "system calls that a wheel doesn't do");
	RUN(test_nothing_lost, "every planted timer is still there, once");
	return tap_end();
}
