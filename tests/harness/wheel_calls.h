/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls that move timers and events, made up at random, in memory that may be bad,
 * and reported to a model. To be included by one source of a program.
 */
#ifndef WHEEL_CALLS_H
#define WHEEL_CALLS_H

#include "model_wheel.h"
#include "pieces.h"
#include "random_ops.h"

#include <limits.h>
#include <sys/uio.h>

/* Most operations of an array */
#define MOST_OPS 5000

/*
 * A program may have a fault come in each call: CALL() makes one, FAULTED says whether
 * there was a fault in the last, which may have ended it early, FAULTED_COPY whether it
 * was a copy that fails once, and FAULT_EXPLAINS() whether this is an error that comes of it.
 */
#ifndef CALL
#define CALL(call) (call)
#define FAULTED false
#define FAULTED_COPY false
#define FAULT_EXPLAINS(ret) false
#endif

/**
 * struct making - a call that is being made
 * @model: the model of its wheel
 * @fd: the wheel
 * @seed: for what is drawn
 * @shape: how its memory lies, see memory_piece()
 * @nr: how many elements
 * @op_size: their length, or 0 for any
 * @far: shall no timer come due by itself?
 * @waits: may reads wait? Then they are ended by signals.
 * @parts: may they be of several parts of memory?
 * @rarely_bad: is its memory bad in few calls? Threads wait long for a page to become so.
 * @head: kinds of the first operations, see LETTERS, or NULL for any
 * @cycle: those that come again and again after them
 */
struct making {
	struct model *model;
	int fd;
	__u64 seed;
	__u8 shape;
	__u32 nr, op_size;
	bool far, waits, parts, rarely_bad;
	const char *head, *cycle;
};

static __thread __u32 signals;
static __thread timer_t alarm_clock;
static __thread __u64 notice_end;

static inline void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}

/* For each thread that is to be interrupted */
static inline void signals_init(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct sigevent sev = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGUSR1,
	};

	sev._sigev_un._tid = syscall(SYS_gettid);
	sigaction(SIGUSR1, &act, NULL);
	if (timer_create(CLOCK_MONOTONIC, &sev, &alarm_clock))
		tap_bail("timer_create: %s", strerror(errno));
}

/* Signals to this thread after @ns, and then again and again; or with 0 no more */
static inline void signals_after(__u64 ns)
{
	struct itimerspec its = { { 0, ns ? 3 * MSEC : 0 }, { 0, ns } };

	timer_settime(alarm_clock, 0, &its, NULL);
}

/* Signals end calls early: how many came to this thread? */
static inline __u32 interruptions(void)
{
	return __atomic_load_n(&signals, __ATOMIC_RELAXED);
}

/*
 * Did any come since? Work that io_uring has for this thread ends calls early, too, but
 * nobody is told: after that was asked for, it may come.
 */
static inline bool notified(__u32 since)
{
	return interruptions() != since || now(CLOCK_MONOTONIC) < notice_end;
}

/* An array of operations while it is done */
struct array {
	struct twheel_op ops[MOST_OPS];
	struct attempt tries[MOST_OPS];
	struct piece piece;
	__u32 nr, op_size;
};

static inline __u32 some_op_size(__u64 *seed)
{
	return TWHEEL_OP_SIZE_ID << (one_in(seed, 5) ? 0 : 1 + below(seed, 2));
}

/* (What has no deadline arms nothing, so not too many of them.) */
static inline char any_letter(__u64 *seed, __u32 op_size)
{
	static const char all[] = "AAAAAAAAAPPIJCCCCNMMBmbQQ", few[] = "ACCCCCNQQQ",
			  refused[] = "scxqd";

	if (one_in(seed, 10))
		return refused[below(seed, strlen(refused))];
	return op_size < TWHEEL_OP_SIZE_ONCE ? few[below(seed, strlen(few))] :
					       all[below(seed, strlen(all))];
}

static inline void fill_array(struct making *mk, struct array *a)
{
	size_t heads = mk->head ? strlen(mk->head) : 0;
	__u32 i;

	for (i = 0; i < a->nr; i++) {
		char letter = !mk->head ? any_letter(&mk->seed, a->op_size) :
			      i < heads ? mk->head[i] :
			      mk->cycle[(i - heads) % strlen(mk->cycle)];

		random_op(mk->model, &mk->seed, letter, mk->far, a->op_size, &a->tries[i],
			  &a->ops[i]);
		if (a->piece.kept)
			memcpy(a->piece.kept + i * a->op_size, &a->ops[i], a->op_size);
	}
}

/*
 * What must not be changed by an operation that was done. Of QUERY these fields are out, and
 * are written in parts where they lie in two pages: if the timer ends before the second part
 * can be written, the operation fails, and the first part has been written.
 */
static inline void check_inputs(const struct twheel_op *was, const struct twheel_op *is,
				__u32 op_size)
{
	size_t inputs = op_size - TWHEEL_OP_SIZE_ID;

	if (was->opcode != is->opcode || was->flags != is->flags ||
	    (was->opcode != TWHEEL_OP_ARM && was->id != is->id) ||
	    (was->opcode != TWHEEL_OP_QUERY && memcmp(&was->deadline, &is->deadline, inputs)))
		broken("opcode %u: its input was changed", was->opcode);
}

/* What was not done is as it was; but of the first of these, what is "out" may have been tried. */
static inline void check_undone(struct array *a, __u32 i, bool tried)
{
	char *at = a->piece.kept + i * a->op_size;
	const struct twheel_op *was = &a->ops[i];

	model_undone(&a->tries[i]);
	if ((i + 1) * a->op_size > a->piece.usable)
		return;
	if (tried && was->opcode == TWHEEL_OP_ARM)
		memcpy(at + offsetof(struct twheel_op, id), &was->id, sizeof(was->id));
	if (tried && was->opcode == TWHEEL_OP_QUERY)
		memcpy(at + TWHEEL_OP_SIZE_ID, &was->deadline, a->op_size - TWHEEL_OP_SIZE_ID);
	if (tried)
		memcpy(at + offsetof(struct twheel_op, state), &was->state, sizeof(was->state));
	if (memcmp(at, was, a->op_size))
		broken("operation %u was changed, and not done", i);
}

static inline void check_array(struct making *mk, struct array *a, __u32 done)
{
	struct twheel_op op = { 0 };
	__u32 i;

	for (i = 0; i < a->nr && !halted(); i++) {
		if (i >= done) {
			check_undone(a, i, i == done);
			continue;
		}
		memcpy(&op, a->piece.kept + i * a->op_size, a->op_size);
		check_inputs(&a->ops[i], &op, a->op_size);
		op.opcode = a->ops[i].opcode;
		model_result(mk->model, &a->tries[i], &op);
	}
}

/* A call on @nr elements, of which @most lie where they can be used, gave @ret. */
static inline bool check_done(const char *what, const struct piece *piece, long ret, __u32 nr,
			      __u32 most, bool early)
{
	bool good = ret >= 0 ? ret == most || (early && ret < most) : false;

	if (!most && nr)
		good = ret == -EFAULT;
	if (ret < 0 && early)
		good |= FAULTED ? FAULT_EXPLAINS(ret) : ret == -EINTR;
	if (!good)
		broken("%s of %u, %u usable, gave %ld; %zu bytes, page %zu of room %d bad as %d",
		       what, nr, most, ret, piece->size, piece->page,
		       piece->room ? (int)piece->room->kind : -1, piece->fault);
	return good;
}

/*
 * Do only opcode and flags of the first operation lie in a page that is read-only? The module
 * does not write these, so it may do the array, or refuse it.
 */
static inline bool only_read_there(const struct piece *piece)
{
	size_t at = piece->at - piece->room->at;

	return piece->readable && !piece->usable &&
	       (piece->page + 1) * PAGE - at <= offsetof(struct twheel_op, state);
}

/* An array that lies as it may; @uring, if not NULL, may do it in its own way. */
static inline void submit_array(struct making *mk,
				bool (*uring)(int fd, const struct twheel_submit *arg, long *ret))
{
	__u32 op_size = mk->op_size ? mk->op_size : some_op_size(&mk->seed);
	__u32 fits = ROOM_PAGES * PAGE / op_size, since = interruptions(), most;
	static __thread struct array a;
	struct twheel_submit arg;
	bool maybe;
	long ret;

	a.op_size = op_size;
	a.nr = mk->nr < fits ? mk->nr : fits;
	a.piece = memory_piece(&mk->seed, mk->shape, a.nr * op_size);
	fill_array(mk, &a);
	arg = (struct twheel_submit){
		.size = sizeof(arg),
		.ops = (unsigned long)a.piece.at,
		.nr = a.nr,
		.op_size = op_size,
	};
	most = a.piece.usable / op_size;
	maybe = only_read_there(&a.piece);
	memory_hide(&a.piece);
	if (!uring || !uring(mk->fd, &arg, &ret)) {
		/* Nothing is done with what is said to be there, but can't be reached. */
		if (most < a.nr && !maybe && a.piece.fault != FAULT_NOWHERE &&
		    one_in(&mk->seed, 4))
			arg.nr = INT_MAX;
		ret = CALL(wheel_ioctl(mk->fd, TWHEEL_IOC_SUBMIT, &arg));
	}
	memory_show(&a.piece);
	if (mk->model->alone)
		mk->model->starved = FAULTED;
	if (maybe && ret > 0)
		most = a.nr;
	/* One more when it can be read, and the answer can be written. */
	if (most < a.nr && ret == most + 1L && a.piece.readable &&
	    most * op_size + sizeof(__u64) <= a.piece.usable)
		most++;
	if (check_done("submit", &a.piece, ret, a.nr, most, FAULTED || notified(since)))
		check_array(mk, &a, ret > 0 ? ret : 0);
	if (!memory_check(&a.piece))
		broken("submit wrote around a piece of %zu bytes", a.piece.size);
}

static inline void make_drain(struct making *mk)
{
	__u32 op_size = mk->op_size ? mk->op_size : some_op_size(&mk->seed);
	__u32 fits = ROOM_PAGES * PAGE / op_size, nr = mk->nr < fits ? mk->nr : fits;
	struct piece piece = memory_piece(&mk->seed, mk->shape, nr * op_size);
	__u32 since = interruptions(), most = piece.usable / op_size;
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)piece.at,
		.nr = nr,
		.op_size = op_size,
	};
	__u64 begin = moment(mk->model);
	struct twheel_op op = { 0 };
	bool early;
	long ret, i;

	memory_hide(&piece);
	ret = CALL(wheel_ioctl(mk->fd, TWHEEL_IOC_DRAIN, &arg));
	memory_show(&piece);
	/* There may be no more, or not even one. */
	early = FAULTED || notified(since);
	if (ret >= 0 && ret < most && (!mk->model->alone || early || !wheel_info(mk->fd).pending))
		most = ret;
	if (!ret && (!mk->model->alone || !wheel_info(mk->fd).pending))
		nr = 0;
	if (!check_done("drain", &piece, ret, nr, most, early))
		return;
	for (i = 0; i < ret; i++) {
		memcpy(&op, piece.kept + i * op_size, op_size);
		model_drained(mk->model, &op, op_size, begin);
	}
	if (!memory_check(&piece))
		broken("drain wrote around a piece of %zu bytes", piece.size);
}

/* Read by one of the calls there are for it, into several pieces of the piece */
static inline long some_read(struct making *mk, const struct piece *piece)
{
	size_t left = piece->size;
	struct iovec iov[6];
	int n = 0, how;
	long ret;

	while (left && n < 5 && mk->parts && one_in(&mk->seed, 2)) {
		size_t len = below(&mk->seed, left + 1);

		iov[n++] = (struct iovec){ piece->at + piece->size - left, len };
		left -= len;
	}
	iov[n++] = (struct iovec){ piece->at + piece->size - left, left };
	how = below(&mk->seed, 4);
	if (how < 2 && mk->waits)
		signals_after(3 * MSEC);
	if (how == 0 && n == 1)
		ret = CALL(({ long got = read(mk->fd, iov[0].iov_base, left);
			      got < 0 ? -errno : got; }));
	else if (how == 0)
		ret = CALL(({ long got = readv(mk->fd, iov, n); got < 0 ? -errno : got; }));
	else
		ret = CALL(({ long got = preadv2(mk->fd, iov, n, -1, how == 1 ? 0 : RWF_NOWAIT);
			      got < 0 ? -errno : got; }));
	if (how < 2 && mk->waits)
		signals_after(0);
	return ret;
}

static inline bool good_count(const struct piece *piece, long ret, __u32 least, __u32 most)
{
	__u64 count;

	if (ret != sizeof(count))
		return false;
	memcpy(&count, piece->kept, sizeof(count));
	return count >= least && (count <= most || most == ~0U);
}

static inline void check_read(struct making *mk, const struct piece *piece, long ret,
			      bool stopped, __u32 least, __u32 most)
{
	struct model *m = mk->model;
	size_t unit = m->event_size, want = piece->usable / unit;
	bool good = ret >= (long)unit && !(ret % unit) && ret <= (long)piece->usable;

	if (m->flags & TWHEEL_SETUP_COUNT)
		good &= good_count(piece, ret, least, mk->far ? most : ~0U);
	else if (want > least)
		want = least;
	/* (A copy that fails once is done again. A signal ends a read early.) */
	if ((!FAULTED || FAULTED_COPY) && !stopped && m->alone &&
	    !(m->flags & TWHEEL_SETUP_COUNT))
		good &= ret >= (long)(want * unit);
	/* (A short period is over again while the rest is read.) */
	if (m->alone && mk->far)
		good &= ret <= (long)(most * unit);
	if (!piece->size)
		good = !ret || ret == -EINVAL || ret == -EFAULT;
	else if (ret == -EAGAIN)
		good = !least;
	else if (ret == -EINVAL)
		good = piece->size < unit;
	else if (ret == -EFAULT)
		good = (piece->usable < unit && (most || piece->fault == FAULT_NOWHERE)) ||
		       FAULT_EXPLAINS(ret);
	else if (ret < 0)
		good = (ret == -EINTR && stopped) || FAULT_EXPLAINS(ret);
	if (!good)
		broken("read of %zu, %zu usable, with %u to %u ready, gave %ld", piece->size,
		       piece->usable, least, most, ret);
}

static inline void make_read(struct making *mk)
{
	struct model *m = mk->model;
	size_t size = mk->nr * sizeof(struct twheel_event), fits = ROOM_PAGES * PAGE - 48;
	__u32 since = interruptions(), least = 0, most = ~0U;
	struct reading r = reading_begin(m);
	struct piece piece;
	bool known;
	__u64 first;
	long ret;

	size = (size < fits ? size : fits) + (one_in(&mk->seed, 3) ? below(&mk->seed, 48) : 0);
	piece = memory_piece(&mk->seed, mk->shape, size);
	/* (What was counted is not ready any more, and nobody says which timers that was.) */
	known = m->alone && !m->counted;
	if (known)
		count_ready(m, r.before, &least, &most, &first);
	memory_hide(&piece);
	ret = some_read(mk, &piece);
	memory_show(&piece);
	if (known)
		count_ready(m, now(m->clock), &(__u32){ 0 }, &most, &first);
	check_read(mk, &piece, ret, interruptions() != since, least, most);
	model_read(m, &r, piece.kept, ret);
	if (!memory_check(&piece))
		broken("read wrote around a piece of %zu bytes", piece.size);
}

/* Any call, with signals meanwhile, in memory that lies as it may */
static inline void random_call(struct making *mk)
{
	mk->shape = below(&mk->seed, 256);
	if (mk->rarely_bad && !one_in(&mk->seed, 8))
		mk->shape &= ~SHAPE_FAULT;
	if (one_in(&mk->seed, 4))
		signals_after(1000ULL << below(&mk->seed, 10));
	switch (below(&mk->seed, 8)) {
	case 0:
	case 1:
		make_read(mk);
		break;
	case 2:
		mk->nr = mk->nr < 200 ? mk->nr : 200;
		make_drain(mk);
		break;
	case 3:
		mk->nr = 1;
		submit_array(mk, NULL);
		break;
	default:
		submit_array(mk, NULL);
		break;
	}
	signals_after(0);
}

#endif
