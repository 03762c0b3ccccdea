/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a wheel must hold and say, by what was done to it: the promises of
 * linux/twheel.h, as checks of all that it tells.
 *
 * Calls of different threads come in no known order. So each has two moments, one
 * before and one after it; a call comes before another for certain when its second
 * moment does not come after the other's first. On a wheel that one thread has for
 * itself (@alone) the order is known, and with it what each operation gives, in which
 * order the events come, and all that the wheel counts, after each call.
 */
#ifndef MODEL_H
#define MODEL_H

#include "device.h"

/* Most timers of a model, those that are gone included, and settings of each */
#ifndef MODEL_TIMERS
#define MODEL_TIMERS 4000
#endif
#define VERSIONS 4

/*
 * broken() says that a promise is broken, and halted() that the test has failed. A program
 * that has its own functions of these names defines MODEL_BROKEN.
 */
#ifndef MODEL_BROKEN
static char model_doing[200];	/* for who has to find the mistake */

#define broken(format, ...) ({						\
	if (tap_complain())						\
		tap_diag("%s: " format, model_doing, ##__VA_ARGS__); })
#define halted() (!!__atomic_load_n(&tap_bad, __ATOMIC_RELAXED))
#endif

/*
 * User data of a model's timers: a mark, the wheel's number, the version, and the
 * timer. Whatever has another mark must never come out of such a wheel.
 */
#define MARK 0xA17ULL
#define SPOILT 0xBAD0000000000000ULL

enum { VERSION_NONE, VERSION_TRIED, VERSION_GOOD, VERSION_FAILED };

/**
 * struct version - what a timer was armed or modified with
 * @state: VERSION_*
 * @seen: an event, a query or DRAIN showed it
 * @flags: as in the operation, also those that follow
 * @before: time of the wheel's clock before the call
 * @after: that after the call, or 0
 * @begin: moment before the call
 * @done: moment after the call, or 0
 */
struct version {
	__u32 state, seen, flags;
	__u64 deadline, interval, slack, jitter;
	__u64 before, after;
	__u64 begin, done;
};

/**
 * struct timer - what is known of a timer
 * @id: as handed out, or 0
 * @seen: as an event had it, or 0
 * @nr_versions: how often it was armed or modified
 * @reads: how often it ended so; also those that follow
 * @ending: moment before the call that ended it
 * @ended: moment after that call, or 0 while the timer lives
 * @missed: first moment at which there was no such timer
 * @current: alone: which version it has
 * @earliest: alone: its deadline is not before this; of a periodic one, that without jitter
 * @latest: alone: and not after this
 * @at_once: alone: which of those it is that were due when they were armed, or 0
 * @ready: alone: it must be ready
 * @maybe_due: alone: it may have expired, whatever the clock shows now
 * @awaited: alone: its event is waited for
 * @later: alone: not in its first period
 */
struct timer {
	__u64 id, seen;
	__u32 nr_versions;
	__u32 reads, cancels, drains;
	__u64 ending, ended, missed;
	__u32 current;
	bool ready, maybe_due, awaited, later;
	__u64 earliest, latest, at_once;
	struct version versions[VERSIONS];
};

/* A drained timer of which only the id was given, and the moments around that */
struct drained {
	__u64 id, begin, end;
};

/**
 * struct model - a wheel as it should be
 * @clock: of clock_gettime(2)
 * @flags: of its set-up, also what follows
 * @number: which of the program's wheels it is, below 16
 * @alone: one thread makes all calls, one after the other
 * @tight: the user's limit may refuse timers, too
 * @starved: there may be no memory for a timer
 * @clock_set: its clock was set back
 * @nr: how many timers there were
 * @periodic: how many of them were periodic, ever
 * @untold: an event had more overruns than it can tell
 * @live: timers that are held
 * @nr_awaited: of them, those whose events are waited for
 * @armed: what the wheel's counter must say, also those that follow
 * @withdrawn: expiries that nobody read, as the timer was cancelled or modified
 * @counted: sum of what was read in count mode
 * @moments: counts beginnings and ends of calls
 * @at_once: timers that were due when they were armed
 * @read_at_once: the last of them that was read
 * @read_tick: the last tick of which an event was read
 * @shown: the most that its clock has shown, before it was set
 * @nr_drained: length of @ids
 */
struct model {
	__u32 clock, flags, event_size, number;
	__u64 tick, limit;
	bool alone, tight, starved, clock_set;
	__u32 nr, periodic, untold, live, nr_awaited;
	__u64 armed, modified, cancelled, drained, refused, events, overruns;
	__u64 withdrawn, counted, moments;
	__u64 at_once, read_at_once, read_tick, shown;
	__u32 nr_drained;
	struct drained ids[MODEL_TIMERS];
	struct timer timers[MODEL_TIMERS];
};

/**
 * struct attempt - one operation while it is done
 * @timer: of the model, or NULL if it is of none
 * @version: what it shall become
 * @begin: the moment before
 * @op_size: how much of the operation there is
 * @error: that it must give, or 0
 */
struct attempt {
	struct timer *timer;
	struct version *version;
	__u64 begin;
	__u32 op_size;
	long error;
};

/* The lock of what several threads may change */
#define READ_ONCE(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define WRITE_ONCE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)
#define bump(field) __atomic_add_fetch(&(field), 1, __ATOMIC_RELAXED)

static inline __u64 moment(struct model *m)
{
	return __atomic_add_fetch(&m->moments, 1, __ATOMIC_SEQ_CST);
}

static inline __u32 nr_timers(const struct model *m)
{
	__u32 nr = READ_ONCE(m->nr);

	return nr < MODEL_TIMERS ? nr : MODEL_TIMERS;
}

static inline __u64 time_sum(__u64 a, __u64 b)
{
	return a < KTIME_MAX - b ? a + b : KTIME_MAX;
}

/* The first tick at which what is due then can be ready */
static inline __u64 tick_of(const struct model *m, __u64 time)
{
	return (time + m->tick - 1) / m->tick * m->tick;
}

/* Alone: when a timer is ready at the latest, if the machine is quick enough */
static inline __u64 ready_by(const struct model *m, const struct timer *t)
{
	const struct version *v = &t->versions[t->current];
	__u64 due = time_sum(t->latest, v->interval ? v->jitter : 0);

	return time_sum(due < KTIME_MAX - m->tick ? tick_of(m, due) : KTIME_MAX, v->slack);
}

/**
 * model_begin() - a new wheel, which is set up as it shall be
 * @m: its model, which may have been of another one
 * @fd: the wheel
 * @number: which of the program's wheels it is
 * @alone: will one thread alone work on it?
 */
static inline void model_begin(struct model *m, int fd, __u32 number, bool alone)
{
	struct twheel_info info = wheel_info(fd);
	__u32 used = nr_timers(m);

	memset(m, 0, offsetof(struct model, ids));
	memset(m->timers, 0, used * sizeof(m->timers[0]));
	m->number = number;
	m->alone = alone;
	m->clock = info.clock - TWHEEL_CLOCK_REALTIME;
	m->flags = info.flags;
	m->event_size = info.event_size;
	m->tick = info.tick;
	m->limit = info.limit;
}

static inline bool has_times(const struct twheel_op *op)
{
	return op->opcode == TWHEEL_OP_ARM || op->opcode == TWHEEL_OP_MODIFY;
}

/**
 * model_op_error() - is an operation malformed?
 * @op: the operation, whose end that it is too short for is 0
 * @op_size: its length
 *
 * Return: -EINVAL, or 0.
 */
static inline long model_op_error(const struct twheel_op *op, __u32 op_size)
{
	bool bad = !op->opcode || op->opcode > TWHEEL_OP_QUERY;

	if (has_times(op))
		bad |= op->flags & ~TWHEEL_ABS || op_size < TWHEEL_OP_SIZE_ONCE ||
		       op->__reserved || op->deadline > KTIME_MAX ||
		       op->interval > KTIME_MAX || op->slack > KTIME_MAX ||
		       op->jitter > KTIME_MAX ||
		       (op->interval && op->jitter > op->interval);
	else
		bad |= op->flags;
	if (op->opcode == TWHEEL_OP_CANCEL)
		bad |= op->deadline || op->user_data || op->interval || op->slack ||
		       op->jitter || op->__reserved;
	return bad ? -EINVAL : 0;
}

static inline struct timer *new_timer(struct model *m)
{
	__u32 i = __atomic_fetch_add(&m->nr, 1, __ATOMIC_RELAXED);

	if (i < MODEL_TIMERS)
		return &m->timers[i];
	WRITE_ONCE(m->nr, MODEL_TIMERS);
	return NULL;
}

/* No more can be known of a timer than that it is there, or of none that it is not. */
static inline void try_query(struct attempt *try, struct twheel_op *op)
{
	*op = op_for(TWHEEL_OP_QUERY, try->timer ? op->id : 0);
	try->error = try->timer ? 0 : -ENOENT;
}

static inline void try_version(struct model *m, struct attempt *try, struct twheel_op *op)
{
	struct timer *t = try->timer;
	__u32 nr = __atomic_fetch_add(&t->nr_versions, 1, __ATOMIC_RELAXED);
	struct version *v = &t->versions[nr];

	if (nr >= VERSIONS)
		return try_query(try, op);
	v->flags = op->flags;
	v->deadline = op->deadline;
	v->interval = op->interval;
	v->slack = op->slack;
	v->jitter = op->jitter;
	v->before = now(m->clock);
	v->begin = try->begin;
	try->version = v;
	op->user_data = MARK << 52 | (__u64)m->number << 48 | (__u64)nr << 32 |
			(__u32)(t - m->timers);
	if (v->interval)
		bump(m->periodic);
	__atomic_store_n(&v->state, VERSION_TRIED, __ATOMIC_RELEASE);
}

/**
 * model_try() - an operation is to be done
 * @m: the model
 * @t: its timer; NULL to arm one, or for one of none
 * @op_size: how much of the operation there is
 * @try: what is remembered of it
 * @op: the operation. Its user data is filled in; and where the model has no room for
 *	what it makes, another one takes its place
 */
static inline void model_try(struct model *m, struct timer *t, __u32 op_size,
			     struct attempt *try, struct twheel_op *op)
{
	*try = (struct attempt){ .timer = t, .op_size = op_size, .begin = moment(m) };
	if (has_times(op))
		op->user_data = SPOILT;
	memset((char *)op + op_size, 0, sizeof(*op) - op_size);
	try->error = model_op_error(op, op_size);
	if (try->error)
		return;
	if (op->opcode == TWHEEL_OP_ARM)
		try->timer = new_timer(m);
	if (op->opcode == TWHEEL_OP_ARM && !try->timer)
		try_query(try, op);
	else if (!try->timer)
		try->error = -ENOENT;
	else if (has_times(op))
		try_version(m, try, op);
}

static inline struct timer *timer_of(struct model *m, __u64 data, struct version **v)
{
	__u32 version = data >> 32 & 0xffff;
	__u32 i = data;

	if (data >> 48 != (MARK << 4 | m->number) || version >= VERSIONS ||
	    i >= nr_timers(m))
		return NULL;
	*v = &m->timers[i].versions[version];
	return &m->timers[i];
}

/* The deadline that a version can have at least */
static inline __u64 least_deadline(const struct version *v)
{
	return time_sum(v->deadline, v->flags & TWHEEL_ABS ? 0 : v->before);
}

/* At most, in its first period; nothing is known of those after it. */
static inline __u64 most_deadline(const struct model *m, const struct version *v)
{
	__u64 after = READ_ONCE(v->after) ?: now(m->clock);
	__u64 most = time_sum(v->deadline, v->flags & TWHEEL_ABS ? 0 : after);

	return v->interval ? KTIME_MAX : time_sum(most, v->jitter);
}

/* Was it due when it was armed? What is due later waits for a tick. */
static inline bool maybe_at_once(const struct timer *t, const struct version *v)
{
	__u64 after = READ_ONCE(v->after);

	return !t->later && (!after || least_deadline(v) <= after);
}

/* Can it be ready at that time? */
static inline bool may_be_ready(const struct model *m, const struct timer *t,
				const struct version *v, __u64 time)
{
	__u64 least = m->alone ? t->earliest : least_deadline(v);

	if (t->ready || t->maybe_due)
		return true;
	return (maybe_at_once(t, v) ? least : tick_of(m, least)) <= time;
}

#endif
