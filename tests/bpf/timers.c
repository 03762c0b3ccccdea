// SPDX-License-Identifier: GPL-2.0
/*
 * Shared timers without the module expire as with it: never early, each once, none after it was
 * cancelled; for who loads them, and for an ordinary user who has their descriptors.
 *
 * most seconds: 200
 */
#include "bpf.h"
#include "users.h"

#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/random.h>

/* What all programs of a wheel may be to the verifier, in instructions that it looks at */
#define VERIFIER_MOST 100000

/**
 * struct book - what must come of timers
 * @deadline: of each that is armed, in ns, or 0
 * @late: in all, in ns
 * @took: how many were taken
 */
struct book {
	uint64_t *deadline;
	uint64_t late;
	unsigned int took;
};

static void take_all(const struct wheel *wheel, struct book *book)
{
	unsigned int timers[256], n, i;
	uint64_t time;

	while ((n = twheel_shared_take(&wheel->area, timers, 256))) {
		time = now(CLOCK_MONOTONIC);
		for (i = 0; i < n; i++) {
			uint64_t *deadline = &book->deadline[timers[i]];

			EXPECT_TRUE(*deadline, "timer %u expired, but was not armed", timers[i]);
			EXPECT_TRUE(*deadline <= time, "timer %u is %llu ns early", timers[i],
				    (unsigned long long)(*deadline - time));
			book->late += time - *deadline;
			*deadline = 0;
		}
		book->took += n;
	}
}

static void arm_one(const struct wheel *wheel, struct book *book, unsigned int nr,
		    uint64_t deadline)
{
	EXPECT_TRUE(twheel_shared_arm(&wheel->area, nr, deadline) >= 0);
	book->deadline[nr] = deadline;
}

/* Random changes for @ns, and then until the last has expired */
static void at_random(unsigned int nr, uint64_t tick, uint64_t ns)
{
	struct book book = { .deadline = calloc(nr, sizeof(*book.deadline)) };
	unsigned int i, left = 0, cancelled = 0;
	uint64_t end;
	struct wheel wheel;

	wheel_load(&wheel, nr, tick, -1, 0);
	end = now(CLOCK_MONOTONIC) + ns;
	for (i = 0; i < nr; i++)
		arm_one(&wheel, &book, i, now(CLOCK_MONOTONIC) + any(ns));
	while (now(CLOCK_MONOTONIC) < end) {
		wakes(&wheel, 20);
		take_all(&wheel, &book);
		for (i = 0; i < nr / 200; i++) {
			unsigned int timer = any(nr);

			if (any(4)) {
				arm_one(&wheel, &book, timer, now(CLOCK_MONOTONIC) + any(ns));
				continue;
			}
			EXPECT_EQ(twheel_shared_cancel(&wheel.area, timer) != TWHEEL_STATE_NONE,
				  book.deadline[timer] != 0);
			book.deadline[timer] = 0;
			cancelled++;
		}
	}
	/* Each has its wake-up: nothing is taken that poll did not announce. */
	while (wakes(&wheel, 2000 * number_of("PATIENCE", 1)))
		take_all(&wheel, &book);
	for (i = 0; i < nr; i++)
		left += book.deadline[i] != 0;
	EXPECT_EQ(left, 0, "of %u that expired, %u cancelled", book.took, cancelled);
	EXPECT_TRUE(book.took > nr / 2);
	tap_diag("%u timers in ticks of %llu us: %u expired, %u cancelled, %llu us late on average",
		 nr, (unsigned long long)tick / 1000, book.took, cancelled,
		 (unsigned long long)book.late / (book.took ? book.took : 1) / 1000);
	free(book.deadline);
	wheel_end(&wheel);
}

static void test_many(void)
{
	at_random(100000, TICK, 2000 * MSEC);
}

static void test_few(void)
{
	at_random(1000, 1000000, 1000 * MSEC);
}

static void test_coarse(void)
{
	at_random(300, 50 * MSEC, 1000 * MSEC);
}

/* A program that makes no call has its timers expire behind its back. */
static void test_busy(void)
{
	unsigned int nr = 50000, i;
	struct wheel wheel;
	uint64_t end;

	wheel_load(&wheel, nr, TICK, -1, 0);
	for (i = 0; i < nr; i++)
		twheel_shared_arm(&wheel.area, i,
				  now(CLOCK_MONOTONIC) + 100 * MSEC + any(MSEC * 200));
	/* (The time is read without a call.) */
	end = now(CLOCK_MONOTONIC) + 20000 * MSEC * number_of("PATIENCE", 1);
	while (__atomic_load_n(&wheel.area.shared->tail, __ATOMIC_ACQUIRE) != nr &&
	       now(CLOCK_MONOTONIC) < end)
		;
	EXPECT_EQ(wheel.area.shared->tail, nr);
	wheel_end(&wheel);
}

/* Later, earlier, again after it was taken, withdrawn; each by itself */
static void test_one(void)
{
	struct book book = { .deadline = calloc(256, sizeof(*book.deadline)) };
	uint64_t start = now(CLOCK_MONOTONIC);
	struct wheel wheel;

	wheel_load(&wheel, 1, TICK, -1, 0);
	EXPECT_EQ(wheel.area.nr, 256);
	arm_one(&wheel, &book, 0, start + 100000 * MSEC);
	EXPECT_TRUE(WAIT_FOR(wheel.area.shared->next_wake < ~0ULL));
	arm_one(&wheel, &book, 0, start + 30 * MSEC);
	arm_one(&wheel, &book, 0, start + 60 * MSEC);
	/* (What it was armed for first may have expired by then, and so be withdrawn.) */
	EXPECT_TRUE(WAIT_FOR((take_all(&wheel, &book), book.took == 1)));
	arm_one(&wheel, &book, 0, start);
	EXPECT_TRUE(WAIT_FOR(wheel.area.shared->tail != wheel.area.shared->head));
	EXPECT_EQ(twheel_shared_cancel(&wheel.area, 0), TWHEEL_STATE_READY);
	take_all(&wheel, &book);
	EXPECT_EQ(book.took, 1);
	/* What was withdrawn is in the ring as it was. */
	arm_one(&wheel, &book, 0, start);
	EXPECT_TRUE(WAIT_FOR((take_all(&wheel, &book), book.took == 2)));
	EXPECT_EQ(wheel.area.shared->tail - wheel.area.shared->head, 0);
	wheel_end(&wheel);
	free(book.deadline);
}

/* A timer that is far away costs two callbacks at most while nothing else is done. */
static void test_silent(void)
{
	struct wheel wheel;
	uint64_t before;

	wheel_load(&wheel, 1000, TICK, -1, 0);
	twheel_shared_arm(&wheel.area, 7, now(CLOCK_MONOTONIC) + 3600 * 1000 * MSEC);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&wheel.area.shared->next_wake, __ATOMIC_RELAXED) !=
			     ~0ULL));
	usleep(300000);
	before = stats_of(&wheel).runs;
	usleep(300000);
	EXPECT_TRUE(stats_of(&wheel).runs - before <= 2);
	wheel_end(&wheel);
}

/* An ordinary user who was handed the descriptors, and has no mapping of before */
static struct wheel handed;

static void as_user(void)
{
	struct book book = { .deadline = calloc(1024, sizeof(*book.deadline)) };
	uint32_t key = 0, nr;
	char value[256] = "";
	union bpf_attr attr = {};

	twheel_shared_unmap(&handed.area);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	become(1000);
	EXPECT_EQ(twheel_bpf_map(handed.fds, &handed.area), 0);
	for (nr = 0; nr < 1000; nr++)
		arm_one(&handed, &book, nr, now(CLOCK_MONOTONIC) + any(100 * MSEC));
	while (book.took < 1000 && wakes(&handed, 5000))
		take_all(&handed, &book);
	EXPECT_EQ(book.took, 1000);
	EXPECT_TRUE(stats_of(&handed).expired >= 1000);

	/* What he can't: make a wheel, or write over the timer */
	EXPECT_TRUE(twheel_bpf_load(&(struct twheel_bpf_setup){ .timers = 1, .accounts = -1 },
				    handed.fds) < 0);
	EXPECT_EQ(twheel_bpf_accounts(1), -EPERM);
	attr.map_fd = handed.fds[TWHEEL_BPF_ALARM];
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	EXPECT_TRUE(bpf_call(BPF_MAP_UPDATE_ELEM, &attr) < 0);
	free(book.deadline);
}

static void test_user(void)
{
	EXPECT_TRUE(number_in("/proc/sys/kernel/unprivileged_bpf_disabled", "") > 0);
	wheel_load(&handed, 1000, TICK, -1, 0);
	tap_join(tap_fork(as_user));
	/* The timers are here, as they were there. */
	twheel_shared_arm(&handed.area, 3, 1);
	EXPECT_TRUE(wakes(&handed, 5000));
	wheel_end(&handed);
}

/* The two capabilities are enough, and each alone is not. */
#define BPF (1 << (CAP_BPF - 32))
#define PERFMON (1 << (CAP_PERFMON - 32))

static void with_capabilities(uint32_t high)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 }, { .effective = high, .permitted = high } };
	struct twheel_bpf_setup setup = { .timers = 1, .accounts = -1 };
	int fds[TWHEEL_BPF_FDS];

	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	become(1000);
	if (syscall(SYS_capset, &head, data))
		tap_bail("capset: %s", strerror(errno));
	EXPECT_EQ(twheel_bpf_load(&setup, fds) == 0, high == (BPF | PERFMON));
}

static void with_both(void)
{
	with_capabilities(BPF | PERFMON);
}

static void with_bpf_alone(void)
{
	with_capabilities(BPF);
}

static void test_capabilities(void)
{
	tap_join(tap_fork(with_both));
	tap_join(tap_fork(with_bpf_alone));
}

/* Timers end with the last descriptor of the alarm, and no sooner. */
static void test_end(void)
{
	uint64_t expired, deadline;
	struct wheel wheel;
	int copy, i;

	wheel_load(&wheel, 1000, TICK, -1, 0);
	copy = dup(wheel.fds[TWHEEL_BPF_ALARM]);
	close(wheel.fds[TWHEEL_BPF_ALARM]);
	wheel.fds[TWHEEL_BPF_ALARM] = copy;
	for (i = 0; i < 500; i++)
		twheel_shared_arm(&wheel.area, i, now(CLOCK_MONOTONIC) + i * MSEC / 4);
	EXPECT_TRUE(WAIT_FOR(wheel.area.shared->tail == 500));
	deadline = now(CLOCK_MONOTONIC) + 1000 * MSEC;
	for (i = 500; i < 1000; i++)
		twheel_shared_arm(&wheel.area, i, deadline);
	close(copy);
	while (now(CLOCK_MONOTONIC) < deadline + 50 * MSEC)
		usleep(10000);
	expired = wheel.area.shared->tail;
	EXPECT_EQ(expired, 500);
	wheel.fds[TWHEEL_BPF_ALARM] = -1;
	wheel_end(&wheel);
}

/* A child has the mapping. */
static void in_child(void)
{
	EXPECT_TRUE(twheel_shared_arm(&handed.area, 9, 1) >= 0);
}

static void test_fork(void)
{
	unsigned int timer = 0;

	wheel_load(&handed, 1000, TICK, -1, 0);
	tap_join(tap_fork(in_child));
	EXPECT_TRUE(wakes(&handed, 5000));
	EXPECT_EQ(twheel_shared_take(&handed.area, &timer, 1), 1);
	EXPECT_EQ(timer, 9);
	wheel_end(&handed);
}

/* Who took over finds what was on its way: see twheel_shared_recover(). */
static void test_recover(void)
{
	unsigned int timers[4];
	struct wheel wheel;

	wheel_load(&wheel, 1000, TICK, -1, 0);
	__atomic_store_n(&wheel.area.words[5], 1001, __ATOMIC_SEQ_CST);
	EXPECT_EQ(twheel_shared_recover(&wheel.area), 0);
	EXPECT_TRUE(wakes(&wheel, 5000));
	EXPECT_EQ(twheel_shared_take(&wheel.area, timers, 4), 1);
	EXPECT_EQ(timers[0], 5);
	wheel_end(&wheel);
}

static void refused(unsigned int timers, uint64_t tick, int accounts, unsigned int account)
{
	struct twheel_bpf_setup setup = {
		.timers = timers, .tick = tick, .accounts = accounts, .account = account,
	};
	int fds[TWHEEL_BPF_FDS];

	EXPECT_EQ(twheel_bpf_load(&setup, fds), -EINVAL);
}

static void test_refused(void)
{
	int fds[TWHEEL_BPF_FDS] = { -1, -1, -1, -1 };
	struct twheel_area area;

	refused(0, 0, -1, 0);
	refused(TWHEEL_SHARED_MAX + 1, 0, -1, 0);
	refused(1, 999, -1, 0);
	refused(1, 1000000001, -1, 0);
	refused(1, 0, -1, 1);
	EXPECT_EQ(twheel_bpf_accounts(0), -EINVAL);
	EXPECT_EQ(twheel_bpf_map(fds, &area), -EBADFD);
}

/* What a program is to the verifier, by what the kernel says of the newest of that name */
static unsigned int looked_at(const char *name)
{
	struct bpf_prog_info info;
	unsigned int looked = 0;
	union bpf_attr attr;
	uint32_t id = 0;
	int fd;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (bpf_call(BPF_PROG_GET_NEXT_ID, &attr))
			return looked;
		id = attr.next_id;
		memset(&attr, 0, sizeof(attr));
		attr.prog_id = id;
		fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));
		memset(&info, 0, sizeof(info));
		memset(&attr, 0, sizeof(attr));
		attr.info.bpf_fd = fd;
		attr.info.info_len = sizeof(info);
		attr.info.info = (uintptr_t)&info;
		if (!bpf_call(BPF_OBJ_GET_INFO_BY_FD, &attr) && !strcmp(info.name, name))
			looked = info.verified_insns;
		close(fd);
	}
}

static void test_verifier(void)
{
	unsigned int looked;
	struct wheel wheel;

	wheel_load(&wheel, 100000, TICK, -1, 0);
	looked = looked_at("tw_start") + looked_at("tw_doorbell");
	tap_diag("the verifier looked at %u instructions", looked);
	EXPECT_TRUE(looked > 1000 && looked <= VERIFIER_MOST);
	wheel_end(&wheel);
}

/* As the kernel counts what there is of a user's */
static struct twheel_bpf_held held(uint32_t owner, unsigned int all)
{
	struct twheel_bpf_held of_owner, of_all;

	EXPECT_EQ(twheel_bpf_held(owner, &of_owner, &of_all), 0);
	EXPECT_EQ(of_all.wheels, all);
	EXPECT_TRUE(of_all.bytes >= of_owner.bytes);
	return of_owner;
}

static bool all_gone(uint32_t owner)
{
	struct twheel_bpf_held of_owner, of_all;

	return !twheel_bpf_held(owner, &of_owner, &of_all) && !of_owner.wheels && !of_owner.bytes;
}

/* A wheel counts as long as anything is left of it, whatever that is. */
static void test_held(void)
{
	struct twheel_bpf_setup setup = { .timers = 5000, .accounts = -1, .owner = 0xfedcba98 };
	struct twheel_area area;
	int fds[TWHEEL_BPF_FDS], left, i;

	EXPECT_TRUE(WAIT_FOR(all_gone(0)));
	EXPECT_EQ(held(setup.owner, 0).wheels, 0);
	for (left = 0; left <= TWHEEL_BPF_FDS; left++) {
		if (twheel_bpf_load(&setup, fds) || twheel_bpf_map(fds, &area))
			tap_bail("no wheel");
		EXPECT_EQ(held(setup.owner, 1).wheels, 1);
		EXPECT_EQ(held(setup.owner, 1).bytes, twheel_bpf_bytes(setup.timers));
		EXPECT_EQ(held(setup.owner - 1, 1).wheels, 0);
		for (i = 0; i < TWHEEL_BPF_FDS; i++)
			if (i != left)
				close(fds[i]);
		if (left != TWHEEL_BPF_FDS)
			twheel_shared_unmap(&area);
		usleep(100000);
		EXPECT_EQ(held(setup.owner, 1).wheels, 1, "%d", left);
		EXPECT_TRUE(held(setup.owner, 1).bytes > 0);
		if (left == TWHEEL_BPF_FDS)
			twheel_shared_unmap(&area);
		else
			close(fds[left]);
		EXPECT_TRUE(WAIT_FOR(all_gone(setup.owner)), "%d", left);
	}
}

static struct wheel spoilt;
static atomic_bool enough;

/* Anything into each shared word, also where the buffer was read, and the doorbell meanwhile */
static void *spoil(void *nr)
{
	const struct twheel_area *area = &spoilt.area;
	size_t words = (area->size - sysconf(_SC_PAGESIZE)) / sizeof(uint64_t), i;
	uint64_t *all = (uint64_t *)area->shared;
	__u64 state = (uintptr_t)nr;

	while (!enough) {
		for (i = 0; i < 4096; i++) {
			uint64_t r = random_next(&state);

			all[r % words] = r >> 63 ? (now(CLOCK_MONOTONIC) + (r >> 40)) | 1 :
					 random_next(&state) >> (r >> 56) % 64;
		}
		memset(area->dirty, 0xff, area->nr / 8);
		memset(area->groups, 0xff, area->nr / 256 / 8);
		ring(&spoilt);
	}
	return NULL;
}

static void test_spoilt(void)
{
	uint64_t *word, deadline;
	pthread_t threads[4];
	uintptr_t i;

	wheel_load(&spoilt, 16384, 1000, -1, 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, spoil, (void *)(i + 1));
	sleep_ns(2 * SEC);
	enough = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	EXPECT_TRUE(stats_of(&spoilt).expired > 1000);

	/* All others are idle from now on. */
	memset(spoilt.area.words, 0, spoilt.area.nr * sizeof(*word));
	word = &spoilt.area.words[77];
	deadline = now(CLOCK_MONOTONIC) + 100 * MSEC;
	__atomic_store_n(word, deadline | TWHEEL_WORD_ARMED, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&spoilt.area.dirty[1], 1 << 13, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&spoilt.area.groups[0], 1, __ATOMIC_SEQ_CST);
	ring(&spoilt);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(word, __ATOMIC_SEQ_CST) & TWHEEL_WORD_FIRED));
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= deadline);
	wheel_end(&spoilt);
}

static void test_untainted(void)
{
	EXPECT_EQ(number_in("/proc/sys/kernel/tainted", ""), 0);
}

static void test_lockdown(void)
{
	char line[128] = "";
	FILE *file;

	mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	file = fopen("/sys/kernel/security/lockdown", "re");
	EXPECT_TRUE(file && fgets(line, sizeof(line), file));
	EXPECT_TRUE(strstr(line, "[integrity]"), "it says %s", line);
}

int main(void)
{
	tap_start(200);
	RUN(test_lockdown, "the kernel is locked down, as with Secure Boot");
	RUN(test_one, "one timer: later, earlier, again, withdrawn");
	RUN(test_many, "many timers at random: none early, lost, twice or after a cancel");
	RUN(test_few, "few timers at random, in short ticks");
	RUN(test_coarse, "few timers at random, in long ticks");
	RUN(test_busy, "timers expire while the program makes no call");
	RUN(test_silent, "a timer that is far away causes no callbacks");
	RUN(test_user, "an ordinary user who was handed the descriptors");
	RUN(test_capabilities, "CAP_BPF and CAP_PERFMON are enough, and less is not");
	RUN(test_end, "timers end with the last descriptor of the alarm");
	RUN(test_fork, "a child has the mapping");
	RUN(test_recover, "a wheel is taken over");
	RUN(test_refused, "what can't be is refused");
	RUN(test_held, "a wheel is counted as long as any of its descriptors or mappings is there");
	RUN(test_spoilt, "threads write anything anywhere, and then timers expire as before");
	RUN(test_verifier, "the verifier has little to do");
	RUN(test_untainted, "the kernel is not tainted");
	return tap_end();
}
