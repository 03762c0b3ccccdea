// SPDX-License-Identifier: GPL-2.0
/*
 * The interface's numbers, sizes and offsets against the published ones, and
 * what the module says of itself against the same.
 *
 * also in: kunit matrix
 */
#include "device.h"

#include <sys/wait.h>

#include "golden.h"

static struct golden outer;	/* the structure whose fields come */
static size_t end;		/* of its last field */

static void compare(const struct golden *g)
{
	EXPECT_EQ(g->is, g->was, "%s", g->name);
	if (g->kind == GOLDEN_STRUCT)
		outer = *g;
	if (g->kind == GOLDEN_FIELD)
		EXPECT_EQ(g->is_at - outer.is_at, g->was_at, "%s", g->name);
}

static void test_header(void)
{
	golden_each(compare);
}

static void compare_end(const struct golden *g)
{
	if (g->kind == GOLDEN_STRUCT) {
		EXPECT_EQ(end, outer.is, "end of %s", outer.name);
		outer = *g;
		end = 0;
	}
	if (g->kind == GOLDEN_FIELD) {
		EXPECT_EQ(g->is_at - outer.is_at, end, "%s", g->name);
		end += g->is;
	}
}

/* Nothing between or after the fields that a program could forget to clear */
static void test_no_padding(void)
{
	outer = (struct golden){ .name = "the start" };
	golden_each(compare_end);
	EXPECT_EQ(end, outer.is, "end of %s", outer.name);
}

static void test_info(void)
{
	int fd = wheel_open(0);
	struct twheel_info info = wheel_info(fd);

	EXPECT_EQ(info.features & 15, 15);
	EXPECT_EQ(info.tick_min, 1000);
	EXPECT_EQ(info.tick_max, 1000000000);
	EXPECT_EQ(info.clock, 0x101);
	EXPECT_EQ(info.flags, 0);
	EXPECT_EQ(info.event_size, 32);
	/* a jiffy of a kernel of 100 to 1,000 Hz */
	EXPECT_TRUE(info.tick >= MSEC && info.tick <= 10 * MSEC, "tick %llu", info.tick);
	close(fd);
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

static void test_device(void)
{
	struct stat st;
	int fd = wheel_open(0);

	if (fstat(fd, &st))
		tap_bail("fstat: %s", strerror(errno));
	EXPECT_TRUE(S_ISCHR(st.st_mode), "mode %o", st.st_mode);
	EXPECT_EQ(st.st_mode & 07777, 0600);
	EXPECT_EQ(st.st_uid, 0);
	close(fd);
}

/* Of all wheels, also those that were closed */
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

#define FLEET 300
#define READINGS 300

/* Closes the oldest wheel, and opens one, with a timer each. */
static void fleet_child(void)
{
	int fds[FLEET], i;

	for (i = 0; ; i++) {
		int *fd = &fds[i % FLEET];

		if (i >= FLEET)
			close(*fd);
		*fd = wheel_open(0);
		arm(*fd, 0, 3600 * SEC, 0);
	}
}

/*
 * Each wheel counts once, also one that is closed before it is read: nothing goes back, and no
 * more than the wheel that was just opened has no timer.
 */
static void test_counters_of_a_fleet(void)
{
	struct counters first, last, next;
	pid_t pid;
	int i;

	first = read_counters();
	pid = tap_fork(fleet_child);
	EXPECT_TRUE(WAIT_FOR(read_counters().opened >= first.opened + 2 * FLEET));
	last = first;
	for (i = 0; i < READINGS; i++, last = next) {
		next = read_counters();
		EXPECT_TRUE(next.open >= first.open + FLEET - 1 && next.open <= first.open + FLEET,
			    "%llu are open", next.open - first.open);
		EXPECT_TRUE(next.opened >= last.opened && next.armed >= last.armed,
			    "opened %llu, then %llu; armed %llu, then %llu", last.opened,
			    next.opened, last.armed, next.armed);
		EXPECT_TRUE(next.opened - first.opened - (next.armed - first.armed) <= 1,
			    "opened %llu, armed %llu", next.opened - first.opened,
			    next.armed - first.armed);
	}
	EXPECT_TRUE(last.opened - first.opened > FLEET + READINGS, "%llu were opened",
		    last.opened - first.opened);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	tap_start(60);
	RUN(test_header, "numbers, sizes and offsets are the published ones");
	RUN(test_no_padding, "no structure has padding");
	RUN(test_info, "the module says the same of itself");
	RUN(test_device, "the device is root's alone");
	RUN(test_counters, "the counters of all wheels");
	RUN(test_counters_of_a_fleet, "the counters of wheels that come and go");
	return tap_end();
}
