// SPDX-License-Identifier: GPL-2.0
/*
 * What bad input gets: the error table of the uapi header, line by line, and
 * that nothing of it changes a wheel or loses an event.
 *
 * Three wheels are there all the time: the main one is planted with pending,
 * ready and periodic timers, the fresh one was never touched, and one has shared
 * timers. After each bad call all have to say the same of themselves as before.
 */
#include "util.h"

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
		s->stats[i].deferred = 0;
		s->stats[i].brought_down = 0;
		s->stats[i].longest_run = 0;
		s->stats[i].largest_run = 0;
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
		CHECK(x[i] == y[i],
		      "%s %llx %llx changed word %zu of INFO and STATS from %llu to %llu",
		      what, a, b, i, x[i], y[i]);
	baseline = s;
}

/* A bad call: what it gave, what it was to give; a and b say which it was */
static void bad(long got, long want, const char *what, __u64 a, __u64 b)
{
	CHECK_EQ(got, want, "%s %llx %llx", what, a, b);
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
 * puts back what matters to the tests. The least size is that which was
 * published first.
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

static void undo_setup(void *p)
{
	(void)p;
	close(fresh_fd);
	fresh_fd = wheel_open(O_NONBLOCK);
}

static void fill_arm(void *p)
{
	struct twheel_op op = op_arm(0, HOUR, 7);

	op.opcode = 0;
	memcpy(p, &op, sizeof(op));
}

static void undo_arm(void *p)
{
	struct twheel_op op;

	memcpy(&op, p, sizeof(op));
	CHECK_EQ(cancel(main_fd, op.id), 0);
}

static void fill_modify(void *p)
{
	struct twheel_op op = op_arm(TWHEEL_ABS, start + HOUR, 0);

	op.opcode = 0;
	op.id = planted[0];
	memcpy(p, &op, sizeof(op));
}

static void fill_cancel(void *p)
{
	struct twheel_op op = op_for(0, victim);

	memcpy(p, &op, sizeof(op));
}

static void undo_cancel(void *p)
{
	(void)p;
	victim_new();
}

static void fill_query(void *p)
{
	struct twheel_op op = op_for(0, planted[1]);

	memcpy(p, &op, sizeof(op));
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
	CHECK_EQ(wheel_eventfd(main_fd, -1), 0);
}

static const struct call calls[] = {
	{ "INFO", TWHEEL_IOC_INFO, 104, sizeof(struct twheel_info), &main_fd,
	  true, fill_none, fill_none },
	{ "SETUP", TWHEEL_IOC_SETUP, 32, sizeof(struct twheel_setup), &fresh_fd,
	  false, fill_none, undo_setup },
	{ "SUBMIT", TWHEEL_IOC_SUBMIT, 24, sizeof(struct twheel_submit),
	  &main_fd, false, fill_submit, fill_none },
	{ "ARM", TWHEEL_IOC_ARM, 64, sizeof(struct twheel_op), &main_fd, true,
	  fill_arm, undo_arm },
	{ "MODIFY", TWHEEL_IOC_MODIFY, 64, sizeof(struct twheel_op), &main_fd,
	  true, fill_modify, fill_none },
	{ "CANCEL", TWHEEL_IOC_CANCEL, 64, sizeof(struct twheel_op), &main_fd,
	  true, fill_cancel, undo_cancel },
	{ "QUERY", TWHEEL_IOC_QUERY, 64, sizeof(struct twheel_op), &main_fd,
	  true, fill_query, fill_none },
	{ "DRAIN", TWHEEL_IOC_DRAIN, 24, sizeof(struct twheel_drain), &main_fd,
	  false, fill_drain, fill_none },
	{ "EVENTFD", TWHEEL_IOC_EVENTFD, 16, sizeof(struct twheel_eventfd),
	  &main_fd, false, fill_eventfd, undo_eventfd },
	{ "STATS", TWHEEL_IOC_STATS, 632, sizeof(struct twheel_stats),
	  &main_fd, true, fill_none, fill_none },
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
	if (CHECK_EQ(got, c->cmd == TWHEEL_IOC_SUBMIT, "%s %llx", c->name, a))
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

/* A program that knows less of INFO is told no more than it knows */
static void test_older(void)
{
	struct twheel_info info = wheel_info(shared_fd);
	__u32 size, i;

	for (size = 104; size <= sizeof(info); size++) {
		memset(arg, 0xee, PAGE);
		memcpy(arg, &size, sizeof(size));
		memset(arg + size, 0, sizeof(info) - size);
		bad(wheel_ioctl(shared_fd, TWHEEL_IOC_INFO, arg), 0, "INFO", size, 0);
		info.size = size;
		CHECK(!memcmp(arg, &info, size), "size %u", size);
		for (i = size; i < sizeof(info); i++)
			CHECK_EQ(arg[i], 0, "size %u, byte %u", size, i);
		CHECK_EQ(arg[sizeof(info)] & 0xff, 0xee, "size %u", size);
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
	munmap(edge - PAGE, PAGE);
	edge = bottom;
}

/* ---- fields ---- */

static long setup(__u32 flags, __u32 clock, __u32 shared, __u64 tick)
{
	struct twheel_setup s = {
		.size = sizeof(s),
		.flags = flags,
		.clock = clock,
		.shared = shared,
		.tick = tick,
	};

	return wheel_ioctl(fresh_fd, TWHEEL_IOC_SETUP, &s);
}

static void test_setup_fields(void)
{
	static const __u64 ticks[] = {
		1, 999, SEC + 1, 2 * SEC, 1ULL << 32, (1ULL << 32) + 1000,
		KTIME_MAX,
	};
	static const __u32 many[] = {
		0, TWHEEL_SHARED_MAX + 1, 1U << 25, 1U << 31, -1,
	};
	__u32 clock;
	long ret;
	size_t i;

	for (i = 0; i < 32; i++) {
		if (1U << i != TWHEEL_SETUP_COUNT)
			bad(setup(1U << i, 1, 0, 0), -EINVAL, "flag", i, 0);
		if (1U << i != TWHEEL_SETUP_SHARED)
			bad(setup(1U << i, 1, 8, 0), -EINVAL, "flag", i, 8);
		bad(setup(0, 1, 1U << i, 0), -EINVAL, "shared, no flag", i, 0);
		bad(setup(TWHEEL_SETUP_COUNT | TWHEEL_SETUP_SHARED, 1, 1U << i, 0),
		    -EINVAL, "shared, count mode", i, 0);
		bad(setup(0, 0x80000000 >> i | 0x100, 0, 0), -EOPNOTSUPP,
		    "clock", 0x80000000 >> i | 0x100, 0);
	}
	for (clock = 0; clock < 40; clock++)
		if (clock != 0 && clock != 1 && clock != 7 && clock != 11)
			bad(setup(0, clock, 0, 0), -EOPNOTSUPP, "clock", clock, 0);
	bad(setup(0, -1, 0, 0), -EOPNOTSUPP, "clock", -1, 0);
	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		bad(setup(0, 1, 0, ticks[i]), -EOPNOTSUPP, "tick", ticks[i], 0);
	/* no time at all, and no tick that is done: the header has both */
	ret = setup(0, 1, 0, KTIME_MAX + 1);
	CHECK(ret == -EINVAL || ret == -EOPNOTSUPP, "tick: got %ld", ret);
	ret = setup(0, 1, 0, -1);
	CHECK(ret == -EINVAL || ret == -EOPNOTSUPP, "tick: got %ld", ret);
	unchanged("tick", -1, 0);

	for (i = 0; i < ARRAY_SIZE(many); i++)
		bad(setup(TWHEEL_SETUP_SHARED, 1, many[i], 0), -EINVAL, "shared",
		    many[i], 0);
	bad(setup(TWHEEL_SETUP_SHARED, 5, 1, 0), -EOPNOTSUPP, "shared, clock", 5, 0);

	CHECK_EQ(setup(0, 7, 0, 1000), 0, "good after all the bad ones");
	CHECK_EQ(wheel_info(fresh_fd).clock, 7);
	CHECK_EQ(wheel_info(fresh_fd).tick, 1000);
	undo_setup(NULL);
	CHECK_EQ(setup(TWHEEL_SETUP_SHARED, 1, 1, 0), 0);
	CHECK_EQ(wheel_info(fresh_fd).shared, 1);
	undo_setup(NULL);
	CHECK_EQ(setup(0, 0, 0, SEC), 0);
	CHECK_EQ(wheel_info(fresh_fd).clock, 0);
	CHECK_EQ(wheel_info(fresh_fd).tick, SEC);
	undo_setup(NULL);
	rebase();
}

static void test_setup_twice(void)
{
	__u64 id;

	bad(wheel_setup(main_fd, 1, 0, 0, 0), -EBUSY, "after timers", 0, 0);
	CHECK_EQ(setup(0, 1, 0, 0), 0);
	rebase();
	bad(setup(0, 1, 0, 0), -EBUSY, "twice, the same", 0, 0);
	bad(setup(0, 7, 0, 0), -EBUSY, "twice, another clock", 0, 0);
	bad(setup(TWHEEL_SETUP_SHARED, 1, 4, 0), -EBUSY, "twice, shared", 0, 0);
	undo_setup(NULL);
	id = arm(fresh_fd, 0, HOUR, 0);
	rebase();
	bad(setup(0, 1, 0, 0), -EBUSY, "with a timer", 0, 0);
	CHECK_EQ(cancel(fresh_fd, id), 0);
	rebase();
	bad(setup(0, 1, 0, 0), -EBUSY, "after a timer", 0, 0);
	undo_setup(NULL);
	rebase();
}

/* One operation, by its own ioctl or by SUBMIT */
static bool by_submit;

/* What failed has its error and its state, and is otherwise as it was given */
static void untouched(struct twheel_op op, struct twheel_op given)
{
	op.result = given.result;
	op.state = given.state;
	CHECK(!memcmp(&op, &given, sizeof(op)),
	      "a bad operation was written over: opcode %u id %llx, was %u %llx",
	      op.opcode, op.id, given.opcode, given.id);
}

static long do_op(struct twheel_op op)
{
	struct twheel_op given = op;
	long ret;

	if (!by_submit) {
		ret = op_single(main_fd, &op);
	} else {
		op.result = 0x5a5a5a5a;
		CHECK_EQ(submit(main_fd, &op, 1), 1, "SUBMIT");
		ret = op.result;
	}
	if (ret)
		untouched(op, given);
	return ret;
}

static void bad_op(struct twheel_op op, long want, const char *what, __u64 a)
{
	bad(do_op(op), want, what, op.opcode, a);
}

static struct twheel_op good_op(__u16 opcode)
{
	struct twheel_op op = op_for(opcode, victim);

	if (opcode <= TWHEEL_OP_MODIFY) {
		op.deadline = HOUR;
		op.user_data = 1;
	}
	return op;
}

static void op_sizes(__u16 opcode)
{
	struct twheel_op op = good_op(opcode);
	__u32 size;

	for (size = 0; size <= sizeof(op) + 2; size++) {
		op.size = size;
		/* by its own ioctl there is more room: see test_sizes */
		if (size < sizeof(op) || (by_submit && size > sizeof(op)))
			bad_op(op, -EINVAL, "size", size);
	}
}

static void op_flags(__u16 opcode)
{
	int i;

	for (i = 0; i < 16; i++) {
		struct twheel_op op = good_op(opcode);

		op.flags = 1U << i;
		if (i || opcode > TWHEEL_OP_MODIFY)
			bad_op(op, -EINVAL, "flag", i);
		op.flags |= TWHEEL_ABS;
		if (i || opcode > TWHEEL_OP_MODIFY)
			bad_op(op, -EINVAL, "flag and ABS", i);
	}
}

static void op_times(__u16 opcode)
{
	static const __u64 large[] = {
		KTIME_MAX + 1, KTIME_MAX + 2, 0xc000000000000000, -1,
	};
	struct twheel_op op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		op = good_op(opcode);
		op.deadline = large[i];
		bad_op(op, -EINVAL, "deadline", large[i]);
		op.flags = TWHEEL_ABS;
		bad_op(op, -EINVAL, "absolute deadline", large[i]);
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
}

/* CANCEL takes the id alone */
static void op_extra(void)
{
	int i;

	for (i = 0; i < 64; i++) {
		struct twheel_op op = good_op(TWHEEL_OP_CANCEL);

		op.deadline = 1ULL << i;
		bad_op(op, -EINVAL, "deadline", i);
		op = good_op(TWHEEL_OP_CANCEL);
		op.interval = 1ULL << i;
		bad_op(op, -EINVAL, "interval", i);
		op = good_op(TWHEEL_OP_CANCEL);
		op.slack = 1ULL << i;
		bad_op(op, -EINVAL, "slack", i);
		op = good_op(TWHEEL_OP_CANCEL);
		op.jitter = 1ULL << i;
		bad_op(op, -EINVAL, "jitter", i);
		op = good_op(TWHEEL_OP_CANCEL);
		op.user_data = 1ULL << i;
		bad_op(op, -EINVAL, "user_data", i);
	}
}

static void op_fields(void)
{
	op_sizes(TWHEEL_OP_ARM);
	op_sizes(TWHEEL_OP_MODIFY);
	op_sizes(TWHEEL_OP_CANCEL);
	op_sizes(TWHEEL_OP_QUERY);
	op_flags(TWHEEL_OP_ARM);
	op_flags(TWHEEL_OP_MODIFY);
	op_flags(TWHEEL_OP_CANCEL);
	op_flags(TWHEEL_OP_QUERY);
	op_times(TWHEEL_OP_ARM);
	op_times(TWHEEL_OP_MODIFY);
	op_extra();
}

static void test_op_fields(void)
{
	by_submit = false;
	op_fields();
}

static void test_op_fields_submit(void)
{
	by_submit = true;
	op_fields();
}

/* An ioctl for one timer says itself what to do; SUBMIT is told */
static void test_opcodes(void)
{
	static const unsigned long cmds[] = {
		TWHEEL_IOC_ARM, TWHEEL_IOC_MODIFY, TWHEEL_IOC_CANCEL,
		TWHEEL_IOC_QUERY,
	};
	struct twheel_op op;
	__u32 opcode;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		for (opcode = 1; opcode < 0x10000; opcode <<= 1) {
			op = good_op(i + 1);
			op.opcode = opcode;
			bad(wheel_ioctl(main_fd, cmds[i], &op), -EINVAL,
			    "opcode in", cmds[i], opcode);
		}
		op = good_op(i + 1);
		bad(wheel_ioctl(main_fd, cmds[i], &op), -EINVAL,
		    "its own opcode in", cmds[i], op.opcode);
	}
	by_submit = true;
	op = good_op(TWHEEL_OP_QUERY);
	op.opcode = 0;
	bad_op(op, -EINVAL, "opcode", 0);
	for (opcode = 5; opcode < 0x10000; opcode += opcode < 300 ? 1 : 977) {
		op.opcode = opcode;
		bad_op(op, -EINVAL, "opcode", opcode);
	}
	op.opcode = 0xffff;
	bad_op(op, -EINVAL, "opcode", 0xffff);
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
	CHECK_EQ(info.__reserved, 0);
	CHECK_EQ(info.version, TWHEEL_VERSION);
	memset(&stats, 0xff, sizeof(stats));
	stats.size = sizeof(stats);
	bad(wheel_ioctl(main_fd, TWHEEL_IOC_STATS, &stats), 0, "STATS", 0, 0);
	CHECK_EQ(stats.__reserved, 0);

	memset(&op, 0xff, sizeof(op));
	op.size = sizeof(op);
	op.opcode = 0;
	op.flags = 0;
	op.id = planted[2];
	bad(wheel_ioctl(main_fd, TWHEEL_IOC_QUERY, &op), 0, "QUERY", 0, 0);
	CHECK_EQ(op.deadline, start + HOUR + 2 * SEC);
	CHECK_EQ(op.user_data, 2);
	CHECK_EQ(op.state, TWHEEL_STATE_PENDING);

	op = op_arm(0, HOUR, 3);
	op.id = planted[2];
	op.result = -1;
	op.state = 77;
	CHECK_EQ(op_single(main_fd, &op), 0, "ARM");
	CHECK(op.id != planted[2], "ARM gives an id of its own");
	CHECK_EQ(op.state, TWHEEL_STATE_NONE);
	CHECK_EQ(cancel(main_fd, op.id), 0);
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
		CHECK_EQ(op_single(main_fd, &op), 0, "ARM %d", i);
		CHECK_EQ(query(main_fd, op.id, &op), 0, "QUERY %d", i);
		CHECK_EQ(op.state, TWHEEL_STATE_PENDING, "%d", i);
		CHECK_EQ(op.deadline, KTIME_MAX, "sum saturates, %d", i);
		op.opcode = TWHEEL_OP_MODIFY;
		op.flags = i & 1 ? TWHEEL_ABS : 0;
		CHECK_EQ(op_single(main_fd, &op), 0, "MODIFY %d", i);
		CHECK_EQ(query(main_fd, op.id, &op), 0, "QUERY %d", i);
		CHECK_EQ(op.deadline, KTIME_MAX, "sum saturates, %d", i);
		CHECK_EQ(cancel(main_fd, op.id), 0, "CANCEL %d", i);
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

		CHECK_EQ(read_events(empty_fd, &ev, 1), 1);
		CHECK_EQ(ev.overrun, 0);
		CHECK_EQ(query(empty_fd, id, &op), 0);
		CHECK_EQ(op.state, TWHEEL_STATE_PENDING);
		CHECK_EQ(op.deadline, KTIME_MAX);
		CHECK(wheel_info(empty_fd).next_expiry > start + HOUR);
		CHECK_EQ(cancel(empty_fd, id), 0);
	}
}

/* ---- ids ---- */

static void bad_id(__u64 id, const char *what, __u64 a)
{
	struct twheel_op op;
	int i;

	for (i = 0; i < 2; i++) {
		by_submit = i;
		op = good_op(TWHEEL_OP_MODIFY);
		op.id = id;
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
		CHECK_EQ(cancel(fresh_fd, old[n++]), 0);
		old[n] = arm_past(fresh_fd, i);
		CHECK_EQ(read_events(fresh_fd, &ev, 1), 1);
		CHECK_EQ(ev.id, old[n++]);
		old[n] = arm(fresh_fd, 0, HOUR, i);
		CHECK_EQ(drain(fresh_fd, &op, 1), 1);
		CHECK_EQ(op.id, old[n++]);
	}
	/* the place of one of them is taken again */
	last = arm(fresh_fd, 0, HOUR, 0xabc);
	for (i = 0; i < n; i++) {
		CHECK(old[i] != last, "id %zu given twice", i);
		for (j = 0; j < i; j++)
			CHECK(old[i] != old[j], "id %zu given twice", i);
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
	CHECK_EQ(query(fresh_fd, last, &op), 0);
	CHECK_EQ(op.user_data, 0xabc);
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

static long submit_raw(__u32 flags, void *ops, __u32 nr, __u32 op_size)
{
	struct twheel_submit s = {
		.size = sizeof(s),
		.flags = flags,
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = op_size,
	};

	return wheel_ioctl(main_fd, TWHEEL_IOC_SUBMIT, &s);
}

static long drain_raw(__u32 flags, void *ops, __u32 nr, __u32 op_size)
{
	struct twheel_drain d = {
		.size = sizeof(d),
		.flags = flags,
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = op_size,
	};

	return wheel_ioctl(main_fd, TWHEEL_IOC_DRAIN, &d);
}

static void batch_fields(long (*call)(__u32, void *, __u32, __u32),
			 const char *name)
{
	static const __u32 sizes[] = {
		PAGE + 1, 2 * PAGE, 65536, 0x7fffffff, 0x80000000, 0xffffffff,
	};
	struct twheel_op op = op_arm(0, HOUR, 9);
	__u32 size;
	size_t i;

	for (i = 0; i < 32; i++)
		bad(call(1U << i, &op, 1, sizeof(op)), -EINVAL, name, i, 0);
	for (size = 0; size < sizeof(op); size++) {
		bad(call(0, &op, 1, size), -EINVAL, name, size, 1);
		bad(call(0, &op, 0, size), -EINVAL, name, size, 2);
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		bad(call(0, &op, 1, sizes[i]), -E2BIG, name, sizes[i], 3);
	bad(call(0, &op, 0x80000000, sizeof(op)), -EINVAL, name, 0, 4);
	bad(call(0, &op, 0xffffffff, sizeof(op)), -EINVAL, name, 0, 5);
	bad(call(0, &op, 0, sizeof(op)), 0, name, 0, 6);
	for (i = 0; i < 3; i++) {
		char *const nowhere[] = { NULL, unmapped, (char *)-64 };

		bad(call(0, nowhere[i], 1, 64), -EFAULT, name, i, 7);
		bad(call(0, nowhere[i], 0x7fffffff, 64), -EFAULT, name, i, 8);
	}
	bad(call(0, (char *)0xffff888000000000, 1, 64), -EFAULT, name, 0, 9);
	bad(call(0, (char *)0x0000800000000000, 1, 64), -EFAULT, name, 0, 10);
}

static void test_submit_fields(void)
{
	batch_fields(submit_raw, "SUBMIT");
}

static void test_drain_fields(void)
{
	batch_fields(drain_raw, "DRAIN");
}

/* Two elements of that size, with a byte of the first one's rest set */
static void larger(__u32 distance, __u32 size, __u32 at, long want)
{
	struct twheel_op op = op_for(TWHEEL_OP_QUERY, planted[3]), given;
	char *p = edge - 2 * distance;

	memset(p, 0, 2 * distance);
	op.size = size;
	given = op;
	memcpy(p, &op, sizeof(op));
	op.size = distance;
	memcpy(p + distance, &op, sizeof(op));
	if (at)
		p[at] = 1;
	bad(submit_raw(0, p, 2, distance), 2, "larger", distance, at);
	memcpy(&op, p, sizeof(op));
	CHECK_EQ(op.result, want, "distance %u size %u byte %u", distance, size,
		 at);
	if (want)
		untouched(op, given);
	memcpy(&op, p + distance, sizeof(op));
	CHECK_EQ(op.result, 0, "distance %u size %u byte %u", distance, size,
		 at);
	CHECK_EQ(op.user_data, 3, "distance %u size %u byte %u", distance, size,
		 at);
}

/* Elements that are larger than this kernel knows */
static void test_larger_elements(void)
{
	__u32 size, at;

	for (size = 64; size <= 80; size++) {
		larger(size, size, 0, 0);
		for (at = 64; at < size; at++)
			larger(size, size, at, -E2BIG);
		/* each repeats the distance in its own size */
		larger(size, size + 1, 0, -EINVAL);
		larger(size, size - 1, 0, -EINVAL);
		larger(size, 0, 0, -EINVAL);
	}
	larger(PAGE, PAGE, 0, 0);
	larger(PAGE, PAGE, PAGE - 1, -E2BIG);
}

/* What was answered can be asked again: only "out" fields are written */
static void test_query_again(void)
{
	struct twheel_op op = op_for(TWHEEL_OP_QUERY, planted[3]), first;

	CHECK_EQ(op_single(main_fd, &op), 0);
	CHECK_EQ(op.flags, 0);
	first = op;
	CHECK_EQ(op_single(main_fd, &op), 0, "a second time");
	CHECK(!memcmp(&op, &first, sizeof(op)));
	CHECK_EQ(submit(main_fd, &op, 1), 1);
	CHECK_EQ(submit(main_fd, &op, 1), 1);
	CHECK_EQ(op.result, 0, "a second time in SUBMIT");
	CHECK_EQ(op.opcode, TWHEEL_OP_QUERY);
	CHECK_EQ(op.size, sizeof(op));
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
	CHECK_EQ(submit(main_fd, ops, 64), 64);
	for (i = 0; i < 64; i++)
		CHECK_EQ(ops[i].result, want[i], "operation %d", i);
	for (i = 0; i < 64; i += 4)
		CHECK_EQ(cancel(main_fd, ops[i].id), 0, "operation %d", i);
	rebase();
}

static void fill_array(char *p, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		struct twheel_op op = op_arm(0, HOUR, 100 + i);

		memcpy(p + i * sizeof(op), &op, sizeof(op));
	}
}

/* So many were done: they count, and they are there */
static void undo_array(const char *p, long done)
{
	struct twheel_op op;
	long i;

	CHECK_EQ(wheel_info(main_fd).pending,
		 baseline.info[0].pending + done);
	for (i = 0; i < done; i++) {
		memcpy(&op, p + i * sizeof(op), sizeof(op));
		CHECK_EQ(op.result, 0, "operation %ld of %ld", i, done);
		CHECK_EQ(cancel(main_fd, op.id), 0, "operation %ld", i);
	}
	rebase();
}

/* So many bytes of the array are there: whole elements are done */
static void submit_cut(const char *copy, size_t left)
{
	const long whole = left / sizeof(struct twheel_op);
	char *p = edge - left;
	long want = whole ? whole : -EFAULT;

	memcpy(p, copy, left);
	CHECK_EQ(submit_raw(0, p, whole + 1, 64), want, "%zu there", left);
	undo_array(p, whole);
	memcpy(p, copy, left);
	CHECK_EQ(submit_raw(0, p, 0x7fffffff, 64), want, "%zu there", left);
	undo_array(p, whole);
}

/*
 * So many bytes of it can be written. An element that has room there for all
 * that is handed out may be done.
 */
static void submit_cut_writing(const char *copy, size_t left)
{
	const size_t out = offsetof(struct twheel_op, deadline);
	const long whole = left / sizeof(struct twheel_op);
	char *second = map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	char *p = second - left;
	long done;

	memcpy(p, copy, 4 * sizeof(struct twheel_op));
	mprotect(second, PAGE, PROT_READ);
	done = submit_raw(0, p, 4, 64);
	if (done < 0) {
		CHECK_EQ(done, -EFAULT, "%zu writable", left);
		done = 0;
	}
	CHECK(done == whole || (left % 64 >= out && done == whole + 1),
	      "%zu writable: %ld done", left, done);
	undo_array(p, done);
	CHECK(!memcmp(second, copy + left,
		      4 * sizeof(struct twheel_op) - left),
	      "%zu writable: the rest is as before", left);
	munmap(second - PAGE, 2 * PAGE);
}

/* The array ends, or can't be written, from a byte of it on */
static void test_submit_faults(void)
{
	char copy[4 * sizeof(struct twheel_op)];
	size_t left;

	fill_array(copy, 4);
	for (left = 0; left <= 3 * sizeof(struct twheel_op); left++) {
		submit_cut(copy, left);
		submit_cut_writing(copy, left);
	}
}

/* An operation that can't report must not be done: each kind of it */
static void test_submit_readonly(void)
{
	struct twheel_op op;
	__u16 opcode;

	for (opcode = 0; opcode <= 5; opcode++) {
		op = good_op(opcode);
		bad(submit_raw(0, readonly_put(&op, sizeof(op)), 1, 64),
		    -EFAULT, "opcode", opcode, 0);
		op.id = ready_ids[0];
		if (opcode == TWHEEL_OP_CANCEL || opcode == TWHEEL_OP_MODIFY)
			bad(submit_raw(0, readonly_put(&op, sizeof(op)), 1, 64),
			    -EFAULT, "of a ready timer", opcode, 0);
		op.id = 12345;
		bad(submit_raw(0, readonly_put(&op, sizeof(op)), 1, 64),
		    -EFAULT, "with a bad id", opcode, 0);
	}
	for (opcode = 1; opcode <= 3; opcode++) {
		static const unsigned long cmds[] = {
			0, TWHEEL_IOC_ARM, TWHEEL_IOC_MODIFY, TWHEEL_IOC_CANCEL,
		};

		op = good_op(opcode);
		op.opcode = 0;
		op.id = ready_ids[0];
		bad(wheel_ioctl(main_fd, cmds[opcode],
				readonly_put(&op, sizeof(op))),
		    -EFAULT, "of a ready timer by itself", opcode, 0);
	}
}

/* What is not handed out is not written, nor what the program stores there undone. */
static void test_inputs_are_left(void)
{
	static const struct { unsigned long cmd; __u16 opcode; size_t out; } calls[] = {
		{ TWHEEL_IOC_ARM, TWHEEL_OP_ARM, offsetof(struct twheel_op, deadline) },
		{ TWHEEL_IOC_MODIFY, TWHEEL_OP_MODIFY, offsetof(struct twheel_op, id) },
		{ TWHEEL_IOC_CANCEL, TWHEEL_OP_CANCEL, offsetof(struct twheel_op, id) },
	};
	char *second = map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	int fd = wheel_open(O_NONBLOCK);
	size_t i, left;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (left = 8; left <= sizeof(struct twheel_op); left += 8) {
			__u64 id = arm(fd, 0, HOUR, 1);
			struct twheel_op op = op_arm(0, 2 * HOUR, 7);
			long ret, want = left < calls[i].out ? -EFAULT : 0;
			__u64 armed = wheel_stats(fd).armed;

			op.id = calls[i].opcode == TWHEEL_OP_ARM ? 0 : id;
			if (calls[i].opcode == TWHEEL_OP_CANCEL)
				op = op_for(TWHEEL_OP_CANCEL, id);
			op.opcode = 0;
			mprotect(second, PAGE, PROT_READ | PROT_WRITE);
			memcpy(second - left, &op, sizeof(op));
			mprotect(second, PAGE, PROT_READ);
			ret = wheel_ioctl(fd, calls[i].cmd, second - left);
			bad(ret, want, "writable up to", left, calls[i].opcode);
			CHECK_EQ(wheel_info(fd).pending,
				 ret || calls[i].opcode == TWHEEL_OP_MODIFY ? 1 :
				 calls[i].opcode == TWHEEL_OP_ARM ? 2 : 0,
				 "opcode %u at %zu", calls[i].opcode, left);
			CHECK_EQ(wheel_stats(fd).armed - armed,
				 !ret && calls[i].opcode == TWHEEL_OP_ARM,
				 "opcode %u at %zu", calls[i].opcode, left);
			drain(fd, &op, 1);
			drain(fd, &op, 1);
		}
	munmap(second - PAGE, 2 * PAGE);
	close(fd);
}

static void test_drain_faults(void)
{
	const size_t size = sizeof(struct twheel_op);
	struct twheel_op ops[4];
	size_t left;
	int fd = wheel_open(O_NONBLOCK);

	for (left = 0; left < 4; left++)
		arm(fd, 0, HOUR, left);
	memset(arg, 0, PAGE);
	for (left = 0; left <= 3 * size; left++) {
		struct twheel_drain d = {
			.size = sizeof(d),
			.ops = (unsigned long)(edge - left),
			.nr = 4,
			.op_size = size,
		};
		long want = left / size ? (long)(left / size) : -EFAULT;

		CHECK_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &d), want,
			 "%zu bytes there", left);
		if (want < 0)
			want = 0;
		CHECK_EQ(wheel_info(fd).pending, 4 - want, "%zu", left);
		memcpy(ops, edge - left, want * size);
		submit_all(fd, ops, want);
		d.ops = (unsigned long)readonly_put(ops, 1);
		CHECK_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &d), -EFAULT);
		CHECK_EQ(wheel_info(fd).pending, 4);
	}
	CHECK_EQ(drain(fd, ops, 4), 4);
	CHECK_EQ(ops[0].user_data + ops[1].user_data + ops[2].user_data +
		 ops[3].user_data, 6);
	CHECK_EQ(drain(fd, ops, 4), 0);
	/* with nothing to hand out nothing is wrong with the array */
	CHECK_EQ(wheel_info(fd).pending, 0);
	close(fd);
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
	CHECK_EQ(set_eventfd(0, efd, 0), 0);
	bad(set_eventfd(0, efd, 0), -EBUSY, "twice", 0, 0);
	CHECK_EQ(set_eventfd(0, -1, 0), 0);
	bad(set_eventfd(0, -1, 0), -ENOENT, "ended already", 0, 0);
	close(null);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- what is no call of this device ---- */

static void test_unknown_ioctls(void)
{
	static const unsigned int sizes[] = { 0, 1, 4, 8, 16, 24, 32, 64, 104, 120 };
	unsigned int nr, dir;
	size_t i;

	memset(arg, 0, PAGE);
	for (nr = 11; nr < 256; nr++)
		bad(wheel_ioctl(main_fd, _IO(TWHEEL_IOC_TYPE, nr), arg),
		    -ENOTTY, "number", nr, 0);
	for (nr = 0; nr < 11; nr++) {
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

	CHECK_EQ(doorbell(shared_fd, 0), 0);
	for (i = 0; i < 32; i++)
		bad(doorbell(shared_fd, 1U << i), -EINVAL, "flag", i, 0);
	bad(doorbell(main_fd, 0), -EINVAL, "no shared timers", 0, 0);
	bad(doorbell(fresh_fd, 0), -EINVAL, "not set up", 0, 0);
	/* and it is as it was: it can still be set up */
	CHECK_EQ(setup(0, 7, 0, 1000), 0);
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
		CHECK_EQ(query(main_fd, planted[i], &op), 0, "timer %ld", i);
		CHECK_EQ(op.state, TWHEEL_STATE_PENDING, "timer %ld", i);
		CHECK_EQ(op.user_data, i, "timer %ld", i);
		CHECK_EQ(op.deadline, start + HOUR + i * SEC, "timer %ld", i);
		CHECK_EQ(op.interval, i % 4 == 3 ? HOUR : 0, "timer %ld", i);
		op.opcode = TWHEEL_OP_MODIFY;
		op.flags = TWHEEL_ABS;
		op.deadline = 1;
		CHECK_EQ(op_single(main_fd, &op), 0, "timer %ld", i);
	}
	CHECK_EQ(cancel(main_fd, victim), 0);
	n = read_events(main_fd, ev, ARRAY_SIZE(ev));
	CHECK_EQ(n, PENDING + READY, "events");
	for (i = 0; i < n; i++) {
		__u64 data = ev[i].user_data;

		if (!CHECK(data < PENDING + READY, "user data %llu", data))
			continue;
		seen[data]++;
		CHECK_EQ(ev[i].id, data < PENDING ? planted[data] :
			 ready_ids[data - PENDING]);
	}
	for (i = 0; i < PENDING + READY; i++)
		CHECK_EQ(seen[i], 1, "events of timer %ld", i);
	CHECK_EQ(read_events(main_fd, ev, 1), -EAGAIN);
}

static void plant(void)
{
	struct twheel_op op;
	int i;

	main_fd = wheel_open(O_NONBLOCK);
	fresh_fd = wheel_open(O_NONBLOCK);
	empty_fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(setup(TWHEEL_SETUP_SHARED, 1, 100, 0), 0);
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
		CHECK_EQ(drain(empty_fd, &op, 1), 1);
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
	test_op_fields_submit();
	test_submit_fields();
	test_submit_readonly();
	test_unknown_ioctls();
	restless = false;
	n = collect(main_fd, ev, READY + BUSY);
	for (i = 0; i < n; i++)
		if (CHECK(ev[i].user_data < sizeof(seen), "user data"))
			seen[ev[i].user_data]++;
	for (i = 0; i < sizeof(seen); i++)
		CHECK_EQ(seen[i], i >= PENDING, "events of timer %zu", i);
	CHECK_EQ(read_events(main_fd, ev, 1), -EAGAIN);
	CHECK_EQ(wheel_info(main_fd).pending, PENDING + 1);
}

int main(void)
{
	tap_start(120);
	edge = map_edge(3);
	readonly = map_pages(1, PROT_READ);
	/* far from where mmap puts anything */
	unmapped = (char *)0x600000000000;
	if (!msync(unmapped, PAGE, MS_ASYNC) || errno != ENOMEM)
		tap_bail("there is something at %p", unmapped);
	arg = map_pages(3, PROT_READ | PROT_WRITE);
	efd = eventfd(0, EFD_NONBLOCK);
	plant();
	RUN(test_sizes, "every size of every structure");
	RUN(test_older, "a program that knows less");
	RUN(test_addresses, "every address of every structure");
	RUN(test_top, "structures at the end of all addresses");
	RUN(test_setup_fields, "every field of SETUP");
	RUN(test_setup_twice, "SETUP twice, or after a timer");
	RUN(test_op_fields, "every field of an operation");
	RUN(test_op_fields_submit, "every field of an operation in SUBMIT");
	RUN(test_opcodes, "every opcode");
	RUN(test_ignored, "what is only handed out is not looked at");
	RUN(test_largest_times, "the largest times are times, and sums saturate");
	RUN(test_last_period, "a period that ends with all time");
	RUN(test_made_up_ids, "ids that were never given out");
	RUN(test_used_up_ids, "ids that are used up");
	RUN(test_other_wheels_ids, "ids of another wheel");
	RUN(test_submit_fields, "every field of SUBMIT");
	RUN(test_drain_fields, "every field of DRAIN");
	RUN(test_larger_elements, "elements larger than the kernel knows");
	RUN(test_query_again, "QUERY can be asked again with its answer");
	RUN(test_mixed_batch, "a bad operation does not stop the others");
	RUN(test_submit_faults, "SUBMIT of an array that ends too soon");
	RUN(test_submit_readonly, "operations that can't report are not done");
	RUN(test_inputs_are_left, "operations whose inputs can't be written are done");
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
