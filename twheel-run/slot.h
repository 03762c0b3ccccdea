/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One of the jobs that are done at a time: a connection of its own, and a command.
 */
#ifndef TWHEEL_RUN_SLOT_H
#define TWHEEL_RUN_SLOT_H

#include "child.h"
#include "job.h"
#include "link.h"
#include "verdict.h"

/* The last command that was sent */
enum asked {
	ASKED_AUTH, ASKED_CLIENT, ASKED_WATCH, ASKED_IGNORE, ASKED_RESERVE, ASKED_STATS,
	ASKED_TAKE_BACK, ASKED_TOUCH, ASKED_NOTE, ASKED_VERDICT,
};

enum stage {
	IDLE,		/* no job */
	NEW,		/* its command does not run yet */
	RUNNING,
	ENDED,		/* the command has; the server has to hear of it */
};

struct slot {
	struct link link;
	enum asked asked;
	bool authorized;		/* the token was said, if there is one */
	bool named;			/* it was said who this is */
	bool keeps;			/* the server knows what a note is */
	unsigned int watched;
	bool ignored;			/* the tube default, if it is not wanted */

	enum stage stage;
	struct job job;
	struct child child;
	struct verdict verdict;
	bool learned;			/* its statistics are here */
	bool held;			/* the job is reserved by this connection */
	bool found;			/* not held, but there to be taken back */
	bool noted;			/* the server has what the command wrote */
	bool reported;			/* its result was sent; there may be no answer */
	bool lost;			/* it is somebody else's by now */
	bool touch;			/* it is time to */
	int not_run;			/* why the command could not be */
	long long until;			/* it is ours for so long, unless it is touched */
	bool paused;
	long long wait;			/* ms, when a command could not be run last */
	struct event *touching, *pause;
};

struct slot *slot_new(void);
void slot_stop(struct slot *slot);
void slot_give_up(struct slot *slot);
bool slot_forsake(struct slot *slot);

#endif
