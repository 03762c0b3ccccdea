// SPDX-License-Identifier: GPL-2.0
/*
 * What a wheel should hold, by what was done to it: the promises, as checks of
 * all that it says.
 *
 * Calls of different threads come in no known order. So each has two moments, one
 * before and one after it; a call comes before another for certain when its second
 * moment does not come after the other's first.
 */
#include "calls.h"

/*
 * User data of a model's timers: a mark, the wheel's number, the version, and the
 * timer. Whatever has another mark must never come out of such a wheel.
 */
#define MARK 0xA17ULL
#define SPOILT 0xBAD0000000000000ULL

#define bump(field) __atomic_add_fetch(&(field), 1, __ATOMIC_RELAXED)

static __u64 data_of(const struct model *m, const struct timer *t, __u32 version)
{
	return MARK << 52 | (__u64)(m - shared->models) << 48 |
	       (__u64)version << 32 | (__u32)(t - m->timers);
}

static struct timer *timer_of(struct model *m, __u64 data, struct version **v)
{
	__u32 version = data >> 32 & 0xffff;
	__u32 i = data;

	if (data >> 48 != (MARK << 4 | (__u64)(m - shared->models)) ||
	    version >= VERSIONS || i >= TIMERS || i >= m->nr)
		return NULL;
	*v = &m->timers[i].versions[version];
	return &m->timers[i];
}

void model_reset(struct model *m)
{
	memset(m, 0, offsetof(struct model, timers) +
		     (m->nr < TIMERS ? m->nr : TIMERS) * sizeof(m->timers[0]));
}

/* How far ahead: mostly so that it comes within the round */
static __u64 some_delay(__u64 *seed)
{
	switch (below(seed, 12)) {
	case 0:		return 0;
	case 1:		return below(seed, HOUR);
	case 2:		return KTIME_MAX - below(seed, 3);
	case 3:		return below(seed, KTIME_MAX);
	case 4:		return below(seed, SEC);
	case 5:		return 4 * MSEC * below(seed, 6);
	default:	return below(seed, 8 * MSEC);
	}
}

/* What a shorter operation has no room for is 0. */
static void some_times(struct model *m, __u64 *seed, __u32 op_size,
		       struct twheel_op *op)
{
	op->deadline = some_delay(seed);
	if (one_in(seed, 3)) {
		op->flags = TWHEEL_ABS;
		if (op->deadline < HOUR)
			op->deadline += now(m->clock);
		if (one_in(seed, 4))
			op->deadline = below(seed, now(m->clock));
	}
	if (op_size < TWHEEL_OP_SIZE_FULL)
		return;
	if (one_in(seed, 4))
		op->slack = one_in(seed, 4) ? some_delay(seed) :
					      below(seed, 3 * MSEC);
	if (one_in(seed, 4))
		op->jitter = below(seed, 3 * MSEC);
	if (one_in(seed, 5)) {
		op->interval = 1 + (one_in(seed, 3) ? below(seed, KTIME_MAX) :
						      below(seed, 5 * MSEC));
		if (op->jitter > op->interval)
			op->jitter = below(seed, op->interval + 1);
		bump(m->periodic);
	}
}

/* One that was armed not long ago, or any */
static struct timer *some_timer(struct model *m, __u64 *seed, __u32 pick)
{
	__u32 nr = m->nr < TIMERS ? m->nr : TIMERS;
	__u32 among = pick & 1 && nr > 40 ? 40 : nr;

	if (!nr)
		return NULL;
	return &m->timers[nr - 1 - (random_next(seed) + (pick >> 1)) % among];
}

static struct timer *new_timer(struct model *m)
{
	__u32 i = __atomic_fetch_add(&m->nr, 1, __ATOMIC_RELAXED);

	if (i < TIMERS)
		return &m->timers[i];
	__atomic_store_n(&m->nr, TIMERS, __ATOMIC_RELAXED);
	return NULL;
}

/* A number that can't be one of a timer: its generation will not come */
static __u64 no_id(__u64 *seed, __u64 id)
{
	switch (below(seed, 4)) {
	case 0:		return 0;
	case 1:		return (__u32)id;
	case 2:		return random_next(seed) | 1ULL << 63;
	default:	return id | 1ULL << 63;
	}
}

static void try_version(struct model *m, struct attempt *try,
			struct twheel_op *op)
{
	__u32 nr = __atomic_fetch_add(&try->timer->nr_versions, 1,
				      __ATOMIC_RELAXED);
	struct version *v = &try->timer->versions[nr];

	if (nr >= VERSIONS) {
		/* No more is known of it than that it is there. */
		op->opcode = TWHEEL_OP_QUERY;
		op->flags = 0;
		return;
	}
	v->flags = op->flags;
	v->deadline = op->deadline;
	v->interval = op->interval;
	v->slack = op->slack;
	v->jitter = op->jitter;
	v->before = now(m->clock);
	v->begin = try->begin;
	try->version = v;
	op->user_data = data_of(m, try->timer, nr);
	__atomic_store_n(&v->state, VERSION_TRIED, __ATOMIC_RELEASE);
}

/* Of what an operation only hands out, nothing is known before. */
static void some_rests(__u64 *seed, struct twheel_op *op)
{
	op->state = random_next(seed);
	op->result = random_next(seed);
	if (op->opcode == TWHEEL_OP_ARM)
		op->id = one_in(seed, 2) ? random_next(seed) : 0;
	if (op->opcode != TWHEEL_OP_QUERY || one_in(seed, 2))
		return;
	op->deadline = random_next(seed);
	op->user_data = random_next(seed);
	op->interval = random_next(seed);
	op->slack = random_next(seed);
	op->jitter = random_next(seed);
	op->__reserved = random_next(seed);
}

/* A timer that was there, or a number of none */
static void try_known(struct model *m, __u64 *seed, __u32 pick,
		      struct attempt *try, struct twheel_op *op)
{
	try->timer = some_timer(m, seed, pick);
	if (try->timer)
		try->id = __atomic_load_n(&try->timer->id, __ATOMIC_ACQUIRE);
	if (!try->id || one_in(seed, 20)) {
		op->id = no_id(seed, try->id);
		try->timer = NULL;
		try->error = -ENOENT;
	} else {
		op->id = try->id;
	}
}

/* An operation of that length on a timer of the model; one that it allows, if any */
void model_try(struct model *m, __u64 *seed, __u32 pick, __u32 op_size,
	       struct attempt *try, struct twheel_op *op)
{
	__u64 what = below(seed, 10);

	*try = (struct attempt){ .begin = moment(), .op_size = op_size };
	*op = op_for(TWHEEL_OP_QUERY, 0);
	/* (What has no deadline arms nothing, so not too many of them.) */
	if (what < (op_size < TWHEEL_OP_SIZE_ONCE ? 1 : 5))
		try->timer = new_timer(m);
	if (try->timer)
		op->opcode = TWHEEL_OP_ARM;
	else
		try_known(m, seed, pick, try, op);
	if (op->opcode != TWHEEL_OP_ARM && what < 7)
		op->opcode = TWHEEL_OP_CANCEL;
	else if (op->opcode != TWHEEL_OP_ARM && what < 9)
		op->opcode = TWHEEL_OP_MODIFY;
	if (op->opcode <= TWHEEL_OP_MODIFY) {
		some_times(m, seed, op_size, op);
		op->user_data = SPOILT;
		if (try->timer)
			try_version(m, try, op);
	}
	/* "ARM and MODIFY need a @deadline" */
	if (op->opcode <= TWHEEL_OP_MODIFY && op_size < TWHEEL_OP_SIZE_ONCE)
		try->error = -EINVAL;
	some_rests(seed, op);
}

/* Something in a field that must be 0; there is one in each length */
static void spoil_zero(__u64 *seed, struct attempt *try, struct twheel_op *op)
{
	__u32 fields = (try->op_size - TWHEEL_OP_SIZE_ID) / sizeof(__u64);

	if (op->opcode == TWHEEL_OP_CANCEL && fields)
		(&op->deadline)[below(seed, fields)] = 1ULL << below(seed, 64);
	else if (op->opcode <= TWHEEL_OP_MODIFY && fields > 2)
		op->__reserved = 1ULL << below(seed, 64);
	else
		op->flags |= 1 << (1 + below(seed, 7));
}

/* Make it one that must fail */
void model_spoil(__u64 *seed, struct attempt *try, struct twheel_op *op)
{
	__u64 late = KTIME_MAX + 1 + below(seed, KTIME_MAX);
	bool times = op->opcode <= TWHEEL_OP_MODIFY;
	int ways = !times || try->op_size < TWHEEL_OP_SIZE_ONCE ? 3 :
		   try->op_size < TWHEEL_OP_SIZE_FULL ? 4 : 7;

	try->error = -EINVAL;
	switch (below(seed, ways)) {
	case 0:
		op->opcode = one_in(seed, 4) ? 0 : 5 + below(seed, 251);
		break;
	case 1:
		op->flags |= 1 << (1 + below(seed, 7));
		break;
	case 2:
		spoil_zero(seed, try, op);
		break;
	case 3:
		op->deadline = late;
		break;
	case 4:
		op->slack = late;
		break;
	case 5:
		op->interval = late;
		break;
	case 6:
		op->interval = 1 + below(seed, SEC);
		op->jitter = op->interval + 1 + below(seed, SEC);
		break;
	}
}

/* The timer is gone, by a call that began then. */
static void end_timer(struct timer *t, __u64 begin)
{
	t->ending = begin;
	__atomic_store_n(&t->ended, moment(), __ATOMIC_SEQ_CST);
}

/* Who found it there in a call that began then? */
static void check_alive(const struct timer *t, __u64 begin, const char *how)
{
	__u64 ended = __atomic_load_n(&t->ended, __ATOMIC_SEQ_CST);

	if (ended && ended <= begin)
		broken("%s at %llu: timer %llx was gone at %llu: read %u, cancelled %u, drained %u",
		       how, begin, t->id, ended, t->reads, t->cancels, t->drains);
}

/* Was this version replaced before a call began that told of it? */
static void check_version(struct timer *t, struct version *v, __u64 begin,
			  const char *how)
{
	__u64 done = __atomic_load_n(&v->done, __ATOMIC_SEQ_CST);
	int i;

	v->seen = 1;
	if (v->state == VERSION_NONE || v->state == VERSION_FAILED)
		broken("%s tells of version %d of timer %llx, which never was",
		       how, (int)(v - t->versions), t->id);
	for (i = 0; done && i < VERSIONS; i++) {
		struct version *w = &t->versions[i];

		if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == VERSION_GOOD &&
		    w->begin >= done && w->done <= begin)
			broken("%s at %llu: version %d of timer %llx was replaced by %d at %llu",
			       how, begin, (int)(v - t->versions), t->id, i, w->done);
	}
}

/* A deadline that the wheel tells, put off by @off at most */
static void check_deadline(struct model *m, const struct timer *t,
			   const struct version *v, __u64 deadline, __u64 off,
			   const char *how)
{
	__u64 least = v->deadline, most = v->deadline, put_off;

	if (!(v->flags & TWHEEL_ABS)) {
		least += v->before;
		most += v->after ? v->after : now(m->clock);
	}
	least = least < KTIME_MAX ? least : KTIME_MAX;
	most = most < KTIME_MAX - off ? most + off : KTIME_MAX;
	if (deadline < least || deadline > KTIME_MAX ||
	    (!v->interval && deadline > most))
		broken("%s: deadline %llu of timer %llx is not in %llu to %llu",
		       how, deadline, t->id, least, most);
	put_off = v->interval ? (deadline - least) % v->interval : 0;
	if (v->interval && v->flags & TWHEEL_ABS && deadline < KTIME_MAX &&
	    put_off > off)
		broken("%s: deadline %llu of timer %llx, first %llu, every %llu ns, is none",
		       how, deadline, t->id, least, v->interval);
}

/* An operation that tells of a timer, as far as it is long: a query's, or a drained one */
static void check_told(struct model *m, struct timer *t, struct version *v,
		       const struct twheel_op *op, __u32 op_size, __u64 begin,
		       const char *how)
{
	check_alive(t, begin, how);
	check_version(t, v, begin, how);
	if (op_size < TWHEEL_OP_SIZE_FULL)
		return check_deadline(m, t, v, op->deadline,
				      v->interval ? 0 : v->jitter, how);
	if (op->__reserved)
		broken("%s: reserved %llx", how, op->__reserved);
	if (op->interval != v->interval ||
	    op->jitter != (v->interval ? v->jitter : 0) || op->slack > v->slack)
		broken("%s: timer %llx: interval %llu jitter %llu slack %llu, not %llu %llu %llu",
		       how, op->id, op->interval, op->jitter, op->slack,
		       v->interval, v->jitter, v->slack);
	check_deadline(m, t, v, op->deadline, v->interval ? 0 : v->jitter, how);
}

static void tell_armed(struct model *m, struct attempt *try,
		       const struct twheel_op *op, long result)
{
	struct timer *t = try->timer;

	if (result == -ENOSPC) {
		if (m->nr < m->limit)
			broken("arm: ENOSPC with %u timers of %llu", m->nr, m->limit);
		bump(m->refused);
		return;
	}
	if (result)
		return broken("arm gave %ld", result);
	if (!op->id)
		broken("arm gave id 0");
	bump(m->armed);
	__atomic_store_n(&t->id, op->id, __ATOMIC_RELEASE);
}

static void tell_cancelled(struct model *m, struct attempt *try,
			   const struct twheel_op *op)
{
	if (op->state != TWHEEL_STATE_PENDING && op->state != TWHEEL_STATE_READY)
		broken("cancel: state %u", op->state);
	bump(m->cancelled);
	if (bump(try->timer->cancels) > 1)
		broken("timer %llx was cancelled twice", op->id);
	end_timer(try->timer, try->begin);
}

static void tell_queried(struct model *m, struct attempt *try,
			 const struct twheel_op *op)
{
	struct version *v = NULL;
	struct timer *t;

	if (op->state != TWHEEL_STATE_PENDING && op->state != TWHEEL_STATE_READY)
		broken("query: state %u", op->state);
	if (try->op_size < TWHEEL_OP_SIZE_ONCE)
		return;
	t = timer_of(m, op->user_data, &v);
	if (t != try->timer)
		return broken("query of %llx gave user data %llx", try->id,
			      op->user_data);
	check_told(m, t, v, op, try->op_size, try->begin, "query");
}

/* There was no such timer at some moment up to now. */
static void missed(struct timer *t)
{
	__u64 now = moment(), none = 0;

	__atomic_compare_exchange_n(&t->missed, &none, now, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	while (none && none > now &&
	       !__atomic_compare_exchange_n(&t->missed, &none, now, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void settle_version(struct model *m, struct version *v, bool good)
{
	if (!v)
		return;
	v->after = now(m->clock);
	__atomic_store_n(&v->done, moment(), __ATOMIC_SEQ_CST);
	__atomic_store_n(&v->state, good ? VERSION_GOOD : VERSION_FAILED,
			 __ATOMIC_SEQ_CST);
}

/* The operation was done: what it gave, and what it handed out */
void model_result(struct model *m, struct attempt *try,
		  const struct twheel_op *op, long result)
{
	struct timer *t = try->timer;

	settle_version(m, try->version, !result);
	if (try->error) {
		if (result != try->error && (!try->id || result != -ENOENT))
			broken("opcode %u gave %ld instead of %ld", op->opcode,
			       result, try->error);
		return;
	}
	if (op->opcode == TWHEEL_OP_ARM)
		return tell_armed(m, try, op, result);
	if (result == -ENOENT)
		return missed(t);
	if (result)
		return broken("opcode %u gave %ld", op->opcode, result);
	check_alive(t, try->begin, op->opcode == TWHEEL_OP_CANCEL ?
				   "cancel" : "modify or query");
	if (op->opcode == TWHEEL_OP_CANCEL)
		tell_cancelled(m, try, op);
	else if (op->opcode == TWHEEL_OP_QUERY)
		tell_queried(m, try, op);
	else
		bump(m->modified);
}

/* The operation was not done. */
void model_undone(struct attempt *try)
{
	if (try->version)
		try->version->state = VERSION_FAILED;
}

/* The earliest deadline that this version can have */
static __u64 least_deadline(const struct version *v)
{
	__u64 before = v->flags & TWHEEL_ABS ? 0 : v->before;

	return v->deadline < KTIME_MAX - before ? before + v->deadline : KTIME_MAX;
}

/* What a short event does not tell: how late it is, and how often */
static void check_whole_event(struct model *m, struct timer *t, struct version *v,
			      const struct twheel_event *e, __u64 time)
{
	if (e->deadline > time)
		broken("timer %llx, deadline %llu, read %llu: early", e->id,
		       e->deadline, time);
	if (e->flags != (v->interval ? TWHEEL_EVENT_PERIODIC : 0) ||
	    (e->overrun && !v->interval))
		broken("event of timer %llx: flags %x, overrun %u", e->id, e->flags,
		       e->overrun);
	check_deadline(m, t, v, e->deadline, v->jitter, "event");
	__atomic_add_fetch(&m->overruns, e->overrun, __ATOMIC_RELAXED);
	if (e->overrun == ~0U)
		m->untold = 1;
}

/* An event that was read. Returns whether its timer goes on. */
static bool tell_event(struct model *m, const struct twheel_event *e, __u64 begin)
{
	__u64 time = now(m->clock);
	struct version *v;
	struct timer *t = timer_of(m, e->user_data, &v);

	if (!t) {
		broken("event %llx with user data %llx", e->id, e->user_data);
		return false;
	}
	check_alive(t, begin, "event");
	check_version(t, v, begin, "event");
	if (least_deadline(v) > time)
		broken("timer %llx, deadline %llu at least, read %llu: early", e->id,
		       least_deadline(v), time);
	if (m->event_size == sizeof(*e))
		check_whole_event(m, t, v, e, time);
	if ((t->id && t->id != e->id) || (t->seen && t->seen != e->id))
		broken("event of timer %llx has id %llx", t->id ? t->id : t->seen,
		       e->id);
	t->seen = e->id;
	bump(m->events);
	if (v->interval)
		return true;
	if (bump(t->reads) > 1)
		broken("timer %llx was read twice", e->id);
	end_timer(t, begin);
	return false;
}

/* What was read, by a call that began then */
void model_read(struct model *m, const char *from, long bytes, __u64 begin)
{
	struct twheel_event event = { 0 };
	__u64 count;
	long i;

	if (bytes > 0 && m->flags & TWHEEL_SETUP_COUNT) {
		memcpy(&count, from, sizeof(count));
		if (!count)
			broken("read a count of 0");
		__atomic_add_fetch(&m->counted, count, __ATOMIC_RELAXED);
		return;
	}
	for (i = 0; i < bytes && !halted(); i += m->event_size) {
		memcpy(&event, from + i, m->event_size);
		tell_event(m, &event, begin);
	}
}

/* It was taken out, by a call between two moments. */
static void drain_timer(struct model *m, struct timer *t, __u64 id, __u64 begin,
			__u64 end)
{
	if (t->id && t->id != id)
		broken("timer %llx was drained as %llx", t->id, id);
	bump(m->drained);
	if (bump(t->drains) > 1)
		broken("timer %llx was drained twice", id);
	t->ending = begin;
	__atomic_store_n(&t->ended, end, __ATOMIC_SEQ_CST);
}

/* Whose id it is may not be known as yet: that is seen in the end. */
static void keep_drained(struct model *m, __u64 id, __u64 begin)
{
	__u32 i = __atomic_fetch_add(&m->nr_drained, 1, __ATOMIC_RELAXED);

	if (i >= TIMERS)
		return broken("more were drained than there are");
	m->ids[i] = (struct drained){ id, begin, moment() };
}

/* A timer that was taken out by DRAIN */
void model_drained(struct model *m, const struct twheel_op *op, __u32 op_size,
		   __u64 begin)
{
	struct version *v;
	struct timer *t;

	if (op->opcode != TWHEEL_OP_ARM || op->flags != TWHEEL_ABS || op->result ||
	    op->state != TWHEEL_STATE_PENDING)
		broken("drained: opcode %u, flags %x, result %d, state %u",
		       op->opcode, op->flags, op->result, op->state);
	if (op_size < TWHEEL_OP_SIZE_ONCE)
		return keep_drained(m, op->id, begin);
	t = timer_of(m, op->user_data, &v);
	if (!t)
		return broken("drained %llx with user data %llx", op->id,
			      op->user_data);
	check_told(m, t, v, op, op_size, begin, "drained");
	drain_timer(m, t, op->id, begin, moment());
}

/* All is over, and each id is known. */
static void settle_drained(struct model *m)
{
	__u32 i, k;

	for (i = 0; i < m->nr_drained && !halted(); i++) {
		const struct drained *d = &m->ids[i];

		for (k = 0; k < m->nr && m->timers[k].id != d->id; k++)
			;
		if (!d->id || k == m->nr)
			return broken("drained %llx, which there is not", d->id);
		drain_timer(m, &m->timers[k], d->id, d->begin, d->end);
	}
}

/* A timer that goes on would come back before it can be drained. */
static void end_periodic(int w, const struct twheel_event *e)
{
	struct model *m = &shared->models[w];
	struct version *v;
	struct attempt try = {
		.timer = timer_of(m, e->user_data, &v),
		.begin = moment(),
	};
	struct twheel_op op = op_for(TWHEEL_OP_CANCEL, e->id);
	long ret;

	if (!try.timer || try.timer->ended)
		return;
	ret = op_single(wheels[w], &op);
	if (ret)
		broken("cancel of timer %llx, just read, gave %ld", e->id, ret);
	model_result(m, &try, &op, ret);
}

/* Take out what can be read. Returns whether there was anything. */
static bool read_out(int w)
{
	struct model *m = &shared->models[w];
	static char buf[64 * sizeof(struct twheel_event)];
	struct twheel_event events[64 * 2] = { 0 };
	bool goes_on[64 * 2];
	__u64 begin = moment();
	long n, i;

	n = read(wheels[w], buf, sizeof(buf));
	if (n <= 0 || m->flags & TWHEEL_SETUP_COUNT) {
		model_read(m, buf, n, begin);
		return n > 0;
	}
	n /= m->event_size;
	for (i = 0; i < n; i++) {
		memcpy(&events[i], buf + i * m->event_size, m->event_size);
		goes_on[i] = tell_event(m, &events[i], begin);
	}
	for (i = 0; i < n; i++)
		if (goes_on[i])
			end_periodic(w, &events[i]);
	return true;
}

static bool drain_out(int w)
{
	struct model *m = &shared->models[w];
	struct twheel_op ops[64];
	__u64 begin = moment();
	long n = drain(wheels[w], ops, 64), i;

	if (n < 0)
		broken("drain gave %ld", n);
	for (i = 0; i < n; i++)
		model_drained(m, &ops[i], sizeof(ops[i]), begin);
	return n > 0;
}

static __u64 next_expiry(int w)
{
	return wheel_info(wheels[w]).next_expiry;
}

/* What is due becomes ready, and what is ready can be polled. */
static void settle(int w)
{
	struct model *m = &shared->models[w];
	__u64 due = now(m->clock);

	/* (Of 0, which is none, this makes what comes after all.) */
	if (!WAIT_FOR(next_expiry(w) - 1 >= due))
		broken("a timer due at %llu is not ready at %llu", next_expiry(w),
		       now(m->clock));
	if (wheel_info(wheels[w]).ready && !readable(wheels[w], 0))
		broken("timers are ready, and poll does not say so");
}

/* In count mode no event tells which timers go on: end all by their ids. */
static void cancel_all(int w)
{
	struct model *m = &shared->models[w];
	__u32 i;

	for (i = 0; i < m->nr; i++) {
		struct attempt try = { .timer = &m->timers[i], .begin = moment() };
		struct twheel_op op = op_for(TWHEEL_OP_CANCEL, m->timers[i].id);

		if (op.id && !m->timers[i].ended)
			model_result(m, &try, &op, op_single(wheels[w], &op));
	}
}

static int by_id(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void check_ids(const struct model *m)
{
	static __u64 ids[TIMERS];
	__u32 i, n = 0;

	for (i = 0; i < m->nr; i++)
		if (m->timers[i].id)
			ids[n++] = m->timers[i].id;
	qsort(ids, n, sizeof(ids[0]), by_id);
	for (i = 1; i < n; i++)
		if (ids[i] == ids[i - 1])
			broken("id %llx was given out twice", ids[i]);
}

/* All is over: was the timer what was promised? */
static void check_timer(const struct model *m, const struct timer *t)
{
	__u32 ends = t->reads + t->cancels + t->drains;
	__u32 begun = t->versions[0].state == VERSION_GOOD;
	int i;

	for (i = 0; i < VERSIONS; i++)
		if (t->versions[i].seen && t->versions[i].state != VERSION_GOOD)
			broken("version %d of timer %llx was seen, but failed", i,
			       t->id);
	if (t->seen && t->id != t->seen)
		broken("an event of timer %llx had id %llx", t->id, t->seen);
	if (ends > begun)
		broken("timer %llx: %u armed, %u read, %u cancelled, %u drained",
		       t->id, begun, t->reads, t->cancels, t->drains);
	if (m->flags & TWHEEL_SETUP_COUNT)
		return;
	if (ends < begun)
		broken("timer %llx is lost: neither read, cancelled nor drained",
		       t->id);
	if (t->missed && t->missed < t->ending)
		broken("timer %llx was not found at moment %llu, but ended at %llu or later",
		       t->id, t->missed, t->ending);
}

static void check_counter(const char *name, __u64 is, __u64 want)
{
	if (is != want)
		broken("the counter %s is %llu, not %llu", name, is, want);
}

static void check_counters(int w)
{
	struct model *m = &shared->models[w];
	struct twheel_stats s = wheel_stats(wheels[w]);

	check_counter("armed", s.armed, m->armed);
	check_counter("modified", s.modified, m->modified);
	check_counter("cancelled", s.cancelled, m->cancelled);
	check_counter("drained", s.drained, m->drained);
	check_counter("refused", s.refused, m->refused);
	if (m->flags & TWHEEL_SETUP_COUNT) {
		check_counter("delivered + overruns", s.delivered + s.overruns,
			      m->counted);
		if (!m->periodic)
			check_counter("delivered", s.delivered,
				      m->armed - m->cancelled - m->drained);
	} else {
		check_counter("delivered", s.delivered, m->events);
		if (m->event_size == sizeof(struct twheel_event) && !m->untold)
			check_counter("overruns", s.overruns, m->overruns);
		else if (m->event_size == sizeof(struct twheel_event) &&
			 s.overruns < m->overruns)
			broken("%llu overruns, %llu told", s.overruns, m->overruns);
	}
	if (s.expired < s.delivered)
		broken("%llu delivered of %llu expired", s.delivered, s.expired);
}

/* The wheel goes on working after all that: a wait is ended by a timer. */
static void check_lively(int w)
{
	struct model *m = &shared->models[w];
	struct twheel_op op = op_arm(0, 2 * MSEC, 0);
	struct attempt try = { .timer = new_timer(m), .begin = moment() };
	long ret;

	if (!try.timer)
		return;
	try_version(m, &try, &op);
	ret = op_single(wheels[w], &op);
	model_result(m, &try, &op, ret);
	if (ret)
		broken("an empty wheel gives %ld", ret);
	else if (!readable(wheels[w], PATIENCE_MS))
		broken("nothing ready %d ms after a deadline", PATIENCE_MS);
	read_out(w);
}

/* The round is over, and nobody else uses the wheel: take all out, and count. */
void model_finish(int w)
{
	struct model *m = &shared->models[w];
	struct twheel_info info;
	__u32 i;

	fcntl(wheels[w], F_SETFL, O_NONBLOCK);
	settle(w);
	if (m->flags & TWHEEL_SETUP_COUNT)
		cancel_all(w);
	do {
		while (read_out(w) || drain_out(w))
			;
		info = wheel_info(wheels[w]);
	} while ((info.pending || info.ready) && !halted());
	if (readable(wheels[w], 0))
		broken("poll says that an empty wheel is ready");
	check_lively(w);
	check_ids(m);
	settle_drained(m);
	check_counters(w);
	for (i = 0; i < m->nr && !halted(); i++)
		check_timer(m, &m->timers[i]);
}
