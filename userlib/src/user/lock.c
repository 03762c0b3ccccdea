// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Locks that several threads want again and again, and mostly have for less than a
 * microsecond.
 */

#include "user.h"

#include <linux/compiler.h>
#include <linux/timekeeping.h>

/*
 * How long it waits before it looks again, in ns: twice as long each time, and in all about
 * what it takes to sleep and to be woken.
 */
#define FIRST_WAIT 500
#define LAST_WAIT 16000

static void wait_awake(s64 ns)
{
	ktime_t end = ktime_get() + ns;

	while (ktime_get() < end)
		;
}

/*
 * To sleep, and to wake a thread that sleeps, costs many times what is done under the lock;
 * and once that has begun, each unlock does it. Looks are few, as each takes the lock's
 * cache line from the thread that has it, which is best left alone for many calls.
 */
void user_wait_for_lock(pthread_mutex_t *lock)
{
	s64 ns;

	for (ns = FIRST_WAIT; ns <= LAST_WAIT; ns *= 2) {
		wait_awake(ns);
		if (!pthread_mutex_trylock(lock))
			return;
	}
	pthread_mutex_lock(lock);
}
