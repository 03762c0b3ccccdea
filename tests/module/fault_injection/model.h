/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a wheel should hold, kept beside it, and compared with what it says.
 */
#ifndef MODEL_H
#define MODEL_H

#include "faults.h"

/* Timers of a model, those that are gone included */
#define MODEL_TIMERS 65536

/* Operations in an array of the tests' own calls */
#define MODEL_BATCH 256

/* A deadline that never comes */
#define FAR (KTIME_MAX / 2)

enum model_state { GONE, PENDING, READY };

/**
 * struct timer - a timer of the model
 * @op: what armed or modified it last, with its id
 * @state: what became of it
 * @slack_seen: @op.slack is what the wheel uses
 */
struct timer {
	struct twheel_op op;
	enum model_state state;
	bool slack_seen;
};

/**
 * struct model - a wheel and what it should hold
 * @fd: the wheel
 * @nr: timers in @timers, in the order of their arming
 * @stats: what the counters of operations should be
 * @timers: all that it ever held
 */
struct model {
	int fd;
	unsigned int nr;
	struct twheel_stats stats;
	struct timer timers[MODEL_TIMERS];
};

/* One at a time; here, as it is large */
static struct model model __attribute__((unused));

/* A new wheel */
static inline void model_adopt(struct model *m, int fd)
{
	m->fd = fd;
	m->nr = 0;
	memset(&m->stats, 0, sizeof(m->stats));
}

static inline void model_open(struct model *m)
{
	model_adopt(m, wheel_open(O_NONBLOCK));
}

static inline void model_close(struct model *m)
{
	EXPECT_EQ(NEG(close(m->fd)), 0);
}

static inline struct timer *model_find(struct model *m, __u64 id)
{
	unsigned int i;

	for (i = 0; i < m->nr; i++)
		if (m->timers[i].op.id == id)
			return &m->timers[i];
	return NULL;
}

static inline unsigned int model_count(const struct model *m,
				       enum model_state state)
{
	unsigned int i, n = 0;

	for (i = 0; i < m->nr; i++)
		n += m->timers[i].state == state;
	return n;
}

/* The oldest timer in that state */
static inline struct timer *model_first(struct model *m, enum model_state state)
{
	unsigned int i;

	for (i = 0; i < m->nr; i++)
		if (m->timers[i].state == state)
			return &m->timers[i];
	return NULL;
}

/* Deadlines of the tests are absolute, and either over or FAR */
static inline enum model_state model_begins(const struct twheel_op *op)
{
	return op->deadline >= FAR ? PENDING : READY;
}

static inline void model_arm(struct model *m, const struct twheel_op *op)
{
	struct timer *t = &m->timers[m->nr];

	if (m->nr == MODEL_TIMERS)
		tap_bail("the model is full");
	EXPECT_TRUE(op->id, "an id of 0");
	*t = (struct timer){ .op = *op, .state = model_begins(op) };
	m->nr++;
	m->stats.armed++;
	m->stats.expired += t->state == READY;
}

/* Many at once, which all must be done */
static inline void model_arm_all(struct model *m, struct twheel_op *ops,
				 unsigned int nr)
{
	unsigned int i;

	submit_all(m->fd, ops, nr);
	for (i = 0; i < nr; i++)
		model_arm(m, &ops[i]);
}

/* What an operation should give that nothing hinders */
static inline long model_result(struct model *m, const struct twheel_op *op)
{
	struct timer *t;

	if (op->opcode == TWHEEL_OP_ARM)
		return 0;
	t = model_find(m, op->id);
	return t && t->state != GONE ? 0 : -ENOENT;
}

/* What QUERY says of a timer, in so many bytes, is what the program said of it last */
static inline void model_compare(struct timer *t, const struct twheel_op *op,
				 __u32 op_size)
{
	const struct twheel_op *want = &t->op;

	EXPECT_EQ(op->state, t->state == READY ? TWHEEL_STATE_READY :
						 TWHEEL_STATE_PENDING,
		  "timer %#llx", want->id);
	EXPECT_EQ(op->id, want->id);
	if (op_size < TWHEEL_OP_SIZE_ONCE)
		return;
	EXPECT_TRUE(op->deadline == want->deadline && op->user_data == want->user_data,
		    "timer %#llx: deadline %llu user data %llu", want->id, op->deadline,
		    op->user_data);
	if (op_size < TWHEEL_OP_SIZE_FULL)
		return;
	EXPECT_TRUE(op->interval == want->interval && !op->__reserved,
		    "timer %#llx: interval %llu reserved %llu", want->id, op->interval,
		    op->__reserved);
	if (want->interval)
		EXPECT_EQ(op->jitter, want->jitter);
	EXPECT_TRUE(op->slack <= want->slack, "slack %llu", op->slack);
	EXPECT_TRUE(!t->slack_seen || op->slack == want->slack, "slack changed");
	t->op.slack = op->slack;
	t->slack_seen = true;
}

/* An operation of so many bytes was done; @op is what it was, and its answer */
static inline void model_did(struct model *m, const struct twheel_op *op,
			     __u32 op_size)
{
	struct timer *t;

	if (op->opcode == TWHEEL_OP_ARM) {
		model_arm(m, op);
		return;
	}
	t = model_find(m, op->id);
	if (!EXPECT_TRUE(t && t->state != GONE, "timer %#llx is gone", op->id))
		return;
	EXPECT_EQ(op->state, t->state == READY ? TWHEEL_STATE_READY :
						 TWHEEL_STATE_PENDING);
	switch (op->opcode) {
	case TWHEEL_OP_MODIFY:
		*t = (struct timer){ .op = *op, .state = model_begins(op) };
		m->stats.modified++;
		m->stats.expired += t->state == READY;
		break;
	case TWHEEL_OP_CANCEL:
		t->state = GONE;
		m->stats.cancelled++;
		break;
	case TWHEEL_OP_QUERY:
		model_compare(t, op, op_size);
		break;
	}
}

/* An event was read; timers that are periodic go on, far off in these tests */
static inline void model_event(struct model *m, const struct twheel_event *ev,
			       __u32 event_size)
{
	bool whole = event_size == sizeof(*ev);
	struct timer *t = model_find(m, ev->id);

	if (!EXPECT_TRUE(t && t->state == READY, "an event of the timer %#llx, %s",
			 ev->id, t ? "which is not ready" : "which nobody armed"))
		return;
	EXPECT_EQ(ev->user_data, t->op.user_data);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= t->op.deadline, "early");
	if (whole)
		EXPECT_TRUE(ev->deadline >= t->op.deadline &&
			    ev->deadline - t->op.deadline <= t->op.jitter &&
			    now(CLOCK_MONOTONIC) >= ev->deadline, "deadline %llu",
			    ev->deadline);
	m->stats.delivered++;
	m->stats.overruns += ev->overrun;
	if (t->op.interval) {
		if (whole)
			EXPECT_EQ(ev->flags, TWHEEL_EVENT_PERIODIC);
		t->op.deadline += (ev->overrun + 1ULL) * t->op.interval;
		t->state = PENDING;
	} else {
		t->state = GONE;
	}
}

/* Timers come out of DRAIN as what would arm them again, or its beginning */
static inline void model_drained(struct model *m, const struct twheel_op *op,
				 __u32 op_size)
{
	struct timer *t = model_find(m, op->id);

	if (!EXPECT_TRUE(t && t->state == PENDING, "timer %#llx drained", op->id))
		return;
	EXPECT_EQ(op->opcode, TWHEEL_OP_ARM);
	EXPECT_EQ(op->flags, TWHEEL_ABS);
	model_compare(t, op, op_size);
	t->state = GONE;
	m->stats.drained++;
}

static inline void model_check_fdinfo(const struct model *m)
{
	struct twheel_info info = wheel_info(m->fd);
	char path[64], text[1024], want[128];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", m->fd);
	read_text(path, text, sizeof(text));
	snprintf(want, sizeof(want), "\npending:\t%llu\nready:\t%llu\nlimit:\t%llu\n",
		 info.pending, info.ready, info.limit);
	EXPECT_TRUE(strstr(text, want), "fdinfo: %.200s", text);
}

/* Numbers only: for when there are so many that asking for each takes long */
static inline void model_check_counts(const struct model *m)
{
	struct twheel_info info = wheel_info(m->fd);
	struct twheel_stats stats = wheel_stats(m->fd);

	EXPECT_EQ(info.pending, model_count(m, PENDING));
	EXPECT_EQ(info.ready, model_count(m, READY));
	EXPECT_EQ(readable(m->fd, 0), info.ready > 0);
	EXPECT_EQ(stats.armed, m->stats.armed);
	EXPECT_EQ(stats.modified, m->stats.modified);
	EXPECT_EQ(stats.cancelled, m->stats.cancelled);
	EXPECT_EQ(stats.expired, m->stats.expired);
	EXPECT_EQ(stats.delivered, m->stats.delivered);
	EXPECT_EQ(stats.overruns, m->stats.overruns);
	EXPECT_EQ(stats.drained, m->stats.drained);
	EXPECT_EQ(stats.refused, m->stats.refused);
}

/* Everything that the wheel says of itself and of each timer */
static inline void model_check(struct model *m)
{
	static struct twheel_op ops[MODEL_BATCH];
	unsigned int at, i, n;

	model_check_counts(m);
	for (at = 0; at < m->nr; at += n) {
		n = m->nr - at < MODEL_BATCH ? m->nr - at : MODEL_BATCH;
		for (i = 0; i < n; i++)
			ops[i] = op_for(TWHEEL_OP_QUERY, m->timers[at + i].op.id);
		EXPECT_EQ(submit(m->fd, ops, n), n);
		for (i = 0; i < n; i++) {
			struct timer *t = &m->timers[at + i];

			if (t->state == GONE)
				EXPECT_EQ(ops[i].result, -ENOENT, "timer %#llx",
					  t->op.id);
			else if (EXPECT_EQ(ops[i].result, 0, "timer %#llx",
					   t->op.id))
				model_compare(t, &ops[i], sizeof(ops[i]));
		}
	}
}

/*
 * The end of a test: all is as it should be, and goes. What takes long is looked at
 * now and then. (The module warns of its own accord when a user without wheels is
 * charged for memory.)
 */
static inline void model_end(struct model *m)
{
	static unsigned int times;

	model_check(m);
	if (times++ % 8 == 0)
		model_check_fdinfo(m);
	model_close(m);
}

/* So many wheels are open, with no timers */
static inline void check_open_wheels(int open)
{
	char text[1024];
	int got = -1;

	read_text(FAULTS "twheel/counters", text, sizeof(text));
	EXPECT_TRUE(sscanf(text, "open %d", &got) == 1 && got == open, "%.200s", text);
	EXPECT_TRUE(strstr(text, "\npending 0\nready 0\n"), "%.200s", text);
}

static inline void test_nothing_left(void)
{
	check_open_wheels(0);
}

#endif
