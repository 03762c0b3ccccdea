// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules: when each fires next, and its firings.
 *
 * A schedule has at most one operation under way that changes its next time, and all schedules have
 * FIRINGS_MOST, so that clients need not wait for many. Further schedules wait in a row.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/digest.h"
#include "base/limits.h"
#include "base/util.h"
#include "cron/figures.h"
#include "cron/firing.h"
#include "cron/pushed.h"
#include "cron/schedule.h"
#include "jobs/command.h"
#include "jobs/notice.h"
#include "jobs/trace.h"
#include "when/after.h"
#include "when/calendar.h"
#include "when/zone.h"

/* How long after a failed write it is tried again */
#define RETRY SECOND
/* How many schedules are looked at in one go, at the end of a reading */
#define STOP_PIECE 200
/* The wall clock was set if it is off by more than this */
#define STEP MILLISECOND
/* For a database's clock: it is known less well, as the answer takes time. */
#define SHARED_STEP (50 * MILLISECOND)
/* How long other servers' tabs may differ, while all are edited, before the log says so */
#define DIFFER_LEAST (10 * SECOND)
/* How often the store is asked which schedules are paused, and who defines them */
#define LOOK (2 * SECOND)
/* Times that were missed are counted up to this */
#define MISSED_MOST 10000
#define DAY (86400 * SECOND)
/* After late runs were told, others are not before this */
#define LATE_EVERY (60 * SECOND)

static struct schedule *schedules, *by_id, *waiting;
static int64_t next_id = 1;
static bool others;		/* servers that share the store have schedules, too */
static unsigned int reading, in_flight;
static bool taking;		/* the tabs' schedules are being taken, until all are there */
static struct schedule *ending;	/* the one to be looked at next, at the end of that */
static size_t weight;		/* bytes of the jobs that are being written */
static int64_t skew;		/* the clock's offset with which the timers were set */
static int64_t history, prune_at, look_at;
static int64_t started;		/* when the server started, by its time */
static int64_t forgotten;	/* runs up to this time, in ns, may be forgotten */
static uint64_t jobs;
static size_t gone_count;	/* schedules that no tab has */
static struct schedule *next_gone;	/* the next one that the store is asked to forget, held */
static struct histogram lateness;
static struct event *turn;
/* Servers whose tabs differ from this one's, since when, and whether that was said */
static char differing[TUBE_NAME_MAX + 1];
static int64_t differ_since;
static bool differ_said;
static bool have_waits;		/* a tab has, or had, a schedule whose times may wait */
static bool may_wait = true;	/* there may be such times */
static unsigned int waiting_asked;	/* requests and firings under way for times that waited */
static const struct waiting_time from_all = { .time = INT64_MIN };
/* The next request is for those after this one. */
static struct waiting_time waiting_from = { .time = INT64_MIN };

static void settle(struct schedule *schedule);
static void end_if_unused(struct schedule *schedule);
static void look_again(struct schedule *schedule);
static void pump(void);
static void late_expired(struct twheel *tw, struct twheel_timer *timer,
			 const struct twheel_event *event);

/* Times */

static int64_t to_ns(int64_t seconds)
{
	return seconds > INT64_MAX / SECOND ? INT64_MAX : seconds * SECOND;
}

static int64_t to_seconds(int64_t ns)
{
	return ns == INT64_MAX ? CALENDAR_NEVER : ns / SECOND;
}

static int64_t now_seconds(void)
{
	return alarm_wall() / SECOND;
}

/** schedule_next - the first time after one for which a schedule has a job; both in seconds */
int64_t schedule_next(const struct schedule *schedule, int64_t after)
{
	return holidays_next(schedule->holidays, schedule->definition->calendar, after);
}

/** schedule_prev - the last time before one */
int64_t schedule_prev(const struct schedule *schedule, int64_t before)
{
	return holidays_prev(schedule->holidays, schedule->definition->calendar, before);
}

/* A schedule's jitter for a number: always the same, on each machine */
static int64_t jitter(const struct schedule *schedule, int64_t number)
{
	uint64_t most = schedule->definition->jitter * (SECOND / MILLISECOND), hash;

	hash = digest_text(schedule->name, number);
	return hash % (most + 1) * MILLISECOND;
}

/*
 * When this server started, by today's wall clock: the clock may have been wrong then, and set
 * since.
 */
static int64_t started_at(void)
{
	return alarm_wall() - (alarm_now() - started);
}

/**
 * schedule_due - when a schedule that a tab has fires next, by the wall clock, in ns
 *
 * Times that had been missed when the server started are spread over the time after the start. The
 * part differs from day to day: else a machine that runs for less each day would never reach it.
 */
int64_t schedule_due(const struct schedule *schedule)
{
	const struct definition *definition = schedule->definition;
	int64_t ns = to_ns(schedule->time), start;

	if (ns == INT64_MAX || !definition->jitter)
		return ns;
	start = started_at();
	if (schedule->time < start / SECOND - definition->late - definition->jitter)
		return start + jitter(schedule, start / DAY);
	return ns + jitter(schedule, schedule->time);
}

static bool clock_was_set(void)
{
	return llabs(alarm_skew() - skew) > (others ? SHARED_STEP : STEP);
}

static bool may_fire(const struct schedule *schedule)
{
	return schedule->definition && !schedule->paused && !schedule->other && !command_draining();
}

static bool fires(const struct schedule *schedule)
{
	return may_fire(schedule) && schedule->time != CALENDAR_NEVER;
}

static void written(struct schedule *schedule, bool failed)
{
	schedule->busy = false;
	in_flight--;
	if (failed)
		alarm_set(&schedule->timer, alarm_now() + RETRY);
	else
		settle(schedule);
	/* Let schedules of the same transaction have their next operations in one, too. */
	event_active(turn, EV_TIMEOUT, 0);
	end_if_unused(schedule);
}

/* Definitions */

/* A schedule's row that is being written, while the schedule goes on */
struct define {
	struct op op;
	struct schedule_row row;
	struct schedule *schedule;
	int64_t since;
	void (*done)(void *arg, const char *why);
	void *arg;
};

static struct define *new_define(struct schedule *schedule, enum op_kind kind)
{
	struct define *define = zalloc(sizeof(*define));

	define->op.kind = kind;
	define->op.schedule = &define->row;
	define->schedule = schedule;
	define->row = (struct schedule_row){
		.id = schedule->id, .name = schedule->name, .digest = schedule->digest,
		.next = to_ns(schedule->time), .paused = schedule->paused, .gone = schedule->gone,
		.since = to_ns(schedule->since),
	};
	return define;
}

/* A shared store's row goes before the one in memory. */
static void go_by(struct schedule *schedule, const struct schedule_row *row)
{
	schedule->other = row->digest != schedule->digest;
	if (schedule->other || schedule->unwritten)
		return;
	schedule->time = to_seconds(row->next);
	schedule->since = to_seconds(row->since);
	if (!schedule->pausing)
		schedule->paused = row->paused;
}

static void defined(struct op *op)
{
	struct define *define = container_of(op, struct define, op);
	struct schedule *schedule = define->schedule;

	schedule->unwritten |= op->failed;
	if (others && !op->failed)
		go_by(schedule, &define->row);
	written(schedule, op->failed);
}

static void write_definition(struct schedule *schedule)
{
	struct define *define = new_define(schedule, OP_DEFINE);

	schedule->unwritten = false;
	schedule->forgotten = false;
	define->op.done = defined;
	commit_submit(&define->op);
}

/* Who learns of a schedule */

static struct notice_schedule notice_of(const struct schedule *schedule)
{
	const struct definition *definition = schedule->definition;

	return (struct notice_schedule){
		.name = schedule->name, .tube = definition->tube, .mailto = definition->mailto,
		.tells = {
			[NEWS_FAILED] = definition->tells[NEWS_FAILED],
			[NEWS_RECOVERED] = definition->tells[NEWS_RECOVERED],
			[NEWS_MISSED] = definition->tells[NEWS_MISSED],
			[NEWS_LATE] = definition->tells[NEWS_FAILED],
		},
	};
}

/** schedule_find_id - the schedule that has that number in the store, or NULL */
struct schedule *schedule_find_id(int64_t id)
{
	struct schedule *schedule;

	HASH_FIND(by_id, by_id, &id, sizeof(id), schedule);
	return schedule;
}

static bool find_notice(int64_t id, struct notice_schedule *found)
{
	const struct schedule *schedule = schedule_find_id(id);

	if (!schedule || !schedule->definition)
		return false;
	*found = notice_of(schedule);
	return true;
}

/* A run has ended on this server. */
static void run_ended(int64_t id, bool failed, const struct trace *trace)
{
	struct schedule *schedule = schedule_find_id(id);

	if (schedule)
		figures_ended(schedule, failed, trace);
}

/* Look for late runs @ns after now, or earlier if that was to be. */
static void look_for_late(struct schedule *schedule, int64_t ns)
{
	int64_t when = alarm_now() + ns;

	when = when > schedule->late_quiet ? when : schedule->late_quiet;
	if (schedule->late_at && schedule->late_at <= when)
		return;
	schedule->late_at = when;
	alarm_set(&schedule->late, when);
}

/** schedule_watch_late - a run for @time is there, in ns: it may become late */
void schedule_watch_late(struct schedule *schedule, int64_t time)
{
	int64_t ns;

	if (!schedule->definition || !schedule->definition->on_late)
		return;
	ns = time + schedule->definition->on_late * SECOND - alarm_wall();
	look_for_late(schedule, ns > MILLISECOND ? ns : MILLISECOND);
}

/* What becomes late within a minute of what was told is told together. */
static void got_late(struct op *op)
{
	struct late *late = container_of(op, struct late, op);
	struct schedule *schedule = schedule_find_id(late->schedule);

	if (!schedule)
		return;
	schedule->late_asked = false;
	if (op->failed) {
		look_for_late(schedule, RETRY);
	} else if (schedule->definition && schedule->definition->on_late) {
		struct notice_schedule told = notice_of(schedule);

		schedule->late_told = late->until;
		if (late->count) {
			schedule->late_quiet = alarm_now() + LATE_EVERY;
			notice_late(&told, schedule->id, late->first, late->count);
		}
		if (late->next || late->count == LATE_MOST)
			schedule_watch_late(schedule, late->next);
	}
}

static void late_expired(struct twheel *tw, struct twheel_timer *timer,
			 const struct twheel_event *event)
{
	struct schedule *schedule = container_of(timer, struct schedule, late);
	struct late *late;

	schedule->late_at = 0;
	if (!schedule->definition || !schedule->definition->on_late || schedule->late_asked)
		return;
	if (command_draining()) {
		look_for_late(schedule, LATE_EVERY);
		return;
	}
	schedule->late_asked = true;
	late = zalloc(sizeof(*late));
	late->op.kind = OP_LATE;
	late->op.done = got_late;
	late->schedule = schedule->id;
	late->after = schedule->late_told;
	late->until = alarm_wall() - schedule->definition->on_late * SECOND;
	commit_submit(&late->op);
}

/* Firing */

/*
 * The store has another next time. Either this server's is written next, or that of another
 * server is taken over, unless the store has forgotten the schedule, or another server has it no
 * more.
 */
static void take_other(struct schedule *schedule, const struct schedule_row *found)
{
	if (others && found->id && !found->gone)
		go_by(schedule, found);
	else
		schedule->unwritten = true;
}

static void fired(struct op *op)
{
	struct schedule *schedule = op->firing->schedule;
	int64_t next = to_seconds(op->firing->next), since = to_seconds(op->firing->since);
	/* The definition may have changed since. */
	bool same = schedule->definition && to_ns(schedule->time) == op->firing->from;
	int64_t late = same ? alarm_wall() - schedule_due(schedule) : 0;
	struct schedule_row found = op->firing->found;
	bool stale = op->firing->stale;
	struct firing_counts counts;
	size_t made;

	weight -= op->firing->weight;
	if (!op->failed && !stale && op->firing->missed_count && schedule->definition) {
		struct notice_schedule told = notice_of(schedule);

		notice_missed_later(&told, op->firing->missed, op->firing->missed_count,
				    op->firing->told);
	}
	if (!op->failed && !stale)
		figures_fired(schedule, 0, op->firing->missed_count);
	counts = firing_end(op);
	made = counts.made;
	jobs += made;
	figures_fired(schedule, counts.skipped, 0);
	if (same && made)
		histogram_add(&lateness, late);
	if (same && !op->failed && !stale) {
		/* A new line may have this time, too, and then it says which time is next. */
		schedule->time = schedule->unwritten ?
			schedule_next(schedule, schedule->time) : next;
		schedule->since = since;
		look_again(schedule);
	}
	if (stale && !op->failed)
		take_other(schedule, &found);
	written(schedule, op->failed);
}

struct due_times {
	int64_t ns[MISFIRES_MOST];
	size_t count;
	int64_t missed, missed_count, next, since;
};

static size_t misfires_wanted(const struct definition *definition)
{
	if (definition->misfire == MISFIRE_ALL)
		return definition->most;
	return definition->misfire == MISFIRE_ONCE;
}

/*
 * The first time that may be made up for. The clock may have been wrong when the machine started,
 * so that the next time lies long ago: before the schedule was there, or before runs were
 * forgotten.
 */
static int64_t first_missed(const struct schedule *schedule)
{
	int64_t first = forgotten ? forgotten / SECOND + 1 : 0;

	if (first < schedule->since)
		first = schedule->since;
	return schedule->time < first ? schedule_next(schedule, first - 1) : schedule->time;
}

/* Times before @before are too late: the schedule's policy says which of them have a job. */
static void misfire(const struct schedule *schedule, int64_t before, struct due_times *times)
{
	size_t wanted = misfires_wanted(schedule->definition);
	int64_t found[MISFIRES_MOST], first = first_missed(schedule);
	int64_t at = schedule_prev(schedule, before);

	while (times->count < wanted && at != CALENDAR_NEVER && at >= first) {
		found[times->count++] = to_ns(at);
		at = schedule_prev(schedule, at);
	}
	for (size_t i = 0; i < times->count; i++)
		times->ns[i] = found[times->count - 1 - i];
	times->next = schedule_next(schedule, before - 1);
	if (first < before && (!times->count || times->ns[0] > to_ns(first)))
		times->missed = to_ns(first);
	if (times->count)
		before = to_seconds(times->ns[0]);
	for (at = first; at < before && times->missed_count < MISSED_MOST;
	     at = schedule_next(schedule, at))
		times->missed_count++;
}

static void find_times(const struct schedule *schedule, struct due_times *times)
{
	const struct definition *definition = schedule->definition;
	int64_t before = now_seconds() - definition->late - definition->jitter;

	times->count = 0;
	times->missed = 0;
	times->missed_count = 0;
	times->since = schedule->since;
	if (schedule->time < before) {
		misfire(schedule, before, times);
		return;
	}
	times->ns[times->count++] = to_ns(schedule->time);
	times->next = schedule_next(schedule, schedule->time);
	/*
	 * The bound was set while the clock was ahead. (A clock that is not set yet proves
	 * nothing.)
	 */
	if (times->since > schedule->time && schedule->time >= CLOCK_SET)
		times->since = schedule->time;
}

static int64_t new_id(const char *name)
{
	return others ? digest_text(name, 0) & INT64_MAX : next_id;
}

/* Set the run that a time waits for. Its schedule may be another server's, and not known here. */
static void set_after(struct firing *firing, const struct schedule *schedule)
{
	const struct definition *definition = schedule->definition;
	const struct schedule *other;

	if (!definition->after)
		return;
	other = schedule_find(definition->after);
	firing->within = definition->within * SECOND;
	firing->after = other ? other->id : INT64_MAX;
	if (!other && others)
		firing->after = new_id(definition->after);
}

static bool fire(struct schedule *schedule)
{
	struct due_times times;
	struct op *op;

	find_times(schedule, &times);
	op = firing_new(schedule, times.ns, times.count);
	if (!op)
		return false;
	if (!op->firing->count && times.count) {
		times.missed = times.missed ? times.missed : times.ns[0];
		times.missed_count += times.count;
	}
	set_after(op->firing, schedule);
	op->firing->digest = schedule->digest;
	op->firing->from = to_ns(schedule->time);
	op->firing->next = to_ns(times.next);
	op->firing->missed = times.missed;
	op->firing->missed_count = times.missed_count;
	if (times.missed_count) {
		struct notice_schedule told = notice_of(schedule);

		op->firing->news = notice_missed(&told, times.missed, times.missed_count,
						 &op->firing->told);
	}
	op->firing->since = to_ns(times.since);
	weight += op->firing->weight;
	firing_submit(op, fired);
	return true;
}

/* Times that wait */

/* Compares numbers, or structures that begin with one. */
static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

static void made_at_last(struct op *op)
{
	weight -= op->firing->weight;
	jobs += firing_end(op).made;
	waiting_asked--;
}

/* Make a time that has waited. A time that is due comes first, and does for the one that waits. */
static void make_at_last(struct schedule *schedule, int64_t time)
{
	struct op *op;

	if (!may_fire(schedule) || schedule_is_paused(schedule) || schedule->unwritten ||
	    schedule_due(schedule) <= alarm_wall() || weight >= FIRINGS_WEIGHT)
		return;
	op = firing_new(schedule, &time, 1);
	if (!op)
		return;
	/* It waited before the line had ON=each-worker, and goes on until somebody watches. */
	if (!op->firing->count) {
		firing_end(op);
		free(op);
		return;
	}
	set_after(op->firing, schedule);
	op->firing->digest = schedule->digest;
	op->firing->waited = true;
	weight += op->firing->weight;
	waiting_asked++;
	firing_submit(op, made_at_last);
}

/*
 * Some can't be made: their schedules are paused, or another server's. So that the others have
 * their turn, the next request is for those after the last one of this answer.
 */
static void got_waiting(struct op *op)
{
	struct waiting *waiting = container_of(op, struct waiting, op);
	bool all = waiting->count < WAITING_MOST;

	waiting_asked--;
	if (op->failed)
		return;
	may_wait = have_waits || waiting->any || waiting->from.time != from_all.time;
	waiting_from = all ? from_all : waiting->found[WAITING_MOST - 1];
	qsort(waiting->found, waiting->count, sizeof(*waiting->found), compare);
	for (struct schedule *one = schedules; waiting->count && one; one = one->hash.next) {
		const struct waiting_time *found = bsearch(&one->id, waiting->found, waiting->count,
							   sizeof(*waiting->found), compare);

		while (found && found > waiting->found && found[-1].schedule == one->id)
			found--;
		for (; found && found < waiting->found + waiting->count &&
		     found->schedule == one->id; found++)
			make_at_last(one, found->time);
	}
}

/* Ask the store for times that need wait no longer: another server's worker ends runs unnoticed. */
static void look_for_waiting(void)
{
	struct waiting *waiting;

	if (!may_wait || waiting_asked || taking || command_draining())
		return;
	waiting = zalloc(sizeof(*waiting));
	waiting->op.kind = OP_WAITING;
	waiting->from = waiting_from;
	waiting->op.done = got_waiting;
	waiting_asked = 1;
	commit_submit(&waiting->op);
}

/* Do what is next for a schedule; true: a write is under way now. */
static bool act(struct schedule *schedule)
{
	if (schedule->unwritten) {
		write_definition(schedule);
		return true;
	}
	if (!fires(schedule) || schedule_due(schedule) > alarm_wall()) {
		settle(schedule);
		return false;
	}
	/* check_clock() comes first, so that it sees when the clock is set back. */
	if (clock_was_set()) {
		alarm_set(&schedule->timer, alarm_now() + RETRY);
		return false;
	}
	if (fire(schedule))
		return true;
	complain("the jobs of %s can not be made now: memory is short, or the store unread;"
		 " they are tried again", schedule->name);
	alarm_set(&schedule->timer, alarm_now() + RETRY);
	return false;
}

/* Let the schedules in the row have their turn. */
static void pump(void)
{
	commit_hold(true);
	while (waiting && !taking && in_flight < FIRINGS_MOST && weight < FIRINGS_WEIGHT) {
		struct schedule *schedule = waiting;

		DL_DELETE(waiting, schedule);
		schedule->queued = false;
		schedule->busy = act(schedule);
		in_flight += schedule->busy;
	}
	commit_hold(false);
}

static void take_turns(evutil_socket_t fd, short what, void *arg)
{
	pump();
}

static void wait_for_turn(struct schedule *schedule)
{
	if (schedule->queued)
		return;
	schedule->queued = true;
	DL_APPEND(waiting, schedule);
}

/* Put a schedule into the row if it has to be written, or else set its timer. */
static void settle(struct schedule *schedule)
{
	int64_t when;

	if (schedule->busy)
		return;
	alarm_stop(&schedule->timer);
	if (schedule->unwritten) {
		wait_for_turn(schedule);
		return;
	}
	if (!fires(schedule))
		return;
	when = schedule_due(schedule);
	if (when <= alarm_wall())
		wait_for_turn(schedule);
	else
		alarm_set(&schedule->timer, when + (others ? alarm_skew() : skew));
}

static void expired(struct twheel *tw, struct twheel_timer *timer,
		    const struct twheel_event *event)
{
	settle(container_of(timer, struct schedule, timer));
	/* Other schedules are due at the same time: collect them first. */
	event_active(turn, EV_TIMEOUT, 0);
}

/* All schedules */

static struct schedule *insert_schedule(const char *name, int64_t id)
{
	struct schedule *schedule = zalloc(sizeof(*schedule));

	schedule->id = id;
	schedule->name = must(strdup(name));
	schedule->time = CALENDAR_NEVER;
	schedule->since = CALENDAR_NEVER;
	schedule->gone = 1;
	gone_count++;
	alarm_init(&schedule->timer, expired);
	alarm_init(&schedule->late, late_expired);
	HASH_ADD(by_id, by_id, id, sizeof(schedule->id), schedule);
	HASH_ADD_KEYPTR(hash, schedules, schedule->name, strlen(schedule->name), schedule);
	if (id >= next_id)
		next_id = id + 1;
	return schedule;
}

static void load(const struct schedule_row *row)
{
	struct schedule *schedule = insert_schedule(row->name, row->id);

	schedule->digest = row->digest;
	schedule->time = to_seconds(row->next);
	schedule->since = to_seconds(row->since);
	schedule->paused = row->paused;
	schedule->gone = row->gone;
	gone_count -= !row->gone;
}

struct schedule *schedule_find(const char *name)
{
	struct schedule *schedule;

	HASH_FIND(hash, schedules, name, strlen(name), schedule);
	return schedule;
}

/* Free a schedule that no tab, no store and no request has any more. */
static void end_if_unused(struct schedule *schedule)
{
	if (!schedule->forgotten || !schedule->gone || schedule->busy || schedule->queued ||
	    schedule->unwritten || schedule->users)
		return;
	if (ending == schedule)
		ending = schedule->hash.next;
	gone_count--;
	alarm_stop(&schedule->timer);
	alarm_stop(&schedule->late);
	HASH_DELETE(by_id, by_id, schedule);
	HASH_DELETE(hash, schedules, schedule);
	free(schedule->name);
	free(schedule);
}

/** schedule_hold - have a schedule stay until schedule_release(); it may be NULL */
struct schedule *schedule_hold(struct schedule *schedule)
{
	if (schedule)
		schedule->users++;
	return schedule;
}

/** schedule_release - end schedule_hold() */
void schedule_release(struct schedule *schedule)
{
	if (!schedule)
		return;
	schedule->users--;
	end_if_unused(schedule);
}

/** schedule_first - the first of all schedules; the others follow by hash.next */
struct schedule *schedule_first(void)
{
	return schedules;
}

struct schedule_counts schedule_count(void)
{
	struct schedule_counts counts = { .jobs = jobs };

	for (struct schedule *one = schedules; one; one = one->hash.next) {
		counts.paused += one->definition && schedule_is_paused(one);
		counts.active += one->definition && !schedule_is_paused(one);
	}
	return counts;
}

/** schedule_lateness - how late jobs of schedules were made */
const struct histogram *schedule_lateness(void)
{
	return &lateness;
}

static void begin_schedule(struct schedule *schedule)
{
	schedule->time = schedule_next(schedule, now_seconds());
	schedule->since = schedule->time;
}

/* Is the bound from before the clock was set? A machine may have no clock of its own. */
static bool is_too_old(const struct schedule *schedule)
{
	return schedule->since < CLOCK_SET && now_seconds() >= CLOCK_SET;
}

/*
 * After the clock was set back, or was wrong when the machine started, times come again that were
 * passed over. Their jobs are not made again. The years that a clock jumps when it is set for the
 * first time are not made up for.
 */
static void look_again(struct schedule *schedule)
{
	int64_t time = schedule_next(schedule, now_seconds());

	if (is_too_old(schedule))
		begin_schedule(schedule);
	else if (time >= schedule->time)
		return;
	schedule->time = time;
	schedule->unwritten = true;
}

/* Has somebody set the wall clock? */
static void check_clock(void)
{
	if (!clock_was_set())
		return;
	skew = alarm_skew();
	for (struct schedule *one = schedules; one; one = one->hash.next) {
		if (one->definition && !one->paused)
			look_again(one);
		settle(one);
	}
	pump();
}

/** schedule_reading_begins - all tabs are going to be read, or read again */
void schedule_reading_begins(void)
{
	check_clock();
	reading++;
	holidays_forget();
	zone_forget();
}

/* Is a schedule due, and is that time still one of its own after a change? */
static bool is_due(const struct schedule *schedule)
{
	return schedule->time <= now_seconds() &&
		schedule_next(schedule, schedule->time - 1) == schedule->time;
}

/* The AFTER= of a schedule that this reading has found, or NULL; older ones don't count. */
static const char *after_of(void *unused, const char *name)
{
	const struct schedule *schedule = schedule_find(name);

	return schedule && schedule->definition && schedule->reading == reading ?
		schedule->definition->after : NULL;
}

/** schedule_circle - would a schedule wait for itself by AFTER=? @why has the names then */
bool schedule_circle(const struct definition *definition, char *why, size_t room)
{
	return after_circle(definition->name, definition->after, after_of, NULL, why, room);
}

/**
 * schedule_keep - keep a schedule as it was: a tab has it, but its calendar can't be read now
 * @name: the schedule's name
 */
void schedule_keep(const char *name)
{
	struct schedule *schedule = schedule_find(name);

	if (schedule)
		schedule->reading = reading;
}

/** schedule_digest - a digest of all that says when it fires: a change finds the next time anew */
int64_t schedule_digest(const struct definition *definition, const struct holidays *holidays)
{
	int64_t digest = digest_text(definition->when, holidays ? holidays->digest : 0);

	digest = digest_text(definition->zone, digest);
	digest ^= calendar_digest(definition->calendar);
	return digest_text("", digest ^ definition->jitter);
}

/** schedule_taking_begins - all tabs were read. Nothing fires until all of it is in force. */
void schedule_taking_begins(void)
{
	taking = true;
}

static void swap(struct schedule *schedule, struct definition **definition,
		 struct holidays **holidays)
{
	struct definition *old = schedule->definition;
	struct holidays *old_holidays = schedule->holidays;

	schedule->definition = *definition;
	schedule->holidays = *holidays;
	*definition = old;
	*holidays = old_holidays;
}

/**
 * schedule_adopt - take a schedule that a tab has
 * @definition: the schedule, which is taken; out: its earlier definition, or NULL
 * @holidays: the times that CALENDAR= leaves out, or NULL; taken, too; out: the earlier ones
 * @digest: of both
 * @file: the tab's path, which stays valid
 *
 * Return: false, and nothing is taken, if another line has that name.
 */
bool schedule_adopt(struct definition **definition, struct holidays **holidays, int64_t digest,
		    const char *file)
{
	struct schedule *schedule = schedule_find((*definition)->name);
	bool same, first;

	if (!schedule)
		schedule = insert_schedule((*definition)->name, new_id((*definition)->name));
	if (schedule->reading == reading)
		return false;
	/* Only the store had the schedule, perhaps as its tab could not be read before. */
	first = !schedule->definition;
	swap(schedule, definition, holidays);
	have_waits |= schedule->definition->overlap == OVERLAP_WAIT || schedule->definition->after;
	may_wait |= have_waits;
	if (schedule->definition->on_late)
		look_for_late(schedule, SECOND);
	figures_begin(schedule);
	schedule->file = file;
	schedule->reading = reading;
	same = !schedule->gone && schedule->digest == digest;
	if (!same) {
		if (schedule->gone || is_too_old(schedule) || !is_due(schedule))
			begin_schedule(schedule);
		gone_count -= schedule->gone != 0;
		schedule->gone = 0;
		schedule->digest = digest;
		schedule->unwritten = true;
	} else if (first) {
		look_again(schedule);
	}
	/* Most schedules are as they were. */
	if (!same || first)
		settle(schedule);
	return true;
}

/* Stop a schedule; jobs that it has made stay. */
static void stop(struct schedule *schedule)
{
	figures_end(schedule);
	definition_free(schedule->definition);
	holidays_put(schedule->holidays);
	schedule->definition = NULL;
	schedule->holidays = NULL;
	schedule->gone = alarm_wall();
	gone_count++;
	/* If another server has another definition, the schedule goes on there. */
	schedule->unwritten = !schedule->other;
	settle(schedule);
}

/* A digest of all that makes its jobs; schedule->digest has its times alone */
static int64_t whole_digest(const struct schedule *schedule)
{
	const struct definition *one = schedule->definition;
	const int64_t numbers[] = {
		schedule->digest, one->pri, one->ttr, one->shards, one->most, one->misfire,
		one->overlap, one->paused, one->late, one->within, one->on_late,
	};
	int64_t digest = digest_text(one->body, digest_numbers(numbers, sizeof(numbers)));

	digest = digest_text(one->tube, digest);
	digest = digest_text(one->params ? one->params : "", digest);
	digest = digest_text(one->after ? one->after : "", digest);
	for (int news = 0; news < NEWS_KINDS; news++)
		digest = digest_text(one->tells[news] ? one->tells[news] : "", digest);
	digest = digest_text(one->mailto ? one->mailto : "", digest);
	return digest_text(one->name, digest);
}

/* Set the digest of all schedules, in whatever order they are; never 0 */
static void tell_tabs(void)
{
	uint64_t sum = 1;

	for (struct schedule *one = schedules; one; one = one->hash.next)
		if (one->definition && !one->definition->own)
			sum += whole_digest(one);
	__atomic_store_n(&store_tabs, sum ? sum : 1, __ATOMIC_RELAXED);
}

/*
 * Did a tab of this server ever have it? If not, it is another server's, where the store is
 * shared.
 */
static bool was_ours(const struct schedule *schedule)
{
	return !others || schedule->reading;
}

/**
 * schedule_taking_ends - stop the schedules that no tab has any more
 * @complete: all tabs could be read; if not, none stops
 *
 * Return: false if there are more: call it again.
 */
bool schedule_taking_ends(bool complete)
{
	if (complete && !ending)
		ending = schedules;
	for (int i = 0; ending && i < STOP_PIECE; ending = ending->hash.next, i++)
		if (ending->reading != reading && !ending->gone && was_ours(ending))
			stop(ending);
	if (ending)
		return false;
	taking = false;
	if (others)
		tell_tabs();
	pump();
	return true;
}

/* Pause and resume */

static void pause_done(struct op *op)
{
	struct define *define = container_of(op, struct define, op);
	struct schedule *schedule = define->schedule;
	const char *why = NULL;

	if (op->failed)
		why = "the store can't be written: it is as it was";
	else if (op->gone)
		why = "another server has another definition of it: do it there";
	schedule->pausing = false;
	schedule->paused = define->row.paused != !!why;
	if (!why && !schedule->paused && schedule->definition) {
		schedule->time = schedule_next(schedule, define->since);
		schedule->since = schedule->time;
		/* The definition may have changed since. */
		schedule->unwritten |= to_ns(schedule->time) != define->row.next;
	}
	settle(schedule);
	pump();
	define->done(define->arg, why);
	trace_free(op->trace);
	schedule_release(schedule);
}

/**
 * schedule_pause - pause or resume a schedule
 * @schedule: the schedule, which a tab has
 * @paused: true: pause. Times that pass while it is paused have no jobs
 * @by: who asked for it
 * @done: called when the store has it, or with @why it can't
 * @arg: for @done
 */
void schedule_pause(struct schedule *schedule, bool paused, const char *by,
		    void (*done)(void *arg, const char *why), void *arg)
{
	struct define *define = new_define(schedule, OP_PAUSE);

	define->op.done = pause_done;
	define->done = done;
	define->arg = arg;
	define->since = now_seconds();
	define->row.paused = paused;
	define->row.next = to_ns(schedule_next(schedule, define->since));
	schedule->paused = schedule->paused || paused;
	schedule->pausing = true;
	trace_of_schedule(&define->op, schedule->id, paused ? DEED_PAUSED : DEED_RESUMED, by);
	schedule_hold(schedule);
	settle(schedule);
	commit_submit(&define->op);
}

/* Each second */

static void start_pruning(void);

/* A schedule that comes again, or is being written, has a row anew, and is forgotten later. */
static bool forget(struct schedule *schedule)
{
	if (schedule->busy || schedule->queued || schedule->unwritten)
		return false;
	schedule->forgotten = true;
	return true;
}

/* Go on piece by piece as long as runs were forgotten. */
static void pruned(struct op *op)
{
	struct prune *prune = container_of(op, struct prune, op);
	bool more = !op->failed && op->row.size;

	for (size_t i = 0; i < prune->count; i++) {
		if (!op->failed && prune->forgotten[i])
			more |= forget(prune->gone[i]);
		schedule_release(prune->gone[i]);
	}
	prune_at = alarm_now() + PRUNE;
	if (!op->failed)
		forgotten = op->row.ord;
	if (more)
		start_pruning();
}

/* Ask for some each time, in turns: a schedule that still has runs stays for days. */
static void choose_gone(struct prune *prune)
{
	struct schedule *first = next_gone, *one = first ? first : schedules;
	int left = gone_count ? 10 * PRUNE_PIECE : 0;

	for (; one && left && prune->count < PRUNE_PIECE; one = one->hash.next, left--) {
		if (!one->gone || one->forgotten)
			continue;
		prune->ids[prune->count] = one->id;
		prune->gone[prune->count++] = schedule_hold(one);
	}
	next_gone = schedule_hold(one);
	schedule_release(first);
}

static void start_pruning(void)
{
	struct prune *prune = zalloc(sizeof(*prune));

	prune->op.kind = OP_PRUNE;
	prune->op.row.created = alarm_wall() - history;
	prune->op.row.ord = forgotten;
	prune->op.done = pruned;
	choose_gone(prune);
	prune_at = INT64_MAX;
	commit_submit(&prune->op);
}

/** schedule_forgotten - the time, in ns, up to which runs may be forgotten */
int64_t schedule_forgotten(void)
{
	return forgotten;
}

/* A resumed schedule: the store knows its next time, and says so when this one comes. */
static void look_at_one(struct schedule *schedule, bool paused)
{
	if (!schedule->definition || schedule->pausing || schedule->busy || schedule->unwritten)
		return;
	schedule->other = false;
	if (schedule->paused && !paused)
		schedule->time = schedule_next(schedule, now_seconds());
	schedule->paused = paused;
	settle(schedule);
}

/** schedule_differs - the names of servers with other tabs than this one's; or "" */
const char *schedule_differs(void)
{
	return differ_said ? differing : "";
}

/* Take the names of servers with other tabs, and log them if that lasts. */
static void compare_tabs(const char *names)
{
	bool same = !*names;

	strcpy(differing, names);
	if (same)
		differ_since = 0;
	else if (!differ_since)
		differ_since = alarm_now();
	if (same && differ_said)
		inform("the tabs of all servers are the same again");
	else if (!same && !differ_said && alarm_now() - differ_since >= DIFFER_LEAST)
		complain("these servers of the database have other tabs than this one: %s;"
			 " have the same files on all, as who comes first says what jobs are",
			 names);
	else
		return;
	differ_said = !same;
}

/* Take over what another server has paused or resumed. */
static void looked(struct op *op)
{
	struct request *request = container_of(op, struct request, op);

	look_at = alarm_now() + LOOK;
	if (!op->failed)
		compare_tabs(request->name);
	if (!op->failed)
		pushed_take(&request->pushed);
	if (!op->failed && request->count)
		qsort(request->ids, request->count, sizeof(*request->ids), compare);
	for (struct schedule *one = schedules; !op->failed && one; one = one->hash.next) {
		bool paused = bsearch(&one->id, request->ids, request->count,
				      sizeof(*request->ids), compare);

		if (paused != one->paused || one->other)
			look_at_one(one, paused);
	}
	free(request->ids);
	free(request->pushed.text);
	pump();
}

static void look_for_pauses(void)
{
	struct request *request = zalloc(sizeof(*request));

	look_at = INT64_MAX;
	request->op.kind = OP_PAUSED;
	request->pushed.known = pushed_version();
	request->op.done = looked;
	commit_submit(&request->op);
}

/** schedule_tick - to be called each second */
void schedule_tick(void)
{
	check_clock();
	figures_tick();
	look_for_waiting();
	if (others && alarm_now() >= look_at)
		look_for_pauses();
	if (alarm_now() >= prune_at)
		start_pruning();
}

/**
 * schedule_start - load the schedules that the store has
 * @base: the loop
 * @keep: how long runs that are over are kept, in ns
 * @shared: other servers have schedules in the same store
 */
void schedule_start(struct event_base *base, int64_t keep, bool shared)
{
	others = shared;
	turn = must(event_new(base, -1, 0, take_turns, NULL));
	history = keep;
	started = alarm_now();
	forgotten = store->meta("forgotten", 0);
	skew = alarm_skew();
	notice_find = find_notice;
	job_run_ended = run_ended;
	store->schedules(load);
}
