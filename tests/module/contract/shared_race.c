// SPDX-License-Identifier: GPL-2.0
/*
 * The promises of shared timers under threads on two processors: two that arm, move
 * and cancel, each its own timers, and others that take what expires, by the ring,
 * by read(2) or by both, and drain. Each arming ends in exactly one way: moved or
 * cancelled by its owner, as the answer says; taken, not early; or drained. None is lost,
 * though nobody rings the doorbell for those that are waited for, and though the memory
 * to read into is not always there.
 *
 * Environment: TIMES=N for N times as long, SEED=N for other numbers.
 *
 * long: threads that spin on two processors
 * also in: kcsan small-a
 */
#include "shared.h"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#define OWNERS 2
#define MOST 1000
#define BATCH 64		/* expiries that are taken together, at most */
#define HISTORY 64

/* A deadline's lowest bits tell which arming of its timer it is */
#define GENERATION_BITS 12
#define GENERATIONS (1U << GENERATION_BITS)

/* What has become of an arming, beside its deadline */
#define TAKEN (1ULL << 62)
#define ENDED (1ULL << 63)

/* What is known of a timer. Its owner writes it, but for history and taken. */
struct shadow {
	__u64 live;		/* the deadline of its arming, or 0 */
	__u32 generation;
	__u32 owed;		/* armings that its owner found over: taken, or to be so */
	__u32 taken;
	__u64 history[HISTORY];
};

static struct shadow shadows[MOST];
static struct client c;
static __u32 nr;
static __u64 tick;
static __u64 seed;
static bool stop;
static int stop_fd;

/* What is counted, in all */
static __u64 armings, withdrawn, cancelled, taken, together, drained, unknown;

/* Who takes */
enum { BY_RING = 1, BY_READ = 2, BY_DRAIN = 4, BY_OWNERS = 8 };
static unsigned int by;

static void count(__u64 *p)
{
	__atomic_add_fetch(p, 1, __ATOMIC_RELAXED);
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static __u32 generation_of(__u64 deadline)
{
	return (deadline >> 1) % GENERATIONS;
}

static __u64 *history_of(__u32 i, __u64 deadline)
{
	return &shadows[i].history[generation_of(deadline) % HISTORY];
}

/* One way for an arming to end; the other one must not have come to pass */
static void end_arming(__u32 i, __u64 deadline, __u64 how, __u64 other)
{
	__u64 *at = history_of(i, deadline), was = read64(at);

	while ((was & ~(TAKEN | ENDED)) == deadline) {
		if (!__atomic_compare_exchange_n(at, &was, was | how, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		EXPECT_TRUE(!(was & how), "timer %u: twice %s: %llx", i,
			    how == TAKEN ? "taken" : "ended", was);
		EXPECT_TRUE(!(was & other), "timer %u: taken, and moved or cancelled: %llx",
			    i, was);
		return;
	}
	/* Its owner has armed it very often since. But it was armed so. */
	EXPECT_TRUE(how == TAKEN && generation_of(was) != generation_of(deadline),
		    "timer %u: nobody armed it for %llu: %llu", i, deadline, was);
	count(&unknown);
}

/* ---- owners ---- */

/* What an operation says about the arming before it */
static void resolve(__u32 i, enum was was)
{
	struct shadow *s = &shadows[i];

	if (was == WAS_NOTHING) {
		s->owed += !!s->live;
	} else if (EXPECT_TRUE(s->live, "timer %u was not armed", i)) {
		end_arming(i, s->live, ENDED, TAKEN);
		if (was == WAS_FIRED)
			count(&withdrawn);
		else
			count(&cancelled);
	}
	s->live = 0;
}

static void own_arm(__u32 i, __u64 deadline)
{
	struct shadow *s = &shadows[i];
	enum was was;

	s->generation++;
	deadline &= ~(2ULL * GENERATIONS - 1);
	deadline |= s->generation % GENERATIONS << 1;
	__atomic_store_n(history_of(i, deadline), deadline, __ATOMIC_SEQ_CST);
	was = shared_arm(&c, i, deadline);
	resolve(i, was);
	s->live = deadline;
	count(&armings);
}

static void own_cancel(__u32 i)
{
	resolve(i, shared_cancel(&c, i));
}

static bool take_some(__u32 most);

static void print_lost(__u32 i)
{
	struct twheel_info info = wheel_info(c.fd);

	tap_diag("now %llu next wake-up %llu, next expiry %llu, pending %llu ready %llu",
		 now(CLOCK_MONOTONIC), read64(&c.area->next_wake), info.next_expiry,
		 info.pending, info.ready);
	tap_diag("%u, tick %llu, %u: word %llx dirty %llx %llx, head %u tail %u",
		 nr, info.tick, i, read64(&c.words[i]), read64(&c.dirty[i / 64]),
		 read64(&c.groups[i / c.group / 64]), read32(&c.area->head), read32(&c.area->tail));
}

/* With few timers, nobody else makes the kernel look */
static void wait_for_it(__u32 i)
{
	__u64 live = shadows[i].live, end = now(CLOCK_MONOTONIC) + 10 * MSEC;

	if (nr > 5 || !live || live > end)
		return;
	end += PATIENCE_MS * MSEC;
	while (!(read64(&c.words[i]) & IDLE))
		if (!EXPECT_TRUE(now(CLOCK_MONOTONIC) < end, "timer %u is lost", i)) {
			print_lost(i);
			break;
		}
}

/* ---- owners at work ---- */

/* Some are due at once, most soon, some never */
static void random_op(__u32 i, __u64 *state)
{
	__u64 r = random_next(state), time = now(CLOCK_MONOTONIC);

	switch (r % 16) {
	case 0:
	case 1:
	case 2:
		own_cancel(i);
		break;
	case 3:
		own_arm(i, time + HOUR + (r >> 32));
		break;
	case 4:
		own_arm(i, time - (r >> 40) % MSEC);
		break;
	case 5:
	case 6:
		/* to a little later or earlier than it is, also when it is due now */
		own_arm(i, (shadows[i].live ?: time) + (r >> 40) % (20 * USEC) -
			   10 * USEC);
		break;
	case 7:
	case 8:
		own_arm(i, time + (r >> 40) % (20 * USEC));
		break;
	default:
		own_arm(i, time + (r >> 32) % (6 * MSEC));
		break;
	}
	/* a while in which the wheel may go to sleep */
	if (nr <= 64 && (r >> 50) % 64 == 7)
		sleep_ns(r >> 20 & 0x1fffff);
	if (by & BY_OWNERS && r >> 60 == 1)
		take_some(1 + (r >> 30) % BATCH);
	if (!(r >> 58 & 3))
		wait_for_it(i);
}

/* What is never due is to come now, or not at all */
static void settle_far(__u32 i, __u64 *state)
{
	__u64 time = now(CLOCK_MONOTONIC), r = random_next(state);

	if (shadows[i].live < time + SEC)
		return;
	if (r & 1)
		own_cancel(i);
	else
		own_arm(i, time + r % (2 * MSEC));
}

static void random_ops(__u32 ops, long me, __u64 *state)
{
	__u32 i, k;

	for (k = 0; k < ops; k++) {
		i = (random_next(state) >> 20) % nr;
		if (nr >= OWNERS)
			i = i / OWNERS * OWNERS + me;
		else if (me)
			break;
		if (i < nr)
			random_op(i, state);
	}
}

static __u32 ops_of_each;

static void *owner(void *arg)
{
	long me = (long)arg;
	__u64 state = seed * 77 + me + 1;
	__u32 i;

	pin_to(me);
	random_ops(ops_of_each, me, &state);
	for (i = me; i < nr; i += OWNERS)
		settle_far(i, &state);
	return NULL;
}

/* ---- who takes ---- */

static void note(__u32 i, __u64 deadline)
{
	__u64 time = now(CLOCK_MONOTONIC);

	EXPECT_TRUE(time >= deadline, "timer %u early by %llu", i, deadline - time);
	end_arming(i, deadline, TAKEN, ENDED);
	__atomic_add_fetch(&shadows[i].taken, 1, __ATOMIC_RELAXED);
	count(&taken);
}

/* So that much can happen between two steps, which else hardly ever does */
static void stop_at_times(void)
{
	static __thread __u64 state = 1;
	__u64 r = random_next(&state);

	if (r % 32 == 0)
		sleep_ns((r >> 20) % (300 * USEC));
}

static bool take_some(__u32 most)
{
	struct expiry e[BATCH];
	__u32 n = shared_take_some(&c, e, most), k;

	for (k = 0; k < n; k++)
		note(e[k].timer, e[k].deadline);
	if (n > 1)
		count(&together);
	return n;
}

#define ROOM 4096

/* A thread's memory to read into. At times no page is there, as before the first use of it. */
static void *room(void)
{
	static __thread __u64 state = 2;
	static __thread char *at;

	if (!at)
		at = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (at == MAP_FAILED || madvise(at, random_next(&state) >> 20 & 1 ? ROOM : 0,
					MADV_DONTNEED))
		tap_bail("memory to read into: %s", strerror(errno));
	return at;
}

static bool read_some(void)
{
	struct twheel_event *ev = room();
	long n = read_events(c.fd, ev, 9), k;

	if (n < 0)
		EXPECT_EQ(n, -EAGAIN);
	for (k = 0; k < n; k++) {
		EXPECT_EQ(ev[k].flags, TWHEEL_EVENT_SHARED);
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= ev[k].deadline, "early");
		if (EXPECT_TRUE(ev[k].user_data < nr, "%llu", ev[k].user_data))
			note(ev[k].user_data, ev[k].deadline & ~ARMED);
	}
	return n > 0;
}

/* Asleep until there is something: it must be woken, or nothing goes on */
static void *consumer(void *arg)
{
	struct pollfd p[2] = {
		{ .fd = c.fd, .events = POLLIN },
		{ .fd = stop_fd, .events = POLLIN },
	};
	__u32 turn = 0;

	pin_to((long)arg);
	while (!stopped()) {
		bool reads = by & BY_READ && (!(by & BY_RING) || turn % 2);

		turn++;
		if (reads ? read_some() : take_some(1 + turn * 11 / 2 % BATCH))
			continue;
		EXPECT_TRUE(poll(p, 2, PATIENCE_MS) > 0, "not woken, %u wait",
			    shared_waiting(&c));
	}
	return NULL;
}

static void *drainer(void *arg)
{
	struct pollfd p = { .fd = stop_fd, .events = POLLIN };
	struct twheel_op *ops;
	long n, k;

	pin_to((long)arg);
	while (!stopped()) {
		ops = room();
		n = drain(c.fd, ops, 20);
		if (!EXPECT_TRUE(n >= 0, "drain: %ld", n))
			break;
		for (k = 0; k < n; k++) {
			__u32 i = ops[k].user_data;

			if (!EXPECT_TRUE(!ops[k].id && i < nr, "timer %u", i))
				continue;
			end_arming(i, ops[k].deadline & ~ARMED, TAKEN, ENDED);
			__atomic_add_fetch(&shadows[i].taken, 1, __ATOMIC_RELAXED);
			count(&drained);
		}
		poll(&p, 1, 3);
	}
	return NULL;
}

/* ---- a round ---- */

static void print_all_lost(void)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		if (shadows[i].taken != shadows[i].owed + !!shadows[i].live)
			print_lost(i);
}

static __u64 owed_in_all(void)
{
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < nr; i++)
		sum += shadows[i].owed + !!shadows[i].live;
	return sum;
}

static __u64 over(void)
{
	return __atomic_load_n(&taken, __ATOMIC_SEQ_CST) +
	       __atomic_load_n(&drained, __ATOMIC_SEQ_CST);
}

static void check_timer(__u32 i)
{
	struct shadow *s = &shadows[i];
	__u64 word = read64(&c.words[i]);

	EXPECT_EQ(s->taken, s->owed + !!s->live, "timer %u: %llx", i, word);
	EXPECT_TRUE(!(word & (FIRED | ARMED)), "timer %u: %llx", i, word);
	if (s->live)
		EXPECT_TRUE(word & IDLE, "timer %u: %llx", i, word);
}

static void check_round(const __u64 *before)
{
	struct twheel_stats stats;
	__u32 i;

	for (i = 0; i < nr; i++)
		check_timer(i);
	stats = wheel_stats(c.fd);
	EXPECT_EQ(stats.expired, taken - before[0] + withdrawn - before[1]);
	EXPECT_EQ(stats.drained, drained - before[2]);
	EXPECT_EQ(shared_waiting(&c) > nr, 0);
}

static void one_round(__u64 of_tick, __u32 timers, __u32 ops)
{
	__u64 before[] = { taken, withdrawn, drained }, start_over = over(), owed;
	pthread_t owners[OWNERS], consumers[2];
	__u64 one = 1;
	long i;

	nr = timers;
	tick = of_tick;
	ops_of_each = ops;
	seed++;
	memset(shadows, 0, nr * sizeof(*shadows));
	stop = false;
	stop_fd = eventfd(0, EFD_CLOEXEC);
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, tick, nr);
	c.between = stop_at_times;
	thread_start(&consumers[0], consumer, (void *)1);
	if (by != BY_RING)
		thread_start(&consumers[1], by & BY_DRAIN ? drainer : consumer, (void *)0);
	for (i = 0; i < OWNERS; i++)
		thread_start(&owners[i], owner, (void *)i);
	for (i = 0; i < OWNERS; i++)
		pthread_join(owners[i], NULL);

	owed = owed_in_all();
	if (!EXPECT_TRUE(WAIT_FOR(over() - start_over >= owed), "%llu lost of %llu",
			 owed - (over() - start_over), owed))
		print_all_lost();
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	if (write(stop_fd, &one, sizeof(one)) != sizeof(one))
		tap_bail("eventfd: %s", strerror(errno));
	for (i = 0; i < 2 - (by == BY_RING); i++)
		pthread_join(consumers[i], NULL);
	EXPECT_EQ(over() - start_over, owed);
	check_round(before);
	client_close(&c);
	close(stop_fd);
}

static __u64 share_of_time(unsigned int parts)
{
	return now(CLOCK_MONOTONIC) + 5 * SEC * number_of("TIMES", 1) / parts;
}

static void rounds(void)
{
	static const __u64 ticks[] = { USEC, MSEC, 4 * MSEC };
	static const __u32 many[] = { 2, MOST, 1, 64, 5, 600 };
	__u64 end = share_of_time(4);
	__u32 k = 0;

	do {
		__u32 timers = many[k % ARRAY_SIZE(many)];

		/* each tick with each number */
		one_round(ticks[(k + k / ARRAY_SIZE(many)) % ARRAY_SIZE(ticks)],
			  timers, 100 + timers * 6);
		k++;
	} while (now(CLOCK_MONOTONIC) < end || k < ARRAY_SIZE(many));
}

static void run(unsigned int who)
{
	by = who;
	armings = 0;
	withdrawn = 0;
	cancelled = 0;
	taken = 0;
	together = 0;
	drained = 0;
	unknown = 0;
	rounds();
	tap_diag("armed %llu, moved or cancelled before they expired %llu, after that %llu",
		 armings, cancelled, withdrawn);
	tap_diag("taken %llu, of them without a look %llu, drained %llu; together %llu times",
		 taken, unknown, drained, together);
	EXPECT_TRUE(taken && cancelled && withdrawn, "one of the ends did not happen");
	EXPECT_TRUE(together || !(by & BY_RING), "none were taken together");
	EXPECT_TRUE(drained || !(by & BY_DRAIN), "none was drained");
	EXPECT_TRUE(unknown <= taken / 10, "most was not looked at");
}

/* ---- armed, and cancelled, at the moment at which the kernel is at work ---- */

#define TRIGGERS 32		/* enough for the kernel to need a while */
#define LATER 200		/* a timer that it looks for elsewhere */

static __u32 turn;		/* odd: the triggers are to be armed; even: they are */

static void wait_turn(__u32 odd)
{
	while (read32(&turn) % 2 != odd && !stopped())
		;
}

/* Each run of the kernel's is on this processor */
static void *trigger(void *arg)
{
	__u64 deadline;
	__u32 i;

	pin_to(0);
	for (;;) {
		wait_turn(1);
		if (stopped())
			return arg;
		deadline = now(CLOCK_MONOTONIC) + 500 * USEC;
		for (i = 0; i < TRIGGERS; i++)
			shared_arm(&c, i, deadline);
		__atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
	}
}

static bool idle_soon(__u32 i)
{
	__u64 end = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;

	while (!(read64(&c.words[i]) & IDLE))
		if (now(CLOCK_MONOTONIC) > end)
			return false;
	return true;
}

/*
 * Nothing else is armed that would wake it, and it may have been about to sleep. And
 * what is cancelled while it expires is one or the other.
 */
static bool arm_after_trigger(__u64 r)
{
	__u32 i = 0, k;

	__atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
	wait_turn(0);
	if (!EXPECT_TRUE(idle_soon(0), "the trigger is lost"))
		return false;
	for (k = r % 64; k; k--)
		read64(&c.words[0]);
	shared_arm(&c, LATER, now(CLOCK_MONOTONIC) + (r >> 32) % (10 * USEC));
	/* meanwhile it comes up from the other end */
	for (k = TRIGGERS - 1; k; k--)
		EXPECT_TRUE(shared_cancel(&c, k), "trigger %u was not there", k);
	if (!EXPECT_TRUE(idle_soon(LATER), "lost")) {
		print_lost(LATER);
		return false;
	}
	for (k = 0; k < 2; k++)
		EXPECT_TRUE(WAIT_FOR(shared_take(&c, &i)));
	return EXPECT_TRUE(!shared_take(&c, &i), "timer %u, which was cancelled", i);
}

static void test_asleep(void)
{
	__u64 end = share_of_time(4), rounds = 0;
	pthread_t thread;

	nr = LATER + 1;
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, USEC, nr);
	stop = false;
	turn = 0;
	thread_start(&thread, trigger, (void *)0);
	pin_to(1);
	do {
		rounds++;
	} while (arm_after_trigger(random_next(&seed)) && now(CLOCK_MONOTONIC) < end);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	tap_diag("%llu rounds, the doorbell was rung %llu times", rounds, c.doorbells);
	client_close(&c);
}

int main(void)
{
	seed = number_of("SEED", 1);
	tap_start(100 + 10 * number_of("TIMES", 1));
	RUN_CALL(run(BY_RING), "taken from the ring");
	RUN_CALL(run(BY_READ), "taken by read(2)");
	RUN_CALL(run(BY_RING | BY_READ | BY_OWNERS), "taken by both, and by those who arm");
	RUN_CALL(run(BY_RING | BY_READ | BY_DRAIN), "taken and drained");
	RUN(test_asleep, "armed and cancelled while the kernel looks elsewhere");
	return tap_end();
}
