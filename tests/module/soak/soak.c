// SPDX-License-Identifier: GPL-2.0
/*
 * So many DAYS (of the environment), simulated, of wheels of all clocks, with all that
 * can be done to a timer, and an oracle kept of it (oracle.h). Then the wall clock is
 * set to far ends, and all goes on.
 *
 * The wall clock begins where within the first days all levels of a wheel turn
 * over together, and soon after 32 bits of seconds come to their end.
 */
#include "oracle.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timex.h>

#define DAY (24 * HOUR)
#define BATCH 200U

/* As the module has them: 64 slots are a turn. */
#define TURN_BITS 6
#define LEVELS 9

/*
 * A tick with which level 7 turns over 11 days before 2038-01-19 03:14:08: for an even
 * time, so that its next slot is the first of those that it has room for.
 */
#define COMMON_TICK 1271ULL
#define LEVEL_7_TURNS (6 * (1ULL << 48) * COMMON_TICK)
#define WALL_START (LEVEL_7_TURNS - DAY / 2)

/* The kernel lets no clock be set to the last 30 years of all time. */
#define LAST_SETTABLE ((KTIME_MAX / SEC - 30ULL * 365 * 24 * 3600 - 1) * SEC)

static struct wheel wheels[] = {
	{ .name = "monotonic, 1 us", .clock = CLOCK_MONOTONIC, .tick = USEC },
	{ .name = "boottime, 1 ms", .clock = CLOCK_BOOTTIME, .tick = MSEC },
	{ .name = "realtime", .clock = CLOCK_REALTIME, .tick = COMMON_TICK },
	{ .name = "tai, 1.001 us", .clock = CLOCK_TAI, .tick = 1001 },
	{ .name = "monotonic, a jiffy", .clock = CLOCK_MONOTONIC },
	{ .name = "realtime, 1 s", .clock = CLOCK_REALTIME, .tick = SEC },
	{ .name = "count", .clock = CLOCK_BOOTTIME, .tick = USEC,
	  .flags = TWHEEL_SETUP_COUNT },
};

static __u64 days;
/* The longest that anything takes */
static __u64 horizon;

static struct twheel_op ops[BATCH];
static struct timer *touched[BATCH];
static unsigned int nr_ops;

static void sleep_until(__u64 time)
{
	struct timespec ts = { time / SEC, time % SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void set_clock(__u64 time)
{
	struct timespec ts = { time / SEC, time % SEC };

	if (clock_settime(CLOCK_REALTIME, &ts))
		tap_bail("clock_settime to %llu: %s", time, strerror(errno));
}

static bool counts(const struct wheel *w)
{
	return w->flags & TWHEEL_SETUP_COUNT;
}

static void read_all_events(struct wheel *w)
{
	static struct twheel_event events[64];
	unsigned int calls = 0;
	__u64 from, to;
	long n, i;

	for (;;) {
		from = now(w->clock);
		n = read_events(w->fd, events, 1 + below(ARRAY_SIZE(events)));
		to = now(w->clock);
		if (n == -EAGAIN)
			break;
		if (!EXPECT_TRUE(n > 0 && calls++ < 10 * TIMERS, "%s: read gave %ld",
				 w->name, n))
			return;
		for (i = 0; i < n; i++)
			enter_event(w, &events[i], from, to);
	}
	check_none_lost(w, from);
}

static void read_count(struct wheel *w)
{
	__u64 want = 0, got = 0, time;
	unsigned int i;
	ssize_t ret;

	while (time = now(w->clock), is_edge(w, time))
		sleep_ns(1 + below(10 * USEC));
	for (i = 0; i < TIMERS; i++)
		want += count_one(w, &w->timers[i], time);
	ret = read(w->fd, &got, sizeof(got));
	EXPECT_TRUE(ret == sizeof(got) || (ret < 0 && errno == EAGAIN), "%zd", ret);
	EXPECT_EQ(got, want, "at %llu", time);
}

static void read_wheel(struct wheel *w)
{
	if (counts(w))
		read_count(w);
	else
		read_all_events(w);
}

static __u64 any_deadline(const struct wheel *w)
{
	__u64 time = now(w->clock);
	__u64 width = w->tick;
	unsigned int level;

	switch (below(20)) {
	case 0:
		return time - any_span(time);
	case 1:
		return KTIME_MAX - (chance(2) ? 0 : any_span(100 * 365 * DAY));
	case 2:
	case 3:
		/* Where a slot of some level begins */
		for (level = below(LEVELS); level && width < horizon; level--)
			width <<= TURN_BITS;
		time = ceil_to(time_sum(time, any_span(horizon)), width) + below(3) - 1;
		return time_sum(time, 0);
	default:
		return time_sum(time, any_span(horizon));
	}
}

/* Next to the present operation: to it itself, or to what is not busy */
static void add_op(struct timer *t, struct twheel_op op)
{
	t->busy = true;
	touched[nr_ops] = t;
	ops[nr_ops++] = op;
}

static __u64 any_interval(const struct wheel *w)
{
	/* One that is counted must have times at which its number stands still. */
	return (counts(w) ? MSEC : 1) + any_span(horizon / 2);
}

static struct twheel_op any_times(const struct wheel *w, const struct timer *t)
{
	struct twheel_op op = op_arm(TWHEEL_ABS, any_deadline(w), 0);

	if (chance(3)) {
		op.flags = 0;
		op.deadline = time_sum(any_span(horizon), 0);
	}
	if (chance(10))
		op.interval = any_interval(w);
	if (!counts(w) && chance(5))
		op.slack = any_span(DAY);
	if (!counts(w) && chance(5))
		op.jitter = any_span(op.interval ?: DAY);
	op.user_data = any_user_data(w, t);
	return op;
}

static void add_modify(struct wheel *w, struct timer *t)
{
	struct twheel_op op = any_times(w, t);

	op.opcode = TWHEEL_OP_MODIFY;
	op.id = t->id;
	/* A timeout that is pushed ahead, or the like */
	if (chance(2)) {
		op.flags = TWHEEL_ABS;
		op.interval = t->interval;
		op.slack = t->slack;
		op.jitter = t->jitter;
		op.deadline = chance(4) ?
			      t->nominal - below(t->nominal) / 1000 :
			      time_sum(t->nominal, any_span(horizon));
	}
	add_op(t, op);
}

static void check_query(const struct wheel *w, const struct timer *t,
			const struct twheel_op *op)
{
	EXPECT_EQ(op->result, 0, "%s", w->name);
	EXPECT_EQ(op->user_data, t->user_data, "%s", w->name);
	EXPECT_EQ(op->interval, t->interval, "%s", w->name);
	EXPECT_EQ(op->jitter, t->interval ? t->jitter : 0, "%s", w->name);
	EXPECT_TRUE(op->deadline >= t->nominal &&
		    op->deadline <= time_sum(t->nominal, t->interval ? 0 : t->jitter),
		    "%s: deadline %llu nominal %llu jitter %llu", w->name,
		    op->deadline, t->nominal, t->jitter);
	/* As much as the wheel can use */
	EXPECT_TRUE(op->slack <= t->slack && 2 * op->slack + w->tick > t->slack,
		    "%s: slack %llu of %llu", w->name, op->slack, t->slack);
}

/* What was found was ready, or it was not, and it is known which. */
static void check_state(const struct wheel *w, const struct timer *t,
			const struct twheel_op *op, __u64 from, __u64 to)
{
	EXPECT_TRUE(op->state == TWHEEL_STATE_PENDING ||
		    op->state == TWHEEL_STATE_READY, "%s: %u", w->name, op->state);
	if (to < t->nominal)
		EXPECT_EQ(op->state, TWHEEL_STATE_PENDING, "%s: nominal %llu at %llu",
			  w->name, t->nominal, to);
	if (from > due(w, t) && from - due(w, t) > PROMPT)
		EXPECT_EQ(op->state, TWHEEL_STATE_READY, "%s: due %llu at %llu",
			  w->name, due(w, t), from);
}

/* A delay began at some time between @from and @to: ask. */
static void learn_deadline(struct wheel *w, struct timer *t, __u64 delay,
			   __u64 from, __u64 to)
{
	struct twheel_op op;

	if (!EXPECT_EQ(query(w->fd, t->id, &op), 0, "%s", w->name))
		return;
	EXPECT_TRUE(op.deadline >= time_sum(from, delay) &&
		    op.deadline <= time_sum(time_sum(to, delay),
					    t->interval ? 0 : t->jitter),
		    "%s: %llu, delay %llu from %llu to %llu", w->name, op.deadline,
		    delay, from, to);
	t->nominal = op.deadline;
	if (!t->interval)
		t->jitter = 0;
}

static void enter_times(struct wheel *w, struct timer *t,
			const struct twheel_op *op, __u64 from, __u64 to)
{
	t->nominal = op->deadline;
	t->interval = op->interval;
	t->slack = op->slack;
	t->jitter = op->jitter;
	t->user_data = op->user_data;
	t->since = to;
	if (!(op->flags & TWHEEL_ABS))
		learn_deadline(w, t, op->deadline, from, to);
}

static void enter_op(struct wheel *w, struct timer *t,
		     const struct twheel_op *op, __u64 from, __u64 to)
{
	t->busy = false;
	if (!EXPECT_EQ(op->result, 0, "%s: opcode %u", w->name, op->opcode))
		return;
	if (op->opcode != TWHEEL_OP_ARM)
		check_state(w, t, op, from, to);
	switch (op->opcode) {
	case TWHEEL_OP_ARM:
		EXPECT_TRUE(op->id, "%s", w->name);
		t->id = op->id;
		w->armed++;
		w->live++;
		enter_times(w, t, op, from, to);
		break;
	case TWHEEL_OP_MODIFY:
		w->modified++;
		w->withdrawn += op->state == TWHEEL_STATE_READY;
		enter_times(w, t, op, from, to);
		break;
	case TWHEEL_OP_CANCEL:
		w->cancelled++;
		w->withdrawn += op->state == TWHEEL_STATE_READY;
		forget(w, t);
		break;
	default:
		check_query(w, t, op);
	}
}

static void submit_ops(struct wheel *w)
{
	unsigned int i;
	__u64 from, to;
	long ret;

	from = now(w->clock);
	ret = submit(w->fd, ops, nr_ops);
	to = now(w->clock);
	EXPECT_EQ(ret, nr_ops, "%s", w->name);
	for (i = 0; i < nr_ops; i++)
		enter_op(w, touched[i], &ops[i], from, to);
	nr_ops = 0;
}

static struct timer *any_timer(struct wheel *w, bool armed)
{
	unsigned int tries = 100;
	struct timer *t;

	do {
		t = &w->timers[below(TIMERS)];
	} while ((t->busy || !t->id == armed) && --tries);
	return tries ? t : NULL;
}

static void add_any(struct wheel *w)
{
	bool crowded = below(TIMERS) < w->live + nr_ops;
	unsigned int kind = below(10);
	struct timer *t;

	t = any_timer(w, crowded || kind < 5);
	if (!t)
		return;
	if (!t->id)
		add_op(t, any_times(w, t));
	else if (kind < 3)
		add_modify(w, t);
	else if (kind < 4)
		add_op(t, op_for(TWHEEL_OP_QUERY, t->id));
	else
		add_op(t, op_for(TWHEEL_OP_CANCEL, t->id));
}

/* Many with nearly the same deadline */
static void add_burst(struct wheel *w)
{
	__u64 start = now(w->clock) + any_span(horizon);
	__u64 width = chance(2) ? 1 : any_span(DAY);
	unsigned int i;
	struct timer *t;

	for (i = 0; i < BATCH; i++) {
		t = any_timer(w, false);
		if (t)
			add_op(t, op_arm(TWHEEL_ABS, time_sum(start, below(width)),
					 any_user_data(w, t)));
	}
}

/* Take all or much out, and arm it again on the same wheel, as at a hand-over. */
static void hand_over(struct wheel *w)
{
	static struct twheel_op drained[BATCH];
	long n = drain(w->fd, drained, 1 + below(BATCH)), i;
	struct timer *t;

	if (!EXPECT_TRUE(n >= 0, "%s: drain gave %ld", w->name, n))
		return;
	w->drained += n;
	for (i = 0; i < n; i++) {
		t = find_timer(w, drained[i].user_data, drained[i].id);
		if (!t)
			continue;
		EXPECT_EQ(drained[i].state, TWHEEL_STATE_PENDING);
		check_query(w, t, &drained[i]);
		forget(w, t);
		add_op(t, drained[i]);
	}
}

static void operate(struct wheel *w)
{
	unsigned int i, n = 1 + any_span(BATCH - 1);

	switch (below(20)) {
	case 0:
		add_burst(w);
		break;
	case 1:
		hand_over(w);
		break;
	default:
		for (i = 0; i < n; i++)
			add_any(w);
	}
	if (nr_ops)
		submit_ops(w);
}

/* Read as soon as there is something, for a while: so periods are short. */
static void attend(__u64 end)
{
	struct pollfd polls[ARRAY_SIZE(wheels)];
	unsigned int i, turns = 20;
	__u64 time;

	while (turns-- && (time = now(CLOCK_MONOTONIC)) < end) {
		__u64 left = end - time;
		struct timespec ts = { left / SEC, left % SEC };

		for (i = 0; i < ARRAY_SIZE(wheels); i++)
			polls[i] = (struct pollfd){ .fd = wheels[i].fd,
						    .events = POLLIN };
		if (ppoll(polls, ARRAY_SIZE(wheels), &ts, NULL) < 0)
			tap_bail("poll: %s", strerror(errno));
		for (i = 0; i < ARRAY_SIZE(wheels); i++)
			if (polls[i].revents & POLLIN)
				read_wheel(&wheels[i]);
	}
}

static void read_all(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wheels); i++)
		read_wheel(&wheels[i]);
}

static void check_all(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wheels); i++)
		check_stats(&wheels[i]);
}

static void round_of_work(__u64 end)
{
	__u64 time = now(CLOCK_MONOTONIC);
	__u64 pause = any_span(horizon / 50);
	__u64 next = time + pause < end ? time + pause : end;

	if (chance(2))
		operate(&wheels[below(ARRAY_SIZE(wheels))]);
	if (chance(4))
		attend(next);
	sleep_until(next);
	if (chance(2))
		read_all();
}

static void play(__u64 length)
{
	__u64 end = now(CLOCK_MONOTONIC) + length;
	unsigned int rounds = 0;

	while (now(CLOCK_MONOTONIC) < end) {
		round_of_work(end);
		if (++rounds % 50 == 0)
			check_all();
	}
	read_all();
	check_all();
}

/* End all timers of all wheels in one way or the other. */
static void empty_all(void)
{
	unsigned int i, k;

	read_all();
	for (i = 0; i < ARRAY_SIZE(wheels); i++) {
		struct wheel *w = &wheels[i];

		while (w->live) {
			for (k = 0; k < TIMERS && nr_ops < BATCH; k++)
				if (w->timers[k].id && !w->timers[k].busy)
					add_op(&w->timers[k],
					       op_for(TWHEEL_OP_CANCEL,
						      w->timers[k].id));
			submit_ops(w);
		}
	}
	check_all();
}

static void test_days(void)
{
	unsigned int i;

	for (i = 0; i < 8; i++) {
		play(days * DAY / 8);
		empty_all();
	}
}

/* ---- levels ---- */

/*
 * A lone timer for each level of a wheel, armed before the end of a turn of its level for a
 * tick after it, in which it has to be cascaded through every level below, or be late.
 */
static struct probe {
	int fd;
	unsigned int level;
	__u64 deadline;
} probes[4 * LEVELS];

static unsigned int nr_probes;

/*
 * Two slots of the level ahead at least, or it would begin on the level below, and as much
 * for each level below that; in the level's next turn, if there is one.
 */
static __u64 probe_deadline(clockid_t clock, __u64 tick, unsigned int level)
{
	__u64 slot = 1ULL << level * TURN_BITS, from = now(clock) / tick;
	__u64 at = (from / (slot << TURN_BITS) + 1) * (slot << TURN_BITS);

	if (level == LEVELS - 1)
		at = (from / slot + 2) * slot;
	else if (at / slot < from / slot + 2)
		at += slot;
	while (level--)
		at += 2ULL << level * TURN_BITS;
	return at * tick;
}

/*
 * Who waits for all wheels, so that what is due is done in time; and reads nothing. (Who looks at a
 * wheel with something ready need not do more: a request does a piece.)
 */
static int watches = -1;

static void *watching(void *arg)
{
	struct epoll_event event;

	(void)arg;
	for (;;) {
		int i;

		if (epoll_wait(watches, &event, 1, -1) == 1)
			for (i = 0; i < 16; i++)
				wheel_info(event.data.fd);
	}
	return NULL;
}

static void watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fd };
	pthread_t thread;

	if (watches < 0) {
		watches = epoll_create1(EPOLL_CLOEXEC);
		if (pthread_create(&thread, NULL, watching, NULL))
			tap_bail("pthread_create");
	}
	if (epoll_ctl(watches, EPOLL_CTL_ADD, fd, &event))
		tap_bail("epoll_ctl: %s", strerror(errno));
}

static void probe(clockid_t clock, __u64 tick, unsigned int level)
{
	struct probe *p = &probes[nr_probes++];

	p->fd = wheel_new(wheel_clock(clock), tick);
	watch(p->fd);
	p->level = level;
	p->deadline = probe_deadline(clock, tick, level);
	arm(p->fd, TWHEEL_ABS, p->deadline, level);
}

/* Each level that comes to the end of its turn in time */
static void probe_levels(clockid_t clock, __u64 tick)
{
	unsigned int level;

	for (level = 1; level < LEVELS - 1; level++)
		if (probe_deadline(clock, tick, level) < now(clock) + days * DAY)
			probe(clock, tick, level);
}

/* All were on time. Gives the highest level. */
static unsigned int check_probes(void)
{
	unsigned int highest = 0;

	while (nr_probes) {
		struct probe *p = &probes[--nr_probes];
		struct twheel_stats stats = wheel_stats(p->fd);
		struct twheel_event ev;

		if (EXPECT_EQ(read_events(p->fd, &ev, 1), 1, "level %u", p->level))
			EXPECT_EQ(ev.deadline, p->deadline);
		EXPECT_TRUE(stats.max_lateness <= PROMPT, "level %u: %llu ns late", p->level,
			    stats.max_lateness);
		EXPECT_TRUE(stats.wakeups <= 2, "%llu", stats.wakeups);
		if (p->level > highest)
			highest = p->level;
		close(p->fd);
	}
	return highest;
}

static void test_turns(void)
{
	EXPECT_EQ(check_probes(), 7);
}

static void step_to(__u64 time)
{
	unsigned int i;

	read_all();
	check_all();
	set_clock(time);
	for (i = 0; i < ARRAY_SIZE(wheels); i++) {
		struct wheel *w = &wheels[i];

		if (w->clock != CLOCK_REALTIME && w->clock != CLOCK_TAI)
			continue;
		w->set_to = now(w->clock);
		w->last = 0;
		/* What is ready stays so, also when the clock is set back. */
		w->excused = wheel_info(w->fd).ready;
	}
	/*
	 * The timers come at the end of the first sleep, together with this program, which
	 * is not preempted. By the second the rest is done.
	 */
	sleep_ns(2 * PROMPT);
	sleep_ns(PROMPT);
	read_all();
	for (i = 0; i < ARRAY_SIZE(wheels); i++) {
		struct wheel *w = &wheels[i];

		EXPECT_EQ(w->excused, 0, "%s", w->name);
		if (w->clock == CLOCK_REALTIME || w->clock == CLOCK_TAI)
			w->late = late_expiries(w);
	}
}

static void test_2106(void)
{
	step_to((1ULL << 32) * SEC - 30 * SEC);
	horizon = 300 * 365 * DAY;
	play(60 * SEC);
	EXPECT_TRUE(now(CLOCK_REALTIME) > (1ULL << 32) * SEC);
}

static void test_top_level(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_TAI };
	unsigned int i;

	horizon = 100 * 365 * DAY;
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		probe(clocks[i], COMMON_TICK, 8);
		/* (Atomic time is some seconds ahead.) */
		step_to(probes[0].deadline - 60 * SEC);
		play(80 * SEC);
		EXPECT_EQ(check_probes(), 8);
	}
}

static void test_far_and_back(void)
{
	__u64 present = now(CLOCK_REALTIME);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		horizon = 20 * 365 * DAY;
		step_to(LAST_SETTABLE);
		play(HOUR);
		step_to(i ? present : now(CLOCK_BOOTTIME) + HOUR);
		horizon = 300 * 365 * DAY;
		play(HOUR);
	}
	empty_all();
}

static void begin(void)
{
	struct timex tai = { .modes = ADJ_TAI, .constant = 37 };
	unsigned int i;
	long ret;

	/* Or the kernel would wake up twice a second. */
	if (write_text("/proc/sys/vm/compaction_proactiveness", "0"))
		tap_bail("compaction is not to be stopped");
	set_clock(WALL_START);
	if (adjtimex(&tai) < 0)
		tap_bail("adjtimex: %s", strerror(errno));
	prctl(PR_SET_TIMERSLACK, 1);
	drop_resource();
	/* Not before the kernel has its exact timers running */
	sleep_ns(SEC);
	for (i = 0; i < ARRAY_SIZE(wheels); i++) {
		struct wheel *w = &wheels[i];

		w->fd = wheel_open(O_NONBLOCK);
		ret = wheel_setup(w->fd, wheel_clock(w->clock), w->tick, TIMERS,
				  w->flags);
		if (ret)
			tap_bail("setup of %s: %s", w->name, strerror(-ret));
		watch(w->fd);
		w->tick = wheel_info(w->fd).tick;
	}
	probe_levels(CLOCK_MONOTONIC, USEC);
	probe_levels(CLOCK_BOOTTIME, 10 * MSEC);
	probe_levels(CLOCK_REALTIME, COMMON_TICK);
	probe_levels(CLOCK_TAI, COMMON_TICK);
}

int main(void)
{
	const char *text = getenv("DAYS");

	/* Level 7 goes on to its second slot after its turn on the 68th. */
	days = text ? strtoull(text, NULL, 10) : 68;
	horizon = days * DAY / 2;
	tap_start(0);
	begin();
	RUN(test_days, "all that can be done to timers, as the oracle says");
	RUN(test_turns, "every level that can turned over, and its timers came on time");
	RUN(test_2106, "32 bits of unsigned seconds come to their end");
	RUN(test_top_level, "timers come down from the top level, on time");
	RUN(test_far_and_back, "the wall clock set to its far end and back");
	return tap_end();
}
