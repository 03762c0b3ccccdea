/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two engines, and what each does in its own way.
 *
 * local: the store is this server's alone. Memory is ahead of the store, and says which job is
 * due and which comes next. cluster: other servers share the store, and only the store can say
 * so. Memory has the jobs that clients of this server have reserved, and no others.
 */
#ifndef TWHEELD_ENGINE_H
#define TWHEELD_ENGINE_H

#include "base/histogram.h"
#include "jobs/job.h"
#include "jobs/protocol.h"

struct conn;
struct event_base;
struct tube;

typedef void (*command_fn)(struct conn *conn, const struct command *cmd);

struct engine {
	const char *store;		/* "folder" or "database": on the page */
	const char *disk;		/* its name in messages about delays */
	bool counts_in_store;		/* not in memory: they are asked of the store */
	int64_t patience;		/* ns; a command that takes longer fails. 0: however long */

	void (*load)(struct event_base *base);	/* before the committer begins */
	void (*start)(struct event_base *base);	/* when the committer has begun */
	void (*tick)(void);		/* each second */
	bool (*drain)(void);		/* end when clients need it no more; false: at once */
	const struct histogram *(*lateness)(void);	/* of delayed jobs */

	/* The commands that differ; where this is NULL, command.c has the command */
	command_fn commands[CMD_KINDS];
	/* Begin anew the time to run of a client's own job, which is detached */
	void (*touch)(struct conn *conn, struct job *job);
	/* OP_PUT has found op->same, which is to be replaced. NULL: the store has done that */
	void (*replace)(struct op *op);

	/* The number of a tube in the store; 0: a new one. False: the store can't be read */
	bool (*tube_id)(const char *name, int64_t *id);
	void (*tube_begins)(struct tube *tube);
	void (*tube_ends)(struct tube *tube);
	void (*serve)(struct tube *tube);	/* a tube may have jobs for clients that wait */

	/* A job that is not in memory */
	enum found (*find)(int64_t id, struct job **job);
	/* Into and out of any state but RESERVED. After attach() the job may be out of memory. */
	void (*attach)(struct job *job, enum state state);
	void (*detach)(struct job *job);
	void (*expired)(struct job *job);	/* time to run is over, or a delay */
	void (*submit)(struct op *op);		/* for job_write() */
	void (*due)(int64_t when);		/* a job was written that is due then */
	/* Make a job ready that its client lost; nothing of that was written, or could be */
	void (*hand_back)(struct job *job);
	void (*not_written)(struct job *job);
};

extern const struct engine *engine, engine_local, engine_cluster;

#endif
