// SPDX-License-Identifier: GPL-2.0
/*
 * The BPF program as an ordinary one, without a kernel: its time is what this program says, and its
 * work is counted in turns of its loops. So each timer can be looked at, at each tick, and what
 * is wrong is so in each run.
 *
 * What the verifier, the kernel's timers and other processors have to do with it is for timers.c
 * and hostile.c, on a kernel, and for tests/module/protocols/bell.pml.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "tap.h"

/* Turns of loops since the callback began */
static unsigned long turns;

#define TW_MEM
#define TW_FIRST 0
#define TW_GO_ON (++turns, true)

#include <linux/compiler.h>
#include <linux/types.h>
/* What the loader sets is no constant here. */
#define const
#include "bpf/wheel.bpf.c"
#undef const
#include <twheel_shared.h>

#define MSEC NSEC_PER_MSEC
#define TICK (4 * MSEC)
#define MOST_TIMERS 131072
#define ACCOUNTS 4

/* One callback, in turns of loops */
#define MOST_TURNS 1200

/* What a turn takes, in ns */
#define TURN 50

static u64 now;
static u64 timer_at;		/* 0: it is not set */
static unsigned long longest;	/* callback, in turns */
static u64 took;		/* all callbacks, in ns */
static bool announced;		/* the ring buffer has something to poll for */
static unsigned int outside;	/* pages that were asked for, and are none */

static char *pages;
static u32 nr_pages;
static struct tw_bpf_alarm alarm_;
static struct tw_bpf_account accounts_[ACCOUNTS];
static struct twheel_area seen;

void *bpf_map_lookup_elem(void *map, void *key)
{
	u32 nr = *(u32 *)key;

	if (map == &alarms)
		return &alarm_;
	if (map == &accounts)
		return nr < ACCOUNTS ? &accounts_[nr] : NULL;
	if (nr < nr_pages)
		return pages + (size_t)nr * TW_BPF_PAGE;
	outside++;
	return NULL;
}

/* What a program on another processor does as a callback ends, before it sets its timer */
static void (*meanwhile)(void);
static unsigned int times_read;	/* since the callback began */

u64 bpf_ktime_get_ns(void)
{
	void (*program)(void) = meanwhile;

	if (program && ++times_read == 2) {
		meanwhile = NULL;
		program();
		meanwhile = program;
	}
	return now + turns * TURN;
}

long bpf_timer_init(struct bpf_timer *timer, void *map, u64 flags)
{
	return timer == &alarm_.timer && map == &alarms && flags == CLOCK_MONOTONIC ? 0 : -EINVAL;
}

long bpf_timer_set_callback(struct bpf_timer *timer, void *callback)
{
	return timer == &alarm_.timer && callback == (void *)tw_run ? 0 : -EINVAL;
}

long bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags)
{
	if (timer != &alarm_.timer || flags != TW_TIMER_ABS)
		return -EINVAL;
	timer_at = ns ? ns : 1;
	return 0;
}

u64 bpf_ringbuf_query(void *ring, u64 flags)
{
	return ring == &wake && flags == BPF_RB_AVAIL_DATA ? announced : ~0ULL;
}

long bpf_ringbuf_output(void *ring, void *data, u64 size, u64 flags)
{
	announced = ring == &wake && data && size && flags == BPF_RB_FORCE_WAKEUP;
	return 0;
}

/* (It is there from the first test on, and cleared for each.) */
void *bpf_arena_alloc_pages(void *map, void *address, u32 count, int node, u64 flags)
{
	if (map != &arena || address != the_wheel() || node != -1 || flags)
		return NULL;
	return mmap(address, (size_t)count * TW_BPF_PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* As the library's, whose doorbell is a system call */
int twheel_internal_push(struct twheel_shared *shared, int fd, unsigned long group, uint64_t word)
{
	__atomic_fetch_or(&seen.groups[group / 64], 1ULL << group % 64, __ATOMIC_SEQ_CST);
	return word < shared->next_wake ? tw_doorbell(NULL) + fd : 0;
}

/* (It has nothing to poll.) */
int twheel_internal_seen(struct twheel_area *area)
{
	return !area;
}

static void run_callback(void)
{
	u32 key = 0;

	now = now > timer_at ? now : timer_at;
	timer_at = 0;
	turns = 0;
	times_read = 0;
	tw_run(&alarms, &key, &alarm_);
	longest = longest > turns ? longest : turns;
	took += turns * TURN + TW_BPF_INTERRUPT;
	now += turns * TURN;
}

/* Let time pass until @end */
static void pass(u64 end)
{
	while (timer_at && (timer_at <= end || timer_at <= now) && now <= end)
		run_callback();
	now = now > end ? now : end;
}

static void *at(u32 page)
{
	return pages + (size_t)page * TW_BPF_PAGE;
}

/* A wheel with idle timers, as the loader makes it */
static void make(u32 timers, u64 tick, u32 account)
{
	u32 i;

	free(pages);
	config = (struct tw_bpf_config){ .account = account, .tick = tick, .phase = 12345 };
	nr_pages = tw_bpf_lay_out(timers, (struct tw_bpf_config *)&config);
	pages = aligned_alloc(TW_BPF_PAGE, (size_t)nr_pages * TW_BPF_PAGE);
	memset(pages, 0, (size_t)nr_pages * TW_BPF_PAGE);
	memset(&alarm_, 0, sizeof(alarm_));
	memset(accounts_, 0, sizeof(accounts_));
	seen = (struct twheel_area){
		.shared = at(0), .words = at(config.words), .ring = at(config.ring),
		.dirty = at(config.dirty), .groups = at(config.groups),
		.ring_mask = config.mask, .nr = timers, .group_shift = 8,
	};
	seen.shared->next_wake = ~0ULL;
	for (i = 0; i < timers; i++)
		seen.words[i] = TWHEEL_WORD_IDLE;
	now = 1000000 * MSEC + 1234567;
	timer_at = 0;
	longest = 0;
	took = 0;
	outside = 0;
	announced = false;
	EXPECT_EQ(tw_start(NULL), 0);
	pass(now + 1);
}

static u64 seed;

static u64 any(u64 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static u64 deadlines[MOST_TIMERS];
static unsigned int expired;

static void arm(u32 nr, u64 deadline)
{
	twheel_shared_arm(&seen, nr, deadline);
	deadlines[nr] = deadline;
}

/* As a program does, when it is woken. None may be early, and none @late. */
static void take_all(u64 late)
{
	unsigned int timers[64], n, i;

	if (!announced)
		return;
	announced = false;
	while ((n = twheel_shared_take(&seen, timers, 64))) {
		for (i = 0; i < n; i++) {
			u64 *deadline = &deadlines[timers[i]];

			EXPECT_TRUE(*deadline, "timer %u expired, but is not armed", timers[i]);
			EXPECT_TRUE(*deadline <= now, "timer %u is early", timers[i]);
			EXPECT_TRUE(now < *deadline + late, "timer %u is %llu ns late", timers[i],
				    (unsigned long long)(now - *deadline));
			*deadline = 0;
		}
		expired += n;
	}
}

/* What is armed must be gone once its time is over: a lost one is not taken by anybody. */
static void none_left(u32 timers)
{
	u32 i;

	for (i = 0; i < timers; i++)
		EXPECT_TRUE(!deadlines[i], "timer %u is lost", i);
	EXPECT_EQ(outside, 0);
	EXPECT_TRUE(longest <= MOST_TURNS, "a callback of %lu turns", longest);
}

/* @timers at random, @each of which are changed in a tick */
static void at_random(u32 timers, u64 tick, u32 each, u32 ticks)
{
	u32 i, t, cancelled = 0;

	make(timers, tick, 1);
	memset(deadlines, 0, sizeof(deadlines));
	expired = 0;
	for (t = 0; t < ticks; t++) {
		for (i = 0; i < each; i++) {
			u32 nr = any(timers);

			if (any(4)) {
				arm(nr, now + any((any(8) ? 20 : 3000) * tick));
				continue;
			}
			EXPECT_EQ(twheel_shared_cancel(&seen, nr) != TWHEEL_STATE_NONE,
				  deadlines[nr] != 0);
			deadlines[nr] = 0;
			cancelled++;
		}
		pass(now + any(tick));
		take_all(40 * tick);
	}
	for (t = 0; t < 4000; t++) {
		pass(now + tick);
		take_all(40 * tick);
	}
	none_left(timers);
	EXPECT_EQ(timer_at, 0);
	EXPECT_TRUE(expired > (u32)seen.ring_mask, "the ring was not gone around");
	tap_diag("%u timers: %u expired, %u cancelled, a callback has %lu turns at most", timers,
		 expired, cancelled, longest);
}

static void test_few(void)
{
	at_random(256, TICK, 5, 4000);
}

static void test_many(void)
{
	at_random(32768, TICK, 200, 4000);
}

static void test_short_ticks(void)
{
	at_random(1024, 1000 * 1000, 3, 6000);
}

/* All in one tick, far above the budget; they are late by credit only. */
static void test_at_once(void)
{
	u32 timers = 65536, i;

	make(timers, TICK, 1);
	memset(deadlines, 0, sizeof(deadlines));
	expired = 0;
	for (i = 0; i < timers; i++)
		arm(i, now + 500 * MSEC);
	for (i = 0; i < 1000; i++) {
		pass(now + TICK);
		take_all(5000 * MSEC);
	}
	EXPECT_EQ(expired, timers);
	none_left(timers);
}

/* What a program that means harm may write: nothing beyond the area is asked for */
static void test_garbage(void)
{
	u32 round, i, words;

	make(4096, MSEC, 1);
	words = nr_pages * TW_BPF_PAGE / 8;
	for (round = 0; round < 3000; round++) {
		for (i = 0; i < 50; i++) {
			u64 r = any(~0ULL);
			u64 *word = (u64 *)pages + any(round % 2 ? words : 600);

			*word = r % 3 ? r >> any(64) : (now + (r >> 36)) | 1;
		}
		if (round % 5 == 0) {
			memset(seen.dirty, 0xff, seen.nr / 8);
			seen.groups[0] = ~0ULL;
		}
		twheel_internal_push(seen.shared, 0, 0, 0);
		pass(now + any(8 * MSEC));
	}
	EXPECT_EQ(outside, 0);
	EXPECT_TRUE(longest <= MOST_TURNS, "a callback of %lu turns", longest);
	tap_diag("%lu turns at most", longest);
	/* The wheel itself is as good as before. */
	for (i = 0; i < seen.nr; i++)
		seen.words[i] &= ~TWHEEL_WORD_ARMED;
	pass(now + 100 * MSEC);
}

/* Much to find, and little in it: a timer in each slot */
static void test_sparse(void)
{
	u32 i;

	make(16384, 1000, 1);
	for (i = 0; i < seen.nr; i++)
		seen.words[i] = (now + 5 * MSEC + 1000ULL * i * (i % 7 ? 1 : 257)) | 1;
	memset(seen.dirty, 0xff, seen.nr / 8);
	memset(seen.groups, 0xff, 8);
	twheel_internal_push(seen.shared, 0, 0, 0);
	pass(now + 8000 * MSEC);
	EXPECT_TRUE(longest <= MOST_TURNS, "a callback of %lu turns", longest);
	tap_diag("%lu turns at most", longest);
}

/* Each callback with as much to do as can be, at a budget: dirty timers, or groups without any */
static void test_scan(void)
{
	u32 timers = 1 << 21, i;

	make(timers, MSEC, 1);
	memset(seen.groups, 0xff, timers / 256 / 8);
	twheel_internal_push(seen.shared, 0, 0, 0);
	pass(now + 100 * MSEC);
	for (i = 0; i < timers / 256 / 64; i++)
		EXPECT_EQ(seen.groups[i], 0);
	/* (To look whether there is more takes a turn for each word.) */
	EXPECT_TRUE(longest <= 256 + 2 * timers / 256 / 64 + 50, "%lu turns", longest);

	make(8192, MSEC, 1);
	memset(seen.dirty, 0xff, 8192 / 8);
	/* So that the budget ends within a group */
	seen.dirty[0] = 0;
	seen.groups[0] = ~0ULL;
	twheel_internal_push(seen.shared, 0, 0, 0);
	pass(now + 100 * MSEC);
	for (i = 0; i < 8192 / 64; i++)
		EXPECT_EQ(seen.dirty[i], 0);
	EXPECT_TRUE(longest <= 256 + 63 + 50, "a callback of %lu turns", longest);
}

/* What was withdrawn, and expires again, has one place in the ring, and not more. */
static void test_withdrawn(void)
{
	u32 i;

	make(256, MSEC, 1);
	for (i = 0; i < 1000; i++) {
		twheel_shared_arm(&seen, 7, now);
		pass(now + 2 * MSEC);
		EXPECT_EQ(twheel_shared_cancel(&seen, 7), TWHEEL_STATE_READY);
	}
	EXPECT_EQ(seen.shared->tail - seen.shared->head, 1);
}

static void arm_meanwhile(void)
{
	if (!deadlines[9])
		arm(9, now + MSEC);
}

/* What is armed just before the timer is set for later */
static void test_meanwhile(void)
{
	u32 i;

	make(256, MSEC, 1);
	memset(deadlines, 0, sizeof(deadlines));
	expired = 0;
	arm(0, now + 3600 * 1000 * MSEC);
	meanwhile = arm_meanwhile;
	for (i = 0; i < 1000; i++) {
		/* At once: the callback that does it has nothing to come but what is far. */
		if (i % 4 == 0)
			arm(1, now - 2 * MSEC);
		pass(now + MSEC);
		take_all(10 * MSEC);
	}
	meanwhile = NULL;
	EXPECT_TRUE(expired > 400);
}

static void dirty_meanwhile(void)
{
	seen.groups[0] = ~0ULL;
}

/* Callbacks take a sixteenth of the time, or, if all others have it, nothing of it */
static unsigned int part(u32 account, u64 paid_by_others)
{
	u64 start;
	u32 i;

	make(4096, 1000, account);
	accounts_[0].until = now + paid_by_others;
	start = now;
	while (now < start + 2000 * MSEC) {
		memset(seen.dirty, 0xff, seen.nr / 8);
		seen.groups[0] = ~0ULL;
		for (i = 0; i < seen.nr; i++)
			seen.words[i] = (now + i * 100) | 1;
		if (!meanwhile || !took)
			twheel_internal_push(seen.shared, 0, 0, 0);
		pass(now + MSEC);
	}
	tap_diag("callbacks take %llu in 1,000", (unsigned long long)(1000 * took / (now - start)));
	return 1000 * took / (now - start);
}

static void test_credit(void)
{
	unsigned int alone = part(1, 0);

	EXPECT_TRUE(alone <= 80, "more than a sixteenth, and what was kept");
	EXPECT_TRUE(alone >= 40, "less than was paid for");
	EXPECT_TRUE(part(1, 3000 * MSEC) <= 5, "where all others have used it up");
	meanwhile = dirty_meanwhile;
	EXPECT_TRUE(part(1, 0) <= 80, "more than a sixteenth, where bits are set again and again");
	meanwhile = NULL;
	EXPECT_EQ(accounts_[2].until, 0);
}

/* The next callback is set for what is next: none come meanwhile. */
static void test_silent(void)
{
	u64 before;

	make(256, TICK, 1);
	twheel_shared_arm(&seen, 3, now + 3600 * 1000 * MSEC);
	pass(now + 10 * MSEC);
	before = alarm_.stats.runs;
	pass(now + 3599ULL * 1000 * MSEC);
	EXPECT_TRUE(alarm_.stats.runs - before <= 2, "%llu callbacks",
		    (unsigned long long)(alarm_.stats.runs - before));
	EXPECT_EQ(twheel_shared_cancel(&seen, 3), TWHEEL_STATE_PENDING);
	pass(now + 2 * 1000 * MSEC);
	EXPECT_EQ(timer_at, 0);
}

int main(void)
{
	tap_start(120);
	seed = number_of("SEED", 1) * 88172645463325252ULL | 1;
	RUN(test_few, "few timers at random: none early, lost, twice or after a cancel");
	RUN(test_many, "many timers at random");
	RUN(test_short_ticks, "timers at random in short ticks");
	RUN(test_at_once, "more timers at once than a callback may do");
	RUN(test_garbage, "whatever is written, nothing beyond the area is touched");
	RUN(test_sparse, "no callback is long when there is little in each slot");
	RUN(test_scan, "no callback is long when all is dirty");
	RUN(test_withdrawn, "what was withdrawn is in the ring once");
	RUN(test_meanwhile, "what is armed while a callback ends");
	RUN(test_credit, "callbacks take no more than was paid for");
	RUN(test_silent, "what is far away causes no callbacks");
	return tap_end();
}
