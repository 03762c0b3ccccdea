// SPDX-License-Identifier: GPL-2.0
/*
 * So many DAYS (of the environment), simulated, of lone timers that come down from each level of
 * a wheel, on each clock: they are on time, after two wake-ups at most. Then the wall clock is set
 * to far ends. (Days with all that can be done to timers: tests/module/contract/steps.c.)
 *
 * The wall clock begins where within the first days all levels of a wheel turn
 * over together, and soon after 32 bits of seconds come to their end.
 */
#include "device.h"

#include <limits.h>
#include <sys/epoll.h>
#include <sys/timex.h>

#define DAY (24 * HOUR)

/* What is on time is as late as this at most. */
#define PROMPT (5 * USEC)

/* As the module has them: 64 slots are a turn. */
#define TURN_BITS 6
#define LEVELS 9

/*
 * A tick with which level 7 turns over 11 days before 2038-01-19 03:14:08: for an even
 * time, so that its next slot is the first of those that it has room for.
 */
#define COMMON_TICK 1271ULL
#define LEVEL_7_TURNS (6 * (1ULL << 48) * COMMON_TICK)
#define WALL_START (LEVEL_7_TURNS - DAY / 2)

/* The kernel lets no clock be set to the last 30 years of all time. */
#define LAST_SETTABLE ((KTIME_MAX / SEC - 30ULL * 365 * 24 * 3600 - 1) * SEC)

static __u64 days;

/* A lone timer, and what it is for */
static struct probe {
	int fd;
	unsigned int level;
	__u64 deadline;
} probes[4 * LEVELS];

static unsigned int nr_probes;
static int waiting;	/* an epoll of all of them */

static void set_clock(__u64 time)
{
	struct timespec ts = { time / SEC, time % SEC };

	if (clock_settime(CLOCK_REALTIME, &ts))
		tap_bail("clock_settime to %llu: %s", time, strerror(errno));
}

/* Wait for all wheels, so that what is due is done in time, and read nothing. */
static void pass(__u64 ns)
{
	__u64 time, end = now(CLOCK_MONOTONIC) + ns;
	struct epoll_event event;

	while ((time = now(CLOCK_MONOTONIC)) < end)
		if (epoll_wait(waiting, &event, 1, (end - time) / MSEC % INT_MAX + 1) == 1)
			wheel_info(event.data.fd);
}

static void probe(clockid_t clock, __u64 tick, unsigned int level, __u64 deadline)
{
	struct probe *p = &probes[nr_probes++];
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	p->fd = wheel_new(wheel_clock(clock), tick);
	p->level = level;
	p->deadline = deadline;
	event.data.fd = p->fd;
	if (epoll_ctl(waiting, EPOLL_CTL_ADD, p->fd, &event))
		tap_bail("epoll_ctl: %s", strerror(errno));
	arm(p->fd, TWHEEL_ABS, p->deadline, level);
}

/* All came, and not early; on time, after @wakeups, if not 0. Gives the highest level. */
static unsigned int check_probes(unsigned int wakeups)
{
	unsigned int highest = 0;

	while (nr_probes) {
		struct probe *p = &probes[--nr_probes];
		struct twheel_stats stats = wheel_stats(p->fd);
		struct twheel_event ev;

		if (EXPECT_EQ(read_events(p->fd, &ev, 1), 1, "level %u", p->level))
			EXPECT_EQ(ev.deadline, p->deadline);
		if (wakeups) {
			EXPECT_TRUE(stats.max_lateness <= PROMPT, "level %u: %llu ns late",
				    p->level, stats.max_lateness);
			EXPECT_TRUE(stats.wakeups <= wakeups, "%llu", stats.wakeups);
		}
		if (p->level > highest)
			highest = p->level;
		close(p->fd);
	}
	return highest;
}

/*
 * A tick after the end of a turn of that level, in which a timer has to be cascaded through every
 * level below, or be late: two slots of the level ahead at least, or it would begin on the level
 * below, and as much for each level below that; in the level's next turn, if there is one.
 */
static __u64 turn(clockid_t clock, __u64 tick, unsigned int level)
{
	__u64 slot = 1ULL << level * TURN_BITS, from = now(clock) / tick;
	__u64 at = (from / (slot << TURN_BITS) + 1) * (slot << TURN_BITS);

	if (level == LEVELS - 1)
		at = (from / slot + 2) * slot;
	else if (at / slot < from / slot + 2)
		at += slot;
	while (level--)
		at += 2ULL << level * TURN_BITS;
	return at * tick;
}

/* Each level that comes to the end of its turn in time */
static void probe_levels(clockid_t clock, __u64 tick)
{
	unsigned int level;

	for (level = 1; level < LEVELS - 1; level++)
		if (turn(clock, tick, level) < now(clock) + days * DAY)
			probe(clock, tick, level, turn(clock, tick, level));
}

static void test_turns(void)
{
	probe_levels(CLOCK_MONOTONIC, USEC);
	probe_levels(CLOCK_BOOTTIME, 10 * MSEC);
	probe_levels(CLOCK_REALTIME, COMMON_TICK);
	probe_levels(CLOCK_TAI, COMMON_TICK);
	pass(days * DAY);
	EXPECT_EQ(check_probes(2), 7);
}

/* On each clock that is set, in each second about then */
static void test_2106(void)
{
	const __u64 end = (1ULL << 32) * SEC;
	int i;

	set_clock(end - 60 * SEC);
	for (i = -2; i <= 2; i++) {
		probe(CLOCK_REALTIME, USEC, 0, end + i * SEC);
		probe(CLOCK_TAI, MSEC, 0, end + i * SEC);
		probe(CLOCK_REALTIME, SEC, 0, end + i * SEC);
	}
	pass(120 * SEC);
	EXPECT_TRUE(now(CLOCK_REALTIME) > end);
	check_probes(3);
}

static void test_top_level(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_TAI };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		__u64 deadline = turn(clocks[i], COMMON_TICK, 8);

		probe(clocks[i], COMMON_TICK, 8, deadline);
		/* (Atomic time is some seconds ahead.) */
		set_clock(deadline - 60 * SEC);
		pass(80 * SEC);
		EXPECT_EQ(check_probes(2), 8);
	}
}

/* What is over then comes in the first while, and what is left of that in the second. */
static void jump(__u64 time)
{
	set_clock(time);
	pass(MSEC);
	pass(MSEC);
}

/* What is between is due at once, and stays so when the clock is set back; the rest is in time. */
static void test_far_and_back(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		probe(CLOCK_REALTIME, USEC, 0, now(CLOCK_REALTIME) + SEC);
		probe(CLOCK_TAI, SEC, 0, LAST_SETTABLE - HOUR);
		jump(LAST_SETTABLE);
		jump(i ? WALL_START : now(CLOCK_BOOTTIME) + DAY);
		check_probes(0);
		probe(CLOCK_REALTIME, USEC, 0, LAST_SETTABLE + HOUR / 2);
		jump(LAST_SETTABLE);
		EXPECT_EQ(wheel_info(probes[0].fd).pending, 1, "before its time");
		pass(HOUR);
		check_probes(0);
		jump(now(CLOCK_BOOTTIME) + DAY);
		probe(CLOCK_TAI, MSEC, 0, now(CLOCK_TAI) + HOUR / 2);
		pass(HOUR);
		check_probes(2);
	}
	set_clock(WALL_START);
}

int main(void)
{
	struct timex tai = { .modes = ADJ_TAI, .constant = 37 };

	/* Level 7 goes on to its second slot after its turn on the 68th. */
	days = number_of("DAYS", 68);
	tap_start(0);
	/* Or the kernel would wake up twice a second. */
	if (write_text("/proc/sys/vm/compaction_proactiveness", "0"))
		tap_bail("compaction is not to be stopped");
	set_clock(WALL_START);
	if (adjtimex(&tai) < 0)
		tap_bail("adjtimex: %s", strerror(errno));
	prctl(PR_SET_TIMERSLACK, 1);
	waiting = epoll_create1(EPOLL_CLOEXEC);
	/* Not before the kernel has its exact timers running */
	sleep_ns(SEC);
	RUN(test_turns, "every level that can turned over, and its timers came on time");
	RUN(test_2106, "32 bits of unsigned seconds come to their end");
	RUN(test_top_level, "timers come down from the top level, on time");
	RUN(test_far_and_back, "the wall clock set to its far end and back");
	return tap_end();
}
