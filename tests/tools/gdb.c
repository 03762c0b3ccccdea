// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel for tools/gdb/twheel.py to look at: timers at known times, of which one is ready, and
 * then a function at which gdb stops. With "stay" it keeps the wheel until it is killed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <twheel.h>

#define SECOND 1000000000ULL
#define MANY 1000

__attribute__((noinline)) void stop_here(struct twheel *tw)
{
	__asm__ volatile("" : : "r"(tw) : "memory");
}

int main(int argc, char **argv)
{
	static struct twheel_op ops[MANY];
	struct twheel_op op = twheel_op_arm(0, 3600 * SECOND, 0, 7), hour = op;
	struct twheel_op again = twheel_op_arm(0, 60 * SECOND, 60 * SECOND, 8);
	struct twheel_op now = twheel_op_arm(0, 0, 0, 9);
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel *tw;
	int i;

	for (i = 0; i < MANY; i++)
		ops[i] = twheel_op_arm(0, 20 * SECOND, 0, 100 + i);
	if (twheel_open(O_NONBLOCK, &tw) || twheel_submit(tw, ops, MANY) != MANY ||
	    twheel_arm(tw, &hour) || twheel_arm(tw, &again) || twheel_arm(tw, &now) ||
	    twheel_info(tw, &info))
		return 1;
	printf("id %#llx pending %llu ready %llu\n", hour.id, info.pending,
	       info.ready);
	fflush(stdout);
	stop_here(tw);
	if (argc > 1 && !strcmp(argv[1], "stay"))
		pause();
	twheel_close(tw);
	return 0;
}
