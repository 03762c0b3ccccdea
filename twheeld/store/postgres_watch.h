/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page's figures of a database that servers share.
 */
#ifndef TWHEELD_POSTGRES_WATCH_H
#define TWHEELD_POSTGRES_WATCH_H

#include "store/commit.h"

/* The most tubes, and servers, in an answer */
#define WATCH_MOST 100

struct watch_tube {
	char name[TUBE_NAME_MAX + 1];
	int64_t count[STATES];
	bool paused;
};

/* A server that has a session */
struct watch_node {
	char name[TUBE_NAME_MAX + 1], site[TUBE_NAME_MAX + 1];
	int64_t session;
	int64_t silent;		/* ns since it was heard of */
	int64_t reserved;
	bool self;
};

/* Questions for pg_ask(), and their answers: the tubes with most jobs, and the servers */
struct tubes_asked {
	struct op op;
	struct watch_tube tubes[WATCH_MOST];
	size_t count;		/* in @tube */
	int64_t all;
};

struct nodes_asked {
	struct op op;
	struct watch_node nodes[WATCH_MOST];
	size_t count;
	int64_t all;
};

/* Jobs in an answer */
#define LISTED_MOST 50
/* And bytes of a body's begin */
#define LISTED_BYTES 64

struct listed_job {
	struct row row;		/* its body: the begin, if it is short, or NULL; to be freed */
	char tube[TUBE_NAME_MAX + 1];	/* or empty: the one that was asked for */
};

/* Jobs after a cursor: of a tube in one state, or those that a session has */
struct jobs_asked {
	struct op op;
	char tube[TUBE_NAME_MAX + 1];
	enum state state;
	int64_t session;	/* 0: those of the tube */
	struct cursor after;
	struct listed_job jobs[LISTED_MOST];
	size_t found;
};

bool pg_jobs(struct jobs_asked *asked);
bool pg_tubes(struct tubes_asked *asked);
bool pg_nodes(struct nodes_asked *asked);

#endif
