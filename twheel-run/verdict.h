/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What becomes of a job whose command has ended.
 */
#ifndef TWHEEL_RUN_VERDICT_H
#define TWHEEL_RUN_VERDICT_H

#include <stdbool.h>

/* How a command ended. */
struct outcome {
	unsigned long long tries;
	int status;		/* as waitpid() has it */
	bool not_run;		/* the command could not be started */
	bool too_long;		/* it was ended for that */
	bool given_up;		/* it was ended as this program ends */
};

struct verdict {
	enum { VERDICT_DELETE, VERDICT_RELEASE, VERDICT_BURY } what;
	long long delay;		/* of a release, in seconds */
	char why[64];
};

struct verdict verdict(const struct outcome *outcome);

#endif
