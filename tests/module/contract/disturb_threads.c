// SPDX-License-Identifier: GPL-2.0
/*
 * What disturb.c does by one thread, by several at once, on one wheel and on several
 * of one user: batches that mix accepted and refused operations, in memory that is bad
 * in the middle, with signals. Each thread keeps an oracle. In the end each timer that was
 * armed was read, cancelled or drained, once, and nothing of it came afterwards; all
 * that the wheels count agrees with the oracles, and nothing is left.
 *
 * Environment: TIMES=N for N times as much, SEED=N for another.
 *
 * also in: both both-threads matrix
 */
#include "disturb.h"

#include <pthread.h>

#define THREADS 4
#define WHEELS 3
#define BATCHES 100
#define MOST_OPS 322
#define TIMERS (1U << 18)
#define MARK 0xd157ULL

struct timer {
	__u64 id;		/* 0 until it is known */
	__u64 ended;		/* the moment after which nothing of it may come */
	__u32 ends;
	__u32 wheel;
	bool armed;
};

/* What a thread did to a wheel */
struct oracle {
	__u64 armed, modified, cancelled, drained, delivered, refused;
};

struct thread {
	pthread_t thread;
	__u32 nr;
	__u64 seed;
	struct room room;
	struct nuisance nuisance;
	struct twheel_op ops[MOST_OPS];
	__u32 op_size;
	__u32 timers[MOST_OPS];
	struct oracle oracles[WHEELS];
};

static struct thread threads[THREADS];
static int wheels[WHEELS];
static __u32 nr_wheels;
static struct timer *timers;
static __u32 next_timer;
static __u32 recent[512], nr_recent;
static __u64 moment;
static bool limited;		/* some timers are refused for want of room */

static __u64 next_moment(void)
{
	return __atomic_add_fetch(&moment, 1, __ATOMIC_SEQ_CST);
}

static void timer_end(struct timer *t, const char *how)
{
	__u32 ends = __atomic_add_fetch(&t->ends, 1, __ATOMIC_RELAXED);

	EXPECT_TRUE(ends == 1, "timer %zd was %s, and it had ended before", t - timers,
		    how);
	__atomic_store_n(&t->ended, next_moment(), __ATOMIC_SEQ_CST);
}

/* The timer that a call tells of that began then */
static struct timer *timer_told(__u64 user_data, __u64 id, __u32 wheel, __u64 began,
				const char *how)
{
	__u32 i = user_data;
	struct timer *t = &timers[i];
	__u64 known, ended;

	if (!EXPECT_TRUE(user_data >> 32 == MARK && i < TIMERS, "%s: user data %llx", how,
			 user_data))
		return NULL;
	known = __atomic_load_n(&t->id, __ATOMIC_ACQUIRE);
	ended = __atomic_load_n(&t->ended, __ATOMIC_SEQ_CST);
	EXPECT_TRUE(!known || known == id, "%s: id %llx of timer %u, which is %llx", how,
		    id, i, known);
	EXPECT_TRUE(t->wheel == wheel, "%s: timer %u is of another wheel", how, i);
	EXPECT_TRUE(!ended || ended > began, "timer %u was %s after it had ended", i, how);
	return t;
}

/* ---- what a thread does ---- */

static void some_times(struct thread *me, struct twheel_op *op)
{
	__u64 *seed = &me->seed;

	op->deadline = below(seed, 4 * MSEC);
	if (one_in(seed, 3))
		op->deadline = below(seed, HOUR);
	if (one_in(seed, 5)) {
		op->flags = TWHEEL_ABS;
		op->deadline = below(seed, MSEC);
	}
	if (one_in(seed, 4))
		op->interval = 1 + below(seed, one_in(seed, 2) ? HOUR : MSEC);
	if (one_in(seed, 8))
		op->slack = below(seed, 2 * MSEC);
	if (one_in(seed, 8))
		op->jitter = below(seed, op->interval ? op->interval : MSEC);
}

/* One that was armed not long ago, by whomever */
static __u32 some_timer(struct thread *me)
{
	__u32 nr = __atomic_load_n(&nr_recent, __ATOMIC_RELAXED);

	if (!nr)
		return 0;
	nr = nr < ARRAY_SIZE(recent) ? nr : ARRAY_SIZE(recent);
	return __atomic_load_n(&recent[below(&me->seed, nr)], __ATOMIC_RELAXED);
}

static void draw_op(struct thread *me, __u32 i, __u32 wheel, bool arms)
{
	struct twheel_op *op = &me->ops[i];
	__u64 what = below(&me->seed, 10);

	*op = op_for(TWHEEL_OP_QUERY, 0);
	if (arms || what < 4) {
		me->timers[i] = __atomic_fetch_add(&next_timer, 1, __ATOMIC_RELAXED);
		if (me->timers[i] >= TIMERS)
			tap_bail("more timers than there are");
		op->opcode = TWHEEL_OP_ARM;
		__atomic_store_n(&timers[me->timers[i]].wheel, wheel, __ATOMIC_RELAXED);
	} else {
		me->timers[i] = some_timer(me);
		op->id = __atomic_load_n(&timers[me->timers[i]].id,
					 __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&timers[me->timers[i]].wheel, __ATOMIC_RELAXED) != wheel)
			op->id = 0;
		if (what < 7)
			op->opcode = TWHEEL_OP_CANCEL;
		else if (what < 9)
			op->opcode = TWHEEL_OP_MODIFY;
	}
	if (op->opcode < TWHEEL_OP_CANCEL) {
		some_times(me, op);
		op->user_data = MARK << 32 | me->timers[i];
	}
	if (one_in(&me->seed, 6))
		op_spoil(&me->seed, op);
	op_cut(op, me->op_size);
}

static void check_armed(struct oracle *oracle, struct timer *t,
			const struct twheel_op *out)
{
	__u32 i;

	if (out->result == -ENOSPC) {
		EXPECT_TRUE(limited, "arm: ENOSPC");
		oracle->refused++;
	} else if (EXPECT_EQ(out->result, 0, "arm")) {
		oracle->armed++;
		t->armed = true;
		__atomic_store_n(&t->id, out->id, __ATOMIC_RELEASE);
		i = __atomic_fetch_add(&nr_recent, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&recent[i % ARRAY_SIZE(recent)], t - timers,
				 __ATOMIC_RELAXED);
	}
}

static char *op_at(struct thread *me, __u32 i)
{
	return me->room.kept + PAGE / 2 + i * me->op_size;
}

static void check_op(struct thread *me, __u32 i, __u32 wheel, __u64 began)
{
	struct oracle *oracle = &me->oracles[wheel];
	struct timer *t = &timers[me->timers[i]];
	struct twheel_op *op = &me->ops[i], out;
	long error = op_error(op, me->op_size);

	memcpy(&out, op_at(me, i), me->op_size);
	if (error) {
		EXPECT_EQ(out.result, error, "opcode %u", op->opcode);
		return;
	}
	if (op->opcode == TWHEEL_OP_ARM)
		return check_armed(oracle, t, &out);
	/* One that becomes periodic may want memory. */
	if (out.result == -ENOSPC && op->interval && limited) {
		oracle->refused++;
		return;
	}
	if (!EXPECT_TRUE(!out.result || out.result == -ENOENT, "opcode %u gave %d",
			 op->opcode, out.result) || out.result)
		return;
	if (!EXPECT_TRUE(op->id, "opcode %u on id 0 was done", op->opcode))
		return;
	if (op->opcode == TWHEEL_OP_CANCEL) {
		oracle->cancelled++;
		timer_end(t, "cancelled");
	} else if (op->opcode == TWHEEL_OP_MODIFY) {
		oracle->modified++;
	} else if (me->op_size > TWHEEL_OP_SIZE_ID) {
		timer_told(out.user_data, op->id, wheel, began, "found");
	}
}

static void do_submit(struct thread *me, __u32 wheel)
{
	static const __u32 sizes[] = { 1, 2, 4, 5, 8, 16, 64, 256, 320 };
	__u32 nr = sizes[below(&me->seed, ARRAY_SIZE(sizes))] + below(&me->seed, 3);
	__u32 page = 1 + below(&me->seed, 6), i;
	enum fault fault = one_in(&me->seed, 3) ? below(&me->seed, FAULTS) : 0;
	bool arms = one_in(&me->seed, 3);
	__u64 began;
	long ret;

	me->op_size = one_in(&me->seed, 3) ? 16 << below(&me->seed, 2) :
					     TWHEEL_OP_SIZE_FULL;
	for (i = 0; i < nr; i++) {
		draw_op(me, i, wheel, arms);
		memcpy(op_at(me, i), &me->ops[i], me->op_size);
	}
	room_spoil(&me->room, fault, page);
	if (one_in(&me->seed, 3))
		nuisance_set(&me->nuisance, 1000ULL << below(&me->seed, 8));
	began = next_moment();
	ret = submit_sized(wheels[wheel], me->room.at + PAGE / 2, nr, me->op_size);
	nuisance_set(&me->nuisance, 0);
	room_mend(&me->room, page);
	EXPECT_TRUE((ret >= 0 && ret <= nr) || ret == -EINTR, "submit of %u gave %ld", nr,
		    ret);
	for (i = 0; ret > 0 && i < ret; i++)
		check_op(me, i, wheel, began);
}

static void do_read(struct thread *me, __u32 wheel)
{
	struct twheel_event event;
	enum fault fault = one_in(&me->seed, 3) ? below(&me->seed, FAULTS) : 0;
	__u32 nr = 1 + below(&me->seed, 300);
	__u64 began;
	long ret, i;

	room_spoil(&me->room, fault, 1);
	if (one_in(&me->seed, 3))
		nuisance_set(&me->nuisance, 1000ULL << below(&me->seed, 8));
	began = __atomic_load_n(&moment, __ATOMIC_SEQ_CST);
	ret = read(wheels[wheel], me->room.at + PAGE / 2, nr * sizeof(event));
	ret = ret < 0 ? -errno : ret;
	nuisance_set(&me->nuisance, 0);
	room_mend(&me->room, 1);
	EXPECT_TRUE((ret > 0 && !(ret % sizeof(event))) || ret == -EAGAIN || ret == -EINTR,
		    "read gave %ld", ret);
	for (i = 0; i < ret; i += sizeof(event)) {
		struct timer *t;

		memcpy(&event, me->room.kept + PAGE / 2 + i, sizeof(event));
		me->oracles[wheel].delivered++;
		t = timer_told(event.user_data, event.id, wheel, began, "read");
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event.deadline, "early");
		if (t && !(event.flags & TWHEEL_EVENT_PERIODIC))
			timer_end(t, "read");
	}
}

static void do_drain(struct thread *me, __u32 wheel)
{
	enum fault fault = one_in(&me->seed, 2) ? below(&me->seed, FAULTS) : 0;
	__u64 began = __atomic_load_n(&moment, __ATOMIC_SEQ_CST);
	__u32 nr = 1 + below(&me->seed, 150);
	struct twheel_op op;
	long ret, i;

	room_spoil(&me->room, fault, 1);
	ret = drain(wheels[wheel], (void *)(me->room.at + PAGE / 2), nr);
	room_mend(&me->room, 1);
	EXPECT_TRUE(ret >= 0, "drain gave %ld", ret);
	for (i = 0; i < ret; i++) {
		struct timer *t;

		memcpy(&op, me->room.kept + PAGE / 2 + i * sizeof(op), sizeof(op));
		me->oracles[wheel].drained++;
		t = timer_told(op.user_data, op.id, wheel, began, "drained");
		if (t)
			timer_end(t, "drained");
	}
}

static void *work(void *arg)
{
	struct thread *me = arg;
	__u32 i, wheel, batches = BATCHES * number_of("TIMES", 1);

	pin_to(me->nr);
	nuisance_init(&me->nuisance);
	/* What is known of timers is of one round. */
	for (i = 0; i < batches; i++) {
		if (__atomic_load_n(&next_timer, __ATOMIC_RELAXED) >=
		    TIMERS - THREADS * MOST_OPS)
			break;
		wheel = below(&me->seed, nr_wheels);

		switch (below(&me->seed, 10)) {
		case 0:
		case 1:
		case 2:
			do_read(me, wheel);
			break;
		case 3:
			do_drain(me, wheel);
			break;
		default:
			do_submit(me, wheel);
			break;
		}
	}
	timer_delete(me->nuisance.timer);
	return NULL;
}

/* ---- the end: nobody else is there ---- */

/*
 * A timer with a short period is ready again whenever this program is slower than a tick: it
 * can't be drained for ever, so what is left after some rounds is cancelled.
 */
static void cancel_rest(__u32 wheel)
{
	__u32 i;

	for (i = 0; i < next_timer; i++) {
		struct timer *t = &timers[i];

		if (t->wheel != wheel || !t->armed || t->ends)
			continue;
		EXPECT_EQ(cancel(wheels[wheel], t->id), 0, "timer %u", i);
		threads[0].oracles[wheel].cancelled++;
		timer_end(t, "cancelled");
	}
}

static void take_rest(__u32 wheel)
{
	struct thread *me = &threads[0];
	struct twheel_info info;
	int rounds = 30;

	nuisance_init(&me->nuisance);
	do {
		do_drain(me, wheel);
		do_read(me, wheel);
		info = wheel_info(wheels[wheel]);
	} while ((info.pending || info.ready) && --rounds);
	timer_delete(me->nuisance.timer);
	cancel_rest(wheel);
	info = wheel_info(wheels[wheel]);
	EXPECT_EQ(info.pending, 0);
	EXPECT_EQ(info.ready, 0);
	EXPECT_TRUE(!readable(wheels[wheel], 0));
}

static void check_books(__u32 wheel)
{
	struct twheel_stats stats = wheel_stats(wheels[wheel]);
	struct oracle sum = { 0 };
	__u32 i;

	for (i = 0; i < THREADS; i++) {
		const struct oracle *oracle = &threads[i].oracles[wheel];

		sum.armed += oracle->armed;
		sum.modified += oracle->modified;
		sum.cancelled += oracle->cancelled;
		sum.drained += oracle->drained;
		sum.delivered += oracle->delivered;
		sum.refused += oracle->refused;
	}
	EXPECT_EQ(stats.armed, sum.armed);
	EXPECT_EQ(stats.modified, sum.modified);
	EXPECT_EQ(stats.cancelled, sum.cancelled);
	EXPECT_EQ(stats.drained, sum.drained);
	EXPECT_EQ(stats.delivered, sum.delivered);
	EXPECT_EQ(stats.refused, sum.refused);
	tap_diag("%u: armed %llu modified %llu cancelled %llu drained %llu read %llu refused %llu",
		 wheel, sum.armed, sum.modified, sum.cancelled, sum.drained,
		 sum.delivered, sum.refused);
}

static void run_threads(__u32 nr, __u64 limit)
{
	static __u64 rounds;
	__u32 i;

	nr_wheels = nr;
	limited = limit;
	next_timer = 0;
	nr_recent = 0;
	memset(timers, 0, TIMERS * sizeof(*timers));
	for (i = 0; i < nr; i++) {
		wheels[i] = wheel_open(O_NONBLOCK);
		if (wheel_setup(wheels[i], TWHEEL_CLOCK_MONOTONIC,
				i == 1 ? 50 * USEC : 0, limit, 0))
			tap_bail("setup with limit %llu", limit);
	}
	for (i = 0; i < THREADS; i++) {
		memset(threads[i].oracles, 0, sizeof(threads[i].oracles));
		threads[i].nr = i;
		threads[i].seed = (number_of("SEED", 1) * THREADS + i) * 2 + 1 +
				  1000000 * rounds;
		if (pthread_create(&threads[i].thread, NULL, work, &threads[i]))
			tap_bail("pthread_create failed");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	for (i = 0; i < nr; i++) {
		take_rest(i);
		check_books(i);
		close(wheels[i]);
	}
	for (i = 0; i < next_timer; i++)
		EXPECT_EQ(timers[i].ends, timers[i].armed, "ends of timer %u", i);
	rounds++;
}

static void test_one_wheel(void)
{
	run_threads(1, 0);
}

static void test_several(void)
{
	run_threads(WHEELS, 0);
}

static void test_wheel_limit(void)
{
	run_threads(1, 257);
	run_threads(WHEELS, 5);
}

static void set_user_limit(const char *text)
{
	if (has_module() && write_text(PARAMETERS "max_user_timers", text))
		tap_bail("max_user_timers can't be set");
}

/* How many timers does the user get now? */
static __u32 most_timers(void)
{
	int fd = wheel_open(O_NONBLOCK);
	__u32 nr = 0;
	long ret;

	do {
		struct twheel_op op = op_arm(0, HOUR, nr);

		ret = op_single(fd, &op);
	} while (!ret && ++nr < 100000);
	EXPECT_EQ(ret, -ENOSPC, "arm");
	close(fd);
	return nr;
}

/* In the end the user gets as many as at first: nothing is held any more. */
static void test_user_limit(void)
{
	__u32 before;

	set_user_limit("4000");
	before = most_timers();
	run_threads(WHEELS, 100000);
	EXPECT_EQ(most_timers(), before);
	set_user_limit("1000000000");
}

int main(void)
{
	__u32 i;

	tap_start(110 * number_of("TIMES", 1));
	drop_resource();
	set_user_limit("1000000000");
	timers = map_shared(TIMERS * sizeof(*timers));
	for (i = 0; i < THREADS; i++)
		room_init(&threads[i].room);
	RUN(test_one_wheel, "threads on one wheel");
	RUN(test_several, "threads on several wheels");
	RUN(test_wheel_limit, "threads at the wheels' limits");
	RUN(test_user_limit, "threads at the user's limit");
	return tap_end();
}
