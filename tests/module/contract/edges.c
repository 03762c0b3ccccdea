// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays of each kind, of a few elements or many, that end where memory ends or
 * can't be written: as many are done as the call says, and of the others nothing.
 *
 * Environment: TIMES=2 or more for all places at which long arrays are cut.
 */
#include "disturb.h"

#define MOST 257
#define BAD_PAGE 8		/* of the room: the first that is bad */
#define BYTES (MOST * sizeof(struct twheel_op))
#define UNTOLD 0x5a5a

static const __u32 lengths[] = { 1, 2, 15, 16, 17, 256, 257 };
static const __u32 sizes[] = {
	TWHEEL_OP_SIZE_ID, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_FULL,
};

/* An array of @nr elements, of which so many bytes lie before what is bad */
struct array {
	__u32 nr, size, good;
	enum fault fault;
};

static struct room room;
static struct array array;
static char before[BYTES];
static __u64 ids[MOST];
static int fd;

static bool short_form;

static char *seen_at(__u32 i)
{
	return room.kept + BAD_PAGE * PAGE - array.good + i * array.size;
}

static struct twheel_op op_at(__u32 i)
{
	struct twheel_op op = { 0 };

	memcpy(&op, seen_at(i), array.size);
	return op;
}

static void *array_at(void)
{
	return room.at + BAD_PAGE * PAGE - array.good;
}

static __u32 whole(void)
{
	return array.good / array.size;
}

static void complain(const char *what, long got)
{
	EXPECT_TRUE(false, "%s of %u elements of %u, %u bytes before fault %u: %ld", what,
		    array.nr, array.size, array.good, array.fault, got);
}

/* How many were done, by what the call gave; @more may be */
static __u32 check_count(const char *what, long ret, __u32 more)
{
	__u32 done = ret > 0 ? ret : 0;

	if ((done != whole() && done != whole() + more) ||
	    (!done && ret != -EFAULT))
		complain(what, ret);
	return done;
}

/* Where an array of @nr elements is cut: between any two, and within one */
static void each_cut(void (*fn)(void))
{
	const __u32 at[] = { 0, 1, array.nr / 2, array.nr - 1, array.nr };
	const __u32 within[] = {
		0, 1, 7, 8, 9, 15, array.size / 2, array.size - 8, array.size - 1,
	};
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		for (k = 0; k < ARRAY_SIZE(within); k++) {
			/* Of long ones, each of these places somewhere */
			if (short_form && array.nr > 17 && (i + k) % 3)
				continue;
			array.good = at[i] * array.size + within[k];
			if (array.good <= array.nr * array.size)
				fn();
		}
	}
}

static void each_array(void (*fn)(void))
{
	size_t s, n;

	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		for (n = 0; n < ARRAY_SIZE(lengths); n++) {
			for (array.fault = 1; array.fault < FAULTS; array.fault++) {
				array.size = sizes[s];
				array.nr = lengths[n];
				each_cut(fn);
			}
		}
	}
}

/* ---- SUBMIT ---- */

static __u8 opcode;

/* Timers for the batch to be about: each third is ready */
static void arm_victims(void)
{
	static struct twheel_op ops[MOST];
	__u32 i;

	for (i = 0; i < array.nr; i++)
		ops[i] = op_arm(0, i % 3 ? HOUR : 0, i);
	submit_all(fd, ops, array.nr);
	for (i = 0; i < array.nr; i++)
		ids[i] = ops[i].id;
}

static void fill_array(void)
{
	__u32 i;

	for (i = 0; i < array.nr; i++) {
		struct twheel_op op = op_for(opcode, ids[i]);

		op.state = 77;
		op.result = UNTOLD;
		op.deadline = opcode < TWHEEL_OP_CANCEL ? 2 * HOUR : 0;
		op.user_data = opcode < TWHEEL_OP_CANCEL ? 1000 + i : 0;
		memcpy(seen_at(i), &op, array.size);
	}
	memcpy(before, seen_at(0), array.nr * array.size);
}

/* ARM and MODIFY say no more than that when they are too short */
static long wanted(void)
{
	return array.size < TWHEEL_OP_SIZE_ONCE && opcode < TWHEEL_OP_CANCEL ?
	       -EINVAL : 0;
}

/*
 * An operation that was not done has no result, and all that it was told. (What
 * else is handed out may have been tried.)
 */
static bool is_untold(__u32 i)
{
	struct twheel_op op = op_at(i), was = { 0 };

	memcpy(&was, before + i * array.size, array.size);
	op.state = was.state;
	if (opcode == TWHEEL_OP_ARM)
		op.id = was.id;
	if (opcode == TWHEEL_OP_QUERY)
		memcpy(&op.deadline, &was.deadline,
		       sizeof(op) - offsetof(struct twheel_op, deadline));
	return !memcmp(&op, &was, sizeof(op));
}

static void check_told(__u32 done)
{
	__u32 i;

	for (i = 0; i < array.nr; i++) {
		if (i < done && op_at(i).result != wanted())
			complain("result", op_at(i).result);
		if (i >= done && !is_untold(i))
			complain("changed, though not done", i);
	}
}

/* What the wheel says of timers: in batches, for they are many */
static const struct twheel_op *query_all(__u32 nr, __u64 (*id)(__u32 i))
{
	static struct twheel_op ops[MOST];
	__u32 done = 0, i;

	for (i = 0; i < nr; i++)
		ops[i] = op_for(TWHEEL_OP_QUERY, id(i));
	while (done < nr) {
		long ret = submit(fd, ops + done, nr - done);

		if (ret <= 0)
			tap_bail("QUERY of %u: %ld", nr - done, ret);
		done += ret;
	}
	return ops;
}

/* Operation @i was done or not: so its timer is like that */
static void check_timer(const struct twheel_op *op, __u32 i, bool done)
{
	done = done && !wanted();
	if (op->result != (done && opcode == TWHEEL_OP_CANCEL ? -ENOENT : 0))
		complain("a timer's QUERY", op->result);
	if (op->result)
		return;
	if (done && opcode == TWHEEL_OP_MODIFY) {
		if (op->user_data != 1000 + i || op->state != TWHEEL_STATE_PENDING)
			complain("modified, and user data", op->user_data);
	} else if (op->user_data != i ||
		   op->state != (i % 3 ? TWHEEL_STATE_PENDING :
				 TWHEEL_STATE_READY)) {
		complain("not modified, and user data", op->user_data);
	}
}

static __u64 victim(__u32 i)
{
	return ids[i];
}

static void check_victims(__u32 done)
{
	const struct twheel_op *ops = query_all(array.nr, victim);
	__u32 i;

	for (i = 0; i < array.nr; i++)
		check_timer(&ops[i], i, i < done);
}

static __u64 armed_id(__u32 i)
{
	return op_at(i).id;
}

/* Those that were armed are all that there is */
static void check_armed(__u32 done)
{
	__u32 armed = wanted() ? 0 : done, i;
	const struct twheel_op *ops = query_all(armed, armed_id);

	if (wheel_info(fd).pending != armed || wheel_stats(fd).armed != armed)
		complain("armed", wheel_stats(fd).armed);
	for (i = 0; i < armed; i++)
		if (ops[i].result || ops[i].user_data != 1000 + i)
			complain("armed, and user data", ops[i].user_data);
}

/* One that can't be written as a whole may be done if all can be told of it */
static __u32 may_be_done(void)
{
	__u32 told = 8;

	if (opcode == TWHEEL_OP_ARM && !wanted())
		told = 16;
	else if (opcode == TWHEEL_OP_QUERY && array.size > TWHEEL_OP_SIZE_ID)
		told = array.size;

	return array.fault == FAULT_READ_ONLY && array.good % array.size >= told;
}

static void submit_cut(void)
{
	__u32 done;

	fd = wheel_open(O_NONBLOCK);
	memset(ids, 0, sizeof(ids));
	if (opcode != TWHEEL_OP_ARM)
		arm_victims();
	fill_array();
	room_spoil(&room, array.fault, BAD_PAGE);
	done = check_count("SUBMIT",
			   submit_sized(fd, array_at(), array.nr, array.size),
			   may_be_done());
	room_mend(&room, BAD_PAGE);
	check_told(done);
	if (opcode == TWHEEL_OP_ARM)
		check_armed(done);
	else
		check_victims(done);
	close(fd);
}

static void test_arm(void)
{
	opcode = TWHEEL_OP_ARM;
	each_array(submit_cut);
}

static void test_modify(void)
{
	opcode = TWHEEL_OP_MODIFY;
	each_array(submit_cut);
}

static void test_cancel(void)
{
	opcode = TWHEEL_OP_CANCEL;
	each_array(submit_cut);
}

static void test_query(void)
{
	opcode = TWHEEL_OP_QUERY;
	each_array(submit_cut);
}

/* ---- DRAIN ---- */

static long drain_array(void)
{
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)array_at(),
		.nr = array.nr,
		.op_size = array.size,
	};
	long ret;

	room_spoil(&room, array.fault, BAD_PAGE);
	ret = wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &arg);
	room_mend(&room, BAD_PAGE);
	return ret;
}

/* Each timer is told of or still there */
static void drain_cut(void)
{
	__u32 done, i, k;

	fd = wheel_open(O_NONBLOCK);
	for (i = 0; i < array.nr; i++)
		ids[i] = arm(fd, 0, HOUR, i);
	memset(seen_at(0), 0, array.nr * array.size);
	done = check_count("DRAIN", drain_array(), 0);
	for (i = 0; i < done; i++) {
		__u64 id = op_at(i).id;

		for (k = 0; k < array.nr && ids[k] != id; k++)
			;
		if (k == array.nr || cancel(fd, id) != -ENOENT)
			complain("DRAIN told of no timer", id);
		else
			ids[k] = 0;
	}
	for (k = 0; k < array.nr; k++)
		if (ids[k] && cancel(fd, ids[k]))
			complain("DRAIN took untold a timer", k);
	close(fd);
}

static void test_drain(void)
{
	each_array(drain_cut);
}

/* ---- read ---- */

static void read_setup(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = array.size,
	};

	fd = wheel_open(O_NONBLOCK);
	if (wheel_ioctl(fd, TWHEEL_IOC_SETUP, &setup))
		tap_bail("events of %u bytes", array.size);
}

static long read_array(void)
{
	long ret;

	room_spoil(&room, array.fault, BAD_PAGE);
	ret = read(fd, array_at(), array.nr * array.size);
	ret = ret < 0 ? -errno : ret;
	room_mend(&room, BAD_PAGE);
	if (ret > 0 && ret % array.size)
		complain("read gave bytes", ret);
	return ret > 0 ? ret / array.size : ret;
}

static __u64 user_data_of(const char *event)
{
	__u64 user_data;

	memcpy(&user_data, event, sizeof(user_data));
	return user_data;
}

static void read_cut(void)
{
	__u32 done, i;
	long left;

	if (array.size > sizeof(struct twheel_event))
		return;
	read_setup();
	for (i = 0; i < array.nr; i++)
		arm_past(fd, i);
	done = check_count("read", read_array(), 0);
	for (i = 0; i < done; i++)
		if (user_data_of(seen_at(i)) != i)
			complain("read: not in order", i);
	if (wheel_info(fd).ready != array.nr - done)
		complain("read: still ready", wheel_info(fd).ready);
	left = read(fd, room.kept, array.nr * array.size);
	if (left != (done < array.nr ? (long)(array.nr - done) * array.size : -1))
		complain("read: the rest", left);
	for (i = done; i < array.nr && left > 0; i++)
		if (user_data_of(room.kept + (i - done) * array.size) != i)
			complain("read: the rest is not in order", i);
	close(fd);
}

static void test_read(void)
{
	each_array(read_cut);
}

int main(void)
{
	tap_start(110 * number_of("TIMES", 1));
	short_form = number_of("TIMES", 1) == 1;
	room_init(&room);
	RUN(test_arm, "SUBMIT of ARM");
	RUN(test_modify, "SUBMIT of MODIFY");
	RUN(test_cancel, "SUBMIT of CANCEL");
	RUN(test_query, "SUBMIT of QUERY");
	RUN(test_drain, "DRAIN");
	RUN(test_read, "read");
	return tap_end();
}
