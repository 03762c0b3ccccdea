/* SPDX-License-Identifier: GPL-2.0 */
/*
 * beanstalkd's protocol: from a line to a command. Pure: no input, no output, no state.
 */
#ifndef TWHEELD_PROTOCOL_H
#define TWHEELD_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/job_key.h"
#include "base/tube_name.h"

/* A line with its CR and LF */
#define LINE_MAX_BYTES 224

/* In the order in which a line is compared with them: a name may begin another one */
enum command_kind {
	CMD_PUT, CMD_PEEK, CMD_PEEK_READY, CMD_PEEK_DELAYED, CMD_PEEK_BURIED,
	CMD_RESERVE_TIMEOUT, CMD_RESERVE_JOB, CMD_RESERVE, CMD_DELETE, CMD_RELEASE, CMD_BURY,
	CMD_KICK, CMD_KICK_JOB, CMD_TOUCH, CMD_STATS_JOB, CMD_STATS_TUBE, CMD_STATS, CMD_USE,
	CMD_WATCH, CMD_IGNORE, CMD_LIST_TUBES_WATCHED, CMD_LIST_TUBE_USED, CMD_LIST_TUBES,
	CMD_QUIT, CMD_PAUSE_TUBE,
	/* beanstalkd does not know these. */
	CMD_CLIENT, CMD_NOTE, CMD_BACK, CMD_BACK_JOB, CMD_PUT_UNIQUE, CMD_DELETE_KEY, CMD_TRIES,
	CMD_AUTH, CMD_KINDS,
	CMD_UNKNOWN = CMD_KINDS
};

/* A line's command. Fields that its kind does not use are 0. */
struct command {
	enum command_kind kind;
	bool bad;		/* not well-formed: BAD_FORMAT */
	bool counted;		/* a bad one counts in the statistics, too */
	bool trailing;		/* of put: something follows the size */
	uint64_t id;
	uint32_t pri;
	uint32_t delay;		/* seconds */
	uint32_t ttr;		/* seconds */
	uint32_t size;		/* of put, note: bytes of the body */
	uint32_t lasts;		/* of put-unique: seconds */
	enum key_how how;
	uint32_t bound;		/* of kick */
	int timeout;		/* seconds; below 0 there is none */
	/* Of client, its name, of visible characters and blanks; of auth, what it says */
	char tube[TUBE_NAME_MAX + 1];
	char key[KEY_MOST + 1];
};

void protocol_parse(const char *line, size_t length, struct command *cmd);

#endif
