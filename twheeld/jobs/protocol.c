// SPDX-License-Identifier: GPL-2.0
/*
 * From a line to a command.
 *
 * beanstalkd is more tolerant than its document says: a number may follow several blanks,
 * "quit" and "pause-tube" are known by how they begin, kick and reserve-with-timeout take
 * what strtoul(3) and strtol(3) take. Clients may rely on it, so it is the same here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/protocol.h"

enum form {
	FORM_ALONE,		/* nothing may follow */
	FORM_ANY,		/* what follows does not matter */
	FORM_ID,
	FORM_TUBE,
	FORM_PUT,
	FORM_RELEASE,
	FORM_BURY,
	FORM_KICK,
	FORM_TIMEOUT,
	FORM_PAUSE,
	FORM_NAME,
	FORM_NOTE,
	FORM_PUT_UNIQUE,
	FORM_KEY,
	FORM_TRIES,
};

static const struct {
	const char *begins;
	enum form form;
} forms[CMD_KINDS] = {
	[CMD_PUT] = { "put ", FORM_PUT },
	[CMD_PEEK] = { "peek ", FORM_ID },
	[CMD_PEEK_READY] = { "peek-ready", FORM_ALONE },
	[CMD_PEEK_DELAYED] = { "peek-delayed", FORM_ALONE },
	[CMD_PEEK_BURIED] = { "peek-buried", FORM_ALONE },
	[CMD_RESERVE_TIMEOUT] = { "reserve-with-timeout ", FORM_TIMEOUT },
	[CMD_RESERVE_JOB] = { "reserve-job ", FORM_ID },
	[CMD_RESERVE] = { "reserve", FORM_ALONE },
	[CMD_DELETE] = { "delete ", FORM_ID },
	[CMD_RELEASE] = { "release ", FORM_RELEASE },
	[CMD_BURY] = { "bury ", FORM_BURY },
	[CMD_KICK] = { "kick ", FORM_KICK },
	[CMD_KICK_JOB] = { "kick-job ", FORM_ID },
	[CMD_TOUCH] = { "touch ", FORM_ID },
	[CMD_STATS_JOB] = { "stats-job ", FORM_ID },
	[CMD_STATS_TUBE] = { "stats-tube ", FORM_TUBE },
	[CMD_STATS] = { "stats", FORM_ALONE },
	[CMD_USE] = { "use ", FORM_TUBE },
	[CMD_WATCH] = { "watch ", FORM_TUBE },
	[CMD_IGNORE] = { "ignore ", FORM_TUBE },
	[CMD_LIST_TUBES_WATCHED] = { "list-tubes-watched", FORM_ALONE },
	[CMD_LIST_TUBE_USED] = { "list-tube-used", FORM_ALONE },
	[CMD_LIST_TUBES] = { "list-tubes", FORM_ALONE },
	[CMD_QUIT] = { "quit", FORM_ANY },
	[CMD_PAUSE_TUBE] = { "pause-tube", FORM_PAUSE },
	[CMD_CLIENT] = { "client ", FORM_NAME },
	[CMD_NOTE] = { "note ", FORM_NOTE },
	/* How many, and ms between two; which job, and ms until it is ready: id and pri */
	[CMD_BACK] = { "back ", FORM_BURY },
	[CMD_BACK_JOB] = { "back-job ", FORM_BURY },
	[CMD_PUT_UNIQUE] = { "put-unique ", FORM_PUT_UNIQUE },
	[CMD_DELETE_KEY] = { "delete-key ", FORM_KEY },
	[CMD_TRIES] = { "tries ", FORM_TRIES },
	[CMD_AUTH] = { "auth ", FORM_NAME },
};

static bool number(const char **at, uint64_t most, uint64_t *to)
{
	const char *digit = *at;
	uintmax_t value;
	char *end;

	while (*digit == ' ')
		digit++;
	if (*digit < '0' || *digit > '9')
		return false;
	errno = 0;
	value = strtoumax(digit, &end, 10);
	if (errno || value > most)
		return false;
	*to = value;
	*at = end;
	return true;
}

static bool number32(const char **at, uint32_t *to)
{
	uint64_t value;

	if (!number(at, UINT32_MAX, &value))
		return false;
	*to = value;
	return true;
}

static bool tube_name(const char *name, size_t length, char *to)
{
	if (!tube_name_ok(name, length))
		return false;
	memcpy(to, name, length);
	to[length] = 0;
	return true;
}

static bool parse_put(const char *at, struct command *cmd)
{
	if (!number32(&at, &cmd->pri) || !number32(&at, &cmd->delay) ||
	    !number32(&at, &cmd->ttr) || !number32(&at, &cmd->size))
		return false;
	cmd->trailing = *at;
	return true;
}

/* Gives what follows; NULL if it is no key. */
static const char *parse_key(const char *at, struct command *cmd)
{
	size_t length = job_key_length(at);

	if (!length || length > KEY_MOST)
		return NULL;
	memcpy(cmd->key, at, length);
	return at + length;
}

static bool parse_put_unique(const char *at, struct command *cmd)
{
	size_t length;

	at = parse_key(at, cmd);
	if (!at || *at++ != ' ')
		return false;
	length = strcspn(at, " ");
	cmd->how = job_key_how(at, length);
	at += length;
	return cmd->how < KEY_HOWS && number32(&at, &cmd->lasts) &&
		(!cmd->lasts || cmd->how == KEY_IGNORE) && parse_put(at, cmd);
}

static bool parse_timeout(const char *at, struct command *cmd)
{
	errno = 0;
	cmd->timeout = (int)strtol(at, NULL, 10);
	return !errno;
}

static bool parse_kick(const char *at, struct command *cmd)
{
	char *end;

	errno = 0;
	cmd->bound = (uint32_t)strtoul(at, &end, 10);
	return !errno && end != at;
}

static bool parse_pause(const char *at, struct command *cmd)
{
	size_t length;
	const char *name;

	at += strspn(at, " ");
	name = at;
	length = strspn(name, TUBE_NAME_CHARS);
	at += length;
	if (length == 0 || !number32(&at, &cmd->delay) || *at)
		return false;
	cmd->counted = true;
	return tube_name(name, length, cmd->tube);
}

static bool parse_name(const char *at, char *to)
{
	size_t length = strlen(at);

	for (size_t i = 0; i < length; i++)
		if (at[i] < ' ' || at[i] > '~')
			return false;
	if (!length || length > TUBE_NAME_MAX)
		return false;
	memcpy(to, at, length + 1);
	return true;
}

static bool parse_form(enum form form, const char *at, struct command *cmd)
{
	switch (form) {
	case FORM_ALONE:
		return !*at;
	case FORM_ANY:
		return true;
	case FORM_ID:
		return number(&at, UINT64_MAX, &cmd->id) && !*at;
	case FORM_TUBE:
		return tube_name(at, strlen(at), cmd->tube);
	case FORM_PUT:
		return parse_put(at, cmd);
	case FORM_RELEASE:
		return number(&at, UINT64_MAX, &cmd->id) && number32(&at, &cmd->pri) &&
			number32(&at, &cmd->delay) && !*at;
	case FORM_BURY:
		return number(&at, UINT64_MAX, &cmd->id) && number32(&at, &cmd->pri) && !*at;
	case FORM_KICK:
		return parse_kick(at, cmd);
	case FORM_TIMEOUT:
		return parse_timeout(at, cmd);
	case FORM_PAUSE:
		return parse_pause(at, cmd);
	case FORM_NAME:
		return parse_name(at, cmd->tube);
	case FORM_NOTE:
		return number(&at, UINT64_MAX, &cmd->id) && number32(&at, &cmd->size) && !*at;
	case FORM_PUT_UNIQUE:
		return parse_put_unique(at, cmd);
	case FORM_TRIES:
		return number(&at, INT32_MAX, &cmd->id) && !*at;
	case FORM_KEY:
		at = parse_key(at, cmd);
		return at && !*at;
	}
	return false;
}

/**
 * protocol_parse - understand a line
 * @line: the line without its CR and LF; not ended by anything
 * @length: its bytes, at most LINE_MAX_BYTES - 2
 * @cmd: out: what it says
 */
void protocol_parse(const char *line, size_t length, struct command *cmd)
{
	char text[LINE_MAX_BYTES - 1];

	memset(cmd, 0, sizeof(*cmd));
	cmd->kind = CMD_UNKNOWN;
	cmd->timeout = -1;
	cmd->bad = true;
	if (length >= sizeof(text) || memchr(line, 0, length))
		return;
	memcpy(text, line, length);
	text[length] = 0;

	cmd->bad = false;
	for (int kind = 0; kind < CMD_KINDS; kind++) {
		size_t begins = strlen(forms[kind].begins);

		if (strncmp(text, forms[kind].begins, begins))
			continue;
		cmd->kind = kind;
		cmd->bad = !parse_form(forms[kind].form, text + begins, cmd);
		cmd->counted |= !cmd->bad;
		return;
	}
}
