// SPDX-License-Identifier: GPL-2.0
/*
 * The machine is suspended. CLOCK_BOOTTIME and the wall clocks go on, so what was
 * due by them is ready afterwards; CLOCK_MONOTONIC stood still.
 *
 * most seconds: 240
 */
#include "load.h"

/* How much more went by on a clock than on CLOCK_MONOTONIC */
static __u64 ahead(const struct fault *f, clockid_t clock)
{
	__u64 awake = f->to[CLOCK_MONOTONIC] - f->from[CLOCK_MONOTONIC];
	__u64 total = f->to[clock] - f->from[clock];

	return total > awake ? total - awake : 0;
}

/* Which way, until when, how long at least CLOCK_MONOTONIC stands still */
static void suspend(const char *state, const char *how, unsigned int seconds,
		    __u64 least)
{
	struct fault f = {};
	__u64 awake, total;
	int err;

	loads_begin(seconds * SEC);
	sleep_ns(500 * MSEC);
	fault_times(f.from);
	machine("%s %u", how, seconds);
	/* Busy: it was to wake before it slept. */
	do {
		err = write_text("/sys/power/state", state);
	} while (err == -EBUSY);
	fault_times(f.to);
	if (!EXPECT_TRUE(!err, "%s: %s", state, strerror(-err)))
		return;

	machine("woke");
	awake = f.to[CLOCK_MONOTONIC] - f.from[CLOCK_MONOTONIC];
	total = f.to[CLOCK_BOOTTIME] - f.from[CLOCK_BOOTTIME];
	f.gap[CLOCK_BOOTTIME] = ahead(&f, CLOCK_BOOTTIME);
	f.gap[CLOCK_REALTIME] = ahead(&f, CLOCK_REALTIME);
	f.gap[CLOCK_TAI] = ahead(&f, CLOCK_TAI);
	tap_diag("%s: %llu ms in all, %llu of them by CLOCK_MONOTONIC", state,
		 total / MSEC, awake / MSEC);
	EXPECT_TRUE(f.gap[CLOCK_BOOTTIME] >= least, "CLOCK_MONOTONIC did not stand still");
	loads_end(&f);
}

static void idle(void)
{
	machine_file("/sys/devices/platform/i8042/serio0/power/wakeup",
		     "enabled");
	suspend("freeze", "key", 2, 0);
}

/*
 * The firmware of this machine forgets where the registers for suspend are, of
 * which a kernel takes no notice: without this it can sleep only once.
 */
static void isa_bridge(bool save)
{
	static const char path[] = "/sys/bus/pci/devices/0000:00:1f.0/config";
	static char registers[8];
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (save)
		n = pread(fd, registers, sizeof(registers), 0x40);
	else
		n = pwrite(fd, registers, sizeof(registers), 0x40);
	if (n != sizeof(registers))
		tap_bail("%s: %s", path, strerror(errno));
	close(fd);
}

static void suspend_to_memory(const char *how, unsigned int seconds)
{
	isa_bridge(true);
	/* The clock on the board, by which it is known, counts whole seconds. */
	suspend("mem", how, seconds, (seconds - 2) * SEC);
	isa_bridge(false);
}

/* Woken by the alarm of the clock on the board */
static void memory_hour(void)
{
	machine_file("/sys/class/rtc/rtc0/wakealarm", "0");
	machine_file("/sys/class/rtc/rtc0/wakealarm", "+3600");
	suspend_to_memory("sleep", 3600);
}

int main(void)
{
	tap_start(200);
	RUN(idle, "suspended to idle");
	RUN(memory_hour, "suspended to memory for an hour");
	return tap_end();
}
