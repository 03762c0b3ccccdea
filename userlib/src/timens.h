/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The clock of a wheel, which goes on as it did in the time namespace in which the wheel was
 * opened. A process that has the wheel may be in another one by now: after setns(2), because
 * fork(2) brought it there, or because it was given the descriptor. There clock_gettime(2)
 * gives other times, and nobody says that it does.
 *
 * No namespace moves the wall clock. So a process is not where it was if the wall clock is
 * not as far ahead of the other one as it was. That is looked at with each call, unless hardly
 * any time has gone by since it was; then the wheel is asked, which knows. (It is asked for
 * nothing where the wall clock was set.)
 */
#ifndef TWHEEL_TIMENS_H
#define TWHEEL_TIMENS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * ns after a look during which there is no further one: a look takes as long as to read the
 * clock.
 */
#define TIMENS_BLIND 10000

/* Nothing is known yet: the wheel is asked first. */
#define TIMENS_NEW (INT64_MIN / 4)

/**
 * struct timens - how a wheel's clock differs from that of the process
 * @id: the clock, as of clock_gettime(2)
 * @behind: is the wheel's time to be too small, if it can't be exact?
 * @ahead: the time here less that of the wheel, in ns
 * @wall: the wall clock less the time here is not less than that; %TIMENS_NEW before it was
 *	looked at
 * @wall_end: it is not more than that
 * @looked: the time here when that was looked at last
 * @ask: gives the time of the wheel, or a negative error where that can't be known; -EAGAIN: but
 *	soon
 * @wheel: for @ask
 */
struct timens {
	clockid_t id;
	bool behind;
	int64_t ahead;
	int64_t wall;
	int64_t wall_end;
	int64_t looked;
	int64_t (*ask)(void *wheel);
	void *wheel;
};

int64_t timens_here(clockid_t id);
bool timens_can_move(const struct timens *timens);
void timens_settle(struct timens *timens);
void timens_look(struct timens *timens, int64_t here);

/* The time of the wheel, in ns, of which it is @here in this process */
static inline int64_t timens_time(struct timens *timens, int64_t here)
{
	int64_t looked = __atomic_load_n(&timens->looked, __ATOMIC_ACQUIRE);
	int64_t time;

	if (__builtin_expect((uint64_t)(here - looked) > TIMENS_BLIND, 0))
		timens_look(timens, here);
	time = here - __atomic_load_n(&timens->ahead, __ATOMIC_RELAXED);
	return time < 0 ? 0 : time;
}

#endif
