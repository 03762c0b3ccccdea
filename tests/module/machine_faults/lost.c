// SPDX-License-Identifier: GPL-2.0
/*
 * For an hour the processor gets no timer interrupt, while its clocks go on. Runs
 * where an idle hour takes no time.
 *
 * most seconds: 240
 */
#include "load.h"

#include <linux/rtc.h>

#define LOST "/sys/module/lost_ticks/parameters/lost"

/* The clock on the board does have an interrupt: at the end of that time. */
static void sleep_by_rtc(unsigned int seconds)
{
	struct rtc_wkalrm alarm = { .enabled = 1 };
	unsigned long data;
	struct tm tm = {};
	time_t at;
	int fd = open("/dev/rtc0", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, RTC_RD_TIME, &alarm.time))
		tap_bail("/dev/rtc0: %s", strerror(errno));
	memcpy(&tm, &alarm.time, sizeof(alarm.time));
	at = timegm(&tm) + seconds;
	gmtime_r(&at, &tm);
	memcpy(&alarm.time, &tm, sizeof(alarm.time));
	alarm.time.tm_isdst = -1;
	if (ioctl(fd, RTC_WKALM_SET, &alarm) ||
	    read(fd, &data, sizeof(data)) != sizeof(data))
		tap_bail("the clock's alarm: %s", strerror(errno));
	close(fd);
}

static void hour(void)
{
	struct fault f = {};
	__u64 gap;

	loads_begin(HOUR);
	sleep_ns(SEC);
	fault_times(f.from);
	machine_file(LOST, "1");
	sleep_by_rtc(3600);
	machine_file(LOST, "0");
	fault_times(f.to);
	gap = f.to[CLOCK_MONOTONIC] - f.from[CLOCK_MONOTONIC];
	EXPECT_TRUE(gap > HOUR - 2 * SEC && gap < HOUR + 10 * SEC, "%llu ms",
		    gap / MSEC);
	f.gap[CLOCK_MONOTONIC] = gap;
	f.gap[CLOCK_BOOTTIME] = gap;
	f.gap[CLOCK_REALTIME] = gap;
	f.gap[CLOCK_TAI] = gap;
	loads_end(&f);
}

int main(void)
{
	tap_start(3 * 3600);
	/* The kernel shall not take this for a fault of its own. */
	machine_file("/proc/sys/kernel/watchdog", "0");
	machine_file("/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress",
		     "1");
	RUN(hour, "no timer interrupt for an hour");
	return tap_end();
}
