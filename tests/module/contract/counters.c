// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of all wheels together, in debugfs: while some wheels are closed, and while
 * many come and go.
 *
 * also in: matrix
 */
#include "device.h"

#include <sys/resource.h>
#include <sys/wait.h>

static void test_counters(void)
{
	static const char *const names[] = { "open", "opened", "pending", "armed", "cancelled" };
	static const int more[][ARRAY_SIZE(names)] = {
		{ 1, 1, 2, 3, 1 }, { 0, 1, 0, 3, 1 },
	};
	__u64 before[ARRAY_SIZE(names)], hour = 3600 * SEC;
	int fd, i, closed;

	for (i = 0; i < (int)ARRAY_SIZE(names); i++)
		before[i] = module_counter(names[i]);
	fd = wheel_open(0);
	arm(fd, 0, hour, 0);
	arm(fd, 0, hour, 0);
	EXPECT_EQ(cancel(fd, arm(fd, 0, hour, 0)), 0);
	for (closed = 0; closed < 2; closed++) {
		for (i = 0; i < (int)ARRAY_SIZE(names); i++)
			EXPECT_EQ(module_counter(names[i]) - before[i], more[closed][i], "%s",
				  names[i]);
		if (!closed)
			close(fd);
	}
}

struct counters {
	unsigned long long open, opened, armed;
};

static struct counters read_counters(void)
{
	struct counters c;
	char text[4096];
	const char *armed;

	read_text("/sys/kernel/debug/twheel/counters", text, sizeof(text));
	armed = strstr(text, "\narmed ");
	if (!armed || sscanf(text, "open %llu opened %llu", &c.open, &c.opened) != 2 ||
	    sscanf(armed, " armed %llu", &c.armed) != 1)
		tap_bail("the counters say: %.400s", text);
	return c;
}

#define FLEETS 2
#define FLEET 60
#define READINGS 100

/* Closes any of its wheels, and opens one, with a timer each. */
static void fleet_child(void)
{
	__u64 seed = getpid(), i;
	int fds[FLEET];

	for (i = 0; ; i++) {
		int *fd = &fds[i < FLEET ? i : random_next(&seed) % FLEET];

		if (i >= FLEET)
			close(*fd);
		*fd = wheel_open(0);
		arm(*fd, 0, 3600 * SEC, 0);
	}
}

/*
 * Each wheel counts once, also one that is closed before or after it is read: nothing goes
 * back, and no more than the wheels that were just opened have no timer.
 */
static void test_counters_of_fleets(void)
{
	struct counters first, last, next;
	pid_t pids[FLEETS];
	int i;

	first = read_counters();
	for (i = 0; i < FLEETS; i++)
		pids[i] = tap_fork(fleet_child);
	EXPECT_TRUE(WAIT_FOR(read_counters().open >= first.open + FLEETS * FLEET - 1));
	/* So that reading is often interrupted */
	if (setpriority(PRIO_PROCESS, 0, 10))
		tap_bail("setpriority: %s", strerror(errno));
	last = first;
	for (i = 0; i < READINGS; i++, last = next) {
		next = read_counters();
		EXPECT_TRUE(next.open <= first.open + FLEETS * FLEET &&
			    next.open + FLEETS >= first.open + FLEETS * FLEET,
			    "%llu are open", next.open - first.open);
		EXPECT_TRUE(next.opened >= last.opened && next.armed >= last.armed,
			    "opened %llu, then %llu; armed %llu, then %llu", last.opened,
			    next.opened, last.armed, next.armed);
		EXPECT_TRUE(next.opened - first.opened - (next.armed - first.armed) <= FLEETS,
			    "opened %llu, armed %llu", next.opened - first.opened,
			    next.armed - first.armed);
	}
	for (i = 0; i < FLEETS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

int main(void)
{
	tap_start(120);
	RUN(test_counters, "wheels that are open, and closed ones");
	RUN(test_counters_of_fleets, "wheels that come and go");
	return tap_end();
}
