// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as a line: what twheeld/protocol.c makes of it, against regular
 * expressions.
 */
#include <errno.h>
#include <regex.h>

#include "fuzz_input.h"
#include "../../../../twheeld/protocol.h"

#define NAME "([-A-Za-z0-9+/;.$_()]+)"
#define NUM "([0-9]+)"
#define MOST_GROUPS 8

/* What a line of a kind looks like; and how it begins, which makes it one of the kind. */
static const struct shape {
	enum command_kind kind;
	const char *begins;
	const char *all;
} shapes[] = {
	{ CMD_PUT, "put ", "^put  *" NUM "  *" NUM "  *" NUM "  *" NUM },
	{ CMD_PEEK, "peek ", "^peek  *" NUM "$" },
	{ CMD_PEEK_READY, "peek-ready", "^peek-ready$" },
	{ CMD_PEEK_DELAYED, "peek-delayed", "^peek-delayed$" },
	{ CMD_PEEK_BURIED, "peek-buried", "^peek-buried$" },
	{ CMD_RESERVE_TIMEOUT, "reserve-with-timeout ", "^reserve-with-timeout " },
	{ CMD_RESERVE_JOB, "reserve-job ", "^reserve-job  *" NUM "$" },
	{ CMD_RESERVE, "reserve", "^reserve$" },
	{ CMD_DELETE, "delete ", "^delete  *" NUM "$" },
	{ CMD_RELEASE, "release ", "^release  *" NUM "  *" NUM "  *" NUM "$" },
	{ CMD_BURY, "bury ", "^bury  *" NUM "  *" NUM "$" },
	{ CMD_KICK, "kick ", "^kick [ \t\n\v\f\r]*[-+]?" NUM },
	{ CMD_KICK_JOB, "kick-job ", "^kick-job  *" NUM "$" },
	{ CMD_TOUCH, "touch ", "^touch  *" NUM "$" },
	{ CMD_STATS_JOB, "stats-job ", "^stats-job  *" NUM "$" },
	{ CMD_STATS_TUBE, "stats-tube ", "^stats-tube " NAME "$" },
	{ CMD_STATS, "stats", "^stats$" },
	{ CMD_USE, "use ", "^use " NAME "$" },
	{ CMD_WATCH, "watch ", "^watch " NAME "$" },
	{ CMD_IGNORE, "ignore ", "^ignore " NAME "$" },
	{ CMD_LIST_TUBES_WATCHED, "list-tubes-watched", "^list-tubes-watched$" },
	{ CMD_LIST_TUBE_USED, "list-tube-used", "^list-tube-used$" },
	{ CMD_LIST_TUBES, "list-tubes", "^list-tubes$" },
	{ CMD_QUIT, "quit", "^quit" },
	{ CMD_PAUSE_TUBE, "pause-tube", "^pause-tube *" NAME "  *" NUM "$" },
};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define SHAPES ARRAY_SIZE(shapes)

static regex_t compiled[SHAPES];

static void compile_all(void)
{
	static int done;

	for (size_t i = 0; !done && i < SHAPES; i++)
		if (regcomp(&compiled[i], shapes[i].all, REG_EXTENDED))
			abort();
	done = 1;
}

/* The kind with the longest beginning that fits */
static const struct shape *shape_of(const char *line)
{
	const struct shape *best = NULL;

	for (size_t i = 0; i < SHAPES; i++) {
		size_t length = strlen(shapes[i].begins);

		if (strncmp(line, shapes[i].begins, length) == 0 &&
		    (!best || length > strlen(best->begins)))
			best = &shapes[i];
	}
	return best;
}

/* A number of digits, and whether it is too large */
static uint64_t number(const char *line, const regmatch_t *at, uint64_t most, bool *large)
{
	unsigned __int128 value = 0;

	for (regoff_t i = at->rm_so; i < at->rm_eo; i++) {
		value = value * 10 + (unsigned int)(line[i] - '0');
		if (value > most) {
			*large = true;
			return 0;
		}
	}
	return (uint64_t)value;
}

/* Whether a name is one, and that of the command */
static bool same_name(const char *line, const regmatch_t *at, const struct command *cmd)
{
	size_t length = (size_t)(at->rm_eo - at->rm_so);

	if (length > TUBE_NAME_MAX || line[at->rm_so] == '-')
		return false;
	EXPECT(cmd->bad || strlen(cmd->tube) == length);
	EXPECT(cmd->bad || memcmp(cmd->tube, line + at->rm_so, length) == 0);
	return true;
}

static void check_put(const char *line, const regmatch_t *at, const struct command *cmd)
{
	bool large = false;
	uint64_t n[4];

	for (int i = 0; i < 4; i++)
		n[i] = number(line, &at[i + 1], UINT32_MAX, &large);
	EXPECT(cmd->bad == large);
	if (large)
		return;
	EXPECT(cmd->pri == n[0] && cmd->delay == n[1] && cmd->ttr == n[2] && cmd->size == n[3]);
	EXPECT(cmd->trailing == (line[at[0].rm_eo] != 0));
}

/* A job's id, and up to two numbers more */
static void check_job(const char *line, const regmatch_t *at, const struct command *cmd)
{
	bool large = false;
	uint64_t id = number(line, &at[1], UINT64_MAX, &large), more[2] = { 0, 0 };

	for (int i = 0; i < 2; i++)
		if (at[i + 2].rm_so >= 0)
			more[i] = number(line, &at[i + 2], UINT32_MAX, &large);
	EXPECT(cmd->bad == large);
	if (!large)
		EXPECT(cmd->id == id && cmd->pri == more[0] && cmd->delay == more[1]);
}

static void check_pause(const char *line, const regmatch_t *at, const struct command *cmd)
{
	bool large = false;
	uint64_t delay = number(line, &at[2], UINT32_MAX, &large);
	bool named = same_name(line, &at[1], cmd);

	EXPECT(cmd->bad == (large || !named));
	/* beanstalkd counts it before it looks at the name. */
	EXPECT(cmd->counted == !large);
	if (!large)
		EXPECT(cmd->delay == delay);
}

static void check_fields(const char *line, const regmatch_t *at, const struct command *cmd)
{
	bool large = false;

	switch (cmd->kind) {
	case CMD_PUT:
		check_put(line, at, cmd);
		break;
	case CMD_STATS_TUBE:
	case CMD_USE:
	case CMD_WATCH:
	case CMD_IGNORE:
		EXPECT(cmd->bad == !same_name(line, &at[1], cmd));
		break;
	case CMD_PAUSE_TUBE:
		check_pause(line, at, cmd);
		break;
	case CMD_KICK:
		/* Of a negative number, it only has to be what strtoul() makes of it. */
		number(line, &at[1], UINT64_MAX, &large);
		EXPECT(cmd->bad == large);
		break;
	case CMD_PEEK:
	case CMD_RESERVE_JOB:
	case CMD_DELETE:
	case CMD_RELEASE:
	case CMD_BURY:
	case CMD_KICK_JOB:
	case CMD_TOUCH:
	case CMD_STATS_JOB:
		check_job(line, at, cmd);
		break;
	default:
		EXPECT(!cmd->bad);
	}
}

/* A wait of digits only, that fits: the rest is strtol()'s affair. */
static void check_timeout(const char *line, const struct command *cmd)
{
	const char *digits = line + strlen("reserve-with-timeout ");
	size_t length = strspn(digits, "0123456789");

	if (length > 0 && length < 10 && !digits[length])
		EXPECT(!cmd->bad && cmd->timeout == atoi(digits));
}

static void check(const char *line, const struct command *cmd)
{
	const struct shape *shape = shape_of(line);
	regmatch_t at[MOST_GROUPS];

	if (!shape) {
		EXPECT(cmd->kind == CMD_UNKNOWN && !cmd->bad);
		return;
	}
	EXPECT(cmd->kind == shape->kind);
	if (shape->kind == CMD_RESERVE_TIMEOUT)
		check_timeout(line, cmd);
	else if (regexec(&compiled[shape - shapes], line, MOST_GROUPS, at, 0))
		EXPECT(cmd->bad && !cmd->counted);
	else
		check_fields(line, at, cmd);
	if (shape->kind != CMD_PAUSE_TUBE)
		EXPECT(cmd->counted == !cmd->bad);
}

int fuzz_one_input(const uint8_t *data, size_t size)
{
	char line[LINE_MAX_BYTES + 1];
	struct command cmd, again;
	char *exact;

	if (size > LINE_MAX_BYTES - 2)
		return 0;
	compile_all();
	exact = exact_copy(data, size);
	memcpy(line, data, size);
	line[size] = 0;
	protocol_parse(exact, size, &cmd);
	if (memchr(data, 0, size))
		EXPECT(cmd.bad && cmd.kind == CMD_UNKNOWN);
	else
		check(line, &cmd);
	protocol_parse(exact, size, &again);
	EXPECT(memcmp(&cmd, &again, sizeof(cmd)) == 0);
	free(exact);
	return 0;
}
