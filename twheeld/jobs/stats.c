// SPDX-License-Identifier: GPL-2.0
/*
 * The texts of the stats commands: YAML, with beanstalkd's keys in its order.
 */
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/util.h"
#include "jobs/command.h"
#include "jobs/job_end.h"
#include "jobs/stats.h"

static int64_t started;
static int max_log;
static uint64_t server_id;
static struct utsname machine;

/** stats_start - begin to count; @log_size is shown as beanstalkd's -s, and does nothing else */
void stats_start(int log_size)
{
	max_log = log_size;
	started = alarm_now();
	if (getrandom(&server_id, sizeof(server_id), 0) != sizeof(server_id))
		server_id = started;
	uname(&machine);
}

/** stats_started - when the server started, by its time */
int64_t stats_started(void)
{
	return started;
}

static void stats_add(struct evbuffer *text, const char *key, int64_t value)
{
	evbuffer_add_printf(text, "%s: %lld\n", key, (long long)value);
}

static void add_jobs(struct evbuffer *text, const int64_t *count, int64_t urgent)
{
	static const char *const keys[] = { "ready", "reserved", "delayed", "buried" };
	static const enum state states[] = { READY, RESERVED, DELAYED, BURIED };

	stats_add(text, "current-jobs-urgent", urgent);
	for (int i = 0; i < STATES; i++)
		evbuffer_add_printf(text, "current-jobs-%s: %lld\n", keys[i],
				    (long long)count[states[i]]);
}

const struct stats_command stats_commands[STATS_COMMANDS] = {
	{ "put", CMD_PUT },
	{ "peek", CMD_PEEK },
	{ "peek-ready", CMD_PEEK_READY },
	{ "peek-delayed", CMD_PEEK_DELAYED },
	{ "peek-buried", CMD_PEEK_BURIED },
	{ "reserve", CMD_RESERVE },
	{ "reserve-with-timeout", CMD_RESERVE_TIMEOUT },
	{ "delete", CMD_DELETE },
	{ "release", CMD_RELEASE },
	{ "use", CMD_USE },
	{ "watch", CMD_WATCH },
	{ "ignore", CMD_IGNORE },
	{ "bury", CMD_BURY },
	{ "kick", CMD_KICK },
	{ "touch", CMD_TOUCH },
	{ "stats", CMD_STATS },
	{ "stats-job", CMD_STATS_JOB },
	{ "stats-tube", CMD_STATS_TUBE },
	{ "list-tubes", CMD_LIST_TUBES },
	{ "list-tube-used", CMD_LIST_TUBE_USED },
	{ "list-tubes-watched", CMD_LIST_TUBES_WATCHED },
	{ "pause-tube", CMD_PAUSE_TUBE },
};

static void add_commands(struct evbuffer *text)
{
	for (size_t i = 0; i < STATS_COMMANDS; i++)
		evbuffer_add_printf(text, "cmd-%s: %llu\n", stats_commands[i].key,
				    (unsigned long long)command_count(stats_commands[i].kind));
}

static void add_usage(struct evbuffer *text)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	evbuffer_add_printf(text, "rusage-utime: %ld.%06ld\nrusage-stime: %ld.%06ld\n",
			    usage.ru_utime.tv_sec, usage.ru_utime.tv_usec,
			    usage.ru_stime.tv_sec, usage.ru_stime.tv_usec);
}

/**
 * stats_server - the statistics
 * @count: jobs of each state, of all tubes
 * @urgent: jobs among these with an urgent priority
 * @tubes: how many tubes there are
 */
struct evbuffer *stats_server(const int64_t *count, int64_t urgent, size_t tubes)
{
	struct evbuffer *text = must(evbuffer_new());

	evbuffer_add_printf(text, "---\n");
	add_jobs(text, count, urgent);
	add_commands(text);
	stats_add(text, "job-timeouts", job_timeouts());
	stats_add(text, "total-jobs", job_puts());
	stats_add(text, "max-job-size", command_max_size());
	stats_add(text, "current-tubes", tubes);
	stats_add(text, "current-connections", conn_counts.now);
	stats_add(text, "current-producers", conn_counts.producers);
	stats_add(text, "current-workers", conn_counts.workers);
	stats_add(text, "current-waiting", conn_counts.waiting);
	stats_add(text, "total-connections", conn_counts.total);
	stats_add(text, "pid", getpid());
	evbuffer_add_printf(text, "version: \"%s\"\n", TWHEELD_VERSION);
	add_usage(text);
	stats_add(text, "uptime", (alarm_now() - started) / SECOND);
	/* beanstalkd numbers its logs; here is one, and it is never compacted by copying. */
	stats_add(text, "binlog-oldest-index", 1);
	stats_add(text, "binlog-current-index", 1);
	stats_add(text, "binlog-records-migrated", 0);
	stats_add(text, "binlog-records-written", commit_count());
	stats_add(text, "binlog-max-size", max_log);
	evbuffer_add_printf(text, "draining: %s\nid: %016llx\nhostname: %s\nos: %s\nplatform: %s\n",
			    command_draining() ? "true" : "false", (unsigned long long)server_id,
			    machine.nodename, machine.version, machine.machine);
	return text;
}

/**
 * stats_tube - the statistics of a tube
 * @tube: the tube
 * @counts: its jobs by state, and its pause
 */
struct evbuffer *stats_tube(const struct tube *tube, const struct tube_counts *counts)
{
	struct evbuffer *text = must(evbuffer_new());
	const int64_t *count = counts->count;

	evbuffer_add_printf(text, "---\nname: %s\n", tube->name);
	stats_add(text, "current-jobs-urgent", counts->urgent);
	stats_add(text, "current-jobs-ready", count[READY]);
	stats_add(text, "current-jobs-reserved", count[RESERVED]);
	stats_add(text, "current-jobs-delayed", count[DELAYED]);
	stats_add(text, "current-jobs-buried", count[BURIED]);
	stats_add(text, "total-jobs", tube->total);
	stats_add(text, "current-using", tube->using);
	stats_add(text, "current-watching", tube->watching);
	stats_add(text, "current-waiting", tube->waiting_count);
	stats_add(text, "cmd-delete", tube->deletes);
	stats_add(text, "cmd-pause-tube", counts->pauses);
	stats_add(text, "pause", counts->pause / SECOND);
	stats_add(text, "pause-time-left", counts->pause_left / SECOND);
	return text;
}

struct evbuffer *stats_job(const struct job *job)
{
	static const char *const states[] = {
		[READY] = "ready", [DELAYED] = "delayed", [BURIED] = "buried",
		[RESERVED] = "reserved",
	};
	struct evbuffer *text = must(evbuffer_new());
	const struct row *row = &job->row;
	int64_t now = alarm_now(), left = 0;

	if (row->state == DELAYED)
		left = (row->ord - now) / SECOND;
	if (row->state == RESERVED)
		left = (job->deadline - now) / SECOND;
	evbuffer_add_printf(text, "---\n");
	stats_add(text, "id", row->id);
	evbuffer_add_printf(text, "tube: %s\nstate: %s\n", job->tube->name, states[row->state]);
	stats_add(text, "pri", row->pri);
	/* After a restart of the machine, the clock may be behind the job's creation. */
	stats_add(text, "age", now > row->created ? (now - row->created) / SECOND : 0);
	stats_add(text, "delay", row->delay);
	stats_add(text, "ttr", row->ttr);
	stats_add(text, "time-left", left);
	stats_add(text, "file", 1);
	stats_add(text, "reserves", row->reserves);
	stats_add(text, "timeouts", row->timeouts);
	stats_add(text, "releases", row->releases);
	stats_add(text, "buries", row->buries);
	stats_add(text, "kicks", row->kicks);
	/* beanstalkd has no such line. */
	if (row->tries)
		stats_add(text, "tries", row->tries);
	return text;
}
