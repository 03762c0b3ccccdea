// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: of a wheel, and of the memory of all wheels of a user in all of its processes.
 * CAP_SYS_RESOURCE goes over the module's limits, and nobody else.
 *
 * also in: kunit small
 */
#include "shared.h"
#include "users.h"

#include <linux/sched.h>

/* Shared timers of which the memory is measured */
#define SHARED 700

#define ALICE 2001
#define BOB 2002

/**
 * struct costs - what wheels take of memory, in bytes but for the last
 * @wheel: without timers
 * @slots: more, once there are any
 * @chunk: each chunk, of timers or of what periodic ones have besides
 * @shared: with SHARED shared timers
 * @timers: that a chunk has room for
 */
struct costs {
	long wheel;
	long slots;
	long chunk;
	long shared;
	long timers;
};

/* What processes tell each other */
struct shared {
	int step;
	int fd;
	struct costs costs;
};

static struct shared *shared;
static char wheel_param[32], user_param[32];

static void set_param(const char *name, const char *value)
{
	char path[128];
	long ret;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	ret = write_text(path, value);
	if (ret)
		tap_bail("%s: %s", path, strerror(-ret));
}

static void params(const char *wheel, const char *user)
{
	set_param("max_timers", wheel);
	set_param("max_user_timers", user);
}

static void params_restore(void)
{
	params(wheel_param, user_param);
}

/* Up to so many; gives how many it could, and why not more */
static long arm_up_to(int fd, long max, long *error)
{
	long n;

	*error = 0;
	for (n = 0; n < max && !*error; n++) {
		struct twheel_op op = op_arm(0, HOUR, n);

		*error = op_single(fd, &op);
	}
	return *error ? n - 1 : n;
}

static void expect_armed(int fd, long max, long want)
{
	long error, n = arm_up_to(fd, max, &error);

	EXPECT_EQ(n, want);
	EXPECT_EQ(error, n < max ? -ENOSPC : 0);
}

static void step(int n)
{
	__atomic_store_n(&shared->step, n, __ATOMIC_RELEASE);
}

static void wait_step(int n)
{
	if (!WAIT_FOR(__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) >= n))
		tap_bail("nobody got to step %d", n);
}

/* ---- one wheel ---- */

/* What a wheel was set up for holds for everybody, and counts ready ones */
static void test_setup_limit(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op ops[4];
	struct twheel_event ev[20];
	__u64 id;

	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 0), 0);
	EXPECT_EQ(wheel_info(fd).limit, 10);
	EXPECT_EQ(wheel_stats(fd).refused, 0);
	expect_armed(fd, 100, 10);
	EXPECT_EQ(wheel_stats(fd).refused, 1);
	EXPECT_EQ(wheel_info(fd).pending, 10);
	EXPECT_EQ(wheel_stats(fd).armed, 10);

	EXPECT_EQ(drain(fd, ops, 4), 4);
	submit_all(fd, ops, 4);
	EXPECT_EQ(drain(fd, ops, 1), 1);
	id = arm_past(fd, 1);
	expect_armed(fd, 5, 0);
	EXPECT_EQ(wheel_info(fd).ready, 1);
	EXPECT_EQ(read_events(fd, ev, 1), 1);
	EXPECT_EQ(cancel(fd, id), -ENOENT);
	expect_armed(fd, 5, 1);

	/* in a batch: each over it says so, and what is freed is used */
	ops[0] = op_arm(0, HOUR, 0);
	ops[2] = ops[0];
	ops[3] = ops[0];
	EXPECT_EQ(drain(fd, &ops[1], 1), 1);
	id = arm(fd, 0, HOUR, 0);
	ops[1] = op_for(TWHEEL_OP_CANCEL, id);
	EXPECT_EQ(submit(fd, ops, 4), 4);
	EXPECT_EQ(ops[0].result, -ENOSPC);
	EXPECT_EQ(ops[1].result, 0);
	EXPECT_EQ(ops[2].result, 0);
	EXPECT_EQ(ops[3].result, -ENOSPC);
	EXPECT_EQ(wheel_info(fd).pending, 10);
	close(fd);
}

/* Periodic timers count as others do, whatever they take of memory */
static void test_periodic_limit(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op ops[9];
	int i;

	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 4, 0), 0);
	for (i = 0; i < 9; i++) {
		ops[i] = op_arm(0, HOUR, i);
		ops[i].interval = i % 2 ? 0 : HOUR;
	}
	EXPECT_EQ(submit(fd, ops, 9), 9);
	for (i = 0; i < 9; i++)
		EXPECT_EQ(ops[i].result, i < 4 ? 0 : -ENOSPC, "operation %d", i);
	EXPECT_EQ(wheel_info(fd).pending, 4);
	close(fd);
}

/* Modifying needs no place of its own */
static void test_modify_at_limit(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op op;
	__u64 id;

	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 1, 0), 0);
	id = arm(fd, 0, HOUR, 0);
	op = op_arm(TWHEEL_ABS, 1, 5);
	op.opcode = TWHEEL_OP_MODIFY;
	op.id = id;
	EXPECT_EQ(op_single(fd, &op), 0);
	expect_armed(fd, 1, 0);
	EXPECT_EQ(op_single(fd, &op), 0);
	EXPECT_EQ(wheel_info(fd).ready, 1);
	close(fd);
}

static void wheel_limit_child(void)
{
	int fd, small, more;
	long ret;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_info(fd).wheel_limit, 20);
	EXPECT_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 100, 20);
	/* another wheel has a limit of its own */
	more = wheel_open(O_NONBLOCK);
	expect_armed(more, 100, 20);
	small = wheel_open(O_NONBLOCK);
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, 21, 0);
	EXPECT_EQ(ret, -ENOSPC, "more than the module's limit");
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, KTIME_MAX, 0);
	EXPECT_EQ(ret, -ENOSPC, "more than the module's limit");
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, -1, 0);
	EXPECT_EQ(ret, -ENOSPC, "more than the module's limit");
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, 20, 0);
	EXPECT_EQ(ret, 0, "as much as the module's limit");
}

static void test_wheel_limit(void)
{
	int fd;

	params("20", "1000000");
	tap_join(tap_fork(wheel_limit_child));
	/* root's CAP_SYS_RESOURCE */
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 50, 0), 0);
	EXPECT_EQ(wheel_info(fd).limit, 50);
	expect_armed(fd, 100, 50);
	close(fd);
	params_restore();
}

/* ---- one user ---- */

/*
 * The memory of a user's wheels is what counts. How much they take is measured first:
 * the limit is the smallest with which they can be had.
 */
#define TIMER 40L

/* Wheels of which the memory is measured together, so that what it is rounded up by is little */
#define MEASURED 16

/*
 * Chunks, likewise. They fill a directory, whose first entry is not used: one more chunk would
 * double it.
 */
#define CHUNKS 15

static struct costs costs;

/* More than all that rounding amounts to, and too little for anything else */
static long play(void)
{
	return (costs.wheel < costs.chunk ? costs.wheel : costs.chunk) / 2;
}

static void limit_to(long units)
{
	char limit[32];

	snprintf(limit, sizeof(limit), "%ld", units);
	params("1000000", limit);
}

static void user_may_have(long bytes)
{
	limit_to((bytes + play()) / TIMER);
}

/* What a wheel takes that has so many chunks */
static long with_chunks(long chunks)
{
	return costs.wheel + costs.slots + chunks * costs.chunk;
}

static void expect_full(int fd, long want)
{
	expect_armed(fd, want + 1, want);
}

static void expect_no_wheel(void)
{
	EXPECT_EQ(open(DEVICE, O_RDONLY), -1);
	EXPECT_EQ(errno, ENOSPC);
}

/* So many wheels with so many timers each, or shared timers: can they be had? */
static bool can_have(int wheels, long timers, long nr_shared)
{
	int fds[MEASURED], n = 0;
	bool can = true;
	long error;

	while (can && n < wheels) {
		fds[n] = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		can = fds[n] >= 0;
		if (!can)
			break;
		if (nr_shared)
			can = !shared_setup(fds[n], TWHEEL_CLOCK_MONOTONIC, 0, 0, nr_shared);
		can = can && arm_up_to(fds[n++], timers, &error) == timers;
	}
	while (n--)
		close(fds[n]);
	return can;
}

/* The bytes that they take */
static long measure(int wheels, long timers, long nr_shared)
{
	long least = 0, most = 1 << 16;

	while (least < most) {
		long limit = (least + most) / 2;

		limit_to(limit);
		if (can_have(wheels, timers, nr_shared))
			most = limit;
		else
			least = limit + 1;
	}
	return least * TIMER;
}

/* What it is that was measured together with others, as all memory is in words */
static long words(long bytes)
{
	return (bytes + 4) / 8 * 8;
}

/* As a user who sets limits, and has them */
static void measuring_child(void)
{
	struct costs *found = &shared->costs;
	long first, most, error;
	int fd;

	drop_resource();
	found->wheel = words(measure(MEASURED, 0, 0) / MEASURED);
	first = measure(1, 1, 0);
	limit_to(first / TIMER);
	fd = wheel_open(O_NONBLOCK);
	found->timers = arm_up_to(fd, 1000000, &error);
	EXPECT_EQ(error, -ENOSPC);
	close(fd);
	most = measure(1, CHUNKS * found->timers, 0);
	found->chunk = words((most - first) / (CHUNKS - 1));
	found->slots = first - found->wheel - found->chunk;
	found->shared = measure(1, 0, SHARED);
}

static void ten_chunks_child(void)
{
	become(ALICE);
	expect_full(wheel_open(O_NONBLOCK), 10 * costs.timers);
}

/* A timer takes 32 bytes where it is one of many, and all that is held counts. */
static void test_memory(void)
{
	long nodes;

	tap_join(tap_fork(measuring_child));
	costs = shared->costs;
	nodes = 32 * costs.timers;
	tap_diag("a wheel %ld, slots %ld, a chunk of %ld timers %ld, %d shared ones %ld",
		 costs.wheel, costs.slots, costs.timers, costs.chunk, SHARED, costs.shared);
	EXPECT_TRUE(costs.wheel >= (long)sizeof(struct twheel_stats));
	EXPECT_TRUE(costs.slots >= 1024);
	EXPECT_TRUE(costs.slots <= 48 << 10);
	EXPECT_TRUE(costs.timers > 0);
	EXPECT_TRUE(costs.chunk >= nodes);
	EXPECT_TRUE(costs.chunk <= (small_world() ? 2 * nodes : nodes + nodes / 64));
	EXPECT_TRUE(costs.shared >= costs.wheel + SHARED * 24);
	user_may_have(with_chunks(10));
	tap_join(tap_fork(ten_chunks_child));
	params_restore();
}

/* Asks again and again for much more than a user may have, and holds nothing. */
static void asking_child(void)
{
	int fd, i;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	/* Until it is killed; but user-mode Linux may do one process after the other. */
	for (i = 0; i < 100000; i++) {
		if (!shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, TWHEEL_SHARED_MAX))
			tap_bail("all that memory was given");
		step(1);
	}
}

static void opening_child(void)
{
	int refused = 0, i;

	become(ALICE);
	for (i = 0; i < 5000; i++) {
		int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

		refused += fd < 0;
		close(fd);
	}
	EXPECT_EQ(refused, 0);
}

/* What was refused to one program is not missing to another, not for a moment. */
static void test_refused_not_held(void)
{
	pid_t asking;

	user_may_have(with_chunks(10));
	step(0);
	asking = tap_fork(asking_child);
	wait_step(1);
	tap_join(tap_fork(opening_child));
	kill(asking, SIGKILL);
	waitpid(asking, NULL, 0);
	params_restore();
}

/* What a periodic timer has besides is in chunks of its own. */
static void periodic_child(void)
{
	struct twheel_op op;
	int fd;
	long n;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	for (n = 0;; n++) {
		op = op_arm(0, HOUR, n);
		op.interval = HOUR;
		if (op_single(fd, &op))
			break;
	}
	EXPECT_EQ(n, costs.timers);
	EXPECT_EQ(op.result, -ENOSPC);
	expect_full(fd, costs.timers);
}

/* A timer that becomes periodic needs no other place as a timer. */
static void becoming_child(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	op.id = arm(fd, 0, HOUR, 0);
	expect_armed(fd, costs.timers - 1, costs.timers - 1);
	op.opcode = TWHEEL_OP_MODIFY;
	op.interval = HOUR;
	EXPECT_EQ(op_single(fd, &op), 0);
	expect_full(fd, 0);
}

static void test_periodic_memory(void)
{
	user_may_have(with_chunks(3));
	tap_join(tap_fork(periodic_child));
	user_may_have(with_chunks(2));
	tap_join(tap_fork(becoming_child));
	params_restore();
}

/* Of three wheels with two, two and one */
static long five_chunks(void)
{
	return 2 * with_chunks(2) + with_chunks(1);
}

static void first_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_info(fd).user_limit, (five_chunks() + play()) / TIMER);
	expect_armed(fd, 2 * costs.timers, 2 * costs.timers);
	step(1);
	wait_step(2);
}

static void second_child(void)
{
	int fd, other;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	other = wheel_open(O_NONBLOCK);
	wait_step(1);
	expect_armed(other, costs.timers + 1, costs.timers + 1);
	expect_full(fd, costs.timers);
	EXPECT_TRUE(wheel_stats(fd).refused >= 1);
	/* what is given back is there to take, on whichever wheel */
	close(other);
	expect_armed(wheel_open(O_NONBLOCK), 1, 1);
	expect_full(fd, costs.timers);
	step(2);
	/* the first one is gone, and all its memory with it */
	wait_step(3);
	expect_armed(wheel_open(O_NONBLOCK), 1, 1);
	expect_full(fd, costs.timers);
}

static void stranger_child(void)
{
	int fd;

	become(BOB);
	fd = wheel_open(O_NONBLOCK);
	wait_step(1);
	/* another user has as much */
	expect_armed(wheel_open(O_NONBLOCK), 1, 1);
	expect_armed(wheel_open(O_NONBLOCK), 1, 1);
	expect_full(fd, 3 * costs.timers);
}

static void test_user_limit(void)
{
	pid_t one, two, stranger;

	memset(shared, 0, sizeof(*shared));
	user_may_have(five_chunks());
	one = tap_fork(first_child);
	two = tap_fork(second_child);
	stranger = tap_fork(stranger_child);
	tap_join(one);
	step(3);
	tap_join(two);
	tap_join(stranger);
	params_restore();
}

static void many_wheels_child(void)
{
	int i;

	become(ALICE);
	for (i = 0; i < 20; i++)
		wheel_open(O_NONBLOCK);
	expect_no_wheel();
}

/* An empty wheel takes memory, too: there is an end to them. */
static void test_many_wheels(void)
{
	int fd;

	user_may_have(20 * costs.wheel);
	tap_join(tap_fork(many_wheels_child));
	/* CAP_SYS_RESOURCE goes over it */
	user_may_have(0);
	fd = wheel_open(O_NONBLOCK);
	close(fd);
	params_restore();
}

/* Cancel or read so many timers of a wheel, or drain them: all of them are gone. */
static void end_all(int fd, int how, struct twheel_op *ops, long nr)
{
	static struct twheel_event ev[4096];
	long i;

	switch (how) {
	case 0:
		for (i = 0; i < nr; i++)
			EXPECT_EQ(cancel(fd, ops[i].id), 0);
		break;
	case 1:
		EXPECT_EQ(read_events(fd, ev, nr), nr);
		break;
	default:
		EXPECT_EQ(drain(fd, ops, nr), nr);
	}
}

/*
 * Memory of timers that end in each way is given back, but for a little: enough that
 * another wheel has its first timers.
 */
static bool periodic;

/* Of each table, so many that all but one are a wheel's first ones, slots included */
static long giving_back_chunks(void)
{
	return costs.slots / costs.chunk + 3;
}

static void arm_all(int fd, int how, struct twheel_op *ops, long nr)
{
	long i;

	for (i = 0; i < nr; i++) {
		ops[i] = op_arm(TWHEEL_ABS, how == 1 ? 1 : KTIME_MAX, i);
		ops[i].interval = periodic ? HOUR : 0;
	}
	submit_all(fd, ops, nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(ops[i].result, 0, "timer %ld", i);
}

static void giving_back_child(void)
{
	static struct twheel_op ops[4096];
	long nr = giving_back_chunks() * costs.timers;
	long others = nr * (periodic ? 2 : 1) - costs.timers;
	int fd, other, how;

	become(ALICE);
	EXPECT_TRUE(nr <= 4096);
	for (how = 0; how < 3; how++) {
		/* To read a periodic one is not its end. */
		if (periodic && how == 1)
			continue;
		fd = wheel_open(O_NONBLOCK);
		other = wheel_open(O_NONBLOCK);
		arm_all(fd, how, ops, nr);
		expect_armed(other, 1, 0);
		end_all(fd, how, ops, nr);
		/* nor does the wheel keep what only it could use */
		arm_all(fd, how, ops, nr);
		end_all(fd, how, ops, nr);
		/* a little is kept for what comes next */
		expect_armed(other, costs.timers, costs.timers);
		close(fd);
		fd = wheel_open(O_NONBLOCK);
		expect_full(other, others);
		close(fd);
		close(other);
	}
}

static void test_giving_back(void)
{
	long chunks = giving_back_chunks();

	periodic = false;
	user_may_have(with_chunks(chunks) + costs.wheel);
	tap_join(tap_fork(giving_back_child));
	periodic = true;
	user_may_have(with_chunks(2 * chunks) + costs.wheel);
	tap_join(tap_fork(giving_back_child));
	params_restore();
}

static void weak_root_child(void)
{
	int fd;

	drop_resource();
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_setup(wheel_open(0), TWHEEL_CLOCK_MONOTONIC, 0, 1000001,
			      0), -ENOSPC);
	expect_full(fd, costs.timers);
}

/* SETUP is still allowed after an ARM that was refused */
static void refused_child(void)
{
	__u64 deadline;
	int fd, other;
	struct twheel_event ev;
	struct twheel_op op = op_arm(0, HOUR, 0);
	long ret;

	become(ALICE);
	other = wheel_open(O_NONBLOCK);
	fd = wheel_open(O_NONBLOCK);
	expect_armed(other, 1, 1);
	EXPECT_EQ(op_single(fd, &op), -ENOSPC);
	ret = wheel_setup(fd, TWHEEL_CLOCK_BOOTTIME, MSEC, 0, 0);
	EXPECT_EQ(ret, 0);
	EXPECT_EQ(wheel_info(fd).clock, TWHEEL_CLOCK_BOOTTIME);
	close(other);
	deadline = now(CLOCK_BOOTTIME) + 5 * MSEC;
	arm(fd, TWHEEL_ABS, deadline, 7);
	EXPECT_EQ(readable(fd, PATIENCE_MS), 1);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 7);
	EXPECT_TRUE(now(CLOCK_BOOTTIME) >= deadline, "early");
}

static void test_refused(void)
{
	user_may_have(costs.wheel + with_chunks(1));
	tap_join(tap_fork(refused_child));
	/* there was memory for slots, at least */
	user_may_have(2 * with_chunks(1) - costs.chunk);
	tap_join(tap_fork(refused_child));
	params_restore();
}

/* Shared timers take their memory at their set-up, whatever is done with them. */
static void shared_child(void)
{
	struct client client;
	int fd, other, round;

	become(ALICE);
	for (round = 0; round < 5; round++) {
		fd = wheel_open(O_NONBLOCK);
		EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 10 * SHARED), -ENOSPC);
		EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), 0);
		other = wheel_open(O_NONBLOCK);
		EXPECT_EQ(shared_setup(other, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), -ENOSPC);
		close(other);
		other = wheel_open(O_NONBLOCK);
		/* (In a small world, a chunk is less than what these are rounded up by.) */
		expect_armed(other, costs.timers + !small_world(), costs.timers);
		close(other);
		/* they are there as long as they are mapped */
		client_map(&client, fd);
		shared_arm(&client, 0, HOUR);
		close(fd);
		fd = wheel_open(O_NONBLOCK);
		EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), -ENOSPC);
		munmap(client.area, client.size);
		EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), 0);
		close(fd);
	}
}

static void shared_wheel_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 21), -ENOSPC);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 11), -ENOSPC);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 21, 1), -ENOSPC);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 6), 0);
	EXPECT_EQ(wheel_info(fd).limit, 10);
	expect_armed(fd, 10, 4);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 20), 0);
	EXPECT_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 1, 0);
}

/* So much as the header says is enough. */
static __u32 shared_bytes_nr;

static void shared_bytes_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, shared_bytes_nr), 0, "%u",
		  shared_bytes_nr);
	close(fd);
}

static void test_shared_bytes(void)
{
	static const __u32 nrs[] = { 1, 15, 255, 256, 257, 2047, 2048, 2049, 65535, 65536,
				     65537, 100000 };
	char limit[32];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		shared_bytes_nr = nrs[i];
		snprintf(limit, sizeof(limit), "%ld", (2048 + nrs[i] * 30 + 180 * 1024) / TIMER);
		params("1000000", limit);
		tap_join(tap_fork(shared_bytes_child));
	}
	params_restore();
}

static void test_shared(void)
{
	int fd;

	user_may_have(costs.shared + with_chunks(1));
	tap_join(tap_fork(shared_child));
	params("20", "1000000");
	tap_join(tap_fork(shared_wheel_child));
	/* root's CAP_SYS_RESOURCE */
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 60, 50), 0);
	expect_armed(fd, 20, 10);
	close(fd);
	params_restore();
}

/* All but an empty wheel, of which there may be one more */
static void have_all(int fd)
{
	int other = wheel_open(O_NONBLOCK);

	expect_full(fd, costs.timers);
	close(other);
}

/* Root of a namespace that anybody can make is nobody here */
static void namespace_root_child(void)
{
	become(ALICE);
	if (syscall(SYS_unshare, CLONE_NEWUSER))
		tap_bail("unshare: %s", strerror(errno));
	expect_full(wheel_open(O_NONBLOCK), costs.timers);
}

static void test_namespace_root(void)
{
	user_may_have(with_chunks(1));
	tap_join(tap_fork(namespace_root_child));
	params_restore();
}

/*
 * Alice has a namespace with users of her own, as newuidmap(1) gives them out: all of
 * them are Alice. In one that root made, each is somebody.
 */
static uid_t owner;
static int sub_user;
static bool sub_user_has_any;

static void sub_user_child(void)
{
	int fd;

	if (setresuid(sub_user, sub_user, sub_user))
		tap_bail("setresuid: %s", strerror(errno));
	fd = wheel_open(O_NONBLOCK);
	if (sub_user_has_any)
		have_all(fd);
	else
		expect_armed(fd, 1, 0);
	if (sub_user == 1) {
		step(3);
		wait_step(4);
	}
}

static void owner_child(void)
{
	pid_t one;

	if (owner)
		become(owner);
	if (syscall(SYS_unshare, CLONE_NEWUSER))
		tap_bail("unshare: %s", strerror(errno));
	step(1);
	wait_step(2);
	sub_user = 1;
	sub_user_has_any = true;
	one = tap_fork(sub_user_child);
	wait_step(3);
	sub_user = 2;
	sub_user_has_any = !owner;
	tap_join(tap_fork(sub_user_child));
	step(4);
	tap_join(one);
}

static void expect_sub_users(uid_t uid)
{
	char path[64], map[64];
	pid_t pid;
	long ret;

	memset(shared, 0, sizeof(*shared));
	owner = uid;
	pid = tap_fork(owner_child);
	wait_step(1);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	snprintf(map, sizeof(map), "0 %u 1\n1 3001 2\n", uid);
	ret = write_text(path, map);
	if (ret)
		tap_bail("%s: %s", path, strerror(-ret));
	step(2);
	tap_join(pid);
}

static void test_sub_users(void)
{
	user_may_have(with_chunks(1) + costs.wheel);
	expect_sub_users(ALICE);
	expect_sub_users(0);
	params_restore();
}

static void full_root_child(void)
{
	drop_resource();
	expect_no_wheel();
}

static void test_capability(void)
{
	long chunks, most;
	int fd;

	user_may_have(with_chunks(1) + costs.wheel);
	tap_join(tap_fork(weak_root_child));
	fd = wheel_open(O_NONBLOCK);
	chunks = 1 + (costs.wheel + costs.chunk) / costs.chunk;
	most = chunks * costs.timers;
	expect_armed(fd, most, most);
	/* what went over the limit counts: there is none left without it */
	tap_join(tap_fork(full_root_child));
	close(fd);
	tap_join(tap_fork(weak_root_child));
	params_restore();
}

/* A wheel counts for who opened it, whoever arms */
static int passed;

static void passed_child(void)
{
	int fd;

	become(BOB);
	expect_full(passed, costs.timers);
	fd = wheel_open(O_NONBLOCK);
	have_all(fd);
}

static void opener_child(void)
{
	int fd;

	become(ALICE);
	shared->fd = wheel_open(O_NONBLOCK);
	fd = wheel_open(O_NONBLOCK);
	step(1);
	wait_step(2);
	expect_armed(fd, 1, 0);
}

/* The descriptor of another process, as if it had been passed */
static int take_fd(pid_t pid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	int copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	if (copy < 0)
		tap_bail("pidfd_getfd: %s", strerror(errno));
	close(pidfd);
	return copy;
}

static void test_opener_pays(void)
{
	pid_t opener;

	memset(shared, 0, sizeof(*shared));
	user_may_have(with_chunks(1) + costs.wheel);
	opener = tap_fork(opener_child);
	wait_step(1);
	passed = take_fd(opener, shared->fd);
	tap_join(tap_fork(passed_child));
	step(2);
	tap_join(opener);
	close(passed);
	params_restore();
}

int main(void)
{
	mode_t mode;

	tap_start(60);
	shared = map_shared(sizeof(*shared));
	read_text(PARAMETERS "max_timers", wheel_param, sizeof(wheel_param));
	read_text(PARAMETERS "max_user_timers", user_param,
		  sizeof(user_param));
	mode = open_to_all();
	RUN(test_setup_limit, "the limit that a wheel was set up with");
	RUN(test_periodic_limit, "periodic timers at the limit");
	RUN(test_modify_at_limit, "MODIFY at the limit");
	RUN(test_wheel_limit, "the module's limit for a wheel");
	RUN(test_memory, "the memory of a user's timers");
	RUN(test_refused_not_held, "a program that asks for too much, beside another");
	RUN(test_periodic_memory, "the memory of a user's periodic timers");
	RUN(test_user_limit, "the limit of a user, across processes");
	RUN(test_many_wheels, "wheels without timers count, too");
	RUN(test_refused, "SETUP after an ARM that was refused");
	RUN(test_shared, "shared timers");
	RUN(test_shared_bytes, "the memory of shared timers");
	RUN(test_giving_back, "every end of timers gives back their memory");
	RUN(test_capability, "CAP_SYS_RESOURCE goes over the limit of a user");
	RUN(test_namespace_root, "root of a user namespace does not");
	RUN(test_sub_users, "the users of a user's namespace are that user");
	RUN(test_opener_pays, "a passed wheel counts for its opener");
	chmod(DEVICE, mode);
	return tap_end();
}
