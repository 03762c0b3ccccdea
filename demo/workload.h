/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The workload file: what a server has to do in a day. README.md has the
 * format.
 */
#ifndef DEMO_WORKLOAD_H
#define DEMO_WORKLOAD_H

#include <linux/types.h>

#define MS 1000000ULL
#define SECOND (1000 * MS)

/* A share of all connections, in millionths, lasts at most this long. */
struct quantile {
	__u32 share;
	__u64 time;
};

struct arrivals {
	unsigned int line;
	__u64 from;
	__u64 to;
	__u32 count;
};

struct kind {
	char name[32];
	unsigned int line;
	__u64 timeout;
	__u64 push_min;
	__u64 push_max;
	__u32 close;		/* share that closes, in millionths */
	unsigned int nr_lasts;
	struct quantile *lasts;
	unsigned int nr_arrivals;
	struct arrivals *arrivals;
};

struct periodic {
	unsigned int line;
	__u32 count;
	__u64 period;
};

/* All times but @day are as they are played, in ns: those of the file x @scale. */
struct workload {
	const char *path;
	__u64 day;		/* in the time of the file */
	__u64 run;		/* the same as it is played */
	double scale;
	__u64 seed;
	__u32 nr_connections;
	__u32 nr_timers;	/* of all the periodic lines */
	unsigned int nr_kinds;
	struct kind *kinds;
	unsigned int nr_periodic;
	struct periodic *periodic;
};

/* Reads a workload file; says what is wrong with it and exits if it can't. */
void workload_read(struct workload *w, const char *path);

#endif
