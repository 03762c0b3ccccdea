// SPDX-License-Identifier: GPL-2.0
/*
 * A day's work of a busy server, with all its timers in one wheel.
 *
 * Plays a workload file against /dev/twheel, as an event loop would: one
 * thread that does what is due on the connections, in batches, and reads what
 * has expired. It keeps books of its own on every single timer, with the
 * deadline that it set and the clock that it reads, and so does not have to
 * believe the module anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"
#include "charge.h"
#include "report.h"
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

/* In the user data of a periodic timer, beside its index. */
#define PERIODIC_BIT 0x100000000ULL

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
	struct workload w;
	int wheel;
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

static __u64 clock_ns(void)
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
static __u64 random_64(struct demo *d)
{
	__u64 z = d->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* From 0 to @range - 1; of at most an hour or two in ns, so fair enough. */
static __u64 random_below(struct demo *d, __u64 range)
{
	return range ? random_64(d) % range : 0;
}

static __u64 random_between(struct demo *d, __u64 least, __u64 most)
{
	return least + random_below(d, most - least + 1);
}

static __u64 draw_duration(struct demo *d, const struct kind *kind)
{
	__u32 share = random_below(d, 1000000);
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
	const struct workload *w = &d->w;
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
				__u64 from = random_between(d, a->from, a->to - 1);
				__u64 to = from + draw_duration(d, kind);

				arrives[c] = from / SLOT;
				con->end = to / SLOT;
				if (con->end == arrives[c])
					con->end++;
				con->kind = k;
				con->closes = random_below(d, 1000000) < kind->close;
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

static int open_device(void)
{
	int fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		die("can't open %s: %s%s", DEVICE, strerror(errno),
		    errno == ENOENT ? "; load the module: modprobe twheel" : "");
	return fd;
}

static void open_wheel(struct demo *d)
{
	__u64 timers = (__u64)d->w.nr_connections + d->w.nr_timers;
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick = TICK,
	};
	struct twheel_info info = { .size = sizeof(info) };
	struct epoll_event event = { .events = EPOLLIN };

	d->wheel = open_device();
	if (ioctl(d->wheel, TWHEEL_IOC_SETUP, &setup))
		die("can't set the wheel up: %s", strerror(errno));
	if (ioctl(d->wheel, TWHEEL_IOC_INFO, &info))
		die("can't ask the wheel for its limits: %s", strerror(errno));
	if (timers > info.limit || timers > info.user_limit)
		die("%llu timers, but the module allows %llu (see modinfo twheel)", timers,
		    info.limit < info.user_limit ? info.limit : info.user_limit);
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0 ||
	    epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->wheel, &event))
		die("can't watch the wheel with epoll: %s", strerror(errno));
	report_start(&d->w, &info);
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

static void done_modify(struct demo *d, const struct twheel_op *op, __u64 user_data)
{
	d->connections[user_data].deadline = op->deadline;
	d->tally.rearmed++;
}

static void done_cancel(struct demo *d, __u64 user_data)
{
	if (is_periodic(user_data))
		periodic_of(d, user_data)->state = CANCELLED;
	else
		d->connections[user_data].state = CANCELLED;
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
		done_cancel(d, user_data);
	else
		done_query(d, op, user_data);
}

static void submit(struct demo *d)
{
	unsigned int from = 0;
	unsigned int i;

	while (from < d->nr_ops) {
		struct twheel_submit submit = {
			.size = sizeof(submit),
			.ops = (uintptr_t)&d->ops[from],
			.nr = d->nr_ops - from,
			.op_size = sizeof(d->ops[0]),
		};
		int n = ioctl(d->wheel, TWHEEL_IOC_SUBMIT, &submit);

		if (n <= 0)
			die("can't hand a batch to the wheel: %s", strerror(errno));
		from += n;
	}
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
		.size = sizeof(*op),
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
	const struct workload *w = &d->w;
	__u64 user_data = PERIODIC_BIT;
	unsigned int i;
	__u32 n;

	for (i = 0; i < w->nr_periodic; i++) {
		for (n = 0; n < w->periodic[i].count; n++, user_data++) {
			struct periodic_timer *p = periodic_of(d, user_data);
			struct twheel_op *op = add_op(d, TWHEEL_OP_ARM, 0, user_data);

			p->period = w->periodic[i].period;
			p->deadline = d->start + random_below(d, p->period);
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

	for (n = 0; n < d->w.nr_timers; n++)
		if (d->periodic[n].state == ARMED)
			add_op(d, opcode, d->periodic[n].id, PERIODIC_BIT | n);
	submit(d);
}

/* The connection arrives, is used, or ends. */
static void act(struct demo *d, __u32 slot, __u32 c)
{
	struct connection *con = &d->connections[c];
	const struct kind *kind = &d->w.kinds[con->kind];
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

	next = slot + random_between(d, kind->push_min, kind->push_max) / SLOT;
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

/* The program's own deadline counts here, not the one in the event. */
static void note_lateness(struct demo *d, const struct twheel_event *event,
			  __u64 deadline, __u64 read_at)
{
	struct tally *t = &d->tally;
	__u64 late;

	if (event->deadline < deadline || event->expired < deadline ||
	    read_at < deadline) {
		t->early++;
		return;
	}
	late = event->expired - deadline;
	t->lateness[late ? 64 - __builtin_clzll(late) : 0]++;
	if (t->max_lateness < late)
		t->max_lateness = late;
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

static void read_events(struct demo *d)
{
	__u64 read_at;
	ssize_t size;
	size_t i, n;

	do {
		size = read(d->wheel, d->events, sizeof(d->events));
		if (size < 0 && errno == EAGAIN)
			return;
		if (size <= 0 || size % sizeof(d->events[0]))
			die("can't read events from the wheel: %s",
			    size < 0 ? strerror(errno) : "this is no whole number of events");
		read_at = clock_ns();
		n = size / sizeof(d->events[0]);
		for (i = 0; i < n; i++) {
			const struct twheel_event *event = &d->events[i];
			__u64 user_data = event->user_data;

			if (user_data < d->w.nr_connections)
				connection_event(d, event, read_at);
			else if (is_periodic(user_data) &&
				 (user_data ^ PERIODIC_BIT) < d->w.nr_timers)
				periodic_event(d, event, read_at);
			else
				die("read an event that belongs to no timer: user data %#llx",
				    user_data);
		}
	} while (n == BATCH);
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

		if (n < 0 && errno != EINTR)
			die("can't wait for the wheel: %s", strerror(errno));
		if (n > 0)
			read_events(d);
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
		__u64 memory = memory_charged();

		t->memory = memory > d->memory_before ? memory - d->memory_before : 0;
		t->memory_pending = t->pending;
	}
	report_progress(&d->w, t, now - d->start, d->end);
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

	for (c = 0; c < d->w.nr_connections; c++)
		if (d->connections[c].state == ARMED &&
		    d->connections[c].deadline > last)
			last = d->connections[c].deadline;
	while (d->tally.armed - d->tally.cancelled - d->tally.expired >
	       d->w.nr_timers && clock_ns() < last + LOST_AFTER) {
		wait_until(d, clock_ns() + 10 * MS);
		show_progress(d);
	}
}

static void end_day(struct demo *d, struct twheel_info *info,
		    struct twheel_stats *stats)
{
	__u32 c;

	wait_for_the_last(d);
	d->now = clock_ns();
	all_periodic(d, TWHEEL_OP_QUERY);
	all_periodic(d, TWHEEL_OP_CANCEL);
	read_events(d);
	for (c = 0; c < d->w.nr_connections; c++)
		if (d->connections[c].state == ARMED)
			d->tally.lost++;
	d->tally.elapsed = clock_ns() - d->start;
	report_progress(&d->w, &d->tally, d->end, d->end);

	*info = (struct twheel_info){ .size = sizeof(*info) };
	*stats = (struct twheel_stats){ .size = sizeof(*stats) };
	if (ioctl(d->wheel, TWHEEL_IOC_INFO, info) ||
	    ioctl(d->wheel, TWHEEL_IOC_STATS, stats))
		die("can't read the wheel's counters: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct twheel_info info;
	struct twheel_stats stats;
	static struct demo d;

	if (argc != 2)
		die("it is run with a workload file: %s FILE",
		    argc ? argv[0] : "demo");
	workload_read(&d.w, argv[1]);
	d.random = d.w.seed;
	/* Before anything is changed on a machine that has no module. */
	close(open_device());
	memory_cgroup_enter();
	plan_day(&d);
	d.periodic = allocate(d.w.nr_timers * sizeof(*d.periodic));
	open_wheel(&d);
	d.memory_before = memory_charged();
	watch_machine(&d);
	play_day(&d);
	end_day(&d, &info, &stats);
	watch_machine(&d);
	if (report_summary(&d.w, &d.tally, &info, &stats))
		return EXIT_PROMISE_BROKEN;
	return 0;
}
