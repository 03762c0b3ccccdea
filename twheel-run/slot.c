// SPDX-License-Identifier: GPL-2.0
/*
 * One of the jobs that are done at a time.
 *
 * The connection is the slot's own, as a client that waits for a job can't say anything
 * meanwhile, and so could not touch another one. What is to be asked next follows from what
 * is known, so that it does not matter where the connection broke: see next().
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "must.h"
#include "options.h"
#include "slot.h"

/* Seconds for which the server waits for a job */
#define RESERVE_SECONDS 30
/* ms until what did not go is tried again, and the most, for a command that can't be run */
#define PAUSE 1000
#define MOST_PAUSE 60000
/* ms until a token is said again: a server that hears wrong ones keeps the address out */
#define TOKEN_PAUSE 20000

static bool stopping;
static unsigned int in_use;

static void next(struct slot *slot);

__attribute__((format(printf, 3, 4)))
static void ask(struct slot *slot, enum asked asked, const char *format, ...);

static void pause_for(struct slot *slot, long long ms)
{
	slot->paused = true;
	loop_set(slot->pause, ms);
}

static void keep_until(struct slot *slot)
{
	slot->until = loop_now() + slot->job.stats.ttr * 1000;
	loop_set(slot->touching, slot->job.stats.ttr * 1000 / 3);
}

static void forget_job(struct slot *slot)
{
	if (slot->job.body >= 0)
		close(slot->job.body);
	slot->job = (struct job){ .body = -1 };
	slot->held = false;
	slot->found = false;
	slot->learned = false;
	slot->noted = false;
	slot->reported = false;
	slot->lost = false;
	slot->touch = false;
	slot->not_run = 0;
	slot->stage = IDLE;
	event_del(slot->touching);
}

/* Another worker has the job, or will have it: the result here counts no more. */
static void lose(struct slot *slot, const char *why)
{
	warnx("%llu: %s; it may be done twice", slot->job.id, why);
	slot->lost = true;
	child_end(&slot->child);
	if (slot->stage != RUNNING)
		forget_job(slot);
}

static void start(struct slot *slot)
{
	slot->stage = RUNNING;
	if (slot->job.body < 0 || lseek(slot->job.body, 0, SEEK_SET) < 0 ||
	    !job_environment(&slot->job))
		slot->not_run = ENOMEM;
	else
		slot->not_run = child_start(&slot->child, slot->job.id, slot->job.body);
	if (slot->not_run) {
		warnx("%llu: %s: %s", slot->job.id, options.command[0],
		      strerror(slot->not_run));
		slot->stage = ENDED;
		return;
	}
	slot->wait = 0;
	if (options.verbose)
		printf("%llu: from %s, try %llu\n", slot->job.id,
		       slot->job.stats.tube, slot->job.stats.tries);
}

static void ended(struct child *child)
{
	struct slot *slot = container_of(child, struct slot, child);

	slot->stage = ENDED;
	if (slot->lost)
		forget_job(slot);
	next(slot);
}

/* Print a verdict that was sent, and that the server has answered. */
static void say(struct slot *slot)
{
	struct verdict *verdict = &slot->verdict;

	if (verdict->what == VERDICT_BURY)
		warnx("%llu: %s, try %llu; buried", slot->job.id, verdict->why,
		      slot->job.stats.tries);
	else if (verdict->what == VERDICT_RELEASE)
		warnx("%llu: %s, try %llu; given back, delay %lld s", slot->job.id,
		      verdict->why, slot->job.stats.tries, verdict->delay);
	else if (options.verbose)
		printf("%llu: done\n", slot->job.id);
}

static void judge(struct slot *slot)
{
	struct outcome outcome = {
		.tries = slot->job.stats.tries, .status = slot->child.status,
		.not_run = slot->not_run, .too_long = slot->child.too_long,
		.given_up = stopping && slot->child.ending && !slot->child.too_long,
	};

	slot->verdict = verdict(&outcome);
}

/* How the try ended, and what the command wrote last */
static void send_note(struct slot *slot)
{
	size_t most = slot->not_run ? 0 : options.output;
	size_t size = slot->child.last_size < most ? slot->child.last_size : most;
	char text[sizeof(slot->verdict.why) + 100 + CHILD_LAST];
	int line = snprintf(text, sizeof(text) - CHILD_LAST, "%s%s%.80s\n", slot->verdict.why,
			    slot->not_run ? ": " : "",
			    slot->not_run ? strerror(slot->not_run) : "");

	memcpy(text + line, slot->child.last + slot->child.last_size - size, size);
	ask(slot, ASKED_NOTE, "note %llu %zu", slot->job.id, line + size);
	link_add(&slot->link, text, line + size);
}

static void report(struct slot *slot)
{
	unsigned long long id = slot->job.id;

	slot->reported = true;
	if (slot->verdict.what == VERDICT_DELETE)
		ask(slot, ASKED_VERDICT, "delete %llu", id);
	else if (slot->verdict.what == VERDICT_BURY)
		ask(slot, ASKED_VERDICT, "bury %llu %u", id, slot->job.stats.pri);
	else
		ask(slot, ASKED_VERDICT, "release %llu %u %lld", id,
		    slot->job.stats.pri, slot->verdict.delay);
}

/* The note comes first, as with the verdict the try is over. */
static void end_job(struct slot *slot)
{
	judge(slot);
	if (slot->keeps && !slot->noted)
		send_note(slot);
	else
		report(slot);
}

static void next_of_job(struct slot *slot)
{
	unsigned long long id = slot->job.id;

	if (slot->lost)
		return;
	if (slot->held && slot->touch)
		ask(slot, ASKED_TOUCH, "touch %llu", id);
	else if (slot->paused)
		return;
	else if (!slot->held && slot->found)
		ask(slot, ASKED_TAKE_BACK, "reserve-job %llu", id);
	else if (!slot->held || !slot->learned)
		ask(slot, ASKED_STATS, "stats-job %llu", id);
	else if (slot->stage == ENDED)
		end_job(slot);
}

static void leave(struct slot *slot)
{
	if (slot->link.closed)
		return;
	forget_job(slot);
	link_close(&slot->link);
	event_del(slot->pause);
	if (!--in_use)
		event_base_loopbreak(loop);
}

static void authorize(struct slot *slot)
{
	char token[OPTIONS_TOKEN], why[100];
	const char *wrong = options_token(token);

	if (!wrong) {
		ask(slot, ASKED_AUTH, "auth %s", token);
		return;
	}
	snprintf(why, sizeof(why), "the file of the token: %s", wrong);
	slot->link.delay = TOKEN_PAUSE;
	link_break(&slot->link, why);
}

static void name(struct slot *slot)
{
	char host[65] = "";

	gethostname(host, sizeof(host) - 1);
	for (char *at = host; *at; at++)
		if (*at <= ' ' || *at > '~')
			*at = '?';
	ask(slot, ASKED_CLIENT, "client twheel-run, pid %d on %s", (int)getpid(), host);
}

/* Ask the next that is to be asked, if any, and if nothing is to be waited for. */
static void next(struct slot *slot)
{
	/* A job that has not begun is ready again when the connection ends. */
	if (stopping && (slot->stage == IDLE || slot->stage == NEW))
		leave(slot);
	if (!slot->link.is_up || slot->link.asked)
		return;
	if (!slot->authorized)
		authorize(slot);
	else if (!slot->named)
		name(slot);
	else if (slot->watched < options.tube_count)
		ask(slot, ASKED_WATCH, "watch %s", options.tubes[slot->watched]);
	else if (!slot->ignored)
		ask(slot, ASKED_IGNORE, "ignore default");
	else if (slot->stage != IDLE)
		next_of_job(slot);
	else if (!slot->paused)
		ask(slot, ASKED_RESERVE, "reserve-with-timeout %d", RESERVE_SECONDS);
}

static bool says(const struct reply *reply, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(reply->line, word, length) &&
		(!reply->line[length] || reply->line[length] == ' ');
}

/* A reply that does not belong to the command */
static void nonsense(struct slot *slot, const struct reply *reply)
{
	char why[LINK_LINE + 32];

	snprintf(why, sizeof(why), "the server says %s", reply->line);
	link_break(&slot->link, why);
}

static void authorized(struct slot *slot, struct reply *reply)
{
	slot->authorized = says(reply, "AUTHORIZED");
	if (slot->authorized)
		return;
	slot->link.delay = TOKEN_PAUSE;
	link_break(&slot->link, "the server does not take the token");
}

/* One that does not know the command keeps nothing of tries. */
static void named(struct slot *slot, struct reply *reply)
{
	slot->keeps = says(reply, "NAMED");
	slot->named = slot->keeps || says(reply, "UNKNOWN_COMMAND");
	if (!slot->named)
		nonsense(slot, reply);
}

static void watched(struct slot *slot, struct reply *reply)
{
	if (says(reply, "WATCHING"))
		slot->watched++;
	else
		nonsense(slot, reply);
}

static void ignored(struct slot *slot, struct reply *reply)
{
	slot->ignored = true;
}

static bool id_of(const struct reply *reply, unsigned long long *id)
{
	char word[24] = "";

	return sscanf(reply->line, "RESERVED %23s", word) == 1 && job_number(word, id);
}

static void reserved(struct slot *slot, struct reply *reply)
{
	if (says(reply, "TIMED_OUT") || says(reply, "DEADLINE_SOON"))
		return;
	if (!id_of(reply, &slot->job.id)) {
		nonsense(slot, reply);
		return;
	}
	slot->job.size = reply->size;
	slot->job.body = reply->file;
	reply->file = -1;
	slot->stage = NEW;
	slot->held = true;
}

/* The word for a job that no connection of ours holds any more */
static void look_for(struct slot *slot, const struct job_stats *now)
{
	bool ours = now && job_is_that(&slot->job, now);
	/* A job that is deleted is not there. Any other verdict is heard by now. */
	bool heard = slot->reported && !(ours && slot->verdict.what == VERDICT_DELETE);

	if (ours && !strcmp(now->state, "ready"))
		slot->found = true;
	else if (ours && !heard && !strcmp(now->state, "reserved") && loop_now() < slot->until)
		pause_for(slot, PAUSE);	/* By the connection that broke, it may be. */
	else if (heard)
		forget_job(slot);
	else
		lose(slot, "the server went away, and somebody else has the job now");
}

static void learned(struct slot *slot, struct reply *reply)
{
	struct job_stats stats;
	bool known = reply->text && job_learn(&stats, reply->text);

	if (!slot->held && says(reply, "FORBIDDEN")) {
		lose(slot, "the server went away, and the token can't look for a job");
	} else if (!known && !says(reply, "NOT_FOUND")) {
		nonsense(slot, reply);
	} else if (!slot->held) {
		look_for(slot, known ? &stats : NULL);
	} else if (!known) {
		lose(slot, "the job is gone");
	} else {
		slot->job.stats = stats;
		slot->job.learned = loop_now();
		slot->learned = true;
		keep_until(slot);
		start(slot);
	}
}

static void taken_back(struct slot *slot, struct reply *reply)
{
	unsigned long long id;

	slot->found = false;
	if (says(reply, "FORBIDDEN"))
		lose(slot, "the server went away, and the token can't take the job back");
	if (!says(reply, "RESERVED"))
		return;		/* Somebody was faster: look at it again. */
	if (!id_of(reply, &id) || id != slot->job.id || reply->size != slot->job.size) {
		lose(slot, "another job has this number");
		nonsense(slot, reply);
		return;
	}
	slot->held = true;
	slot->reported = false;
	keep_until(slot);
}

static void was_touched(struct slot *slot, struct reply *reply)
{
	slot->touch = false;
	if (says(reply, "TOUCHED"))
		keep_until(slot);
	else
		lose(slot, "its time to run was over before it could be touched");
}

/* Of a job that is not this one's any more, the verdict learns. Without the note, that is told. */
static void was_noted(struct slot *slot, struct reply *reply)
{
	slot->noted = true;
}

/* The command is the same for each job: no delay of a job says when it can be run again. */
static void pause_longer(struct slot *slot)
{
	slot->wait = slot->wait ? 2 * slot->wait : PAUSE;
	if (slot->wait > MOST_PAUSE)
		slot->wait = MOST_PAUSE;
	pause_for(slot, slot->wait);
}

static void judged(struct slot *slot, struct reply *reply)
{
	bool not_run = slot->not_run;

	if (says(reply, "DELETED") || says(reply, "RELEASED") || says(reply, "BURIED")) {
		/* A release buries where the server has a limit of tries, too. */
		if (says(reply, "BURIED"))
			slot->verdict.what = VERDICT_BURY;
		say(slot);
		forget_job(slot);
	} else if (says(reply, "NOT_FOUND")) {
		lose(slot, "its time to run was over before the server heard how it ended");
	} else {
		warnx("%llu: %s, but the server says %s; telling it again", slot->job.id,
		      slot->verdict.why, reply->line);
		slot->reported = false;
		pause_for(slot, PAUSE);
		return;
	}
	if (not_run)
		pause_longer(slot);
}

static void answer(struct link *link, struct reply *reply)
{
	static void (*const answers[])(struct slot *slot, struct reply *reply) = {
		[ASKED_AUTH] = authorized, [ASKED_CLIENT] = named, [ASKED_NOTE] = was_noted,
		[ASKED_WATCH] = watched, [ASKED_IGNORE] = ignored, [ASKED_RESERVE] = reserved,
		[ASKED_STATS] = learned, [ASKED_TAKE_BACK] = taken_back,
		[ASKED_TOUCH] = was_touched, [ASKED_VERDICT] = judged,
	};
	struct slot *slot = container_of(link, struct slot, link);
	bool greets = slot->asked < ASKED_RESERVE;

	answers[slot->asked](slot, reply);
	if (!greets && link->is_up)
		link_works(link);
	next(slot);
}

static void ask(struct slot *slot, enum asked asked, const char *format, ...)
{
	va_list args;

	slot->asked = asked;
	va_start(args, format);
	link_ask(&slot->link, format, args);
	va_end(args);
}

static void up(struct link *link)
{
	struct slot *slot = container_of(link, struct slot, link);

	slot->authorized = !options.token_file;
	slot->named = false;
	slot->noted = false;
	slot->watched = 0;
	slot->ignored = false;
	for (unsigned int i = 0; i < options.tube_count; i++)
		slot->ignored |= !strcmp(options.tubes[i], "default");
	next(slot);
}

static void down(struct link *link)
{
	struct slot *slot = container_of(link, struct slot, link);

	slot->held = false;
	slot->found = false;
	slot->touch = false;
	event_del(slot->touching);
	if (slot->stage == NEW)
		forget_job(slot);
}

static void time_to_touch(evutil_socket_t fd, short what, void *arg)
{
	struct slot *slot = arg;

	slot->touch = true;
	next(slot);
}

static void go_on(evutil_socket_t fd, short what, void *arg)
{
	struct slot *slot = arg;

	slot->paused = false;
	next(slot);
}

/** slot_new - take jobs, one after the other */
struct slot *slot_new(void)
{
	struct slot *slot = must(calloc(1, sizeof(*slot)));

	slot->touching = loop_timer(time_to_touch, slot);
	slot->pause = loop_timer(go_on, slot);
	slot->link.up = up;
	slot->link.down = down;
	slot->link.answer = answer;
	slot->job.body = -1;
	child_init(&slot->child, ended);
	in_use++;
	link_open(&slot->link);
	return slot;
}

/** slot_stop - take no more jobs; the loop ends when none is at work */
void slot_stop(struct slot *slot)
{
	stopping = true;
	next(slot);
}

/** slot_give_up - tell the command to end that still runs */
void slot_give_up(struct slot *slot)
{
	child_end(&slot->child);
}

/** slot_forsake - leave a job, if there is one, whose verdict the server can't get any more */
bool slot_forsake(struct slot *slot)
{
	if (slot->link.closed)
		return false;
	warnx("%llu: its result did not reach the server; it may be done twice",
	      slot->job.id);
	child_kill(&slot->child);
	leave(slot);
	return true;
}
