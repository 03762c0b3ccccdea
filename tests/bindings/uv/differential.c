// SPDX-License-Identifier: GPL-2.0
/*
 * differential SEEDS [FIRST]: random programs of start, again, stop and close, in each of the
 * three modes of uv_run(), of which each callback, its time and each end of uv_run() is printed.
 * Built over libuv's timers and over ours, it is to print the same. In every other program
 * callbacks take their time.
 *
 * Time is that of exact.h: callbacks take none but what the program says. Then it has the loop
 * look at the clock, as libuv waits so much longer for the next timer if it does not, and a
 * wheel does not.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARED 0
#include "exact.h"
#include "api.h"

#define TIMERS 40
#define STEPS 150

static void pass(unsigned int ms)
{
	now += ms * MS;
	uv_update_time(&loop);
}

struct place {
	any_timer_t timer;
	int open;
	int closing;
};

static struct place places[TIMERS + 1];
#define DRIVER TIMERS

static unsigned long long seed, state;
static unsigned int steps;
static int slow;

static unsigned int rnd(unsigned int below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static unsigned int number(any_timer_t *timer)
{
	return (struct place *)timer - places;
}

static void say(const char *what, any_timer_t *timer, int result)
{
	printf("%llu %s %u: %d, active %d repeat %llu due in %llu\n",
	       (unsigned long long)uv_now(&loop), what, number(timer), result,
	       !!timer_is_active(timer),
	       (unsigned long long)timer_get_repeat(timer),
	       (unsigned long long)timer_get_due_in(timer));
}

static void act(void);

static void on_time(any_timer_t *timer)
{
	say("runs", timer, 0);
	if (slow && !rnd(4))
		pass(rnd(16));
	if (steps >= STEPS)
		timer_stop(timer);
	else
		act();
}

static void on_close(any_timer_t *timer)
{
	struct place *place = (struct place *)timer;

	printf("%llu closed %u\n", (unsigned long long)uv_now(&loop), number(timer));
	place->closing = 0;
	place->open = 0;
}

static unsigned int delay(void)
{
	switch (rnd(8)) {
	case 0:
		return 0;
	case 1:
		return rnd(3000);
	case 2:
		return 20;
	}
	return rnd(60);
}

/* Not all with 0: a turn of libuv before 1.48 would not end. */
static unsigned int period(void)
{
	return rnd(4) ? 0 : 1 + rnd(40);
}

static void act_on(struct place *place)
{
	any_timer_t *timer = &place->timer;

	switch (rnd(12)) {
	case 0:
		timer_close(timer, on_close);
		place->closing = 1;
		printf("  close %u\n", number(timer));
		break;
	case 1:
	case 2:
		say("  stop", timer, timer_stop(timer));
		break;
	case 3:
		say("  again", timer, timer_again(timer));
		break;
	case 4:
		timer_set_repeat(timer, period());
		break;
	default:
		say("  start", timer, timer_start(timer, on_time, delay(), period()));
	}
}

static void act(void)
{
	unsigned int i, nr = rnd(3);

	for (i = 0; i < nr; i++) {
		struct place *place = &places[rnd(TIMERS)];

		/* What is closing may be asked for anything but to be closed. */
		if (place->closing) {
			say("  again", &place->timer, timer_again(&place->timer));
			continue;
		}
		if (!place->open) {
			timer_init(&place->timer);
			place->open = 1;
		}
		act_on(place);
	}
}

static void drive(any_timer_t *timer)
{
	unsigned int i;

	if (++steps < STEPS) {
		act();
		timer_start(timer, drive, rnd(30), 0);
		return;
	}
	for (i = 0; i < TIMERS; i++)
		if (places[i].open && !places[i].closing)
			timer_set_repeat(&places[i].timer, 0);
}

static void run(uv_run_mode mode)
{
	int more;

	do {
		more = uv_run(&loop, mode);
		printf("%llu turn: %d\n", (unsigned long long)uv_now(&loop), more);
		/* Callbacks are found due in the same turn however long it is until then. */
		if (mode == UV_RUN_NOWAIT)
			pass(1 + rnd(8));
		else if (!rnd(8))
			pass(rnd(8));
	} while (more);
}

static void run_seed(void)
{
	unsigned int i;

	state = seed * 77777 + 1;
	slow = seed / 3 % 2;
	steps = 0;
	now = 1000 * MS * (seed % 1000 + 1) + seed % 7;
	if (open_loop())
		errx(1, "no loop");
	memset(places, 0, sizeof(places));
	for (i = 0; i <= TIMERS; i++) {
		places[i].open = 1;
		timer_init(&places[i].timer);
		timer_start(&places[i].timer, i == DRIVER ? drive : on_time, i, 0);
	}
	run((uv_run_mode)(seed % 3));
	for (i = 0; i <= TIMERS; i++)
		if (places[i].open && !places[i].closing)
			timer_close(&places[i].timer, on_close);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (close_loop())
		errx(1, "something is left in the loop");
}

int main(int argc, char **argv)
{
	unsigned long long first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned long long nr = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

	printf("libuv %s\n", uv_version_string());
	for (seed = first; seed < first + nr; seed++) {
		printf("seed %llu\n", seed);
		run_seed();
	}
	return 0;
}
