// SPDX-License-Identifier: GPL-2.0
/*
 * Has a wheel of the module's, with one periodic timer, until it is killed: a line for
 * each event.
 */
#include <stdio.h>
#include <string.h>

#include <twheel.h>

int main(void)
{
	struct twheel_op op = twheel_op_arm(0, 50000000, 50000000, 0);
	struct twheel_event event;
	struct twheel *tw;
	int ret = twheel_open(TWHEEL_KERNEL, &tw);

	if (!ret)
		ret = twheel_arm(tw, &op);
	while (ret >= 0) {
		ret = twheel_read(tw, &event, 1);
		if (ret > 0) {
			puts("expired");
			fflush(stdout);
		}
	}
	fprintf(stderr, "hold: %s\n", strerror(-ret));
	return 1;
}
