// SPDX-License-Identifier: GPL-2.0
/*
 * What twheeld makes of a line: each command, each way to write it wrong, and lines that
 * are anything, whose end is the end of their memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/tap.h"
#include "twheeld/jobs/protocol.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

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

static struct command parse(const char *line)
{
	return parse_bytes(line, strlen(line));
}

static void test_numbers(void)
{
	struct command cmd = parse("put 1 2 3 4");

	EXPECT_EQ(cmd.kind, CMD_PUT);
	EXPECT_TRUE(!cmd.bad && cmd.counted && !cmd.trailing);
	EXPECT_EQ(cmd.pri, 1);
	EXPECT_EQ(cmd.delay, 2);
	EXPECT_EQ(cmd.ttr, 3);
	EXPECT_EQ(cmd.size, 4);
	cmd = parse("release 18446744073709551615 4294967295 7");
	EXPECT_TRUE(!cmd.bad && cmd.id == UINT64_MAX && cmd.pri == UINT32_MAX && cmd.delay == 7);
	cmd = parse("bury   5    6");
	EXPECT_TRUE(!cmd.bad && cmd.id == 5 && cmd.pri == 6);
	EXPECT_TRUE(parse("put 1 2 3 4 ").trailing);
}

static void test_wrong_numbers(void)
{
	static const char *const lines[] = {
		"put 4294967296 0 0 0", "put 0 4294967296 0 0", "put 0 0 0 4294967296",
		"put -1 0 0 0", "put 0 0 0", "put ", "put a 0 0 0", "put 0 0\t0 0",
		"delete ", "delete x", "delete 1x", "delete 1 ", "delete -1",
		"delete 18446744073709551616", "release 1 2", "release 1 2 3 4", "bury 1",
		"bury 1 2x", "kick ", "kick x", "kick 99999999999999999999", "touch 1.5",
		"reserve-with-timeout 99999999999999999999", "pause-tube x", "pause-tube x 1x",
		"pause-tube  1", "peek ", "reserve-job ", "kick-job a", "stats-job 0x1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct command cmd = parse(lines[i]);

		EXPECT_TRUE(cmd.kind != CMD_UNKNOWN && cmd.bad && !cmd.counted, "%s", lines[i]);
	}
}

static void test_names_of_tubes(void)
{
	char line[LINE_MAX_BYTES];

	EXPECT_EQ(strcmp(parse("use a-Z09+/;.$_()").tube, "a-Z09+/;.$_()"), 0);
	EXPECT_TRUE(parse("use -a").bad);
	EXPECT_TRUE(parse("use a b").bad);
	EXPECT_TRUE(parse("use ").bad);
	EXPECT_TRUE(parse("watch a\xc3\xa4").bad);
	memset(line, 'x', sizeof(line));
	memcpy(line, "use ", 4);
	EXPECT_EQ(strlen(parse_bytes(line, 204).tube), TUBE_NAME_MAX);
	EXPECT_TRUE(parse_bytes(line, 205).bad);
	/* This one counts, although the name is bad */
	EXPECT_TRUE(parse("pause-tube -a 1").bad && parse("pause-tube -a 1").counted);
	EXPECT_EQ(parse("pause-tube a 9").delay, 9);
}

static void test_what_may_follow(void)
{
	EXPECT_EQ(parse("reserve").kind, CMD_RESERVE);
	EXPECT_EQ(parse("reserve").timeout, -1);
	EXPECT_TRUE(parse("reserve ").bad);
	EXPECT_TRUE(parse("reserve-with-timeout").bad);
	EXPECT_EQ(parse("reserve-with-timeout 5 and more").timeout, 5);
	EXPECT_TRUE(parse("reserve-with-timeout -5").timeout < 0);
	EXPECT_EQ(parse("reserve-job 5").kind, CMD_RESERVE_JOB);
	EXPECT_EQ(parse("kick 5 or more").bound, 5);
	EXPECT_EQ(parse("quit now").kind, CMD_QUIT);
	EXPECT_TRUE(!parse("quit now").bad);
	EXPECT_EQ(parse("stats").kind, CMD_STATS);
	EXPECT_TRUE(parse("stats-job").bad);
	EXPECT_EQ(parse("stats-tube x").kind, CMD_STATS_TUBE);
	EXPECT_EQ(parse("list-tubes").kind, CMD_LIST_TUBES);
	EXPECT_EQ(parse("list-tubes-watched").kind, CMD_LIST_TUBES_WATCHED);
	EXPECT_EQ(parse("list-tube-used").kind, CMD_LIST_TUBE_USED);
	EXPECT_EQ(parse("peek-ready").kind, CMD_PEEK_READY);
	EXPECT_TRUE(parse("peek-readyy").bad);
}

static void test_unknown(void)
{
	static const char *const lines[] = {
		"", " ", "put", "PUT 0 0 0 0", " stats", "delete", "peek", "use", "nothing",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct command cmd = parse(lines[i]);

		EXPECT_TRUE(cmd.kind == CMD_UNKNOWN && !cmd.bad, "%s", lines[i]);
	}
	EXPECT_TRUE(parse_bytes("stats\0", 6).bad);
	EXPECT_TRUE(parse_bytes("\0", 1).bad);
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
	RUN(test_numbers, "numbers are what a line says");
	RUN(test_wrong_numbers, "numbers that are none, too large or too few are refused");
	RUN(test_names_of_tubes, "names of tubes");
	RUN(test_what_may_follow, "what may follow a command, and what not");
	RUN(test_unknown, "what is no command");
	RUN(test_anything, "lines that are anything");
	return tap_end();
}
