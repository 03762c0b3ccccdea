// SPDX-License-Identifier: GPL-2.0
/*
 * In a container: says where its wheel is, and that a timer expired, or which call failed.
 * With a number, arms that number of timers more, until there is an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <twheel.h>

static int failed(const char *what, int ret)
{
	printf("%s: %s\n", what, strerror(-ret));
	return 1;
}

/* In a million seconds */
static int fill(struct twheel *tw, int nr)
{
	struct twheel_op op;
	int ret = 0;

	while (!ret && nr--) {
		op = twheel_op_arm(0, 1000000000000000, 0, 0);
		ret = twheel_arm(tw, &op);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct twheel_op op = twheel_op_arm(0, 10000000, 0, 42);
	struct twheel_event event;
	struct twheel *tw;
	int ret = twheel_open(0, &tw);

	if (ret)
		return failed("open", ret);
	puts(twheel_backend(tw) == TWHEEL_KERNEL ? "in the kernel" : "in the program");
	ret = twheel_arm(tw, &op);
	if (ret)
		return failed("arm", ret);
	ret = twheel_read(tw, &event, 1);
	if (ret != 1)
		return failed("read", ret);
	puts("expired");
	ret = argc > 1 ? fill(tw, atoi(argv[1])) : 0;
	twheel_close(tw);
	return ret ? failed("fill", ret) : 0;
}
