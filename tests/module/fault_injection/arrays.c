// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT and DRAIN with each allocation, each copy and each page of their arrays
 * failing in turn, for operations of each length, in few and in many: what they say
 * was done was done, and nothing else.
 */
#include "model.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Operations in an array: two windows of the module, and a bit */
#define N 400

/* What is left of an answer that was not given */
#define UNTOUCHED 0x5a5a5a5a

/**
 * struct layout - how an array lies in a program's memory
 * @name: for people
 * @offset: of the first operation in its page
 * @op_size: length of the operations
 * @lazy: the program has not touched its pages: they are copied, and even the
 *	tables of them made, when the kernel writes to them
 */
static const struct layout {
	const char *name;
	unsigned int offset;
	unsigned int op_size;
	bool lazy;
} layouts[] = {
	{ "aligned", 0, 64, false },
	{ "aligned, lazy", 0, 64, true },
	{ "some across pages", 32, 64, true },
	{ "not aligned", 12, 64, true },
	{ "up to the user data, not aligned", 20, 32, true },
	{ "up to the user data", 0, 32, true },
	{ "up to the id, lazy", 0, 16, true },
	{ "up to the id, some across pages", 8, 16, true },
};

/* Where arrays lie: far enough apart that each has page tables of its own */
#define ROOM (2UL << 20)

/* So much of it is touched where it is not lazy */
#define TOUCHED (64 * PAGE)

static char *room;

/* What an array holds is kept in a file, so that its pages can be lazy */
static int room_file;

static void make_room(void)
{
	char *p = mmap(NULL, 2 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	room_file = memfd_create("room", MFD_CLOEXEC);
	if (p == MAP_FAILED || room_file < 0 || ftruncate(room_file, ROOM))
		tap_bail("no room: %s", strerror(errno));
	room = (char *)(((unsigned long)p + ROOM - 1) & -ROOM);
}

static void map_room(bool lazy)
{
	void *p = mmap(room, ROOM, PROT_READ | PROT_WRITE,
		       MAP_FIXED | MAP_PRIVATE, room_file, 0);

	if (p != room)
		tap_bail("mmap: %s", strerror(errno));
	if (!lazy && madvise(room, TOUCHED, MADV_POPULATE_WRITE))
		tap_bail("madvise: %s", strerror(errno));
}

static char *place_of(const struct layout *l, unsigned int nr)
{
	return room + l->offset + (size_t)nr * l->op_size;
}

/* Write operations where the program has them */
static void put_ops(const struct layout *l, const struct twheel_op *ops,
		    unsigned int nr)
{
	static char bytes[ROOM];
	size_t len = (size_t)nr * l->op_size;
	unsigned int i;

	for (i = 0; i < nr; i++)
		memcpy(bytes + i * l->op_size, &ops[i], l->op_size);
	if (pwrite(room_file, bytes, len, l->offset) != (ssize_t)len)
		tap_bail("room: %s", strerror(errno));
	map_room(l->lazy);
}

static struct twheel_op get_op(const struct layout *l, unsigned int nr)
{
	struct twheel_op op = {};

	memcpy(&op, place_of(l, nr), l->op_size);
	return op;
}

static long submit_room(struct model *m, const struct layout *l,
			unsigned int from, unsigned int nr)
{
	struct twheel_submit s = {
		.size = sizeof(s),
		.ops = (unsigned long)place_of(l, from),
		.nr = nr,
		.op_size = l->op_size,
	};

	return wheel_ioctl(m->fd, TWHEEL_IOC_SUBMIT, &s);
}

static long drain_room(struct model *m, const struct layout *l, unsigned int nr)
{
	struct twheel_drain d = {
		.size = sizeof(d),
		.ops = (unsigned long)place_of(l, 0),
		.nr = nr,
		.op_size = l->op_size,
	};

	return wheel_ioctl(m->fd, TWHEEL_IOC_DRAIN, &d);
}

static void check_drained(struct model *m, const struct layout *l, long done)
{
	long i;

	for (i = 0; i < done; i++) {
		struct twheel_op op = get_op(l, i);

		model_drained(m, &op, l->op_size);
	}
}

static struct twheel_op ops[3000];

/* An operation that arms a timer: every kind, most of them like most */
static struct twheel_op any_arm(__u64 *seed)
{
	__u64 r = random_next(seed), user_data = random_next(seed) >> 8;
	struct twheel_op op = op_arm(TWHEEL_ABS, FAR + (r >> 16), user_data);

	if (r % 5 == 0)
		op.deadline = 1 + r % 100;
	if (r % 7 == 0) {
		op.interval = FAR;
		op.jitter = r % 2 ? MSEC : 0;
	}
	if (r % 11 == 0)
		op.slack = HOUR;
	return op;
}

/* Any operation, on any timer that is or was there, or on none */
static struct twheel_op any_op(const struct model *m, __u64 *seed)
{
	__u64 r = random_next(seed), id = 0;
	struct twheel_op op;

	if (m->nr)
		id = m->timers[(r >> 32) % m->nr].op.id;
	switch (r % 8) {
	case 0:
	case 1:
		op = any_arm(seed);
		op.opcode = TWHEEL_OP_MODIFY;
		op.id = id;
		return op;
	case 2:
		return op_for(TWHEEL_OP_CANCEL, id);
	case 3:
		return op_for(TWHEEL_OP_QUERY, id);
	case 4:
		op = any_arm(seed);
		op.deadline = KTIME_MAX + 1;
		return op;
	default:
		return any_arm(seed);
	}
}

/* What a shorter operation has no room for is 0 */
static void shorten(struct twheel_op *op, unsigned int op_size)
{
	memset((char *)op + op_size, 0, sizeof(*op) - op_size);
}

/* What each length is there for: operations that arm, or that cancel what was armed */
static void make_plain(struct model *m, unsigned int nr, unsigned int op_size)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		ops[i] = op_arm(TWHEEL_ABS, FAR + i * SEC, i + 1);
	if (op_size >= TWHEEL_OP_SIZE_ONCE)
		return;
	model_arm_all(m, ops, nr);
	for (i = 0; i < nr; i++)
		ops[i] = op_for(TWHEEL_OP_CANCEL, ops[i].id);
}

static void make_mixed(struct model *m, unsigned int nr, unsigned int op_size)
{
	__u64 seed = 88172645463325252ULL;
	unsigned int i;

	for (i = 0; i < nr / 2; i++)
		ops[i] = any_arm(&seed);
	model_arm_all(m, ops, nr / 2);
	for (i = 0; i < nr; i++) {
		ops[i] = any_op(m, &seed);
		shorten(&ops[i], op_size);
	}
}

/* What an operation should give that nothing hinders */
static long any_result(struct model *m, const struct layout *l,
		       const struct twheel_op *op)
{
	if (op->deadline > KTIME_MAX)
		return -EINVAL;
	if (l->op_size < TWHEEL_OP_SIZE_ONCE && op->opcode <= TWHEEL_OP_MODIFY)
		return -EINVAL;
	return model_result(m, op);
}

/* May an operation end without the memory that it wants? */
static bool wants_memory(const struct twheel_op *op)
{
	return op->opcode == TWHEEL_OP_ARM ||
	       (op->opcode == TWHEEL_OP_MODIFY && op->interval);
}

/*
 * What can't be told was not done: it has no result, and can be submitted again as it
 * is. But what else it hands out may have been written to.
 */
static void check_tried(const struct layout *l, unsigned int nr)
{
	struct twheel_op op = get_op(l, nr), was = ops[nr];

	if (was.opcode == TWHEEL_OP_ARM)
		op.id = was.id;
	if (was.opcode == TWHEEL_OP_QUERY)
		memcpy(&op.deadline, &was.deadline, sizeof(op) - TWHEEL_OP_SIZE_ID);
	EXPECT_TRUE(!memcmp(&op, &was, sizeof(op)), "%s: operation %u was not done, but changed",
		    l->name, nr);
}

/*
 * Go through the array as SUBMIT did: what was done is in the model then, and what
 * was not done is as it was. Without a fault every operation gives what it should.
 */
static void check_submitted(struct model *m, const struct layout *l,
			    unsigned int from, unsigned int done,
			    unsigned int nr, bool fault)
{
	unsigned int i;

	for (i = from; i < from + done; i++) {
		struct twheel_op op = get_op(l, i);
		long want = any_result(m, l, &ops[i]);

		if (fault && !want && wants_memory(&ops[i]) &&
		    op.result == -ENOMEM)
			want = -ENOMEM;
		if (EXPECT_EQ(op.result, want, "%s, operation %u", l->name, i) &&
		    !want)
			model_did(m, &op, l->op_size);
	}
	if (i < nr)
		check_tried(l, i++);
	for (; i < nr; i++) {
		struct twheel_op op = get_op(l, i);

		EXPECT_TRUE(!memcmp(&op, &ops[i], sizeof(op)),
			    "%s: operation %u was not done, but touched", l->name, i);
	}
}

static void mark_untouched(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		ops[i].result = UNTOUCHED;
		ops[i].state = UNTOUCHED & 0xffff;
	}
}

/* Submit the array with each fault, and then what the fault left undone. */
static void submit_faults(const struct layout *l,
			  void (*make)(struct model *, unsigned int, unsigned int),
			  unsigned int nr)
{
	struct faults f = { .lazy = l->lazy };

	/* The argument; a page that fails only once can be had when it is tried again. */
	while (faults_next(&f, COPY | (l->lazy ? PAGES : 0), 1)) {
		long done;

		model_open(&model);
		make(&model, nr, l->op_size);
		mark_untouched(nr);
		put_ops(l, ops, nr);
		done = WITH_FAULT(&f, submit_room(&model, l, 0, nr));
		EXPECT_EXPLAINED(&f, done);
		if (!f.kind)
			EXPECT_EQ(done, nr);
		if (f.kind && done >= 0 && done < nr)
			f.refused++;
		done = done < 0 ? 0 : done;
		check_submitted(&model, l, 0, done, nr, f.kind);
		EXPECT_EQ(submit_room(&model, l, done, nr - done), nr - done);
		check_submitted(&model, l, done, nr - done, nr, false);
		model_end(&model);
	}
}

static void test_submit(void (*make)(struct model *, unsigned int, unsigned int),
			unsigned int quick_first)
{
	unsigned int i;

	/* When time is short, every other layout */
	for (i = quick() ? quick_first : 0; i < ARRAY_SIZE(layouts);
	     i += quick() ? 2 : 1)
		submit_faults(&layouts[i], make, N);
}

/* One, and so few that they are copied, and one more than those */
static void test_submit_few(void)
{
	static const unsigned int few[] = { 1, 3, 8, 9, 17, 33 };
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(layouts); i++)
		for (k = 0; k < ARRAY_SIZE(few); k++) {
			if (quick() && (i + k) % 3)
				continue;
			submit_faults(&layouts[i], k % 2 ? make_mixed : make_plain,
				      few[k]);
		}
}

static void test_submit_plain(void)
{
	test_submit(make_plain, 0);
}

static void test_submit_mixed(void)
{
	test_submit(make_mixed, 1);
}

/*
 * Array after array, until there are so many timers that the directory of the
 * chunks has grown, too: whatever has to be had on the way fails first.
 */
static void test_submit_growing(void)
{
	const struct layout *l = &layouts[0];
	const unsigned int nr = 250;
	unsigned int i, rounds = 0, failed = 0;
	struct faults all = {};

	model_open(&model);
	while (model.nr < 16000) {
		/* Begin further on each time: see test_further_arms() of calls.c. */
		struct faults f = { .n = rounds++ % 6, .kind = COPY };

		while (faults_next(&f, 0, 0)) {
			make_plain(NULL, nr, l->op_size);
			put_ops(l, ops, nr);
			if (WITH_FAULT(&f, submit_room(&model, l, 0, nr)) < 0)
				continue;
			for (i = 0; i < nr; i++) {
				struct twheel_op op = get_op(l, i);

				if (!op.result) {
					model_arm(&model, &op);
					continue;
				}
				EXPECT_TRUE(f.kind && op.result == -ENOMEM, "%d",
					    op.result);
				failed++;
			}
		}
		for (i = 0; i < FAULT_KINDS; i++)
			all.hits[i] += f.hits[i];
	}
	tap_diag("%u slabs, %u pages, %u copies; %u operations refused",
		 all.hits[0], all.hits[1], all.hits[2], failed);
	/* Some of what 16 chunks and two directories need */
	EXPECT_TRUE(all.hits[0] >= 4 && all.hits[1] >= 4 && failed);
	model_end(&model);
}

/* No memory at all: what needs none is done nevertheless */
static void test_no_memory(void)
{
	const struct layout *l = &layouts[0];
	const unsigned int nr = 3000;
	unsigned int i, refused = 0;
	long done;

	model_open(&model);
	make_mixed(&model, nr, l->op_size);
	for (i = nr / 2; i < nr; i++)
		ops[i] = op_arm(TWHEEL_ABS, FAR, i);
	mark_untouched(nr);
	put_ops(l, ops, nr);
	memory_fails(true);
	done = submit_room(&model, l, 0, nr);
	memory_fails(false);
	EXPECT_EQ(done, nr);
	for (i = 0; i < nr; i++)
		refused += get_op(l, i).result == -ENOMEM;
	EXPECT_TRUE(refused, "there was memory");
	check_submitted(&model, l, 0, nr, nr, true);
	model_check(&model);

	/* That needs none. */
	memory_fails(true);
	done = drain_room(&model, l, nr);
	memory_fails(false);
	EXPECT_EQ(done, model_count(&model, PENDING));
	check_drained(&model, l, done);
	model_end(&model);
	tap_diag("%u of %u operations refused", refused, nr);
}

/* Timers to drain, of every kind */
static void make_pending(struct model *m, unsigned int nr)
{
	__u64 seed = 1234567;
	unsigned int i;

	for (i = 0; i < nr; i++)
		ops[i] = any_arm(&seed);
	model_arm_all(m, ops, nr);
	/* What DRAIN writes to is not to be taken for what it wrote. */
	memset(ops, UNTOUCHED & 0xff, nr * sizeof(*ops));
}

static void test_drain(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(layouts); i += quick() ? 2 : 1) {
		const struct layout *l = &layouts[i];
		/* Each element is a copy, and so a fault. */
		const unsigned int nr = 90;
		struct faults f = { .lazy = l->lazy };

		while (faults_next(&f, COPY | (l->lazy ? SLAB | PAGES : 0),
				   l->lazy ? 2 : 1)) {
			unsigned int pending;
			long done;

			model_open(&model);
			make_pending(&model, nr);
			put_ops(l, ops, nr);
			pending = model_count(&model, PENDING);
			done = WITH_FAULT(&f, drain_room(&model, l, nr));
			EXPECT_EXPLAINED(&f, done);
			if (!f.kind)
				EXPECT_EQ(done, pending);
			check_drained(&model, l, done);
			model_check(&model);
			pending = model_count(&model, PENDING);
			put_ops(l, ops, nr);
			done = drain_room(&model, l, nr);
			EXPECT_EQ(done, pending);
			check_drained(&model, l, done);
			model_end(&model);
		}
	}
}

/* Pages that no fault takes away, but the program itself */
enum bad { HOLE, NO_ACCESS, READ_ONLY, BAD_KINDS };

static void spoil(unsigned int page, enum bad bad)
{
	char *p = room + page * PAGE;

	if (bad == HOLE)
		munmap(p, PAGE);
	else
		mprotect(p, PAGE, bad == NO_ACCESS ? PROT_NONE : PROT_READ);
}

static void mend(unsigned int page, enum bad bad)
{
	char *p = room + page * PAGE;

	if (bad != HOLE)
		mprotect(p, PAGE, PROT_READ | PROT_WRITE);
	else if (mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE,
		      room_file, page * PAGE) != p)
		tap_bail("mmap: %s", strerror(errno));
}

/* Elements that lie before a page whole */
static unsigned int before_page(const struct layout *l, unsigned int page,
				unsigned int nr)
{
	unsigned int n = page * PAGE > l->offset ?
			 (page * PAGE - l->offset) / l->op_size : 0;

	return n < nr ? n : nr;
}

static void submit_spoilt(const struct layout *l, unsigned int nr,
			  unsigned int page, enum bad bad)
{
	unsigned int good = before_page(l, page, nr);
	long done;

	model_open(&model);
	make_mixed(&model, nr, l->op_size);
	mark_untouched(nr);
	put_ops(l, ops, nr);
	spoil(page, bad);
	done = submit_room(&model, l, 0, nr);
	mend(page, bad);
	/* The page may only be read, and what is told lies before it. */
	if (bad == READ_ONLY && done == good + 1L &&
	    place_of(l, good) + sizeof(__u64) <= room + page * PAGE)
		good++;
	EXPECT_EQ(done, good ? (long)good : -EFAULT, "%s, page %u, bad as %d", l->name,
		  page, bad);
	check_submitted(&model, l, 0, good, nr, false);
	model_check(&model);
	EXPECT_EQ(submit_room(&model, l, good, nr - good), nr - good);
	check_submitted(&model, l, good, nr - good, nr, false);
	model_end(&model);
}

static void drain_spoilt(const struct layout *l, unsigned int nr,
			 unsigned int page, enum bad bad)
{
	unsigned int good, pending;
	long done;

	model_open(&model);
	make_pending(&model, nr);
	put_ops(l, ops, nr);
	spoil(page, bad);
	pending = model_count(&model, PENDING);
	good = before_page(l, page, pending);
	done = drain_room(&model, l, nr);
	mend(page, bad);
	EXPECT_EQ(done, good ? (long)good : -EFAULT, "%s, page %u, bad as %d", l->name,
		  page, bad);
	check_drained(&model, l, good);
	model_check(&model);
	EXPECT_EQ(drain_room(&model, l, nr), pending - good);
	check_drained(&model, l, pending - good);
	model_end(&model);
}

static void test_spoilt(void (*call)(const struct layout *, unsigned int,
				     unsigned int, enum bad))
{
	unsigned int i, page;
	unsigned int bad;

	for (i = 0; i < ARRAY_SIZE(layouts); i++)
		for (bad = 0; bad < BAD_KINDS; bad++)
			for (page = 0; page < 7; page++) {
				/* One kind of each page, when time is short */
				if (quick() && (i + page) % BAD_KINDS != bad)
					continue;
				call(&layouts[i], N, page, bad);
			}
}

static void test_submit_spoilt(void)
{
	test_spoilt(submit_spoilt);
}

static void test_drain_spoilt(void)
{
	test_spoilt(drain_spoilt);
}

static void random_submit(struct faults *f, __u64 *seed)
{
	const struct layout *l = &layouts[random_next(seed) %
					  ARRAY_SIZE(layouts)];
	unsigned int nr = 1 + random_next(seed) % (random_next(seed) % 2 ? 100 : 10);
	unsigned int i;
	long done;

	for (i = 0; i < nr; i++) {
		ops[i] = any_op(&model, seed);
		shorten(&ops[i], l->op_size);
	}
	mark_untouched(nr);
	put_ops(l, ops, nr);
	f->lazy = l->lazy;
	done = WITH_FAULT(f, submit_room(&model, l, 0, nr));
	EXPECT_EXPLAINED(f, done);
	check_submitted(&model, l, 0, done < 0 ? 0 : done, nr, f->kind);
}

static void random_drain(struct faults *f, __u64 *seed)
{
	const struct layout *l = &layouts[random_next(seed) %
					  ARRAY_SIZE(layouts)];
	unsigned int nr = 1 + random_next(seed) % 200;
	long done;

	put_ops(l, ops, nr);
	f->lazy = l->lazy;
	done = WITH_FAULT(f, drain_room(&model, l, nr));
	EXPECT_EXPLAINED(f, done);
	check_drained(&model, l, done);
}

static void random_read(struct faults *f, __u64 *seed)
{
	static struct twheel_event events[100];
	size_t room = 1 + random_next(seed) % ARRAY_SIZE(events);
	long got = WITH_FAULT(f, NEG(read(model.fd, events,
					  room * sizeof(*events))));
	size_t i;

	EXPECT_TRUE(got > 0 || got == (model_count(&model, READY) ? -EFAULT : -EAGAIN),
		    "read gave %ld", got);
	for (i = 0; got > 0 && i < got / sizeof(*events); i++)
		model_event(&model, &events[i], sizeof(events[i]));
}

/* Everything in any order on one wheel, with any fault, or with two */
static void test_random(void)
{
	unsigned int rounds = quick() ? 100 : 5000, i, kinds[8] = {};
	__u64 seed = 20261121;

	model_open(&model);
	for (i = 0; i < rounds; i++) {
		struct faults f = { .n = 1 + random_next(&seed) % 10 };

		switch (random_next(&seed) % 8) {
		case 0:
			random_drain(&f, &seed);
			break;
		case 1:
			random_read(&f, &seed);
			break;
		default:
			random_submit(&f, &seed);
			break;
		}
		kinds[f.kind]++;
		if (i % 10 == 0 || tap_bad)
			model_check(&model);
		if (EXPECT_TRUE(!tap_bad, "round %u", i) && model.nr < 1500)
			continue;
		model_end(&model);
		if (tap_bad)
			return;
		model_open(&model);
	}
	model_end(&model);
	tap_diag("%u rounds, in %u no fault", rounds, kinds[0]);
	EXPECT_TRUE(kinds[SLAB] && kinds[PAGES] && kinds[COPY]);
}

int main(void)
{
	tap_start(PATIENCE_S);
	faults_start();
	make_room();
	RUN(test_submit_plain, "SUBMIT that arms");
	RUN(test_submit_mixed, "SUBMIT of everything");
	RUN(test_submit_few, "SUBMIT of few");
	RUN(test_submit_growing, "SUBMIT after SUBMIT");
	RUN(test_no_memory, "SUBMIT and DRAIN without any memory");
	RUN(test_drain, "DRAIN");
	RUN(test_submit_spoilt, "SUBMIT of an array with a bad page");
	RUN(test_drain_spoilt, "DRAIN into an array with a bad page");
	RUN(test_random, "SUBMIT, DRAIN and read at random");
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
