// SPDX-License-Identifier: GPL-2.0
/*
 * A program that writes at random over all that its wheel's shared timers share with
 * the kernel, from two threads, and makes calls meanwhile. The kernel holds, every
 * call comes back, and another user's wheel keeps its promises and is not late. Nor is
 * there anything left of it afterwards.
 *
 * long: eight programs of half a second each
 * also in: matrix sanitize small
 */
#include "shared.h"
#include "users.h"

#define HOSTILE 2101
#define NEIGHBOUR 2102

/* What the neighbour has, of either kind */
#define TIMERS 500

/* In a machine under load nobody is late by more, for whatever reason */
#define LATE (10 * SEC)

struct neighbour {
	bool stop;
	__u64 expired;
	__u64 latest;
};

static struct neighbour *neighbour;
static struct client c;
static bool stop;
static __u64 patience = 1;

static bool stopped(const bool *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* ---- who must notice nothing ---- */

static __u64 at[2][TIMERS];	/* deadlines, of shared and of ordinary timers */

static void rearm(int kind, __u32 i, __u64 *seed)
{
	__u64 r = random_next(seed);

	at[kind][i] = now(CLOCK_MONOTONIC) + r % (50 * MSEC);
	if (kind)
		arm(c.fd, TWHEEL_ABS, at[kind][i], i);
	else
		EXPECT_EQ(shared_arm(&c, i, at[kind][i]), WAS_NOTHING);
	/* and some are moved, or end otherwise */
	if (!kind && r >> 60 == 3 && shared_cancel(&c, i))
		rearm(kind, i, seed);
}

static void note(int kind, __u32 i, __u64 *seed)
{
	__u64 time = now(CLOCK_MONOTONIC);

	EXPECT_TRUE(time >= at[kind][i], "early by %llu", at[kind][i] - time);
	if (time - at[kind][i] > neighbour->latest)
		neighbour->latest = time - at[kind][i];
	EXPECT_TRUE(time < at[kind][i] + patience * LATE, "late by %llu",
		    time - at[kind][i]);
	at[kind][i] = 0;
	neighbour->expired++;
	if (!stopped(&neighbour->stop))
		rearm(kind, i, seed);
}

static void take_some(__u64 *seed)
{
	struct twheel_event ev[20];
	struct expiry e[8];
	long n, k;

	n = shared_take_some(&c, e, ARRAY_SIZE(e));
	for (k = 0; k < n; k++)
		note(0, e[k].timer, seed);
	n = read_events(c.fd, ev, ARRAY_SIZE(ev));
	for (k = 0; k < n; k++)
		note(!(ev[k].flags & TWHEEL_EVENT_SHARED), ev[k].user_data % TIMERS,
		     seed);
}

static bool any_left(void)
{
	static const __u64 none[2][TIMERS];

	return memcmp(at, none, sizeof(at));
}

static void neighbour_child(void)
{
	struct twheel_info info;
	__u64 seed = 11;
	__u32 i, k;

	become(NEIGHBOUR);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, TIMERS);
	for (k = 0; k < 2; k++)
		for (i = 0; i < TIMERS; i++)
			rearm(k, i, &seed);
	while (!stopped(&neighbour->stop)) {
		EXPECT_TRUE(readable(c.fd, PATIENCE_MS), "nothing expires");
		take_some(&seed);
	}
	while (any_left() && readable(c.fd, PATIENCE_MS))
		take_some(&seed);
	for (k = 0; k < 2; k++)
		for (i = 0; i < TIMERS; i++)
			EXPECT_TRUE(!at[k][i], "%s timer %u is lost, %llx",
				    k ? "ordinary" : "shared", i, read64(&c.words[i]));
	info = wheel_info(c.fd);
	EXPECT_EQ(info.ready, 0);
	client_close(&c);
}

/* ---- who misbehaves ---- */

/* Where it hurts most is written to most */
static size_t some_place(__u64 r)
{
	static const size_t places[] = {
		offsetof(struct twheel_shared, head),
		offsetof(struct twheel_shared, tail),
		offsetof(struct twheel_shared, next_wake),
		sizeof(struct twheel_shared),	/* groups */
	};

	if (r % 4)
		return places[r / 4 % ARRAY_SIZE(places)] / 8;
	return r / 4 % 3 ? (r >> 8) % (c.size / 8) : (r >> 8) % 32;
}

/* Words of any kind; most mean something */
static __u64 some_value(__u64 r)
{
	__u64 time = now(CLOCK_MONOTONIC);

	switch (r % 8) {
	case 0:
		return r >> 3;
	case 1:
		return -1;
	case 2:
		return (r >> 32) % 70000;
	case 3:
		return (time + (r >> 40)) | ARMED;
	case 4:
		return ((time + (r >> 40)) | r << 62) & ~ARMED;
	case 5:
		return ARMED;
	case 6:
		return r >> (r >> 3 & 63);
	default:
		return 0;
	}
}

static void *scribbler(void *arg)
{
	__u64 seed = 5 + (long)arg * 1000 + now(CLOCK_MONOTONIC);
	__u64 *words = (__u64 *)c.area;

	while (!stopped(&stop)) {
		__u64 r = random_next(&seed);
		__u64 *p = &words[some_place(r)];

		switch (r >> 62) {
		case 0:
			__atomic_store_n((__u32 *)p, (__u32)some_value(r * 31),
					 __ATOMIC_RELAXED);
			break;
		case 1:
			__atomic_store_n(&c.words[(r >> 9) % c.nr],
					 some_value(r * 31), __ATOMIC_RELAXED);
			shared_push(&c, (r >> 9) % c.nr);
			break;
		default:
			__atomic_store_n(p, some_value(r * 31), __ATOMIC_RELAXED);
			break;
		}
	}
	return NULL;
}

/* Any call; that each comes back is what is asked for */
static void some_call(__u64 r)
{
	static struct twheel_event ev[200];
	static struct twheel_op ops[100];
	struct twheel_op op = op_arm(0, (r >> 8) % (5 * MSEC), 1);

	switch (r % 8) {
	case 0:
	case 1:
		EXPECT_EQ(doorbell_ring(c.fd), 0);
		break;
	case 2:
	case 3:
		EXPECT_TRUE(read_events(c.fd, ev, 1 + (r >> 8) % 200) != 0);
		break;
	case 4:
		EXPECT_TRUE(drain(c.fd, ops, (r >> 8) % 100) >= 0);
		break;
	case 5:
		op_single(c.fd, &op);
		break;
	case 6:
		readable(c.fd, r >> 8 & 1);
		break;
	default:
		wheel_info(c.fd);
		wheel_stats(c.fd);
		break;
	}
}

static void scribble(__u64 ns, bool ends)
{
	__u64 end = now(CLOCK_MONOTONIC) + ns, seed = end | 1;
	pthread_t threads[2];
	long i;

	stop = false;
	for (i = 0; i < 2; i++)
		thread_start(&threads[i], scribbler, (void *)i);
	while (now(CLOCK_MONOTONIC) < end || !ends)
		some_call(random_next(&seed));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 50; i++)
		some_call(random_next(&seed));
}

static const struct {
	__u32 nr;
	__u64 tick;
} kinds[] = { { 5000, 0 }, { 64, USEC }, { 1, MSEC }, { 40000, 0 } };

static __u32 kind;

static bool killed;

static void hostile_child(void)
{
	become(HOSTILE);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, kinds[kind].tick, kinds[kind].nr);
	scribble(500 * MSEC, !killed);
	client_close(&c);
}

/* What the same user's next program has is as it should be */
static void correct_child(void)
{
	unsigned char seen[100] = { 0 };
	__u32 got = 0, i;
	__u64 base;

	become(HOSTILE);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, 100);
	EXPECT_EQ(c.area->tail, 0);
	EXPECT_EQ(c.groups[0], 0);
	base = now(CLOCK_MONOTONIC);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(shared_arm(&c, i, base + i * MSEC), WAS_NOTHING);
	while (got < 100 && readable(c.fd, PATIENCE_MS))
		while (shared_take(&c, &i)) {
			EXPECT_TRUE(now(CLOCK_MONOTONIC) >= base + i * MSEC, "early");
			seen[i]++;
			got++;
		}
	EXPECT_EACH_ONCE(seen, 100);
	client_close(&c);
}

static void rounds(bool with_kill)
{
	pid_t pid, beside;
	int status;

	killed = with_kill;
	memset(neighbour, 0, sizeof(*neighbour));
	beside = tap_fork(neighbour_child);
	for (kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		pid = tap_fork(hostile_child);
		if (killed) {
			sleep_ns(500 * MSEC);
			kill(pid, SIGKILL);
			EXPECT_EQ(waitpid(pid, &status, 0), pid);
			EXPECT_TRUE(WIFSIGNALED(status), "it ended with %#x", status);
		} else {
			tap_join(pid);
		}
		tap_join(tap_fork(correct_child));
	}
	__atomic_store_n(&neighbour->stop, true, __ATOMIC_RELAXED);
	tap_join(beside);
	tap_diag("the neighbour's timers: %llu, the latest by %llu us",
		 neighbour->expired, neighbour->latest / USEC);
	EXPECT_TRUE(neighbour->expired > 2 * TIMERS, "%llu", neighbour->expired);
}

/*
 * A head that goes back shows nothing that is to be taken: neither has a reader to look
 * at it again and again, nor is a poller woken by it.
 */
static void test_rewound(void)
{
	static const __u32 back[] = { 1, 2, 3, 64, 128, 0x80000000 };
	struct twheel_event ev[64];
	__u32 i, k, tail, index;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, 100);
	for (i = 0; i < ARRAY_SIZE(back); i++) {
		for (k = 0; k < 8; k++)
			EXPECT_EQ(shared_arm(&c, k, 1), WAS_NOTHING);
		EXPECT_TRUE(WAIT_FOR(wheel_info(c.fd).ready == 8));
		/* Taken by the program, or by the kernel */
		if (i % 2)
			EXPECT_EQ(read_events(c.fd, ev, ARRAY_SIZE(ev)), 8);
		else
			while (shared_take(&c, &index))
				;
		EXPECT_EQ(doorbell_ring(c.fd), 0);
		tail = read32(&c.area->tail);
		__atomic_store_n(&c.area->head, tail - back[i], __ATOMIC_SEQ_CST);
		EXPECT_EQ(readable(c.fd, 0), 0, "back by %u", back[i]);
		EXPECT_EQ(wheel_info(c.fd).ready, 0, "back by %u", back[i]);
		EXPECT_EQ(read_events(c.fd, ev, ARRAY_SIZE(ev)), -EAGAIN,
			  "back by %u", back[i]);
		EXPECT_EQ(read32(&c.area->head), tail - back[i], "it is left alone");
		__atomic_store_n(&c.area->head, tail, __ATOMIC_SEQ_CST);
	}
	client_close(&c);
}

/* Each event that is written puts the head back where it was. A read ends nevertheless. */
static void test_into_head(void)
{
	long ret;
	__u32 i;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, 100);
	for (i = 2; i--;) {
		EXPECT_EQ(shared_arm(&c, i, 1), WAS_NOTHING);
		EXPECT_TRUE(WAIT_FOR(read32(&c.area->tail) == 2 - i));
	}
	EXPECT_EQ(c.ring[0], 1);
	EXPECT_EQ(c.ring[1], 0);
	ret = read(c.fd, (char *)c.area + offsetof(struct twheel_shared, head),
		   sizeof(struct twheel_event));
	EXPECT_EQ(ret < 0 ? -errno : ret, -EAGAIN);
	client_close(&c);
}

int main(void)
{
	mode_t mode;

	tap_start(100);
	patience = number_of("PATIENCE", patience);
	neighbour = map_shared(sizeof(*neighbour));
	mode = open_to_all();
	RUN_CALL(rounds(false), "written over by a program that then closes it");
	RUN_CALL(rounds(true), "written over by a program that is killed meanwhile");
	RUN(test_rewound, "entries of the ring are taken once");
	RUN(test_into_head, "read into the head of the ring");
	chmod(DEVICE, mode);
	return tap_end();
}
