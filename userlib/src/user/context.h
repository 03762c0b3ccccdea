/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A wheel in the program itself, as its own files see it: the module's wheel and
 * table, under a mutex.
 *
 * No thread and no interrupt turns the wheel: every call first does what is due by then,
 * but for a cancel.
 * The descriptor that programs poll is an epoll's, with two others in it: a timerfd, which
 * is set for the next tick at which there is something to do, and an eventfd, which is
 * readable while expired timers are not read. So a program that polls is woken when it has
 * to call, and is not while nothing is due.
 *
 * It is woken for nothing when a slot only had to cascade, or when the timer that was due
 * has been cancelled. Cascades do so seldom: of the polls for timers that expire within
 * 8 s, none with 10 timers, 5 in 778 with 1,000, none with 100,000. Only a thread of the
 * library's own could spare them.
 */
#ifndef TWHEEL_USER_CONTEXT_H
#define TWHEEL_USER_CONTEXT_H

#include <errno.h>
#include <pthread.h>

#include "../timens.h"
#include "user.h"
#include "wheel.h"

/* The timerfd is set for nothing that is to be done, or is to be set anew */
#define USER_TIMER_OFF S64_MAX
#define USER_TIMER_OLD S64_MIN

/* Timers that are put off at a time, at most */
#define USER_LATER 64

/**
 * struct user_later - a timer that is put off, see later.c
 * @id: where its id is
 * @deadline: when it expires, in ns
 * @user_data: as of &struct twheel_op
 */
struct user_later {
	uint64_t *id;
	s64 deadline;
	u64 user_data;
};

/**
 * struct user_wheel - a wheel in the program itself
 * @epoll: the descriptor that programs know: an epoll that has the next two
 * @timer: the timerfd
 * @ready: the eventfd
 * @forks: how often the process that opened it had come out of fork(2) by then
 * @lock: guards all that follows, unless there is @outer
 * @outer: a lock that all who call hold already, or NULL
 * @alone: @lock is not held by the call that is made now, as there is one thread only
 * @wheel: the wheel itself
 * @table: its nodes
 * @periods: what periodic timers have besides
 * @timer_ns: time that @timer is set for, USER_TIMER_OFF or USER_TIMER_OLD
 * @timer_tick: the wheel's tick that this is, or TW_NEVER
 * @timer_at: the same, but never off: a far time in place of that
 * @timens: what its clock is in the time namespace in which the process is
 * @notified: expiries by the time that @ready was signalled last; 0 if it is not readable
 * @fixed: the set-up can't be changed any more
 * @limit: most timers that it may hold, but for the shared ones
 * @shared: shared timers, which others look after
 * @flags: TWHEEL_SETUP_*
 * @unit: bytes of an event, or in count mode of the count
 * @random: state of the random numbers that jitter is made of
 * @stats: counters
 * @nr_later: how many timers are put off
 * @later: these: each expires after @timer_ns, and has a free node in @table
 */
struct user_wheel {
	int epoll;
	int timer;
	int ready;
	unsigned int forks;
	pthread_mutex_t lock;
	pthread_mutex_t *outer;
	bool alone;
	struct tw_wheel wheel;
	struct tw_table table;
	struct tw_table periods;
	s64 timer_ns;
	s64 timer_tick;
	s64 timer_at;
	struct timens timens;
	u64 notified;
	bool fixed;
	u32 limit;
	u32 shared;
	u32 flags;
	u32 unit;
	u64 random;
	struct twheel_stats stats;
	u32 nr_later;
	struct user_later later[USER_LATER];
};

/* context.c: its life and its memory */
int user_add_nodes(struct user_wheel *uw, struct tw_table *table);
void user_add_all_slots(struct user_wheel *uw);
void user_free_chunks(struct tw_chunk *chunk);

/* time.c: time passes, and programs that poll are woken */
int user_open_fds(struct user_wheel *uw, int flags);
void user_close_fds(struct user_wheel *uw);
void user_start_clock(struct user_wheel *uw, u32 id);
int user_set_clock(struct user_wheel *uw, const struct tw_clock *clock);
int user_lock(struct user_wheel *uw);
void user_unlock(struct user_wheel *uw);
int user_begin(struct user_wheel *uw, s64 *now);
void user_end(struct user_wheel *uw, s64 now);

/* ops.c: what a program does to timers */
s64 user_jitter(struct user_wheel *uw, u64 jitter);

/* later.c: timers that are put off */
void user_arm_later(struct user_wheel *uw);

/* The time that it is on the wheel's clock, in ns. The lock is held. */
static inline s64 user_clock(struct user_wheel *uw)
{
	return timens_time(&uw->timens, tw_clock_now(&uw->wheel.clock));
}

/* Free chunks that are empty. */
static inline void user_free_spare(struct tw_table *table)
{
	struct tw_chunk *chunk = tw_table_detach_spare(table);

	if (unlikely(chunk))
		user_free_chunks(chunk);
}

/* Timers that a wheel holds */
static inline u32 user_timers(const struct user_wheel *uw)
{
	return uw->wheel.pending + uw->wheel.ready.count + uw->nr_later;
}

/* Take one out that is put off. The last one gets its place. */
static inline void user_take_later(struct user_wheel *uw, u32 place)
{
	struct user_later *last = &uw->later[--uw->nr_later];

	uw->later[place] = *last;
	*last->id = place;
}

#endif
