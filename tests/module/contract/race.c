// SPDX-License-Identifier: GPL-2.0
/*
 * Threads on two processors make all calls on wheels that they share, most of them about a
 * single timer, while timers come due: what comes of it is what a model allows. Every armed
 * timer ends in exactly one of read, cancelled and drained, and nothing of it is read after
 * it was cancelled or drained.
 *
 * Environment: TIMES=N for N times as long, SEED=N for other calls.
 *
 * also in: both both-threads kcsan matrix sanitize small 32-bits
 */
#define MODEL_TIMERS 24000
#include "wheel_calls.h"

#define THREADS 4
#define WHEELS 3
#define CALLS 400
#define SECONDS ((brief() ? 0 : 4) * number_of("TIMES", 1))

/* How many wheels threads share, with which limit, or none, and tick */
static const struct round {
	__u32 wheels;
	__u64 limit, tick;
} rounds[] = {
	{ 1, 0, USEC }, { WHEELS, 0, 50 * USEC }, { 1, 257, 0 }, { WHEELS, 5, MSEC },
	{ 1, 0, MSEC },
};

static struct model models[WHEELS];
static int wheels[WHEELS];
static const struct round *round_now;
static __u64 seed;

static void begin(__u32 w)
{
	int ret;

	wheels[w] = wheel_open(O_NONBLOCK);
	ret = setup_with(wheels[w], .clock = TWHEEL_CLOCK_MONOTONIC, .tick = round_now->tick,
			 .event_size = w % 2 ? TWHEEL_EVENT_SIZE_ID : TWHEEL_EVENT_SIZE_FULL,
			 .limit = round_now->limit);
	if (ret)
		tap_bail("setup with limit %llu failed", round_now->limit);
	model_begin(&models[w], wheels[w], w, false);
}

static void *work(void *arg)
{
	/* The test shall not take longer on a kernel that is slow. */
	__u64 calls = CALLS / number_of("PATIENCE", 1) / (brief() ? 2 : 1), i;
	struct making mk = {
		.seed = (seed * THREADS + (long)arg) * 2 + 1,
		.rarely_bad = true,
	};

	pin_to((long)arg);
	signals_init();
	memory_init();
	for (i = 0; i < calls && !halted(); i++) {
		__u32 w = below(&mk.seed, round_now->wheels);

		mk.model = &models[w];
		mk.fd = wheels[w];
		mk.nr = one_in(&mk.seed, 8) ? 1 + below(&mk.seed, 2 << below(&mk.seed, 8)) : 1;
		random_call(&mk);
	}
	timer_delete(alarm_clock);
	return NULL;
}

static void test_rounds(void)
{
	__u64 read = 0, cancelled = 0, drained = 0, modified = 0;
	__u64 end = now(CLOCK_MONOTONIC) + SECONDS * SEC;
	pthread_t threads[THREADS];
	__u32 nr, w;
	long i;

	seed = number_of("SEED", 1);
	for (nr = 0; nr < ARRAY_SIZE(rounds) || now(CLOCK_MONOTONIC) < end; nr++, seed++) {
		if (halted())
			return;
		round_now = &rounds[nr % ARRAY_SIZE(rounds)];
		snprintf(model_doing, sizeof(model_doing), "%u wheels, limit %llu, tick %llu",
			 round_now->wheels, round_now->limit, round_now->tick);
		for (w = 0; w < round_now->wheels; w++)
			begin(w);
		for (i = 0; i < THREADS; i++)
			thread_start(&threads[i], work, (void *)i);
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (w = 0; w < round_now->wheels; w++) {
			read += models[w].events;
			cancelled += models[w].cancelled;
			drained += models[w].drained;
			modified += models[w].modified;
			model_finish(&models[w], wheels[w]);
			close(wheels[w]);
		}
	}
	tap_diag("%u rounds: read %llu cancelled %llu drained %llu modified %llu", nr, read,
		 cancelled, drained, modified);
	EXPECT_TRUE(read && cancelled && drained && modified, "one did not happen at all");
}

/* ---- memory for more timers ---- */

static int fd;

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
	tap_start(300 * number_of("TIMES", 1));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_diag("only one processor: threads take turns");
	RUN(test_rounds, "all calls, while others make theirs");
	RUN(test_growth, "threads that need memory at the same time");
	return tap_end();
}
