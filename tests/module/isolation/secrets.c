// SPDX-License-Identifier: GPL-2.0
/*
 * Who may open the device learns and touches nothing that is not his: ids of another
 * wheel, of a closed one, or guessed, are no timers of others; and every byte that the
 * kernel hands out is what the interface says, though the kernel's free memory is full
 * of secrets.
 *
 * The kernel should not clear memory on its own (init_on_alloc=0, see run), or that
 * would hide what the module forgets to clear.
 */
#include "users.h"
#include "shared.h"

#include <sys/xattr.h>

#define MALLORY 1000
#define TIMERS 1000
#define GUESSES 200000

#define SECRET 0x5ec2e75ec2e75ec2ULL
#define PATTERN 0xa5

/* ---- other wheels' timers ---- */

static __u64 theirs[TIMERS], ours[TIMERS];
static struct twheel_op ops[TIMERS];

static void arm_some(int fd, __u64 *ids, __u64 first)
{
	int i;

	for (i = 0; i < TIMERS; i++)
		ops[i] = op_arm(TWHEEL_ABS, HOUR * 1000 + i * SEC, first + i);
	submit_all(fd, ops, TIMERS);
	for (i = 0; i < TIMERS; i++)
		ids[i] = ops[i].id;
}

/* Each timer is as it was armed, and there is no other */
static void check_untouched(int fd, const __u64 *ids, __u64 first)
{
	struct twheel_op op;
	int i;

	for (i = 0; i < TIMERS; i++) {
		EXPECT_EQ(query(fd, ids[i], &op), 0);
		EXPECT_EQ(op.deadline, HOUR * 1000 + i * SEC);
		EXPECT_EQ(op.user_data, first + i);
	}
	EXPECT_EQ(wheel_info(fd).pending, TIMERS);
	EXPECT_EQ(wheel_info(fd).ready, 0);
}

/* Tries all operations with an id on an empty wheel. Gives how many were refused */
static int try_id(int fd, __u64 id)
{
	struct twheel_op tries[3] = {
		op_for(TWHEEL_OP_QUERY, id),
		op_arm(TWHEEL_ABS, 1, 666),
		op_for(TWHEEL_OP_CANCEL, id),
	};
	int i, refused = 0;

	tries[1].opcode = TWHEEL_OP_MODIFY;
	tries[1].id = id;
	EXPECT_EQ(submit(fd, tries, 3), 3);
	for (i = 0; i < 3; i++)
		refused += tries[i].result == -ENOENT;
	return refused;
}

static int their_wheel;

static void ids_child(void)
{
	__u64 seed = 3, tried = 0, refused = 0;
	int fd, gone, i;

	/* Not by the descriptor that fork handed down: it would be one's own. */
	close(their_wheel);
	become(MALLORY);
	fd = wheel_open(O_NONBLOCK);
	gone = wheel_open(O_NONBLOCK);
	arm_some(gone, ours, 0);
	close(gone);
	for (i = 0; i < TIMERS; i++) {
		refused += try_id(fd, theirs[i]) + try_id(fd, ours[i]);
		tried += 6;
	}
	for (i = 0; i < GUESSES; i++) {
		__u64 id = random_next(&seed);

		/* Near those that there are, too */
		if (i & 1)
			id = theirs[id % TIMERS] ^ (1ULL << (id >> 32) % 64);
		refused += try_id(fd, id);
		tried += 3;
	}
	tap_diag("%s: %llu of %llu operations found no timer", tap_name, refused, tried);
	EXPECT_EQ(refused, tried);
	EXPECT_EQ(wheel_info(fd).pending + wheel_info(fd).ready, 0);
}

static void test_ids(void)
{
	their_wheel = wheel_open(O_NONBLOCK);
	arm_some(their_wheel, theirs, 7000);
	tap_join(tap_fork(ids_child));
	check_untouched(their_wheel, theirs, 7000);
	close(their_wheel);
}

static void events_child(void)
{
	struct twheel_event ev;
	int fd;

	close(their_wheel);
	become(MALLORY);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(read_events(fd, &ev, 1), -EAGAIN);
	EXPECT_TRUE(!readable(fd, 0));
}

static void test_events(void)
{
	struct twheel_event ev[TIMERS];

	their_wheel = wheel_open(O_NONBLOCK);
	arm_numbered(their_wheel, TWHEEL_ABS, 1, 0, TIMERS);
	tap_join(tap_fork(events_child));
	EXPECT_EQ(collect(their_wheel, ev, TIMERS), TIMERS);
	close(their_wheel);
}

/* ---- the kernel's memory ---- */

/* Leave secrets in the kernel's free memory, small pieces and whole pages */
static void spray(void)
{
	static __u64 text[8192];
	__u64 *pages = map_pages(2048, PROT_READ | PROT_WRITE);
	size_t size, i;

	for (i = 0; i < ARRAY_SIZE(text); i++)
		text[i] = SECRET;
	for (i = 0; i < 2048 * PAGE / sizeof(*pages); i++)
		pages[i] = SECRET;
	munmap(pages, 2048 * PAGE);
	/* Copied into the kernel, and refused */
	for (size = 16; size <= sizeof(text); size *= 2)
		for (i = 0; i < 64; i++)
			setxattr("/proc/self/stat", "user.nothing", text, size, 0);
}

static void fill(void *buf, size_t size)
{
	memset(buf, PATTERN, size);
}

/* No secret is in there, and no address of the kernel's */
static void check_no_secret(const void *buf, size_t size)
{
	const __u64 *p = buf;
	size_t i;

	for (i = 0; i < size / sizeof(*p); i++)
		if (!EXPECT_TRUE(p[i] != SECRET && (p[i] >> 47 != 0x1ffff || p[i] == ~0ULL),
				 "%#llx at %zu", p[i], i * sizeof(*p)))
			return;
}

static void check_same(const void *got, const void *want, size_t size, const char *what)
{
	const unsigned char *a = got, *b = want;
	size_t i;

	for (i = 0; i < size; i++)
		if (!EXPECT_TRUE(a[i] == b[i], "%s: byte %zu is %#x, not %#x", what, i, a[i],
				 b[i]))
			return;
}

static void check_untold(const void *buf, size_t size, const char *what)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < size; i++)
		if (!EXPECT_TRUE(p[i] == PATTERN, "%s: byte %zu is %#x", what, i, p[i]))
			return;
}

static void read_into(__u32 event_size)
{
	static unsigned char buf[40 * sizeof(struct twheel_event)];
	int fd = wheel_open(O_NONBLOCK), i;
	__u64 ids[30];

	EXPECT_EQ(setup_with(fd, .clock = TWHEEL_CLOCK_MONOTONIC, .event_size = event_size), 0);
	for (i = 0; i < 30; i++)
		ids[i] = arm(fd, TWHEEL_ABS, 1 + i, ~i);
	spray();
	fill(buf, sizeof(buf));
	EXPECT_EQ(read_raw(fd, buf, 40 * event_size), 30 * event_size);
	for (i = 0; i < 30; i++) {
		const struct twheel_event want = {
			.id = ids[i],
			.user_data = ~i,
			.deadline = 1 + i,
		};

		check_same(&buf[i * event_size], &want, event_size, "event");
	}
	check_untold(&buf[30 * event_size], 10 * event_size, "after the events");
	close(fd);
}

static void test_read_shared(void)
{
	static struct twheel_event ev[40], want;
	struct client c;
	int i;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, 100);
	for (i = 0; i < 20; i++)
		shared_arm(&c, i, 2 * i + 3);
	doorbell(&c);
	spray();
	fill(ev, sizeof(ev));
	EXPECT_EQ(read_events(c.fd, ev, 40), 20);
	for (i = 0; i < 20; i++) {
		want = (struct twheel_event){
			.user_data = i,
			.deadline = 2 * i + 3,
			.flags = TWHEEL_EVENT_SHARED,
		};
		check_same(&ev[i], &want, sizeof(want), "event");
	}
	check_untold(&ev[20], 20 * sizeof(ev[0]), "after the events");
	client_close(&c);
}

static void test_query(void)
{
	struct twheel_op op[2], want;
	int fd = wheel_open(O_NONBLOCK);
	__u32 size;
	__u64 id = arm(fd, TWHEEL_ABS, HOUR * 1000, 77);

	spray();
	fill(op, sizeof(op));
	EXPECT_EQ(query(fd, id, op), 0);
	want = op_arm(op->flags, HOUR * 1000, 77);
	want.opcode = TWHEEL_OP_QUERY;
	want.flags = op->flags;
	want.id = id;
	want.state = TWHEEL_STATE_PENDING;
	EXPECT_TRUE(!(op->flags & ~TWHEEL_ABS));
	check_same(op, &want, sizeof(want), "what is asked");
	check_untold(&op[1], sizeof(op[1]), "after it");
	for (size = TWHEEL_OP_SIZE_ID; size < sizeof(*op); size *= 2) {
		fill(op, sizeof(op));
		*op = op_for(TWHEEL_OP_QUERY, id);
		fill((char *)op + size, sizeof(*op) - size);
		EXPECT_EQ(op_prefix(fd, op, size), 0);
		check_same(op, &want, size, "the beginning");
		check_untold((char *)op + size, sizeof(op) - size, "after that");
	}
	close(fd);
}

static void drain_into(__u32 op_size)
{
	static unsigned char buf[110 * sizeof(struct twheel_op)];
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)buf,
		.nr = 110,
		.op_size = op_size,
	};
	int fd = wheel_open(O_NONBLOCK), i, nr;
	__u64 ids[100];

	for (i = 0; i < 100; i++)
		ids[i] = arm(fd, TWHEEL_ABS, HOUR * 1000 + i * SEC, i);
	spray();
	fill(buf, sizeof(buf));
	EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &arg), 100);
	for (i = 0; i < 100; i++) {
		struct twheel_op op = {}, want;

		memcpy(&op, &buf[i * op_size], op_size);
		for (nr = 0; nr < 100 && ids[nr] != op.id; nr++)
			;
		if (!EXPECT_TRUE(nr < 100, "id %#llx", op.id))
			break;
		want = op_arm(TWHEEL_ABS, HOUR * 1000 + nr * SEC, nr);
		want.id = ids[nr];
		want.state = TWHEEL_STATE_PENDING;
		check_same(&op, &want, op_size, "drained");
	}
	check_untold(&buf[100 * op_size], 10 * op_size, "after all");
	close(fd);
}

static void test_submit(void)
{
	static struct twheel_op buf[20], want;
	int fd = wheel_open(O_NONBLOCK), i;

	spray();
	for (i = 0; i < 20; i++)
		buf[i] = op_for(i % 5, 1000 + i);
	fill(&buf[19], sizeof(buf[19]));
	EXPECT_EQ(submit(fd, buf, 19), 19);
	for (i = 0; i < 19; i++) {
		want = op_for(i % 5, 1000 + i);
		want.result = buf[i].result;
		if (i % 5 == TWHEEL_OP_ARM && !buf[i].result)
			want.id = buf[i].id;
		want.state = buf[i].state;
		EXPECT_TRUE(buf[i].result <= 0 && buf[i].result > -134);
		EXPECT_TRUE(buf[i].state <= TWHEEL_STATE_READY);
		check_same(&buf[i], &want, sizeof(want), "operation");
	}
	check_untold(&buf[19], sizeof(buf[19]), "after all");
	close(fd);
}

/* Structures of a program that knows more: the rest is not filled in */
static void test_larger(void)
{
	static unsigned char buf[PAGE + 64] __attribute__((aligned(8))), zero[PAGE];
	static const struct {
		unsigned long cmd;
		size_t size;
	} calls[] = {
		{ TWHEEL_IOC_INFO, sizeof(struct twheel_info) },
		{ TWHEEL_IOC_STATS, sizeof(struct twheel_stats) },
	};
	int fd = wheel_open(O_NONBLOCK);
	__u32 size = PAGE;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		spray();
		memset(buf, 0, PAGE);
		fill(buf + PAGE, 64);
		memcpy(buf, &size, sizeof(size));
		EXPECT_EQ(wheel_ioctl(fd, calls[i].cmd, buf), 0);
		check_no_secret(buf, PAGE);
		check_same(buf + calls[i].size, zero, PAGE - calls[i].size, "the rest");
		check_untold(buf + PAGE, 64, "after it");
	}
	/* A fresh wheel has counted nothing. */
	check_same(buf + sizeof(size), zero, sizeof(struct twheel_stats) - sizeof(size),
		   "the counters");
	close(fd);
}

/* The whole area is what its layout says, to the end of its last page */
static void test_area(void)
{
	static const __u32 sizes[] = { 1, 63, 100, 257, 5000, 100001 };
	unsigned char *want;
	struct twheel_shared *head;
	struct client c;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		spray();
		client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, sizes[i]);
		want = calloc(1, c.size);
		head = (void *)want;
		memcpy(head, c.area, offsetof(struct twheel_shared, __reserved));
		head->next_wake = ~0ULL;
		for (k = 0; k < sizes[i]; k++)
			memcpy(want + head->words + 8 * k, &(__u64){ IDLE }, 8);
		EXPECT_TRUE(head->size == sizeof(*head) && head->nr == sizes[i]);
		EXPECT_TRUE(!head->features && head->words + 8ULL * sizes[i] <= c.size);
		check_same(c.area, want, c.size, "the area");
		check_no_secret(c.area, c.size);
		free(want);
		client_close(&c);
	}
}

int main(void)
{
	tap_start(300);
	open_to_all();
	RUN(test_ids, "ids of other wheels, of closed ones, and guesses");
	RUN(test_events, "other wheels' events");
	RUN_CALL(read_into(TWHEEL_EVENT_SIZE_FULL), "read tells events, and nothing else");
	RUN(test_read_shared, "read of shared timers");
	RUN_CALL(read_into(TWHEEL_EVENT_SIZE_ID), "read of short events");
	RUN(test_query, "QUERY");
	RUN_CALL(drain_into(TWHEEL_OP_SIZE_FULL), "DRAIN");
	RUN_CALL(drain_into(TWHEEL_OP_SIZE_ONCE), "DRAIN, into operations of 32 bytes");
	RUN_CALL(drain_into(TWHEEL_OP_SIZE_ID), "DRAIN, into operations of 16 bytes");
	RUN(test_submit, "SUBMIT");
	RUN(test_larger, "INFO and STATS, of a program that knows more");
	RUN(test_area, "the area of shared timers");
	return tap_end();
}
