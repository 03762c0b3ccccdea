// SPDX-License-Identifier: GPL-2.0
/*
 * What twheeld makes of lines that are anything, whose end is the end of their memory. (What a
 * command means, and each way to write it wrong: tests/server/jobs/as_beanstalkd.)
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/tap.h"
#include "twheeld/jobs/protocol.h"

/* The line's memory has nothing after it, so that ASan sees what reads too far. */
static struct command parse_bytes(const char *line, size_t length)
{
	char *copy = malloc(length);
	struct command cmd;

	memcpy(copy, line, length);
	protocol_parse(copy, length, &cmd);
	free(copy);
	return cmd;
}

/* Pieces of commands, put together, so that it comes further than noise would */
static void test_anything(void)
{
	static const char *const pieces[] = {
		"put ", "peek", "-ready", "reserve", "-with-timeout ", "-job ", "delete ", "kick",
		"stats", "-tube ", "pause-tube", "use ", "1", "4294967296", " ", "-", "x", "\r",
	};
	const char *seed = getenv("SEED");
	unsigned int state = seed ? atoi(seed) : getpid();

	tap_diag("seed %u", state);
	for (int i = 0; i < 200000; i++) {
		char line[400];
		size_t length = 0;
		struct command cmd;

		for (int j = rand_r(&state) % 8; j >= 0; j--) {
			const char *piece = pieces[rand_r(&state) % 18];

			memcpy(line + length, piece, strlen(piece));
			length += strlen(piece);
			if (rand_r(&state) % 8 == 0)
				line[length++] = rand_r(&state);
		}
		cmd = parse_bytes(line, length);
		EXPECT_TRUE(cmd.kind <= CMD_UNKNOWN && strlen(cmd.tube) <= TUBE_NAME_MAX);
		EXPECT_TRUE(cmd.kind == CMD_UNKNOWN ? !cmd.counted : cmd.bad || cmd.counted);
	}
}

int main(void)
{
	tap_start(60);
	RUN(test_anything, "lines that are anything");
	return tap_end();
}
