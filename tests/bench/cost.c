// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation costs, in instructions: for a guest in which one instruction
 * takes 1 ns (scripts/vm -i), so that a clock counts them, and the same number
 * comes out on every run.
 *
 * usage: cost TIMERS...
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BATCH 256
#define MS 1000000ULL
#define SECOND 1000000000ULL

static int wheel;
static uint64_t seed = 1;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* xorshift64*, so that the guest's library does not matter. */
static uint64_t rnd(uint64_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (seed * 0x2545f4914f6cdd1dULL >> 32) % below;
}

/* Do @n operations in batches; returns the instructions of each. */
static double run(struct twheel_op *ops, size_t n)
{
	uint64_t took = 0;
	size_t i;

	for (i = 0; i < n; i += BATCH) {
		struct twheel_submit submit = {
			.size = sizeof(submit),
			.ops = (uintptr_t)&ops[i],
			.nr = n - i < BATCH ? n - i : BATCH,
			.op_size = sizeof(*ops),
		};
		uint64_t start = now();

		if (ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit) != (int)submit.nr)
			err(1, "submit");
		took += now() - start;
	}
	for (i = 0; i < n; i++)
		if (ops[i].result)
			errx(1, "operation %zu: error %d", i, ops[i].result);
	return (double)took / n;
}

/* One at a time. */
static double run_single(unsigned long cmd, struct twheel_op *ops, size_t n)
{
	uint64_t start = now();
	size_t i;

	for (i = 0; i < n; i++) {
		ops[i].opcode = 0;
		if (ioctl(wheel, cmd, &ops[i]))
			err(1, "ioctl");
	}
	return (double)(now() - start) / n;
}

static void prepare(struct twheel_op *ops, size_t n, uint16_t opcode,
		    uint64_t from, uint64_t range)
{
	size_t i;

	for (i = 0; i < n; i++) {
		ops[i].size = sizeof(ops[i]);
		ops[i].opcode = opcode;
		ops[i].flags = 0;
		ops[i].deadline = opcode == TWHEEL_OP_CANCEL ? 0 :
				  from + rnd(range);
		ops[i].user_data = opcode == TWHEEL_OP_CANCEL ? 0 : i;
	}
}

static void shuffle(struct twheel_op *ops, size_t n)
{
	size_t i;

	for (i = n - 1; i; i--) {
		size_t j = rnd(i + 1);
		struct twheel_op op = ops[i];

		ops[i] = ops[j];
		ops[j] = op;
	}
}

/*
 * Turns of an empty loop until @end. What interrupts take is missing from them,
 * which is how the cost of expiry is seen.
 */
static uint64_t spin(uint64_t end)
{
	uint64_t turns = 0;

	while (now() < end)
		turns++;
	return turns;
}

static double read_all(size_t n)
{
	static struct twheel_event events[BATCH];
	uint64_t took = 0;
	size_t got = 0;

	while (got < n) {
		uint64_t start = now();
		ssize_t bytes = read(wheel, events, sizeof(events));

		took += now() - start;
		if (bytes < 0)
			err(1, "read after %zu of %zu", got, n);
		got += bytes / sizeof(events[0]);
	}
	return (double)took / n;
}

/* Arm @n timers and let them expire; returns the instructions of each expiry. */
static double expire(struct twheel_op *ops, size_t n)
{
	uint64_t range = SECOND;
	uint64_t lead = 100 * MS + n * 1000;
	uint64_t start, armed, end;
	double turn;
	size_t i;

	start = now();
	turn = (double)range / spin(start + range);

	start = now();
	end = start + lead + range;
	prepare(ops, n, TWHEEL_OP_ARM, start + lead, range - 20 * MS);
	for (i = 0; i < n; i++)
		ops[i].flags = TWHEEL_ABS;
	run(ops, n);
	armed = now();
	if (armed > start + lead)
		errx(1, "arming took longer than expected");
	return (end - armed - spin(end) * turn) / n;
}

static void measure(size_t n)
{
	struct twheel_op *ops = calloc(n, sizeof(*ops));
	size_t single = n < 1024 ? n : 1024;
	double arm, later, earlier, cancel, expired, got, arm1, cancel1;

	if (!ops)
		err(1, "calloc");
	wheel = open("/dev/twheel", O_RDWR | O_NONBLOCK);
	if (wheel < 0)
		err(1, "/dev/twheel");

	/* Once unmeasured, so that all memory is there. */
	prepare(ops, n, TWHEEL_OP_ARM, 100 * SECOND, 100 * SECOND);
	run(ops, n);
	prepare(ops, n, TWHEEL_OP_CANCEL, 0, 0);
	run(ops, n);

	prepare(ops, n, TWHEEL_OP_ARM, 100 * SECOND, 100 * SECOND);
	arm = run(ops, n);
	shuffle(ops, n);
	prepare(ops, n, TWHEEL_OP_MODIFY, 200 * SECOND, 100 * SECOND);
	later = run(ops, n);
	prepare(ops, n, TWHEEL_OP_MODIFY, 50 * SECOND, 50 * SECOND);
	earlier = run(ops, n);
	prepare(ops, n, TWHEEL_OP_CANCEL, 0, 0);
	cancel = run(ops, n);
	expired = expire(ops, n);
	got = read_all(n);

	/* Beside as many others as there are in the batches. */
	prepare(ops, n, TWHEEL_OP_ARM, 100 * SECOND, 100 * SECOND);
	run(ops, n - single);
	arm1 = run_single(TWHEEL_IOC_ARM, ops + n - single, single);
	prepare(ops, n, TWHEEL_OP_CANCEL, 0, 0);
	cancel1 = run_single(TWHEEL_IOC_CANCEL, ops + n - single, single);
	printf("%9zu %7.0f %7.0f %7.0f %7.0f %7.0f %7.0f %7.0f %7.0f\n", n, arm,
	       later, earlier, cancel, expired, got, arm1, cancel1);
	close(wheel);
	free(ops);
}

int main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("instructions for each timer\n"
	       "          |---------- in batches of %d ----------------------| |one at a time|\n"
	       "   timers     arm   later earlier  cancel  expire    read     arm  cancel\n",
	       BATCH);
	for (i = 1; i < argc; i++)
		measure(strtoul(argv[i], NULL, 0));
	return 0;
}
