// SPDX-License-Identifier: GPL-2.0
/*
 * Signals that come while a read waits and in the middle of a large batch.
 *
 * also in: both matrix sanitize small-a
 */
#include "shared.h"

#define MOST 100000
#define NOT_DONE 0x5a5a5a	/* the result of an operation before the call */
/* Enough for a call to take long: it shall not take minutes on a kernel that is slow */
static __u32 nr = MOST;

static struct twheel_op ops[MOST];
static int fd;
static int signals;
static int *go;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}

static void handle(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	signals = 0;
	if (sigaction(SIGUSR1, &sa, NULL))
		tap_bail("sigaction: %s", strerror(errno));
}

/* ---- a read that waits ---- */

static void interrupting_child(void)
{
	EXPECT_TRUE(WAIT_FOR(blocked_in(getppid(), SYS_read)));
	kill(getppid(), SIGUSR1);
}

static void test_read(void)
{
	struct twheel_event ev;
	pid_t pid;

	wheel_replace(&fd, 0);
	handle(0);
	arm(fd, 0, HOUR, 1);
	pid = tap_fork(interrupting_child);
	EXPECT_EQ(read_events(fd, &ev, 1), -EINTR);
	EXPECT_EQ(signals, 1);
	tap_join(pid);
	arm_past(fd, 2);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 2);
	EXPECT_EQ(wheel_info(fd).pending, 1);
}

static void restarting_child(void)
{
	interrupting_child();
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(go, __ATOMIC_ACQUIRE) == 1));
	EXPECT_TRUE(WAIT_FOR(blocked_in(getppid(), SYS_read)));
	arm_past(fd, 3);
}

static void on_restart(int sig)
{
	(void)sig;
	*go = 1;
}

static void test_read_restart(void)
{
	struct sigaction sa = { .sa_handler = on_restart, .sa_flags = SA_RESTART };
	struct twheel_event ev;
	pid_t pid;

	wheel_replace(&fd, 0);
	*go = 0;
	sigaction(SIGUSR1, &sa, NULL);
	pid = tap_fork(restarting_child);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(*go, 1);
	EXPECT_EQ(ev.user_data, 3);
	tap_join(pid);
}

/* ---- a batch ---- */

static timer_t ticker;

static void ticker_start(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec it = { { 0, MSEC }, { 0, MSEC } };

	if (timer_create(CLOCK_MONOTONIC, &ev, &ticker) ||
	    timer_settime(ticker, 0, &it, NULL))
		tap_bail("timer: %s", strerror(errno));
}

static void ticker_stop(void)
{
	timer_delete(ticker);
}

/*
 * Goes on where a signal stopped it. What was not done is untouched; the
 * number of interruptions is given.
 */
static int submit_in_pieces(void)
{
	int pieces = 0;
	__u32 done = 0;

	while (done < nr) {
		long ret = submit(fd, ops + done, nr - done);

		if (ret == -EINTR) {
			EXPECT_EQ(ops[done].result, NOT_DONE);
			pieces++;
			continue;
		}
		if (!EXPECT_TRUE(ret > 0 && ret <= nr - done, "submit: %ld", ret))
			break;
		EXPECT_TRUE(ops[done].result != NOT_DONE);
		done += ret;
		EXPECT_TRUE(ops[done - 1].result != NOT_DONE);
		if (done < nr) {
			EXPECT_EQ(ops[done].result, NOT_DONE, "at %u", done);
			EXPECT_EQ(ops[nr - 1].result, NOT_DONE, "at %u", done);
			pieces++;
		}
	}
	return pieces;
}

/* A second cancel of one would give ENOENT, a missing one stay pending */
static int all_in_pieces(__u64 left)
{
	int pieces;
	__u32 i;

	for (i = 0; i < nr; i++)
		ops[i].result = NOT_DONE;
	pieces = submit_in_pieces();
	for (i = 0; i < nr; i++)
		if (!EXPECT_EQ(ops[i].result, 0, "operation %u", i))
			break;
	EXPECT_EQ(wheel_info(fd).pending, left);
	return pieces;
}

static int arm_in_pieces(void)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		ops[i] = op_arm(0, HOUR + i, i);
	return all_in_pieces(nr);
}

static int cancel_in_pieces(void)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		ops[i] = op_for(TWHEEL_OP_CANCEL, ops[i].id);
	return all_in_pieces(0);
}

/* Until it was interrupted often enough to be a test */
static void submit_interrupted(int flags)
{
	int pieces = 0, round;

	wheel_replace(&fd, O_NONBLOCK);
	handle(flags);
	ticker_start();
	for (round = 0; round < 200 && pieces < 10; round++) {
		pieces += arm_in_pieces();
		pieces += cancel_in_pieces();
	}
	ticker_stop();
	EXPECT_TRUE(pieces >= 10, "%d interruptions in %d rounds", pieces, round);
}

/* Takes all out, in pieces; gives the interruptions */
static int drain_in_pieces(unsigned char *seen)
{
	int pieces = 0;
	__u32 done = 0, i;

	memset(seen, 0, nr);
	while (done < nr) {
		long ret = drain(fd, ops, nr);

		if (ret == -EINTR) {
			pieces++;
			continue;
		}
		if (!EXPECT_TRUE(ret > 0 && ret <= nr - done, "drain: %ld", ret))
			break;
		for (i = 0; i < ret; i++)
			seen[ops[i].user_data % nr]++;
		done += ret;
		pieces += done < nr;
	}
	return pieces;
}

static void test_drain(void)
{
	static unsigned char seen[MOST];
	int pieces = 0, round;

	wheel_replace(&fd, O_NONBLOCK);
	handle(0);
	for (round = 0; round < 200 && pieces < 5; round++) {
		arm_in_pieces();
		ticker_start();
		pieces += drain_in_pieces(seen);
		ticker_stop();
		EXPECT_EACH_ONCE(seen, nr);
		EXPECT_EQ(wheel_info(fd).pending, 0);
		EXPECT_EQ(drain(fd, ops, nr), 0);
	}
	EXPECT_TRUE(pieces >= 5, "%d interruptions in %d rounds", pieces, round);
}

/* Reads what is ready, with signals on the way. Returns how often one ended a read. */
static int read_in_pieces(void)
{
	static struct twheel_event ev[MOST];
	int pieces = 0;
	long n, ret;

	/* A fault looks at signals, too. */
	memset(ev, 0, sizeof(ev));
	ticker_start();
	for (n = 0; n < nr; n += ret) {
		ret = read_events(fd, ev + n, nr - n);
		if (!EXPECT_TRUE(ret > 0, "read: %ld", ret))
			break;
		pieces += ret < nr - n;
	}
	ticker_stop();
	return pieces;
}

static void shared_due(struct client *c)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		__atomic_store_n(&c->words[i], 1 | ARMED, __ATOMIC_SEQ_CST);
		shared_push(c, i);
	}
}

/* A signal ends a read that has something; what is left stays ready. */
static void test_read_large(struct client *c)
{
	int pieces = 0, round;

	handle(0);
	for (round = 0; round < 50 && pieces < 3; round++) {
		if (c) {
			shared_due(c);
			EXPECT_EQ(doorbell_ring(fd), 0);
		} else {
			arm_numbered(fd, 0, 0, 0, nr);
		}
		EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == nr));
		pieces += read_in_pieces();
		EXPECT_EQ(wheel_info(fd).ready, 0);
	}
	EXPECT_TRUE(pieces >= 3, "%d interruptions in %d rounds", pieces, round);
}

static void test_read_plain(void)
{
	wheel_replace(&fd, O_NONBLOCK);
	test_read_large(NULL);
}

static void test_read_shared(void)
{
	struct client c;

	close(fd);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, nr);
	fd = c.fd;
	test_read_large(&c);
	client_close(&c);
	fd = 0;
}

/*
 * A doorbell that a signal interrupts has been rung: the kernel goes on by itself, at once.
 * So the tick is long, and each round begins at the beginning of one.
 */
static void test_doorbell(void)
{
	int interrupted = 0, left = 0, round;
	__u64 shortest = SEC;
	struct client c;

	handle(0);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, SEC, nr);
	ticker_start();
	for (round = 0; round < 50 && (interrupted < 3 || round < 3); round++) {
		__u64 start, took;
		__u32 expired;
		int before;

		shared_due(&c);
		while (now(CLOCK_MONOTONIC) % SEC > SEC / 4)
			;
		before = __atomic_load_n(&signals, __ATOMIC_RELAXED);
		EXPECT_EQ(doorbell_ring(c.fd), 0);
		start = now(CLOCK_MONOTONIC);
		expired = shared_waiting(&c);
		interrupted += before != __atomic_load_n(&signals, __ATOMIC_RELAXED);
		if (expired < nr) {
			EXPECT_TRUE(WAIT_FOR(shared_waiting(&c) > expired));
			took = now(CLOCK_MONOTONIC) - start;
			if (took < shortest)
				shortest = took;
			left++;
		}
		if (!EXPECT_TRUE(WAIT_FOR(shared_waiting(&c) == nr), "%u of %u expired",
				 shared_waiting(&c), nr))
			break;
		__atomic_store_n(&c.area->head, read32(&c.area->tail),
				 __ATOMIC_SEQ_CST);
	}
	ticker_stop();
	EXPECT_TRUE(interrupted >= 3, "%d interruptions in %d rounds", interrupted, round);
	EXPECT_TRUE(!left || shortest < SEC / 4, "all of %d waited for the next tick", left);
	client_close(&c);
}

int main(void)
{
	nr = MOST / number_of("PATIENCE", 1);
	tap_start(90);
	go = map_shared(sizeof(*go));
	RUN(test_read, "a waiting read: EINTR");
	RUN(test_read_restart, "a waiting read with SA_RESTART goes on");
	RUN_CALL(submit_interrupted(0), "SUBMIT in pieces: each operation done once");
	RUN_CALL(submit_interrupted(SA_RESTART), "SUBMIT in pieces with SA_RESTART");
	RUN(test_drain, "DRAIN in pieces: each timer taken once");
	RUN(test_read_plain, "a large read ends early, and nothing is lost");
	RUN(test_read_shared, "a large read of shared timers ends early");
	RUN(test_doorbell, "a doorbell that is interrupted: all expire");
	return tap_end();
}
