// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose other thread takes away, or writes over, the memory that a
 * call works on at that very moment. The kernel holds; and what the call said
 * was done was done, and nothing else.
 *
 * The memory is there twice: in the view that the calls get pages come and go,
 * in the other one all stays and can be looked at.
 *
 * also in: sanitize small
 */
#include "device.h"

#define N 256
#define PAGES (N * sizeof(struct twheel_op) / PAGE)
#define SIZE (PAGES * PAGE)
#define ROUNDS_NS (150 * MSEC * number_of("TIMES", 1))

static char *shaky, *steady;
static int fd;
static bool stop;
static int disturbed;

static void map_views(void)
{
	int memory = memfd_create("views", MFD_CLOEXEC);
	const int prot = PROT_READ | PROT_WRITE;

	if (memory < 0 || ftruncate(memory, SIZE))
		tap_bail("memfd: %s", strerror(errno));
	shaky = mmap(NULL, SIZE, prot, MAP_SHARED, memory, 0);
	steady = mmap(NULL, SIZE, prot, MAP_SHARED, memory, 0);
	if (shaky == MAP_FAILED || steady == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	close(memory);
}

/* Pages come and go: unreadable, read-only, or not there for the moment */
static void *taker(void *arg)
{
	static const int prots[] = { PROT_NONE, PROT_READ };
	__u64 seed = 17;

	(void)arg;
	pin_to(1);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__u64 r = random_next(&seed);
		char *page = shaky + r % PAGES * PAGE;

		if (r >> 32 & 1)
			madvise(page, PAGE, MADV_DONTNEED);
		mprotect(page, PAGE, prots[r >> 33 & 1]);
		sched_yield();
		mprotect(page, PAGE, PROT_READ | PROT_WRITE);
		sched_yield();
	}
	return NULL;
}

static void *scribbler(void *arg)
{
	__u64 seed = 23;

	(void)arg;
	pin_to(1);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__u64 r = random_next(&seed);

		/* mostly small numbers, which mean something */
		*(__u64 *)(steady + r % (SIZE / 8) * 8) =
			r >> (r >> 40 & 63);
	}
	return NULL;
}

static void during(void *(*other)(void *), void (*fn)(void))
{
	__u64 end = now(CLOCK_MONOTONIC) + ROUNDS_NS;
	pthread_t thread;

	pin_to(0);
	stop = false;
	disturbed = 0;
	fd = wheel_open(O_NONBLOCK);
	thread_start(&thread, other, NULL);
	/* as long as it takes for the other one to get in between */
	while (now(CLOCK_MONOTONIC) < end ||
	       (other == taker && disturbed < 3 &&
		now(CLOCK_MONOTONIC) < end + PATIENCE_MS * MSEC))
		fn();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close(fd);
}

/* A count, or EFAULT when there was none */
static long counted(long ret, long most)
{
	disturbed += ret < most;
	EXPECT_TRUE(ret == -EFAULT || ret == -EAGAIN || (ret >= 0 && ret <= most),
		    "got %ld", ret);
	return ret > 0 ? ret : 0;
}

/* How the operations of a round lie there: a whole batch, or a few at a page's end */
struct shape {
	__u32 nr, size, offset;
};

static const struct shape shapes[] = {
	{ N, TWHEEL_OP_SIZE_FULL, 0 },
	{ N, TWHEEL_OP_SIZE_ONCE, 40 },
	{ 16, TWHEEL_OP_SIZE_ONCE, PAGE - 8 * 32 },
	{ 7, TWHEEL_OP_SIZE_FULL, PAGE - 200 },
	{ N, TWHEEL_OP_SIZE_ID, PAGE - 8 },
	{ 16, TWHEEL_OP_SIZE_ID, PAGE - 100 },
	{ 3, TWHEEL_OP_SIZE_ID, PAGE - 24 },
};

static const struct shape *shape;

static void put_op(__u32 i, struct twheel_op op)
{
	memcpy(steady + shape->offset + i * shape->size, &op, shape->size);
}

static struct twheel_op get_op(__u32 i)
{
	struct twheel_op op = { 0 };

	memcpy(&op, steady + shape->offset + i * shape->size, shape->size);
	return op;
}

static long submit_shaky(void)
{
	return counted(submit_sized(fd, shaky + shape->offset, shape->nr,
				    shape->size), shape->nr);
}

static void round_arm(void)
{
	static struct twheel_op ops[N];
	long n, i;

	for (i = 0; i < shape->nr; i++)
		put_op(i, op_arm(0, HOUR, i));
	n = submit_shaky();
	for (i = 0; i < n; i++) {
		EXPECT_EQ(get_op(i).result, 0, "operation %ld of %ld", i, n);
		ops[i] = op_for(TWHEEL_OP_CANCEL, get_op(i).id);
	}
	EXPECT_EQ(wheel_info(fd).pending, n, "what the program doesn't know of");
	if (n)
		submit_all(fd, ops, n);
	EXPECT_EQ(wheel_info(fd).pending, 0);
}

static void each_shape(void (*fn)(void), __u32 least_size)
{
	for (shape = shapes; shape < shapes + ARRAY_SIZE(shapes); shape++) {
		if (shape->size < least_size)
			continue;
		during(taker, fn);
		EXPECT_TRUE(disturbed, "never disturbed: %u of %u", shape->nr,
			    shape->size);
	}
}

#define UNTOLD 0x5a5a

/*
 * The timers of the batch whose operation was answered are gone, and all
 * others as they were.
 */
static void round_cancel(void)
{
	static struct twheel_op ops[N];
	long n, i;

	for (i = 0; i < shape->nr; i++)
		ops[i] = op_arm(0, HOUR, i);
	submit_all(fd, ops, shape->nr);
	for (i = 0; i < shape->nr; i++) {
		struct twheel_op op = op_for(TWHEEL_OP_CANCEL, ops[i].id);

		op.result = UNTOLD;
		put_op(i, op);
	}
	n = submit_shaky();
	for (i = 0; i < shape->nr; i++) {
		struct twheel_op op;

		EXPECT_EQ(get_op(i).result, i < n ? 0 : UNTOLD, "operation %ld of %ld", i, n);
		EXPECT_EQ(query(fd, ops[i].id, &op), i < n ? -ENOENT : 0,
			  "timer %ld, %ld were done", i, n);
		EXPECT_TRUE(i < n || op.user_data == (__u64)i, "%llu", op.user_data);
	}
	while (drain(fd, ops, N) > 0)
		;
}

/* Whatever comes out of it, the kernel takes each word once and believes it */
static void round_scribbled(void)
{
	__u32 size;

	for (size = 16; size <= sizeof(struct twheel_op); size *= 2) {
		EXPECT_EQ(submit_sized(fd, shaky, SIZE / size, size), SIZE / size);
		EXPECT_EQ(submit_sized(fd, shaky + PAGE - size, 3, size), 3);
	}
	drain(fd, (struct twheel_op *)shaky, N);
	read_events(fd, (struct twheel_event *)shaky, N);
}

/* ---- what the program stores to an operation meanwhile ---- */

static int undone;

/* To what the kernel only reads */
static void *keeper(void *arg)
{
	struct twheel_op *ops = (struct twheel_op *)steady;
	__u64 seed = 37;

	(void)arg;
	pin_to(1);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__u64 r = random_next(&seed), *p = &ops[r % 8].id;
		int i;

		if (r >> 32 & 1)
			p = &ops[r % 8].user_data;
		__atomic_store_n(p, r, __ATOMIC_RELAXED);
		for (i = 0; i < (int)(r >> 40 & 255); i++)
			asm volatile("" : : : "memory");
		undone += __atomic_load_n(p, __ATOMIC_RELAXED) != r;
	}
	return NULL;
}

static void round_kept(void)
{
	struct twheel_op *ops = (struct twheel_op *)shaky;
	int i;

	for (i = 0; i < 8; i++) {
		ops[i].opcode = i % 2 ? TWHEEL_OP_MODIFY : TWHEEL_OP_CANCEL;
		ops[i].slack = 1;
	}
	submit(fd, ops, 8);
	for (i = 0; i < 8; i++)
		submit(fd, &ops[i], 1);
	submit(fd, ops, N);
}

static void test_kept(void)
{
	memset(steady, 0, SIZE);
	undone = 0;
	during(keeper, round_kept);
	EXPECT_EQ(undone, 0, "times that the kernel wrote over it");
}

/* ---- a page that is hardly ever there ---- */

static void *zapper(void *arg)
{
	(void)arg;
	pin_to(1);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int i;

		for (i = 0; i < 100; i++)
			madvise(shaky, PAGE, MADV_DONTNEED);
		mprotect(shaky, PAGE, PROT_NONE);
		madvise(shaky, PAGE, MADV_DONTNEED);
		mprotect(shaky, PAGE, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

/* Each call has an end: this one goes on until all is there. */
static void round_zapped(void)
{
	struct twheel_event *ev = (struct twheel_event *)steady;
	long n, i, left;

	arm_numbered(fd, TWHEEL_ABS, 1, 0, N);
	for (left = 20; left; left -= n) {
		n = counted(read_events(fd, (struct twheel_event *)shaky, left), left);
		for (i = 0; i < n; i++)
			EXPECT_EQ(ev[i].user_data, 20 - left + i);
	}
	while (counted(read_events(fd, (struct twheel_event *)shaky, N), N))
		;
	for (left = wheel_info(fd).ready; left; left = wheel_info(fd).ready)
		counted(read_events(fd, (struct twheel_event *)shaky, N), N);
	arm_numbered(fd, 0, HOUR, 0, N);
	for (left = N; left; left -= n)
		n = counted(drain(fd, (struct twheel_op *)shaky, 60), left);
}

int main(void)
{
	tap_start(110 * number_of("TIMES", 1));
	map_views();
	RUN_CALL(each_shape(round_arm, TWHEEL_OP_SIZE_ONCE),
		 "SUBMIT: what is armed is known to the program");
	RUN_CALL(each_shape(round_cancel, TWHEEL_OP_SIZE_ID),
		 "SUBMIT: what is not told to be cancelled is there");
	RUN_CALL(during(scribbler, round_scribbled), "operations written over meanwhile");
	RUN(test_kept, "what is stored meanwhile to what the kernel reads stays");
	RUN_CALL(during(zapper, round_zapped), "a page that is hardly ever there: read and DRAIN");
	return tap_end();
}
