/* SPDX-License-Identifier: GPL-2.0 */
/* Threads, and signals that come all the while. */
#ifndef THREADS_H
#define THREADS_H

#include "device.h"

#include <pthread.h>

static inline pthread_t thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t new;

	if (pthread_create(&new, NULL, fn, arg))
		tap_bail("pthread_create");
	return new;
}

/* Ended by pthread_cancel(3), wherever it is; false if it came to its own end before */
static inline bool end_thread(pthread_t other)
{
	void *ret;

	pthread_cancel(other);
	pthread_join(other, &ret);
	return ret == PTHREAD_CANCELED;
}

static inline void on_signal(int sig)
{
	(void)sig;
}

/* A signal each 10 ms, whose handler has SA_RESTART; 0 ends them */
static inline void signals_come(int on)
{
	static struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { { 0, 10 * MSEC }, { 0, 10 * MSEC } };
	static timer_t timer;

	if (!on) {
		timer_delete(timer);
		return;
	}
	signal(SIGUSR1, on_signal);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &often, NULL))
		tap_bail("no signals: %s", strerror(errno));
}

#endif
