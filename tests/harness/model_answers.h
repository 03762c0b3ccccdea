/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel may answer: checks of the results of operations, of events that are read,
 * and of timers that are drained, against the model of their wheel.
 */
#ifndef MODEL_ANSWERS_H
#define MODEL_ANSWERS_H

#include "model.h"

static inline void not_awaited(struct model *m, struct timer *t)
{
	if (!m->alone || !t->awaited)
		return;
	m->nr_awaited--;
	t->awaited = false;
}

/* The timer is gone, by a call that began then. */
static inline void end_timer(struct model *m, struct timer *t, __u64 begin, __u64 end)
{
	__atomic_sub_fetch(&m->live, 1, __ATOMIC_RELAXED);
	not_awaited(m, t);
	t->ending = begin;
	__atomic_store_n(&t->ended, end, __ATOMIC_SEQ_CST);
}

/* Who found it there in a call that began then? */
static inline void check_alive(const struct timer *t, __u64 begin, const char *how)
{
	__u64 ended = __atomic_load_n(&t->ended, __ATOMIC_SEQ_CST);

	if (ended && ended <= begin)
		broken("%s at %llu: timer %llx was gone at %llu: read %u, cancelled %u, drained %u",
		       how, begin, t->id, ended, t->reads, t->cancels, t->drains);
}

/* Was this version replaced before a call began that showed it? */
static inline void check_version(struct timer *t, struct version *v, __u64 begin,
				 const char *how)
{
	__u64 done = __atomic_load_n(&v->done, __ATOMIC_SEQ_CST);
	__u32 state = READ_ONCE(v->state);
	int i;

	WRITE_ONCE(v->seen, 1);
	if (state == VERSION_NONE || state == VERSION_FAILED)
		broken("%s tells of version %d of timer %llx, which never was", how,
		       (int)(v - t->versions), t->id);
	for (i = 0; done && i < VERSIONS; i++) {
		struct version *w = &t->versions[i];

		if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == VERSION_GOOD &&
		    w->begin >= done && w->done <= begin)
			broken("%s at %llu: version %d of timer %llx was replaced by %d at %llu",
			       how, begin, (int)(v - t->versions), t->id, i, w->done);
	}
}

/*
 * A deadline that the wheel tells, of a periodic timer put off by @off at most. Alone,
 * more is known of it from now on.
 */
static inline void check_deadline(struct model *m, struct timer *t, const struct version *v,
				  __u64 deadline, __u64 off, const char *how)
{
	__u64 least = m->alone ? t->earliest : least_deadline(v);
	__u64 most = m->alone ? time_sum(t->latest, off) : most_deadline(m, v);

	if (deadline < least || deadline > most)
		return broken("%s: deadline %llu of timer %llx is not in %llu to %llu", how,
			      deadline, t->id, least, most);
	if (m->alone) {
		if (deadline >= off && t->earliest < deadline - off)
			t->earliest = deadline - off;
		if (t->latest > deadline)
			t->latest = deadline;
	} else if (v->interval && v->flags & TWHEEL_ABS && deadline < KTIME_MAX &&
		   (deadline - least) % v->interval > off) {
		broken("%s: deadline %llu of timer %llx, first %llu, every %llu ns, is none", how,
		       deadline, t->id, least, v->interval);
	}
}

/* The state that an operation found it in */
static inline void check_state(struct model *m, struct timer *t, const struct version *v,
			       __u32 state, const char *how)
{
	if (state != TWHEEL_STATE_PENDING && state != TWHEEL_STATE_READY)
		broken("%s: state %u", how, state);
	if (state == TWHEEL_STATE_READY && v && !may_be_ready(m, t, v, now(m->clock)))
		broken("%s: timer %llx, deadline %llu at least, is ready early", how, t->id,
		       m->alone ? t->earliest : least_deadline(v));
	if (!m->alone)
		return;
	if (t->ready && state != TWHEEL_STATE_READY)
		broken("%s: timer %llx was ready, and is not", how, t->id);
	t->ready = state == TWHEEL_STATE_READY;
}

/* An operation that tells of a timer, as far as it is long: a query's, or a drained one */
static inline void check_told(struct model *m, struct timer *t, struct version *v,
			      const struct twheel_op *op, __u32 op_size, __u64 begin,
			      const char *how)
{
	check_alive(t, begin, how);
	check_version(t, v, begin, how);
	check_state(m, t, v, op->state, how);
	check_deadline(m, t, v, op->deadline, 0, how);
	if (op_size < TWHEEL_OP_SIZE_FULL)
		return;
	if (op->interval != v->interval || op->jitter != (v->interval ? v->jitter : 0) ||
	    op->slack > v->slack || op->__reserved)
		broken("%s: timer %llx: every %llu, jitter %llu, slack %llu; not %llu %llu %llu",
		       how, op->id, op->interval, op->jitter, op->slack, v->interval, v->jitter,
		       v->slack);
}

/* Alone: the timer is as this version has it. */
static inline void begin_version(struct model *m, struct timer *t, const struct version *v)
{
	bool abs = v->flags & TWHEEL_ABS;

	t->current = v - t->versions;
	t->earliest = least_deadline(v);
	t->latest = time_sum(v->deadline, abs ? 0 : v->after);
	if (!v->interval)
		t->latest = time_sum(t->latest, v->jitter);
	t->ready = t->latest + (v->interval ? v->jitter : 0) <= v->before ||
		   (!v->deadline && !v->jitter);
	t->at_once = t->ready ? ++m->at_once : 0;
	t->later = false;
	t->maybe_due = maybe_at_once(t, v);
	not_awaited(m, t);
}

static inline void settle_version(struct model *m, struct attempt *try, bool good)
{
	struct version *v = try->version;

	if (!v)
		return;
	WRITE_ONCE(v->after, now(m->clock));
	__atomic_store_n(&v->done, moment(m), __ATOMIC_SEQ_CST);
	__atomic_store_n(&v->state, good ? VERSION_GOOD : VERSION_FAILED, __ATOMIC_SEQ_CST);
	if (good && m->alone)
		begin_version(m, try->timer, v);
}

/* Is it one of those that were counted? Of these, nobody says which they are. */
static inline bool may_be_counted(const struct model *m, const struct timer *t)
{
	const struct version *v = &t->versions[t->current];

	return m->flags & TWHEEL_SETUP_COUNT && !v->interval &&
	       may_be_ready(m, t, v, now(m->clock));
}

/* There was no such timer at some moment up to now. */
static inline void missed(struct model *m, struct timer *t)
{
	__u64 none = 0;

	if (m->alone && !t->ended && !may_be_counted(m, t))
		broken("timer %llx is not found", t->id);
	__atomic_compare_exchange_n(&t->missed, &none, moment(m), false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
}

/* A limit, or want of memory. Becoming periodic takes memory, too. */
static inline bool tell_refused(struct model *m, const struct attempt *try, __u8 opcode,
				long result)
{
	bool arms = opcode == TWHEEL_OP_ARM;
	bool takes = arms || (try->version && try->version->interval);
	__u32 held = m->alone ? m->live : nr_timers(m);

	if (m->alone && arms && result != -ENOSPC && m->live >= m->limit)
		broken("arm gave %ld, with %u timers of %llu", result, m->live, m->limit);
	if (result == -ENOMEM && takes && m->starved)
		return true;
	if (result != -ENOSPC)
		return false;
	if (!(arms && held >= m->limit) && !(takes && m->tight))
		broken("opcode %u: ENOSPC with %u timers of %llu", opcode, held, m->limit);
	bump(m->refused);
	return true;
}

static inline void tell_armed(struct model *m, struct timer *t, const struct twheel_op *op)
{
	if (!op->id)
		broken("arm gave id 0");
	if (op->state != TWHEEL_STATE_NONE)
		broken("arm: state %u", op->state);
	bump(m->armed);
	bump(m->live);
	__atomic_store_n(&t->id, op->id, __ATOMIC_RELEASE);
}

static inline void tell_queried(struct model *m, struct attempt *try, const struct twheel_op *op)
{
	struct version *v = NULL;

	if (try->op_size < TWHEEL_OP_SIZE_ONCE)
		return check_state(m, try->timer, NULL, op->state, "query");
	if (timer_of(m, op->user_data, &v) != try->timer)
		return broken("query of %llx gave user data %llx", op->id, op->user_data);
	check_told(m, try->timer, v, op, try->op_size, try->begin, "query");
}

/**
 * model_result() - an operation was done
 * @m: the model
 * @try: what it remembers of it
 * @op: as it is in memory now, with its opcode
 */
static inline void model_result(struct model *m, struct attempt *try, const struct twheel_op *op)
{
	const char *how = op->opcode == TWHEEL_OP_CANCEL ? "cancel" : "modify";
	struct timer *t = try->timer;
	long result = op->result;

	if (try->error && result != try->error)
		broken("opcode %u gave %ld instead of %ld", op->opcode, result, try->error);
	if (result < 0 && m->alone && op->state != TWHEEL_STATE_NONE)
		broken("opcode %u: %ld, and state %u", op->opcode, result, op->state);
	if (!result && t && op->opcode != TWHEEL_OP_ARM) {
		const struct version *v = m->alone ? &t->versions[t->current] : NULL;

		check_alive(t, try->begin, how);
		if (op->opcode != TWHEEL_OP_QUERY)
			check_state(m, t, v, op->state, how);
	}
	settle_version(m, try, !result);
	if (try->error)
		return;
	if (tell_refused(m, try, op->opcode, result))
		return;
	if (op->opcode != TWHEEL_OP_ARM && result == -ENOENT)
		return missed(m, t);
	if (result)
		return broken("opcode %u gave %ld", op->opcode, result);
	if (op->opcode == TWHEEL_OP_ARM)
		return tell_armed(m, t, op);
	if (op->opcode == TWHEEL_OP_QUERY)
		return tell_queried(m, try, op);
	if (op->state == TWHEEL_STATE_READY)
		bump(m->withdrawn);
	if (op->opcode == TWHEEL_OP_MODIFY) {
		bump(m->modified);
		return;
	}
	bump(m->cancelled);
	if (bump(t->cancels) > 1)
		broken("timer %llx was cancelled twice", op->id);
	end_timer(m, t, try->begin, moment(m));
}

/**
 * model_undone() - an operation was not done
 * @try: what the model remembers of it
 */
static inline void model_undone(struct attempt *try)
{
	if (try->version)
		WRITE_ONCE(try->version->state, VERSION_FAILED);
}

/* A read, while its events are gone through: the moment and the time before it */
struct reading {
	__u64 begin, before, tick;
};

static inline struct reading reading_begin(struct model *m)
{
	return (struct reading){ .begin = moment(m), .before = now(m->clock) };
}

static inline __u64 periods(__u64 deadline, __u64 interval, __u64 time)
{
	return time < deadline ? 0 : (time - deadline) / interval;
}

/* What is ready comes in the order of its ticks, and what was ready at once in its own. */
static inline void check_order(struct model *m, struct reading *r, struct timer *t,
			       const struct version *v, const struct twheel_event *e)
{
	__u64 *last = m->alone ? &m->read_tick : &r->tick;

	if (t->at_once && t->at_once < m->read_at_once)
		broken("event of timer %llx, ready at once as number %llu, comes after number %llu",
		       e->id, t->at_once, m->read_at_once);
	if (t->at_once)
		m->read_at_once = t->at_once;
	/* (With jitter, the next period of a timer may be over when it begins.) */
	if (m->event_size < sizeof(*e) || v->slack || m->clock_set || maybe_at_once(t, v) ||
	    (v->interval && v->jitter))
		return;
	if (tick_of(m, e->deadline) < *last)
		broken("event of timer %llx, deadline %llu, comes after one of tick %llu", e->id,
		       e->deadline, *last);
	*last = tick_of(m, e->deadline);
}

/* What a short event does not tell: how late it is, and how often */
static inline void check_whole_event(struct model *m, struct reading *r, struct timer *t,
				     struct version *v, const struct twheel_event *e, __u64 time)
{
	__u64 least, most;

	if (e->deadline > time && e->deadline > m->shown)
		broken("timer %llx, deadline %llu, read %llu: early", e->id, e->deadline, time);
	if (e->flags != (v->interval ? TWHEEL_EVENT_PERIODIC : 0) ||
	    (e->overrun && !v->interval))
		broken("event of timer %llx: flags %x, overrun %u", e->id, e->flags, e->overrun);
	check_deadline(m, t, v, e->deadline, v->interval ? v->jitter : 0, "event");
	__atomic_add_fetch(&m->overruns, e->overrun, __ATOMIC_RELAXED);
	if (e->overrun == ~0U)
		WRITE_ONCE(m->untold, 1);
	if (!v->interval || e->overrun == ~0U)
		return;
	least = periods(e->deadline, v->interval, r->before);
	most = periods(e->deadline, v->interval, time);
	if (e->overrun < least || e->overrun > most)
		broken("event of timer %llx, every %llu ns: overrun %u, not from %llu to %llu",
		       e->id, v->interval, e->overrun, least, most);
}

/* Alone: when it comes next. Its event may not tell which period that is. */
static inline void next_period(struct model *m, struct timer *t, const struct version *v,
			       const struct twheel_event *e, __u64 time)
{
	bool told = m->event_size == sizeof(*e) && e->overrun != ~0U;
	__u64 more = told ? (e->overrun + 1ULL) * v->interval : v->interval;

	if (told && more / v->interval != e->overrun + 1ULL)
		more = KTIME_MAX;
	if (!told && t->latest < time)
		t->latest = time;
	t->earliest = time_sum(t->earliest, more < KTIME_MAX ? more : KTIME_MAX);
	t->latest = time_sum(t->latest, more < KTIME_MAX ? more : KTIME_MAX);
	t->at_once = 0;
	t->ready = false;
	t->maybe_due = false;
	t->later = true;
}

/* An event that was read. Returns whether its timer goes on. */
static inline bool tell_event(struct model *m, struct reading *r, const struct twheel_event *e)
{
	__u64 time = now(m->clock);
	struct version *v = NULL;
	struct timer *t = timer_of(m, e->user_data, &v);
	__u64 id;

	if (!t) {
		broken("event %llx with user data %llx", e->id, e->user_data);
		return false;
	}
	check_alive(t, r->begin, "event");
	check_version(t, v, r->begin, "event");
	if (!may_be_ready(m, t, v, time))
		broken("timer %llx, deadline %llu at least, read %llu: early", e->id,
		       m->alone ? t->earliest : least_deadline(v), time);
	check_order(m, r, t, v, e);
	if (m->event_size == sizeof(*e))
		check_whole_event(m, r, t, v, e, time);
	id = READ_ONCE(t->id) ?: READ_ONCE(t->seen);
	if (id && id != e->id)
		broken("event of timer %llx has id %llx", id, e->id);
	WRITE_ONCE(t->seen, e->id);
	bump(m->events);
	if (v->interval) {
		not_awaited(m, t);
		if (m->alone)
			next_period(m, t, v, e, time);
		return true;
	}
	if (bump(t->reads) > 1)
		broken("timer %llx was read twice", e->id);
	end_timer(m, t, r->begin, moment(m));
	return false;
}

/* A count that was read. Which timers are in it, nobody says: none need be ready any more. */
static inline void tell_count(struct model *m, const char *from)
{
	__u64 count;
	__u32 i;

	memcpy(&count, from, sizeof(count));
	if (!count)
		broken("read a count of 0");
	__atomic_add_fetch(&m->counted, count, __ATOMIC_RELAXED);
	for (i = 0; m->alone && i < m->nr; i++)
		m->timers[i].ready = false;
}

/**
 * model_read() - bytes were read from the wheel
 * @m: the model
 * @r: what reading_begin() gave before
 * @from: where they are
 * @bytes: how many, if any
 */
static inline void model_read(struct model *m, struct reading *r, const char *from, long bytes)
{
	struct twheel_event event = { 0 };
	long i;

	if (bytes > 0 && m->flags & TWHEEL_SETUP_COUNT)
		return tell_count(m, from);
	for (i = 0; i < bytes && !halted(); i += m->event_size) {
		memcpy(&event, from + i, m->event_size);
		tell_event(m, r, &event);
	}
}

/* A timer was taken out, by a call between two moments. */
static inline void drain_timer(struct model *m, struct timer *t, const struct drained *d)
{
	__u64 id = READ_ONCE(t->id);

	if (id && id != d->id)
		broken("timer %llx was drained as %llx", id, d->id);
	if (t->awaited)
		broken("timer %llx was due at %llu, and drained", t->id, t->latest);
	bump(m->drained);
	if (bump(t->drains) > 1)
		broken("timer %llx was drained twice", d->id);
	end_timer(m, t, d->begin, d->end);
}

static inline struct timer *timer_by_id(struct model *m, __u64 id)
{
	__u32 i;

	for (i = 0; i < nr_timers(m); i++)
		if (id && m->timers[i].id == id)
			return &m->timers[i];
	broken("timer %llx was drained, which there is not", id);
	return NULL;
}

static inline void keep_drained(struct model *m, const struct drained *d)
{
	__u32 i = __atomic_fetch_add(&m->nr_drained, 1, __ATOMIC_RELAXED);

	if (i < MODEL_TIMERS)
		m->ids[i] = *d;
	else
		broken("more were drained than there are");
}

/**
 * model_drained() - a timer was taken out by DRAIN
 * @m: the model
 * @op: what the answer has about it
 * @op_size: how much that is
 * @begin: the moment before the call
 */
static inline void model_drained(struct model *m, const struct twheel_op *op, __u32 op_size,
				 __u64 begin)
{
	struct drained d = { op->id, begin, moment(m) };
	struct version *v;
	struct timer *t;

	if (op->opcode != TWHEEL_OP_ARM || op->flags != TWHEEL_ABS || op->result ||
	    op->state != TWHEEL_STATE_PENDING)
		broken("drained: opcode %u, flags %x, result %d, state %u", op->opcode, op->flags,
		       op->result, op->state);
	/* Whose id it is may not be known as yet, where others arm timers. */
	if (op_size < TWHEEL_OP_SIZE_ONCE && !m->alone)
		return keep_drained(m, &d);
	if (op_size < TWHEEL_OP_SIZE_ONCE) {
		t = timer_by_id(m, op->id);
		if (t)
			drain_timer(m, t, &d);
		return;
	}
	t = timer_of(m, op->user_data, &v);
	if (!t)
		return broken("drained %llx with user data %llx", op->id, op->user_data);
	check_told(m, t, v, op, op_size, begin, "drained");
	drain_timer(m, t, &d);
}

#endif
