// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile programs in a control group that has 1 % of the processor, one or many, each of
 * another user, as the root of a container may be: another program keeps its share, however
 * many they are, however close their timers are, and whatever shared timers they have, as most
 * of what the kernel does for them is done in their own time.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 * Environment: TIMES=N for N times as many gaps between timers.
 */
#include "cgroup.h"
#include "shared.h"

#include <linux/aio_abi.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define MALLORY 2000
#define UIDS 64
#define BATCH 256

/* Most of its throughput that another program may lose, in % */
#define LOSS 15

/*
 * The time that is measured, and when it begins: after the last of them has armed its timers.
 * What one does every PERIOD may take him longer than that, with so little of the processor.
 */
#define PERIOD (20 * MSEC)
#define LENGTH (gap == PERIOD ? SEC : 200 * MSEC)
#define SETTLE (20 * MSEC)

static struct {
	int ready;
	int users;
	__u64 from;	/* the first timer is due */
	__u64 answers;
} *crowd;

static double alone;

/* What they prepare when their timers are armed, and what they do then */
static void (*prepare)(int fd);
static void (*deed)(int fd);
static __u64 gap;
static int nth;

static void arm_gaps(int fd)
{
	__u64 at = crowd->from + nth * USEC, end = crowd->from + LENGTH + 2 * SETTLE;
	struct twheel_op ops[BATCH];
	int i;

	while (at < end) {
		for (i = 0; i < BATCH; i++, at += gap)
			ops[i] = op_arm(TWHEEL_ABS, at, 0);
		submit_all(fd, ops, BATCH);
	}
}

static void sleep_deed(int fd)
{
	(void)fd;
	pause();
}

static void read_deed(int fd)
{
	struct twheel_event events[BATCH];

	if (read_events(fd, events, BATCH) > 0)
		__atomic_add_fetch(&crowd->answers, 1, __ATOMIC_RELAXED);
}

/* The kernel tells him without a call: then it turns his wheel in nobody's time. */
static void have_eventfd(int fd)
{
	wheel_eventfd(fd, eventfd(0, EFD_CLOEXEC));
}

/* How many wait besides for what never comes, and are woken for each expiry */
#define WAITERS 1000

static void have_aio(int fd)
{
	aio_context_t context = 0;
	struct iocb poll = {
		.aio_fildes = fd,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLPRI,
	}, *list = &poll;
	int i;

	if (syscall(SYS_io_setup, WAITERS, &context))
		tap_bail("io_setup: %s", strerror(errno));
	for (i = 0; i < WAITERS; i++)
		if (syscall(SYS_io_submit, context, 1, &list) != 1)
			tap_bail("io_submit: %s", strerror(errno));
}

static void have_eventfd_and_aio(int fd)
{
	have_eventfd(fd);
	have_aio(fd);
}

static void watch_often(int fd)
{
	struct epoll_event event = { .events = EPOLLPRI | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC), i;

	for (i = 0; i < WAITERS; i++)
		if (epoll_ctl(ep, EPOLL_CTL_ADD, dup(fd), &event))
			tap_bail("epoll_ctl: %s", strerror(errno));
}

static void have_watches(int fd)
{
	have_eventfd(fd);
	watch_often(fd);
}

static void have_watched_eventfd(int fd)
{
	int efd = eventfd(0, EFD_CLOEXEC);

	wheel_eventfd(fd, efd);
	watch_often(efd);
}

static void one_event_deed(int fd)
{
	struct twheel_event event;

	if (read_events(fd, &event, 1) > 0)
		__atomic_add_fetch(&crowd->answers, 1, __ATOMIC_RELAXED);
}

static void epoll_deed(int fd)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .fd = fd } };
	static int ep;

	if (!ep) {
		ep = epoll_create1(EPOLL_CLOEXEC);
		if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
			tap_bail("epoll_ctl: %s", strerror(errno));
	}
	if (epoll_wait(ep, &event, 1, -1) > 0)
		__atomic_add_fetch(&crowd->answers, 1, __ATOMIC_RELAXED);
}

/* One at a time, so that the wheel is set anew for each */
static void arm_deed(int fd)
{
	arm(fd, 0, gap, 0);
	__atomic_add_fetch(&crowd->answers, 1, __ATOMIC_RELAXED);
}

/* A timer that fires while he sleeps; then he has what it left to do done in his own time. */
static void call_deed(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	arm(fd, 0, 30 * USEC, 0);
	sleep_ns(700 * USEC);
	wheel_ioctl(fd, TWHEEL_IOC_INFO, &info);
}

/* Wheels of all users together, of which each is new when its timer comes */
#define WHEELS 240

static void have_wheels(int fd)
{
	int efd = eventfd(0, EFD_CLOEXEC), i;

	watch_often(efd);
	for (i = nth; i < WHEELS; i += crowd->users) {
		fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
		wheel_eventfd(fd, efd);
		arm(fd, TWHEEL_ABS, crowd->from + i * LENGTH / WHEELS, 0);
	}
}

/* So many wheels with shared timers, of which all are dirty again and again */
#define AREAS 8
#define AREA_TIMERS 1000000

static struct client areas[AREAS];

/* Each is woken in each period, without its program. */
static void have_areas(int fd)
{
	int i;

	(void)fd;
	for (i = 0; i < AREAS; i++) {
		client_open(&areas[i], TWHEEL_CLOCK_MONOTONIC, 0, AREA_TIMERS);
		memset(areas[i].words, 0, AREA_TIMERS * sizeof(__u64));
		arm_gaps(areas[i].fd);
	}
}

/* Every timer due, but no room for it in the ring */
static void have_full_areas(int fd)
{
	__u32 i, k;

	have_areas(fd);
	for (i = 0; i < AREAS; i++) {
		for (k = 0; k < AREA_TIMERS; k++)
			areas[i].words[k] = ARMED;
		areas[i].area->head = -1 - areas[i].area->ring_mask;
	}
}

static void all_dirty(struct client *c)
{
	memset(c->dirty, 0xff, (c->nr + 63) / 64 * sizeof(__u64));
	memset(c->groups, 0xff, (c->nr + 256 * 64 - 1) / (256 * 64) * sizeof(__u64));
}

static void does_it(void)
{
	__atomic_add_fetch(&crowd->answers, 1, __ATOMIC_RELAXED);
}

/* What he does to each of them, if anything */
static void (*look)(int fd);

static void areas_deed(int fd)
{
	int i;

	(void)fd;
	does_it();
	for (i = 0; i < AREAS; i++)
		all_dirty(&areas[i]);
	for (i = 0; look && i < AREAS; i++)
		look(areas[i].fd);
	sleep_ns(PERIOD);
}

static void look_doorbell(int fd)
{
	doorbell_ring(fd);
}

static void look_poll(int fd)
{
	readable(fd, 0);
}

/* Each timer of a wheel expires: all that they take is 8 bytes written */
static void expire_deed(int fd)
{
	static int turn;
	struct client *c = &areas[turn++ % AREAS];
	__u32 i;

	(void)fd;
	does_it();
	for (i = 0; i < c->nr; i++)
		c->words[i] = ARMED;
	c->area->head = c->area->tail;
	all_dirty(c);
	sleep_ns(PERIOD);
}

/* As many wheels with ordinary timers */
#define ORDINARY 2000

static int wheels[AREAS];
static struct twheel_op ops[ORDINARY];

static void have_ordinary(int fd)
{
	int i;

	(void)fd;
	for (i = 0; i < AREAS; i++)
		wheels[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
}

static void arm_all(int fd, __u64 first, __u64 step)
{
	int i;

	for (i = 0; i < ORDINARY; i++)
		ops[i] = op_arm(TWHEEL_ABS, first + i * step, i);
	submit(fd, ops, ORDINARY);
}

/*
 * Many timers at the far end of an upper slot, in the hope that to cascade them
 * costs more than to arm them
 */
static void cascade_deed(int fd)
{
	static int turn;
	int i = turn++ % AREAS;

	(void)fd;
	does_it();
	close(wheels[i]);
	wheels[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	arm_all(wheels[i], now(CLOCK_MONOTONIC) + 50 * MSEC, 1);
	sleep_ns(PERIOD);
}

/* All of them earlier and later, over and over */
static void rearm_deed(int fd)
{
	static int turn;
	int k;

	(void)fd;
	does_it();
	if (!turn++)
		arm_all(wheels[0], now(CLOCK_MONOTONIC) + 100 * MSEC, USEC);
	for (k = 0; k < BATCH; k++) {
		ops[k].opcode = TWHEEL_OP_MODIFY;
		ops[k].flags = 0;
		ops[k].deadline = (turn & 1 ? 1 : 100) * MSEC;
	}
	submit(wheels[0], ops, BATCH);
	sleep_ns(PERIOD);
}

static void hostile_child(void)
{
	int fd;

	become(MALLORY + nth);
	fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	fcntl(fd, F_SETFL, 0);
	if (deed != arm_deed && deed != call_deed)
		arm_gaps(fd);
	if (prepare)
		prepare(fd);
	count_up(&crowd->ready);
	/* Until it is in its group */
	raise(SIGSTOP);
	for (;;)
		deed(fd);
}

static double lost(bool with, int uids)
{
	struct measured m = measure(1, "confined", SETTLE, LENGTH);
	double loss;

	if (!with)
		alone = m.count;
	loss = 100 * (1 - m.count / alone);
	tap_diag("%s: %d users, each %llu us: loss %.1f %%, own %.1f %%, %llu interrupts/s",
		 tap_name, uids, gap / USEC, loss, 100 * m.own, m.interrupts);
	return loss;
}

static void beside(int uids)
{
	pid_t pids[UIDS];
	double loss;
	__u64 left;
	int i;

	memset(crowd, 0, sizeof(*crowd));
	crowd->users = uids;
	/* Arming takes no more than that. */
	crowd->from = now(CLOCK_MONOTONIC) + 50 * MSEC +
		      uids * (MSEC + (LENGTH + 2 * SETTLE) / gap * 600) +
		      (prepare ? uids * WAITERS * 10 * USEC + WHEELS * MSEC : 0) +
		      (gap == PERIOD ? SEC : 0);
	for (nth = 0; nth < uids; nth++)
		pids[nth] = tap_fork(hostile_child);
	EXPECT_TRUE(all_ready(&crowd->ready, uids));
	EXPECT_TRUE(now(CLOCK_MONOTONIC) < crowd->from, "arming took too long");
	for (i = 0; i < uids; i++) {
		cgroup_move("confined", pids[i]);
		kill(pids[i], SIGCONT);
	}
	left = crowd->from - now(CLOCK_MONOTONIC);
	if ((__s64)left > 0)
		sleep_ns(left);
	loss = lost(true, uids);
	EXPECT_TRUE(loss <= LOSS, "%d users, gaps of %llu us: %.1f %%", uids, gap / USEC, loss);
	for (i = 0; i < uids; i++) {
		/* There, it would take long to die. */
		cgroup_move("", pids[i]);
		end(pids[i]);
	}
}

/* As many timers as such a machine has memory for */
static void beside_all(void (*does)(int fd))
{
	static const struct { int uids; __u64 gap; } scenes[] = {
		{ 1, 1 }, { 1, 2 }, { 1, 5 }, { 1, 8 }, { 1, 12 }, { 1, 16 }, { 1, 20 }, { 1, 50 },
		{ 8, 4 }, { 8, 12 }, { 8, 50 }, { 64, 20 }, { 64, 50 },
	};
	unsigned int i;

	deed = does;
	for (i = 0; i < ARRAY_SIZE(scenes); i++) {
		gap = scenes[i].gap * USEC;
		beside(scenes[i].uids);
	}
}

/* Users for whom the kernel does much in nobody's time */
static void beside_told(int uids, void (*prepares)(int fd), void (*does)(int fd))
{
	prepare = prepares;
	deed = does;
	gap = 20 * USEC;
	beside(uids);
}

/* One user, who does something every PERIOD */
static void beside_deeds(void (*prepares)(int fd), void (*does)(int fd), void (*looks)(int fd))
{
	prepare = prepares;
	deed = does;
	look = looks;
	gap = PERIOD;
	beside(1);
	EXPECT_TRUE(crowd->answers, "it did nothing");
}

int main(void)
{
	tap_start(1000);
	allow_descriptors(2 * WAITERS);
	open_to_all();
	counter_init();
	crowd = map_shared(PAGE);
	cgroup_write("", "cgroup.subtree_control", "+cpu");
	cgroup_make("other");
	cgroup_make("confined");
	cgroup_write("confined", "cpu.max", "1000 100000");
	gap = USEC;
	RUN_CALL(lost(false, 0), "nobody");
	RUN_CALL(beside_all(sleep_deed), "programs that do not look");
	RUN_CALL(beside_all(read_deed), "programs that read all there is");
	RUN_CALL(beside_all(one_event_deed), "programs that read one event");
	RUN_CALL(beside_all(epoll_deed), "programs that only look");
	RUN_CALL(beside_all(arm_deed), "programs that arm one timer after the other");
	RUN_CALL(beside_told(1, have_eventfd_and_aio, sleep_deed),
		 "an eventfd, and aio that polls");
	RUN_CALL(beside_told(1, have_aio, call_deed), "aio that polls, and calls");
	RUN_CALL(beside_told(1, have_watches, sleep_deed), "an eventfd, and watches of the wheel");
	RUN_CALL(beside_told(1, have_watched_eventfd, sleep_deed), "an eventfd that is watched");
	RUN_CALL(beside_told(1, have_wheels, sleep_deed), "the same, of many wheels that are new");
	RUN_CALL(beside_told(8, have_wheels, sleep_deed), "the same, of eight users");
	prepare = have_eventfd;
	RUN_CALL(beside_all(sleep_deed), "programs with an eventfd");
	RUN_CALL(beside_deeds(have_areas, areas_deed, NULL),
		 "shared timers that are idle, and dirty");
	RUN_CALL(beside_deeds(have_full_areas, areas_deed, NULL),
		 "shared timers that are due, dirty, and find no room");
	RUN_CALL(beside_deeds(have_full_areas, areas_deed, look_doorbell),
		 "the same, and the doorbell");
	RUN_CALL(beside_deeds(have_full_areas, areas_deed, read_deed), "the same, and read");
	RUN_CALL(beside_deeds(have_full_areas, areas_deed, look_poll), "the same, and poll");
	RUN_CALL(beside_deeds(have_areas, expire_deed, NULL), "shared timers that all expire");
	RUN_CALL(beside_deeds(have_ordinary, cascade_deed, NULL), "timers that are cascaded");
	RUN_CALL(beside_deeds(have_ordinary, rearm_deed, NULL), "timers that are moved to and fro");
	return tap_end();
}
