// SPDX-License-Identifier: GPL-2.0
/*
 * differential SEEDS [FIRST]: random programs of start, again, stop and close, of which
 * each callback and its time is printed. Built over libuv's timers and over ours, it is to
 * print the same. The clock is the program's own: it stands still but while the loop
 * waits, and goes to what it waits for then.
 *
 * Versions of libuv differ in whether a timer that a callback starts with 0 runs in the
 * same turn, since 1.45 also in whether it does before what was closed there; and where
 * callbacks take their time, in when the loop looks at the clock. So programs that do that,
 * which have odd seeds, print only what must not be: a callback that is early, unasked, out
 * of turn or missing.
 */

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api.h"

#define MS 1000000ULL
#define TIMERS 40
#define STEPS 400
#define FDS 64

static unsigned long long now = 1000 * MS;

/* A timerfd is an eventfd here, and that it is due at. */
static struct {
	int used;
	int fired;
	unsigned long long due;
} timerfds[FDS];

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = now / (1000 * MS);
	ts->tv_nsec = now % (1000 * MS);
	return 0;
}

int timerfd_create(int clock, int flags)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)clock;
	(void)flags;
	if (fd < 0 || fd >= FDS)
		errx(1, "no place for a timerfd");
	timerfds[fd].used = 1;
	timerfds[fd].fired = 0;
	timerfds[fd].due = 0;
	return fd;
}

static void fire_due(void)
{
	int fd;

	for (fd = 0; fd < FDS; fd++) {
		if (!timerfds[fd].due || timerfds[fd].due > now || timerfds[fd].fired)
			continue;
		eventfd_write(fd, 1);
		timerfds[fd].fired = 1;
	}
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	eventfd_t count;

	if (old || !(flags & TFD_TIMER_ABSTIME))
		errx(1, "not as the library uses a timerfd");
	eventfd_read(fd, &count);
	timerfds[fd].fired = 0;
	timerfds[fd].due = new->it_value.tv_sec * 1000 * MS + new->it_value.tv_nsec;
	fire_due();
	return 0;
}

/* The time goes on until a timerfd is due, or the wait is over */
static void pass(int timeout)
{
	unsigned long long end = timeout < 0 ? -1ULL : now + timeout * MS;
	int fd;

	for (fd = 0; fd < FDS; fd++)
		if (timerfds[fd].used && timerfds[fd].due && !timerfds[fd].fired &&
		    timerfds[fd].due < end)
			end = timerfds[fd].due;
	if (end == -1ULL)
		errx(1, "the loop would wait for ever");
	if (end > now)
		now = end;
	fire_due();
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *set)
{
	int nr;

	do {
		nr = syscall(SYS_epoll_pwait, fd, events, max, 0, set, 8);
	} while (nr < 0 && errno == EINTR);
	if (nr || !timeout)
		return nr;
	pass(timeout);
	return syscall(SYS_epoll_pwait, fd, events, max, 0, set, 8);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(fd, events, max, timeout, NULL);
}

/* Random numbers that do not depend on the order of callbacks */
struct place {
	any_timer_t timer;
	unsigned long long random;
	/* What is expected of it */
	uint64_t due;
	uint64_t repeat;
	int active;
	int closing;
	int open;
};

static struct place places[TIMERS];
static uv_timer_t driver;
static unsigned long long seed, driver_random, steps;
/* Callbacks take their time, and start others with 0 */
static int slow;
static unsigned long long wrong;

static unsigned int rnd(unsigned long long *state, unsigned int below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % below;
}

static unsigned int number(const struct place *place)
{
	return place - places;
}

/* In programs of which all is to be the same */
#define say(...) ({ if (!slow) printf(__VA_ARGS__); })

static void complain(const struct place *place, const char *what)
{
	wrong++;
	printf("seed %llu, at %llu: timer %u %s\n", seed, (unsigned long long)uv_now(&loop),
	       number(place), what);
}

static void expect(struct place *place, int active)
{
	place->active = active;
	if (!!timer_is_active(&place->timer) != active)
		complain(place, active ? "is not active" : "is active");
	if (active)
		place->due = uv_now(&loop) + timer_get_due_in(&place->timer);
}

static void act(unsigned long long *random, int odd);

static void on_time(any_timer_t *timer)
{
	struct place *place = (struct place *)timer;
	int odd = uv_now(&loop) % 2;

	say("%llu %u fired active %d repeat %llu due %llu\n",
	    (unsigned long long)uv_now(&loop), number(place), !!timer_is_active(timer),
	    (unsigned long long)timer_get_repeat(timer),
	    (unsigned long long)timer_get_due_in(timer));
	if (!place->active || place->closing)
		complain(place, "runs unasked");
	if (uv_now(&loop) < place->due)
		complain(place, "is early");
	if (timer_get_repeat(timer) != place->repeat)
		complain(place, "has another period");
	expect(place, !!place->repeat);
	if (slow && !rnd(&place->random, 4))
		now += rnd(&place->random, 16) * MS;
	if (steps >= STEPS || (odd && !slow)) {
		timer_stop(timer);
		expect(place, 0);
	}
	if (steps < STEPS)
		act(&place->random, odd);
}

static void on_close(any_timer_t *timer)
{
	struct place *place = (struct place *)timer;

	say("%llu %u closed\n", (unsigned long long)uv_now(&loop), number(place));
	if (!place->closing)
		complain(place, "is closed unasked");
	place->closing = 0;
	place->open = 0;
}

static unsigned int delay(unsigned long long *random, int odd)
{
	unsigned int ms = 2 * rnd(random, 50) + 2;

	switch (rnd(random, 8)) {
	case 0:
		/* The driver's are run between those of the others, at an odd time. */
		if (slow || (random == &driver_random && UV_VERSION_HEX < 0x012d00))
			return 0;
		break;
	case 1:
		ms = 2 * rnd(random, 3000) + 2;
		break;
	case 2:
		ms = 20;
		break;
	}
	return slow ? ms : ms + odd;
}

static void do_start(struct place *place, unsigned long long *random, int odd)
{
	unsigned int ms = delay(random, odd);
	unsigned int period = rnd(random, 4) ? 0 : 2 * rnd(random, 40);
	int ret = timer_start(&place->timer, on_time, ms, period);

	say("  start %u gives %d, due in %llu\n", number(place), ret,
	    (unsigned long long)timer_get_due_in(&place->timer));
	place->repeat = period;
	expect(place, 1);
}

static void do_again(struct place *place)
{
	int ret = timer_again(&place->timer);

	say("  again %u gives %d, due in %llu\n", number(place), ret,
	    (unsigned long long)timer_get_due_in(&place->timer));
	if (ret || place->repeat)
		expect(place, !ret);
}

static void act_on(struct place *place, unsigned long long *random, int odd)
{
	switch (rnd(random, 12)) {
	case 0:
		say("  close %u\n", number(place));
		timer_close(&place->timer, on_close);
		place->closing = 1;
		expect(place, 0);
		break;
	case 1:
	case 2:
		say("  stop %u: %d\n", number(place), timer_stop(&place->timer));
		timer_stop(&place->timer);
		expect(place, 0);
		break;
	case 3:
		/* (Its period is even.) */
		if (!odd || slow)
			do_again(place);
		break;
	case 4:
		place->repeat = 2 * rnd(random, 20);
		timer_set_repeat(&place->timer, place->repeat);
		break;
	default:
		do_start(place, random, odd);
	}
}

static void act(unsigned long long *random, int odd)
{
	unsigned int i, nr = rnd(random, 4);

	for (i = 0; i < nr; i++) {
		struct place *place = &places[rnd(random, TIMERS)];

		if (place->closing)
			continue;
		if (!place->open) {
			timer_init(&place->timer);
			place->open = 1;
			place->repeat = 0;
		}
		act_on(place, random, odd);
	}
}

/* What is not done by callbacks is done at odd times, between those of the timers. */
static void drive(uv_timer_t *timer)
{
	unsigned int i;

	if (++steps < STEPS) {
		act(&driver_random, 1);
		uv_timer_start(timer, drive, 2 * rnd(&driver_random, 30) + 2, 0);
		return;
	}
	for (i = 0; i < TIMERS; i++) {
		timer_set_repeat(&places[i].timer, 0);
		places[i].repeat = 0;
	}
}

static void run_seed(void)
{
	unsigned int i;

	driver_random = seed * 77777 + 1;
	slow = seed % 2;
	steps = 0;
	/* A whole ms, or else none of the times would be even */
	now = 1000 * MS * (seed % 1000 + 1);
	if (open_loop())
		errx(1, "no loop");
	memset(places, 0, sizeof(places));
	for (i = 0; i < TIMERS; i++) {
		places[i].random = seed * 1000 + i;
		places[i].open = 1;
		timer_init(&places[i].timer);
		timer_start(&places[i].timer, on_time, 2 * i, 0);
		expect(&places[i], 1);
	}
	uv_timer_init(&loop, &driver);
	uv_timer_start(&driver, drive, 1, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&driver, NULL);
	for (i = 0; i < TIMERS; i++) {
		if (places[i].active)
			complain(&places[i], "was not run");
		if (!places[i].open)
			continue;
		places[i].closing = 1;
		timer_close(&places[i].timer, on_close);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	if (close_loop())
		errx(1, "something is left in the loop");
}

int main(int argc, char **argv)
{
	unsigned long long first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned long long nr = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

	for (seed = first; seed < first + nr; seed++) {
		printf("seed %llu\n", seed);
		run_seed();
	}
	return wrong != 0;
}
