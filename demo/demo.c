// SPDX-License-Identifier: GPL-2.0
/*
 * A day's work of a busy server, with all its timers in one wheel.
 *
 * Plays a workload file against a wheel, as an event loop would: one
 * thread that does what is due on the connections, in batches, and reads what
 * has expired. It keeps an oracle of its own on every single timer, with the
 * deadline that it set and the clock that it reads, and so does not have to
 * believe the wheel anything. The oracle is the same with whichever backend the timers of
 * the connections are armed: see backend.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <twheel.h>
#include <unistd.h>

#include "demo.h"
#include "memcg.h"
#include "holds.h"
#include "promises.h"
#include "report.h"
#include "backend.h"
#include "workload.h"

#define DEVICE "/dev/twheel"
#define BATCH 256
#define TICK MS
#define NONE UINT32_MAX

/* Connections act in slots of the played time. */
#define SLOT MS
#define MAX_SLOTS (2 * 3600 * SECOND / SLOT)

#define PROGRESS_EVERY (100 * MS)

/* How long a timer may be overdue at the end before it counts as lost. */
#define LOST_AFTER (10 * SECOND)

enum state {
	NOT_ARMED,
	ARMED,
	CANCELLED,
	EXPIRED,
};

struct connection {
	__u64 id;
	__u64 deadline;	/* of the clock */
	__u32 end;		/* slot of its last action */
	__u32 next;		/* connection that acts in the same slot */
	__u8 kind;
	__u8 state;
	bool closes;		/* or is just never heard of again */
};

struct periodic_timer {
	__u64 id;
	__u64 deadline;	/* of the next event to be read */
	__u64 period;
	__u8 state;
};

struct demo {
	const struct workload *w;
	const struct backend *backend;
	struct twheel *wheel;
	int epoll;
	__u64 random;

	struct connection *connections;
	struct periodic_timer *periodic;
	__u32 *slots;	/* first connection that acts in each slot */
	__u32 nr_slots;

	__u64 start;		/* time of the clock when the day begins */
	__u64 now;		/* time of the clock when the slot was begun */
	__u64 end;		/* about when the last timer ends, as played */
	__u64 next_progress;
	__u64 memory_before;

	unsigned int nr_ops;
	struct twheel_op ops[BATCH];
	__u64 whose[BATCH];	/* user data of the timer of each operation */
	struct twheel_event events[BATCH];
	struct tally tally;
};

void die(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("demo: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_CANNOT_RUN);
}

__u64 clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* Memory that is all there from the start: the kernel's share is what grows. */
static void *allocate(size_t size)
{
	void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for %zu bytes: the workload is too large for this machine", size);
	return p;
}

/* splitmix64: the same day again from the same seed. */
static __u64 random_64(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* From 0 to @range - 1; of at most an hour or two in ns, so fair enough. */
static __u64 random_below(__u64 *state, __u64 range)
{
	return range ? random_64(state) % range : 0;
}

static __u64 random_between(__u64 *state, __u64 least, __u64 most)
{
	return least + random_below(state, most - least + 1);
}

static __u64 draw_duration(__u64 *random, const struct kind *kind)
{
	__u32 share = random_below(random, 1000000);
	const struct quantile *q = kind->lasts;

	while (q[1].share <= share)
		q++;
	return q[0].time + (double)(q[1].time - q[0].time) *
	       (share - q[0].share) / (q[1].share - q[0].share);
}

/* Makes the connection act in a slot. */
static void plan(struct demo *d, __u32 slot, __u32 c)
{
	d->connections[c].next = d->slots[slot];
	d->slots[slot] = c;
}

/* Draws every connection's arrival and end, before the day begins. */
static void plan_day(struct demo *d)
{
	const struct workload *w = d->w;
	__u32 *arrives = allocate(w->nr_connections * sizeof(*arrives));
	__u64 last = w->run;
	__u32 c = 0;
	unsigned int i, k;
	__u32 n;

	d->connections = allocate(w->nr_connections * sizeof(*d->connections));
	for (k = 0; k < w->nr_kinds; k++) {
		const struct kind *kind = &w->kinds[k];

		for (i = 0; i < kind->nr_arrivals; i++) {
			const struct arrivals *a = &kind->arrivals[i];

			for (n = 0; n < a->count; n++, c++) {
				struct connection *con = &d->connections[c];
				__u64 from = random_between(&d->random, a->from, a->to - 1);
				__u64 to = from + draw_duration(&d->random, kind);

				arrives[c] = from / SLOT;
				con->end = to / SLOT;
				if (con->end == arrives[c])
					con->end++;
				con->kind = k;
				con->closes = random_below(&d->random, 1000000) < kind->close;
				if (last < to + SLOT)
					last = to + SLOT;
				if (!con->closes)
					to += kind->timeout;
				if (d->end < to)
					d->end = to;
			}
		}
	}

	if (last / SLOT >= MAX_SLOTS)
		die("%s takes more than two hours: play it in a shorter time", w->path);
	d->nr_slots = last / SLOT + 1;
	d->slots = allocate(d->nr_slots * sizeof(*d->slots));
	memset(d->slots, 0xff, d->nr_slots * sizeof(*d->slots));
	for (c = 0; c < w->nr_connections; c++)
		plan(d, arrives[c], c);
	munmap(arrives, w->nr_connections * sizeof(*arrives));
}

static struct twheel *open_new(const struct backend *backend)
{
	struct twheel *wheel;
	int ret = twheel_open(O_NONBLOCK | backend->where, &wheel);

	if (ret)
		die("can't open %s: %s%s",
		    backend->where == TWHEEL_KERNEL ? DEVICE : "a wheel", strerror(-ret),
		    ret != -ENOENT ? "" : backend->where == TWHEEL_BPF ?
		    "; twheel info says why" : "; load the module: modprobe twheel");
	return wheel;
}

static void open_wheel(struct demo *d)
{
	__u64 timers = (__u64)d->w->nr_connections + d->w->nr_timers;
	__u64 most;
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick = TICK,
	};
	struct twheel_info info = { .size = sizeof(info) };
	struct epoll_event event = { .events = EPOLLIN };
	int ret;

	d->wheel = open_new(d->backend);
	ret = twheel_info(d->wheel, &info);
	if (ret)
		die("can't ask the wheel for its limits: %s", strerror(-ret));
	most = info.limit < info.user_limit ? info.limit : info.user_limit;
	if (timers > most)
		die("%llu timers, but the wheel allows %llu (of the module: see modinfo twheel)",
		    timers, most);
	d->backend->set_up(d->wheel, &setup, d->w->nr_connections);
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0 ||
	    epoll_ctl(d->epoll, EPOLL_CTL_ADD, twheel_fd(d->wheel), &event))
		die("can't watch the wheel with epoll: %s", strerror(errno));
}

static bool is_periodic(__u64 user_data)
{
	return user_data & PERIODIC_BIT;
}

static struct periodic_timer *periodic_of(struct demo *d, __u64 user_data)
{
	return &d->periodic[(__u32)user_data];
}

static void done_arm(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	if (op->result)
		die("can't arm a timer while %llu are pending: %s",
		    d->tally.pending, strerror(-op->result));
	if (is_periodic(user_data)) {
		periodic_of(d, user_data)->id = op->id;
		periodic_of(d, user_data)->state = ARMED;
	} else {
		d->connections[user_data].id = op->id;
		d->connections[user_data].deadline = op->deadline;
		d->connections[user_data].state = ARMED;
	}
	d->tally.armed++;
	d->tally.pending++;
}

static void note_withdrawn(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	if (op->state != TWHEEL_STATE_READY)
		return;
	if (is_periodic(user_data))
		d->tally.withdrawn_periods++;
	else
		d->tally.withdrawn++;
}

static void done_modify(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	d->connections[user_data].deadline = op->deadline;
	note_withdrawn(d, op, user_data);
	d->tally.rearmed++;
}

static void done_cancel(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	if (is_periodic(user_data))
		periodic_of(d, user_data)->state = CANCELLED;
	else
		d->connections[user_data].state = CANCELLED;
	note_withdrawn(d, op, user_data);
	d->tally.cancelled++;
	d->tally.pending--;
}

/* At the end of the day: is the timer where its periods should have got it? */
static void done_query(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	const struct periodic_timer *p = periodic_of(d, user_data);

	if (op->deadline > p->deadline || p->deadline + LOST_AFTER < d->now)
		d->tally.lost++;
	else if (op->deadline < p->deadline)
		d->tally.twice++;
}

/*
 * The program reads and cancels in one thread: what it hasn't read and hasn't
 * cancelled is alive, pending or ready, and the module must find it.
 */
static void done(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	static const char * const names[] = {
		[TWHEEL_OP_MODIFY] = "re-arm",
		[TWHEEL_OP_CANCEL] = "cancel",
		[TWHEEL_OP_QUERY] = "query",
	};

	if (op->opcode == TWHEEL_OP_ARM)
		done_arm(d, op, user_data);
	else if (op->result == -ENOENT)
		d->tally.refused++;
	else if (op->result)
		die("can't %s a timer: %s", names[op->opcode], strerror(-op->result));
	else if (op->opcode == TWHEEL_OP_MODIFY)
		done_modify(d, op, user_data);
	else if (op->opcode == TWHEEL_OP_CANCEL)
		done_cancel(d, op, user_data);
	else
		done_query(d, op, user_data);
}

static void submit(struct demo *d)
{
	__u64 from = clock_ns();
	unsigned int i;

	d->backend->submit(d->wheel, d->ops, d->whose, d->nr_ops);
	d->tally.change_time += clock_ns() - from;
	for (i = 0; i < d->nr_ops; i++)
		done(d, &d->ops[i], d->whose[i]);
	d->nr_ops = 0;
}

/* One more operation for the batch; all but what is given here is 0. */
static struct twheel_op *add_op(struct demo *d, unsigned int opcode, __u64 id,
				__u64 user_data)
{
	struct twheel_op *op;

	if (d->nr_ops == BATCH)
		submit(d);
	d->whose[d->nr_ops] = user_data;
	op = &d->ops[d->nr_ops++];
	*op = (struct twheel_op){
		.opcode = opcode,
		.id = id,
	};
	return op;
}

static void set_deadline(struct twheel_op *op, __u64 deadline, __u64 user_data)
{
	op->flags = TWHEEL_ABS;
	op->deadline = deadline;
	op->user_data = user_data;
}

static void arm_periodic(struct demo *d)
{
	const struct workload *w = d->w;
	__u64 user_data = PERIODIC_BIT;
	unsigned int i;
	__u32 n;

	for (i = 0; i < w->nr_periodic; i++) {
		for (n = 0; n < w->periodic[i].count; n++, user_data++) {
			struct periodic_timer *p = periodic_of(d, user_data);
			struct twheel_op *op = add_op(d, TWHEEL_OP_ARM, 0, user_data);

			p->period = w->periodic[i].period;
			p->deadline = d->start + random_below(&d->random, p->period);
			op->interval = p->period;
			set_deadline(op, p->deadline, user_data);
		}
	}
	submit(d);
}

/* Asks after the periodic timers, or cancels them. */
static void all_periodic(struct demo *d, unsigned int opcode)
{
	__u32 n;

	for (n = 0; n < d->w->nr_timers; n++)
		if (d->periodic[n].state == ARMED)
			add_op(d, opcode, d->periodic[n].id, PERIODIC_BIT | n);
	submit(d);
}

/* A client's day is the same whenever it is drawn: also on a machine that is late. */
static __u64 draw_push(const struct demo *d, __u32 slot, __u32 c)
{
	const struct kind *kind = &d->w->kinds[d->connections[c].kind];
	__u64 random = d->w->seed ^ ((__u64)c << 32 | slot);

	random = random_64(&random);
	return random_between(&random, kind->push_min, kind->push_max) / SLOT;
}

/* The connection arrives, is used, or ends. */
static void act(struct demo *d, __u32 slot, __u32 c)
{
	struct connection *con = &d->connections[c];
	const struct kind *kind = &d->w->kinds[con->kind];
	struct twheel_op *op;
	__u32 next;

	if (con->state == EXPIRED) {
		d->tally.lapsed++;
		return;
	}
	if (slot == con->end) {
		add_op(d, TWHEEL_OP_CANCEL, con->id, c);
		return;
	}

	op = add_op(d, con->state == NOT_ARMED ? TWHEEL_OP_ARM : TWHEEL_OP_MODIFY,
		    con->id, c);
	set_deadline(op, d->now + kind->timeout, c);

	next = slot + draw_push(d, slot, c);
	if (next < con->end)
		plan(d, next, c);
	else if (con->closes)
		plan(d, con->end, c);
}

static void act_all(struct demo *d, __u32 slot)
{
	__u32 c = d->slots[slot];

	d->now = clock_ns();
	while (c != NONE) {
		__u32 next = d->connections[c].next;

		act(d, slot, c);
		c = next;
	}
	submit(d);
	if (d->tally.pending > d->tally.peak_pending) {
		d->tally.peak_pending = d->tally.pending;
		d->tally.peak_time = slot * SLOT;
	}
}

static void add_lateness(struct lateness *l, __u64 late)
{
	l->buckets[late ? 64 - __builtin_clzll(late) : 0]++;
	if (l->most < late)
		l->most = late;
}

/* The program's own deadline counts here, not the one in the event. */
static void note_lateness(struct demo *d, const struct twheel_event *event,
			  __u64 deadline, __u64 read_at)
{
	if (event->deadline < deadline || read_at < deadline) {
		d->tally.early++;
		return;
	}
	add_lateness(&d->tally.read, read_at - deadline);
}

static void connection_event(struct demo *d, const struct twheel_event *event,
			     __u64 read_at)
{
	struct connection *con = &d->connections[event->user_data];

	if (con->state == CANCELLED) {
		d->tally.after_cancel++;
	} else if (con->state != ARMED || con->id != event->id) {
		d->tally.twice++;
	} else {
		con->state = EXPIRED;
		d->tally.expired++;
		d->tally.pending--;
		note_lateness(d, event, con->deadline, read_at);
	}
}

/* Periods follow each other without a gap, as long as overruns are counted. */
static void periodic_event(struct demo *d, const struct twheel_event *event,
			   __u64 read_at)
{
	struct periodic_timer *p = periodic_of(d, event->user_data);

	if (p->state == CANCELLED) {
		d->tally.after_cancel++;
		return;
	}
	if (event->id != p->id || event->deadline < p->deadline) {
		d->tally.twice++;
		return;
	}
	if (event->deadline > p->deadline)
		d->tally.lost++;
	d->tally.periods++;
	d->tally.overruns += event->overrun;
	note_lateness(d, event, p->deadline, read_at);
	p->deadline = event->deadline + (event->overrun + 1) * p->period;
}

static void note_event(struct demo *d, const struct twheel_event *event,
		       __u64 read_at)
{
	__u64 user_data = event->user_data;

	if (user_data < d->w->nr_connections)
		connection_event(d, event, read_at);
	else if (is_periodic(user_data) &&
		 (user_data ^ PERIODIC_BIT) < d->w->nr_timers)
		periodic_event(d, event, read_at);
	else
		die("read an event that belongs to no timer: user data %#llx", user_data);
}

/* Returns how many there were, at most a batch. */
static unsigned int read_batch(struct demo *d)
{
	__u64 from = clock_ns();
	unsigned int n = d->backend->take(d->wheel, d->events, BATCH);
	__u64 read_at = clock_ns();
	unsigned int i;

	d->tally.read_time += read_at - from;
	for (i = 0; i < n; i++)
		note_event(d, &d->events[i], read_at);
	return n;
}

/* The event loop: reads what expires until it is time for something else. */
static void wait_until(struct demo *d, __u64 when)
{
	__u64 now = clock_ns();

	do {
		__u64 left = when > now ? when - now : 0;
		struct timespec timeout = {
			.tv_sec = left / SECOND,
			.tv_nsec = left % SECOND,
		};
		struct epoll_event event;
		int n = epoll_pwait2(d->epoll, &event, 1, &timeout, NULL);

		calls.waits++;
		if (n < 0 && errno != EINTR)
			die("can't wait for the wheel: %s", strerror(errno));
		if (n > 0)
			while (read_batch(d) == BATCH)
				;
		now = clock_ns();
	} while (now < when);
}

static void show_progress(struct demo *d)
{
	struct tally *t = &d->tally;
	__u64 now = clock_ns();

	if (now < d->next_progress)
		return;
	d->next_progress = now + PROGRESS_EVERY;
	if (t->pending > t->memory_pending) {
		__u64 memory = memory_used();

		t->memory = memory > d->memory_before ? memory - d->memory_before : 0;
		t->memory_pending = t->pending;
	}
	report_progress(d->w, t, now - d->start, d->end);
}

/*
 * A virtual processor is taken away now and then. To tell that from what the
 * module does, look for it where the module has nothing to do.
 */
static void watch_machine(struct demo *d)
{
	__u64 start = clock_ns();
	__u64 last = start;

	while (last - start < SECOND) {
		__u64 now = clock_ns();

		if (d->tally.machine_stop < now - last)
			d->tally.machine_stop = now - last;
		last = now;
	}
}

static void play_day(struct demo *d)
{
	__u32 slot;

	d->start = clock_ns();
	arm_periodic(d);
	for (slot = 0; slot < d->nr_slots; slot++) {
		wait_until(d, d->start + slot * SLOT);
		act_all(d, slot);
		show_progress(d);
	}
}

/* Connections that were never closed have timers that are to expire yet. */
static void wait_for_the_last(struct demo *d)
{
	__u64 last = 0;
	__u32 c;

	for (c = 0; c < d->w->nr_connections; c++)
		if (d->connections[c].state == ARMED &&
		    d->connections[c].deadline > last)
			last = d->connections[c].deadline;
	while (d->tally.armed - d->tally.cancelled - d->tally.expired >
	       d->w->nr_timers && clock_ns() < last + LOST_AFTER) {
		wait_until(d, clock_ns() + 10 * MS);
		show_progress(d);
	}
}

/* Shared timers that were cancelled go on leaving the wheel: both at one time. */
static void read_counters(struct demo *d, struct result *result)
{
	struct twheel_stats *stats = &result->stats;
	__u64 cancelled;
	int ret;

	result->info = (struct twheel_info){ .size = sizeof(result->info) };
	*stats = (struct twheel_stats){ .size = sizeof(*stats) };
	do {
		cancelled = stats->cancelled;
		ret = twheel_info(d->wheel, &result->info);
		if (!ret)
			ret = twheel_stats(d->wheel, stats);
		if (ret)
			die("can't read the wheel's counters: %s", strerror(-ret));
	} while (cancelled != stats->cancelled);
	if (d->backend->where == TWHEEL_KERNEL)
		holds_read(&result->holds);
}

static void end_day(struct demo *d)
{
	__u32 c;

	wait_for_the_last(d);
	d->now = clock_ns();
	all_periodic(d, TWHEEL_OP_QUERY);
	all_periodic(d, TWHEEL_OP_CANCEL);
	while (read_batch(d))
		;
	for (c = 0; c < d->w->nr_connections; c++)
		if (d->connections[c].state == ARMED)
			d->tally.lost++;
	d->tally.elapsed = clock_ns() - d->start;
	d->tally.calls = calls;
	report_progress(d->w, &d->tally, d->end, d->end);
}

static void play(const struct workload *w, const struct backend *backend,
		 struct result *result)
{
	static struct demo d;

	d.w = w;
	d.backend = backend;
	d.random = w->seed;
	if (backend->where == TWHEEL_KERNEL)
		memory_cgroup_enter(backend->name);
	else
		memory_own_watch();
	plan_day(&d);
	d.periodic = allocate(w->nr_timers * sizeof(*d.periodic));
	d.memory_before = memory_used();
	open_wheel(&d);
	watch_machine(&d);
	play_day(&d);
	end_day(&d);
	read_counters(&d, result);
	watch_machine(&d);
	result->backend = backend;
	result->tally = d.tally;
}

/* In a process of its own, whose memory is gone when it ends. */
static void play_apart(const struct workload *w, const struct backend *backend,
		       struct result *result)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0)
		die("can't start a process: %s", strerror(errno));
	if (!child) {
		play(w, backend, result);
		exit(0);
	}
	if (waitpid(child, &status, 0) != child)
		die("can't wait for a process: %s", strerror(errno));
	if (WIFSIGNALED(status))
		die("the process that played the day was killed by signal %d",
		    WTERMSIG(status));
	/* The function has said why. */
	if (status)
		exit(WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	const char *mode = argc == 3 ? argv[2] : "ioctl";
	bool compare = !strcmp(mode, "shared");
	const struct backend *first = !strcmp(mode, "user") ? &backend_user :
				      !strcmp(mode, "bpf") ? &backend_bpf : &backend_ioctl;
	struct workload w;
	struct result *results;
	unsigned int broken;

	if (argc < 2 || argc > 3 || (!compare && strcmp(mode, first->name)))
		die("it is run with a workload file: %s FILE [ioctl|shared|user|bpf]",
		    argc ? argv[0] : "demo");
	workload_read(&w, argv[1]);
	/* Before anything is changed on a machine that has no module. */
	twheel_close(open_new(first));
	results = mmap(NULL, 2 * sizeof(*results), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		die("no memory: %s", strerror(errno));
	report_start(&w, TICK);
	if (!compare) {
		play_apart(&w, first, results);
		broken = report_summary(&w, results);
	} else {
		report_backend(first);
		play_apart(&w, first, &results[0]);
		report_backend(&backend_shared);
		play_apart(&w, &backend_shared, &results[1]);
		broken = report_both(&results[0], &results[1]);
	}
	if (fflush(stdout) || ferror(stdout))
		die("the report could not be written: %s", strerror(errno));
	return broken ? EXIT_PROMISE_BROKEN : 0;
}
