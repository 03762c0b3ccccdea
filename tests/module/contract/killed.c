// SPDX-License-Identifier: GPL-2.0
/*
 * A process is killed (SIGKILL) in the middle of a call, hundreds of times while it
 * reads, while another process holds the wheel. Then each event lies whole in the
 * buffer that the killed one gave, or is still in the wheel; none is in both, none
 * in neither. The same holds for what is drained and armed.
 *
 * The buffer is shared memory, full of ones before the call: so whatever the
 * kernel has written there can be told afterwards. The killed one's timer kills it,
 * after a time that is drawn so that it is mostly up during the call.
 *
 * Environment: TIMES=N for N times as many kills.
 *
 * long: hundreds of processes
 * also in: matrix
 */
#include "device.h"

#define N 400
#define NEVER_DONE (-9999)

/* What the killed one leaves behind */
struct remains {
	bool inside;	/* it is in a call */
	bool done;	/* it came to its end before */
	char apart[PAGE - 2 * sizeof(bool)];	/* the buffer begins a page */
	union {
		struct twheel_event events[N];
		struct twheel_op ops[N];
	};
};

static struct remains *remains;
static int fd;
static __u64 seed = 7, delay, span;
static unsigned char seen[N];

/* How the kills of a test came out */
static unsigned int early, middle, late, parted;

/* ---- the killed one ---- */

static void die_later(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGKILL,
	};
	struct itimerspec when = {
		.it_value = { delay / SEC, delay % SEC + 1 },
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &when, NULL))
		tap_bail("timer: %s", strerror(errno));
}

static void inside(bool now)
{
	__atomic_store_n(&remains->inside, now, __ATOMIC_SEQ_CST);
}

/* Else its pages come as they are written to */
static void fault_in_some(void)
{
	if (random_next(&seed) & 1)
		madvise(remains, sizeof(*remains), MADV_POPULATE_WRITE);
}

static void read_events_child(void)
{
	size_t got = 0;

	while (got < N) {
		ssize_t n;

		inside(true);
		n = read(fd, &remains->events[got],
			 (N - got) * sizeof(remains->events[0]));
		inside(false);
		if (n <= 0)
			break;
		got += n / sizeof(remains->events[0]);
	}
}

static void drain_child(void)
{
	inside(true);
	drain(fd, remains->ops, N);
	inside(false);
}

static void submit_child(void)
{
	inside(true);
	submit(fd, remains->ops, N);
	inside(false);
}

static void (*action)(void);
static bool apart;	/* on a processor of its own */

static void killed_child(void)
{
	pin_to(apart);
	fault_in_some();
	die_later();
	action();
	remains->done = true;
	for (;;)
		pause();
}

static pid_t start_child(void (*fn)(void))
{
	action = fn;
	delay = random_next(&seed) % (2 * span);
	remains->inside = false;
	remains->done = false;
	return tap_fork(killed_child);
}

/* The time is adapted so that as many kills come too late as too early */
static void join_child(pid_t pid, bool something)
{
	expect_killed(pid);
	early += !remains->inside && !remains->done;
	late += remains->done;
	middle += remains->inside;
	if (remains->done)
		span -= span / 16;
	else if (!something)
		span += span / 16 + 1;
}

static void begin(void)
{
	early = 0;
	middle = 0;
	late = 0;
	parted = 0;
	span = 100 * USEC;
}

/* Where others keep the machine busy, fewer kills hit a call: then there are more of them. */
static bool more(unsigned int kills, unsigned int done)
{
	bool enough = middle > kills / 20 && parted > kills / 50;

	return done < kills || (!enough && done < 4 * kills);
}

static void end(unsigned int kills)
{
	tap_diag("%s: %u kills before the call, %u in it, %u after it; %u divided what was there",
		 tap_name, early, middle, late, parted);
	EXPECT_TRUE(middle > kills / 20, "%u kills of %u hit a call", middle, kills);
	EXPECT_TRUE(parted > kills / 50, "%u kills of %u had any effect", parted,
		    kills);
	close(fd);
}

/* ---- what must come of it ---- */

static void note(__u64 user_data)
{
	if (EXPECT_TRUE(user_data < N, "user data %llu", user_data))
		seen[user_data]++;
}

static void each_once(size_t were_given)
{
	EXPECT_EACH_ONCE(seen, N);
	parted += were_given && were_given < N;
	memset(seen, 0, sizeof(seen));
}

static void clear_remains(void)
{
	memset(remains, 0xff, sizeof(*remains));
}

/* An event that is not all there was never given: see clear_remains() */
#define NEVER_GIVEN 0xffffffffU

/* (Where the next one is to go, the kernel may have tried to write, with zeros.) */
static bool given(size_t n)
{
	return remains->events[n].flags != NEVER_GIVEN && remains->events[n].id;
}

static size_t look_at_events(void)
{
	size_t i, n = 0;

	while (n < N && given(n))
		note(remains->events[n++].user_data);
	for (i = n; i < N; i++)
		EXPECT_TRUE(!given(i), "a gap before event %zu", i);
	return n;
}

static size_t take_some(void)
{
	struct twheel_event ev[50];
	long n = read_events(fd, ev, ARRAY_SIZE(ev)), i;

	EXPECT_TRUE(n > 0 || n == -EAGAIN, "read gave %ld", n);
	for (i = 0; i < n; i++)
		note(ev[i].user_data);
	return n > 0 ? n : 0;
}

static void arm_spread(__u16 flags, __u64 first, __u64 spread)
{
	static struct twheel_op ops[N];
	int i;

	for (i = 0; i < N; i++)
		ops[i] = op_arm(flags, first + i * 7919 % N * (spread / N), i);
	submit_all(fd, ops, N);
}

/* All are ready; every third time somebody else reads, too */
static void test_read(void)
{
	unsigned int kills = 80 * number_of("TIMES", 1), i;

	begin();
	fd = wheel_open(O_NONBLOCK);
	for (i = 0; more(kills, i); i++) {
		size_t n;
		pid_t pid;

		clear_remains();
		arm_numbered(fd, TWHEEL_ABS, 1, 0, N);
		apart = i % 3 == 2;
		pid = start_child(read_events_child);
		while (apart && take_some())
			;
		n = wheel_info(fd).ready;
		join_child(pid, n < N);
		n = look_at_events();
		while (take_some())
			;
		each_once(n);
	}
	EXPECT_EQ(wheel_info(fd).ready, 0);
	apart = false;
	end(kills);
}

/* (As above) */
static bool drained(size_t n)
{
	return remains->ops[n].opcode == TWHEEL_OP_ARM && remains->ops[n].user_data < N;
}

static void test_drain(void)
{
	unsigned int kills = 25 * number_of("TIMES", 1), i;
	struct twheel_op ops[50];

	begin();
	fd = wheel_open(O_NONBLOCK);
	for (i = 0; more(kills, i); i++) {
		size_t n, taken;
		long got, k;

		clear_remains();
		arm_spread(0, HOUR, HOUR);
		join_child(start_child(drain_child), drained(0));
		for (n = 0; n < N && drained(n); n++)
			note(remains->ops[n].user_data);
		for (taken = n; n < N; n++)
			EXPECT_TRUE(!drained(n), "a gap before %zu", n);
		while ((got = drain(fd, ops, ARRAY_SIZE(ops))) > 0)
			for (k = 0; k < got; k++)
				note(ops[k].user_data);
		EXPECT_EQ(got, 0);
		each_once(taken);
	}
	end(kills);
}

/* What it armed, and nothing else, has an id in its array */
static void test_submit(void)
{
	unsigned int kills = 25 * number_of("TIMES", 1), i;

	begin();
	fd = wheel_open(O_NONBLOCK);
	for (i = 0; more(kills, i); i++) {
		struct twheel_op op;
		unsigned int n, done = 0;

		for (n = 0; n < N; n++) {
			remains->ops[n] = op_arm(0, HOUR, n);
			remains->ops[n].result = NEVER_DONE;
		}
		join_child(start_child(submit_child), !remains->ops[0].result);
		for (n = 0; n < N; n++) {
			if (remains->ops[n].result == NEVER_DONE) {
				EXPECT_EQ(remains->ops[n].id, 0);
				continue;
			}
			done++;
			EXPECT_EQ(remains->ops[n].result, 0);
			EXPECT_EQ(query(fd, remains->ops[n].id, &op), 0);
			EXPECT_EQ(op.user_data, n);
		}
		EXPECT_EQ(wheel_info(fd).pending, done);
		parted += done && done < N;
		while (drain(fd, &op, 1) > 0)
			;
	}
	end(kills);
}

int main(void)
{
	tap_start(300 * number_of("TIMES", 1));
	remains = map_shared(sizeof(*remains));
	pin_to(0);
	RUN(test_read, "read: each event was given to it or is still there");
	RUN(test_drain, "DRAIN: each timer was given to it or is still there");
	RUN(test_submit, "SUBMIT: it was told of what is armed");
	return tap_end();
}
