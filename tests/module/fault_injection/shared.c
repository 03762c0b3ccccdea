// SPDX-License-Identifier: GPL-2.0
/*
 * Shared timers, with each allocation and each copy failing in turn: setting them up,
 * mapping them, the doorbell, reading what expired and draining what did not.
 */
#include "faults.h"

#include "shared.h"

/* More than are read, or drained, at a time, several times */
#define N 200

static struct client c;

/* A wheel that could not be set up is as it was, and can be */
static void test_setup(void)
{
	struct faults f = {};
	int fd;

	while (faults_next(&f, SLAB | PAGES | COPY, 5)) {
		long ret;

		fd = wheel_open(O_NONBLOCK);
		ret = WITH_FAULT(&f, shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, N));
		EXPECT_EXPLAINED(&f, ret);
		EXPECT_EQ(wheel_info(fd).shared, ret ? 0 : N);
		if (ret)
			EXPECT_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, N), 0);
		client_map(&c, fd);
		shared_arm(&c, N - 1, 1);
		EXPECT_EQ(shared_waiting(&c), 1);
		client_close(&c);
	}
}

static void test_map(void)
{
	struct faults f = {};
	void *area = NULL;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, N);
	while (faults_next(&f, SLAB, 1)) {
		long ret;

		fault_arm(f.n);
		area = shared_map_as(c.fd, c.size, PROT_READ | PROT_WRITE, MAP_SHARED);
		ret = area == MAP_FAILED ? -errno : 0;
		faults_done(&f, ret);
		EXPECT_EXPLAINED(&f, ret);
		if (!ret) {
			EXPECT_TRUE(!memcmp(area, c.area, sizeof(*c.area)), "another area");
			munmap(area, c.size);
		}
	}
	client_close(&c);
}

static void test_doorbell(void)
{
	struct faults f = {};
	__u32 i, got;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, N);
	while (faults_next(&f, COPY, 1)) {
		long ret;

		for (i = 0; i < N; i++) {
			__atomic_store_n(&c.words[i], shared_word(1), __ATOMIC_SEQ_CST);
			shared_push(&c, i);
		}
		ret = WITH_FAULT(&f, doorbell_ring(c.fd));
		EXPECT_EXPLAINED(&f, ret);
		if (ret)
			EXPECT_EQ(doorbell_ring(c.fd), 0);
		for (i = 0; shared_take(&c, &got); i++)
			EXPECT_EQ(got, i);
		EXPECT_EQ(i, N);
	}
	client_close(&c);
}

static void arm_all(__u64 deadline)
{
	__u32 i;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, 0, N);
	for (i = 0; i < N; i++)
		shared_arm(&c, i, deadline);
	EXPECT_EQ(doorbell_ring(c.fd), 0);
}

/* What was read, and then all that is left: each once, in order */
static void test_read(void)
{
	static struct twheel_event events[N];
	struct faults f = {};

	while (faults_next(&f, COPY, 0)) {
		long i, n, ret;

		arm_all(1);
		ret = WITH_FAULT(&f, NEG(read(c.fd, events, N / 2 * sizeof(*events))));
		EXPECT_EXPLAINED(&f, ret);
		n = ret < 0 ? 0 : ret / (long)sizeof(*events);
		ret = NEG(read(c.fd, events + n, (N - n) * sizeof(*events)));
		EXPECT_EQ(ret, (N - n) * (long)sizeof(*events));
		for (i = 0; i < N; i++)
			EXPECT_EQ(events[i].user_data, i);
		EXPECT_EQ(NEG(read(c.fd, events, sizeof(*events))), -EAGAIN);
		client_close(&c);
	}
}

static void test_drain(void)
{
	static struct twheel_op ops[N];
	struct faults f = {};

	while (faults_next(&f, COPY, 1)) {
		bool seen[N] = {};
		long i, n, ret;

		arm_all(now(CLOCK_MONOTONIC) + HOUR);
		ret = WITH_FAULT(&f, drain(c.fd, ops, N / 2));
		EXPECT_EXPLAINED(&f, ret);
		n = ret < 0 ? 0 : ret;
		EXPECT_EQ(wheel_info(c.fd).pending, N - n);
		EXPECT_EQ(drain(c.fd, ops + n, N - n), N - n);
		for (i = 0; i < N; i++) {
			EXPECT_TRUE(ops[i].user_data < N && !seen[ops[i].user_data],
				    "%llu", ops[i].user_data);
			seen[ops[i].user_data % N] = true;
		}
		EXPECT_EQ(drain(c.fd, ops, N), 0);
		client_close(&c);
	}
}

int main(void)
{
	tap_start(PATIENCE_S);
	faults_start();
	RUN(test_setup, "SETUP with shared timers");
	RUN(test_map, "mmap of shared timers");
	RUN(test_doorbell, "DOORBELL");
	RUN(test_read, "read of shared timers");
	RUN(test_drain, "DRAIN of shared timers");
	return tap_end();
}
