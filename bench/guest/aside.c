// SPDX-License-Identifier: GPL-2.0
/*
 * What the tables have no column for, in instructions of each: timerfds with deadlines on ticks
 * and with random ones, commands of io_uring with few operations, a program that reads late, and
 * timeouts of io_uring that are updated or come again and again.
 */
#include "bench.h"
#include "../random.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/twheel.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A jiffy of Debian's kernels, and how many timers expire in it */
#define TICK (4 * MS)
#define DENSITY 256

#define TIMERS 8192
#define COMMANDS 16
#define ROUNDS 33

static uint64_t ids[COMMANDS * 16];
/* In whole pages: where one ends, io_uring's own work can end a command, as a signal does. */
static char ops[BATCH * TWHEEL_OP_SIZE_ONCE] __attribute__((aligned(4096)));
static double base;

/* As in bench.c: spin, and return the instructions that others took. */
static double taken(uint64_t ns)
{
	uint64_t start = now(), turns = ns / 512, spun = turns * 512;

	if (turns)
		asm volatile("1: .rept 510\n\tnop\n\t.endr\n\tdec %0\n\tjnz 1b"
			     : "+r"(turns) : : "cc");
	return (now() - start) / base - spun;
}

static void calibrate(void)
{
	base = 1;
	base = 1 + taken(2 * SECOND) / (2 * SECOND);
}

static void print(const char *what, const char *how, unsigned int nr, double each)
{
	printf("%s, %s, %u: %.0f\n", what, how, nr, each);
}

/* Deadlines are multiples of @step. All expire before the program looks. */
static void timerfds(uint64_t step, const char *how)
{
	const uint64_t range = TIMERS * TICK / DENSITY;
	const struct rlimit files = { TIMERS + 100, TIMERS + 100 };
	struct epoll_event events[BATCH];
	static int fds[TIMERS];
	int epoll = epoll_create1(0), i, n;
	uint64_t from, start, value;
	double cost;

	setrlimit(RLIMIT_NOFILE, &files);
	for (i = 0; i < TIMERS; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		event.data.fd = fds[i];
		if (fds[i] < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event))
			err(1, "timerfd");
	}
	calibrate();
	from = (now() / TICK + 100) * TICK;
	for (i = 0; i < TIMERS; i++) {
		uint64_t when = (from + rnd(range) + step - 1) / step * step;
		struct itimerspec spec = { .it_value = { when / SECOND, when % SECOND } };

		timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &spec, NULL);
	}
	cost = taken(from + range + 2 * TICK - now());
	do {
		start = now();
		n = epoll_wait(epoll, events, BATCH, 0);
		for (i = 0; i < n; i++)
			if (read(events[i].data.fd, &value, sizeof(value)) != sizeof(value))
				err(1, "read");
		cost += now() - start;
	} while (n > 0);
	print("timerfd expires and is read", how, TIMERS, cost / TIMERS);
	for (i = 0; i < TIMERS; i++)
		close(fds[i]);
	close(epoll);
}

static uint32_t put_op(unsigned int i, uint8_t opcode, uint64_t id, uint64_t delay)
{
	uint32_t size = opcode == TWHEEL_OP_CANCEL ? TWHEEL_OP_SIZE_ID : TWHEEL_OP_SIZE_ONCE;
	struct twheel_op op = { .opcode = opcode, .id = id, .deadline = delay };

	memcpy(ops + i * size, &op, size);
	return size;
}

static void reap(struct io_uring *ring, int want)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(ring, &cqe)) {
		if (cqe->res != want)
			errx(1, "io_uring: %d", cqe->res);
		io_uring_cqe_seen(ring, cqe);
	}
}

static uint64_t enter(struct io_uring *ring)
{
	uint64_t start = now();

	io_uring_submit(ring);
	return now() - start;
}

/* Commands of @nr operations each, in one call: the least, without an interrupt in it */
static void commands(unsigned int nr)
{
	static const struct {
		const char *name;
		uint8_t opcode;
		uint64_t delay;
	} kinds[] = {
		{ "arm", TWHEEL_OP_ARM, 100 * SECOND },
		{ "later", TWHEEL_OP_MODIFY, 210 * SECOND },
		{ "earlier", TWHEEL_OP_MODIFY, 50 * SECOND },
		{ "cancel", TWHEEL_OP_CANCEL, 0 },
	};
	uint64_t least[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	int wheel = open("/dev/twheel", O_RDWR), round;
	unsigned int all = COMMANDS * nr, kind, i;
	struct io_uring ring;

	if (wheel < 0 || io_uring_queue_init(COMMANDS, &ring, 0))
		err(1, "/dev/twheel, io_uring");
	for (round = 0; round < ROUNDS; round++) {
		for (kind = 0; kind < 4; kind++) {
			struct twheel_uring_submit cmd = { .nr = nr };
			uint64_t took, delay = kinds[kind].delay;

			for (i = 0; i < all; i++)
				cmd.op_size = put_op(i, kinds[kind].opcode, kind ? ids[i] : 0,
						     delay ? delay + rnd(30 * SECOND) : 0);
			for (i = 0; i < COMMANDS; i++) {
				struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

				memset(sqe, 0, sizeof(*sqe));
				sqe->opcode = 46;	/* IORING_OP_URING_CMD */
				sqe->fd = wheel;
				sqe->off = TWHEEL_IOC_SUBMIT;
				cmd.ops = (uintptr_t)ops + i * nr * cmd.op_size;
				memcpy((char *)sqe + 48, &cmd, sizeof(cmd));
			}
			took = enter(&ring);
			reap(&ring, nr);
			least[kind] = took < least[kind] ? took : least[kind];
			for (i = 0; !kind && i < all; i++)
				memcpy(&ids[i], ops + i * cmd.op_size + 8, sizeof(ids[i]));
		}
	}
	for (kind = 0; kind < 4; kind++)
		print("SUBMIT by io_uring, 16 in a call", kinds[kind].name, nr,
		      (double)least[kind] / all);
	io_uring_queue_exit(&ring);
	close(wheel);
}

/* All have long been ready when the program reads. */
static void read_late(unsigned int nr)
{
	static struct twheel_event events[BATCH];
	int wheel = open("/dev/twheel", O_RDWR | O_NONBLOCK), i;
	struct twheel_submit submit = {
		.size = sizeof(submit), .ops = (uintptr_t)ops,
		.nr = BATCH, .op_size = TWHEEL_OP_SIZE_ONCE,
	};
	unsigned int armed, got;
	uint64_t start, all = 0;
	ssize_t bytes;

	for (armed = 0; armed < nr; armed += BATCH) {
		for (i = 0; i < BATCH; i++)
			put_op(i, TWHEEL_OP_ARM, 0, SECOND + rnd(SECOND));
		if (ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit) != BATCH)
			err(1, "submit");
	}
	taken(4 * SECOND);
	for (got = 0; got < armed; got += bytes / sizeof(*events)) {
		start = now();
		bytes = read(wheel, events, sizeof(events));
		all += now() - start;
		if (bytes < 0)
			err(1, "read");
	}
	print("read late", "256 events in a call", armed, (double)all / armed);
	close(wheel);
}

static void update_timeouts(unsigned int nr)
{
	static struct __kernel_timespec spec[TIMERS];
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE, .cq_entries = 2 * TIMERS,
	};
	struct io_uring ring;
	unsigned int i;

	if (io_uring_queue_init_params(BATCH, &ring, &params))
		err(1, "io_uring");
	for (i = 0; i < nr; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		spec[i].tv_sec = 100 + rnd(100);
		io_uring_prep_timeout(sqe, &spec[i], 0, 0);
		sqe->user_data = i + 1;
		if (i % BATCH == BATCH - 1)
			io_uring_submit(&ring);
	}
	for (i = 0; i < BATCH; i++) {
		unsigned int which = rnd(nr);

		io_uring_prep_timeout_update(io_uring_get_sqe(&ring), &spec[which], which + 1, 0);
	}
	print("io_uring's timeouts", "updated, 256 in a call", nr, (double)enter(&ring) / BATCH);
	io_uring_queue_exit(&ring);
}

/* (From Linux 6.4 on) */
static void timeouts_again(void)
{
	struct __kernel_timespec period = { .tv_nsec = TICK };
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE, .cq_entries = 2 * TIMERS,
	};
	unsigned int i, came = 0, bad = 0;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	double cost = 0;

	calibrate();
	if (io_uring_queue_init_params(BATCH, &ring, &params))
		err(1, "io_uring");
	for (i = 0; i < DENSITY; i++)
		io_uring_prep_timeout(io_uring_get_sqe(&ring), &period, 0, 1U << 6);
	io_uring_submit(&ring);
	for (i = 0; i < 64; i++) {
		uint64_t start;

		cost += taken(TICK);
		start = now();
		io_uring_get_events(&ring);
		for (; !io_uring_peek_cqe(&ring, &cqe); io_uring_cqe_seen(&ring, cqe)) {
			came += cqe->res == -ETIME;
			bad += cqe->res != -ETIME;
		}
		cost += now() - start;
	}
	if (came && !bad)
		print("io_uring's timeouts", "MULTISHOT, one expiry", DENSITY, cost / came);
	io_uring_queue_exit(&ring);
}

int main(void)
{
	base = 1;
	taken(8 * SECOND);
	timerfds(TICK, "deadlines on ticks");
	timerfds(1, "random deadlines");
	commands(1);
	commands(2);
	commands(16);
	read_late(1024);
	read_late(100 * 1024);
	update_timeouts(1024);
	update_timeouts(8192);
	timeouts_again();
	return 0;
}
