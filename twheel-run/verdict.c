// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of a job whose command has ended.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "options.h"
#include "verdict.h"

static bool exited_with(const struct outcome *outcome, int status)
{
	return !outcome->not_run && WIFEXITED(outcome->status) &&
		WEXITSTATUS(outcome->status) == status;
}

static void say_why(const struct outcome *outcome, char *why, size_t room)
{
	if (outcome->not_run)
		snprintf(why, room, "could not be run");
	else if (outcome->too_long)
		snprintf(why, room, "took too long");
	else if (WIFSIGNALED(outcome->status))
		snprintf(why, room, "ended by SIG%s", sigabbrev_np(WTERMSIG(outcome->status)));
	else
		snprintf(why, room, "exited with %d", WEXITSTATUS(outcome->status));
}

/**
 * verdict - what becomes of a job
 * @outcome: how its command ended
 *
 * What is not the job's fault does not bury it: that the command could not be run, or did
 * not end before this program had to.
 */
struct verdict verdict(const struct outcome *outcome)
{
	struct verdict verdict = { .what = VERDICT_RELEASE };

	say_why(outcome, verdict.why, sizeof(verdict.why));
	if (exited_with(outcome, 0))
		verdict.what = VERDICT_DELETE;
	else if (outcome->given_up)
		verdict.delay = 0;
	else if (exited_with(outcome, EX_DATAERR))
		verdict.what = VERDICT_BURY;
	else if (!outcome->not_run && options.tries && outcome->tries >= options.tries)
		verdict.what = VERDICT_BURY;
	else
		verdict.delay = options_delay(outcome->tries);
	return verdict;
}
