// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile user's wheels have very much to do: another program keeps its share of the
 * processor nevertheless, and timers of another user who waits are in time.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * processors: 2
 * module parameters: max_user_timers=33554432
 * Environment: TIMES=N for N times as long.
 */
#include "shared.h"
#include "cgroup.h"

#include <sys/epoll.h>

#define ALICE 1001
/* The first of the hostile users */
#define MALLORY 2000
#define USERS_MAX 8
#define BATCH 256

/* The processor on which timers are armed, and that of the threads that take the lock */
#define OTHERS 0
#define HOLDERS 1

/*
 * Most of their throughput that other programs may lose beyond what the user's own take,
 * in %
 */
#define LOSS 15

static __u64 duration(void)
{
	return number_of("TIMES", 1) * 500 * MSEC;
}

/* ---- who takes the lock whenever the timer comes ---- */

#define THREADS 2
#define LEAD (600 * MSEC)

static bool *armed;
static bool holds;

/* Operations that are refused: the lock is taken for nothing else. */
static void *holding_thread(void *arg)
{
	struct twheel_op ops[BATCH];
	int fd = *(int *)arg, i;

	pin_to(HOLDERS);
	for (i = 0; i < BATCH; i++)
		ops[i] = op_for(TWHEEL_OP_CANCEL, 1);
	for (;;)
		submit_sized(fd, ops, BATCH, sizeof(*ops));
	return NULL;
}

/* A timer in each microsecond of the time in which the other program is measured */
static void arm_ticks(int fd)
{
	__u64 at = now(CLOCK_MONOTONIC) + LEAD, last = at + 2 * duration();
	struct twheel_op ops[BATCH];
	int i;

	while (at < last) {
		for (i = 0; i < BATCH; i++, at += USEC)
			ops[i] = op_arm(TWHEEL_ABS, at, 0);
		submit_all(fd, ops, BATCH);
	}
}

static void contending_child(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), i;
	pthread_t thread;

	become(MALLORY);
	pin_to(OTHERS);
	arm_ticks(fd);
	set(armed);
	for (i = 0; holds && i < THREADS; i++)
		if (pthread_create(&thread, NULL, holding_thread, &fd))
			tap_bail("pthread_create");
	for (;;)
		pause();
}

static struct measured alone;

static struct measured measure_both(void)
{
	struct measured m = measure(2, "hostile", LEAD + 50 * MSEC, duration());

	tap_diag("%s: own time %.1f %% of a processor", tap_name, 100 * m.own);
	return m;
}

static void beside(bool with_holders)
{
	struct measured m;
	double loss;
	pid_t pid;

	holds = with_holders;
	*armed = false;
	pid = tap_fork(contending_child);
	cgroup_move("hostile", pid);
	EXPECT_TRUE(WAIT_FOR(is_set(armed)));
	m = measure_both();
	end(pid);
	loss = 100 * (1 - m.count / alone.count - m.own / 2);
	tap_diag("%s: %.1f %% lost besides", tap_name, loss);
	EXPECT_TRUE(loss <= LOSS, "%.1f %%", loss);
}

/* ---- who has very many wheels with work ---- */

/*
 * Timers of the hostile user, in each wheel; and of the other, all in one slot: a little less than
 * half of the processors' time can cascade before they are due
 */
#define WHEELS 1000
#define TIMERS 5000
#define SERVED 800000

/* The other's tick, and a slot of the second level of that wheel */
#define TICK (4 * MSEC)
#define SLOT (64 * TICK)

/**
 * struct crowd - what the processes know of each other
 * @due: when the slot is due
 * @users: the hostile ones, who have the wheels together
 * @ready: how many of them have armed their timers
 * @late: the latest timer of the other's wheel, in ns
 */
struct crowd {
	__u64 due;
	int users;
	int ready;
	__u64 late;
};

static struct crowd *crowd;

static void arm_many(int fd, int nr, __u64 at, __u64 step)
{
	struct twheel_op ops[BATCH];
	int i, n;

	for (; nr; nr -= n) {
		n = nr < BATCH ? nr : BATCH;
		for (i = 0; i < n; i++, at += step)
			ops[i] = op_arm(TWHEEL_ABS, at, 0);
		submit_all(fd, ops, n);
	}
}

/* Each timer in a tick of its own, which is most work for the kernel */
static void arm_apart(void)
{
	__u64 step = 2 * SLOT / TIMERS;
	int i;

	for (i = 0; i < WHEELS; i++)
		arm_many(wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), TIMERS,
			 crowd->due - 2 * SLOT + i * step / WHEELS, step);
}

/*
 * All timers of a wheel in one tick, so that nothing that the kernel does for them counts
 * as the user's time. Their slot of the third level is a quarter of the other's, and is
 * cascaded from when that of the other is: there is not time enough for rests.
 */
static void arm_one_slot(int fd)
{
	const __u64 quarter = SLOT / 4;

	arm_many(fd, TIMERS, crowd->due - 3 * quarter + quarter / 4, 0);
}

static void arm_together(void)
{
	int i;

	for (i = 0; i < WHEELS / crowd->users; i++)
		arm_one_slot(wheel_new(TWHEEL_CLOCK_MONOTONIC, SLOT / 4 / 4096));
}

/* A crowd in wheels with shared timers, too */
static void arm_beside_shared(void)
{
	int i, fd;

	for (i = 0; i < WHEELS; i++) {
		fd = wheel_open(O_NONBLOCK);
		if (shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, SLOT / 4 / 4096, 0, 1))
			tap_bail("setup of a shared timer");
		arm_one_slot(fd);
	}
}

static void (*arm_crowd)(void);
static int nth_user;

static void crowd_child(void)
{
	become(MALLORY + nth_user);
	arm_crowd();
	count_up(&crowd->ready);
	for (;;)
		pause();
}

/* Wait until @nr have expired, and read none. */
static void wait_for(int fd, __u64 nr)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
		tap_bail("epoll_ctl: %s", strerror(errno));
	while (wheel_stats(fd).expired < nr)
		if (!EXPECT_EQ(epoll_wait(ep, &event, 1, PATIENCE_MS), 1))
			break;
	crowd->late = wheel_stats(fd).max_lateness;
	close(ep);
}

static void served_child(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, TICK);

	become(ALICE);
	arm_many(fd, SERVED, crowd->due, 0);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) < crowd->due - 2 * SLOT, "it took too long");
	wait_for(fd, SERVED);
}

/* A timer in each tick, for as long as there is something of the hostile one to cascade */
static void ticking_child(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);

	become(ALICE);
	arm_many(fd, 2 * SLOT / MSEC, crowd->due - SLOT, MSEC);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) < crowd->due - SLOT, "it took too long");
	wait_for(fd, 2 * SLOT / MSEC);
}

/* Returns how late the other's latest timer was, in ns. */
static __u64 serve_beside(int users, void (*arm)(void), void (*served)(void))
{
	pid_t pid[USERS_MAX];

	crowd->ready = 0;
	crowd->users = users;
	crowd->due = (now(CLOCK_MONOTONIC) + 4 * SEC) / SLOT * SLOT;
	arm_crowd = arm;
	for (nth_user = 0; nth_user < users; nth_user++)
		pid[nth_user] = tap_fork(crowd_child);
	EXPECT_TRUE(all_ready(&crowd->ready, users));
	tap_join(tap_fork(served));
	while (users--)
		end(pid[users]);
	tap_diag("%s: late by %llu us", tap_name, crowd->late / USEC);
	return crowd->late;
}

/* Half of the processors is a user's limit: two have all of them. */
static void test_crowd_users(void)
{
	int users;

	for (users = 2; users <= USERS_MAX; users *= 2)
		EXPECT_TRUE(serve_beside(users, arm_together, ticking_child) <=
			    2 * users * TICK, "%d users", users);
}

static void in_time(int users, void (*arm)(void), void (*served)(void))
{
	EXPECT_TRUE(serve_beside(users, arm, served) <= TICK);
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	allow_descriptors(WHEELS);
	counter_init();
	cgroup_write("", "cgroup.subtree_control", "+cpu");
	cgroup_make("hostile");
	armed = map_shared(PAGE);
	crowd = map_shared(PAGE);
	RUN_CALL(alone = measure_both(), "nobody");
	RUN_CALL(beside(false), "timers in every microsecond");
	RUN_CALL(beside(true), "the same, in a wheel that is locked when its timer comes");
	RUN_CALL(in_time(0, NULL, served_child), "hundreds of thousands of timers in a slot");
	RUN_CALL(in_time(1, arm_apart, served_child),
		 "the same, beside a thousand wheels of another user");
	RUN_CALL(in_time(1, arm_together, served_child),
		 "the same, whose timers are all in one slot each");
	RUN_CALL(in_time(1, arm_together, ticking_child),
		 "the same, beside a timer in each millisecond");
	RUN(test_crowd_users, "the same wheels of two, of four and of eight users");
	RUN_CALL(in_time(1, arm_beside_shared, served_child),
		 "the same, with a shared timer in each");
	return tap_end();
}
