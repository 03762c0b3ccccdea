/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page shows of a database that servers share.
 */
#ifndef TWHEELD_POSTGRES_WATCH_H
#define TWHEELD_POSTGRES_WATCH_H

#include "commit.h"

/* Tubes and servers that are told of */
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
	int64_t silent;		/* for so long nothing was heard of it, in ns */
	int64_t reserved;
	bool self;
};

struct overview {
	int64_t schedules[WATCH_MOST];	/* in: whose last runs are asked for */
	size_t schedule_count;
	bool failed;
	struct watch_tube tubes[WATCH_MOST];	/* those with most jobs */
	struct watch_node nodes[WATCH_MOST];
	struct run_row runs[WATCH_MOST];	/* created is 0: there is none */
	size_t tube_count, node_count;		/* here */
	int64_t tubes_all, nodes_all;
};

/* A look, under way */
struct overview_asked {
	struct op op;
	struct overview *overview;
	void (*done)(void);
};

void pg_watch(struct overview *overview, void (*done)(void));

#endif
