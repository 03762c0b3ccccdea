// SPDX-License-Identifier: GPL-2.0
/*
 * Tubes: their names, who uses them and waits for their jobs, pauses.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/engine.h"
#include "jobs/notice.h"
#include "jobs/tube.h"

static struct tube *by_name, *by_id;
static struct tube **list;
static size_t list_length, list_room;
static size_t with_figures;
static struct tube others;	/* see tube_others() */
static int64_t next_id = 1;
static int64_t started;		/* 0: a shared store, which knows what servers gave */

static void unpaused(struct twheel *tw, struct twheel_timer *timer,
		     const struct twheel_event *event)
{
	struct tube *tube = container_of(timer, struct tube, unpause);

	tube->pause = 0;
	engine->serve(tube);
}

static void serve_again(struct twheel *tw, struct twheel_timer *timer,
			const struct twheel_event *event)
{
	struct tube *tube = container_of(timer, struct tube, again);

	tube->again_at = 0;
	engine->serve(tube);
}

/** tube_make - make a tube that is not there, by its number in the store */
struct tube *tube_make(const char *name, int64_t id)
{
	struct tube *tube = zalloc(sizeof(*tube));

	strncpy(tube->name, name, sizeof(tube->name) - 1);
	tube->settings = settings_tube(tube->name);
	tube->commit.id = id;
	tube->commit.name = tube->name;
	alarm_init(&tube->unpause, unpaused);
	alarm_init(&tube->again, serve_again);
	tube->figures = with_figures < FIGURES_MOST;
	with_figures += tube->figures;
	if (!tube->figures)
		strcpy(others.name, OTHERS);
	tube->full_until = started + tube->settings->limit.burst * tube->settings->limit.interval;
	HASH_ADD(hash, by_name, name, strlen(tube->name), tube);
	HASH_ADD(hash_id, by_id, commit.id, sizeof(tube->commit.id), tube);
	if (list_length == list_room) {
		list_room = list_room ? 2 * list_room : 16;
		list = must(realloc(list, list_room * sizeof(struct tube *)));
	}
	engine->tube_begins(tube);
	tube->place = list_length;
	list[list_length++] = tube;
	if (id >= next_id)
		next_id = id + 1;
	return tube;
}

/** tube_add - add a tube's figures to those of others */
void tube_add(struct tube *sum, const struct tube *tube)
{
	for (int i = 0; i < STATES; i++)
		sum->count[i] += tube->count[i];
	sum->total += tube->total;
	sum->deletes += tube->deletes;
	for (int i = 0; i < TRY_ENDS; i++)
		sum->ends[i] += tube->ends[i];
	if (tube->done_at > sum->done_at)
		sum->done_at = tube->done_at;
}

static void drop_unused(struct tube *tube)
{
	if (tube->users)
		return;
	for (int i = 0; i < STATES; i++)
		if (tube->count[i])
			return;
	/* A tube of the same name that came at once would have all of its burst again. */
	if (tube->full_until > alarm_now()) {
		tube_serve_at(tube, tube->full_until);
		return;
	}
	if (tube->figures)
		with_figures--;
	else
		tube_add(&others, tube);
	alarm_stop(&tube->unpause);
	alarm_stop(&tube->again);
	engine->tube_ends(tube);
	HASH_DELETE(hash, by_name, tube);
	HASH_DELETE(hash_id, by_id, tube);
	list[tube->place] = list[--list_length];
	list[tube->place]->place = tube->place;
	free(tube);
}

struct tube *tube_find(const char *name)
{
	struct tube *tube;

	HASH_FIND(hash, by_name, name, strlen(name), tube);
	return tube;
}

struct tube *tube_by_id(int64_t id)
{
	struct tube *tube;

	HASH_FIND(hash_id, by_id, &id, sizeof(id), tube);
	return tube;
}

/**
 * tube_get - find or make a tube, which is there until tube_put()
 * @name: its name
 *
 * Return: the tube, or NULL if the store can't be asked for its number: with a second number for
 * the name, no job of the tube could be written any more.
 */
struct tube *tube_get(const char *name)
{
	struct tube *tube = tube_find(name);
	int64_t id;

	if (!tube && !engine->tube_id(name, &id))
		return NULL;
	if (!tube)
		tube = tube_make(name, id ? id : next_id);
	tube->users++;
	return tube;
}

void tube_put(struct tube *tube)
{
	tube->users--;
	drop_unused(tube);
}

/** tube_list - all tubes */
struct tube **tube_list(size_t *count)
{
	*count = list_length;
	return list;
}

/**
 * tube_others - the sum of tubes that have gone, of those without a row in metrics
 *
 * With it, the sum of all such tubes never falls, which to Prometheus would be a new start.
 *
 * Return: the sum, whose name is empty as long as each tube had a row.
 */
const struct tube *tube_others(void)
{
	return &others;
}

/** tube_ids_begin - the server starts; the one before it may have used up the burst of each rate */
void tube_ids_begin(int64_t next)
{
	next_id = next;
	started = alarm_now();
}

/**
 * tube_catch_up - end a pause that is over, and serve those who wait if it is time
 *
 * Their timers may not have fired yet, and a reserve after a pause must find no pause. Clients that
 * wait have jobs before the one that reserves now.
 */
void tube_catch_up(struct tube *tube)
{
	bool over = tube->pause && alarm_now() >= tube->unpause_at;

	if (!over && (!tube->again_at || alarm_now() < tube->again_at))
		return;
	if (over) {
		alarm_stop(&tube->unpause);
		tube->pause = 0;
	}
	engine->serve(tube);
}

/** tube_serve_at - serve the clients that wait, at that time at the latest: there is room then */
void tube_serve_at(struct tube *tube, int64_t when)
{
	if (tube->again_at && tube->again_at <= when)
		return;
	tube->again_at = when;
	alarm_set(&tube->again, when);
}

/**
 * tube_may_give - do the limits of a tube let a client have one of its jobs now?
 *
 * If not, the clients that wait are served as soon as they do. For a store of one server.
 */
bool tube_may_give(struct tube *tube)
{
	const struct limit *limit = &tube->settings->limit;
	int64_t from;

	if (limit->at_most && tube->count[RESERVED] >= limit->at_most)
		return false;
	if (!limit->interval)
		return true;
	from = tube->full_until - (limit->burst - 1) * limit->interval;
	if (from > alarm_now())
		tube_serve_at(tube, from);
	return from <= alarm_now();
}

/** tube_gave - a client got one of its jobs */
void tube_gave(struct tube *tube)
{
	int64_t interval = tube->settings->limit.interval, now;

	if (!interval)
		return;
	now = alarm_now();
	tube->full_until = (tube->full_until > now ? tube->full_until : now) + interval;
}

bool tube_paused(const struct tube *tube)
{
	return tube->pause;
}

/** tube_settings_changed - there is another configuration */
void tube_settings_changed(void)
{
	for (size_t i = 0; i < list_length; i++) {
		struct tube *tube = list[i];
		const struct tube_settings *settings = settings_tube(tube->name);
		int64_t full = alarm_now() + settings->limit.burst * settings->limit.interval;

		tube->settings = settings;
		tube->full_until = tube->full_until < full ? tube->full_until : full;
		if (tube->waiting)
			tube_serve_at(tube, alarm_now());
	}
}

void tube_pause(struct tube *tube, int64_t ns)
{
	tube->pause = ns;
	tube->unpause_at = alarm_now() + ns;
	tube->pauses++;
	alarm_set(&tube->unpause, tube->unpause_at);
}

void tube_wait(struct watch *watch)
{
	DL_APPEND(watch->tube->waiting, watch);
	watch->tube->waiting_count++;
}

void tube_unwait(struct watch *watch)
{
	DL_DELETE(watch->tube->waiting, watch);
	watch->tube->waiting_count--;
}
