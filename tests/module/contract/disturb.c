// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences that are built to disturb: accepted and refused operations of all kinds
 * in one batch, around each number at which something begins or ends inside, with
 * memory that ends or is bad in the middle, and signals; and after each call, all
 * that the wheel says is as a model has it.
 *
 * First come walks along those numbers, always the same, and then random sequences.
 * Environment: TIMES=N for N times as many of these, SEED=N for those from that number
 * on. What fails says the number of its sequence.
 *
 * also in: both
 */
#include "disturb_model.h"

#include <limits.h>

#define USER_PARAMETER PARAMETERS "max_user_timers"
#define MOST_OPS 5000
#define SEQUENCES 20
#define STEPS 50
#define SMALL_BATCHES 2000

/* A batch, and how it lies in memory */
struct batch {
	struct twheel_op ops[MOST_OPS];
	__u32 nr, op_size, offset;
	__u32 claimed;		/* how many the call is told that there are */
	enum fault fault;
	__u32 bad_page;
	__u64 signals;		/* after so many ns, or 0 */
};

static struct wheel wheels[3];
static struct room room;
static struct nuisance nuisance;
static struct batch batch;
static __u64 seed;

/*
 * Around these something begins or ends: batches, chunks, what is kept, nodes that are
 * handed out together, events and drained timers at a time, a page and the page that is
 * held, in the small world and in the large one.
 */
static const __u32 batch_sizes[] = { 1, 2, 4, 5, 8, 16, 24, 64, 128, 256, 320, 512 };
static const __u32 fills[] = {
	5, 60, 64, 128, 1024, 1024 + 256, 2 * 1024,
};

/* Where the directory of the table is to grow */
static const __u32 large_fills[] = { 15 * 1024 };

static const __u32 op_sizes[] = { 64, 32, 16 };
static const __u32 offsets[] = { 0, 64, PAGE - 64, 32, PAGE - 32, 8, 1 };

/* ---- operations, each a letter ---- */

static __u64 far_away(void)
{
	return 2 * HOUR + below(&seed, (HOUR << below(&seed, 21)));
}

static void draw_far(struct twheel_op *op)
{
	op->deadline = far_away();
	if (one_in(&seed, 2)) {
		op->flags = TWHEEL_ABS;
		op->deadline += now(CLOCK_MONOTONIC);
	}
	if (one_in(&seed, 40))
		op->deadline = KTIME_MAX - below(&seed, 2);
	if (one_in(&seed, 6))
		op->slack = far_away() >> below(&seed, 40);
	if (one_in(&seed, 6))
		op->jitter = below(&seed, HOUR);
}

static void draw_past(struct twheel_op *op)
{
	op->deadline = 0;
	if (one_in(&seed, 4))
		return;
	op->flags = TWHEEL_ABS;
	op->deadline = below(&seed, MSEC);
	if (op->deadline && one_in(&seed, 4))
		op->jitter = below(&seed, MSEC);
}

static __u64 live_id(const struct wheel *w)
{
	return w->nr_live ?
	       w->timers[w->live[below(&seed, w->nr_live)]].id : 0;
}

/* One of those that were given out last: live or not */
static __u64 recent_id(const struct wheel *w, __u64 back)
{
	return w->given ?
	       w->last_given[(w->given - 1 - back % w->given) %
			     ARRAY_SIZE(w->last_given)] : 0;
}

/* What no timer has: 0, an index alone, a generation to come, one that is used up */
static __u64 dead_id(struct wheel *w)
{
	__u64 id = recent_id(w, below(&seed, 64));

	switch (below(&seed, 5)) {
	case 0:		return 0;
	case 1:		return (__u32)id;
	case 2:		return random_next(&seed) | 1ULL << 63;
	default:	return timer_by_id(w, id) ? id | 1ULL << 63 : id;
	}
}

/*
 * A arms a timer, P one that is ready at once, I and J these as periodic ones.
 * C cancels any, N the newest. M modifies any to be like A's, B, m and b like
 * those of P, I and J. Q queries. What is refused: r, like A, with a deadline that
 * is none; s, c, x and q, like A, C, M and Q, with a mistake or an id of nobody.
 */
#define LETTERS "APIJCNMBmbQrscxq"

static __u8 opcode_of(char letter)
{
	if (strchr("APIJrs", letter))
		return TWHEEL_OP_ARM;
	if (strchr("CNc", letter))
		return TWHEEL_OP_CANCEL;
	return strchr("Qq", letter) ? TWHEEL_OP_QUERY : TWHEEL_OP_MODIFY;
}

static void draw_refused(struct wheel *w, struct twheel_op *op, char letter)
{
	op->id = dead_id(w);
	if (letter == 'r') {
		op->deadline = ~0ULL;
	} else if (letter == 's' || one_in(&seed, 3)) {
		op->id = live_id(w);
		op_spoil(&seed, op);
	}
}

static void draw_op(struct wheel *w, struct twheel_op *op, char letter)
{
	*op = op_for(opcode_of(letter), 0);
	if (strchr("CMBmbQ", letter))
		op->id = live_id(w);
	else if (letter == 'N')
		op->id = recent_id(w, 0);
	if (strchr("PJBb", letter))
		draw_past(op);
	else if (strchr("AIMmsx", letter))
		draw_far(op);
	if (strchr("IJmb", letter))
		op->interval = LONG_PERIOD;
	if (op->opcode < TWHEEL_OP_CANCEL)
		op->user_data = random_next(&seed);
	if (strchr("rscxq", letter))
		draw_refused(w, op, letter);
	op->result = 77;
	op->state = 78;
}

/* @head, and then @cycle again and again */
static void draw_batch(struct wheel *w, __u32 nr, const char *head, const char *cycle)
{
	size_t heads = strlen(head), cycles = strlen(cycle);
	__u32 i;

	memset(&batch, 0, offsetof(struct batch, ops));
	batch.nr = nr;
	batch.claimed = nr;
	batch.op_size = sizeof(struct twheel_op);
	batch.offset = 0;
	batch.fault = FAULT_NONE;
	batch.signals = 0;
	for (i = 0; i < nr; i++)
		draw_op(w, &batch.ops[i], i < heads ? head[i] :
			cycle[(i - heads) % cycles]);
}

/* ---- calls ---- */

/* How many elements of this size can be used there? */
static __u32 usable(__u32 nr, __u32 size, __u32 offset, enum fault fault,
		    __u32 bad_page)
{
	__u32 end = bad_page * PAGE;

	if (!fault)
		end = ROOM_PAGES * PAGE;
	if (end < offset)
		return 0;
	return (end - offset) / size < nr ? (end - offset) / size : nr;
}

static char *op_at(__u32 i)
{
	return room.kept + batch.offset + (size_t)i * batch.op_size;
}

static void fill_room(void)
{
	__u32 i;

	for (i = 0; i < batch.nr; i++) {
		op_cut(&batch.ops[i], batch.op_size);
		memcpy(op_at(i), &batch.ops[i], batch.op_size);
	}
}

/*
 * An operation that was not done has no result, and all that it was told. (What
 * else is handed out may have been tried.)
 */
static bool is_untold(struct twheel_op op, struct twheel_op was)
{
	op.state = was.state;
	if (was.opcode == TWHEEL_OP_ARM)
		op.id = was.id;
	if (was.opcode == TWHEEL_OP_QUERY)
		memcpy(&op.deadline, &was.deadline,
		       sizeof(op) - offsetof(struct twheel_op, deadline));
	return !memcmp(&op, &was, sizeof(op));
}

/*
 * One more may be done than lies where it can be written: if all that is told of it
 * does.
 */
static __u32 told_more(__u32 most)
{
	__u32 end = batch.bad_page * PAGE, at = batch.offset + most * batch.op_size;

	return batch.fault == FAULT_READ_ONLY && most < batch.claimed && end > at &&
	       end - at >= 8;
}

static void check_batch(struct wheel *w, __u32 done, __u64 before, __u64 after)
{
	struct twheel_op op = { 0 };
	__u32 i;

	for (i = 0; i < batch.nr; i++) {
		memcpy(&op, op_at(i), batch.op_size);
		if (i < done)
			model_done(w, &batch.ops[i], batch.op_size, &op, before,
				   after);
		else if (!is_untold(op, batch.ops[i]))
			WRONG("operation %u was changed, of %u that were done",
			      i, done);
	}
}

/* A call on an array gave @ret where @most could be done. Gives how many were. */
static __u32 check_done(long ret, __u32 claimed, __u32 most, __u32 more, bool stopped)
{
	bool ok = ret == most || ret == most + more;

	if (!most && claimed)
		ok = ret == -EFAULT || (ret && ret == more);
	if (stopped)
		ok |= ret == -EINTR || (ret > 0 && ret < most);
	if (!ok) {
		WRONG("gave %ld where %u of %u could be done", ret, most, claimed);
		tap_bail("the model can't go on from here: %s", doing);
	}
	return ret > 0 ? ret : 0;
}

static void do_submit(struct wheel *w)
{
	__u32 most = usable(batch.claimed, batch.op_size, batch.offset,
			    batch.fault, batch.bad_page);
	struct twheel_submit arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)room.at + batch.offset,
		.nr = batch.claimed,
		.op_size = batch.op_size,
	};
	__u64 before, after;
	long ret;

	fill_room();
	room_spoil(&room, batch.fault, batch.bad_page);
	before = now(CLOCK_MONOTONIC);
	if (batch.signals)
		nuisance_set(&nuisance, batch.signals);
	ret = wheel_ioctl(w->fd, TWHEEL_IOC_SUBMIT, &arg);
	if (batch.signals)
		nuisance_set(&nuisance, 0);
	after = now(CLOCK_MONOTONIC);
	room_mend(&room, batch.bad_page);
	most = check_done(ret, batch.claimed, most, told_more(most), batch.signals);
	check_batch(w, most, before, after);
	model_check(w);
}

static void do_batch(struct wheel *w, __u32 nr, const char *head, const char *cycle)
{
	draw_batch(w, nr, head, cycle);
	do_submit(w);
}

/* One alone, of any length, in memory that may end in it */
static void do_single(struct wheel *w, char letter, enum fault fault)
{
	const char cycle[] = { letter, 0 };

	draw_batch(w, 1, "", cycle);
	batch.op_size = op_sizes[below(&seed, ARRAY_SIZE(op_sizes))];
	batch.offset = fault ? PAGE - 8 * below(&seed, 2) : 8 * below(&seed, 99);
	batch.fault = fault;
	batch.bad_page = 1;
	do_submit(w);
}

static void do_read(struct wheel *w, __u32 nr, __u32 extra, __u32 offset,
		    enum fault fault, __u32 bad_page)
{
	size_t size = nr * w->event_size + extra, most;
	struct twheel_event event = { 0 };
	__u64 after;
	long ret, i;

	most = usable(nr, w->event_size, offset, fault, bad_page);
	room_spoil(&room, fault, bad_page);
	ret = read(w->fd, room.at + offset, size);
	ret = ret < 0 ? -errno : ret;
	after = now(CLOCK_MONOTONIC);
	room_mend(&room, bad_page);
	if (!nr) {
		check_number("read of too little", ret, -EINVAL);
	} else if (!w->ready) {
		check_number("read of nothing", ret, -EAGAIN);
	} else if (!most) {
		check_number("read to nowhere", ret, -EFAULT);
	} else {
		most = most < w->ready ? most : w->ready;
		check_number("bytes read", ret, most * w->event_size);
	}
	for (i = 0; i < ret; i += w->event_size) {
		memcpy(&event, room.kept + offset + i, w->event_size);
		if (w->ready)
			model_event(w, &event, after);
	}
	model_check(w);
}

static void do_drain(struct wheel *w, __u32 nr, __u32 op_size, __u32 offset,
		     enum fault fault, __u32 bad_page)
{
	__u32 claimed = nr < w->pending ? nr : w->pending, most, i;
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)room.at + offset,
		.nr = nr,
		.op_size = op_size,
	};
	struct twheel_op op = { 0 };
	long ret;

	most = usable(claimed, op_size, offset, fault, bad_page);
	room_spoil(&room, fault, bad_page);
	ret = wheel_ioctl(w->fd, TWHEEL_IOC_DRAIN, &arg);
	room_mend(&room, bad_page);
	most = check_done(ret, claimed, most, 0, false);
	for (i = 0; i < most; i++) {
		memcpy(&op, room.kept + offset + (size_t)i * op_size, op_size);
		model_drained(w, &op, op_size);
	}
	model_check(w);
}

/* Each timer, and some that are none */
static void query_all(struct wheel *w)
{
	__u32 i;

	for (i = 0; i < w->nr_live; i++) {
		struct timer *t = &w->timers[w->live[i]];
		struct twheel_op op;
		long ret = query(w->fd, t->id, &op);

		if (ret)
			WRONG("timer %llx is not found: %ld", t->id, ret);
		else
			check_told(t, &op, sizeof(op));
	}
	for (i = 0; i < 8; i++)
		do_single(w, 'q', FAULT_NONE);
}

/* All comes out. */
static void take_all(struct wheel *w)
{
	while (w->ready)
		do_read(w, 4096, 0, 0, FAULT_NONE, 0);
	while (w->pending)
		do_drain(w, 4096, sizeof(struct twheel_op), 0, FAULT_NONE, 0);
}

/* And nothing is left. */
static void finish(struct wheel *w, bool ask)
{
	if (ask)
		query_all(w);
	take_all(w);
	check_number("timers left", w->nr_live, 0);
	close(w->fd);
}

static void fill(struct wheel *w, __u32 nr)
{
	while (w->nr_live < nr) {
		__u32 n = nr - w->nr_live;

		do_batch(w, n < 256 ? n : 256, "", "A");
	}
}

/* ---- the walks ---- */

/*
 * A chunk that the reservation of one batch brought is nearly empty, and the next
 * batch, which reserved no more, has it given back before it arms timers.
 */
static void test_reserve(void)
{
	struct wheel *w = &wheels[0];

	snprintf(doing, sizeof(doing), "the reservation");
	model_open(w, 0);
	do_batch(w, 60, "", "A");
	do_batch(w, 256, "r", "c");
	do_batch(w, 1, "", "A");
	do_batch(w, 256, "rN", "A");
	finish(w, true);
}

struct shape {
	const char *head;
	const char *cycle;
};

static const struct shape shapes[] = {
	{ "rN", "A" },		/* empty a chunk, then fill it */
	{ "N", "A" },
	{ "rC", "A" },
	{ "AN", "NA" },
	{ "r", "CA" },		/* in turns */
	{ "r", "AC" },
	{ "rN", "I" },		/* two nodes each */
	{ "r", "mA" },		/* a second node for what was there */
	{ "rm", "MA" },		/* and its end */
	{ "", "mMA" },
	{ "rNc", "J" },
	{ "rb", "BJ" },		/* what is ready goes on, or ends */
	{ "s", "xAqQ" },
	{ "Ar", "C" },
	{ "P", "C" },
};

/* From so many timers on, after a batch that reserves all and uses nothing */
static void walk(__u32 timers, __u32 nr, const struct shape *shape)
{
	struct wheel *w = &wheels[0];

	snprintf(doing, sizeof(doing), "%u timers, then %u of %s(%s)", timers, nr,
		 shape->head, shape->cycle);
	model_open(w, 0);
	fill(w, timers);
	do_batch(w, nr, "r", "c");
	do_batch(w, 1, "", "A");
	do_batch(w, nr, shape->head, shape->cycle);
	do_batch(w, nr, shape->head, shape->cycle);
	finish(w, timers < 300 && nr < 10);
}

/* Each with each, as far as they are small: of that the small world consists. */
static void test_small_chunks(void)
{
	__u32 timers, nr;
	size_t s;

	for (timers = 0; timers <= 16; timers += timers % 5 == 1 ? 3 : 1)
		for (nr = 1; nr <= 6; nr++)
			for (s = 0; s < ARRAY_SIZE(shapes); s++)
				walk(timers, nr, &shapes[s]);
}

/* Leave each so many-th of the timers, so that each is alone in a small chunk. */
static void thin_out(struct wheel *w, __u32 each, __u32 from)
{
	__u64 ids[64];
	__u32 nr = w->nr_live, i;

	for (i = 0; i < nr; i++)
		ids[i] = w->timers[w->live[i]].id;
	draw_batch(w, nr, "", "C");
	for (i = 0; i < nr; i++)
		if (i % each != from)
			batch.ops[i].id = ids[i];
		else
			batch.ops[i].id = 0;
	do_submit(w);
}

static const struct shape thin_shapes[] = {
	{ "rCC", "A" }, { "rCC", "I" }, { "rC", "CA" }, { "CC", "A" }, { "rCC", "m" },
	{ "rCm", "CA" }, { "rmC", "CA" }, { "A", "CI" }, { "rCCC", "J" },
};

/* Chunks of which a batch empties several, when it has reserved what is in them */
static void test_thin_chunks(void)
{
	struct wheel *w = &wheels[0];
	__u32 timers, from, nr;
	size_t s;

	for (timers = 10; timers <= 30; timers += 5) {
		for (from = 0; from < 5; from++) {
			for (s = 0; s < ARRAY_SIZE(thin_shapes); s++) {
				snprintf(doing, sizeof(doing), "%u timers, each 5th, %s(%s)",
					 timers, thin_shapes[s].head,
					 thin_shapes[s].cycle);
				model_open(w, 0);
				fill(w, timers);
				thin_out(w, 5, from);
				for (nr = 3; nr < 6; nr++)
					do_batch(w, nr, thin_shapes[s].head,
						 thin_shapes[s].cycle);
				finish(w, true);
			}
		}
	}
}

/* Each with a whole batch, and some with one that is shorter or longer */
static void test_chunks(void)
{
	__u32 timers, nr;
	size_t f, s;

	for (f = 0; f < ARRAY_SIZE(fills); f++) {
		for (s = 0; s < ARRAY_SIZE(shapes); s++) {
			for (timers = fills[f] - 1; timers <= fills[f] + 1; timers++) {
				nr = s < 3 ? 255 + (s + f) % 3 : 256;
				walk(timers, nr, &shapes[s]);
			}
		}
	}
}

static void test_directory(void)
{
	size_t f, s;
	__u32 k;

	for (f = 0; f < ARRAY_SIZE(large_fills); f++)
		for (k = 0; k < 3; k++)
			for (s = 0; s < ARRAY_SIZE(shapes); s += 4)
				walk(large_fills[f] - 1 + k, 256, &shapes[s]);
}

/* Batches of any size, one after the other, on the same wheel */
static void test_batch_sizes(void)
{
	struct wheel *w = &wheels[0];
	size_t b, s;
	__u32 k;

	for (s = 0; s < ARRAY_SIZE(shapes); s++) {
		model_open(w, 0);
		for (b = 0; b < ARRAY_SIZE(batch_sizes); b++) {
			for (k = batch_sizes[b] - 1; k <= batch_sizes[b] + 1; k++) {
				snprintf(doing, sizeof(doing), "a batch of %u %s(%s)",
					 k, shapes[s].head, shapes[s].cycle);
				do_batch(w, k, shapes[s].head, shapes[s].cycle);
			}
		}
		finish(w, true);
	}
}

/* What all wheels of the user may hold: any number, or so much that it is felt */
static void set_user_limit(__u32 limit)
{
	char text[32];
	long ret;

	if (!has_module())
		return;
	snprintf(text, sizeof(text), "%u", limit ? limit : 1U << 30);
	ret = write_text(USER_PARAMETER, text);
	if (ret)
		tap_bail("%s: %s", USER_PARAMETER, strerror(-ret));
	tight = limit;
}

/* At a limit, a timer that ends makes room for the next operation. */
static const struct shape limit_shapes[] = {
	{ "", "A" }, { "", "CA" }, { "AC", "A" }, { "A", "rCA" }, { "rAN", "AI" },
	{ "AAC", "mAM" }, { "P", "CJ" },
};

static void at_limit(struct wheel *w, __u32 timers, __u64 limit, __u32 nr,
		     const struct shape *shape)
{
	snprintf(doing, sizeof(doing),
		 "%u timers, limit %llu, tight %d, then %u of %s(%s)", timers,
		 limit, tight, nr, shape->head, shape->cycle);
	model_open(w, limit);
	fill(w, timers);
	do_batch(w, nr, shape->head, shape->cycle);
	do_batch(w, 1, "", "A");
	do_batch(w, nr, "", "AC");
	finish(w, false);
}

static const __u32 limits[] = { 1, 2, 4, 5, 8, 127, 256, 945 };

static void test_wheel_limit(void)
{
	size_t l, s;
	__u32 below_it;

	for (l = 0; l < ARRAY_SIZE(limits); l++)
		for (s = 0; s < ARRAY_SIZE(limit_shapes); s++)
			for (below_it = 0; below_it < 3; below_it++)
				if (limits[l] >= below_it)
					at_limit(&wheels[0], limits[l] - below_it,
						 limits[l], s & 1 ? 256 : 5,
						 &limit_shapes[s]);
}

/*
 * The user's limit is one of memory, which comes in pieces, so nobody says which timer
 * is the first that is refused. But what is done is done, what is refused is not, and
 * where a timer has ended one can be armed.
 */
static void test_user_limit(void)
{
	static const __u32 room_for[] = { 900, 1700, 1900, 2600, 4200 };
	struct wheel *w = &wheels[0];
	size_t l, s;
	__u32 nr;

	model_open(&wheels[1], 0);
	fill(&wheels[1], 10);
	for (l = 0; l < ARRAY_SIZE(room_for); l++) {
		for (s = 0; s < ARRAY_SIZE(limit_shapes); s++) {
			snprintf(doing, sizeof(doing), "user's limit %u, then %s(%s)",
				 room_for[l], limit_shapes[s].head,
				 limit_shapes[s].cycle);
			model_open(w, 0);
			set_user_limit(room_for[l]);
			for (nr = 3; nr < 9; nr++)
				do_batch(w, nr, limit_shapes[s].head,
					 limit_shapes[s].cycle);
			while (!w->refused && w->nr_live < TIMERS / 2)
				do_batch(w, 257, "", "A");
			for (nr = 3; nr < 6; nr++)
				do_batch(w, nr * nr * nr, limit_shapes[s].head,
					 limit_shapes[s].cycle);
			if (!w->refused)
				WRONG("a limit of %u refused nothing", room_for[l]);
			take_all(w);
			/* A small first piece may be worn out by now. */
			tight = !w->armed || small_world();
			do_batch(w, 1, "", "A");
			set_user_limit(0);
			finish(w, false);
		}
	}
	finish(&wheels[1], true);
}

/* An array that is bad from each page on */
static void test_faulty_batches(void)
{
	struct wheel *w = &wheels[0];
	size_t o, s;
	__u32 page, fault;

	model_open(w, 0);
	for (o = 0; o < ARRAY_SIZE(offsets); o++) {
		for (page = 0; page < 12; page++) {
			fault = 1 + (o + page) % (FAULTS - 1);
			s = (o + page) % ARRAY_SIZE(shapes);
			draw_batch(w, 600, shapes[s].head, shapes[s].cycle);
			batch.op_size = op_sizes[(o + page) / 3 % 3];
			batch.offset = offsets[o];
			batch.fault = fault;
			batch.bad_page = page;
			snprintf(doing, sizeof(doing),
				 "fault %u in page %u, offset %u, size %u", fault,
				 page, batch.offset, batch.op_size);
			do_submit(w);
		}
		if (w->nr_live > 1000)
			take_all(w);
	}
	finish(w, true);
}

/* The same for what is read and drained */
static void test_faulty_taking(void)
{
	struct wheel *w = &wheels[0];
	__u32 page, fault, nr;
	size_t o;

	model_open(w, 0);
	for (o = 0; o < ARRAY_SIZE(offsets); o++) {
		for (page = 0; page < 6; page++) {
			fault = 1 + (o + page) % (FAULTS - 1);
			nr = page * 70 + o;
			snprintf(doing, sizeof(doing), "fault %u in page %u, offset %u",
				 fault, page, offsets[o]);
			do_batch(w, 400, "", "PAJI");
			do_read(w, 400, 5, offsets[o], fault, page);
			do_read(w, 1, 0, PAGE - 8 * o, fault, 1);
			do_read(w, nr, 0, offsets[o], FAULT_NONE, 0);
			do_drain(w, 400, 64, offsets[o], fault, page);
			do_drain(w, nr, op_sizes[page % 3], offsets[o], FAULT_NONE,
				 0);
		}
		while (w->ready > 100)
			do_read(w, 24 + o, 0, 0, FAULT_NONE, 0);
	}
	finish(w, true);
}

static void test_faulty_single(void)
{
	struct wheel *w = &wheels[0];
	const char *letter;
	__u32 fault, i;

	model_open(w, 0);
	fill(w, 20);
	for (i = 0; i < 20; i++) {
		for (letter = LETTERS; *letter; letter++) {
			for (fault = 0; fault < FAULTS; fault++) {
				snprintf(doing, sizeof(doing), "%c with fault %u",
					 *letter, fault);
				do_single(w, *letter, fault);
			}
		}
	}
	finish(w, true);
}

/* ---- random sequences ---- */

static __u32 near_boundary(void)
{
	__u32 nr = batch_sizes[below(&seed, ARRAY_SIZE(batch_sizes))];

	if (one_in(&seed, 30))
		nr = MOST_OPS - 2;
	return nr - 1 + below(&seed, 3);
}

/* Letters that come often are repeated. */
static void random_letters(char *to, size_t max)
{
	size_t n = 1 + below(&seed, max), i;

	for (i = 0; i < n; i++)
		to[i] = LETTERS[below(&seed, strlen(LETTERS))];
	to[n] = 0;
}

static void random_batch(struct wheel *w)
{
	char head[8], cycle[8];
	__u32 nr = near_boundary();

	random_letters(head, 6);
	random_letters(cycle, 4);
	if (!model_has_room(w, nr))
		return;
	draw_batch(w, nr, head, cycle);
	batch.op_size = one_in(&seed, 3) ?
			op_sizes[below(&seed, ARRAY_SIZE(op_sizes))] : 64;
	batch.offset = offsets[below(&seed, ARRAY_SIZE(offsets))];
	if (batch.nr * batch.op_size + batch.offset > ROOM_PAGES * PAGE)
		batch.op_size = 64;
	if (one_in(&seed, 3)) {
		batch.fault = below(&seed, FAULTS);
		batch.bad_page = below(&seed, 8);
	}
	/* Of what lies behind the batch, none may be done: see told_more(). */
	if (batch.fault && one_in(&seed, 4) &&
	    usable(INT_MAX, batch.op_size, batch.offset, batch.fault,
		   batch.bad_page) < nr)
		batch.claimed = INT_MAX;
	if (batch.nr > 500 && one_in(&seed, 2))
		batch.signals = 1000 << below(&seed, 10);
	snprintf(doing + strlen(doing), 80,
		 ": %u of %s(%s), size %u, offset %u, fault %u in page %u", nr,
		 head, cycle, batch.op_size, batch.offset, batch.fault,
		 batch.bad_page);
	do_submit(w);
}

/*
 * Few timers, of which many come and go: where chunks and generations are few, they
 * empty and wear out all the time, in any order.
 */
static void test_small_random(void)
{
	__u64 nr = SMALL_BATCHES * number_of("TIMES", 1), i;
	struct wheel *w = &wheels[0];
	char head[8], cycle[8];

	seed = number_of("SEED", 1) * 2 + 1;
	model_open(w, 0);
	for (i = 0; i < nr && !tap_bad; i++) {
		if (w->given > IDS / 4) {
			finish(w, true);
			model_open(w, 0);
		}
		random_letters(head, 4);
		random_letters(cycle, 3);
		if (w->nr_live > 5 * (i % 9))
			strcpy(cycle, one_in(&seed, 3) ? "CCA" : "C");
		else if (one_in(&seed, 3))
			strcpy(cycle, one_in(&seed, 3) ? "I" : "A");
		snprintf(doing, sizeof(doing), "small batch %llu, %s(%s)", i, head,
			 cycle);
		do_batch(w, 1 + below(&seed, 9), head, cycle);
	}
	finish(w, true);
}

static void random_step(struct wheel *w)
{
	__u32 offset = offsets[below(&seed, ARRAY_SIZE(offsets))];
	enum fault fault = one_in(&seed, 2) ? below(&seed, FAULTS) : 0;

	switch (below(&seed, 8)) {
	case 0:
		do_read(w, near_boundary(), below(&seed, w->event_size), offset, fault,
			below(&seed, 6));
		break;
	case 1:
		do_drain(w, near_boundary(), op_sizes[below(&seed, 3)], offset,
			 fault, below(&seed, 6));
		break;
	case 2:
		do_single(w, LETTERS[below(&seed, strlen(LETTERS))], fault);
		break;
	case 3:
		set_user_limit(one_in(&seed, 2) ? 100 + below(&seed, 9999) : 0);
		break;
	default:
		random_batch(w);
		break;
	}
}

static void random_sequence(__u64 which)
{
	__u32 i;

	seed = which * 2 + 1;
	for (i = 0; i < ARRAY_SIZE(wheels); i++)
		model_open(&wheels[i], i ? 1 + below(&seed, i == 1 ? 300 : 4000) : 0);
	for (i = 0; i < STEPS && !tap_bad; i++) {
		snprintf(doing, sizeof(doing), "sequence %llu, step %u", which, i);
		random_step(&wheels[below(&seed, ARRAY_SIZE(wheels))]);
	}
	snprintf(doing, sizeof(doing), "sequence %llu, the end", which);
	set_user_limit(0);
	for (i = 0; i < ARRAY_SIZE(wheels); i++)
		finish(&wheels[i], one_in(&seed, 4));
}

static void test_random(void)
{
	__u64 first = number_of("SEED", 1), nr = SEQUENCES * number_of("TIMES", 1);
	__u64 i;

	tap_diag("sequences %llu to %llu", first, first + nr - 1);
	for (i = 0; i < nr && !tap_bad; i++)
		random_sequence(first + i);
}

int main(void)
{
	tap_start(110 * number_of("TIMES", 1));
	room_init(&room);
	nuisance_init(&nuisance);
	drop_resource();
	set_user_limit(0);
	seed = 12345;
	RUN(test_reserve, "what a batch reserved is there, whatever it cancels");
	RUN(test_small_chunks, "small batches around the ends of small chunks");
	RUN(test_thin_chunks, "batches that empty several small chunks");
	RUN(test_chunks, "batches around the ends of chunks");
	RUN(test_directory, "batches where the directory grows");
	RUN(test_batch_sizes, "batches of each size around those that are done at once");
	RUN(test_wheel_limit, "batches at the wheel's limit");
	RUN(test_user_limit, "batches at the user's limit");
	RUN(test_faulty_batches, "arrays that are bad from each page on");
	RUN(test_faulty_taking, "reading and draining to what is bad from each page on");
	RUN(test_faulty_single, "operations that end where memory is bad");
	RUN(test_small_random, "small random batches on few timers");
	RUN(test_random, "random sequences");
	return tap_end();
}
