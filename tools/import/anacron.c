// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of an anacrontab: a period in days, a delay in minutes, a name, and a command.
 *
 * Anacron counts the days from the last time that a job was run. A tab has fixed times, and
 * MISFIRE=once makes up for one that was missed.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"

#define BLANKS " \t"
#define DAYS_MOST 366
#define DAY_MINUTES 1440

static bool is_number(const char *word)
{
	return *word && strlen(word) < 5 && !word[strspn(word, "0123456789")];
}

/* anacron_is_line - is it no line of a crontab: is the third word one that no time has? */
bool anacron_is_line(const char *line)
{
	char period[20], delay[20], name[3];

	return sscanf(line, "%19s %19s %2s", period, delay, name) == 3 && is_number(delay) &&
		(is_number(period) || *period == '@') && islower((unsigned char)*name);
}

/**
 * anacron_when - the time that a period and a delay are in a tab
 * @start: the minute of the day at which anacron is started
 *
 * Return: why there is none, or NULL.
 */
const char *anacron_when(const char *period, const char *delay, unsigned int start, char *when,
			 size_t room)
{
	static const struct {
		const char *name, *number, *days;
	} known[] = {
		{ "@daily", "1", "* * *" }, { "@weekly", "7", "* * 0" },
		{ "@monthly", "", "1 * *" }, { "@yearly", "", "1 1 *" },
		{ "@annually", "", "1 1 *" },
	};
	unsigned int minute;

	if (!is_number(delay))
		return "the delay is minutes, a number";
	minute = (start + atoi(delay)) % DAY_MINUTES;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(period, known[i].name) || !strcmp(period, known[i].number)) {
			snprintf(when, room, "%u %u %s", minute % 60, minute / 60, known[i].days);
			return NULL;
		}
	if (!is_number(period) || !atoi(period) || atoi(period) > DAYS_MOST)
		return "the period is days from 1 to 366, or @daily, @weekly, @monthly or @yearly";
	snprintf(when, room, "@every %dd", atoi(period));
	return NULL;
}
