// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX timers: their expiry comes as a signal to this thread, which takes it with
 * sigtimedwait. Where no expiry is to be collected, they signal nobody, which is
 * the cheapest they can be.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static const uint32_t *subject;
static int flags, notify;
static struct itimerspec spec[BATCH];
static uint32_t signalled[BATCH];
static sigset_t signals;

static void pt_open(size_t timers, bool deliver)
{
	struct rlimit limit = { timers + 64, timers + 64 };

	if (setrlimit(RLIMIT_SIGPENDING, &limit))
		err(1, "setrlimit");
	notify = deliver ? SIGEV_THREAD_ID : SIGEV_NONE;
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		err(1, "sigprocmask");
}

static void pt_close(void)
{
}

static timer_t timer_of(size_t timer)
{
	return (timer_t)handle[timer];
}

static void create(size_t first, unsigned int n)
{
	struct sigevent event = {
		.sigev_notify = notify,
		.sigev_signo = SIGRTMIN,
		.sigev_notify_thread_id = gettid(),
	};
	size_t i;

	for (i = first; i < first + n; i++) {
		timer_t id;

		event.sigev_value.sival_int = i;
		if (timer_create(CLOCK_MONOTONIC, &event, &id))
			err(1, "timer_create");
		handle[i] = (uintptr_t)id;
	}
}

static void destroy(size_t first, unsigned int n)
{
	size_t i;

	for (i = first; i < first + n; i++)
		if (timer_delete(timer_of(i)))
			err(1, "timer_delete");
}

static void prepare(enum operation op, const uint32_t *timer, const uint64_t *time,
		    bool absolute, unsigned int n)
{
	unsigned int i;

	subject = timer;
	flags = absolute ? TIMER_ABSTIME : 0;
	for (i = 0; i < n; i++) {
		uint64_t t = op == CANCEL ? 0 : time[i];

		spec[i].it_value.tv_sec = t / SECOND;
		spec[i].it_value.tv_nsec = t % SECOND;
	}
}

static void submit(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (timer_settime(timer_of(subject[i]), flags, &spec[i], NULL))
			err(1, "timer_settime");
}

/* What it could say is said by its result. */
static void check(unsigned int n)
{
	(void)n;
}

static unsigned int collect(void)
{
	static const struct timespec at_once;
	unsigned int n;

	for (n = 0; n < BATCH; n++) {
		siginfo_t info;

		if (sigtimedwait(&signals, &info, &at_once) < 0) {
			if (errno != EAGAIN)
				err(1, "sigtimedwait");
			break;
		}
		signalled[n] = info.si_value.sival_int;
	}
	return n;
}

static void check_collected(unsigned int n)
{
	uint64_t when = now();
	unsigned int i;

	for (i = 0; i < n; i++)
		note_expiry(signalled[i], when);
}

int main(int argc, char **argv)
{
	static const struct peer posix = {
		.name = "posix",
		.batch = 1,
		.whole = 100000,
		.open = pt_open,
		.create = create,
		.destroy = destroy,
		.prepare = prepare,
		.submit = submit,
		.check = check,
		.collect = collect,
		.check_collected = check_collected,
		.close = pt_close,
	};

	return bench(&posix, argc, argv);
}
