// SPDX-License-Identifier: GPL-2.0
/*
 * Shared timers, one promise after the other: what INFO says of them, how the area
 * is laid out, and what arming, moving, cancelling and taking do. (What SETUP refuses is in
 * errors.c and limits.c; tests/module/kunit/shared_test.c has each state of a timer,
 * whatever the program does while the kernel looks at it.)
 *
 * also in: small
 */
#include "shared.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#define MOST 40000			/* more than two words of groups */

static struct client c;
static __u64 deadlines[MOST];	/* of the timers that are armed, else 0 */

static void fresh(__u32 nr)
{
	if (c.fd > 0)
		client_close(&c);
	memset(deadlines, 0, sizeof(deadlines));
	client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, nr);
}

static enum was arm_at(__u32 i, __u64 deadline)
{
	deadlines[i] = deadline;
	return shared_arm(&c, i, deadline);
}

static enum was arm_in(__u32 i, __u64 ns)
{
	return arm_at(i, now(c.clock) + ns);
}

/* One that is armed so keeps all that is later from ringing the doorbell */
static void anchor(__u32 i, __u64 ns)
{
	arm_in(i, ns);
	EXPECT_TRUE(read64(&c.area->next_wake) <= deadlines[i] + 100 * MSEC,
		    "next wake-up %llu, timer at %llu", read64(&c.area->next_wake),
		    deadlines[i]);
}

static bool is_fired(__u32 i)
{
	return read64(&c.words[i]) & FIRED;
}

static bool is_idle(__u32 i)
{
	return read64(&c.words[i]) & IDLE;
}

/* Expired, and not yet taken */
static void fire(__u32 i)
{
	arm_at(i, 1);
	EXPECT_TRUE(WAIT_FOR(is_fired(i)), "timer %u is not expired: %llx", i,
		    read64(&c.words[i]));
}

static void check_taken(__u32 i)
{
	__u64 time = now(c.clock);

	if (!EXPECT_TRUE(i < c.nr && deadlines[i], "timer %u, which was not armed", i))
		return;
	EXPECT_TRUE(time >= deadlines[i], "timer %u early by %llu", i,
		    deadlines[i] - time);
	deadlines[i] = 0;
}

/* As many as are armed and have an end, each once, none early, and no other */
static void take_all(__u32 want)
{
	struct expiry e[40];
	__u32 got = 0, i, k, n;

	while (got < want) {
		n = shared_take_some(&c, e, 1 + got % ARRAY_SIZE(e));
		for (k = 0; k < n; k++)
			check_taken(e[k].timer);
		got += n;
		if (!n && !readable(c.fd, PATIENCE_MS))
			break;
	}
	EXPECT_EQ(got, want, "%u timers", c.nr);
	EXPECT_TRUE(!shared_take(&c, &i), "one more: %u", i);
	for (i = 0; i < c.nr; i++)
		EXPECT_TRUE(!deadlines[i], "timer %u was not taken: %llx", i,
			    read64(&c.words[i]));
}

/* ---- what is said of them ---- */

static void test_info(void)
{
	struct twheel_info info;
	int fd = wheel_open(O_NONBLOCK);

	info = wheel_info(fd);
	EXPECT_TRUE(info.features & TWHEEL_FEATURE_SHARED);
	EXPECT_EQ(info.shared, 0);
	EXPECT_EQ(info.shared_size, 0);
	close(fd);

	fresh(1000);
	info = wheel_info(c.fd);
	EXPECT_EQ(info.flags, TWHEEL_SETUP_SHARED);
	EXPECT_EQ(info.shared, 1000);
	EXPECT_EQ(info.shared_size % PAGE, 0);
	EXPECT_EQ(info.pending | info.ready | info.next_expiry, 0);

	arm_in(7, HOUR);
	doorbell(&c);
	info = wheel_info(c.fd);
	EXPECT_EQ(info.pending, 1);
	EXPECT_TRUE(info.next_expiry && info.next_expiry <= deadlines[7] + 100 * MSEC,
		    "next expiry %llu, deadline %llu", info.next_expiry, deadlines[7]);
	fire(8);
	fire(9);
	info = wheel_info(c.fd);
	EXPECT_EQ(info.pending, 1);
	EXPECT_EQ(info.ready, 2);
}

/* Parts of the area, which differ */
struct part {
	const char *name;
	__u64 at;
	__u64 size;
};

static void check_layout(__u32 nr)
{
	const struct twheel_shared *area = c.area;
	const __u64 per_word = area->group * 64ULL;
	const struct part parts[] = {
		{ "head", 0, sizeof(*area) },
		{ "words", area->words, nr * 8ULL },
		{ "ring", area->ring, (area->ring_mask + 1ULL) * 4 },
		{ "dirty", area->dirty, (nr + 63) / 64 * 8ULL },
		{ "groups", area->groups, (nr / per_word + !!(nr % per_word)) * 8 },
	};
	size_t i, j;

	EXPECT_EQ(area->size, sizeof(*area));
	EXPECT_EQ(area->features, 0);
	EXPECT_TRUE(area->group >= 64 && !(area->group & (area->group - 1)), "%u",
		    area->group);
	EXPECT_EQ(area->nr, nr);
	EXPECT_TRUE(!(area->ring_mask & (area->ring_mask + 1)), "%u", area->ring_mask);
	EXPECT_TRUE(area->ring_mask + 1 >= nr, "%u of %u", area->ring_mask, nr);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		EXPECT_EQ(parts[i].at % 64, 0, "%s of %u", parts[i].name, nr);
		EXPECT_TRUE(parts[i].at + parts[i].size <= c.size, "%s of %u",
			    parts[i].name, nr);
		for (j = 0; j < i; j++)
			EXPECT_TRUE(parts[i].at >= parts[j].at + parts[j].size ||
				    parts[j].at >= parts[i].at + parts[i].size,
				    "%s and %s of %u", parts[i].name, parts[j].name, nr);
	}
}

/* What the area has in it at first: nothing but what it must */
static void check_initial(__u32 nr)
{
	static const struct twheel_shared none;
	struct twheel_shared head = *c.area;
	const char *p = (char *)c.area;
	size_t i;

	EXPECT_EQ(head.next_wake, -1ULL);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(c.words[i], IDLE, "word %zu", i);
	memset(&head, 0, offsetof(struct twheel_shared, __reserved));
	head.next_wake = 0;
	EXPECT_TRUE(!memcmp(&head, &none, sizeof(head)), "of %u", nr);
	for (i = sizeof(head); i < c.size; i++)
		if (i < c.area->words || i >= c.area->words + nr * 8ULL)
			EXPECT_EQ(p[i], 0, "byte %zu of %u timers", i, nr);
}

static const __u32 sizes[] = {
	1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000, 16383, 16384, 16385, MOST
};

static void test_layout(void)
{
	__u32 many;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fresh(sizes[i]);
		check_layout(sizes[i]);
		check_initial(sizes[i]);
	}
	/* The first word of groups that does not fit where the others do */
	many = 8 * 64 * c.area->group + 1;
	fresh(many);
	check_layout(many);
	fresh(1);
}

/* ---- every timer of every number of timers ---- */

static void alone(__u32 i)
{
	if (i >= c.nr)
		return;
	arm_in(i, i % 2 ? 0 : MSEC);
	take_all(1);
	EXPECT_TRUE(is_idle(i), "timer %u", i);
}

static void test_numbers(void)
{
	static const __u32 corners[] = {
		0, 1, 62, 63, 64, 65, 255, 256, 4095, 4096, 16383, 16384, 32768,
	};
	__u64 base, seed = 3;
	size_t i, k;

	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		fresh(sizes[k]);
		for (i = 0; i < ARRAY_SIZE(corners); i++)
			alone(corners[i]);
		alone(c.nr - 1);
		base = now(c.clock);
		for (i = 0; i < c.nr; i++)
			EXPECT_EQ(arm_at(i, base + random_next(&seed) %
					    (100 * MSEC)), WAS_NOTHING);
		take_all(c.nr);
		EXPECT_EQ(c.stale, 0);
	}
	EXPECT_EQ(wheel_info(c.fd).pending, 0);
}

/* ---- moving ---- */

static void test_never(void)
{
	struct twheel_op op;
	__u32 i;

	fresh(10);
	EXPECT_EQ(arm_at(3, -1), WAS_NOTHING);
	EXPECT_EQ(read64(&c.words[3]), NEVER);
	arm_at(4, NEVER - 1);
	EXPECT_EQ(read64(&c.words[4]), NEVER);
	doorbell(&c);
	EXPECT_EQ(wheel_info(c.fd).pending, 2);
	sleep_ns(20 * MSEC);
	EXPECT_TRUE(!shared_take(&c, &i));
	EXPECT_EQ(drain(c.fd, &op, 1), 1);
	EXPECT_TRUE(op.deadline >= NEVER, "%llx", op.deadline);
	EXPECT_EQ(op.flags, TWHEEL_ABS);
	deadlines[3] = 0;
	deadlines[4] = 0;
	/* from there to now */
	EXPECT_EQ(arm_in(3, MSEC) == WAS_ARMED, op.user_data == 4);
	EXPECT_EQ(arm_in(4, MSEC) == WAS_ARMED, op.user_data == 3);
	take_all(2);
}

/* ---- taking by read(2) ---- */

static void check_event(const struct twheel_event *ev)
{
	__u32 i = ev->user_data;

	if (!EXPECT_TRUE(ev->user_data < c.nr, "%llu", ev->user_data))
		return;
	EXPECT_EQ(ev->id, 0);
	EXPECT_EQ(ev->flags, TWHEEL_EVENT_SHARED);
	EXPECT_EQ(ev->overrun, 0);
	EXPECT_EQ(ev->deadline | ARMED, deadlines[i] | ARMED, "timer %u", i);
	EXPECT_TRUE(now(c.clock) >= ev->deadline, "timer %u: early, deadline %llu", i,
		    ev->deadline);
	check_taken(i);
	EXPECT_TRUE(!is_fired(i));
	EXPECT_TRUE(is_idle(i));
}

/* Events of 16 bytes, of shared and of ordinary timers: whole ones only */
static void test_read_short(void)
{
	enum { SHORT = TWHEEL_EVENT_SIZE_ID };
	int fd = wheel_open(O_NONBLOCK);
	char *edge = map_edge(1), buf[200 * SHORT];
	unsigned char seen[200] = { 0 };
	long got = 0, n, k;
	__u32 i;

	client_close(&c);
	EXPECT_EQ(setup_with(fd, .flags = TWHEEL_SETUP_SHARED, .clock = TWHEEL_CLOCK_MONOTONIC,
			     .event_size = SHORT, .shared = 100), 0);
	client_map(&c, fd);
	EXPECT_EQ(wheel_info(fd).event_size, SHORT);
	for (i = 0; i < 100; i++) {
		arm_in(i, i % 2 * MSEC);
		arm(fd, 0, i % 2 * MSEC, 100 + i);
	}
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 200));
	EXPECT_EQ(read_raw(fd, buf, SHORT - 1), -EINVAL);
	EXPECT_EQ(read_raw(fd, edge - SHORT + 1, 4 * SHORT), -EFAULT);
	n = read_raw(fd, edge - 3 * SHORT - 5, 10 * SHORT);
	EXPECT_EQ(n, 3 * SHORT, "to the edge");
	memcpy(buf, edge - 3 * SHORT - 5, 3 * SHORT);
	for (; n > 0; n = read_raw(fd, buf, 7 * SHORT + 9)) {
		EXPECT_EQ(n % SHORT, 0, "read gave %ld", n);
		for (k = 0; k < n / SHORT; k++, got++) {
			struct twheel_event ev = { 0 };

			memcpy(&ev, buf + k * SHORT, SHORT);
			EXPECT_EQ(!ev.id, ev.user_data < 100, "%llu", ev.user_data);
			if (EXPECT_TRUE(ev.user_data < 200, "%llu", ev.user_data))
				seen[ev.user_data]++;
		}
	}
	EXPECT_EQ(got, 200);
	EXPECT_EACH_ONCE(seen, 200);
	for (i = 0; i < 100; i++)
		EXPECT_TRUE(is_idle(i) && !is_fired(i), "timer %u", i);
	munmap(edge - PAGE, 2 * PAGE);
}

/* What can't be written is not taken, and comes in the same order afterwards */
static void test_read_faults(void)
{
	struct twheel_event *edge = (struct twheel_event *)map_edge(1), ev[70];
	__u32 i, order[70];

	fresh(100);
	for (i = 0; i < 70; i++)
		fire((i * 7 + 3) % 100);
	for (i = 0; i < 70; i++)
		order[i] = c.ring[(c.area->head + i) & c.area->ring_mask];
	/* withdrawn ones in between are no matter */
	shared_cancel(&c, order[1]);
	shared_cancel(&c, order[40]);
	EXPECT_EQ(read_raw(c.fd, edge, sizeof(*edge)), -EFAULT);
	EXPECT_EQ(read_raw(c.fd, (char *)(edge - 1) + 1, sizeof(*edge)), -EFAULT);
	EXPECT_EQ(read_raw(c.fd, edge, sizeof(*edge) - 1), -EINVAL);
	EXPECT_TRUE(is_fired(order[0]), "it has not been taken");
	EXPECT_EQ(read_raw(c.fd, edge - 5, 60 * sizeof(*edge)), 5 * sizeof(*edge));
	memcpy(ev, edge - 5, 5 * sizeof(*edge));
	EXPECT_EQ(read_events(c.fd, ev + 5, 65), 63);
	for (i = 0; i < 68; i++) {
		__u32 at = i + (i >= 1) + (i >= 39);

		EXPECT_EQ(ev[i].user_data, order[at], "event %u", i);
		check_event(&ev[i]);
	}
	EXPECT_EQ(read_events(c.fd, ev, 1), -EAGAIN);
	EXPECT_EQ(wheel_stats(c.fd).delivered, 68);
}

/* ---- waiting ---- */

static void reading_child(void)
{
	struct twheel_event ev;
	ssize_t ret = read(c.fd, &ev, sizeof(ev));

	if (EXPECT_EQ(ret, sizeof(ev)))
		EXPECT_EQ(ev.user_data, 6);
}

static void test_blocking_read(void)
{
	pid_t pid;

	fresh(10);
	set_blocking(c.fd, true);
	/* in the ring, but nothing to be read */
	fire(3);
	shared_cancel(&c, 3);
	pid = tap_fork(reading_child);
	EXPECT_TRUE(WAIT_FOR(blocked_in(pid, SYS_read)));
	arm_in(6, 20 * MSEC);
	tap_join(pid);
	EXPECT_EQ(shared_waiting(&c), 0);
	/* with the doorbell for what was told before */
	anchor(0, 30 * SEC);
	pid = tap_fork(reading_child);
	EXPECT_TRUE(WAIT_FOR(blocked_in(pid, SYS_read)));
	arm_in(6, HOUR);
	arm_in(6, 0);
	tap_join(pid);
}

static void test_epoll(void)
{
	struct epoll_event level = { .events = EPOLLIN, .data.u32 = 1 };
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET, .data.u32 = 2 };
	int ep[2], i;
	struct epoll_event got;

	fresh(10);
	for (i = 0; i < 2; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		if (epoll_ctl(ep[i], EPOLL_CTL_ADD, c.fd, i ? &edge : &level))
			tap_bail("epoll_ctl: %s", strerror(errno));
		EXPECT_EQ(epoll_wait(ep[i], &got, 1, 0), 0);
	}
	for (i = 1; i <= 3; i++) {
		arm_in(i, 10 * MSEC);
		EXPECT_EQ(epoll_wait(ep[1], &got, 1, PATIENCE_MS), 1, "edge %d", i);
		EXPECT_EQ(epoll_wait(ep[1], &got, 1, 0), 0, "edge %d", i);
		EXPECT_EQ(epoll_wait(ep[0], &got, 1, PATIENCE_MS), 1);
		EXPECT_EQ(epoll_wait(ep[0], &got, 1, 0), 1, "as long as it lasts");
	}
	take_all(3);
	EXPECT_EQ(epoll_wait(ep[0], &got, 1, 0), 0);
	EXPECT_EQ(epoll_wait(ep[1], &got, 1, 0), 0);
	close(ep[0]);
	close(ep[1]);
}

static void test_eventfd(void)
{
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	__u64 count;

	fresh(10);
	EXPECT_EQ(wheel_eventfd(c.fd, efd), 0);
	EXPECT_EQ(readable(efd, 0), 0);
	arm_in(1, 10 * MSEC);
	EXPECT_TRUE(readable(efd, PATIENCE_MS));
	EXPECT_EQ(read(efd, &count, 8), 8);
	arm_in(2, 10 * MSEC);
	EXPECT_TRUE(readable(efd, PATIENCE_MS));
	EXPECT_EQ(wheel_eventfd(c.fd, -1), 0);
	EXPECT_EQ(read(efd, &count, 8), 8);
	/* those that wait already are told of at once */
	EXPECT_EQ(wheel_eventfd(c.fd, efd), 0);
	EXPECT_TRUE(readable(efd, 0));
	take_all(2);
	close(efd);
}

/* ---- draining ---- */

/* Four timers: idle, armed and known, armed and dirty, armed and cancelled */
static void arm_kinds(__u32 nr)
{
	__u32 i;

	for (i = 4; i < nr; i++)
		if (i % 4 == 1)
			arm_in(i, HOUR + i * SEC);
	doorbell(&c);
	anchor(0, 60 * SEC);
	for (i = 4; i < nr; i++) {
		if (i % 4 < 2)
			continue;
		arm_in(i, 2 * HOUR + i * SEC);
		if (i % 4 == 2)
			continue;
		EXPECT_EQ(shared_cancel(&c, i), WAS_ARMED);
		deadlines[i] = 0;
	}
}

static __u32 note_drained(const struct twheel_op *op)
{
	__u32 i = op->user_data;

	EXPECT_EQ(op->opcode, TWHEEL_OP_ARM);
	EXPECT_EQ(op->flags, TWHEEL_ABS);
	EXPECT_EQ(op->interval + op->slack + op->jitter, 0);
	if (op->id)
		return 0;
	if (!EXPECT_TRUE(op->user_data < c.nr && deadlines[i], "timer %llu",
			 op->user_data))
		return 0;
	EXPECT_EQ(op->deadline | ARMED, deadlines[i] | ARMED, "timer %u", i);
	EXPECT_TRUE((read64(&c.words[i]) & (IDLE | FIRED | ARMED)) == IDLE, "%llx",
		    read64(&c.words[i]));
	deadlines[i] = 0;
	return 1;
}

static void test_drain(void)
{
	struct twheel_op *edge = (struct twheel_op *)map_edge(2), ops[50];
	const __u32 nr = 5000;
	__u32 ordinary = 0, shared = 0, i;
	long n, k;

	fresh(nr);
	fire(3);
	arm_kinds(nr);
	/* none is lost that can't be told of, be it shared or not, which come first */
	EXPECT_EQ(drain(c.fd, edge, 10), -EFAULT);
	for (i = 0; i < 100; i++)
		arm(c.fd, 0, HOUR, i);
	EXPECT_EQ(drain(c.fd, edge, 10), -EFAULT);
	n = drain(c.fd, edge - 20, 50);
	EXPECT_EQ(n, 20);
	memcpy(ops, edge - 20, 20 * sizeof(*ops));
	while (n > 0) {
		for (k = 0; k < n; k++) {
			if (note_drained(&ops[k]))
				shared++;
			else
				ordinary++;
		}
		n = drain(c.fd, ops, ARRAY_SIZE(ops));
	}
	EXPECT_EQ(n, 0);
	EXPECT_EQ(ordinary, 100);
	EXPECT_EQ(shared, 1 + 2 * ((nr - 4) / 4));
	EXPECT_EQ(wheel_info(c.fd).pending, 0);
	EXPECT_EQ(wheel_info(c.fd).next_expiry, 0);
	EXPECT_EQ(wheel_stats(c.fd).drained, shared + ordinary);
	/* what had expired stays, and what was drained is as good as new */
	take_all(1);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(arm_in(i, 100 * MSEC), WAS_NOTHING, "timer %u", i);
	take_all(nr);
}

/* ---- the end ---- */

/* Pages of shared timers that the kernel has mapped side by side, in KiB */
static long mapped(void)
{
	FILE *in = fopen("/proc/vmallocinfo", "re");
	static char text[8192];
	long bytes = 0;

	while (in && fgets(text, sizeof(text), in))
		if (strstr(text, " tw_pages_alloc"))
			bytes += strtol(strchr(text, ' '), NULL, 10);
	if (!in)
		tap_bail("/proc/vmallocinfo: %s", strerror(errno));
	fclose(in);
	return bytes / 1024;
}

static void test_close(void)
{
	/* their words, the ring, and no less than five bytes of the kernel's own for each */
	const __u32 nr = 1 << 16, least = nr * (8 + 4 + 5) / 1024;
	long before, more = 0;
	__u32 i, k;

	fresh(1);
	before = mapped();
	for (k = 0; k < 20; k++) {
		fresh(nr);
		more = mapped() - before;
		for (i = 0; i < nr; i += nr / 500)
			shared_arm(&c, i, i % 3 ? NEVER : 1);
		if (k % 2)
			doorbell(&c);
	}
	EXPECT_TRUE(more >= least && more < 2 * least, "%ld KiB, %u are needed", more, least);
	fresh(1);
	more = mapped() - before;
	EXPECT_TRUE(more < least, "%ld KiB are still allocated", more);
}

int main(void)
{
	tap_start(100);
	RUN(test_info, "INFO");
	RUN(test_layout, "where everything is, and what is there at first");
	RUN(test_numbers, "every timer, of however many");
	RUN(test_never, "the latest deadline");
	RUN(test_read_short, "read(2) of events of 16 bytes");
	RUN(test_read_faults, "read(2) to a bad address loses nothing");
	RUN(test_blocking_read, "a read that waits");
	RUN(test_epoll, "epoll, by level and by edge");
	RUN(test_eventfd, "EVENTFD");
	RUN(test_drain, "DRAIN");
	RUN(test_close, "closed with everything pending");
	return tap_end();
}
