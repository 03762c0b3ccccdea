/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations of each kind on the timers of a model, with numbers that are drawn.
 */
#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H

#include "model.h"

/*
 * A arms a timer, P one that is ready at once, I and J these as periodic ones. C cancels
 * any, N the newest. M, B, m and b modify any to be like that of A, P, I and J. Q queries.
 * What is refused: s, c, x and q, like A, C, M and Q, with a mistake; d is one of these on
 * a timer that is not there.
 */
#define LETTERS "APIJCNMBmbQscxqd"

/* Longer than a machine is up, so that no second period begins */
#define LONG_PERIOD (1ULL << 55)

/* A number below @n, or 0 */
static inline __u64 below(__u64 *seed, __u64 n)
{
	return n ? (random_next(seed) >> 11) % n : 0;
}

static inline bool one_in(__u64 *seed, __u64 n)
{
	return !below(seed, n);
}

/* How far ahead: mostly so that it comes within a second; or @far, not while this runs */
static inline __u64 some_delay(__u64 *seed, bool far)
{
	if (far)
		return one_in(seed, 40) ? KTIME_MAX - below(seed, 2) :
					  2 * HOUR + below(seed, HOUR << below(seed, 21));
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

/* When it is over: it may be of no length, or long ago, put off by so little that it is over */
static inline void some_past(__u64 *seed, struct twheel_op *op)
{
	op->deadline = 0;
	if (one_in(seed, 4))
		return;
	op->flags = TWHEEL_ABS;
	op->deadline = below(seed, MSEC);
	if (op->deadline && one_in(seed, 4))
		op->jitter = below(seed, MSEC);
}

static inline void some_future(struct model *m, __u64 *seed, bool far, struct twheel_op *op)
{
	op->deadline = some_delay(seed, far);
	if (one_in(seed, 3)) {
		op->flags = TWHEEL_ABS;
		op->deadline = time_sum(op->deadline, now(m->clock));
		if (!far && one_in(seed, 4))
			op->deadline = below(seed, now(m->clock));
	}
	if (one_in(seed, 4))
		op->slack = one_in(seed, 4) ? some_delay(seed, far) : below(seed, 3 * MSEC);
	if (one_in(seed, 4))
		op->jitter = below(seed, 3 * MSEC);
}

static inline void some_period(__u64 *seed, bool far, struct twheel_op *op)
{
	op->interval = far ? LONG_PERIOD : 1 + (one_in(seed, 3) ? below(seed, KTIME_MAX) :
								 below(seed, 5 * MSEC));
	if (op->jitter > op->interval)
		op->jitter = below(seed, op->interval + 1);
}

/* Any timer, mostly one that lives, and half of the time one of the newest */
static inline struct timer *some_timer(struct model *m, __u64 *seed)
{
	__u32 nr = nr_timers(m), i;
	__u32 among = one_in(seed, 2) && nr > 40 ? 40 : nr;
	struct timer *t = NULL;

	for (i = 0; i < 8 && nr; i++) {
		t = &m->timers[nr - 1 - below(seed, among)];
		if (READ_ONCE(t->id) && !READ_ONCE(t->ended))
			return t;
	}
	return t;
}

/* The newest of which is known what it is */
static inline struct timer *newest_timer(struct model *m)
{
	__u32 nr = nr_timers(m);

	while (nr && !__atomic_load_n(&m->timers[nr - 1].id, __ATOMIC_ACQUIRE))
		nr--;
	return nr ? &m->timers[nr - 1] : NULL;
}

/* A number that can't be one of a timer: its generation will not come. */
static inline __u64 no_id(__u64 *seed, __u64 id)
{
	switch (below(seed, 4)) {
	case 0:		return 0;
	case 1:		return (__u32)id;
	case 2:		return random_next(seed) | 1ULL << 63;
	default:	return id | 1ULL << 63;
	}
}

/* Make it one that must fail, if all of it reaches the module. */
static inline void make_malformed(__u64 *seed, struct twheel_op *op)
{
	__u64 late = KTIME_MAX + 1 + below(seed, KTIME_MAX);

	switch (below(seed, has_times(op) ? 8 : 3)) {
	case 0:
		if (has_times(op))
			op->__reserved = 1ULL << below(seed, 64);
		else if (op->opcode == TWHEEL_OP_CANCEL)
			(&op->deadline)[below(seed, 6)] = 1ULL << below(seed, 64);
		else
			op->flags = TWHEEL_ABS;
		break;
	case 1:
		op->opcode = one_in(seed, 4) ? 0 : 5 + below(seed, 251);
		break;
	case 2:
		op->flags |= 2 << below(seed, 7);
		break;
	case 3:
		op->slack = late;
		break;
	case 4:
		op->interval = late;
		break;
	case 5:
		op->interval = 1 + below(seed, SEC);
		op->jitter = op->interval + 1 + below(seed, SEC);
		break;
	case 6:
		op->jitter = late;
		break;
	default:
		op->deadline = one_in(seed, 2) ? ~0ULL : late;
		break;
	}
}

/* What an operation only hands out is not known before. */
static inline void random_outputs(__u64 *seed, __u32 op_size, struct twheel_op *op)
{
	size_t i;

	op->state = random_next(seed);
	op->result = random_next(seed) | 1;
	if (op->opcode == TWHEEL_OP_ARM && one_in(seed, 2))
		op->id = random_next(seed);
	if (op->opcode != TWHEEL_OP_QUERY || one_in(seed, 2))
		return;
	for (i = 0; i < (op_size - TWHEEL_OP_SIZE_ID) / sizeof(__u64); i++)
		(&op->deadline)[i] = random_next(seed);
}

static inline __u8 opcode_of(char letter)
{
	if (strchr("APIJs", letter))
		return TWHEEL_OP_ARM;
	if (strchr("CNc", letter))
		return TWHEEL_OP_CANCEL;
	return strchr("Qq", letter) ? TWHEEL_OP_QUERY : TWHEEL_OP_MODIFY;
}

/**
 * random_op() - make up an operation of a kind, and tell its model
 * @m: the model
 * @seed: for what is drawn
 * @letter: of LETTERS
 * @far: shall no timer come due by itself?
 * @op_size: how much of it there is
 * @try: what the model remembers of it
 * @op: the operation
 */
static inline void random_op(struct model *m, __u64 *seed, char letter, bool far, __u32 op_size,
			     struct attempt *try, struct twheel_op *op)
{
	struct timer *t = NULL;
	__u64 id = 0;

	*op = op_for(letter == 'd' ? 2 + below(seed, 3) : opcode_of(letter), 0);
	if (letter == 'N')
		t = newest_timer(m);
	else if (op->opcode != TWHEEL_OP_ARM)
		t = some_timer(m, seed);
	if (t)
		id = __atomic_load_n(&t->id, __ATOMIC_ACQUIRE);
	if (op->opcode != TWHEEL_OP_ARM)
		op->id = id && letter != 'd' ? id : no_id(seed, id);
	if (!id || op->id != id)
		t = NULL;
	if (strchr("PJBb", letter))
		some_past(seed, op);
	else if (has_times(op))
		some_future(m, seed, far, op);
	if (strchr("IJmb", letter))
		some_period(seed, far, op);
	if (strchr("scxq", letter))
		make_malformed(seed, op);
	model_try(m, t, op_size, try, op);
	random_outputs(seed, op_size, op);
}

#endif
