// SPDX-License-Identifier: LGPL-2.1-or-later
/* The clock of a wheel in another time namespace: see timens.h. */

#include "timens.h"

#define SEC 1000000000LL

/* By so much the two clocks may seem to have moved as one is read after the other, in ns */
#define INEXACT 1000

/* Which of so many answers is the most exact? A thread may be interrupted in each. */
#define ANSWERS 5

/* The time in this process, in ns */
int64_t timens_here(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

/* Is there a namespace that can move it? */
bool timens_can_move(const struct timens *timens)
{
	return timens->id == CLOCK_MONOTONIC || timens->id == CLOCK_BOOTTIME;
}

static void set(int64_t *field, int64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* What the wheel says is from between @before and @after. Without need, nothing changes. */
static void ask(struct timens *timens)
{
	int64_t shortest = INT64_MAX, ahead = timens->ahead;
	int i;

	for (i = 0; i < ANSWERS; i++) {
		int64_t before = timens_here(timens->id), time = timens->ask(timens->wheel);
		int64_t after = timens_here(timens->id);

		if (time < 0 || (timens->ahead >= before - time && timens->ahead <= after - time))
			return;
		if (after - before < shortest) {
			shortest = after - before;
			ahead = timens->behind ? after - time : before - time;
		}
	}
	set(&timens->ahead, ahead);
}

/* Is it another namespace than before? It is @here, and was read a moment ago. */
void timens_look(struct timens *timens, int64_t here)
{
	int64_t wall;

	set(&timens->looked, here);
	if (!timens_can_move(timens))
		return;
	wall = timens_here(CLOCK_REALTIME) - here - __atomic_load_n(&timens->wall, __ATOMIC_RELAXED);
	if (wall >= -INEXACT && wall <= INEXACT)
		return;
	ask(timens);
	here = timens_here(timens->id);
	set(&timens->wall, timens_here(CLOCK_REALTIME) - here);
	set(&timens->looked, here);
}
