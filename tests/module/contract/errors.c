// SPDX-License-Identifier: GPL-2.0
/*
 * What bad input gets: the error table of the uapi header, line by line, and
 * that nothing of it changes a wheel or loses an event.
 *
 * Three wheels are there all the time: the main one is planted with pending,
 * ready and periodic timers, the fresh one was never touched, and one has shared
 * timers. After each bad call all have to say the same of themselves as before.
 *
 * also in: both kunit matrix small
 */
#include "device.h"

#include <sys/eventfd.h>

#define PENDING 40
#define READY 20

struct shot {
	struct twheel_info info[3];
	struct twheel_stats stats[3];
};

static int main_fd, fresh_fd, empty_fd, shared_fd, efd;
static __u64 planted[PENDING], ready_ids[READY], victim;
static __u64 start;
static struct shot baseline;
/* Timers come and go by themselves: there is nothing to compare with */
static bool restless;

static char *edge;		/* the end of some pages, nothing after it */
static char *readonly;		/* a page to copy to with readonly_put() */
static char *unmapped;		/* an address where nothing is */
static char *arg;		/* three pages of zeros, for any argument */

/* What goes on by itself, or may: not part of "nothing was changed" */
static void shot_take(struct shot *s)
{
	const int fds[] = { main_fd, fresh_fd, shared_fd };
	int i;

	for (i = 0; i < 3; i++) {
		s->info[i] = wheel_info(fds[i]);
		s->info[i].next_expiry = 0;
		s->stats[i] = wheel_stats(fds[i]);
		s->stats[i].wakeups = 0;
	}
}

static void rebase(void)
{
	shot_take(&baseline);
}

static void unchanged(const char *what, __u64 a, __u64 b)
{
	struct shot s;
	const __u64 *x, *y;
	size_t i;

	if (restless)
		return;
	shot_take(&s);
	if (!memcmp(&s, &baseline, sizeof(s)))
		return;
	x = (const __u64 *)&baseline;
	y = (const __u64 *)&s;
	for (i = 0; i < sizeof(s) / sizeof(*x); i++)
		EXPECT_TRUE(x[i] == y[i],
			    "%s %llx %llx changed word %zu of INFO and STATS from %llu to %llu",
			    what, a, b, i, x[i], y[i]);
	baseline = s;
}

/* A bad call: what it gave, what it was to give; a and b say which it was */
static void bad(long got, long want, const char *what, __u64 a, __u64 b)
{
	EXPECT_EQ(got, want, "%s %llx %llx", what, a, b);
	unchanged(what, a, b);
}

static char *readonly_put(const void *p, size_t size)
{
	if (mprotect(readonly, PAGE, PROT_READ | PROT_WRITE))
		tap_bail("mprotect: %s", strerror(errno));
	memcpy(readonly, p, size);
	if (mprotect(readonly, PAGE, PROT_READ))
		tap_bail("mprotect: %s", strerror(errno));
	return readonly;
}

static __u64 victim_new(void)
{
	return victim = arm(main_fd, 0, HOUR, 0x1234);
}

/*
 * Each ioctl with a good argument. A good call may change something; undo
 * puts back what matters to the tests. The least size is that which was published
 * first, and stays when the structure grows.
 */
struct call {
	const char *name;
	unsigned long cmd;
	size_t least;
	size_t size;
	int *fd;
	bool answers;		/* writes to its argument */
	void (*fill)(void *arg);
	void (*undo)(void *arg);
};

static void fill_none(void *p)
{
	(void)p;
}

static void fill_setup(void *p)
{
	struct twheel_setup s = { .clock = TWHEEL_CLOCK_MONOTONIC };

	memcpy(p, &s, sizeof(s));
}

static void undo_setup(void *p)
{
	(void)p;
	close(fresh_fd);
	fresh_fd = wheel_open(O_NONBLOCK);
}

static struct twheel_op lone_op;

static void fill_submit(void *p)
{
	struct twheel_submit s = {
		.ops = (unsigned long)&lone_op,
		.nr = 1,
		.op_size = sizeof(lone_op),
	};

	lone_op = op_for(TWHEEL_OP_QUERY, planted[1]);
	memcpy(p, &s, sizeof(s));
}

static void fill_drain(void *p)
{
	struct twheel_drain d = {
		.ops = (unsigned long)&lone_op,
		.nr = 0,
		.op_size = sizeof(lone_op),
	};

	memcpy(p, &d, sizeof(d));
}

static void fill_eventfd(void *p)
{
	struct twheel_eventfd e = { .fd = efd };

	memcpy(p, &e, sizeof(e));
}

static void undo_eventfd(void *p)
{
	(void)p;
	EXPECT_EQ(wheel_eventfd(main_fd, -1), 0);
}

static const struct call calls[] = {
	{ "INFO", TWHEEL_IOC_INFO, 112, sizeof(struct twheel_info), &main_fd,
	  true, fill_none, fill_none },
	{ "SETUP", TWHEEL_IOC_SETUP, 40, sizeof(struct twheel_setup), &fresh_fd,
	  false, fill_setup, undo_setup },
	{ "SUBMIT", TWHEEL_IOC_SUBMIT, 24, sizeof(struct twheel_submit), &main_fd,
	  false, fill_submit, fill_none },
	{ "DRAIN", TWHEEL_IOC_DRAIN, 24, sizeof(struct twheel_drain), &main_fd,
	  false, fill_drain, fill_none },
	{ "EVENTFD", TWHEEL_IOC_EVENTFD, 16, sizeof(struct twheel_eventfd),
	  &main_fd, false, fill_eventfd, undo_eventfd },
	{ "STATS", TWHEEL_IOC_STATS, 600, sizeof(struct twheel_stats), &main_fd,
	  true, fill_none, fill_none },
	{ "DOORBELL", TWHEEL_IOC_DOORBELL, 8, sizeof(struct twheel_doorbell),
	  &shared_fd, false, fill_none, fill_none },
};

static void fill(const struct call *c, void *p, __u32 size)
{
	memset(p, 0, c->size);
	c->fill(p);
	memcpy(p, &size, sizeof(size));
}

static long do_call(const struct call *c, void *p)
{
	return wheel_ioctl(*c->fd, c->cmd, p);
}

/* SUBMIT's good call has one operation, and gives 1 */
static void good(const struct call *c, long got, void *p, __u64 a)
{
	if (EXPECT_EQ(got, c->cmd == TWHEEL_IOC_SUBMIT, "%s %llx", c->name, a))
		c->undo(p);
	rebase();
}

/* ---- sizes ---- */

static void try_size(const struct call *c, __u32 size)
{
	long want = size < c->least ? -EINVAL : size > PAGE ? -E2BIG : 0;

	memset(arg, 0, 3 * PAGE);
	fill(c, arg, size);
	if (want)
		bad(do_call(c, arg), want, c->name, size, 0);
	else
		good(c, do_call(c, arg), arg, size);
	if (want || size <= c->size)
		return;
	/* the first, then the last byte of what the kernel doesn't know */
	memset(arg, 0, 3 * PAGE);
	fill(c, arg, size);
	arg[c->size] = 1;
	bad(do_call(c, arg), -E2BIG, c->name, size, 1);
	arg[c->size] = 0;
	fill(c, arg, size);
	arg[size - 1] = 0x80;
	bad(do_call(c, arg), -E2BIG, c->name, size, 2);
}

static void test_sizes(void)
{
	static const __u32 large[] = {
		PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 65535, 65536, 0x7fffffff,
		0x80000000, 0xffffffff,
	};
	size_t i, j;
	__u32 size;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (size = 0; size <= calls[i].size + 2; size++)
			try_size(&calls[i], size);
		for (j = 0; j < ARRAY_SIZE(large); j++)
			try_size(&calls[i], large[j]);
	}
}

/* A program that knows more of INFO is told no more than there is */
static void test_newer(void)
{
	struct twheel_info info = wheel_info(shared_fd);
	__u32 size, i;

	for (size = sizeof(info); size <= 2 * sizeof(info); size += 8) {
		memset(arg, 0, PAGE);
		memcpy(arg, &size, sizeof(size));
		arg[size] = 0x6e;
		bad(wheel_ioctl(shared_fd, TWHEEL_IOC_INFO, arg), 0, "INFO", size, 0);
		info.size = size;
		EXPECT_TRUE(!memcmp(arg, &info, sizeof(info)), "size %u", size);
		for (i = sizeof(info); i < size; i++)
			EXPECT_EQ(arg[i], 0, "size %u, byte %u", size, i);
		EXPECT_EQ(arg[size], 0x6e, "size %u", size);
	}
}

/* ---- addresses of the arguments ---- */

static void try_nowhere(const struct call *c)
{
	char *const nowhere[] = {
		NULL, (char *)1, unmapped, unmapped + 1, edge, edge + 8,
		(char *)0x00007ffffffff000, (char *)0x0000800000000000,
		(char *)0xffff888000000000, (char *)0xffffffff81000000,
		(char *)0xfffffffffffffff8, (char *)-1,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nowhere); i++)
		bad(do_call(c, nowhere[i]), -EFAULT, c->name,
		    (unsigned long)nowhere[i], 0);
}

static void try_edge(const struct call *c)
{
	size_t left;

	for (left = 1; left < c->size; left++) {
		memset(arg, 0, c->size);
		fill(c, arg, c->size);
		memcpy(edge - left, arg, left);
		bad(do_call(c, edge - left), -EFAULT, c->name, left, 0);
	}
	fill(c, edge - c->size, c->size);
	good(c, do_call(c, edge - c->size), edge - c->size, c->size);
	/* a size that reaches over the edge, though all that is known is there */
	fill(c, edge - c->size, c->size + 8);
	bad(do_call(c, edge - c->size), -EFAULT, c->name, c->size, 8);
	fill(c, edge - c->size - 1, c->size);
	good(c, do_call(c, edge - c->size - 1), edge - c->size - 1, 1);
}

static void try_readonly(const struct call *c)
{
	long ret;

	fill(c, arg, c->size);
	ret = do_call(c, readonly_put(arg, c->size));
	if (c->answers)
		bad(ret, -EFAULT, c->name, 0, 0);
	else
		good(c, ret, arg, 0);
}

/*
 * The page ends, and only reading is possible after it, within the structure.
 * What lies before it may be all that the kernel writes; half an operation is
 * what must not be.
 */
static void try_split(const struct call *c)
{
	char *second = map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	size_t left;
	long ret;

	if (!c->answers)
		return;
	for (left = 8; left < c->size; left += 8) {
		char *p = second - left;

		mprotect(second, PAGE, PROT_READ | PROT_WRITE);
		fill(c, p, c->size);
		mprotect(second, PAGE, PROT_READ);
		ret = do_call(c, p);
		if (ret) {
			bad(ret, -EFAULT, c->name, left, 0);
		} else {
			c->undo(p);
			rebase();
		}
	}
	munmap(second - PAGE, 2 * PAGE);
}

static void test_addresses(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		try_nowhere(&calls[i]);
		try_edge(&calls[i]);
		try_readonly(&calls[i]);
		try_split(&calls[i]);
	}
}

/* ---- fields ---- */

static long setup_as(struct twheel_setup s)
{
	s.size = sizeof(s);
	return wheel_ioctl(fresh_fd, TWHEEL_IOC_SETUP, &s);
}

static long setup(__u32 flags, __u32 clock, __u32 shared, __u64 tick)
{
	return setup_as((struct twheel_setup){
		.flags = flags,
		.clock = clock,
		.shared = shared,
		.tick = tick,
	});
}

#define MONOTONIC TWHEEL_CLOCK_MONOTONIC
#define BOOTTIME TWHEEL_CLOCK_BOOTTIME

static void setup_flags(void)
{
	__u32 i;

	for (i = 0; i < 32; i++) {
		if (1U << i != TWHEEL_SETUP_COUNT)
			bad(setup(1U << i, MONOTONIC, 0, 0), -EINVAL, "flag", i, 0);
		if (1U << i != TWHEEL_SETUP_SHARED)
			bad(setup(1U << i, MONOTONIC, 8, 0), -EINVAL, "flag", i, 8);
		bad(setup(0, MONOTONIC, 1U << i, 0), -EINVAL, "shared, no flag", i,
		    0);
		bad(setup(TWHEEL_SETUP_COUNT | TWHEEL_SETUP_SHARED, MONOTONIC,
			  1U << i, 0), -EINVAL, "shared, count mode", i, 0);
		bad(setup_as((struct twheel_setup){
			.clock = MONOTONIC, .__reserved = 1U << i }), -EINVAL,
		    "reserved", i, 0);
	}
}

static bool is_clock(__u32 clock)
{
	return clock == TWHEEL_CLOCK_REALTIME || clock == MONOTONIC ||
	       clock == BOOTTIME || clock == TWHEEL_CLOCK_TAI;
}

static void bad_clock(__u32 clock)
{
	if (is_clock(clock))
		return;
	bad(setup(0, clock, 0, 0), -EINVAL, "clock", clock, 0);
	bad(setup(TWHEEL_SETUP_COUNT, clock, 0, 0), -EINVAL, "clock", clock, 1);
	bad(setup(TWHEEL_SETUP_SHARED, clock, 1, 0), -EINVAL, "clock", clock, 2);
}

/* None is meant by 0, nor by a number of clock_gettime(2) */
static void setup_clocks(void)
{
	__u32 clock, i;

	for (clock = 0; clock < 0x40; clock++) {
		bad_clock(clock);
		bad_clock(clock + 0x100);
		bad_clock(clock + 0x200);
		bad_clock(-clock);
	}
	for (i = 0; i < 32; i++) {
		bad_clock(1U << i);
		bad_clock(1U << i | MONOTONIC);
	}
}

static void setup_event_sizes(void)
{
	static const __u32 large[] = {
		PAGE, 1 << 16, 1 << 31, 0x80000020, 0x7fffffff, 0xffffffff,
	};
	struct twheel_setup s = { .clock = MONOTONIC };
	__u32 i;

	for (i = 0; i < 130 + ARRAY_SIZE(large); i++) {
		s.event_size = i < 130 ? i : large[i - 130];
		s.flags = TWHEEL_SETUP_COUNT;
		if (s.event_size)
			bad(setup_as(s), -EINVAL, "count, event size", s.event_size,
			    0);
		s.flags = 0;
		if (s.event_size % 16 || s.event_size > 32)
			bad(setup_as(s), -EINVAL, "event size", s.event_size, 0);
	}
	for (i = 0; i < 6; i++) {
		s.event_size = i % 3 * 16;
		s.flags = i < 3 ? 0 : TWHEEL_SETUP_SHARED;
		s.shared = i < 3 ? 0 : 9;
		EXPECT_EQ(setup_as(s), 0, "event size %u", s.event_size);
		EXPECT_EQ(wheel_info(fresh_fd).event_size, i % 3 == 1 ? 16 : 32);
		undo_setup(NULL);
	}
	EXPECT_EQ(setup(TWHEEL_SETUP_COUNT, MONOTONIC, 0, 0), 0);
	EXPECT_EQ(wheel_info(fresh_fd).event_size, 8);
	undo_setup(NULL);
	rebase();
}

static void setup_ticks(void)
{
	static const __u64 ticks[] = {
		1, 999, SEC + 1, 2 * SEC, 1ULL << 32, (1ULL << 32) + 1000,
		KTIME_MAX,
	};
	size_t i;
	long ret;

	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		bad(setup(0, MONOTONIC, 0, ticks[i]), -EOPNOTSUPP, "tick",
		    ticks[i], 0);
	/* no time at all, and no tick that is done: the header has both */
	ret = setup(0, MONOTONIC, 0, KTIME_MAX + 1);
	EXPECT_TRUE(ret == -EINVAL || ret == -EOPNOTSUPP, "tick: got %ld", ret);
	ret = setup(0, MONOTONIC, 0, -1);
	EXPECT_TRUE(ret == -EINVAL || ret == -EOPNOTSUPP, "tick: got %ld", ret);
	unchanged("tick", -1, 0);
}

static void test_setup_fields(void)
{
	static const __u32 many[] = {
		0, TWHEEL_SHARED_MAX + 1, 1U << 25, 1U << 31, -1,
	};
	size_t i;

	setup_flags();
	setup_clocks();
	setup_event_sizes();
	setup_ticks();
	for (i = 0; i < ARRAY_SIZE(many); i++)
		bad(setup(TWHEEL_SETUP_SHARED, MONOTONIC, many[i], 0), -EINVAL,
		    "shared", many[i], 0);

	EXPECT_EQ(setup(0, BOOTTIME, 0, 1000), 0, "good after all the bad ones");
	EXPECT_EQ(wheel_info(fresh_fd).clock, BOOTTIME);
	EXPECT_EQ(wheel_info(fresh_fd).tick, 1000);
	undo_setup(NULL);
	EXPECT_EQ(setup(TWHEEL_SETUP_SHARED, MONOTONIC, 1, 0), 0);
	EXPECT_EQ(wheel_info(fresh_fd).shared, 1);
	undo_setup(NULL);
	EXPECT_EQ(setup(0, TWHEEL_CLOCK_REALTIME, 0, SEC), 0);
	EXPECT_EQ(wheel_info(fresh_fd).clock, TWHEEL_CLOCK_REALTIME);
	EXPECT_EQ(wheel_info(fresh_fd).tick, SEC);
	undo_setup(NULL);
	rebase();
}

static void test_setup_twice(void)
{
	__u64 id;

	bad(wheel_setup(main_fd, MONOTONIC, 0, 0, 0), -EBUSY, "after timers", 0,
	    0);
	EXPECT_EQ(setup(0, MONOTONIC, 0, 0), 0);
	rebase();
	bad(setup(0, MONOTONIC, 0, 0), -EBUSY, "twice, the same", 0, 0);
	bad(setup(0, BOOTTIME, 0, 0), -EBUSY, "twice, another clock", 0, 0);
	bad(setup(TWHEEL_SETUP_SHARED, MONOTONIC, 4, 0), -EBUSY, "twice, shared",
	    0, 0);
	undo_setup(NULL);
	id = arm(fresh_fd, 0, HOUR, 0);
	rebase();
	bad(setup(0, MONOTONIC, 0, 0), -EBUSY, "with a timer", 0, 0);
	EXPECT_EQ(cancel(fresh_fd, id), 0);
	rebase();
	bad(setup(0, MONOTONIC, 0, 0), -EBUSY, "after a timer", 0, 0);
	undo_setup(NULL);
	rebase();
}

/* The lengths that an operation may have, and that which is tried */
static const __u32 op_sizes[] = {
	TWHEEL_OP_SIZE_ID, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_FULL,
};

static __u32 op_size = TWHEEL_OP_SIZE_FULL;

/* What failed has its error and its state, and is otherwise as it was given */
static void untouched(struct twheel_op op, struct twheel_op given)
{
	op.result = given.result;
	op.state = given.state;
	EXPECT_TRUE(!memcmp(&op, &given, sizeof(op)),
		    "a bad operation was written over: opcode %u id %llx, was %u %llx",
		    op.opcode, op.id, given.opcode, given.id);
}

/* What of @op is behind its length is in memory behind it */
static long do_op(struct twheel_op op)
{
	struct twheel_op given = op;

	op.result = 0x5a5a5a5a;
	EXPECT_EQ(submit_sized(main_fd, &op, 1, op_size), 1, "SUBMIT");
	if (op.result)
		untouched(op, given);
	return op.result;
}

static void bad_op(struct twheel_op op, long want, const char *what, __u64 a)
{
	bad(do_op(op), want, what, op.opcode, a);
}

static struct twheel_op good_op(__u8 opcode)
{
	struct twheel_op op = op_for(opcode, victim);

	if (opcode <= TWHEEL_OP_MODIFY) {
		op.deadline = HOUR;
		op.user_data = 1;
	}
	return op;
}

static void op_flags(__u8 opcode)
{
	int i;

	for (i = 0; i < 8; i++) {
		struct twheel_op op = good_op(opcode);

		op.flags = 1U << i;
		if (i || opcode > TWHEEL_OP_MODIFY)
			bad_op(op, -EINVAL, "flag", i);
		op.flags |= TWHEEL_ABS;
		if (i || opcode > TWHEEL_OP_MODIFY)
			bad_op(op, -EINVAL, "flag and ABS", i);
	}
}

static void op_deadlines(__u8 opcode)
{
	static const __u64 large[] = {
		KTIME_MAX + 1, KTIME_MAX + 2, 0xc000000000000000, -1,
	};
	struct twheel_op op = good_op(opcode);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		op.flags = 0;
		op.deadline = large[i];
		bad_op(op, -EINVAL, "deadline", large[i]);
		op.flags = TWHEEL_ABS;
		bad_op(op, -EINVAL, "absolute deadline", large[i]);
	}
}

static void op_times(__u8 opcode)
{
	static const __u64 large[] = {
		KTIME_MAX + 1, KTIME_MAX + 2, 0xc000000000000000, -1,
	};
	struct twheel_op op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		op = good_op(opcode);
		op.interval = large[i];
		bad_op(op, -EINVAL, "interval", large[i]);
		op = good_op(opcode);
		op.slack = large[i];
		bad_op(op, -EINVAL, "slack", large[i]);
		op = good_op(opcode);
		op.jitter = large[i];
		bad_op(op, -EINVAL, "jitter", large[i]);
	}
	op = good_op(opcode);
	op.interval = 5;
	op.jitter = 6;
	bad_op(op, -EINVAL, "jitter over interval", 6);
	op.interval = KTIME_MAX - 1;
	op.jitter = KTIME_MAX;
	bad_op(op, -EINVAL, "jitter over interval", KTIME_MAX);
	for (i = 0; i < 64; i++) {
		op = good_op(opcode);
		op.__reserved = 1ULL << i;
		bad_op(op, -EINVAL, "reserved", i);
	}
}

/* CANCEL takes the id alone: whatever is there behind it must be 0 */
static void op_extra(void)
{
	size_t at, i;

	for (at = TWHEEL_OP_SIZE_ID; at < sizeof(struct twheel_op); at += 8) {
		for (i = 0; i < 64; i++) {
			struct twheel_op op = good_op(TWHEEL_OP_CANCEL);

			*(__u64 *)((char *)&op + at) = 1ULL << i;
			if (at < op_size) {
				bad_op(op, -EINVAL, "rest of CANCEL", at << 8 | i);
				continue;
			}
			EXPECT_EQ(do_op(op), 0, "size %u, %zu behind it", op_size,
				  at);
			victim_new();
			rebase();
		}
	}
}

/* Too short for a deadline, whatever comes behind it */
static void op_too_short(void)
{
	struct twheel_op op;
	__u8 opcode;

	for (opcode = TWHEEL_OP_ARM; opcode <= TWHEEL_OP_MODIFY; opcode++) {
		op = good_op(opcode);
		bad_op(op, -EINVAL, "too short", 0);
		op.flags = TWHEEL_ABS;
		bad_op(op, -EINVAL, "too short", 1);
		op.id = 0;
		bad_op(op, -EINVAL, "too short", 2);
	}
}

static void op_fields(__u32 size)
{
	op_size = size;
	op_flags(TWHEEL_OP_ARM);
	op_flags(TWHEEL_OP_MODIFY);
	op_flags(TWHEEL_OP_CANCEL);
	op_flags(TWHEEL_OP_QUERY);
	op_extra();
	if (size == TWHEEL_OP_SIZE_ID) {
		op_too_short();
	} else {
		op_deadlines(TWHEEL_OP_ARM);
		op_deadlines(TWHEEL_OP_MODIFY);
	}
	if (size == TWHEEL_OP_SIZE_FULL) {
		op_times(TWHEEL_OP_ARM);
		op_times(TWHEEL_OP_MODIFY);
	}
	op_size = TWHEEL_OP_SIZE_FULL;
}

static void test_op_fields(void)
{
	op_fields(TWHEEL_OP_SIZE_FULL);
}

static void test_op_fields_once(void)
{
	op_fields(TWHEEL_OP_SIZE_ONCE);
}

static void test_op_fields_id(void)
{
	op_fields(TWHEEL_OP_SIZE_ID);
}

/* What an operation is too short for is 0, whatever comes behind it */
static void test_behind_it(void)
{
	struct twheel_op op = op_arm(0, HOUR, 5), told;
	int i;

	op.interval = -1;
	op.slack = -1;
	op.jitter = -1;
	op.__reserved = -1;
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(op_prefix(main_fd, &op, TWHEEL_OP_SIZE_ONCE), 0);
		EXPECT_EQ(op.interval & op.slack & op.jitter & op.__reserved, -1);
		EXPECT_EQ(query(main_fd, op.id, &told), 0);
		EXPECT_EQ(told.user_data, 5 + i);
		EXPECT_EQ(told.interval | told.slack | told.jitter | told.__reserved,
			  0);
		op.opcode = TWHEEL_OP_MODIFY;
		op.user_data++;
	}
	/* MODIFY of a periodic one makes it one that expires once */
	op.interval = HOUR;
	op.slack = 0;
	op.jitter = 0;
	op.__reserved = 0;
	EXPECT_EQ(op_single(main_fd, &op), 0);
	EXPECT_EQ(query(main_fd, op.id, &told), 0);
	EXPECT_EQ(told.interval, HOUR);
	EXPECT_EQ(op_prefix(main_fd, &op, TWHEEL_OP_SIZE_ONCE), 0);
	EXPECT_EQ(query(main_fd, op.id, &told), 0);
	EXPECT_EQ(told.interval, 0);
	EXPECT_EQ(op_prefix(main_fd, &op, TWHEEL_OP_SIZE_ID), -EINVAL);
	EXPECT_EQ(cancel(main_fd, op.id), 0);
	rebase();
}

static void test_opcodes(void)
{
	struct twheel_op op = op_for(0, victim);
	__u32 opcode;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op_sizes); i++) {
		op_size = op_sizes[i];
		for (opcode = 0; opcode < 256; opcode++) {
			op.opcode = opcode;
			if (!opcode || opcode > TWHEEL_OP_QUERY)
				bad_op(op, -EINVAL, "opcode", opcode);
		}
	}
}

/* What is only handed out may hold anything on the way in */
static void test_ignored(void)
{
	struct twheel_info info;
	struct twheel_stats stats;
	struct twheel_op op;

	memset(&info, 0xff, sizeof(info));
	info.size = sizeof(info);
	bad(wheel_ioctl(main_fd, TWHEEL_IOC_INFO, &info), 0, "INFO", 0, 0);
	EXPECT_EQ(info.__reserved, 0);
	memset(&stats, 0xff, sizeof(stats));
	stats.size = sizeof(stats);
	bad(wheel_ioctl(main_fd, TWHEEL_IOC_STATS, &stats), 0, "STATS", 0, 0);
	EXPECT_EQ(stats.__reserved, 0);

	memset(&op, 0xff, sizeof(op));
	op.opcode = TWHEEL_OP_QUERY;
	op.flags = 0;
	op.id = planted[2];
	bad(op_single(main_fd, &op), 0, "QUERY", 0, 0);
	EXPECT_EQ(op.deadline, start + HOUR + 2 * SEC);
	EXPECT_EQ(op.user_data, 2);
	EXPECT_EQ(op.interval | op.slack | op.jitter | op.__reserved, 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_PENDING);

	op = op_arm(0, HOUR, 3);
	op.id = planted[2];
	op.result = -1;
	op.state = 77;
	EXPECT_EQ(op_single(main_fd, &op), 0, "ARM");
	EXPECT_TRUE(op.id != planted[2], "ARM gives an id of its own");
	EXPECT_EQ(op.state, TWHEEL_STATE_NONE);
	EXPECT_EQ(cancel(main_fd, op.id), 0);
	rebase();
}

static void test_largest_times(void)
{
	struct twheel_op op;
	int i;

	for (i = 0; i < 16; i++) {
		op = op_arm(i & 1 ? TWHEEL_ABS : 0, KTIME_MAX, 3);
		if (i & 2)
			op.interval = KTIME_MAX;
		if (i & 4)
			op.slack = KTIME_MAX;
		if (i & 8)
			op.jitter = KTIME_MAX;
		EXPECT_EQ(op_single(main_fd, &op), 0, "ARM %d", i);
		EXPECT_EQ(query(main_fd, op.id, &op), 0, "QUERY %d", i);
		EXPECT_EQ(op.state, TWHEEL_STATE_PENDING, "%d", i);
		EXPECT_EQ(op.deadline, KTIME_MAX, "sum saturates, %d", i);
		op.opcode = TWHEEL_OP_MODIFY;
		op.flags = i & 1 ? TWHEEL_ABS : 0;
		EXPECT_EQ(op_single(main_fd, &op), 0, "MODIFY %d", i);
		EXPECT_EQ(query(main_fd, op.id, &op), 0, "QUERY %d", i);
		EXPECT_EQ(op.deadline, KTIME_MAX, "sum saturates, %d", i);
		EXPECT_EQ(cancel(main_fd, op.id), 0, "CANCEL %d", i);
	}
	rebase();
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

/* ---- ids ---- */

static void bad_id(__u64 id, const char *what, __u64 a)
{
	struct twheel_op op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op_sizes); i++) {
		op_size = op_sizes[i];
		op = good_op(TWHEEL_OP_MODIFY);
		op.id = id;
		if (op_size > TWHEEL_OP_SIZE_ID)
			bad_op(op, -ENOENT, what, a);
		op = op_for(TWHEEL_OP_CANCEL, id);
		bad_op(op, -ENOENT, what, a);
		op = op_for(TWHEEL_OP_QUERY, id);
		bad_op(op, -ENOENT, what, a);
	}
}

static bool is_live(__u64 id)
{
	int i;

	for (i = 0; i < PENDING; i++)
		if (planted[i] == id)
			return true;
	for (i = 0; i < READY; i++)
		if (ready_ids[i] == id)
			return true;
	return id == victim;
}

static void made_up(__u64 id, const char *what, __u64 a)
{
	if (!is_live(id))
		bad_id(id, what, a);
}

static void made_up_from(__u64 id)
{
	static const __u64 steps[] = {
		1, 2, 3, 4, 64, 4096, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 1,
		2ULL << 32, 3ULL << 32, 1ULL << 63,
	};
	size_t i, j;

	for (i = 0; i < 64; i++)
		made_up(id ^ 1ULL << i, "bit flipped", i);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		made_up(id + steps[i], "more", steps[i]);
		made_up(id - steps[i], "less", steps[i]);
	}
	made_up(id << 32 | id >> 32, "halves swapped", id);
	made_up(id & 0xffffffff, "lower half", id);
	made_up(id >> 32 << 32, "upper half", id);
	made_up(id | 0xffffffff, "upper half, index of ones", id);
	made_up(id | 0xffffffffULL << 32, "lower half, ones above", id);
	/* the generation of one timer with the index of another */
	for (j = 1; j < 5; j++) {
		made_up((id & 0xffffffff) | (planted[j] >> 32 << 32), "mix", j);
		made_up((planted[j] & 0xffffffff) | (id >> 32 << 32), "mix", j);
	}
}

static void test_made_up_ids(void)
{
	static const __u64 ids[] = {
		0, -1, 1, 2, 3, 0x100000000, 0x100000001, 0xffffffff,
		0xffffffff00000000, 0x8000000000000000, 0x7fffffffffffffff,
		0xfffffffe, 0x80000000, 0x7fffffff, 1 << 24, (1 << 24) - 1,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		made_up(ids[i], "made up", ids[i]);
	made_up_from(planted[0]);
	made_up_from(planted[PENDING - 1]);
	made_up_from(victim);
	made_up_from(ready_ids[0]);
}

static void test_used_up_ids(void)
{
	__u64 old[300];
	struct twheel_event ev;
	struct twheel_op op;
	size_t i, j, n = 0;
	__u64 last;

	for (i = 0; i < 100; i++) {
		old[n] = arm(fresh_fd, 0, HOUR, i);
		EXPECT_EQ(cancel(fresh_fd, old[n++]), 0);
		old[n] = arm_past(fresh_fd, i);
		EXPECT_EQ(read_events(fresh_fd, &ev, 1), 1);
		EXPECT_EQ(ev.id, old[n++]);
		old[n] = arm(fresh_fd, 0, HOUR, i);
		EXPECT_EQ(drain(fresh_fd, &op, 1), 1);
		EXPECT_EQ(op.id, old[n++]);
	}
	/* the place of one of them is taken again */
	last = arm(fresh_fd, 0, HOUR, 0xabc);
	for (i = 0; i < n; i++) {
		EXPECT_TRUE(old[i] != last, "id %zu given twice", i);
		for (j = 0; j < i; j++)
			EXPECT_TRUE(old[i] != old[j], "id %zu given twice", i);
	}
	rebase();
	for (i = 0; i < n; i++) {
		bad(cancel(fresh_fd, old[i]), -ENOENT, "used up", i, 1);
		bad(query(fresh_fd, old[i], &op), -ENOENT, "used up", i, 2);
		op = op_arm(0, 1, 1);
		op.opcode = TWHEEL_OP_MODIFY;
		op.id = old[i];
		bad(op_single(fresh_fd, &op), -ENOENT, "used up", i, 3);
	}
	for (i = 0; i < 64; i++)
		bad(cancel(fresh_fd, last ^ 1ULL << i), -ENOENT, "bit", i, 0);
	EXPECT_EQ(query(fresh_fd, last, &op), 0);
	EXPECT_EQ(op.user_data, 0xabc);
	undo_setup(NULL);
	rebase();
}

/* A wheel knows its own timers only */
static void test_other_wheels_ids(void)
{
	int i;

	for (i = 0; i < PENDING; i++) {
		bad(cancel(fresh_fd, planted[i]), -ENOENT, "fresh", i, 0);
		bad(cancel(empty_fd, planted[i]), -ENOENT, "emptied", i, 0);
	}
	for (i = 0; i < READY; i++)
		bad(cancel(fresh_fd, ready_ids[i]), -ENOENT, "fresh", i, 1);
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

static bool is_op_size(__u32 size)
{
	return size == 16 || size == 32 || size == 64;
}

static void batch_fields(long (*call)(__u32, void *, __u32, __u32),
			 const char *name)
{
	static const __u32 large[] = {
		1000, 1024, PAGE, PAGE + 1, 2 * PAGE, 65536, 65536 + 64,
		0x7fffffff, 0x80000000, 0x80000040, 0xffffffff,
	};
	struct twheel_op op = op_arm(0, HOUR, 9);
	__u32 size;
	size_t i, s;

	for (i = 0; i < 300 + ARRAY_SIZE(large); i++) {
		size = i < 300 ? i : large[i - 300];
		if (is_op_size(size))
			continue;
		bad(call(0, &op, 1, size), -EINVAL, name, size, 1);
		bad(call(0, &op, 0, size), -EINVAL, name, size, 2);
		bad(call(0, NULL, 1, size), -EINVAL, name, size, 3);
	}
	for (s = 0; s < ARRAY_SIZE(op_sizes); s++) {
		size = op_sizes[s];
		for (i = 0; i < 32; i++)
			bad(call(1U << i, &op, 1, size), -EINVAL, name, i, 0);
		bad(call(0, &op, 0x80000000, size), -EINVAL, name, size, 4);
		bad(call(0, &op, 0xffffffff, size), -EINVAL, name, size, 5);
		bad(call(0, &op, 0, size), 0, name, size, 6);
		for (i = 0; i < 5; i++) {
			char *const nowhere[] = {
				NULL, unmapped, (char *)-64,
				(char *)0xffff888000000000,
				(char *)0x0000800000000000,
			};

			bad(call(0, nowhere[i], 1, size), -EFAULT, name, i, 7);
			bad(call(0, nowhere[i], 20, size), -EFAULT, name, i, 8);
			bad(call(0, nowhere[i], 0x7fffffff, size), -EFAULT, name, i,
			    9);
		}
	}
}

static void test_submit_fields(void)
{
	batch_fields(submit_raw, "SUBMIT");
}

static void test_drain_fields(void)
{
	batch_fields(drain_raw, "DRAIN");
}

/* QUERY tells so much as there is room for, and writes nothing behind it */
static void query_prefix(__u32 size)
{
	struct twheel_op whole, op, before;

	EXPECT_EQ(query(main_fd, planted[3], &whole), 0);
	memset(&op, 0xee, sizeof(op));
	op.opcode = TWHEEL_OP_QUERY;
	op.flags = 0;
	op.id = planted[3];
	before = op;
	bad(op_prefix(main_fd, &op, size), 0, "QUERY", size, 0);
	EXPECT_TRUE(!memcmp(&op, &whole, size), "size %u", size);
	EXPECT_TRUE(!memcmp((char *)&op + size, (char *)&before + size,
			    sizeof(op) - size), "behind it, size %u", size);
}

/* A bad one among three, close behind each other, at any address */
static void packed(__u32 size, char *p)
{
	struct twheel_op op = op_for(TWHEEL_OP_QUERY, 0);
	int i;

	for (i = 0; i < 3; i++) {
		op.id = i == 1 ? 0 : planted[3 + i];
		memcpy(p + i * size, &op, size);
	}
	bad(submit_raw(0, p, 3, size), 3, "packed", size, -(unsigned long)p % 64);
	for (i = 0; i < 3; i++) {
		memset(&op, 0, sizeof(op));
		memcpy(&op, p + i * size, size);
		EXPECT_EQ(op.result, i == 1 ? -ENOENT : 0, "size %u, %d", size, i);
		EXPECT_EQ(op.state, i == 1 ? TWHEEL_STATE_NONE : TWHEEL_STATE_PENDING);
		if (size > 16 && i != 1)
			EXPECT_EQ(op.user_data, 3 + i, "size %u", size);
	}
}

static void test_each_length(void)
{
	size_t s, i;

	for (s = 0; s < ARRAY_SIZE(op_sizes); s++) {
		query_prefix(op_sizes[s]);
		for (i = 0; i < 64; i++)
			packed(op_sizes[s], edge - 3 * op_sizes[s] - i);
	}
}

/* What was answered can be asked again: only "out" fields are written */
static void test_query_again(void)
{
	struct twheel_op op = op_for(TWHEEL_OP_QUERY, planted[3]), first;

	EXPECT_EQ(op_single(main_fd, &op), 0);
	EXPECT_EQ(op.flags, 0);
	first = op;
	EXPECT_EQ(op_single(main_fd, &op), 0, "a second time");
	EXPECT_TRUE(!memcmp(&op, &first, sizeof(op)));
	EXPECT_EQ(submit(main_fd, &op, 1), 1);
	EXPECT_EQ(submit(main_fd, &op, 1), 1);
	EXPECT_EQ(op.result, 0, "a second time in SUBMIT");
	EXPECT_EQ(op.opcode, TWHEEL_OP_QUERY);
}

/* A bad one does not stop the others, and gets its own error */
static void test_mixed_batch(void)
{
	struct twheel_op ops[64];
	long want[64];
	int i;

	for (i = 0; i < 64; i++) {
		ops[i] = op_arm(0, HOUR, i);
		ops[i].result = 0x5a5a;
		want[i] = 0;
		if (i % 4 == 1) {
			ops[i].flags = 0x80;
			want[i] = -EINVAL;
		} else if (i % 4 == 2) {
			ops[i] = op_for(TWHEEL_OP_CANCEL, -1ULL - i);
			want[i] = -ENOENT;
		} else if (i % 4 == 3) {
			ops[i].opcode = 99;
			want[i] = -EINVAL;
		}
	}
	EXPECT_EQ(submit(main_fd, ops, 64), 64);
	for (i = 0; i < 64; i++)
		EXPECT_EQ(ops[i].result, want[i], "operation %d", i);
	for (i = 0; i < 64; i += 4)
		EXPECT_EQ(cancel(main_fd, ops[i].id), 0, "operation %d", i);
	rebase();
}

static void fill_array(char *p, int nr, size_t size)
{
	int i;

	for (i = 0; i < nr; i++) {
		struct twheel_op op = op_arm(0, HOUR, 100 + i);

		memcpy(p + i * size, &op, size);
	}
}

/* So many were done: they count, and they are there */
static void undo_array(const char *p, size_t size, long done)
{
	struct twheel_op op;
	long i;

	EXPECT_EQ(wheel_info(main_fd).pending,
		  baseline.info[0].pending + done);
	for (i = 0; i < done; i++) {
		memcpy(&op, p + i * size, size);
		EXPECT_EQ(op.result, 0, "operation %ld of %ld", i, done);
		EXPECT_EQ(cancel(main_fd, op.id), 0, "operation %ld", i);
	}
	rebase();
}

/* So many bytes of the array are there: whole elements are done */
static void submit_cut(const char *copy, size_t size, size_t left)
{
	const long whole = left / size;
	char *p = edge - left;
	long want = whole ? whole : -EFAULT;

	memcpy(p, copy, left);
	EXPECT_EQ(submit_raw(0, p, whole + 1, size), want, "%zu there", left);
	undo_array(p, size, whole);
	memcpy(p, copy, left);
	EXPECT_EQ(submit_raw(0, p, 0x7fffffff, size), want, "%zu there", left);
	undo_array(p, size, whole);
}

/*
 * So many bytes of it can be written. An element that has room there for all
 * that is handed out may be done.
 */
static void submit_cut_writing(const char *copy, size_t size, size_t left)
{
	const size_t out = offsetof(struct twheel_op, deadline);
	const long whole = left / size;
	char *second = map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	char *p = second - left;
	long done;

	memcpy(p, copy, 4 * size);
	mprotect(second, PAGE, PROT_READ);
	done = submit_raw(0, p, 4, size);
	if (done < 0) {
		EXPECT_EQ(done, -EFAULT, "%zu writable", left);
		done = 0;
	}
	EXPECT_TRUE(done == whole || (left % size >= out && done == whole + 1),
		    "size %zu, %zu writable: %ld done", size, left, done);
	undo_array(p, size, done);
	EXPECT_TRUE(!memcmp(second, copy + left, 4 * size - left),
		    "size %zu, %zu writable: the rest is as before", size, left);
	munmap(second - PAGE, 2 * PAGE);
}

/* The array ends, or can't be written, from a byte of it on */
static void submit_cuts(size_t size)
{
	char copy[4 * sizeof(struct twheel_op)];
	size_t left;

	fill_array(copy, 4, size);
	for (left = 0; left <= 3 * size; left++) {
		submit_cut(copy, size, left);
		submit_cut_writing(copy, size, left);
	}
}

static void test_submit_faults(void)
{
	submit_cuts(TWHEEL_OP_SIZE_ONCE);
	submit_cuts(TWHEEL_OP_SIZE_FULL);
}

/* In memory that can be read, and written only after a fault, as after fork() */
static void test_submit_lazy(void)
{
	static const __u32 lengths[] = { TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_FULL };
	int file = memfd_create("operations", MFD_CLOEXEC);
	char copy[4 * sizeof(struct twheel_op)];
	size_t i, size;
	char *p;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		size = lengths[i];
		fill_array(copy, 4, size);
		if (pwrite(file, copy, 4 * size, 0) != (ssize_t)(4 * size))
			tap_bail("memfd: %s", strerror(errno));
		p = mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
		if (p == MAP_FAILED)
			tap_bail("mmap: %s", strerror(errno));
		EXPECT_EQ(submit_raw(0, p, 4, size), 4, "size %zu", size);
		undo_array(p, size, 4);
		munmap(p, 4 * size);
	}
	close(file);
}

static void submit_to_readonly(struct twheel_op op, const char *what)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op_sizes); i++)
		bad(submit_raw(0, readonly_put(&op, sizeof(op)), 1, op_sizes[i]),
		    -EFAULT, what, op.opcode, op_sizes[i]);
}

/* An operation that can't report must not be done: each kind of it */
static void test_submit_readonly(void)
{
	struct twheel_op op;
	__u8 opcode;

	for (opcode = 0; opcode <= 5; opcode++) {
		op = good_op(opcode);
		submit_to_readonly(op, "opcode");
		op.id = ready_ids[0];
		if (opcode == TWHEEL_OP_CANCEL || opcode == TWHEEL_OP_MODIFY)
			submit_to_readonly(op, "of a ready timer");
		op.id = 12345;
		submit_to_readonly(op, "with a bad id");
	}
}

static void drain_faults(size_t size)
{
	struct twheel_drain d = { .size = sizeof(d), .nr = 4, .op_size = size };
	char ops[4 * sizeof(struct twheel_op)];
	size_t left, i;
	int fd = wheel_open(O_NONBLOCK);

	for (left = 0; left < 4; left++)
		arm(fd, 0, HOUR, left);
	for (left = 0; left <= 3 * size; left++) {
		long want = left / size ? (long)(left / size) : -EFAULT;

		d.ops = (unsigned long)(edge - left);
		EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &d), want,
			  "size %zu, %zu bytes there", size, left);
		if (want < 0)
			want = 0;
		EXPECT_EQ(wheel_info(fd).pending, 4 - want, "%zu", left);
		memcpy(ops, edge - left, want * size);
		if (size > TWHEEL_OP_SIZE_ID && want)
			EXPECT_EQ(submit_sized(fd, ops, want, size), want);
		for (i = 0; size == TWHEEL_OP_SIZE_ID && i < (size_t)want; i++)
			arm(fd, 0, HOUR, 0);
		d.ops = (unsigned long)readonly_put(ops, 1);
		EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &d), -EFAULT);
		EXPECT_EQ(wheel_info(fd).pending, 4);
	}
	d.ops = (unsigned long)ops;
	EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &d), 4);
	for (i = left = 0; i < 4 && size > TWHEEL_OP_SIZE_ID; i++)
		left += ((struct twheel_op *)(ops + i * size))->user_data;
	EXPECT_EQ(left, size > TWHEEL_OP_SIZE_ID ? 6 : 0);
	EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &d), 0);
	/* with nothing to hand out nothing is wrong with the array */
	EXPECT_EQ(wheel_info(fd).pending, 0);
	close(fd);
}

static void test_drain_faults(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op_sizes); i++)
		drain_faults(op_sizes[i]);
}

/* ---- the address 0 ---- */

/* It is an address like any other for who may map it: what was done is told there. */
static void test_null(void)
{
	struct twheel_op *ops = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	struct twheel_submit arg = {
		.size = sizeof(arg),
		.nr = 2,
		.op_size = sizeof(*ops),
	};
	int fd = wheel_open(O_NONBLOCK);

	if (ops == MAP_FAILED)
		tap_bail("mmap of the page 0: %s", strerror(errno));
	/* (What the compiler knows of NULL does not matter then.) */
	__asm__ volatile("" : "+r" (ops));
	ops[0] = op_arm(0, HOUR, 1);
	ops[1] = op_for(TWHEEL_OP_CANCEL, 12345);
	ops[1].result = 1;
	EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_SUBMIT, &arg), 2);
	EXPECT_EQ(ops[1].result, -ENOENT);
	EXPECT_TRUE(ops[0].id, "no id was told");
	EXPECT_EQ(cancel(fd, ops[0].id), 0);
	munmap(ops, PAGE);
	close(fd);
}

/* ---- the end of all addresses ---- */

/*
 * The end of all addresses that a program can have: there the kernel says no before
 * it tries. (Where that is differs. In any case nothing comes after what is mapped.)
 */
static char *map_top(void)
{
	char *p = MAP_FAILED;
	int bits;

	for (bits = 57; bits > 30 && p == MAP_FAILED; bits--)
		p = mmap((char *)(1UL << bits) - 2 * PAGE, PAGE,
			 PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		tap_bail("mmap at the top: %s", strerror(errno));
	return p + PAGE;
}

static void test_top(void)
{
	char *bottom = edge;
	size_t i;

	edge = map_top();
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		try_edge(&calls[i]);
	for (i = 0; i < ARRAY_SIZE(op_sizes); i++) {
		drain_faults(op_sizes[i]);
		if (op_sizes[i] > TWHEEL_OP_SIZE_ID)
			submit_cuts(op_sizes[i]);
	}
	munmap(edge - PAGE, PAGE);
	edge = bottom;
}

/* ---- eventfd ---- */

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
	int null = open("/dev/null", O_RDWR);
	int pipes[2];
	int i;

	if (null < 0 || pipe(pipes))
		tap_bail("pipe and /dev/null: %s", strerror(errno));
	for (i = 0; i < 32; i++) {
		bad(set_eventfd(1U << i, efd, 0), -EINVAL, "flag", i, 0);
		bad(set_eventfd(0, efd, 1U << i), -EINVAL, "reserved", i, 0);
	}
	bad(set_eventfd(0, 1000, 0), -EBADF, "not open", 0, 0);
	bad(set_eventfd(0, -2, 0), -EBADF, "not open", -2, 0);
	bad(set_eventfd(0, -100, 0), -EBADF, "not open", -100, 0);
	bad(set_eventfd(0, 0x7fffffff, 0), -EBADF, "not open", 0, 0);
	bad(set_eventfd(0, null, 0), -EINVAL, "/dev/null", 0, 0);
	bad(set_eventfd(0, pipes[0], 0), -EINVAL, "pipe", 0, 0);
	bad(set_eventfd(0, main_fd, 0), -EINVAL, "the wheel", 0, 0);
	bad(set_eventfd(0, -1, 0), -ENOENT, "none to end", 0, 0);
	EXPECT_EQ(set_eventfd(0, efd, 0), 0);
	bad(set_eventfd(0, efd, 0), -EBUSY, "twice", 0, 0);
	EXPECT_EQ(set_eventfd(0, -1, 0), 0);
	bad(set_eventfd(0, -1, 0), -ENOENT, "ended already", 0, 0);
	close(null);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- what is no call of this device ---- */

static void test_unknown_ioctls(void)
{
	static const unsigned int sizes[] = { 0, 1, 4, 8, 16, 24, 32, 40, 64, 112 };
	unsigned int nr, dir;
	size_t i;

	memset(arg, 0, PAGE);
	for (nr = 7; nr < 256; nr++)
		bad(wheel_ioctl(main_fd, _IO(TWHEEL_IOC_TYPE, nr), arg),
		    -ENOTTY, "number", nr, 0);
	for (nr = 0; nr < 7; nr++) {
		bad(wheel_ioctl(main_fd, _IO(TWHEEL_IOC_TYPE + 1, nr), arg),
		    -ENOTTY, "type", nr, 1);
		bad(wheel_ioctl(main_fd, _IO(TWHEEL_IOC_TYPE - 1, nr), arg),
		    -ENOTTY, "type", nr, 2);
		for (dir = 0; dir < 4; dir++)
			for (i = !dir; i < ARRAY_SIZE(sizes); i++)
				bad(wheel_ioctl(main_fd,
						_IOC(dir, TWHEEL_IOC_TYPE, nr,
						     sizes[i]), arg),
				    -ENOTTY, "direction and size", dir << 8 | nr,
				    sizes[i]);
	}
	bad(wheel_ioctl(main_fd, 0x5401, arg), -ENOTTY, "TCGETS", 0, 0);
	bad(wheel_ioctl(main_fd, 0x541b, arg), -ENOTTY, "FIONREAD", 0, 0);
	bad(wheel_ioctl(main_fd, 0xffffffff, arg), -ENOTTY, "ones", 0, 0);
}

static long doorbell(int fd, __u32 flags)
{
	struct twheel_doorbell d = { .size = sizeof(d), .flags = flags };

	return wheel_ioctl(fd, TWHEEL_IOC_DOORBELL, &d);
}

static void test_doorbell_fields(void)
{
	int i;

	EXPECT_EQ(doorbell(shared_fd, 0), 0);
	for (i = 0; i < 32; i++)
		bad(doorbell(shared_fd, 1U << i), -EINVAL, "flag", i, 0);
	bad(doorbell(main_fd, 0), -EINVAL, "no shared timers", 0, 0);
	bad(doorbell(fresh_fd, 0), -EINVAL, "not set up", 0, 0);
	/* and it is as it was: it can still be set up */
	EXPECT_EQ(setup(0, BOOTTIME, 0, 1000), 0);
	undo_setup(NULL);
	rebase();
}

static void test_other_calls(void)
{
	long ret;

	ret = write(main_fd, arg, 64) < 0 ? -errno : 0;
	bad(ret, -EINVAL, "write", 0, 0);
	ret = lseek(main_fd, 0, SEEK_SET) < 0 ? -errno : 0;
	bad(ret, -ESPIPE, "lseek", 0, 0);
	ret = pread(main_fd, arg, 64, 0) < 0 ? -errno : 0;
	bad(ret, -ESPIPE, "pread", 0, 0);
	ret = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, main_fd, 0) == MAP_FAILED ?
	      -errno : 0;
	bad(ret, -ENODEV, "mmap", 0, 0);
}

/* ---- nothing was lost in all that ---- */

static void test_nothing_lost(void)
{
	struct twheel_event ev[PENDING + READY + 8];
	struct twheel_op op;
	int seen[PENDING + READY] = { 0 };
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
	for (i = 0; i < PENDING + READY; i++)
		EXPECT_EQ(seen[i], 1, "events of timer %ld", i);
	EXPECT_EQ(read_events(main_fd, ev, 1), -EAGAIN);
}

static void plant(void)
{
	struct twheel_op op;
	int i;

	main_fd = wheel_open(O_NONBLOCK);
	fresh_fd = wheel_open(O_NONBLOCK);
	empty_fd = wheel_open(O_NONBLOCK);
	if (has_module())
		EXPECT_EQ(setup(TWHEEL_SETUP_SHARED, MONOTONIC, 100, 0), 0);
	shared_fd = fresh_fd;
	fresh_fd = wheel_open(O_NONBLOCK);
	start = now(CLOCK_MONOTONIC);
	for (i = 0; i < PENDING; i++) {
		op = op_arm(TWHEEL_ABS, start + HOUR + i * SEC, i);
		op.interval = i % 4 == 3 ? HOUR : 0;
		planted[i] = arm_op(main_fd, op);
	}
	for (i = 0; i < READY; i++)
		ready_ids[i] = arm_past(main_fd, PENDING + i);
	for (i = 0; i < PENDING; i++)
		arm(empty_fd, 0, HOUR, i);
	for (i = 0; i < PENDING; i++)
		EXPECT_EQ(drain(empty_fd, &op, 1), 1);
	victim_new();
	rebase();
}

/* The same bad calls while timers expire: each event is read exactly once */
#define BUSY 4000

static void test_while_busy(void)
{
	/* numbered like the planted ones, which are ready from the start */
	static struct twheel_event ev[READY + BUSY];
	static unsigned char seen[PENDING + READY + BUSY];
	size_t i, n;

	for (i = 0; i < BUSY; i++)
		arm(main_fd, 0, i % 1000 * 2 * MSEC, PENDING + READY + i);
	restless = true;
	test_sizes();
	test_addresses();
	test_op_fields();
	test_op_fields_once();
	test_op_fields_id();
	test_submit_fields();
	test_submit_readonly();
	test_unknown_ioctls();
	restless = false;
	n = collect(main_fd, ev, READY + BUSY);
	for (i = 0; i < n; i++)
		if (EXPECT_TRUE(ev[i].user_data < sizeof(seen), "user data"))
			seen[ev[i].user_data]++;
	for (i = 0; i < sizeof(seen); i++)
		EXPECT_EQ(seen[i], i >= PENDING, "events of timer %zu", i);
	EXPECT_EQ(read_events(main_fd, ev, 1), -EAGAIN);
	EXPECT_EQ(wheel_info(main_fd).pending, PENDING + 1);
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
	RUN(test_newer, "a program that knows more");
	RUN(test_addresses, "every address of every structure");
	RUN(test_null, "operations at the address 0");
	RUN(test_top, "structures at the end of all addresses");
	RUN(test_setup_fields, "every field of SETUP");
	RUN(test_setup_twice, "SETUP twice, or after a timer");
	RUN(test_op_fields, "every field of an operation");
	RUN(test_op_fields_once, "every field of an operation of 32 bytes");
	RUN(test_op_fields_id, "every field of an operation of 16 bytes");
	RUN(test_behind_it, "what an operation is too short for");
	RUN(test_opcodes, "every opcode");
	RUN(test_ignored, "what is only handed out is not looked at");
	RUN(test_largest_times, "the largest times are times, and sums saturate");
	RUN(test_last_period, "a period that ends with all time");
	RUN(test_made_up_ids, "ids that were never given out");
	RUN(test_used_up_ids, "ids that are used up");
	RUN(test_other_wheels_ids, "ids of another wheel");
	RUN(test_submit_fields, "every field of SUBMIT");
	RUN(test_drain_fields, "every field of DRAIN");
	RUN(test_each_length, "operations of each length, at any address");
	RUN(test_query_again, "QUERY can be asked again with its answer");
	RUN(test_mixed_batch, "a bad operation does not stop the others");
	RUN(test_submit_faults, "SUBMIT of an array that ends too soon");
	RUN(test_submit_lazy, "SUBMIT of an array that is written for the first time");
	RUN(test_submit_readonly, "operations that can't report are not done");
	RUN(test_drain_faults, "DRAIN into an array that ends too soon");
	RUN(test_eventfd_fields, "every field of EVENTFD");
	RUN(test_doorbell_fields, "every field of DOORBELL");
	RUN(test_unknown_ioctls, "unknown ioctls");
	RUN(test_other_calls, "system calls that a wheel doesn't do");
	RUN(test_nothing_lost, "every planted timer is still there, once");
	plant();
	RUN(test_while_busy, "bad calls while timers expire lose no event");
	return tap_end();
}
