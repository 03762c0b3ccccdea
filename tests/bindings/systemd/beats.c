// SPDX-License-Identifier: GPL-2.0
/*
 * beats [N]: a program whose shared timer expires each 20 ms, N times or until it is ended. It
 * prints a line for each.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <twheel.h>
#include <twheel_shared.h>

#define BEAT 20000000ULL
#define PATIENCE_MS 30000

static void must(const char *what, int ret)
{
	if (ret < 0) {
		printf("%s: %s\n", what, strerror(-ret));
		exit(EXIT_FAILURE);
	}
}

static void beat(struct twheel *tw, const struct twheel_area *area)
{
	struct pollfd fd = { .fd = twheel_fd(tw), .events = POLLIN };
	uint64_t deadline = twheel_now(tw) + BEAT;
	unsigned int timer, n = 0;

	must("arm", twheel_shared_arm(area, 7, deadline));
	while (!n) {
		if (poll(&fd, 1, PATIENCE_MS) <= 0) {
			puts("lost");
			exit(EXIT_FAILURE);
		}
		n = twheel_shared_take(area, &timer, 1);
	}
	puts(timer == 7 && twheel_now(tw) >= deadline ? "expired" : "early, or another");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct twheel_setup setup = {
		.size = sizeof(setup), .flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC, .shared = 1000,
	};
	int left = argc > 1 ? atoi(argv[1]) : -1;
	struct twheel_area area;
	struct twheel *tw;

	must("open", twheel_open(0, &tw));
	must("setup", twheel_setup(tw, &setup));
	must("map", twheel_shared_map(tw, &area));
	while (left-- != 0)
		beat(tw, &area);
	return 0;
}
