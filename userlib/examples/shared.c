// SPDX-License-Identifier: MIT
/*
 * Idle timeouts of a thousand connections, armed and cancelled without a system
 * call. The timer of a connection has its number. Those with even numbers have
 * data now and then, until they are closed; the others are silent, and time out.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <twheel.h>
#include <twheel_shared.h>

#define MS 1000000ULL
#define CONNECTIONS 1000
#define TIMEOUT (300 * MS)
#define ROUNDS 10

static struct twheel_area timers;
static bool is_open[CONNECTIONS];
static int timed_out, closed;

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

static void received(unsigned int connection)
{
	if (!is_open[connection])
		return;
	must(twheel_shared_arm(&timers, connection, now() + TIMEOUT),
	     "twheel_shared_arm");
}

static void disconnected(unsigned int connection)
{
	/* Otherwise it has timed out before */
	if (twheel_shared_cancel(&timers, connection))
		closed++;
}

/* Wait for expiries, for @ms at most */
static void run(struct twheel *tw, int ms)
{
	struct pollfd pfd = { .fd = twheel_fd(tw), .events = POLLIN };
	unsigned int connections[64], n, i;

	if (poll(&pfd, 1, ms) != 1)
		return;
	while ((n = twheel_shared_take(&timers, connections, 64))) {
		for (i = 0; i < n; i++)
			is_open[connections[i]] = false;
		timed_out += n;
	}
}

int main(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.shared = CONNECTIONS,
	};
	struct twheel *tw;

	must(twheel_open(TWHEEL_KERNEL, &tw), "open (is the module loaded?)");
	must(twheel_setup(tw, &setup), "twheel_setup");
	must(twheel_shared_map(tw, &timers), "twheel_shared_map");

	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		is_open[i] = true;
		received(i);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < CONNECTIONS; i += 2)
			received(i);
		run(tw, 10);
	}
	for (unsigned int i = 0; i < CONNECTIONS; i += 2)
		disconnected(i);
	while (timed_out + closed < CONNECTIONS)
		run(tw, -1);
	printf("%d were closed, %d timed out\n", closed, timed_out);

	twheel_shared_unmap(&timers);
	twheel_close(tw);
	return timed_out + closed != CONNECTIONS || timed_out < CONNECTIONS / 2;
}
