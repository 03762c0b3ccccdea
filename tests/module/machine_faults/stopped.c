// SPDX-License-Identifier: GPL-2.0
/*
 * The machine is stopped. Either its clocks stand still meanwhile, and its wall
 * clock is set right afterwards, as a guest agent does; or they go on, and all
 * ticks of that time are lost at once.
 *
 * most seconds: 240
 */
#include "load.h"

#include <linux/rtc.h>

/* The clock on the board goes on when the machine stands still. */
static __u64 rtc(void)
{
	struct rtc_time r;
	struct tm tm = {};
	int fd = open("/dev/rtc0", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, RTC_RD_TIME, &r))
		tap_bail("/dev/rtc0: %s", strerror(errno));
	close(fd);
	tm.tm_sec = r.tm_sec;
	tm.tm_min = r.tm_min;
	tm.tm_hour = r.tm_hour;
	tm.tm_mday = r.tm_mday;
	tm.tm_mon = r.tm_mon;
	tm.tm_year = r.tm_year;
	return timegm(&tm) * SEC;
}

/*
 * Wait until a clock is ahead of @start by @ahead more than waiting makes it; say
 * by how much CLOCK_MONOTONIC went ahead at once since @last.
 */
static __u64 wait_ahead(__u64 (*clock)(void), __u64 start, __u64 last,
			__u64 ahead)
{
	__u64 most = 0, waited = 0;
	bool there;

	do {
		__u64 step;

		there = clock() >= start + waited + ahead;
		step = now(CLOCK_MONOTONIC) - last;
		last += step;
		if (step > most)
			most = step;
		if (step < 2 * SEC)
			waited += step;
		if (waited > 3 * PATIENCE_MS * MSEC)
			tap_bail("the machine was not stopped");
		if (!there)
			sleep_ns(20 * MSEC);
	} while (!there);
	return most < 2 * SEC ? 0 : most;
}

static __u64 monotonic(void)
{
	return now(CLOCK_MONOTONIC);
}

static void fault_begin(struct fault *f, __u64 seconds)
{
	*f = (struct fault){};
	loads_begin(seconds * SEC);
	/* Some of the timers expire as on any other day. */
	sleep_ns(SEC);
	fault_times(f->from);
}

static void fault_end(struct fault *f, __u64 gap)
{
	f->gap[CLOCK_MONOTONIC] = gap;
	f->gap[CLOCK_BOOTTIME] = gap;
	f->gap[CLOCK_REALTIME] += gap;
	f->gap[CLOCK_TAI] = f->gap[CLOCK_REALTIME];
	fault_times(f->to);
	loads_end(f);
}

/* Stopped, with the clocks */
static void stop_clocks(unsigned int seconds)
{
	struct timespec ts = {};
	struct fault f;
	__u64 gap, start, before;

	fault_begin(&f, seconds);
	start = rtc();
	machine("stop %u", seconds);
	gap = wait_ahead(rtc, start, f.from[CLOCK_MONOTONIC],
			 (seconds - 2) * SEC);
	before = now(CLOCK_REALTIME);
	ts.tv_sec = rtc() / SEC;
	EXPECT_TRUE(ts.tv_sec * SEC > before, "the wall clock is not behind");
	if (clock_settime(CLOCK_REALTIME, &ts))
		tap_bail("clock_settime: %s", strerror(errno));
	f.gap[CLOCK_REALTIME] = ts.tv_sec * SEC - before;
	EXPECT_TRUE(f.gap[CLOCK_REALTIME] + gap > (seconds - 3) * SEC,
		    "the wall clock was behind by %llu ms only",
		    f.gap[CLOCK_REALTIME] / MSEC);
	fault_end(&f, gap);
}

/* Stopped, but its clocks go on */
static void stop_but_clocks(void)
{
	const unsigned int seconds = 10;
	struct fault f;
	__u64 gap;

	fault_begin(&f, seconds);
	machine("hold %u", seconds);
	gap = wait_ahead(monotonic, f.from[CLOCK_MONOTONIC],
			 f.from[CLOCK_MONOTONIC], (seconds - 1) * SEC);
	EXPECT_TRUE(gap > (seconds - 1) * SEC, "lost only %llu ms", gap / MSEC);
	fault_end(&f, gap);
}

int main(void)
{
	tap_start(200);
	/* The kernel shall not take this for a fault of its own. */
	machine_file("/proc/sys/kernel/watchdog_thresh", "60");
	RUN_CALL(stop_clocks(10), "stopped for 10 seconds, with its clocks");
	RUN_CALL(stop_clocks(3600), "stopped for an hour, with its clocks");
	RUN(stop_but_clocks, "stopped for 10 seconds, while its clocks went on");
	machine_file("/proc/sys/kernel/watchdog_thresh", "10");
	return tap_end();
}
