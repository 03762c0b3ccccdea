// SPDX-License-Identifier: GPL-2.0
/*
 * A process is killed (SIGKILL) in the middle of a call, a thousand times while it
 * reads, while another process holds the wheel. Then each event lies whole in the
 * buffer that the killed one gave, or is still in the wheel; none is in both, none
 * in neither. The same holds for what is counted, drained and armed.
 *
 * The buffer is shared memory, full of ones before the call: so whatever the
 * kernel has written there can be told afterwards. The killed one's timer kills it,
 * after a time that is drawn so that it is mostly up during the call.
 *
 * Environment: TIMES=N for N times as many kills.
 *
 * also in: matrix
 */
#include "device.h"

#include <sched.h>

#define N 400
#define PERIODIC 4
#define PERIOD(i) ((150 + 77 * (i)) * USEC)
#define NEVER_DONE (-9999)

/* What the killed one leaves behind */
struct hands {
	bool inside;	/* it is in a call */
	bool done;	/* it came to its end before */
	char apart[PAGE - 2 * sizeof(bool)];	/* the buffer begins a page */
	union {
		struct twheel_event events[N];
		struct twheel_op ops[N];
		__u64 count;
	};
};

static struct hands *hands;
static int fd;
static __u64 seed = 7, delay, span;
static unsigned char seen[N];
static __u64 next_period[PERIODIC];

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
	__atomic_store_n(&hands->inside, now, __ATOMIC_SEQ_CST);
}

/* Else its pages come as they are written to */
static void fault_in_some(void)
{
	if (random_next(&seed) & 1)
		madvise(hands, sizeof(*hands), MADV_POPULATE_WRITE);
}

static void read_events_child(void)
{
	size_t got = 0;

	while (got < N) {
		ssize_t n;

		inside(true);
		n = read(fd, &hands->events[got],
			 (N - got) * sizeof(hands->events[0]));
		inside(false);
		if (n <= 0)
			break;
		got += n / sizeof(hands->events[0]);
	}
}

static void read_count_child(void)
{
	inside(true);
	if (read(fd, &hands->count, sizeof(hands->count)) < 0)
		tap_diag("read: %s", strerror(errno));
	inside(false);
}

static void drain_child(void)
{
	inside(true);
	drain(fd, hands->ops, N);
	inside(false);
}

static void submit_child(void)
{
	inside(true);
	submit(fd, hands->ops, N);
	inside(false);
}

static void (*deed)(void);
static bool apart;	/* on a processor of its own */

static void killed_child(void)
{
	pin_to(apart);
	fault_in_some();
	die_later();
	deed();
	hands->done = true;
	for (;;)
		pause();
}

static pid_t start_child(void (*fn)(void))
{
	deed = fn;
	delay = random_next(&seed) % (2 * span);
	hands->inside = false;
	hands->done = false;
	return tap_fork(killed_child);
}

/* The time is adapted so that as many kills come too late as too early */
static void join_child(pid_t pid, bool something)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid failed");
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		    "child's status %#x", status);
	early += !hands->inside && !hands->done;
	late += hands->done;
	middle += hands->inside;
	if (hands->done)
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
	bool enough = middle >= kills / 20 && parted >= kills / 50;

	return done < kills || (!enough && done < 4 * kills);
}

static void end(unsigned int kills)
{
	tap_diag("%s: %u kills before the call, %u in it, %u after it; %u divided what was there",
		 tap_name, early, middle, late, parted);
	EXPECT_TRUE(middle >= kills / 20, "%u kills of %u hit a call", middle, kills);
	EXPECT_TRUE(parted >= kills / 50, "%u kills of %u had any effect", parted,
		    kills);
	close(fd);
}

/* ---- what must come of it ---- */

static void note(__u64 user_data)
{
	if (EXPECT_TRUE(user_data < N, "user data %llu", user_data))
		seen[user_data]++;
}

static void note_event(const struct twheel_event *ev)
{
	__u64 i = ev->user_data - N;

	if (ev->user_data < N || i >= PERIODIC)
		return note(ev->user_data);
	EXPECT_EQ(ev->deadline, next_period[i], "of periodic timer %llu", i);
	next_period[i] = ev->deadline + (ev->overrun + 1) * PERIOD(i);
}

static void each_once(size_t in_hands)
{
	size_t i;

	for (i = 0; i < N; i++)
		EXPECT_EQ(seen[i], 1, "timer %zu; %zu were in its hands", i,
			  in_hands);
	parted += in_hands && in_hands < N;
	memset(seen, 0, sizeof(seen));
}

static void empty_hands(void)
{
	memset(hands, 0xff, sizeof(*hands));
}

/* An event that is not all there was never given: see empty_hands() */
#define NEVER_GIVEN 0xffffffffU

/* (Where the next one is to go, the kernel may have tried to write, with zeros.) */
static bool given(size_t n)
{
	return hands->events[n].flags != NEVER_GIVEN && hands->events[n].id;
}

static size_t look_at_events(void)
{
	size_t i, n = 0;

	while (n < N && given(n))
		note_event(&hands->events[n++]);
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
		note_event(&ev[i]);
	return n > 0 ? n : 0;
}

static void arm_numbered(__u16 flags, __u64 first, __u64 spread)
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
	unsigned int kills = 150 * number_of("TIMES", 1), i;

	begin();
	fd = wheel_open(O_NONBLOCK);
	for (i = 0; more(kills, i); i++) {
		size_t n;
		pid_t pid;

		empty_hands();
		arm_numbered(TWHEEL_ABS, 1, 0);
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

/* They become ready meanwhile, and it sleeps in between; some are periodic */
static void test_waiting(void)
{
	unsigned int kills = 50 * number_of("TIMES", 1), i;

	begin();
	fd = wheel_open(0);
	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 10 * USEC, 0, 0), 0);
	for (i = 0; i < PERIODIC; i++) {
		next_period[i] = now(CLOCK_MONOTONIC);
		arm_periodic(fd, next_period[i], PERIOD(i), N + i);
	}
	for (i = 0; more(kills, i); i++) {
		struct twheel_info info;
		size_t n;
		pid_t pid;

		empty_hands();
		arm_numbered(0, 0, 2 * MSEC);
		pid = start_child(read_events_child);
		join_child(pid, true);
		/* a killed one that had time enough read periodic events, too */
		if (!hands->done)
			span += span / 32;
		n = look_at_events();
		do {
			if (readable(fd, PATIENCE_MS))
				take_some();
			info = wheel_info(fd);
		} while (info.pending + info.ready > PERIODIC);
		each_once(n);
	}
	end(kills);
}

static void test_count(void)
{
	unsigned int kills = 40 * number_of("TIMES", 1), i;
	__u64 count;

	begin();
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0,
			      TWHEEL_SETUP_COUNT), 0);
	for (i = 0; more(kills, i); i++) {
		__u64 sum = 0;
		int part;

		empty_hands();
		for (part = 0; part < 10; part++)
			arm_numbered(TWHEEL_ABS, 1, 0);
		join_child(start_child(read_count_child),
			   wheel_info(fd).ready < 10 * N);
		if (~hands->count)
			sum = hands->count;
		parted += sum && sum < 10 * N;
		if (read(fd, &count, sizeof(count)) == sizeof(count))
			sum += count;
		EXPECT_EQ(sum, 10 * N);
	}
	end(kills);
}

/* (As above) */
static bool drained(size_t n)
{
	return hands->ops[n].opcode == TWHEEL_OP_ARM && hands->ops[n].user_data < N;
}

static void test_drain(void)
{
	unsigned int kills = 40 * number_of("TIMES", 1), i;
	struct twheel_op ops[50];

	begin();
	fd = wheel_open(O_NONBLOCK);
	for (i = 0; more(kills, i); i++) {
		size_t n, taken;
		long got, k;

		empty_hands();
		arm_numbered(0, HOUR, HOUR);
		join_child(start_child(drain_child), drained(0));
		for (n = 0; n < N && drained(n); n++)
			note(hands->ops[n].user_data);
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
	unsigned int kills = 40 * number_of("TIMES", 1), i;

	begin();
	fd = wheel_open(O_NONBLOCK);
	for (i = 0; more(kills, i); i++) {
		struct twheel_op op;
		unsigned int n, done = 0;

		for (n = 0; n < N; n++) {
			hands->ops[n] = op_arm(0, HOUR, n);
			hands->ops[n].result = NEVER_DONE;
		}
		join_child(start_child(submit_child), !hands->ops[0].result);
		for (n = 0; n < N; n++) {
			if (hands->ops[n].result == NEVER_DONE) {
				EXPECT_EQ(hands->ops[n].id, 0);
				continue;
			}
			done++;
			EXPECT_EQ(hands->ops[n].result, 0);
			EXPECT_EQ(query(fd, hands->ops[n].id, &op), 0);
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
	hands = map_shared(sizeof(*hands));
	pin_to(0);
	RUN(test_read, "read: each event is in its hands or still there");
	RUN(test_waiting, "read that waits: the same, and no period is lost");
	RUN(test_count, "read of a count: nothing is counted twice or never");
	RUN(test_drain, "DRAIN: each timer is in its hands or still there");
	RUN(test_submit, "SUBMIT: it was told of what is armed");
	return tap_end();
}
