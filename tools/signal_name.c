// SPDX-License-Identifier: GPL-2.0
/*
 * Signals on the command line, as coreutils have them: by number, also that of a status
 * of the shell; by name, with or without SIG; RTMIN+1, RTMAX-1; EXIT, which is none.
 */
#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* Names beyond the C library's */
static const struct {
	const char *name;
	int nr;
} others[] = {
	{ "EXIT", 0 }, { "CLD", SIGCHLD }, { "IO", SIGIO }, { "IOT", SIGIOT },
};

static bool is_signal(int nr)
{
	return !nr || (nr < NSIG && sigabbrev_np(nr)) || (nr >= SIGRTMIN && nr <= SIGRTMAX);
}

/* "143", the status of a program that TERM ended, is TERM. */
static int by_number(const char *s)
{
	char *end;
	unsigned long nr = strtoul(s, &end, 10);

	if (*end || nr > INT_MAX)
		return -1;
	nr &= nr >= 0xff ? 0xff : 0x7f;
	return is_signal(nr) ? (int)nr : -1;
}

/* The number after RTMIN or RTMAX; 0 without one */
static int by_distance(const char *s, int from)
{
	char *end;
	long nr = strtol(s, &end, 10);

	if (*end || nr < SIGRTMIN - from || nr > SIGRTMAX - from)
		return -1;
	return from + nr;
}

/* Gives -1 if it is no signal. */
int parse_signal(const char *s)
{
	size_t i;
	int nr;

	if (!strncasecmp(s, "SIG", 3))
		s += 3;
	if (isdigit((unsigned char)*s))
		return by_number(s);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcasecmp(s, others[i].name))
			return others[i].nr;
	for (nr = 1; nr < NSIG; nr++)
		if (sigabbrev_np(nr) && !strcasecmp(s, sigabbrev_np(nr)))
			return nr;
	if (!strncasecmp(s, "RTMIN", 5))
		return by_distance(s + 5, SIGRTMIN);
	if (!strncasecmp(s, "RTMAX", 5))
		return by_distance(s + 5, SIGRTMAX);
	return -1;
}

/* As parse_signal() takes it */
struct text text_signal(int nr)
{
	struct text text;

	if (nr >= SIGRTMIN)
		snprintf(text.s, sizeof(text.s), "RTMIN+%d", nr - SIGRTMIN);
	else
		snprintf(text.s, sizeof(text.s), "%s", nr ? sigabbrev_np(nr) : "EXIT");
	return text;
}
