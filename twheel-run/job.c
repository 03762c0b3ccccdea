// SPDX-License-Identifier: GPL-2.0
/*
 * A job, as the server tells of it, and as the command sees it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "loop.h"

/* The kernel takes no longer word of an environment than 128 KiB. */
#define MOST_IN_ENVIRONMENT 65535

/** job_number - a number that is all of a word */
bool job_number(const char *text, unsigned long long *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end;
}

/* The value of a line "name: value", quoted or not */
static bool field(const char *text, const char *name, char *value, size_t room)
{
	size_t length = strlen(name);

	for (text = strchr(text, '\n'); text; text = strchr(text, '\n')) {
		text++;
		if (strncmp(text, name, length) || strncmp(text + length, ": ", 2))
			continue;
		text += length + 2;
		text += *text == '"';
		length = strcspn(text, "\"\r\n");
		if (length >= room)
			return false;
		memcpy(value, text, length);
		value[length] = 0;
		return true;
	}
	return false;
}

static bool number(const char *text, const char *name, unsigned long long *value)
{
	char digits[24];

	return field(text, name, digits, sizeof(digits)) && job_number(digits, value);
}

/* In seconds. Where a server's clock was set back, a job is from the future. */
static bool age_of(const char *text, unsigned long long *value)
{
	char digits[24];

	*value = 0;
	return field(text, "age", digits, sizeof(digits)) &&
		(*digits == '-' || job_number(digits, value));
}

/** job_learn - take what is needed of a job's statistics; false if it is not there */
bool job_learn(struct job_stats *stats, const char *text)
{
	unsigned long long pri;

	if (!field(text, "tube", stats->tube, sizeof(stats->tube)) ||
	    !field(text, "state", stats->state, sizeof(stats->state)) ||
	    !number(text, "pri", &pri) || pri > UINT32_MAX || !number(text, "ttr", &stats->ttr) ||
	    stats->ttr > UINT32_MAX || !age_of(text, &stats->age) ||
	    !number(text, "reserves", &stats->tries))
		return false;
	stats->pri = pri;
	return true;
}

/**
 * job_is_that - whether a job is still the one that it was
 * @job: as it was reserved
 * @now: what the server says of the job of that number
 *
 * A server that keeps nothing begins anew with its numbers when it is started. What it has
 * then was put after @job was reserved, and so is younger than that.
 */
bool job_is_that(const struct job *job, const struct job_stats *now)
{
	unsigned long long age = job->stats.age + (loop_now() - job->learned) / 1000;

	return !strcmp(now->tube, job->stats.tube) && now->pri == job->stats.pri &&
		now->ttr == job->stats.ttr && now->age + 1 >= age;
}

static bool set_number(const char *name, unsigned long long value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%llu", value);
	return setenv(name, digits, 1) == 0;
}

/* The body, if it can be a word of an environment */
static bool set_body(const struct job *job)
{
	static char body[MOST_IN_ENVIRONMENT + 1];

	unsetenv("TWHEEL_JOB_BODY");
	if (job->size > MOST_IN_ENVIRONMENT)
		return true;
	if (pread(job->body, body, job->size, 0) != (ssize_t)job->size)
		return false;
	body[job->size] = 0;
	return strlen(body) != job->size || setenv("TWHEEL_JOB_BODY", body, 1) == 0;
}

/** job_environment - say in the environment what job it is; false without memory for that */
bool job_environment(const struct job *job)
{
	return set_number("TWHEEL_JOB_ID", job->id) &&
		set_number("TWHEEL_JOB_TRIES", job->stats.tries) &&
		setenv("TWHEEL_JOB_TUBE", job->stats.tube, 1) == 0 && set_body(job);
}
