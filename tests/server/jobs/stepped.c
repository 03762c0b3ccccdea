// SPDX-License-Identifier: GPL-2.0
/*
 * For a server that is started with it as LD_PRELOAD, time passes when somebody says so: the
 * boot time and the wall clock are what stands in the file $STEPPED, in ns. A timerfd of these
 * clocks is an eventfd, which is written once its time has come. (Timers of the wall clock
 * don't know that it was set: the server has none.)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define SECOND 1000000000LL
/* What the wall clock is ahead: some day of 2026 */
#define WALL (1780000000 * SECOND)
#define MOST 64

static struct {
	atomic_llong now;	/* what somebody says */
	atomic_llong seen;	/* up to which time expired timers are told */
	atomic_llong busy;	/* a timer has expired, and was not set anew */
	atomic_llong set;	/* by which somebody has set the wall clock */
} *stepped;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int is_timer;
	int fired;
	int64_t at;	/* 0: not armed */
} timers[MOST];

static void look(int fd)
{
	uint64_t one = 1;

	if (!timers[fd].at || timers[fd].at > stepped->now)
		return;
	timers[fd].at = 0;
	timers[fd].fired = 1;
	if (write(fd, &one, sizeof(one)) < 0)
		abort();
}

static void *watch(void *unused)
{
	const struct timespec soon = { .tv_nsec = 200000 };

	(void)unused;
	for (;;) {
		int64_t now = stepped->now, busy = 0;

		pthread_mutex_lock(&lock);
		for (int fd = 0; fd < MOST; fd++) {
			look(fd);
			busy |= timers[fd].fired;
		}
		stepped->busy = busy;
		stepped->seen = now;
		pthread_mutex_unlock(&lock);
		nanosleep(&soon, NULL);
	}
	return NULL;
}

__attribute__((constructor))
static void start(void)
{
	int fd = open(getenv("STEPPED"), O_RDWR | O_CLOEXEC);
	sigset_t all, old;
	pthread_t thread;

	stepped = mmap(NULL, sizeof(*stepped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || stepped == MAP_FAILED)
		abort();
	close(fd);
	/* Signals are the server's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watch, NULL))
		abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t now = stepped ? stepped->now : 0;

	if (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME)
		return REAL(clock_gettime)(clock, ts);
	if (clock == CLOCK_REALTIME)
		now += WALL + (stepped ? stepped->set : 0);
	*ts = (struct timespec){ now / SECOND, now % SECOND };
	return 0;
}

int timerfd_create(int clock, int flags)
{
	int fd;

	if (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME)
		return REAL(timerfd_create)(clock, flags);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0 || fd >= MOST)
		abort();
	timers[fd].is_timer = 1;
	return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	int64_t at = new->it_value.tv_sec * SECOND + new->it_value.tv_nsec;
	uint64_t count;

	if (fd < 0 || fd >= MOST || !timers[fd].is_timer)
		return REAL(timerfd_settime)(fd, flags, new, old);
	pthread_mutex_lock(&lock);
	timers[fd].fired = 0;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		abort();
	timers[fd].at = !at || flags & TFD_TIMER_ABSTIME ? at : at + stepped->now;
	look(fd);
	stepped->busy |= timers[fd].fired;
	pthread_mutex_unlock(&lock);
	return 0;
}
