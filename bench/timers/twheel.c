// SPDX-License-Identifier: GPL-2.0
/* twheel's timers with callbacks, for cases.h */
#include "cases.h"

#include <fcntl.h>
#include <poll.h>
#include <twheel.h>

static struct twheel *tw;
static struct twheel_timer timers[TIMERS];
static int watched = -1, left_it;

const char *const nevers[] = { "UINT64_MAX ns", "2^63", "LONG_MAX", NULL };
const int periods = 1;

static void version(void) { printf("twheel, twheel_run_once"); }

static void expired(struct twheel *wheel, struct twheel_timer *timer,
		    const struct twheel_event *event)
{
	(void)wheel;
	(void)event;
	on_timer(timer - timers);
}

static int start(int i, double delay, double period)
{
	return twheel_timer_arm(tw, &timers[i], 0, delay * 1e6, period * 1e6);
}

static int start_never(int i, int which)
{
	static const uint64_t values[] = { UINT64_MAX, 1ULL << 63, INT64_MAX };

	return twheel_timer_arm(tw, &timers[i], 0, values[which], 0);
}

static void stop(int i) { twheel_timer_cancel(tw, &timers[i]); }

static double left(int i)
{
	struct twheel_op op = twheel_op_query(timers[i].id);

	if (twheel_query(tw, &op) || op.state != TWHEEL_STATE_PENDING)
		return 0;
	return (op.deadline - twheel_now(tw)) / 1e6;
}

static int active(int i) { return timers[i].id != 0; }

static void run(void)
{
	for (left_it = 0; !left_it;) {
		struct pollfd fds[] = { { twheel_fd(tw), POLLIN, 0 }, { watched, POLLIN, 0 } };

		poll(fds, 2, -1);
		if (fds[0].revents)
			twheel_run_once(tw, 0);
		if (fds[1].revents)
			on_ready();
	}
}

static void leave(void) { left_it = 1; }
static void watch(int fd) { watched = fd; }

int main(void)
{
	int i;

	if (twheel_open(O_NONBLOCK, &tw))
		return 1;
	for (i = 0; i < TIMERS; i++)
		twheel_timer_init(&timers[i], expired, NULL);
	cases();
	return 0;
}
