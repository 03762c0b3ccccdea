// SPDX-License-Identifier: GPL-2.0
/*
 * What a hostile program can do with its own wheel, in instructions: none of its callbacks is long,
 * those of all its wheels get no more than their credit, and others' timers expire as before.
 *
 * time: counted
 * most seconds: 250
 */
#include "bpf.h"

#include <sys/epoll.h>
#include <sys/resource.h>

/* One callback, whatever is in the area, in instructions */
#define LONGEST 100000

/* An eighth for all and a sixteenth for a user, and what is kept and the measuring besides */
#define PART_OF_USER 9
#define PART_OF_ALL 16

/* Hostile users at a time */
#define MOST_USERS 8

/* Those that watch have descriptors from here on. */
#define FIRST_WATCH 256

/* A number such as a program that means harm would write */
static uint64_t harmful(void)
{
	uint64_t r = any(~0ULL);

	switch (r % 8) {
	case 0:
		return r;
	case 1:
		return ~0ULL;
	case 2:
		return r >> 52;
	case 3:
		return 1ULL << (r >> 58);
	case 4:
		return (now(CLOCK_MONOTONIC) + (r >> 40)) | 1;
	case 5:
		return now(CLOCK_MONOTONIC) | 1;
	case 6:
		return ~(1ULL << (r >> 58));
	default:
		return r >> 32;
	}
}

/* Let callbacks come, as many as there is credit for */
static void let_look(const struct wheel *wheel, uint64_t ns)
{
	uint64_t end = now(CLOCK_MONOTONIC) + ns;

	while (now(CLOCK_MONOTONIC) < end) {
		ring(wheel);
		sleep_ns(MSEC);
	}
}

static void all_dirty(const struct wheel *wheel)
{
	const struct twheel_area *area = &wheel->area;

	memset(area->dirty, 0xff, area->nr / 8);
	memset(area->groups, 0xff, area->nr / 256 / 8 ? : 1);
}

static uint64_t longest_of(const struct wheel *wheel, const char *what)
{
	struct twheel_bpf_stats stats = stats_of(wheel);

	tap_diag("%s: %llu callbacks, the longest of %llu instructions", what,
		 (unsigned long long)stats.runs, (unsigned long long)stats.longest);
	EXPECT_TRUE(stats.runs > 10, "it was not tried");
	return stats.longest;
}

/* Anything, anywhere in the area */
static void test_garbage(void)
{
	unsigned int round, i, words;
	struct wheel wheel;
	uint64_t *all;

	wheel_load(&wheel, 16384, MSEC, -1, 0);
	all = (uint64_t *)wheel.area.shared;
	/* Behind the timers' words are pages of the kernel's, of which one can't be written to. */
	words = (uint64_t *)&wheel.area.words[wheel.area.nr] - all;
	for (round = 0; round < 24; round++) {
		for (i = 0; i < (round % 2 ? 20000U : 500U); i++)
			all[any(round % 3 ? words : 600)] = harmful();
		if (round % 4 == 0)
			all_dirty(&wheel);
		let_look(&wheel, 20 * MSEC);
	}
	EXPECT_TRUE(longest_of(&wheel, "garbage") <= LONGEST);
	wheel_end(&wheel);
}

/* All at once, and each moved, cancelled or dirty when the kernel looks */
static void test_all_at_once(void)
{
	struct wheel wheel;
	unsigned int i, round;

	wheel_load(&wheel, 65536, MSEC, -1, 0);
	for (round = 0; round < 6; round++) {
		uint64_t time = now(CLOCK_MONOTONIC);

		for (i = 0; i < wheel.area.nr; i++)
			wheel.area.words[i] = (time + 20 * MSEC +
						  (round & 1 ? 0 : i * 64)) | 1;
		all_dirty(&wheel);
		let_look(&wheel, 50 * MSEC);
		for (i = 0; round & 2 && i < wheel.area.nr; i++)
			wheel.area.words[i] &= ~1ULL;
		let_look(&wheel, 100 * MSEC);
		for (i = 0; round & 4 && i < wheel.area.nr; i++)
			wheel.area.words[i] += 500 * MSEC;
		let_look(&wheel, 100 * MSEC);
	}
	EXPECT_TRUE(longest_of(&wheel, "all at once") <= LONGEST);
	wheel_end(&wheel);
}

/* Each slot of each level has one timer, or as many as are small: much to find, little in it */
static void test_sparse(void)
{
	struct wheel wheel;
	unsigned int i, each;

	for (each = 1; each <= 31; each += 15) {
		wheel_load(&wheel, 16384, 1000, -1, 0);
		uint64_t time = now(CLOCK_MONOTONIC) + 5 * MSEC;

		for (i = 0; i < wheel.area.nr; i++)
			wheel.area.words[i] = (time + (uint64_t)i / each * 1000 *
						  (i % 7 ? 1 : 257)) | 1;
		all_dirty(&wheel);
		let_look(&wheel, 200 * MSEC);
		EXPECT_TRUE(longest_of(&wheel, "sparse") <= LONGEST);
		wheel_end(&wheel);
	}
}

/* What does nothing but set the same bits again */
static void test_again_and_again(void)
{
	struct wheel wheel;
	uint64_t end;

	wheel_load(&wheel, 1 << 20, MSEC, -1, 0);
	end = now(CLOCK_MONOTONIC) + 300 * MSEC;
	while (now(CLOCK_MONOTONIC) < end) {
		memset(wheel.area.groups, 0xff, 512);
		ring(&wheel);
	}
	EXPECT_TRUE(longest_of(&wheel, "again and again") <= LONGEST);
	wheel_end(&wheel);
}

/* How long a loop takes, which is longer by what others have of the processor meanwhile */
static uint64_t span(void)
{
	uint64_t start = now(CLOCK_MONOTONIC), loops;

	for (loops = 0; loops < 20000000; loops++)
		asm volatile("");
	return now(CLOCK_MONOTONIC) - start;
}

/*
 * What @nr wheels take, which have always something to do, in percent of a processor. They are in
 * @users accounts.
 */
static unsigned int part_of(unsigned int nr, unsigned int users)
{
	int accounts = twheel_bpf_accounts(users);
	struct wheel *wheels = calloc(nr, sizeof(*wheels));
	uint64_t alone = ~0ULL, beside, time;
	unsigned int i, n, part;

	/* What the tests before left to the kernel is done by then. */
	for (i = 0; i < 2; i++) {
		sleep_ns(500 * MSEC);
		time = span();
		alone = time < alone ? time : alone;
	}
	for (n = 0; n < nr; n++)
		wheel_load(&wheels[n], 4096, 1000, accounts, n % users);
	/* Timers that are due at each tick, and moved when they are looked at: no call is needed */
	for (n = 0; n < nr; n++) {
		for (i = 0; i < 4096; i++)
			wheels[n].area.words[i] = (now(CLOCK_MONOTONIC) + i * 100000ULL) | 1;
		all_dirty(&wheels[n]);
		ring(&wheels[n]);
	}
	/* What is kept is used up */
	sleep_ns(100 * MSEC);
	beside = span();
	part = 100 - 100 * alone / beside;
	tap_diag("%u wheels of %u users take %u %% of a processor", nr, users, part);
	for (n = 0; n < nr; n++) {
		EXPECT_TRUE(stats_of(&wheels[n]).runs > 1, "wheel %u was starved", n);
		wheel_end(&wheels[n]);
	}
	close(accounts);
	free(wheels);
	return part;
}

static void test_user(void)
{
	EXPECT_TRUE(part_of(30, 1) <= PART_OF_USER);
}

static void test_all(void)
{
	EXPECT_TRUE(part_of(30, 10) <= PART_OF_ALL);
}

/* Watch what the descriptor is of so often, until all from FIRST_WATCH on are closed */
static void watch(int fd, unsigned int times)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0), all = fcntl(set, F_DUPFD, FIRST_WATCH);

	close(set);
	while (times--)
		if (epoll_ctl(all, EPOLL_CTL_ADD, fcntl(fd, F_DUPFD, FIRST_WATCH), &event))
			tap_bail("epoll_ctl: %s", strerror(errno));
}

/* All of its timers expire at once, which wakes all that watch it. */
static void expire_all(const struct wheel *wheel)
{
	unsigned int i;

	for (i = 0; i < wheel->area.nr; i++)
		wheel->area.words[i] = now(CLOCK_MONOTONIC) | 1;
	all_dirty(wheel);
	wheel->area.shared->head = wheel->area.shared->tail;
	twheel_internal_seen(&wheel->area);
	ring(wheel);
}

/*
 * Another one's timers, beside hostile wheels of @users accounts, each of which is watched
 * @times times
 */
static uint64_t lateness(unsigned int users, unsigned int times)
{
	int accounts = twheel_bpf_accounts(users + 1);
	struct wheel good, bad[MOST_USERS];
	uint64_t deadline, late = 0, longest = 0;
	const struct rlimit files = { 20000, 20000 };
	unsigned int timer, i, n;

	setrlimit(RLIMIT_NOFILE, &files);
	wheel_load(&good, 256, MSEC, accounts, users);
	for (n = 0; n < users; n++) {
		wheel_load(&bad[n], 256, 1000, accounts, n);
		watch(bad[n].fds[TWHEEL_BPF_WAKE], times);
	}
	for (i = 0; i < 40; i++) {
		for (n = 0; n < users; n++)
			expire_all(&bad[n]);
		deadline = now(CLOCK_MONOTONIC) + 3 * MSEC;
		twheel_shared_arm(&good.area, i, deadline);
		EXPECT_TRUE(wakes(&good, 1000));
		EXPECT_EQ(twheel_shared_take(&good.area, &timer, 1), 1);
		EXPECT_EQ(timer, i);
		deadline = now(CLOCK_MONOTONIC) - deadline;
		late = late > deadline ? late : deadline;
		/* Only who has found nothing more is woken by the next. */
		EXPECT_EQ(twheel_shared_take(&good.area, &timer, 1), 0);
	}
	for (n = 0; n < users; n++) {
		longest = longest > stats_of(&bad[n]).longest ? longest : stats_of(&bad[n]).longest;
		wheel_end(&bad[n]);
	}
	close_range(FIRST_WATCH, ~0U, 0);
	wheel_end(&good);
	close(accounts);
	tap_diag("beside %u users, %u watches each: %llu us late, in ticks of 1,000; longest %llu",
		 users, times, (unsigned long long)late / 1000, (unsigned long long)longest);
	return late;
}

static void test_other(void)
{
	EXPECT_TRUE(lateness(1, 0) < 2 * MSEC);
	EXPECT_TRUE(lateness(MOST_USERS, 0) < 2 * MSEC);
}

/* Then a callback is longer, as it wakes them, and so dearer for all who have it happen. */
static void test_watched(void)
{
	EXPECT_TRUE(lateness(MOST_USERS, 1000) < 4 * MSEC);
}

/*
 * Another one's timer, due with all those of @nr wheels of @users accounts that have kept all the
 * credit that they can
 */
static uint64_t burst(unsigned int nr, unsigned int users)
{
	int accounts = twheel_bpf_accounts(users + 1);
	struct wheel good, *bad = calloc(nr, sizeof(*bad));
	uint64_t deadline, late;
	unsigned int timer, i, n;

	wheel_load(&good, 256, MSEC, accounts, users);
	for (n = 0; n < nr; n++)
		wheel_load(&bad[n], 4096, 1000, accounts, n % users);
	deadline = (now(CLOCK_MONOTONIC) / MSEC + 400) * MSEC;
	for (n = 0; n < nr; n++)
		for (i = 0; i < bad[n].area.nr; i++)
			twheel_shared_arm(&bad[n].area, i, deadline);
	twheel_shared_arm(&good.area, 0, deadline);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) < deadline - 200 * MSEC);
	EXPECT_TRUE(wakes(&good, 2000));
	EXPECT_EQ(twheel_shared_take(&good.area, &timer, 1), 1);
	late = now(CLOCK_MONOTONIC) - deadline;
	for (n = 0; n < nr; n++)
		wheel_end(&bad[n]);
	wheel_end(&good);
	close(accounts);
	free(bad);
	tap_diag("beside %u wheels of %u users, all due at once: %llu us late, in ticks of 1,000",
		 nr, users, (unsigned long long)late / 1000);
	return late;
}

static void test_burst(void)
{
	EXPECT_TRUE(burst(90, 30) < 80 * MSEC);
}

int main(void)
{
	tap_start(240);
	RUN(test_garbage, "no callback is long, whatever is written");
	RUN(test_all_at_once, "no callback is long when all expire, move or are cancelled at once");
	RUN(test_sparse, "no callback is long when there is little in each slot");
	RUN(test_again_and_again, "no callback is long when bits are set again and again");
	RUN(test_user, "all wheels of a user have their part of a processor");
	RUN(test_all, "all users together have their part of a processor");
	RUN(test_other, "another user's timers are not late");
	RUN(test_watched, "another user's timers are not late beside wheels that many watch");
	RUN(test_burst, "another user's timers beside a burst of all that others have kept");
	return tap_end();
}
