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
 * @user: once, whoever has wheels
 * @wheel: without timers
 * @slots: more, once there are any
 * @chunk: each chunk, of timers or of what periodic ones have besides
 * @shared: with SHARED shared timers
 * @timers: that a chunk has room for
 */
struct costs {
	long user;
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

/* Up to @max; gives how many it could, and why not more */
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
	long error;

	EXPECT_EQ(arm_up_to(fd, max, &error), want);
	EXPECT_EQ(error, want < max ? -ENOSPC : 0);
}

static long setup_shared(int fd, __u32 nr)
{
	return shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, nr);
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

static int alice_opens(void)
{
	become(ALICE);
	return wheel_open(O_NONBLOCK);
}

static void wheel_limit_child(void)
{
	static const __u64 too_many[] = { 21, KTIME_MAX, -1 };
	int fd = alice_opens(), other;
	size_t i;

	EXPECT_EQ(wheel_info(fd).wheel_limit, 20);
	EXPECT_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 100, 20);
	/* another wheel has a limit of its own */
	expect_armed(wheel_open(O_NONBLOCK), 100, 20);
	other = wheel_open(O_NONBLOCK);
	for (i = 0; i < ARRAY_SIZE(too_many); i++)
		EXPECT_EQ(setup_with(other, .clock = TWHEEL_CLOCK_MONOTONIC, .limit = too_many[i]),
			  -ENOSPC, "more than the module's limit");
	EXPECT_EQ(setup_with(other, .clock = TWHEEL_CLOCK_MONOTONIC, .limit = 20), 0,
		  "as much as the module's limit");
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
 * Chunks that are measured together. They fill a directory, whose first entry is not used: one
 * more chunk would double it.
 */
#define CHUNKS 15

static struct costs costs;

/* More than all that rounding amounts to, and too little for anything else */
static long rounding(void)
{
	return (costs.wheel < costs.chunk ? costs.wheel : costs.chunk) / 2;
}

static void limit_to(long units)
{
	char limit[32];

	snprintf(limit, sizeof(limit), "%ld", units);
	params("1000000", limit);
}

/* The limit with which a user may have wheels of that many bytes, and little more */
static long limit_for(long bytes)
{
	return (costs.user + bytes + rounding()) / TIMER;
}

static void user_may_have(long bytes)
{
	limit_to(limit_for(bytes));
}

/* A child whose user may have so much */
static void run_limited(long bytes, void (*child)(void))
{
	user_may_have(bytes);
	tap_join(tap_fork(child));
	params_restore();
}

/* What a wheel takes that has @chunks chunks */
static long with_chunks(long chunks)
{
	return costs.wheel + costs.slots + chunks * costs.chunk;
}

static void expect_full(int fd, long want)
{
	expect_armed(fd, want + 1, want);
}

/* Can this many wheels with this many timers each, or shared timers, be had? */
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
			can = !setup_shared(fds[n], nr_shared);
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
	first = measure(1, 0, 0);
	found->wheel = words((measure(MEASURED, 0, 0) - first) / (MEASURED - 1));
	found->user = words(first - found->wheel);
	first = measure(1, 1, 0);
	limit_to(first / TIMER);
	fd = wheel_open(O_NONBLOCK);
	found->timers = arm_up_to(fd, 1000000, &error);
	EXPECT_EQ(error, -ENOSPC);
	close(fd);
	most = measure(1, CHUNKS * found->timers, 0);
	found->chunk = words((most - first) / (CHUNKS - 1));
	found->slots = first - found->user - found->wheel - found->chunk;
	found->shared = measure(1, 0, SHARED) - found->user;
}

static void ten_chunks_child(void)
{
	expect_full(alice_opens(), 10 * costs.timers);
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
	run_limited(with_chunks(10), ten_chunks_child);
}

/* Asks again and again for much more than a user may have, and holds nothing. */
static void asking_child(void)
{
	int fd = alice_opens(), i;

	/* Until it is killed; but user-mode Linux may do one process after the other. */
	for (i = 0; i < 100000; i++) {
		if (!setup_shared(fd, TWHEEL_SHARED_MAX))
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
	int fd = alice_opens();
	struct twheel_op op;
	long n = -1;

	do {
		op = op_arm(0, HOUR, ++n);
		op.interval = HOUR;
	} while (!op_single(fd, &op));
	EXPECT_EQ(n, costs.timers);
	EXPECT_EQ(op.result, -ENOSPC);
	expect_full(fd, costs.timers);
}

/* A timer that becomes periodic needs no other place as a timer. */
static void becoming_child(void)
{
	int fd = alice_opens();
	struct twheel_op op = op_modify(arm(fd, 0, HOUR, 0), 0, HOUR, 0);

	expect_armed(fd, costs.timers - 1, costs.timers - 1);
	op.interval = HOUR;
	EXPECT_EQ(op_single(fd, &op), 0);
	expect_full(fd, 0);
}

static void test_periodic_memory(void)
{
	run_limited(with_chunks(3), periodic_child);
	run_limited(with_chunks(2), becoming_child);
}

/* Three wheels with two, two and one */
static long five_chunks(void)
{
	return 2 * with_chunks(2) + with_chunks(1);
}

static void first_child(void)
{
	int fd = alice_opens();

	EXPECT_EQ(wheel_info(fd).user_limit, limit_for(five_chunks()));
	expect_armed(fd, 2 * costs.timers, 2 * costs.timers);
	step(1);
	wait_step(2);
}

static void second_child(void)
{
	int fd = alice_opens(), other = wheel_open(O_NONBLOCK);

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

/* How timers end: all of them are gone then, though to read a periodic one is not its end */
enum end { CANCELLED, READ, DRAINED, ENDS };

static void end_all(int fd, enum end how, struct twheel_op *ops, long nr)
{
	static struct twheel_event ev[4096];
	long i;

	for (i = 0; how == CANCELLED && i < nr; i++)
		EXPECT_EQ(cancel(fd, ops[i].id), 0);
	if (how == READ)
		EXPECT_EQ(read_events(fd, ev, nr), nr);
	if (how == DRAINED)
		EXPECT_EQ(drain(fd, ops, nr), nr);
}

/*
 * Memory of timers that end in each way is given back, but for a little: enough that
 * another wheel has its first timers.
 */
static bool periodic;

/* In each table, as many as make all but one a wheel's first ones, slots included */
static long giving_back_chunks(void)
{
	return costs.slots / costs.chunk + 3;
}

static void arm_all(int fd, enum end how, struct twheel_op *ops, long nr)
{
	long i;

	for (i = 0; i < nr; i++) {
		ops[i] = op_arm(TWHEEL_ABS, how == READ ? 1 : KTIME_MAX, i);
		ops[i].interval = periodic ? HOUR : 0;
	}
	submit_all(fd, ops, nr);
}

static void giving_back_child(void)
{
	static struct twheel_op ops[4096];
	long nr = giving_back_chunks() * costs.timers;
	long others = nr * (periodic ? 2 : 1) - costs.timers;
	int fd, other;
	enum end how;

	become(ALICE);
	EXPECT_TRUE(nr <= 4096);
	for (how = CANCELLED; how < ENDS; how++) {
		if (periodic && how == READ)
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
	run_limited(with_chunks(chunks) + costs.wheel, giving_back_child);
	periodic = true;
	run_limited(with_chunks(2 * chunks) + costs.wheel, giving_back_child);
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
	int other = alice_opens(), fd = wheel_open(O_NONBLOCK);
	struct twheel_op op = op_arm(0, HOUR, 0);
	struct twheel_event ev;
	__u64 deadline;

	expect_armed(other, 1, 1);
	EXPECT_EQ(op_single(fd, &op), -ENOSPC);
	EXPECT_EQ(setup_with(fd, .clock = TWHEEL_CLOCK_BOOTTIME, .tick = MSEC), 0);
	EXPECT_EQ(wheel_info(fd).clock, TWHEEL_CLOCK_BOOTTIME);
	close(other);
	deadline = now(CLOCK_BOOTTIME) + 5 * MSEC;
	arm(fd, TWHEEL_ABS, deadline, 7);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 7);
	EXPECT_TRUE(now(CLOCK_BOOTTIME) >= deadline, "early");
}

static void test_refused(void)
{
	run_limited(costs.wheel + with_chunks(1), refused_child);
	/* there was memory for slots, at least */
	run_limited(2 * with_chunks(1) - costs.chunk, refused_child);
}

/* Shared timers take their memory at their set-up, whatever is done with them. */
static void shared_child(void)
{
	struct client client;
	int fd, other, round;

	become(ALICE);
	for (round = 0; round < 5; round++) {
		fd = wheel_open(O_NONBLOCK);
		EXPECT_EQ(setup_shared(fd, 10 * SHARED), -ENOSPC);
		EXPECT_EQ(setup_shared(fd, SHARED), 0);
		other = wheel_open(O_NONBLOCK);
		EXPECT_EQ(setup_shared(other, SHARED), -ENOSPC);
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
		EXPECT_EQ(setup_shared(fd, SHARED), -ENOSPC);
		munmap(client.area, client.size);
		EXPECT_EQ(setup_shared(fd, SHARED), 0);
		close(fd);
	}
}

static void shared_wheel_child(void)
{
	int fd = alice_opens();

	EXPECT_EQ(setup_shared(fd, 21), -ENOSPC);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 11), -ENOSPC);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 21, 1), -ENOSPC);
	EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 6), 0);
	EXPECT_EQ(wheel_info(fd).limit, 10);
	expect_armed(fd, 10, 4);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(setup_shared(fd, 20), 0);
	EXPECT_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 1, 0);
}

/* So much as the header says is enough. */
static __u32 shared_bytes_nr;

static void shared_bytes_child(void)
{
	EXPECT_EQ(setup_shared(alice_opens(), shared_bytes_nr), 0, "%u", shared_bytes_nr);
}

static void test_shared_bytes(void)
{
	static const __u32 nrs[] = { 1, 255, 256, 257, 2047, 2048, 2049, 65535, 65536, 65537 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		shared_bytes_nr = nrs[i];
		limit_to((2048 + nrs[i] * 30 + 180 * 1024) / TIMER);
		tap_join(tap_fork(shared_bytes_child));
	}
	params_restore();
}

static void test_shared(void)
{
	int fd;

	run_limited(costs.shared + with_chunks(1), shared_child);
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

/* Root without leave to go over limits is another user. */
static void other_root_child(void)
{
	drop_resource();
	have_all(wheel_open(O_NONBLOCK));
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
	tap_join(tap_fork(other_root_child));
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
	RUN(test_wheel_limit, "the module's limit for a wheel");
	RUN(test_memory, "the memory of a user's timers");
	RUN(test_refused_not_held, "a program that asks for too much, beside another");
	RUN(test_periodic_memory, "the memory of a user's periodic timers");
	RUN(test_user_limit, "the limit of a user, across processes");
	RUN(test_refused, "SETUP after an ARM that was refused");
	RUN(test_shared, "shared timers");
	RUN(test_shared_bytes, "the memory of shared timers");
	RUN(test_giving_back, "every end of timers gives back their memory");
	RUN(test_capability, "CAP_SYS_RESOURCE goes over the limit of a user");
	RUN_CALL(run_limited(with_chunks(1), namespace_root_child),
		 "root of a user namespace does not");
	RUN(test_opener_pays, "a passed wheel counts for its opener");
	chmod(DEVICE, mode);
	return tap_end();
}
