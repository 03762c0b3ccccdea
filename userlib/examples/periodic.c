// SPDX-License-Identifier: MIT
/*
 * A periodic timer with a callback, and a second one that ends the first: the
 * event loop of the library. Periods that nobody had time for are counted.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <twheel.h>

#define MS 1000000ULL

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

static void count(struct twheel *tw, struct twheel_timer *timer,
		  const struct twheel_event *event)
{
	unsigned long long *periods = timer->arg;

	(void)tw;
	*periods += 1 + event->overrun;
	printf("tick, %llu periods so far\n", *periods);
}

static void stop(struct twheel *tw, struct twheel_timer *timer,
		 const struct twheel_event *event)
{
	(void)event;
	must(twheel_timer_cancel(tw, timer->arg), "twheel_timer_cancel");
}

int main(void)
{
	struct twheel_timer ticker, stopper;
	unsigned long long periods = 0;
	struct twheel *tw;

	must(twheel_open(0, &tw), "twheel_open");
	twheel_timer_init(&ticker, count, &periods);
	twheel_timer_init(&stopper, stop, &ticker);
	must(twheel_timer_arm(tw, &ticker, 0, 20 * MS, 20 * MS),
	     "twheel_timer_arm");
	must(twheel_timer_arm(tw, &stopper, 0, 210 * MS, 0),
	     "twheel_timer_arm");

	while (ticker.id)
		must(twheel_run_once(tw, -1), "twheel_run_once");
	twheel_close(tw);
	return !periods;
}
