/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a wheel must hold and say, exactly, when one thread alone works on it and
 * no timer comes due by itself: each is armed for long after, or for a time that
 * is over, so that it is ready at once.
 */
#ifndef DISTURB_MODEL_H
#define DISTURB_MODEL_H

#include "disturb.h"

/* Timers of a wheel at a time, and ids that it may give out in its life */
#define TIMERS (1U << 14)
#define IDS (1U << 18)
#define NOBODY 0xffffffffU

/* Longer than this machine is up, so that no second period begins */
#define LONG_PERIOD (1ULL << 55)

struct timer {
	__u64 id;
	__u64 lo, hi;		/* its deadline without jitter is in between */
	__u64 interval, slack, jitter, user_data;
	__u32 state;
	__u32 place;		/* in &wheel.live */
	__u32 next, prev;	/* of those that are ready */
};

/* An id that was given out, and to which timer; those of earlier wheels count not */
struct known {
	__u64 id;
	__u32 wheel;
	__u32 timer;
};

struct wheel {
	int fd;
	__u32 event_size;
	__u32 nr;		/* which of all wheels */
	__u32 nr_live, nr_unused, nr_used;
	__u64 limit;
	__u32 first_ready, last_ready;
	__u64 ready, pending;
	__u64 armed, modified, cancelled, expired, delivered, drained, refused;
	__u64 given, last_given[64];
	__u32 live[TIMERS], unused[TIMERS];
	struct timer timers[TIMERS];
	struct known known[IDS];
};

static bool tight;		/* all wheels together may hold little memory */
static __u32 wheels_made;
static char doing[160];		/* for who has to find a mistake */

#define WRONG(...) ({							\
	if (tap_complain()) {						\
		char wrong_what[340];					\
									\
		snprintf(wrong_what, sizeof(wrong_what), __VA_ARGS__);	\
		tap_diag("%s: %s", doing, wrong_what);			\
	} })

static struct known *known_of(struct wheel *w, __u64 id)
{
	__u64 at = id * 0x9e3779b97f4a7c15ULL >> 32;
	struct known *k;

	do {
		k = &w->known[at++ % IDS];
	} while (k->wheel == w->nr && k->id != id);
	return k;
}

static struct timer *timer_by_id(struct wheel *w, __u64 id)
{
	struct known *k = known_of(w, id);

	return k->wheel == w->nr && k->timer != NOBODY ? &w->timers[k->timer] :
							 NULL;
}

static void set_up(struct wheel *w, __u64 limit)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = w->event_size,
		.limit = limit,
	};

	if (wheel_ioctl(w->fd, TWHEEL_IOC_SETUP, &setup))
		tap_bail("setup with limit %llu failed", limit);
}

/* A wheel that is not set up if no limit is given; else each second has short events */
static void model_open(struct wheel *w, __u64 limit)
{
	memset(w, 0, offsetof(struct wheel, live));
	w->fd = wheel_open(O_NONBLOCK);
	w->nr = ++wheels_made;
	w->event_size = limit && w->nr % 2 ? TWHEEL_EVENT_SIZE_ID :
					     TWHEEL_EVENT_SIZE_FULL;
	if (limit)
		set_up(w, limit);
	w->limit = wheel_info(w->fd).limit;
	w->first_ready = NOBODY;
	w->last_ready = NOBODY;
}

/* Can it take so many more without the model running out? */
static bool model_has_room(const struct wheel *w, __u32 nr)
{
	return w->nr_live + nr <= TIMERS && w->given + nr < IDS / 2;
}

static void ready_add(struct wheel *w, struct timer *t)
{
	__u32 i = t - w->timers;

	t->prev = w->last_ready;
	t->next = NOBODY;
	if (t->prev == NOBODY)
		w->first_ready = i;
	else
		w->timers[t->prev].next = i;
	w->last_ready = i;
}

static void ready_del(struct wheel *w, struct timer *t)
{
	if (t->prev == NOBODY)
		w->first_ready = t->next;
	else
		w->timers[t->prev].next = t->next;
	if (t->next == NOBODY)
		w->last_ready = t->prev;
	else
		w->timers[t->next].prev = t->prev;
}

static void set_state(struct wheel *w, struct timer *t, __u32 state)
{
	if (t->state == TWHEEL_STATE_READY) {
		ready_del(w, t);
		w->ready--;
	} else if (t->state == TWHEEL_STATE_PENDING) {
		w->pending--;
	}
	t->state = state;
	if (state == TWHEEL_STATE_READY) {
		ready_add(w, t);
		w->ready++;
		w->expired++;
	} else if (state == TWHEEL_STATE_PENDING) {
		w->pending++;
	}
}

static __u64 time_sum(__u64 a, __u64 b)
{
	return a < KTIME_MAX - b ? a + b : KTIME_MAX;
}

/* What @op said that the timer be, in a call between these two times */
static void set_times(struct wheel *w, struct timer *t, const struct twheel_op *op,
		      __u64 before, __u64 after)
{
	bool abs = op->flags & TWHEEL_ABS;

	t->lo = abs ? op->deadline : time_sum(before, op->deadline);
	t->hi = abs ? op->deadline : time_sum(after, op->deadline);
	t->interval = op->interval;
	t->slack = op->slack;
	t->jitter = op->jitter;
	t->user_data = op->user_data;
	set_state(w, t, t->hi + t->jitter <= before || !op->deadline ?
		  TWHEEL_STATE_READY : TWHEEL_STATE_PENDING);
}

static void timer_new(struct wheel *w, const struct twheel_op *op,
		      const struct twheel_op *out, __u64 before, __u64 after)
{
	struct known *k = known_of(w, out->id);
	__u32 i = w->nr_unused ? w->unused[--w->nr_unused] : w->nr_used++;
	struct timer *t = &w->timers[i];

	if (!out->id || k->wheel == w->nr)
		WRONG("the id %llx of a new timer was given out before",
		      out->id);
	*k = (struct known){ out->id, w->nr, i };
	w->last_given[w->given++ % ARRAY_SIZE(w->last_given)] = out->id;
	*t = (struct timer){ .id = out->id, .place = w->nr_live };
	w->live[w->nr_live++] = i;
	w->armed++;
	set_times(w, t, op, before, after);
}

static void timer_end(struct wheel *w, struct timer *t)
{
	set_state(w, t, TWHEEL_STATE_NONE);
	known_of(w, t->id)->timer = NOBODY;
	w->live[t->place] = w->live[--w->nr_live];
	w->timers[w->live[t->place]].place = t->place;
	w->unused[w->nr_unused++] = t - w->timers;
}

static bool within(__u64 value, __u64 lo, __u64 hi)
{
	return value >= lo && value <= hi;
}

/* What QUERY and DRAIN say of a timer, in so many bytes */
static void check_told(const struct timer *t, const struct twheel_op *op,
		       __u32 op_size)
{
	__u64 jitter = t->interval ? t->jitter : 0;
	__u64 hi = t->interval ? t->hi : time_sum(t->hi, t->jitter);
	bool ok = op->id == t->id && op->state == t->state;

	if (op_size >= TWHEEL_OP_SIZE_ONCE)
		ok &= within(op->deadline, t->lo, hi) &&
		      op->user_data == t->user_data;
	if (op_size >= TWHEEL_OP_SIZE_FULL)
		ok &= op->interval == t->interval && op->slack <= t->slack &&
		      op->jitter == jitter && !op->__reserved;
	if (!ok)
		WRONG("told %llx %u %llu %llu %llu %llu %llx; not %u %llu-%llu %llu %llu %llu %llx",
		      op->id, op->state, op->deadline, op->interval, op->slack,
		      op->jitter, op->user_data, t->state, t->lo, hi,
		      t->interval, t->slack, jitter, t->user_data);
}

/* Does it take memory? (A second piece when a timer becomes periodic) */
static bool takes_memory(const struct timer *t, const struct twheel_op *op)
{
	return op->opcode == TWHEEL_OP_ARM ||
	       (op->opcode == TWHEEL_OP_MODIFY && op->interval && !t->interval);
}

/*
 * What the operation must give, when it is done now; nothing is wrong in itself. Where
 * memory is tight, @got says whether there was some.
 */
static long want_of(struct wheel *w, const struct twheel_op *op, long got)
{
	const struct timer *t = timer_by_id(w, op->id);
	bool arm = op->opcode == TWHEEL_OP_ARM;

	if (!arm && !t)
		return -ENOENT;
	if ((!arm || w->nr_live < w->limit) &&
	    (!tight || got != -ENOSPC || !takes_memory(t, op)))
		return 0;
	w->refused++;
	return -ENOSPC;
}

/* It was done as wanted: what is different now. Gives the state that it found. */
static __u32 do_op(struct wheel *w, const struct twheel_op *op, __u32 op_size,
		   const struct twheel_op *out, __u64 before, __u64 after)
{
	struct timer *t = timer_by_id(w, op->id);
	__u32 state = TWHEEL_STATE_NONE;

	if (op->opcode != TWHEEL_OP_ARM)
		state = t->state;
	switch (op->opcode) {
	case TWHEEL_OP_ARM:
		timer_new(w, op, out, before, after);
		break;
	case TWHEEL_OP_MODIFY:
		/* One that was ready and is ready again is the last of them. */
		set_state(w, t, TWHEEL_STATE_NONE);
		set_times(w, t, op, before, after);
		w->modified++;
		break;
	case TWHEEL_OP_CANCEL:
		timer_end(w, t);
		w->cancelled++;
		break;
	case TWHEEL_OP_QUERY:
		check_told(t, out, op_size);
		break;
	}
	return state;
}

/* @op was done, in memory as @out: was it as it had to be? */
static void model_done(struct wheel *w, const struct twheel_op *op, __u32 op_size,
		       const struct twheel_op *out, __u64 before, __u64 after)
{
	struct twheel_op want = *op;
	long error = op_error(op, op_size);
	long result = error ? error : want_of(w, op, out->result);

	if (out->result != result) {
		WRONG("opcode %u id %llx gave %d instead of %ld; %u timers, limit %llu",
		      op->opcode, op->id, out->result, result, w->nr_live,
		      w->limit);
		tap_bail("the model can't go on from here: %s", doing);
	}
	want.result = result;
	want.state = TWHEEL_STATE_NONE;
	if (!result) {
		want.state = do_op(w, op, op_size, out, before, after);
		if (op->opcode == TWHEEL_OP_ARM)
			want.id = out->id;
	}
	if (!result && op->opcode == TWHEEL_OP_QUERY)
		return;
	if (memcmp(&want, out, sizeof(want)))
		WRONG("opcode %u result %ld: state %u not %u, id %llx not %llx, or input changed",
		      op->opcode, result, out->state, want.state, out->id, want.id);
}

/* An event was read: it has to be that of the first that is ready. */
static void model_event(struct wheel *w, const struct twheel_event *e, __u64 after)
{
	struct timer *t = &w->timers[w->first_ready];
	__u32 flags = t->interval ? TWHEEL_EVENT_PERIODIC : 0;
	bool ok = e->id == t->id && e->user_data == t->user_data;

	if (w->event_size == TWHEEL_EVENT_SIZE_FULL)
		ok &= within(e->deadline, t->lo, time_sum(t->hi, t->jitter)) &&
		      e->deadline <= after && !e->overrun && e->flags == flags;
	if (!ok)
		WRONG("event %llx: %llx %llu %u %x; not %llx: %llx %llu-%llu %x",
		      e->id, e->user_data, e->deadline, e->overrun, e->flags, t->id,
		      t->user_data, t->lo, time_sum(t->hi, t->jitter), flags);
	w->delivered++;
	if (!t->interval) {
		timer_end(w, t);
		return;
	}
	t->lo = time_sum(t->lo, t->interval);
	t->hi = time_sum(t->hi, t->interval);
	set_state(w, t, TWHEEL_STATE_PENDING);
}

static void model_drained(struct wheel *w, const struct twheel_op *op, __u32 op_size)
{
	struct timer *t = timer_by_id(w, op->id);

	if (op->opcode != TWHEEL_OP_ARM || op->flags != TWHEEL_ABS || op->result)
		WRONG("drained: opcode %u flags %x result %d", op->opcode,
		      op->flags, op->result);
	if (!t || t->state != TWHEEL_STATE_PENDING) {
		WRONG("drained: id %llx is no pending timer", op->id);
		return;
	}
	check_told(t, op, op_size);
	timer_end(w, t);
	w->drained++;
}

static void check_number(const char *name, __u64 is, __u64 want)
{
	if (is != want)
		WRONG("%s is %llu, not %llu", name, is, want);
}

/* What the wheel says of itself */
static void model_check(struct wheel *w)
{
	struct twheel_info info = wheel_info(w->fd);
	struct twheel_stats stats = wheel_stats(w->fd);

	check_number("pending", info.pending, w->pending);
	check_number("ready", info.ready, w->ready);
	check_number("limit", info.limit, w->limit);
	check_number("armed", stats.armed, w->armed);
	check_number("modified", stats.modified, w->modified);
	check_number("cancelled", stats.cancelled, w->cancelled);
	check_number("delivered", stats.delivered, w->delivered);
	check_number("drained", stats.drained, w->drained);
	check_number("refused", stats.refused, w->refused);
	check_number("expired", stats.expired, w->expired);
	if (readable(w->fd, 0) != !!w->ready)
		WRONG("poll says %d with %llu ready", !w->ready, w->ready);
}

#endif
