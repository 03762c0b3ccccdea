// SPDX-License-Identifier: GPL-2.0
/*
 * A program with wheels, for the tests of the command twheel to look at: "wheels" or
 * "wheels busy", which arms, moves, cancels and expires timers all the time. Without that:
 *
 *	the first wheel		realtime, a tick of 5 ms, at most 1,000 timers: 3 pending, 2
 *				ready; twice open here, and once in a child
 *	the second wheel	monotonic, a tick of 1 ms: 7 pending; one was refused
 *	the third wheel		of the child, whose name has in it what names should not
 *
 * Prints "PARENT CHILD FIRST SAME SECOND": processes and descriptors. Ends when its input
 * does.
 */
#include "device.h"

#include <sys/prctl.h>

static void fill_first(int fd)
{
	int i;

	if (wheel_setup(fd, TWHEEL_CLOCK_REALTIME, 5 * MSEC, 1000, 0))
		tap_bail("set up");
	for (i = 0; i < 3; i++)
		arm(fd, 0, HOUR, i);
	arm_past(fd, 0);
	arm_past(fd, 0);
}

static void fill_second(int fd)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	int i;

	if (wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, MSEC, 7, 0))
		tap_bail("set up");
	for (i = 0; i < 7; i++)
		arm(fd, 0, HOUR, i);
	if (op_single(fd, &op) != -ENOSPC)
		tap_bail("not refused");
}

static void wait_for_name(pid_t child)
{
	char path[64], name[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", child);
	if (!WAIT_FOR((read_text(path, name, sizeof(name)), !strncmp(name, "evil", 4))))
		tap_bail("the child has no name");
}

static void hold(void)
{
	int first = wheel_open(O_NONBLOCK), second = wheel_open(O_NONBLOCK);
	int same = dup(first);
	char byte;
	pid_t child;

	fill_first(first);
	fill_second(second);
	child = fork();
	if (!child) {
		close(same);
		close(second);
		wheel_open(O_NONBLOCK);
		prctl(PR_SET_NAME, "evil\033[2J\"\\");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	wait_for_name(child);
	printf("%d %d %d %d %d\n", getpid(), child, first, same, second);
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) > 0)
		tap_bail("no input was expected");
}

static void be_busy(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct twheel_event ev[64];
	struct twheel_op op;
	__u64 id;

	if (wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, MSEC, 0, 0))
		tap_bail("set up");
	while (!poll(&in, 1, 2)) {
		arm(fd, 0, 3 * MSEC, 0x2a);
		id = arm(fd, 0, HOUR, 0);
		op = op_arm(0, 2 * HOUR, 1);
		op.opcode = TWHEEL_OP_MODIFY;
		op.id = id;
		op_single(fd, &op);
		cancel(fd, id);
		read_events(fd, ev, ARRAY_SIZE(ev));
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "busy"))
		be_busy();
	else
		hold();
	return 0;
}
