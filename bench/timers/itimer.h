/* SPDX-License-Identifier: GPL-2.0 */
/* What timerfd and POSIX timers share: NAME, settime(), gettime(), and timers[] */
#include <stdint.h>
#include <sys/utsname.h>

const char *const nevers[] = { "LONG_MAX s", "-1 (UINT64_MAX)", NULL };
const int periods = 1;

static void version(void)
{
	struct utsname name;

	uname(&name);
	printf(NAME ", Linux %.*s", (int)strcspn(name.release, "+-"), name.release);
}

static struct timespec spec(double ms)
{
	return (struct timespec){ ms / 1e3, fmod(ms, 1e3) * 1e6 + (ms == 0) };
}

static int start(int i, double delay, double period)
{
	struct itimerspec when = { .it_value = spec(delay) };

	if (period)
		when.it_interval = spec(period);
	return settime(timers[i], 0, &when, NULL);
}

static int start_never(int i, int which)
{
	struct itimerspec when = { .it_value.tv_sec = which ? -1 : INT64_MAX };

	return settime(timers[i], 0, &when, NULL);
}

static void stop(int i)
{
	struct itimerspec none = {};

	settime(timers[i], 0, &none, NULL);
}

static double left(int i)
{
	struct itimerspec when;

	gettime(timers[i], &when);
	return when.it_value.tv_sec * 1e3 + when.it_value.tv_nsec / 1e6;
}

static int active(int i) { return left(i) != 0; }
