// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tags (arm64): to write by a pointer with another tag than the memory has is a
 * fault, though the page is there and may be written to. Each call says so instead of
 * trying for ever, and nothing is lost.
 *
 * A child makes the calls, because the alarm that ends one without an end kills.
 */
#include "shared.h"

#define EV sizeof(struct twheel_event)

#define GRANULE 16UL

#ifdef __aarch64__

#include <sys/auxv.h>

#define TAG (1UL << 56)
#define SECONDS 20

static bool tags_enable(void)
{
	unsigned long how = PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC |
			    0xfffeUL << PR_MTE_TAG_SHIFT;

	return getauxval(AT_HWCAP2) & 1UL << 18 &&
	       !prctl(PR_SET_TAGGED_ADDR_CTRL, how, 0, 0, 0);
}

/* Memory of which only the first @len bytes can be written to by this pointer */
static char *tagged(size_t len)
{
	char *p = (char *)((unsigned long)map_pages(1, PROT_READ | PROT_WRITE |
						       0x20 /* PROT_MTE */) | TAG);
	size_t at;

	for (at = 0; at < len; at += GRANULE)
		asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]"
			     : : "r"(p + at) : "memory");
	return p;
}

#else

#define SECONDS 0

static bool tags_enable(void)
{
	return false;
}

static char *tagged(size_t len)
{
	return map_pages(len / PAGE + 1, PROT_NONE);
}

#endif

static void (*body)(void);

static void child(void)
{
	signal(SIGALRM, SIG_DFL);
	alarm(SECONDS * number_of("PATIENCE", 1));
	body();
}

static void run(void (*fn)(void))
{
	if (!tags_enable()) {
		tap_skip("this processor has no memory tags");
		return;
	}
	body = fn;
	tap_join(tap_fork(child));
}

static void expect_rest(int fd, int from, int to)
{
	struct twheel_event ev[16];
	int i;

	EXPECT_EQ(read_events(fd, ev, ARRAY_SIZE(ev)), to - from, "events left");
	for (i = from; i < to; i++)
		EXPECT_EQ(ev[i - from].user_data, i);
}

static void events(int flags)
{
	int fd = wheel_open(flags), i;
	size_t bytes;
	char *p;

	for (bytes = 0; bytes <= 2 * EV; bytes += GRANULE) {
		size_t whole = bytes / EV;

		for (i = 0; i < 6; i++)
			arm_past(fd, i);
		p = tagged(bytes);
		if (whole)
			EXPECT_EQ(read_raw(fd, p, 6 * EV), whole * EV, "%zu", bytes);
		EXPECT_EQ(read_raw(fd, p + whole * EV, 6 * EV), -EFAULT, "%zu", bytes);
		EXPECT_EQ(wheel_info(fd).ready, 6 - whole, "%zu", bytes);
		expect_rest(fd, whole, 6);
	}
	close(fd);
}

static void events_child(void)
{
	events(O_NONBLOCK);
	events(0);
}

static void count_child(void)
{
	int fd = wheel_open(O_NONBLOCK), i;
	__u64 count = 0;

	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, TWHEEL_SETUP_COUNT), 0);
	for (i = 0; i < 7; i++)
		arm_past(fd, i);
	EXPECT_EQ(read_raw(fd, tagged(0), sizeof(count)), -EFAULT);
	EXPECT_EQ(readable(fd, 0), 1);
	EXPECT_EQ(read_raw(fd, &count, sizeof(count)), sizeof(count));
	EXPECT_EQ(count, 7);
}

static void shared_child(void)
{
	unsigned int seen = 0;
	struct twheel_event ev[8];
	struct client c;
	long n;
	__u32 i;
	char *p;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, MSEC, 100);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(shared_arm(&c, i, 1), WAS_NOTHING);
	EXPECT_TRUE(WAIT_FOR(wheel_info(c.fd).ready == 6));
	p = tagged(2 * EV);
	EXPECT_EQ(read_raw(c.fd, p, 6 * EV), 2 * EV);
	for (i = 0; i < 2; i++)
		seen |= 1U << ((struct twheel_event *)p)[i].user_data;
	EXPECT_EQ(read_raw(c.fd, p + 2 * EV, 6 * EV), -EFAULT);
	EXPECT_EQ(read_raw(c.fd, p + 2 * EV, EV), -EFAULT);
	n = read_events(c.fd, ev, ARRAY_SIZE(ev));
	EXPECT_EQ(n, 4);
	while (n-- > 0)
		seen |= 1U << ev[n].user_data;
	EXPECT_EQ(seen, 0x3f, "all of them, once");
	client_close(&c);
}

static void drain_child(void)
{
	int fd = wheel_open(O_NONBLOCK), i;
	/* The next begins where it can be written to, and does not end there. */
	struct twheel_op *p = (void *)tagged(2 * sizeof(*p) + GRANULE), ops[8];
	unsigned int seen = 0;

	for (i = 0; i < 5; i++)
		arm(fd, 0, HOUR, i);
	EXPECT_EQ(drain(fd, p, 5), 2);
	for (i = 0; i < 2; i++)
		seen |= 1U << p[i].user_data;
	EXPECT_EQ(drain(fd, p + 2, 5), -EFAULT);
	EXPECT_EQ(wheel_info(fd).pending, 3);
	EXPECT_EQ(drain(fd, ops, ARRAY_SIZE(ops)), 3);
	for (i = 0; i < 3; i++)
		seen |= 1U << ops[i].user_data;
	EXPECT_EQ(seen, 0x1f, "all of them, once");
}

int main(void)
{
	tap_start(120);
	RUN_CALL(run(events_child), "read: a bad address, and nothing is lost");
	RUN_CALL(run(count_child), "count mode: the same");
	RUN_CALL(run(shared_child), "read of shared timers: the same");
	RUN_CALL(run(drain_child), "DRAIN: the same");
	return tap_end();
}
