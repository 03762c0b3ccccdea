// SPDX-License-Identifier: GPL-2.0
/*
 * Shared timers of a wheel that is in the program itself: they are in a BPF program, which
 * twheel-loader gave. A program sees the same as with the module, and what can't be is refused.
 * For a machine without the module, in which the loader serves.
 */

#include "threads.h"
#include "choice.h"
#include "users.h"

#include <dirent.h>
#include <sched.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <twheel.h>
#include <twheel_pool.h>
#include <twheel_shared.h>

#define NR 1000
/* Wheels that the loader gives a user, see twheel-loader(8) */
#define MOST_WHEELS 32

static struct twheel *tw;
static struct twheel_area area;

static int set_up_with(struct twheel_setup setup)
{
	setup.size = sizeof(setup);
	setup.clock = setup.clock ?: TWHEEL_CLOCK_MONOTONIC;
	setup.flags |= setup.shared ? TWHEEL_SETUP_SHARED : 0;
	return twheel_setup(tw, &setup);
}

/* A wheel with shared timers, of short ticks */
static void fresh_with(int flags, __u32 event_size)
{
	EXPECT_EQ(given(&tw, flags | TWHEEL_BPF, ""), TWHEEL_BPF);
	EXPECT_EQ(set_up_with((struct twheel_setup){
		.shared = NR, .tick = MSEC, .event_size = event_size,
	}), 0);
	if (twheel_shared_map(tw, &area))
		tap_bail("no shared timers");
}

static void fresh(int flags)
{
	fresh_with(flags, 0);
}

static void done(void)
{
	twheel_shared_unmap(&area);
	twheel_close(tw);
	tw = NULL;
}

static struct twheel_info info(void)
{
	struct twheel_info info = { .size = sizeof(info) };

	EXPECT_EQ(twheel_info(tw, &info), 0);
	return info;
}

static void arm_one(unsigned int n, __u64 deadline)
{
	EXPECT_TRUE(twheel_shared_arm(&area, n, deadline) >= 0);
}

static __u64 time_here(void)
{
	return now(CLOCK_MONOTONIC);
}

static void test_choice(void)
{
	const struct twheel_setup shared = { .shared = 1 };

	EXPECT_EQ(given(&tw, 0, "bpf"), TWHEEL_BPF);
	EXPECT_EQ(set_up_with(shared), 0);
	EXPECT_EQ(given(&tw, TWHEEL_BPF, "user"), TWHEEL_BPF, "flags come first");
	EXPECT_EQ(given(&tw, TWHEEL_BPF | TWHEEL_USER, ""), -EINVAL);
	EXPECT_EQ(given(&tw, TWHEEL_BPF | TWHEEL_KERNEL, ""), -EINVAL);
	EXPECT_EQ(given(&tw, TWHEEL_KERNEL, ""), -ENOENT);
	/* By itself, a wheel is in the program until it has shared timers. */
	EXPECT_EQ(given(&tw, 0, ""), TWHEEL_USER);
	EXPECT_TRUE(info().features & TWHEEL_FEATURE_SHARED);
	EXPECT_EQ(set_up_with(shared), 0);
	EXPECT_EQ(twheel_backend(tw), TWHEEL_BPF);
	EXPECT_EQ(set_up_with(shared), -EBUSY);
	EXPECT_EQ(given(&tw, 0, "user"), TWHEEL_USER);
	EXPECT_EQ(set_up_with(shared), -ENODEV);
	EXPECT_EQ(info().features & TWHEEL_FEATURE_SHARED, 0);
	EXPECT_EQ(set_up_with((struct twheel_setup){ 0 }), 0, "it was refused, and nothing else");
}

static bool no_timer;

int __wrap_timerfd_create(int clockid, int flags)
{
	if (!no_timer)
		return (int)syscall(SYS_timerfd_create, clockid, flags);
	errno = ENOMEM;
	return -1;
}

static int set_up_within(rlim_t descriptors)
{
	struct rlimit before, limit;
	int ret;

	getrlimit(RLIMIT_NOFILE, &before);
	limit = (struct rlimit){ descriptors, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &limit);
	ret = set_up_with((struct twheel_setup){ .shared = 1 });
	setrlimit(RLIMIT_NOFILE, &before);
	return ret;
}

/* The descriptor that comes next */
static int next_descriptor(void)
{
	int next = dup(0);

	close(next);
	return next;
}

/* Wherever it fails: before the loader is asked, when its answer comes, or when that is here */
static void test_fails(void)
{
	unsigned int more;
	int next;

	EXPECT_EQ(given(&tw, 0, ""), TWHEEL_USER);
	next = next_descriptor();
	for (more = 0; more < 20 && set_up_within(next + more); more++) {
		EXPECT_EQ(twheel_backend(tw), TWHEEL_USER, "with %u", more);
		EXPECT_EQ(info().shared, 0);
		EXPECT_EQ(next_descriptor(), next, "some stay open, with %u", more);
	}
	/* For four of the timers, at least */
	EXPECT_TRUE(more >= 5 && more < 20, "%u", more);
	EXPECT_EQ(twheel_backend(tw), TWHEEL_BPF);
	EXPECT_EQ(given(&tw, 0, ""), TWHEEL_USER);
	no_timer = true;
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), -ENOMEM);
	no_timer = false;
	EXPECT_EQ(twheel_backend(tw), TWHEEL_USER, "without a clock");
	EXPECT_EQ(next_descriptor(), next);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), 0);
	EXPECT_EQ(twheel_shared_map(tw, &area), 0);
	arm_one(0, 1);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	done();
}

static void not_allowed(void)
{
	become(1000);
	EXPECT_EQ(given(&tw, TWHEEL_BPF, ""), -EACCES);
	EXPECT_EQ(given(&tw, 0, ""), TWHEEL_USER);
	EXPECT_EQ(info().features & TWHEEL_FEATURE_SHARED, 0);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), -ENODEV);
}

static void test_not_allowed(void)
{
	tap_join(tap_fork(not_allowed));
}

static void test_refused(void)
{
	const __u32 clocks[] = { TWHEEL_CLOCK_REALTIME, TWHEEL_CLOCK_BOOTTIME, TWHEEL_CLOCK_TAI };
	struct twheel_op op = twheel_op_arm(0, HOUR, 0, 0);
	struct twheel_area none;
	unsigned int i;

	EXPECT_EQ(given(&tw, TWHEEL_BPF, ""), TWHEEL_BPF);
	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1, .clock = clocks[i] }),
			  -EOPNOTSUPP);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1, .flags = TWHEEL_SETUP_COUNT }),
		  -EINVAL);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 2, .limit = 1 }), -ENOSPC);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = TWHEEL_SHARED_MAX }), -ENOSPC);
	EXPECT_EQ(twheel_shared_map(tw, &none), -EINVAL);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 2, .limit = 3 }), 0);
	EXPECT_EQ(info().limit, 3);
	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_EQ(twheel_arm(tw, &op), -ENOSPC, "the shared ones count as held");
	EXPECT_EQ(twheel_set_eventfd(tw, -1), -EOPNOTSUPP);
}

static void test_info(void)
{
	fresh(0);
	EXPECT_EQ(info().shared, NR);
	EXPECT_TRUE(info().shared_size >= NR * 8);
	EXPECT_TRUE(info().features & TWHEEL_FEATURE_SHARED);
	EXPECT_EQ(info().flags, TWHEEL_SETUP_SHARED);
	EXPECT_EQ(info().tick, MSEC);
	EXPECT_EQ(info().next_expiry, 0);
	EXPECT_EQ(area.nr, NR, "more can't be used");
	arm_one(1, time_here() + HOUR);
	EXPECT_TRUE(WAIT_FOR(info().next_expiry));
	EXPECT_TRUE(info().next_expiry <= time_here() + HOUR);
	done();
}

/* Woken by the descriptor, and then each once; again and again, so that none is missed */
static void test_taken(void)
{
	__u64 deadline[NR], seed = 1;
	unsigned int timers[64], n, i, round, left;

	fresh(O_NONBLOCK);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < NR; i++) {
			deadline[i] = time_here() + random_next(&seed) % (20 * MSEC);
			arm_one(i, deadline[i]);
		}
		for (left = NR; left; ) {
			if (!EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS), "%u left", left))
				break;
			while ((n = twheel_shared_take(&area, timers, 64)))
				for (i = 0; i < n; i++, left--) {
					EXPECT_TRUE(deadline[timers[i]] <= time_here(), "early");
					EXPECT_TRUE(deadline[timers[i]], "twice");
					deadline[timers[i]] = 0;
				}
		}
		EXPECT_TRUE(!readable(twheel_fd(tw), 0), "readable though there is nothing");
	}
	arm_one(3, 1);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	EXPECT_EQ(twheel_shared_take(&area, timers, 0), 0);
	EXPECT_TRUE(readable(twheel_fd(tw), 0), "it is still there");
	EXPECT_EQ(twheel_shared_cancel(&area, 3), TWHEEL_STATE_READY);
	EXPECT_EQ(twheel_shared_take(&area, timers, 64), 0);
	done();
}

static void test_read(void)
{
	struct twheel_op op = twheel_op_arm(TWHEEL_ABS, 1, 0, 77);
	struct twheel_event events[4];
	__u64 deadline;

	fresh(0);
	deadline = (time_here() + 20 * MSEC) & ~1ULL;
	arm_one(5, deadline);
	EXPECT_EQ(twheel_read(tw, events, 4), 1, "it waits");
	EXPECT_TRUE(time_here() >= deadline);
	EXPECT_EQ(events[0].user_data, 5);
	EXPECT_EQ(events[0].id, 0);
	EXPECT_EQ(events[0].flags, TWHEEL_EVENT_SHARED);
	EXPECT_EQ(events[0].deadline, deadline | 1);
	/* An ordinary one ends a wait, too. */
	op = twheel_op_arm(0, 20 * MSEC, 0, 78);
	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_EQ(twheel_read(tw, events, 4), 1);
	EXPECT_EQ(events[0].user_data, 78);
	done();
	fresh_with(O_NONBLOCK, TWHEEL_EVENT_SIZE_ID);
	EXPECT_EQ(twheel_read(tw, events, 4), -EAGAIN);
	EXPECT_EQ(twheel_read(tw, events, 0), -EINVAL);
	arm_one(999, 1);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	EXPECT_EQ(twheel_read(tw, events, 4), 1);
	EXPECT_EQ(events[0].user_data, 999);
	EXPECT_EQ(twheel_read(tw, events, 4), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0));
	done();
}

/* While there are always some of both, whoever reads gets both, an event at a time, too. */
static void test_both(void)
{
	unsigned int room, round, ordinary, shared, i;
	struct twheel_op op = twheel_op_arm(TWHEEL_ABS, 1, 0, NR);
	struct twheel_event events[4];
	int n;

	for (room = 1; room <= 4; room++) {
		fresh(O_NONBLOCK);
		for (ordinary = shared = round = 0; round < 20; round++) {
			for (i = 0; i < 2 * room; i++)
				EXPECT_EQ(twheel_arm(tw, &op), 0);
			for (i = 0; i < 2 * room; i++)
				arm_one(round * 2 * room + i, 1);
			EXPECT_TRUE(WAIT_FOR(area.shared->tail - area.shared->head >= room));
			n = twheel_read(tw, events, room);
			EXPECT_EQ(n, room);
			for (i = 0; i < room; i++)
				*(events[i].flags & TWHEEL_EVENT_SHARED ? &shared : &ordinary) += 1;
		}
		EXPECT_TRUE(ordinary >= 5 * room, "%u of ordinary ones, %u each", ordinary, room);
		EXPECT_TRUE(shared >= 5 * room, "%u of shared ones, %u each", shared, room);
		while (readable(twheel_fd(tw), ordinary + shared < 80 * room ? PATIENCE_MS : 0)) {
			n = twheel_read(tw, events, 4);
			shared += n > 0 ? n : 0;
		}
		EXPECT_EQ(ordinary + shared, 80 * room);
		done();
	}
}

static void test_drain(void)
{
	struct twheel_op ops[64], op = twheel_op_arm(0, HOUR, 0, 7);
	__u64 until = time_here() + HOUR;
	bool seen[NR] = { false };
	int n, i, all = 0;

	fresh(O_NONBLOCK);
	for (i = 0; i < NR; i += 2)
		arm_one(i, until + i);
	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_EQ(twheel_drain(tw, ops, 64), 1);
	EXPECT_EQ(ops[0].user_data, 7);
	while ((n = twheel_drain(tw, ops, 64)) > 0)
		for (i = 0; i < n; i++, all++) {
			EXPECT_EQ(ops[i].opcode, TWHEEL_OP_ARM);
			EXPECT_EQ(ops[i].id, 0);
			EXPECT_EQ(ops[i].deadline, (until + ops[i].user_data) | 1, "not early");
			EXPECT_TRUE(!(ops[i].user_data & 1) && !seen[ops[i].user_data]);
			seen[ops[i].user_data] = true;
		}
	EXPECT_EQ(n, 0);
	EXPECT_EQ(all, NR / 2);
	EXPECT_EQ(twheel_shared_cancel(&area, 2), TWHEEL_STATE_NONE);
	done();
}

/* Several take, and sleep in between: nobody sleeps while there is something. */
static unsigned int taken;
static bool over;

static void *take(void *arg)
{
	unsigned int timers[4], n;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		n = twheel_shared_take(&area, timers, 4);
		__atomic_add_fetch(&taken, n, __ATOMIC_ACQ_REL);
		if (!n)
			readable(twheel_fd(tw), 20000);
	}
	return arg;
}

static void test_threads(void)
{
	pthread_t threads[3];
	unsigned int round, i;

	fresh(0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, take, NULL);
	for (round = 0; round < 300; round++) {
		for (i = 0; i < 20; i++)
			arm_one(i, time_here() + i % 4 * MSEC);
		if (!EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&taken, __ATOMIC_ACQUIRE) ==
					  20 * (round + 1)), "round %u", round))
			break;
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	arm_one(0, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	done();
}

static void *set_up_one(void *arg)
{
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_SHARED, .shared = 1,
	};
	struct twheel *one;
	int ret = twheel_open(0, &one) ?: twheel_setup(one, &setup);

	EXPECT_EQ(ret, 0);
	twheel_close(one);
	return arg;
}

/* More at a time than the loader listens to, and more in turn than it gives one at a time */
static void test_many(void)
{
	struct twheel *many[MOST_WHEELS] = { NULL };
	pthread_t threads[8];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, set_up_one, NULL);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < MOST_WHEELS; i++) {
		EXPECT_EQ(given(&tw, TWHEEL_BPF, ""), TWHEEL_BPF);
		EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), 0, "%u", i);
		many[i] = tw;
		tw = NULL;
	}
	EXPECT_EQ(given(&tw, TWHEEL_BPF, ""), TWHEEL_BPF);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), -ENOSPC);
	for (i = 0; i < MOST_WHEELS; i++)
		twheel_close(many[i]);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), 0);
}

/* A child has the shared timers, and not the wheel that is beside them. */
static void in_child(void)
{
	struct twheel_op op = twheel_op_arm(0, HOUR, 0, 0);
	struct twheel_event event;
	struct twheel_area again;
	unsigned int i;

	for (i = 0; i < 2; i++)
		EXPECT_EQ(twheel_read(tw, &event, 1), -EBADF);
	EXPECT_EQ(twheel_arm(tw, &op), -EBADF);
	arm_one(8, 1);
	EXPECT_EQ(twheel_shared_map(tw, &again), 0);
	EXPECT_TRUE(twheel_shared_arm(&again, 9, 1) >= 0);
}

static void test_fork(void)
{
	unsigned int timers[4], n = 0;

	fresh(0);
	arm_one(7, 1);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	tap_join(tap_fork(in_child));
	EXPECT_TRUE(WAIT_FOR((n += twheel_shared_take(&area, timers, 4)) == 3), "%u", n);
	done();
}

static void in_namespace(void)
{
	EXPECT_EQ(given(&tw, 0, ""), TWHEEL_USER);
	EXPECT_EQ(set_up_with((struct twheel_setup){ .shared = 1 }), -EOPNOTSUPP);
	EXPECT_EQ(set_up_with((struct twheel_setup){ 0 }), 0);
}

/* The clock of the kernel's side is the host's. */
static void test_namespace(void)
{
	int fd;

	if (unshare(CLONE_NEWTIME)) {
		tap_skip("no time namespaces");
		return;
	}
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	EXPECT_EQ(write(fd, "monotonic 1000 0\n", 17), 17);
	close(fd);
	tap_join(tap_fork(in_namespace));
	fd = open("/proc/1/ns/time", O_RDONLY | O_CLOEXEC);
	setns(fd, CLONE_NEWTIME);
	close(fd);
}

static unsigned int bpf_files(void)
{
	unsigned int nr = 0;
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");
	char path[300], target[64];
	ssize_t size;

	while ((entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		size = readlink(path, target, sizeof(target) - 1);
		target[size > 0 ? size : 0] = '\0';
		nr += !!strstr(target, "bpf-");
	}
	closedir(folder);
	return nr;
}

static unsigned int runs;

static int run(struct twheel_task *task, const struct twheel_run *run)
{
	(void)task;
	EXPECT_TRUE(time_here() >= run->deadline, "early");
	__atomic_add_fetch(&runs, 1, __ATOMIC_ACQ_REL);
	return 0;
}

/* A pool with that many workers: how many descriptors of BPF it has; its tasks run. */
static void check_pool(__u32 threads, int flags, unsigned int files)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = threads, .flags = flags,
	};
	struct twheel_task tasks[200] = { { .run = run } };
	struct twheel_pool *pool;
	unsigned int i;

	if (twheel_pool_new(&options, &pool))
		tap_bail("no pool");
	EXPECT_EQ(bpf_files(), files);
	runs = 0;
	for (i = 0; i < ARRAY_SIZE(tasks); i++) {
		tasks[i] = (struct twheel_task){ .run = run };
		EXPECT_EQ(twheel_task_start(pool, &tasks[i], 0, i % 50 * MSEC, 0), 0);
	}
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&runs, __ATOMIC_ACQUIRE) == ARRAY_SIZE(tasks)),
		    "%u", runs);
	EXPECT_EQ(twheel_pool_free(pool), 0);
	EXPECT_EQ(bpf_files(), 0);
}

static void test_pool(void)
{
	twheel_close(tw);
	tw = NULL;
	check_pool(2, 0, 4);
	check_pool(2, TWHEEL_BPF, 4);
	check_pool(2, TWHEEL_USER, 0);
	check_pool(1, TWHEEL_BPF, 0);
}

int main(void)
{
	tap_start(120);
	RUN(test_choice, "which wheel it is");
	RUN(test_fails, "a set-up that fails leaves nothing");
	RUN(test_not_allowed, "who is not in the group");
	RUN(test_refused, "what can't be is refused");
	RUN(test_info, "what is said of them");
	RUN(test_taken, "taken from memory, when the descriptor is readable");
	RUN(test_read, "read, or waited for");
	RUN(test_both, "read in turn with ordinary timers");
	RUN(test_drain, "drained");
	RUN(test_threads, "three threads that take");
	RUN(test_many, "many wheels, at a time and in turn");
	RUN(test_fork, "a child");
	RUN(test_namespace, "a time namespace");
	RUN(test_pool, "pools");
	twheel_close(tw);
	return tap_end();
}
