// SPDX-License-Identifier: GPL-2.0
/*
 * Tubes.
 *
 * The first jobs that are ready are in memory, in a heap, and all others in the store
 * alone: those come after the tube's edge. When the heap has come to the edge, the next
 * ones are loaded. When it holds too many, the later half leaves it.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "conn.h"
#include "limits.h"
#include "shared.h"
#include "store.h"
#include "tube.h"
#include "util.h"
#include "window.h"

static struct tube *by_name, *by_id;
static struct tube **list;
static size_t list_length, list_room;
static int64_t next_id = 1;
static int64_t spill_at;

static void unpaused(struct twheel *tw, struct twheel_timer *timer,
		     const struct twheel_event *event)
{
	struct tube *tube = container_of(timer, struct tube, unpause);

	(void)tw;
	(void)event;
	tube->pause = 0;
	tube_serve(tube);
}

static struct tube *make(const char *name, int64_t id)
{
	struct tube *tube = zalloc(sizeof(*tube));

	strncpy(tube->name, name, sizeof(tube->name) - 1);
	tube->settings = settings_tube(tube->name);
	tube->commit.id = id;
	tube->commit.name = tube->name;
	tube->ready.less = job_ready_less;
	tube->delayed.less = job_delayed_less;
	alarm_init(&tube->unpause, unpaused);
	HASH_ADD(hash, by_name, name, strlen(tube->name), tube);
	HASH_ADD(hash_id, by_id, commit.id, sizeof(tube->commit.id), tube);
	if (list_length == list_room) {
		list_room = list_room ? 2 * list_room : 16;
		list = must(realloc(list, list_room * sizeof(struct tube *)));
	}
	tube->place = list_length;
	list[list_length++] = tube;
	if (id >= next_id)
		next_id = id + 1;
	return tube;
}

/** tube_load - make a tube of the store */
void tube_load(const struct store_tube *stored)
{
	struct tube *tube = make(stored->name, stored->id);

	memcpy(tube->count, stored->count, sizeof(stored->count));
	tube->urgent = stored->urgent;
	tube->stored = true;
	tube->cold = tube->count[READY];
	tube->edge = (struct cursor){ -1, 0 };
}

static void forgotten(struct op *op)
{
	(void)op;
}

/*
 * The store need not know a tube without jobs. The row is left alone if the tube is there
 * again by then, with jobs; one that comes later makes it anew.
 */
static void forget(int64_t id)
{
	struct op *op = zalloc(sizeof(*op));

	op->kind = OP_FORGET_TUBE;
	op->row.tube = id;
	op->done = forgotten;
	commit_submit(op);
}

static void drop_unused(struct tube *tube)
{
	if (tube->users)
		return;
	for (int i = 0; i < STATES; i++)
		if (tube->count[i])
			return;
	alarm_stop(&tube->unpause);
	if (tube->stored && !store->shared)
		forget(tube->commit.id);
	HASH_DELETE(hash, by_name, tube);
	HASH_DELETE(hash_id, by_id, tube);
	list[tube->place] = list[--list_length];
	list[tube->place]->place = tube->place;
	heap_free(&tube->ready);
	heap_free(&tube->delayed);
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
 * Return: the tube, or NULL if it can't be read whether the store knows it. With a second
 * number for the name, nothing of the tube could be written any more.
 */
struct tube *tube_get(const char *name)
{
	struct tube *tube = tube_find(name);
	int64_t id;

	if (store->shared)
		id = 0;
	else if (!tube && !store_tube_id(name, &id))
		return NULL;
	if (!tube)
		tube = make(name, id ? id : next_id);
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

void tube_ids_begin(int64_t next)
{
	next_id = next;
}

static bool after_edge(const struct tube *tube, const struct job *job)
{
	if (job->row.pri != tube->edge.ord)
		return job->row.pri > tube->edge.ord;
	return job->row.id > tube->edge.id;
}

struct page {
	struct tube *tube;
	int left;
};

static bool load(struct row *row, void *arg)
{
	struct page *page = arg;

	if (job_in_memory(row->id)) {
		free(row->body);
	} else {
		struct job *job = job_from_row(page->tube, row);

		job->cold = false;
		heap_add(&page->tube->ready, job);
		page->tube->cold--;
	}
	return --page->left > 0;
}

static bool load_page(struct tube *tube)
{
	struct page page = { tube, READY_PAGE };
	bool end;

	if (!store_in_order(tube->commit.id, READY, &tube->edge, &end, load, &page))
		return false;
	if (end)
		tube->cold = 0;
	return true;
}

/** tube_first_ready - the job to be reserved next; NULL if there is none, or it can't be read */
struct job *tube_first_ready(struct tube *tube)
{
	struct job *first = heap_first(&tube->ready);

	while (tube->cold > 0 && (!first || after_edge(tube, first))) {
		if (!load_page(tube))
			return NULL;
		first = heap_first(&tube->ready);
	}
	return first;
}

static int compare(const void *a, const void *b)
{
	struct job *const *one = a, *const *other = b;

	return job_ready_less(*one, *other) ? -1 : 1;
}

/* An array in order is a heap, too. */
static void leave_half(struct tube *tube)
{
	struct heap *heap = &tube->ready;
	size_t half = heap->length / 2;
	struct job *last;

	qsort(heap->jobs, heap->length, sizeof(struct job *), compare);
	for (size_t i = 0; i < heap->length; i++)
		heap->jobs[i]->place = i;
	last = heap->jobs[half - 1];
	if (tube->cold == 0 || !after_edge(tube, last))
		tube->edge = (struct cursor){ last->row.pri, last->row.id };
	while (heap->length > half) {
		struct job *job = heap->jobs[heap->length - 1];

		if (job_is_stored(job)) {
			heap->length--;
			tube->cold++;
			job_free(job);
		} else {
			job_spill(job);
		}
	}
}

/** tube_add_ready - have a job that is ready in memory, or, if there are many, not */
void tube_add_ready(struct tube *tube, struct job *job)
{
	if (tube->cold > 0 && after_edge(tube, job) && job_is_stored(job)) {
		tube->cold++;
		job_free(job);
		return;
	}
	heap_add(&tube->ready, job);
	if (tube->ready.length > READY_MOST && alarm_now() >= spill_at)
		leave_half(tube);
}

/** tube_spill_later - a job could not be written so that it may leave memory */
void tube_spill_later(void)
{
	spill_at = alarm_now() + SECOND;
}

struct first {
	struct tube *tube;
	struct job *job;
};

static bool load_first(struct row *row, void *arg)
{
	struct first *first = arg;

	if (job_in_memory(row->id)) {
		free(row->body);
		return true;
	}
	first->job = job_from_row(first->tube, row);
	return false;
}

static enum found first_in_store(struct tube *tube, enum state state, struct cursor *cursor,
				 struct job **job)
{
	struct first first = { .tube = tube };
	bool end;

	if (!tube->count[state])
		return NOT_THERE;
	if (!store_in_order(tube->commit.id, state, cursor, &end, load_first, &first))
		return UNREADABLE;
	*job = first.job;
	return first.job ? FOUND : NOT_THERE;
}

/**
 * tube_first_delayed - the delayed job that is due first
 * @tube: the tube
 * @cursor: CURSOR_BEGIN; goes on, so that who wants the next ones need not begin anew
 * @job: out: the job. After use: job_unfind()
 */
enum found tube_first_delayed(struct tube *tube, struct cursor *cursor, struct job **job)
{
	struct cursor end = window_end();

	*job = heap_first(&tube->delayed);
	if (*job)
		return FOUND;
	if (cursor->ord < end.ord)
		*cursor = end;
	return first_in_store(tube, DELAYED, cursor, job);
}

/** tube_first_buried - the same, of the job that was buried first */
enum found tube_first_buried(struct tube *tube, struct cursor *cursor, struct job **job)
{
	*job = NULL;
	return first_in_store(tube, BURIED, cursor, job);
}

/**
 * tube_end_pause - end a pause that is over
 *
 * Its timer may have yet to come, and who reserves after a pause is to find none. Who has
 * waited for longer goes first.
 */
void tube_end_pause(struct tube *tube)
{
	if (!tube->pause || alarm_now() < tube->unpause_at)
		return;
	alarm_stop(&tube->unpause);
	tube->pause = 0;
	tube_serve(tube);
}

bool tube_paused(const struct tube *tube)
{
	return tube->pause;
}

/** tube_serve - give jobs to those that wait */
void tube_serve(struct tube *tube)
{
	struct job *job;

	if (store->shared) {
		shared_serve(tube);
		return;
	}
	tube->users++;
	while (tube->waiting && !tube_paused(tube)) {
		job = tube_first_ready(tube);
		if (!job)
			break;
		conn_give(tube->waiting->conn, job);
	}
	tube_put(tube);
}

/** tube_serve_all - once more, after the store could not be read */
void tube_serve_all(void)
{
	for (size_t i = 0; i < list_length; i++)
		if (list[i]->waiting && list[i]->count[READY])
			tube_serve(list[i]);
}

/** tube_settings_changed - there is another configuration */
void tube_settings_changed(void)
{
	for (size_t i = 0; i < list_length; i++)
		list[i]->settings = settings_tube(list[i]->name);
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
