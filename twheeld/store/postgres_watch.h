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

bool pg_tubes(struct tubes_asked *asked);
bool pg_nodes(struct nodes_asked *asked);

#endif
