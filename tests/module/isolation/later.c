// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile user moves his timers to later again and again, shortly before they are due. That
 * is one store for each, but the workers of the kernel cascade them all.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * processors: 2
 * module parameters: max_user_timers=33554432
 */
#include "shared.h"
#include "cgroup.h"

#define MALLORY 1000
#define BATCH 256
#define MANY (BATCH * 4000)

/* So long before they are due */
#define MARGIN (5 * MSEC)

/*
 * Most of their throughput that others may lose beside what his own calls take, in %: his
 * share, and what is free of cascading
 */
#define LOSS 15

/* An operation as long as a timer that expires once needs it */
struct short_op {
	__u8 opcode;
	__u8 flags;
	__u16 state;
	__s32 result;
	__u64 id;
	__u64 deadline;
	__u64 user_data;
};

static unsigned int *passes;
static double alone;

/* After so many passes he closes his wheel, and opens another; 0: never. */
static unsigned int closes_after;

/* Each case has a user of its own, as what one of them has had is remembered. */
static uid_t uid = MALLORY;

static void submit_many(int fd, struct short_op *ops, __u8 opcode, __u64 deadline)
{
	int i;

	for (i = 0; i < MANY; i++) {
		ops[i].opcode = opcode;
		ops[i].deadline = deadline;
		if (i % BATCH == BATCH - 1)
			submit_sized(fd, (void *)&ops[i + 1 - BATCH], BATCH, sizeof(*ops));
	}
}

static void hostile_child(void)
{
	struct short_op *ops = aligned_alloc(PAGE, MANY * sizeof(*ops));
	__u64 began, took = 400 * MSEC;
	unsigned int pass;
	int fd;

	if (!ops)
		tap_bail("memory");
	memset(ops, 0, MANY * sizeof(*ops));
	become(uid);
	pin_to(0);
	for (;;) {
		fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
		submit_many(fd, ops, TWHEEL_OP_ARM, SEC);
		for (pass = 0; !pass || pass != closes_after; pass++) {
			began = now(CLOCK_MONOTONIC);
			submit_many(fd, ops, TWHEEL_OP_MODIFY, took + MARGIN);
			took = now(CLOCK_MONOTONIC) - began;
			__atomic_add_fetch(passes, 1, __ATOMIC_RELAXED);
		}
		close(fd);
	}
}

/* What a program on each processor loses beside what is the hostile one's own, in % */
static double lost(void)
{
	/* It begins when what is free is used up. */
	struct measured m = measure(2, "hostile", 2 * SEC, 5 * SEC);
	double loss;

	if (!alone)
		alone = m.count;
	loss = 100 * (1 - m.count / alone - m.own / 2);
	tap_diag("%s: %u passes, his own calls %.1f %% of a processor, others lose %.1f %% besides",
		 tap_name, *passes, 100 * m.own, loss);
	return loss;
}

static void test_later(void)
{
	pid_t pid = tap_fork(hostile_child);
	double loss;

	*passes = 0;
	cgroup_move("hostile", pid);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(passes, __ATOMIC_RELAXED) >= 2));
	loss = lost();
	end(pid);
	EXPECT_TRUE(loss <= LOSS, "%.1f %%", loss);
}

static void test_later_in_new_wheels(void)
{
	closes_after = 2;
	uid++;
	test_later();
}

/* What is remembered does not outlive the module: its timer would call what is gone. */
static void test_unloaded(void)
{
	EXPECT_EQ(syscall(SYS_delete_module, "twheel", O_NONBLOCK), 0);
	sleep_ns(90 * SEC);
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	counter_init();
	passes = map_shared(PAGE);
	cgroup_write("", "cgroup.subtree_control", "+cpu");
	cgroup_make("hostile");
	RUN_CALL(lost(), "nobody");
	RUN(test_later, "a million timers are moved to later again and again");
	RUN(test_later_in_new_wheels, "the same, and the wheel is closed and opened again");
	RUN(test_unloaded, "the module is unloaded");
	return tap_end();
}
