// SPDX-License-Identifier: GPL-2.0
/*
 * Arm, modify, cancel, read, drain and close from threads on two processors
 * at once: every armed timer ends in exactly one of read, cancelled, drained
 * and closed, and nothing of it is read after it was cancelled or drained.
 *
 * Environment: TIMES=N for N times as long.
 *
 * also in: both both-threads kcsan matrix sanitize small
 */
#include "device.h"

#define N 40000
#define PERIODIC 400
#define RECENT 1500
#define SECONDS (4 * number_of("TIMES", 1))

struct timer {
	__u64 id;		/* 0 until it is known */
	__u64 read_id;
	__u32 modified;		/* how often; part of its user data */
	__u32 last_modified;	/* as its event, or what drained it, said */
	__u32 reads, cancelled, drained;
	__u64 ended;		/* when cancel or drain had returned */
};

static struct timer timers[N];
static int fd;
static __u32 armed, nr;
static __u64 moment;		/* counts the ends, to order them */
static bool stop;
static bool periodic;

static __u64 load(__u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static __u64 data_of(__u32 i)
{
	return i | (__u64)timers[i].modified << 32;
}

static struct timer *timer_of(__u64 user_data)
{
	__u32 i = user_data;

	return EXPECT_TRUE(i < nr, "user data %llx", user_data) ? &timers[i] : NULL;
}

/* Some at once, most soon, some never */
static struct twheel_op random_times(struct twheel_op op, __u64 *seed)
{
	__u64 r = random_next(seed);

	op.flags = 0;
	op.deadline = r % 16 ? (r >> 8) % (5 * MSEC) : HOUR;
	if (r % 16 == 1) {
		op.flags = TWHEEL_ABS;
		op.deadline = 1;
	}
	op.slack = r % 16 == 2 ? MSEC : 0;
	op.interval = periodic ? 1 + (r >> 40) % MSEC : 0;
	return op;
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* One that was armed not long ago */
static struct timer *pick(__u64 *seed, __u32 *index)
{
	__u32 n = __atomic_load_n(&armed, __ATOMIC_ACQUIRE);
	__u32 among = n < RECENT || periodic ? n : RECENT;

	if (!n)
		return NULL;
	*index = n - 1 - random_next(seed) % among;
	return &timers[*index];
}

/* Its cancel or drain has returned. */
static void end_now(struct timer *t)
{
	__u64 at = __atomic_add_fetch(&moment, 1, __ATOMIC_SEQ_CST);

	__atomic_store_n(&t->ended, at, __ATOMIC_SEQ_CST);
}

static void *armer(void *arg)
{
	struct twheel_op ops[64];
	__u64 seed = 11;
	__u32 i, n, k;

	pin_to((long)arg);
	for (i = 0; i < nr; i += n) {
		n = 1 + random_next(&seed) % ARRAY_SIZE(ops);
		if (n > nr - i)
			n = nr - i;
		for (k = 0; k < n; k++)
			ops[k] = random_times(op_arm(0, 0, i + k), &seed);
		if (n == 1)
			ops[0].id = arm_op(fd, ops[0]);
		else
			submit_all(fd, ops, n);
		for (k = 0; k < n; k++)
			__atomic_store_n(&timers[i + k].id, ops[k].id,
					 __ATOMIC_RELEASE);
		__atomic_store_n(&armed, i + n, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *canceller(void *arg)
{
	__u64 seed = 22;
	__u32 i;

	pin_to((long)arg);
	while (!stopped()) {
		struct timer *t = pick(&seed, &i);
		long ret;

		if (!t) {
			sched_yield();
			continue;
		}
		ret = cancel(fd, t->id);
		if (!ret) {
			t->cancelled++;
			end_now(t);
		} else if (!EXPECT_EQ(ret, -ENOENT, "cancel")) {
			break;
		}
		/* else a thousand periodic timers last no second */
		if (periodic)
			sleep_ns(2 * MSEC);
	}
	return NULL;
}

static void *modifier(void *arg)
{
	__u64 seed = 33;
	__u32 i;

	pin_to((long)arg);
	while (!stopped()) {
		struct timer *t = pick(&seed, &i);
		struct twheel_op op;
		long ret;

		if (!t) {
			sched_yield();
			continue;
		}
		t->modified++;
		op = random_times(op_modify(t->id, 0, 0, data_of(i)), &seed);
		ret = op_single(fd, &op);
		if (ret) {
			t->modified--;
			if (!EXPECT_EQ(ret, -ENOENT, "modify"))
				break;
		}
	}
	return NULL;
}

static void note(const struct twheel_event *ev, __u64 began)
{
	struct timer *t = timer_of(ev->user_data);
	__u64 ended;

	if (!t)
		return;
	__atomic_add_fetch(&t->reads, 1, __ATOMIC_RELAXED);
	/* Two periods may be noted by two readers */
	__atomic_store_n(&t->read_id, ev->id, __ATOMIC_RELAXED);
	__atomic_store_n(&t->last_modified, ev->user_data >> 32, __ATOMIC_RELAXED);
	ended = load(&t->ended);
	EXPECT_TRUE(!ended || ended > began,
		    "timer %zd was read after it was cancelled or drained",
		    t - timers);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= ev->deadline, "early: deadline %llu",
		    ev->deadline);
}

static void *reader(void *arg)
{
	struct twheel_event ev[48];

	pin_to((long)arg);
	while (!stopped()) {
		__u64 began;
		long n, i;

		readable(fd, 10);
		began = load(&moment);
		n = read_events(fd, ev, ARRAY_SIZE(ev));
		if (n < 0 && !EXPECT_EQ(n, -EAGAIN, "read"))
			break;
		for (i = 0; i < n; i++)
			note(&ev[i], began);
	}
	return NULL;
}

static void *drainer(void *arg)
{
	struct twheel_op ops[20];

	pin_to((long)arg);
	while (!stopped()) {
		long n = drain(fd, ops, ARRAY_SIZE(ops));
		long i;

		if (!EXPECT_TRUE(n >= 0, "drain: %ld", n))
			break;
		for (i = 0; i < n; i++) {
			struct timer *t = timer_of(ops[i].user_data);

			if (!t)
				continue;
			t->drained++;
			__atomic_store_n(&t->read_id, ops[i].id, __ATOMIC_RELAXED);
			__atomic_store_n(&t->last_modified, ops[i].user_data >> 32,
					 __ATOMIC_RELAXED);
			end_now(t);
		}
		sleep_ns(periodic ? 20 * MSEC : 3 * MSEC);
	}
	return NULL;
}

static void run_threads(__u64 tick, __u64 linger)
{
	static void *(*const mains[])(void *) = {
		armer, canceller, modifier, reader, reader, drainer,
	};
	pthread_t threads[ARRAY_SIZE(mains)];
	size_t i;

	fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, tick);
	memset(timers, 0, sizeof(timers));
	armed = 0;
	moment = 0;
	stop = false;
	for (i = 0; i < ARRAY_SIZE(mains); i++)
		thread_start(&threads[i], mains[i], (void *)i);
	pthread_join(threads[0], NULL);
	sleep_ns(linger);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 1; i < ARRAY_SIZE(mains); i++)
		pthread_join(threads[i], NULL);
}

struct sums {
	__u64 reads, cancelled, drained, live, modified;
};

/* All of it, now that nothing moves any more but time */
static void account(struct timer *t, struct sums *sums)
{
	__u32 ends = t->cancelled + t->drained + (periodic ? 0 : t->reads);
	struct twheel_op op;
	long ret = query(fd, t->id, &op);

	EXPECT_TRUE(ends <= 1, "timer %zd: read %u cancelled %u drained %u",
		    t - timers, t->reads, t->cancelled, t->drained);
	EXPECT_EQ(ret, ends ? -ENOENT : 0, "query of timer %zd", t - timers);
	if (t->read_id)
		EXPECT_EQ(t->read_id, t->id, "timer %zd", t - timers);
	if (!ends && !ret)
		EXPECT_EQ(op.user_data >> 32, t->modified, "timer %zd",
			  t - timers);
	if (ends && !t->cancelled && !periodic)
		EXPECT_EQ(t->last_modified, t->modified, "timer %zd",
			  t - timers);
	sums->reads += t->reads;
	sums->cancelled += t->cancelled;
	sums->drained += t->drained;
	sums->live += !ends;
	sums->modified += t->modified;
}

static void check_round(struct sums *total)
{
	struct sums sums = { 0 };
	struct twheel_stats stats;
	struct twheel_info info;
	__u32 i;

	for (i = 0; i < nr; i++)
		account(&timers[i], &sums);
	info = wheel_info(fd);
	stats = wheel_stats(fd);
	EXPECT_EQ(info.pending + info.ready, sums.live, "live");
	EXPECT_EQ(stats.armed, nr);
	EXPECT_EQ(stats.cancelled, sums.cancelled);
	EXPECT_EQ(stats.drained, sums.drained);
	EXPECT_EQ(stats.modified, sums.modified);
	EXPECT_EQ(stats.delivered, sums.reads);
	total->reads += sums.reads;
	total->cancelled += sums.cancelled;
	total->drained += sums.drained;
	total->modified += sums.modified;
	total->live += sums.live;
	close(fd);
}

/* Where all is slow, some ends are rare. */
static bool each_end_seen(const struct sums *total)
{
	return total->reads && total->cancelled && total->drained &&
	       total->live && total->modified;
}

static void print_total(const struct sums *total, int rounds)
{
	tap_diag("%d rounds: read %llu cancelled %llu drained %llu closed %llu modified %llu",
		 rounds, total->reads, total->cancelled, total->drained,
		 total->live, total->modified);
	EXPECT_TRUE(each_end_seen(total), "one of the ends did not happen at all");
}

static void test_one_shot(void)
{
	static const __u64 ticks[] = { USEC, 0, 50 * USEC, MSEC };
	__u64 end = now(CLOCK_MONOTONIC) + SECONDS * SEC / 2;
	__u64 linger = 5 * MSEC;
	struct sums total = { 0 };
	int round;

	/* It shall not take longer on a kernel that is slow. */
	nr = N / number_of("PATIENCE", 1);
	periodic = false;
	for (round = 0; round < 4 || now(CLOCK_MONOTONIC) < end ||
	     (round < 16 && !each_end_seen(&total)); round++) {
		run_threads(ticks[round % ARRAY_SIZE(ticks)], linger);
		check_round(&total);
		/* On a slow machine, too, some are to be left at the end. */
		if (!total.live)
			linger = 0;
	}
	print_total(&total, round);
}

static void test_periodic(void)
{
	static const __u64 ticks[] = { 100 * USEC, 0 };
	__u64 end = now(CLOCK_MONOTONIC) + SECONDS * SEC / 4;
	struct sums total = { 0 };
	int round;

	nr = PERIODIC;
	periodic = true;
	for (round = 0; round < 2 || now(CLOCK_MONOTONIC) < end ||
	     (round < 16 && !each_end_seen(&total)); round++) {
		run_threads(ticks[round % ARRAY_SIZE(ticks)], 300 * MSEC);
		check_round(&total);
	}
	print_total(&total, round);
}

/* ---- the last close comes while everything is going on ---- */

/* ---- memory for more timers ---- */

#define BATCHES 32
#define BATCH 256

static void *grower(void *barrier)
{
	struct twheel_op ops[BATCH];
	int i, j;

	pthread_barrier_wait(barrier);
	for (i = 0; i < BATCHES; i++) {
		for (j = 0; j < BATCH; j++)
			ops[j] = op_arm(0, HOUR, j);
		EXPECT_EQ(submit(fd, ops, BATCH), BATCH);
	}
	return NULL;
}

/* All need memory at the same moments, and the last place for it is one thread's. */
static void test_growth(void)
{
	/* Where each batch has all of the wheel looked at, that is most of the time. */
	int rounds = 20, most = 80 / number_of("PATIENCE", 1);
	pthread_t threads[2];
	pthread_barrier_t barrier;
	int round, i;

	if (rounds > most)
		rounds = most;
	for (round = 0; round < rounds; round++) {
		fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);
		pthread_barrier_init(&barrier, NULL, ARRAY_SIZE(threads));
		for (i = 0; i < 2; i++)
			thread_start(&threads[i], grower, &barrier);
		for (i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&barrier);
		EXPECT_EQ(wheel_info(fd).pending, 2 * BATCHES * BATCH);
		close(fd);
	}
}

int main(void)
{
	tap_start(120 * number_of("TIMES", 1));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_diag("only one processor: threads take turns");
	RUN(test_one_shot, "every timer ends in exactly one way");
	RUN(test_periodic, "periodic timers: nothing is read after the end");
	RUN(test_growth, "threads that need memory at the same time");
	return tap_end();
}
