/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is asked of each library of timers with callbacks, by the few functions that tell one from
 * another: see main(). Times are in ms.
 */
#ifndef CASES_H
#define CASES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMERS 100

static int order[1000], orders, again, io, ready[2];
static double times[64], began, ended;
static void (*on_timer)(int timer), (*on_ready)(void);

/* What a library has: */
static void version(void);                      /* print it */
static int start(int timer, double delay, double period);
static int start_never(int timer, int which);   /* 0 or error; the names are in nevers[] */
extern const char *const nevers[];              /* ends with NULL */
static void stop(int timer);
static double left(int timer);                  /* NAN: can't be asked */
static int active(int timer);                   /* -1: can't be asked */
static void watch(int fd);                      /* on_ready() while it is readable; < 0: no more */
static void run(void);                          /* until leave() */
static void leave(void);
extern const int periods;                       /* has it periodic timers? */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static void busy(double delay)
{
	double end = now() + delay;

	while (now() < end)
		;
}

static void note(int timer)
{
	order[orders++] = timer;
	if (timer == TIMERS - 1)
		leave();
}

static void case_never(void)
{
	int i;

	printf("\tnever");
	on_timer = note;
	for (i = 0; nevers[i]; i++) {
		int error;

		orders = 0;
		error = start_never(0, i);
		start(TIMERS - 1, 100, 0);
		run();
		printf("%c%s: %s", i ? ';' : '\t', nevers[i], error ? "refused" :
		       order[0] == 0 ? "at once" : "waits");
		stop(0);
	}
}

static void state_within(int timer)
{
	if (!isnan(left(timer)))
		printf("; %s in the callback", fabs(left(timer)) < 100 ? "0" : "more");
	printf("\tdone\t%s", active(timer) < 0 ? "not said" :
	       active(timer) ? "pending in the callback" : "over in the callback");
	leave();
}

static void case_left(void)
{
	printf("\tleft\t");
	on_timer = note;
	start(TIMERS - 1, 1, 0);
	run();
	start(0, 10000, 0);
	busy(300);
	if (isnan(left(0)))
		printf("not said");
	else
		printf("from %s", left(0) > 9850 ? "the turn" : "now");
	stop(0);
	start(TIMERS - 1, 1, 0);
	run();
	on_timer = state_within;
	start(0, 10, 0);
	run();
	stop(0);
}

/* A turn of the loop may also end as something is ready to be read. */
static void read_it(void)
{
	if (!ended)
		ended = again;
	watch(-1);
}

static void with_io(void (*a_case)(char *text), const char *name)
{
	char alone[64], beside[64];

	on_ready = read_it;
	io = 0;
	a_case(alone);
	io = 1;
	a_case(beside);
	printf("\t%s\t%s%s%s", name, alone, strcmp(alone, beside) ? "; beside I/O " : "",
	       strcmp(alone, beside) ? beside : "");
}

static void busy_then_start(int timer)
{
	if (!timer) {
		busy(300);
		began = now();
		start(1, 200, 0);
		if (io)
			watch(ready[0]);
	} else {
		ended = now();
		leave();
	}
}

static void case_now(char *text)
{
	on_timer = busy_then_start;
	start(0, 10, 0);
	run();
	strcpy(text, ended - began < 150 ? "from the turn" : "from now");
}

static int last_starts[300], starts;

static void start_many(int timer)
{
	int i;

	if (timer != TIMERS - 1) {
		order[orders++] = timer;
		return;
	}
	if (orders) {
		leave();
		return;
	}
	srand(1);
	for (starts = 0; starts < 300; starts++) {
		i = rand() % (TIMERS - 1);
		last_starts[starts] = i;
		stop(i);
		start(i, 200, 0);
	}
	start(TIMERS - 1, 400, 0);
}

static void case_equal(void)
{
	int seen[TIMERS] = { 0 }, i, n, same = 1;

	on_timer = start_many;
	orders = 0;
	start(TIMERS - 1, 10, 0);
	run();
	/* From the end: the last start of each counts. */
	for (i = starts - 1, n = orders; i >= 0; i--)
		if (!seen[last_starts[i]]++)
			same &= --n >= 0 && order[n] == last_starts[i];
	printf("\tequal\t%s", same && !n ? "as started" : "any");
}

static void stall(int timer)
{
	times[orders++] = now() - began;
	if (orders == 1) {
		busy(2600 - times[0]);
		if (io)
			watch(ready[0]);
	} else if (times[orders - 1] > 3500 || orders == 20) {
		stop(timer);
		leave();
	}
}

/* A period of 400 ms, and a callback that is busy from 400 to 2,600 */
static void case_stall(char *text)
{
	int at_once = 0, i;

	on_timer = stall;
	orders = 0;
	began = now();
	start(0, 400, 400);
	run();
	for (i = 1; i < orders && times[i] < 2700; i++)
		at_once++;
	sprintf(text, "%d at once, then %s", at_once,
		times[i] < 2900 ? "on the grid" : "a period later");
}

static void start_again(int timer)
{
	if (!again)
		watch(ready[0]);
	if (++again < 100)
		start(timer, 0, 0);
	else
		leave();
}

static void case_again(void)
{
	on_timer = start_again;
	again = 0;
	ended = 0;
	start(0, 10, 0);
	run();
	printf("\tagain\t%s", ended && ended < 100 ? "others in between" : "before all else");
}

static void stop_other(int timer)
{
	if (timer < 2)
		stop(!timer);
	note(timer);
}

static void case_cancel(void)
{
	on_timer = stop_other;
	orders = 0;
	start(0, 50, 0);
	start(1, 50, 0);
	start(TIMERS - 1, 300, 0);
	busy(100);
	run();
	printf("\tcancel\t%s\n", orders == 2 ? "does not run" : "runs");
}

static void cases(void)
{
	if (pipe(ready) || write(ready[1], "", 1) != 1)
		exit(1);
	version();
	case_never();
	case_left();
	with_io(case_now, "now");
	case_equal();
	if (periods)
		with_io(case_stall, "stall");
	else
		printf("\tstall\tno periods");
	case_again();
	case_cancel();
}

#endif /* CASES_H */
