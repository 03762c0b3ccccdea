// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Time passes in a wheel of the program itself: each call turns the wheel, and
 * the descriptors say when the next call is due. See context.h.
 */

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "context.h"

#include <linux/timekeeping.h>

/* Is this the only thread of the program? Where the C library does not say, it may not be. */
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define ALONE __libc_single_threaded
#endif
#endif
#ifndef ALONE
#define ALONE false
#endif

#define SEC 1000000000LL

/* 34 years, and the period of a timerfd that is always set: 68 years, in whole seconds */
#define USER_FAR (SEC << 30)
#define USER_TURN (2 * USER_FAR)

/* How often this process, or those before it, came out of fork(2), if that can be known */
unsigned int user_forks;
static int forks_error;

static void forked(void)
{
	user_forks++;
}

static void watch_forks(void)
{
	forks_error = -pthread_atfork(NULL, NULL, forked);
}

/* user_forks counts from now on. Returns 0 or a negative error. */
int user_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	return forks_error;
}

/* In a child, functions are called in the order in which they were registered: so this early. */
static __attribute__((constructor)) void watch_early(void)
{
	user_watch_forks();
}

static int watch(struct user_wheel *uw, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(uw->epoll, EPOLL_CTL_ADD, fd, &event);
}

/*
 * The timerfd for a clock. There is none for TAI, which is the wall clock and whole
 * seconds.
 */
static int open_timer(u32 clock)
{
	return timerfd_create(clock == TWHEEL_CLOCK_TAI ? CLOCK_REALTIME :
			      tw_clock_kernel_id(clock),
			      TFD_CLOEXEC | TFD_NONBLOCK);
}

/* Returns 0 or a negative error; then user_close_fds() is still to be called. */
int user_open_fds(struct user_wheel *uw, int flags)
{
	int ret = user_watch_forks();

	uw->forks = user_forks;
	uw->epoll = epoll_create1(EPOLL_CLOEXEC);
	uw->timer = open_timer(TWHEEL_CLOCK_MONOTONIC);
	uw->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (uw->epoll < 0 || uw->timer < 0 || uw->ready < 0)
		return -errno;
	if (ret)
		return ret;
	if (watch(uw, uw->timer) || watch(uw, uw->ready))
		return -errno;
	if (flags & O_NONBLOCK && fcntl(uw->epoll, F_SETFL, O_NONBLOCK))
		return -errno;
	return 0;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void user_close_fds(struct user_wheel *uw)
{
	close_if_open(uw->epoll);
	close_if_open(uw->timer);
	close_if_open(uw->ready);
}

/* Not close(2): a thread that has the lock must not be cancelled there. */
static void close_timer(int timer)
{
	syscall(SYS_close, timer);
}

/*
 * The timerfd is set in this process's time. Where namespaces can move that, it is always set, if
 * for nothing that is to be done then for a time that will not come, and goes on when it has come:
 * so it can always be asked for the time of the wheel, see ask_time().
 */
static int set_timerfd(struct user_wheel *uw, s64 at, int flags)
{
	s64 here = at + uw->timens.ahead;
	struct itimerspec when = {
		.it_interval.tv_sec = uw->timer_at ? USER_TURN / SEC : 0,
		.it_value = { here / SEC, here % SEC },
	};

	return timerfd_settime(uw->timer, TFD_TIMER_ABSTIME | flags, &when, NULL);
}

/*
 * See &timens.ask. A timerfd says how long it is until its time, or the next; 0 while its time is
 * over and its interrupt has not come: nobody knows then since when.
 */
static int64_t ask_time(void *wheel)
{
	const struct user_wheel *uw = wheel;
	struct itimerspec left;
	s64 ns;

	if (timerfd_gettime(uw->timer, &left))
		return -errno;
	ns = left.it_value.tv_sec * SEC + left.it_value.tv_nsec;
	if (!ns)
		return -EAGAIN;
	return uw->timer_at - ns + (ns > USER_FAR ? USER_TURN : 0);
}

/* The clock of a wheel that is empty begins to be that one, as it is in this process. */
void user_start_clock(struct user_wheel *uw, u32 id)
{
	s64 here = tw_clock_now(&uw->wheel.clock);

	uw->timens = (struct timens){
		.id = tw_clock_kernel_id(id),
		.behind = true,
		.ask = ask_time,
		.wheel = uw,
	};
	timens_settle(&uw->timens);
	uw->timer_at = timens_can_move(&uw->timens) ? here + USER_FAR : 0;
	uw->timer_ns = USER_TIMER_OFF;
	uw->timer_tick = TW_NEVER;
	if (uw->timer_at)
		set_timerfd(uw, uw->timer_at, 0);
}

/* An empty wheel gets another clock. Returns 0 or a negative error. */
int user_set_clock(struct user_wheel *uw, const struct tw_clock *clock)
{
	struct tw_slot *slots = uw->wheel.slots;
	bool few = tw_wheel_is_small(&uw->wheel);
	int timer = open_timer(clock->id);

	if (timer < 0)
		return -errno;
	if (watch(uw, timer)) {
		int error = errno;

		close_timer(timer);
		return -error;
	}
	close_timer(uw->timer);
	uw->timer = timer;
	tw_wheel_init(&uw->wheel, &uw->table, clock,
		      tw_clock_floor(clock, tw_clock_now(clock)), uw->random);
	if (slots)
		tw_wheel_set_slots(&uw->wheel, slots, few);
	user_start_clock(uw, clock->id);
	return 0;
}

/* By how many ns TAI is ahead of the wall clock, which may be set meanwhile */
static s64 tai_offset(void)
{
	s64 before, tai;

	do {
		before = ktime_get_real();
		tai = ktime_get_clocktai();
	} while ((u64)(ktime_get_real() - before) > SEC / 4);
	return (tai - before + SEC / 2) / SEC * SEC;
}

/*
 * A timerfd follows its clock when that is set, but there is none for TAI. So that of the
 * wall clock is used, which becomes readable when the clock is set, as for a leap second.
 */
static noinline void set_timer(struct user_wheel *uw, s64 now)
{
	bool tai = uw->wheel.clock.id == TWHEEL_CLOCK_TAI;
	s64 ns = USER_TIMER_OFF, tick, at;
	int ret;

	user_arm_later(uw);
	tick = uw->wheel.next;
	if (tick != TW_NEVER)
		ns = tw_clock_tick_ns(&uw->wheel.clock, tick);

	do {
		at = max_t(s64, tai && ns != USER_TIMER_OFF ? ns - tai_offset() : ns, 1);
		if (uw->timer_at)
			at = min_t(s64, at, now + USER_FAR);
		else if (ns == USER_TIMER_OFF)
			at = 0;
		ret = set_timerfd(uw, at, tai ? TFD_TIMER_CANCEL_ON_SET : 0);
	} while (ret && errno == ECANCELED);
	if (uw->timer_at)
		uw->timer_at = at;
	uw->timer_ns = ns;
	uw->timer_tick = tick;
}

static s64 user_now(struct user_wheel *uw, s64 *tick)
{
	struct tw_wheel *wheel = &uw->wheel;
	s64 now = user_clock(uw);

	*tick = tw_clock_floor(&wheel->clock, now);
	if (unlikely(*tick < wheel->clk - 1)) {
		*tick += tw_wheel_set_back(wheel, *tick);
		/* The ticks of the wheel are other times now. */
		uw->timer_tick = TW_NEVER;
	}
	return now;
}

static void count_expired(struct user_wheel *uw, const struct tw_step *step)
{
	struct twheel_stats *stats = &uw->stats;
	u64 lateness = step->stamp - tw_clock_tick_ns(&uw->wheel.clock, step->tick);

	stats->expired += step->expired;
	stats->lateness[fls64(lateness)] += step->expired;
	stats->max_lateness = max_t(u64, stats->max_lateness, lateness);
}

/* Do all that is due. */
static noinline void turn(struct user_wheel *uw, s64 now, s64 tick)
{
	struct tw_step step = { .now = tick, .stamp = now };
	bool more;

	do {
		step.budget = U32_MAX;
		more = tw_wheel_step(&uw->wheel, &step);
		if (step.expired)
			count_expired(uw, &step);
	} while (more);
}

/**
 * user_lock() - begin with a call for which time does not pass
 * @uw: the wheel
 *
 * It fails in a child after fork(2): that shares the descriptors with its parent, but not
 * the timers, nor who unlocks the lock.
 *
 * Return: 0 or -EBADF.
 */
int user_lock(struct user_wheel *uw)
{
	if (unlikely(uw->forks != user_forks))
		return -EBADF;
	if (uw->outer)
		return 0;
	/* No thread is made, and none begins to use the wheel, before user_unlock(). */
	if (ALONE) {
		uw->alone = true;
	} else {
		user_mutex_lock(&uw->lock);
		uw->alone = false;
	}
	return 0;
}

/**
 * user_begin() - begin with a call
 * @uw: the wheel
 * @now: out: the time that it is now, in ns
 *
 * Takes @uw->lock, unless it fails.
 *
 * Return: as of user_lock().
 */
int user_begin(struct user_wheel *uw, s64 *now)
{
	int ret = user_lock(uw);
	s64 tick;

	if (unlikely(ret))
		return ret;
	*now = user_now(uw, &tick);
	if (unlikely(uw->wheel.set_back))
		tw_wheel_settle(&uw->wheel);
	if (unlikely(uw->timer_ns <= *now)) {
		uw->stats.wakeups++;
		user_arm_later(uw);
	}
	tw_wheel_forward(&uw->wheel, tick);
	if (unlikely(tick >= uw->wheel.next))
		turn(uw, *now, tick);
	return 0;
}

/*
 * Set the timerfd. As in the kernel, it is left alone if it is too early. Here that is also
 * so if no timer is pending any more: a program with a single timer that is mostly cancelled
 * would make two system calls each time otherwise.
 */
static void reprogram_timer(struct user_wheel *uw, s64 now)
{
	if (uw->wheel.next < uw->timer_tick || now >= uw->timer_ns)
		set_timer(uw, now);
}

/* Not eventfd_write(3): a thread that has the lock must not be cancelled there. */
static void signal_ready(struct user_wheel *uw)
{
	u64 one = 1;

	syscall(SYS_write, uw->ready, &one, sizeof(one));
}

static void clear_ready(struct user_wheel *uw)
{
	u64 count;

	syscall(SYS_read, uw->ready, &count, sizeof(count));
}

/*
 * Keep the eventfd readable while a timer is ready. A further timer that becomes ready
 * signals it again, for programs that poll for edges.
 */
static noinline void notify(struct user_wheel *uw, u64 notified)
{
	uw->notified = notified;
	if (notified)
		signal_ready(uw);
	else
		clear_ready(uw);
}

/**
 * user_unlock() - end with a call that user_lock() began
 * @uw: the wheel
 */
void user_unlock(struct user_wheel *uw)
{
	u64 notified = uw->wheel.ready.count ? uw->stats.expired : 0;

	if (unlikely(notified != uw->notified))
		notify(uw, notified);
	user_free_spare(&uw->table);
	user_free_spare(&uw->periods);
	if (!uw->outer && !uw->alone)
		pthread_mutex_unlock(&uw->lock);
}

/**
 * user_end() - end with a call that user_begin() began
 * @uw: the wheel
 * @now: what that gave
 */
void user_end(struct user_wheel *uw, s64 now)
{
	if (unlikely(uw->wheel.far))
		user_add_all_slots(uw);
	reprogram_timer(uw, now);
	user_unlock(uw);
}

/* See twheel_now(). In a child after fork(2) nothing is known of the namespace. */
uint64_t user_time(struct user_wheel *uw)
{
	s64 now;

	if (user_lock(uw))
		return tw_clock_now(&uw->wheel.clock);
	now = user_clock(uw);
	user_unlock(uw);
	return now;
}

/* Wait until a call is due. Of several threads that wait, epoll wakes one. */
int user_wait(struct user_wheel *uw)
{
	struct epoll_event event;

	return epoll_wait(uw->epoll, &event, 1, -1) < 0 ? -errno : 0;
}
