/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of what a wheel says of itself, by INFO, STATS and poll, against its model: after
 * each call, if one thread alone makes these, and in the end, when all is taken out.
 */
#ifndef MODEL_WHEEL_H
#define MODEL_WHEEL_H

#include "model_answers.h"

static inline void check_number(const char *name, __u64 is, __u64 least, __u64 most)
{
	if (is < least || is > most)
		broken("%s is %llu, not from %llu to %llu", name, is, least, most);
}

/* The counters whose values are known whenever nobody makes a call */
static inline void check_counters(struct model *m, const struct twheel_stats *s)
{
	bool whole = m->event_size == sizeof(struct twheel_event);
	__u64 lateness = 0;
	int i;

	check_number("armed", s->armed, m->armed, m->armed);
	check_number("modified", s->modified, m->modified, m->modified);
	check_number("cancelled", s->cancelled, m->cancelled, m->cancelled);
	check_number("drained", s->drained, m->drained, m->drained);
	check_number("refused", s->refused, m->refused, m->refused);
	if (m->flags & TWHEEL_SETUP_COUNT)
		check_number("delivered + overruns", s->delivered + s->overruns, m->counted,
			     m->counted);
	else
		check_number("delivered", s->delivered, m->events, m->events);
	if (whole)
		check_number("overruns", s->overruns, m->overruns,
			     m->untold ? ~0ULL : m->overruns);
	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++)
		lateness += s->lateness[i];
	check_number("expiries by lateness", lateness, s->expired, s->expired);
}

/* Alone: how many timers are ready for certain, how many may be; when the others begin to be */
static inline void count_ready(struct model *m, __u64 time, __u32 *least, __u32 *most,
			       __u64 *first)
{
	__u32 i, n = nr_timers(m);

	*least = 0;
	*most = 0;
	*first = ~0ULL;
	for (i = 0; i < n; i++) {
		struct timer *t = &m->timers[i];
		const struct version *v = &t->versions[t->current];

		if (!t->id || t->ended)
			continue;
		*least += t->ready;
		if (may_be_ready(m, t, v, time))
			*most += 1;
		else if (ready_by(m, t) < *first)
			*first = ready_by(m, t);
	}
}

/**
 * model_check() - does the wheel say what it must? (Alone, and not in count mode.)
 * @m: its model
 * @fd: the wheel
 */
static inline void model_check(struct model *m, int fd)
{
	struct twheel_info info = wheel_info(fd);
	bool polled = readable(fd, 0);
	struct twheel_stats s = wheel_stats(fd);
	__u64 ready = wheel_info(fd).ready, first;
	__u32 least, most;

	count_ready(m, now(m->clock), &least, &most, &first);
	check_number("pending + ready", info.pending + info.ready, m->live, m->live);
	check_number("ready", info.ready, least, most);
	check_number("limit", info.limit, m->limit, m->limit);
	check_number("poll", polled, !!info.ready, !!ready);
	check_number("expired", s.expired, m->events + m->withdrawn + info.ready,
		     m->events + m->withdrawn + ready);
	check_number("next expiry", info.next_expiry, !!info.pending,
		     info.pending ? first : 0);
	check_counters(m, &s);
}

/**
 * model_query_all() - is each timer there, or gone, and as it should be? (Alone.)
 * @m: the model
 * @fd: the wheel
 */
static inline void model_query_all(struct model *m, int fd)
{
	static struct twheel_op ops[256];
	static struct attempt tries[256];
	__u32 at, i, n;

	for (at = 0; at < m->nr && !halted(); at += n) {
		n = m->nr - at < ARRAY_SIZE(ops) ? m->nr - at : ARRAY_SIZE(ops);
		for (i = 0; i < n; i++) {
			ops[i] = op_for(TWHEEL_OP_QUERY, m->timers[at + i].id);
			model_try(m, &m->timers[at + i], sizeof(ops[i]), &tries[i], &ops[i]);
			if (!ops[i].id)
				tries[i].error = -ENOENT;
		}
		if (submit(fd, ops, n) != n)
			broken("QUERY of %u timers is not done", n);
		for (i = 0; i < n; i++)
			model_result(m, &tries[i], &ops[i]);
	}
}

/**
 * model_mark_due() - which timers are to be ready by now? (Alone.)
 * @m: the model
 *
 * Their events are waited for: @m->nr_awaited says how many are.
 */
static inline void model_mark_due(struct model *m)
{
	__u64 time = now(m->clock);
	__u32 i;

	for (i = 0; i < m->nr; i++) {
		struct timer *t = &m->timers[i];

		if (!t->id || t->ended || t->awaited || ready_by(m, t) > time)
			continue;
		t->awaited = true;
		m->nr_awaited++;
	}
}

/**
 * model_clock_set() - the wheel's clock was set. (Alone.)
 * @m: the model
 * @shown: the most that it may have shown before: what was due by then may be ready
 */
static inline void model_clock_set(struct model *m, __u64 shown)
{
	__u32 i;

	/* When it was set back, what is ready comes in turn, whatever its ticks. */
	m->clock_set |= shown > now(m->clock);
	if (m->shown < shown)
		m->shown = shown;
	for (i = 0; i < m->nr; i++)
		if (tick_of(m, m->timers[i].earliest) <= shown)
			m->timers[i].maybe_due = true;
}

/* An operation of the model's own */
static inline long model_single(struct model *m, int fd, struct timer *t, struct twheel_op op)
{
	struct attempt try;

	model_try(m, t, sizeof(op), &try, &op);
	op.result = submit(fd, &op, 1) == 1 ? op.result : -EIO;
	model_result(m, &try, &op);
	return op.result;
}

static inline void model_cancel(struct model *m, int fd, struct timer *t)
{
	if (t->id && !t->ended)
		model_single(m, fd, t, op_for(TWHEEL_OP_CANCEL, t->id));
}

/* Take out what can be read; what goes on would come back before it can be drained. */
static inline bool read_out(struct model *m, int fd)
{
	static char buf[64 * sizeof(struct twheel_event)];
	struct twheel_event event = { 0 };
	struct reading r = reading_begin(m);
	struct timer *goes_on[128];
	long n = read(fd, buf, sizeof(buf)), i, k = 0;
	struct version *v;

	if (n <= 0 || m->flags & TWHEEL_SETUP_COUNT) {
		model_read(m, &r, buf, n);
		return n > 0;
	}
	for (i = 0; i < n; i += m->event_size) {
		memcpy(&event, buf + i, m->event_size);
		if (tell_event(m, &r, &event))
			goes_on[k++] = timer_of(m, event.user_data, &v);
	}
	for (i = 0; i < k; i++)
		model_cancel(m, fd, goes_on[i]);
	return true;
}

static inline bool drain_out(struct model *m, int fd)
{
	static struct twheel_op ops[256];
	__u64 begin = moment(m);
	long n = drain(fd, ops, ARRAY_SIZE(ops)), i;

	if (n < 0)
		broken("drain gave %ld", n);
	for (i = 0; i < n; i++)
		model_drained(m, &ops[i], sizeof(ops[i]), begin);
	return n > 0;
}

/* What is due becomes ready, and what is ready can be polled. */
static inline void settle(struct model *m, int fd)
{
	__u64 due = now(m->clock);

	/* (Of 0, which is none, this makes what comes after all.) */
	if (!WAIT_FOR(wheel_info(fd).next_expiry - 1 >= due))
		broken("a timer due at %llu is not ready at %llu", wheel_info(fd).next_expiry,
		       now(m->clock));
	if (wheel_info(fd).ready && !readable(fd, 0))
		broken("timers are ready, and poll does not say so");
}

static inline int by_number(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static inline void check_ids(const struct model *m)
{
	static __u64 ids[MODEL_TIMERS];
	__u32 i, n = 0;

	for (i = 0; i < m->nr; i++)
		if (m->timers[i].id)
			ids[n++] = m->timers[i].id;
	qsort(ids, n, sizeof(ids[0]), by_number);
	for (i = 1; i < n; i++)
		if (ids[i] == ids[i - 1])
			broken("id %llx was given out twice", ids[i]);
}

/* All is over: was the timer what was promised? */
static inline void check_timer(const struct model *m, const struct timer *t)
{
	__u32 ends = t->reads + t->cancels + t->drains;
	__u32 begun = t->versions[0].state == VERSION_GOOD;
	int i;

	for (i = 0; i < VERSIONS; i++)
		if (t->versions[i].seen && t->versions[i].state != VERSION_GOOD)
			broken("version %d of timer %llx was seen, but failed", i, t->id);
	if (t->seen && t->id != t->seen)
		broken("an event of timer %llx had id %llx", t->id, t->seen);
	if (ends > begun)
		broken("timer %llx: %u armed, %u read, %u cancelled, %u drained", t->id, begun,
		       t->reads, t->cancels, t->drains);
	if (m->flags & TWHEEL_SETUP_COUNT)
		return;
	if (ends < begun)
		broken("timer %llx is lost: neither read, cancelled nor drained", t->id);
	if (t->missed && t->missed < t->ending)
		broken("timer %llx was not found at moment %llu, but ended at %llu or later",
		       t->id, t->missed, t->ending);
}

/* The wheel goes on working after all that: a wait is ended by a timer. */
static inline void check_lively(struct model *m, int fd)
{
	long ret;

	if (m->nr >= MODEL_TIMERS)
		return;
	ret = model_single(m, fd, NULL, op_arm(0, 2 * MSEC, 0));
	if (ret)
		broken("an empty wheel gives %ld", ret);
	else if (!readable(fd, PATIENCE_MS))
		broken("nothing ready %d ms after a deadline", PATIENCE_MS);
	read_out(m, fd);
}

/**
 * model_finish() - nobody else uses the wheel: take all out, and count
 * @m: its model
 * @fd: the wheel, which stays open
 */
static inline void model_finish(struct model *m, int fd)
{
	bool counts = m->flags & TWHEEL_SETUP_COUNT;
	struct twheel_stats s;
	struct twheel_info info;
	__u32 i;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	settle(m, fd);
	if (m->alone && !counts)
		model_mark_due(m);
	/* In count mode no event tells which timers go on: end all by their ids. */
	for (i = 0; counts && i < m->nr; i++)
		model_cancel(m, fd, &m->timers[i]);
	do {
		while (read_out(m, fd) || drain_out(m, fd))
			;
		info = wheel_info(fd);
	} while ((info.pending || info.ready) && !halted());
	if (readable(fd, 0))
		broken("poll says that an empty wheel is ready");
	check_lively(m, fd);
	check_ids(m);
	for (i = 0; i < m->nr_drained && !halted(); i++) {
		struct timer *t = timer_by_id(m, m->ids[i].id);

		if (t)
			drain_timer(m, t, &m->ids[i]);
	}
	s = wheel_stats(fd);
	check_counters(m, &s);
	check_number("expired", s.expired, s.delivered + m->withdrawn, s.delivered + m->withdrawn);
	if (counts && !m->periodic)
		check_number("delivered", s.delivered, m->armed - m->cancelled - m->drained,
			     m->armed - m->cancelled - m->drained);
	for (i = 0; i < m->nr && !halted(); i++)
		check_timer(m, &m->timers[i]);
}

#endif
