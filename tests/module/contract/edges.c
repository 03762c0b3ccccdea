// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays of each kind, of a few elements or many, that end where memory ends or
 * can't be written: as many are done as the call says, and of the others nothing.
 *
 * Environment: TIMES=2 or more for all places at which long arrays are cut.
 *
 * also in: matrix
 */
#include "device.h"

#define MOST 257
#define GOOD_PAGES 8		/* of the memory, before what is bad */
#define UNTOLD 0x5a5a

/* What comes after the memory that is good */
enum fault { READ_ONLY, HIDDEN, UNMAPPED, END_OF_ADDRESSES, FAULTS };

static const __u32 lengths[] = { 2, 17, MOST };
static const __u32 sizes[] = {
	TWHEEL_OP_SIZE_ID, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_FULL,
};

/* An array of @nr elements, of which so many bytes lie before what is bad */
struct array {
	__u32 nr, size, good;
	enum fault fault;
};

static struct array array;
static char *ends[FAULTS];	/* where good memory ends, as the calls see it */
static char *kept;		/* that place in memory that is all there */
static char before[MOST * sizeof(struct twheel_op)];
static __u64 ids[MOST];
static int fd;
static bool short_form;

/* The pages of a file, once more */
static char *map_again(int file, char *at, size_t pages, int prot)
{
	if (mmap(at, pages * PAGE, prot, MAP_SHARED | MAP_FIXED, file, 0) != at)
		tap_bail("mmap: %s", strerror(errno));
	return at;
}

static void map_all(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int file = memfd_create("arrays", MFD_CLOEXEC);
	enum fault fault;

	if (file < 0 || ftruncate(file, 2 * GOOD_PAGES * PAGE))
		tap_bail("memfd_create: %s", strerror(errno));
	kept = map_again(file, map_pages(2 * GOOD_PAGES, rw), 2 * GOOD_PAGES, rw) +
	       GOOD_PAGES * PAGE;
	for (fault = READ_ONLY; fault < END_OF_ADDRESSES; fault++)
		ends[fault] = map_again(file, map_pages(2 * GOOD_PAGES, rw), 2 * GOOD_PAGES, rw) +
			      GOOD_PAGES * PAGE;
	if (mprotect(ends[READ_ONLY], PAGE, PROT_READ) || mprotect(ends[HIDDEN], PAGE, PROT_NONE) ||
	    munmap(ends[UNMAPPED], PAGE))
		tap_bail("mprotect or munmap: %s", strerror(errno));
	ends[END_OF_ADDRESSES] = map_top(GOOD_PAGES);
	map_again(file, ends[END_OF_ADDRESSES] - GOOD_PAGES * PAGE, GOOD_PAGES, rw);
}

static void *array_at(void)
{
	return ends[array.fault] - array.good;
}

static char *kept_at(__u32 i)
{
	return kept - array.good + i * array.size;
}

static struct twheel_op op_at(__u32 i)
{
	struct twheel_op op = { 0 };

	memcpy(&op, kept_at(i), array.size);
	return op;
}

static void complain(const char *what, long got)
{
	EXPECT_TRUE(false, "%s of %u elements of %u, %u bytes before fault %u: %ld", what,
		    array.nr, array.size, array.good, array.fault, got);
}

/* How many were done, by what the call gave: all that are whole, and @more may be */
static __u32 check_count(const char *what, long ret, __u32 more)
{
	__u32 done = ret > 0 ? ret : 0, whole = array.good / array.size;

	if ((done != whole && done != whole + more) || (!done && ret != -EFAULT))
		complain(what, ret);
	return done;
}

/*
 * Short arrays end too soon at each byte, long ones where a field begins or ends; in the
 * short form not before each kind of what is bad.
 */
static void each_cut(void (*fn)(void))
{
	const __u32 at[] = { 0, 1, array.nr / 2, array.nr - 1, array.nr };
	const __u32 within[] = {
		0, 1, 7, 8, 9, 15, array.size / 2, array.size - 8, array.size - 1,
	};
	size_t i, k;

	if (array.nr <= 2) {
		for (array.good = 0; array.good <= array.nr * array.size; array.good++)
			if (!short_form || (array.good + array.fault) % 2)
				fn();
		return;
	}
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		for (k = 0; k < ARRAY_SIZE(within); k++) {
			if (short_form && (i + k + array.fault) % 3)
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
			for (array.fault = READ_ONLY; array.fault < FAULTS; array.fault++) {
				array.size = sizes[s];
				array.nr = lengths[n];
				each_cut(fn);
			}
		}
	}
}

/* ---- SUBMIT ---- */

static __u8 opcode;

/* Timers for the call to be about: each third is ready, or none */
static void arm_victims(bool some_ready)
{
	static struct twheel_op ops[MOST];
	__u32 i;

	for (i = 0; i < array.nr; i++)
		ops[i] = op_arm(0, i % 3 || !some_ready ? HOUR : 0, i);
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
		memcpy(kept_at(i), &op, array.size);
	}
	memcpy(before, kept_at(0), array.nr * array.size);
}

/* ARM and MODIFY say no more than that when they are too short */
static long wanted(void)
{
	return array.size < TWHEEL_OP_SIZE_ONCE && opcode < TWHEEL_OP_CANCEL ? -EINVAL : 0;
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

/* What the wheel says of timers: of those that the batch was about, or that it made */
static const struct twheel_op *query_all(__u32 nr)
{
	static struct twheel_op ops[MOST];
	__u32 i;

	for (i = 0; i < nr; i++)
		ops[i] = op_for(TWHEEL_OP_QUERY, opcode == TWHEEL_OP_ARM ? op_at(i).id : ids[i]);
	if (nr && submit(fd, ops, nr) != nr)
		tap_bail("QUERY of %u", nr);
	return ops;
}

/* Operation @i was done or not: so its timer is like that */
static void check_timer(const struct twheel_op *op, __u32 i, bool done)
{
	const __u16 state = i % 3 ? TWHEEL_STATE_PENDING : TWHEEL_STATE_READY;
	bool modified = done && opcode == TWHEEL_OP_MODIFY;

	if (op->result != (done && opcode == TWHEEL_OP_CANCEL ? -ENOENT : 0))
		complain("a timer's QUERY", op->result);
	if (op->result)
		return;
	if (op->user_data != (modified ? 1000 + i : i) ||
	    op->state != (modified ? TWHEEL_STATE_PENDING : state))
		complain(modified ? "modified, and user data" : "not modified, and user data",
			 op->user_data);
}

static void check_victims(__u32 done)
{
	const struct twheel_op *ops = query_all(array.nr);
	__u32 i;

	for (i = 0; i < array.nr; i++)
		check_timer(&ops[i], i, i < done && !wanted());
}

/* Those that were armed are all that there is */
static void check_armed(__u32 done)
{
	__u32 armed = wanted() ? 0 : done, i;
	const struct twheel_op *ops = query_all(armed);

	if (wheel_info(fd).pending != armed || wheel_stats(fd).armed != armed)
		complain("armed", wheel_stats(fd).armed);
	for (i = 0; i < armed; i++)
		if (ops[i].result || ops[i].user_data != 1000 + i)
			complain("armed, and user data", ops[i].user_data);
}

/* One that can't be written as a whole may be done if all can be told of it */
static __u32 may_be_done(void)
{
	__u32 told = offsetof(struct twheel_op, id);

	if (opcode == TWHEEL_OP_ARM && !wanted())
		told = offsetof(struct twheel_op, deadline);
	else if (opcode == TWHEEL_OP_QUERY && array.size > TWHEEL_OP_SIZE_ID)
		told = array.size;

	return array.fault == READ_ONLY && array.good % array.size >= told;
}

static void submit_cut(void)
{
	__u32 done;

	fd = wheel_open(O_NONBLOCK);
	memset(ids, 0, sizeof(ids));
	if (opcode != TWHEEL_OP_ARM)
		arm_victims(true);
	fill_array();
	done = check_count("SUBMIT", submit_sized(fd, array_at(), array.nr, array.size),
			   may_be_done());
	check_told(done);
	if (opcode == TWHEEL_OP_ARM)
		check_armed(done);
	else
		check_victims(done);
	close(fd);
}

static void submit_cuts(__u8 of)
{
	opcode = of;
	each_array(submit_cut);
}

/* ---- DRAIN ---- */

/* Each timer is told of or still there */
static void drain_cut(void)
{
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)array_at(),
		.nr = array.nr,
		.op_size = array.size,
	};
	__u32 done, i, k;

	fd = wheel_open(O_NONBLOCK);
	arm_victims(false);
	memset(kept_at(0), 0, array.nr * array.size);
	done = check_count("DRAIN", wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &arg), 0);
	if (wheel_info(fd).pending != array.nr - done)
		complain("DRAIN: still pending", wheel_info(fd).pending);
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

/* ---- read ---- */

static __u64 user_data_of(const char *event)
{
	__u64 user_data;

	memcpy(&user_data, event, sizeof(user_data));
	return user_data;
}

static void read_cut(void)
{
	__u32 done, i;
	long got;

	/* (At the end of all addresses it is read(2) itself that says no.) */
	if (array.size > sizeof(struct twheel_event) || array.fault == END_OF_ADDRESSES)
		return;
	fd = wheel_open(O_NONBLOCK);
	got = setup_with(fd, .clock = TWHEEL_CLOCK_MONOTONIC, .event_size = array.size);
	if (got)
		tap_bail("events of %u bytes", array.size);
	arm_numbered(fd, TWHEEL_ABS, 1, 0, array.nr);
	got = read_raw(fd, array_at(), array.nr * array.size);
	if (got > 0 && got % array.size)
		complain("read gave bytes", got);
	done = check_count("read", got > 0 ? got / array.size : got, 0);
	for (i = 0; i < done; i++)
		if (user_data_of(kept_at(i)) != i)
			complain("read: not in order", i);
	if (wheel_info(fd).ready != array.nr - done)
		complain("read: still ready", wheel_info(fd).ready);
	got = read_raw(fd, before, array.nr * array.size);
	if (got != (done < array.nr ? (long)(array.nr - done) * array.size : -EAGAIN))
		complain("read: the rest", got);
	for (i = done; i < array.nr && got > 0; i++)
		if (user_data_of(before + (i - done) * array.size) != i)
			complain("read: the rest is not in order", i);
	close(fd);
}

int main(void)
{
	tap_start(110 * number_of("TIMES", 1));
	short_form = number_of("TIMES", 1) == 1;
	map_all();
	RUN_CALL(submit_cuts(TWHEEL_OP_ARM), "SUBMIT of ARM");
	RUN_CALL(submit_cuts(TWHEEL_OP_MODIFY), "SUBMIT of MODIFY");
	RUN_CALL(submit_cuts(TWHEEL_OP_CANCEL), "SUBMIT of CANCEL");
	RUN_CALL(submit_cuts(TWHEEL_OP_QUERY), "SUBMIT of QUERY");
	RUN_CALL(each_array(drain_cut), "DRAIN");
	RUN_CALL(each_array(read_cut), "read");
	return tap_end();
}
