/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each timer of a wheel shall do, and did: an oracle that is kept beside the
 * module, so that it need not be believed.
 *
 * For a machine in which work takes no time: so it can be asked when exactly
 * something happened.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "device.h"

/* In a wheel; a power of two */
#define TIMERS 1024U

/* What is on time is as late as this at most. */
#define PROMPT (5 * USEC)

/* By the wheel's own count: who waits does what is due, and may have several to do it for. */
#define LATE (63 * USEC)

/* A timer in the oracle */
struct timer {
	__u64 id;		/* 0: not armed */
	__u64 nominal;		/* when it expires next, but for its jitter */
	__u64 interval, slack, jitter;
	__u64 user_data;	/* with its place in the oracle in its last digits */
	__u64 since;		/* when the wheel had it last: what was due before is late */
	bool busy;		/* an operation on it is on its way */
};

/* A wheel and its oracle: what was done to it so far */
struct wheel {
	const char *name;
	clockid_t clock;
	__u64 tick;
	__u32 flags;
	int fd;
	__u64 armed, modified, cancelled, drained;
	__u64 delivered;	/* events read, or counted */
	__u64 withdrawn;	/* expiries that were not read, but modified or cancelled */
	__u64 overruns;		/* periods that went by */
	__u64 set_to;		/* where the clock was set to: what was due before is late */
	__u64 excused;		/* those that were ready then and are not read yet */
	__u64 last;		/* before which no event that was read was ready */
	__u64 late;		/* expiries that were late, as the clock was set */
	unsigned int live;	/* timers that are armed */
	struct timer timers[TIMERS];
};

static inline __u64 sum(__u64 a, __u64 b)
{
	return a + b < a ? ~0ULL : a + b;
}

static inline __u64 ceil_to(__u64 ns, __u64 unit)
{
	return sum(ns, unit - 1) / unit * unit;
}

static inline __u64 time_sum(__u64 a, __u64 b)
{
	__u64 ns = sum(a, b);

	return ns > KTIME_MAX ? KTIME_MAX : ns;
}

static inline __u64 random_u64(void)
{
	static __u64 state = 88172645463325252ULL;

	return random_next(&state) * 0x2545f4914f6cdd1dULL;
}

/* 0 if there is nothing below */
static inline __u64 below(__u64 limit)
{
	return limit ? (random_u64() >> 1) % limit : 0;
}

static inline bool chance(unsigned int in)
{
	return !below(in);
}

/* Up to @most; a short one is as likely as a long one. */
static inline __u64 any_span(__u64 most)
{
	unsigned int bits = 64 - __builtin_clzll(most);
	__u64 span = random_u64() >> 1 >> (63 - 1 - below(bits));

	return span < most ? span : most;
}

/* When a timer is ready at the latest, unless the wheel had no chance before */
static inline __u64 due(const struct wheel *w, const struct timer *t)
{
	__u64 deadline = time_sum(t->nominal, t->jitter);

	return sum(ceil_to(deadline, w->tick), t->slack);
}

/* By when an event with that @deadline is ready, in any case */
static inline __u64 ready_by(const struct wheel *w, const struct timer *t,
			     __u64 deadline)
{
	__u64 time = sum(ceil_to(deadline, w->tick), t->slack);

	if (time < w->set_to)
		time = w->set_to;
	return time < t->since ? t->since : time;
}

static inline __u64 any_user_data(const struct wheel *w, const struct timer *t)
{
	return random_u64() / TIMERS * TIMERS + (t - w->timers);
}

static inline struct timer *find_timer(struct wheel *w, __u64 user_data,
				       __u64 id)
{
	struct timer *t = &w->timers[user_data % TIMERS];

	EXPECT_TRUE(t->id && t->id == id && t->user_data == user_data,
		    "%s: id %#llx user_data %#llx: twice, or after its end", w->name,
		    id, user_data);
	return t->id == id ? t : NULL;
}

static inline void forget(struct wheel *w, struct timer *t)
{
	t->id = 0;
	w->live--;
}

/* The periods of a timer that went by, read at a time between @from and @to */
static inline void check_overrun(const struct timer *t, __u64 deadline, __u64 overrun,
				 __u64 from, __u64 to)
{
	EXPECT_TRUE(overrun >= (from - deadline) / t->interval || from < deadline,
		    "%llu, deadline %llu interval %llu from %llu", overrun, deadline,
		    t->interval, from);
	EXPECT_TRUE(overrun <= (to > deadline ? (to - deadline) / t->interval : 0),
		    "%llu, deadline %llu interval %llu to %llu", overrun, deadline,
		    t->interval, to);
}

/* If there were more than an event can count, the next deadline says so. */
static inline __u64 full_overrun(const struct wheel *w, const struct timer *t,
				 const struct twheel_event *event)
{
	struct twheel_op op;

	if (event->overrun != ~0U)
		return event->overrun;
	EXPECT_EQ(query(w->fd, t->id, &op), 0);
	EXPECT_TRUE((op.deadline - t->nominal) % t->interval == 0 || op.deadline == KTIME_MAX,
		    "%s: deadline %llu, nominal %llu interval %llu", w->name, op.deadline,
		    t->nominal, t->interval);
	return (op.deadline - t->nominal) / t->interval - 1;
}

static inline void next_period(struct wheel *w, struct timer *t, __u64 overrun)
{
	w->overruns += overrun;
	t->nominal = time_sum(t->nominal, (overrun + 1) * t->interval);
}

/*
 * In the order of the ticks of their deadlines, as far as one was ready for certain before
 * another. (What was over when it was armed comes in between.)
 */
static inline void check_order(struct wheel *w, const struct timer *t,
			       const struct twheel_event *event)
{
	__u64 least = ceil_to(event->deadline, w->tick);

	if (event->deadline <= sum(t->since, PROMPT))
		return;
	EXPECT_TRUE(sum(ready_by(w, t, event->deadline), PROMPT) >= w->last,
		    "%s: deadline %llu slack %llu, another of %llu before", w->name,
		    event->deadline, t->slack, w->last);
	if (least > w->last)
		w->last = least;
}

/* An event that was read between @from and @to */
static inline void enter_event(struct wheel *w, const struct twheel_event *event,
			       __u64 from, __u64 to)
{
	struct timer *t = find_timer(w, event->user_data, event->id);

	if (!t)
		return;
	EXPECT_TRUE(to >= event->deadline || w->excused, "%s: early by %llu ns",
		    w->name, event->deadline - to);
	EXPECT_TRUE(event->deadline >= t->nominal &&
		    event->deadline <= time_sum(t->nominal, t->jitter),
		    "%s: deadline %llu, nominal %llu jitter %llu", w->name,
		    event->deadline, t->nominal, t->jitter);
	check_order(w, t, event);
	if (w->excused && !--w->excused)
		w->last = 0;
	w->delivered++;
	EXPECT_EQ(event->flags, t->interval ? TWHEEL_EVENT_PERIODIC : 0);
	if (t->interval) {
		__u64 overrun = full_overrun(w, t, event);

		check_overrun(t, event->deadline, overrun, from, to);
		t->since = to;
		next_period(w, t, overrun);
	} else {
		EXPECT_EQ(event->overrun, 0);
		forget(w, t);
	}
}

/* All that was due at @time has been read. */
static inline void check_none_lost(const struct wheel *w, __u64 time)
{
	unsigned int i;

	for (i = 0; i < TIMERS; i++) {
		const struct timer *t = &w->timers[i];
		__u64 most = time_sum(t->nominal, t->jitter);

		if (t->id)
			EXPECT_TRUE(sum(ready_by(w, t, most), PROMPT) > time,
				    "%s: id %#llx lost, due %llu now %llu interval %llu",
				    w->name, t->id, due(w, t), time, t->interval);
	}
}

/* Times of a wheel in count mode have neither slack nor jitter. */
static inline __u64 count_one(struct wheel *w, struct timer *t, __u64 time)
{
	__u64 overrun = 0;

	if (!t->id || due(w, t) > time)
		return 0;
	w->delivered++;
	if (t->interval) {
		overrun = (time - t->nominal) / t->interval;
		next_period(w, t, overrun);
	} else {
		forget(w, t);
	}
	return 1 + overrun;
}

/* Does anything change its count about now? */
static inline bool is_edge(const struct wheel *w, __u64 time)
{
	unsigned int i;

	for (i = 0; i < TIMERS; i++) {
		const struct timer *t = &w->timers[i];
		__u64 since = time - t->nominal;

		if (!t->id || due(w, t) > time + PROMPT)
			continue;
		if (due(w, t) + PROMPT > time)
			return true;
		if (t->interval && (since + PROMPT) / t->interval !=
				   since / t->interval)
			return true;
	}
	return false;
}

/* By the wheel's own count, which knows powers of two */
static inline __u64 late_expiries(const struct wheel *w)
{
	struct twheel_stats stats = wheel_stats(w->fd);
	unsigned int i = 64 - __builtin_clzll(LATE);
	__u64 late = 0;

	while (++i < TWHEEL_LATENESS_BUCKETS)
		late += stats.lateness[i];
	return late;
}

static inline void check_stats(const struct wheel *w)
{
	/* In that order: INFO does a piece of what is due, which STATS does not. */
	struct twheel_info info = wheel_info(w->fd);
	struct twheel_stats stats = wheel_stats(w->fd);
	unsigned int i;

	EXPECT_EQ(stats.armed, w->armed, "%s", w->name);
	EXPECT_EQ(stats.modified, w->modified, "%s", w->name);
	EXPECT_EQ(stats.cancelled, w->cancelled, "%s", w->name);
	EXPECT_EQ(stats.drained, w->drained, "%s", w->name);
	EXPECT_EQ(stats.delivered, w->delivered, "%s", w->name);
	EXPECT_EQ(stats.overruns, w->overruns, "%s", w->name);
	EXPECT_EQ(late_expiries(w), w->late, "%s: %llu ns at most", w->name,
		  stats.max_lateness);
	EXPECT_EQ(stats.expired, w->delivered + w->withdrawn + info.ready, "%s",
		  w->name);
	EXPECT_EQ(info.pending + info.ready, w->live, "%s", w->name);
	EXPECT_TRUE(info.pending ? info.next_expiry : !info.next_expiry, "%s: %llu",
		    w->name, info.next_expiry);
	if (info.ready)
		return;
	for (i = 0; i < TIMERS; i++)
		if (w->timers[i].id)
			EXPECT_TRUE(info.next_expiry <= due(w, &w->timers[i]),
				    "%s: next %llu, but due %llu", w->name,
				    info.next_expiry, due(w, &w->timers[i]));
}

#endif
