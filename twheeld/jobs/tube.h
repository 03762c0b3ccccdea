/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tubes: their names, who uses them and waits for their jobs, pauses.
 */
#ifndef TWHEELD_TUBE_H
#define TWHEELD_TUBE_H

#include "jobs/job.h"
#include "jobs/protocol.h"
#include "jobs/settings.h"

/* A client that watches a tube, and a place in the row of those that wait for its jobs */
struct watch {
	struct tube *tube;
	struct conn *conn;
	struct watch *prev, *next;
};

/* In metrics, the name of all tubes without a row: no tube's name begins so. */
#define OTHERS "-others"

/* How tries end: as deeds have it, but for jobs that go to the dead letters */
#define TRY_DEAD (DEED_LEFT + 1)
#define TRY_ENDS (TRY_DEAD + 1)

struct tube {
	char name[TUBE_NAME_MAX + 1];
	const struct tube_settings *settings;
	struct tube_commit commit;
	UT_hash_handle hash, hash_id;
	size_t place;		/* in the list of all tubes */
	unsigned int users;	/* clients, and jobs that are new */
	bool stored;		/* the store has a row for it */
	struct heap ready, delayed;	/* the jobs in memory */
	struct watch *waiting;
	/* Jobs by state, also the ones in the store alone */
	int64_t count[STATES];
	int64_t urgent;
	/* Ready jobs in the store alone: all come after the edge. */
	int64_t cold;
	struct cursor edge;
	unsigned int spilling;	/* ready jobs after the edge that are being written */
	uint64_t total, deletes, pauses;
	uint64_t ends[TRY_ENDS];	/* tries of clients of this server */
	int64_t done_at;		/* when the last one was done, by the wall clock; or 0 */
	bool figures;			/* it has a row of its own in metrics */
	unsigned int using, watching, waiting_count;
	/* Shared store: how often the tube may have got jobs, and requests for jobs under way */
	uint64_t news;
	unsigned int taking;
	int64_t pause, unpause_at;
	struct twheel_timer unpause;
	int64_t full_until;	/* from then on, a rate has all of its burst again */
	int64_t again_at;	/* clients that wait are served then; 0: the timer is not set */
	struct twheel_timer again;
};

void tube_ids_begin(int64_t next);
struct tube *tube_make(const char *name, int64_t id);
struct tube *tube_find(const char *name);
struct tube *tube_by_id(int64_t id);
struct tube *tube_get(const char *name);
void tube_put(struct tube *tube);
struct tube **tube_list(size_t *count);
const struct tube *tube_others(void);
void tube_add(struct tube *sum, const struct tube *tube);

void tube_settings_changed(void);
void tube_pause(struct tube *tube, int64_t ns);
void tube_catch_up(struct tube *tube);
void tube_serve_at(struct tube *tube, int64_t when);
bool tube_may_give(struct tube *tube);
void tube_gave(struct tube *tube);
bool tube_paused(const struct tube *tube);
void tube_wait(struct watch *watch);
void tube_unwait(struct watch *watch);

#endif
