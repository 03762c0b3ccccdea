// SPDX-License-Identifier: GPL-2.0
/*
 * The interface's numbers, sizes and offsets against the published ones, and
 * what the module says of itself against the same.
 *
 * also in: kunit matrix 32-bits
 */
#include "device.h"

#include "golden.h"

static void test_header(void)
{
	const struct golden *g;

	for (g = golden; g < golden + GOLDEN_LENGTH; g++) {
		EXPECT_EQ(g->is, g->was, "%s", g->name);
		EXPECT_EQ(g->is_at, g->was_at, "%s", g->name);
	}
}

/* Nothing between or after the fields that a program could forget to clear */
static void test_no_padding(void)
{
	const struct golden *g, *outer = NULL;
	size_t end = 0;

	for (g = golden; g < golden + GOLDEN_LENGTH; g++) {
		if (g->kind == GOLDEN_STRUCT) {
			EXPECT_TRUE(!outer || end == outer->is, "end of %s", outer->name);
			outer = g;
			end = 0;
		} else if (g->kind == GOLDEN_FIELD) {
			EXPECT_EQ(g->is_at, end, "%s", g->name);
			end += g->is;
		}
	}
	EXPECT_EQ(end, outer->is, "end of %s", outer->name);
}

static void test_info(void)
{
	int fd = wheel_open(0);
	struct twheel_info info = wheel_info(fd);

	EXPECT_EQ(info.features & 15, 15);
	/* See ticks.c */
	EXPECT_TRUE(info.tick_min == 1000 || info.tick_min == info.tick, "%llu", info.tick_min);
	EXPECT_EQ(info.tick_max, 1000000000);
	EXPECT_EQ(info.clock, 0x101);
	EXPECT_EQ(info.flags, 0);
	EXPECT_EQ(info.event_size, 32);
	/* a jiffy of a kernel of 100 to 1,000 Hz */
	EXPECT_TRUE(info.tick >= MSEC && info.tick <= 10 * MSEC, "tick %llu", info.tick);
	close(fd);
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

int main(void)
{
	tap_start(60);
	RUN(test_header, "numbers, sizes and offsets are the published ones");
	RUN(test_no_padding, "no structure has padding");
	RUN(test_info, "the module says the same of itself");
	RUN(test_device, "the device is root's alone");
	return tap_end();
}
