// SPDX-License-Identifier: LGPL-2.1-or-later
/* The clock of a wheel in another time namespace: see timens.h. */

#include <errno.h>

#include "timens.h"

#define SEC 1000000000LL

/* What the two clocks may differ by, as each is rounded, in ns */
#define ROUNDED 2

/* From this many answers the most exact one is taken. A thread may be interrupted in each. */
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

/* A thread that sees the new value of a field sees the fields that were set before it, too. */
static void set(int64_t *field, int64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static int64_t get(const int64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

/*
 * What the wheel says is from between @before and @after. Without need, nothing changes. Returns
 * false if it can't say it just now.
 */
static bool ask(struct timens *timens)
{
	int64_t shortest = INT64_MAX, known = get(&timens->ahead), ahead = known;
	int i;

	for (i = 0; i < ANSWERS; i++) {
		int64_t before = timens_here(timens->id), time = timens->ask(timens->wheel);
		int64_t after = timens_here(timens->id);

		if (time == -EAGAIN)
			continue;
		if (time < 0 || (known >= before - time && known <= after - time))
			return true;
		if (after - before < shortest) {
			shortest = after - before;
			ahead = timens->behind ? after - time : before - time;
		}
	}
	set(&timens->ahead, ahead);
	return shortest < INT64_MAX;
}

/* How far is the wall clock ahead, as seen from @here, a moment ago, and now? */
static void look(const struct timens *timens, int64_t here, int64_t *wall, int64_t *wall_end)
{
	int64_t real = timens_here(CLOCK_REALTIME);

	*wall = real - timens_here(timens->id) - ROUNDED;
	*wall_end = real - here + ROUNDED;
}

/* Nothing is to be asked where the process is now: the wheel was opened here, or has been asked. */
void timens_settle(struct timens *timens)
{
	int64_t wall, wall_end;

	look(timens, timens_here(timens->id), &wall, &wall_end);
	set(&timens->wall, wall);
	set(&timens->wall_end, wall_end);
}

static void look_here(struct timens *timens, int64_t here)
{
	int64_t before = get(&timens->wall), before_end = get(&timens->wall_end);
	int64_t wall, wall_end;

	look(timens, here, &wall, &wall_end);
	if (wall > before_end || wall_end < before) {
		if (ask(timens))
			timens_settle(timens);
		return;
	}
	/* The more looks, the better it is known. */
	if (wall > before)
		set(&timens->wall, wall);
	if (wall_end < before_end)
		set(&timens->wall_end, wall_end);
}

/*
 * Is it another namespace than before? It is @here, and was read a moment ago. Other threads look
 * for themselves until this is known.
 */
void timens_look(struct timens *timens, int64_t here)
{
	if (timens_can_move(timens))
		look_here(timens, here);
	set(&timens->looked, here);
}
