/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the command line says.
 */
#ifndef TWHEEL_RUN_OPTIONS_H
#define TWHEEL_RUN_OPTIONS_H

#include "base/token.h"

/* The longest token, and its end */
#define OPTIONS_TOKEN (TOKEN_MOST + 1)

struct options {
	const char *server, *port;
	const char *token_file;		/* or NULL */
	const char **tubes;
	unsigned int tube_count;
	unsigned int at_a_time;
	unsigned int tries;		/* 0: as many as it takes */
	long long first_delay, most_delay;	/* these and all times: in ms */
	long long grace;			/* for commands that run when this ends */
	long long kill_after;
	long long limit;			/* of a command; 0: none */
	unsigned int output;		/* bytes of it that the server gets */
	int verbose;
	char **command;
};

extern struct options options;

void options_parse(int argc, char **argv);
const char *options_token(char token[OPTIONS_TOKEN]);
long long options_delay(unsigned long long tries);

#endif
