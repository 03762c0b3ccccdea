// SPDX-License-Identifier: GPL-2.0
/*
 * For how long twheel holds a processor: by its own statistics, and by the kernel's
 * tracers of sections with interrupts or preemption off (the kernel "latency"), which
 * all holds of a spin lock and all runs in soft-interrupt context are.
 */
#include "guarantees.h"

#define TRACING "/sys/kernel/tracing/"
#define GOAL 65000	/* instructions */
#define THREADS 4

/* In the user data of the timers of the threads. */
#define THREADS_OWN (1ULL << 32)

/**
 * struct scene - timers that are there while four threads submit and read
 * @name: what it is called in the results
 * @timers: how many
 * @lead: from the start to the first of them, in ns
 * @align: the first is due at a multiple of this, in ticks
 * @range: from the first to the last, in ticks
 * @window: how long the threads are at it, in ns, half of it before the first
 * @shared: they are shared timers, all of which the kernel scans at once
 */
struct scene {
	const char *name;
	size_t timers;
	__u64 lead;
	__u64 align;
	__u64 range;
	__u64 window;
	bool shared;
};

static const struct scene scenes[] = {
	{ "one_tick", 1000000, 3 * SEC, 1, 1, SEC, false },
	{ "one_slot", 1000000, 3 * SEC, 64, 64, SEC, false },
	{ "many_pending", 10000000, 30 * SEC, 1, HOUR / TICK, SEC, false },
	{ "one_tick_shared", 1000000, 3 * SEC, 1, 1, SEC, true },
	{ "one_slot_shared", 1000000, 3 * SEC, 64, 64, SEC, true },
};

/* The longest sections, in ns; a tracer counts in whole us. */
struct longest {
	__u64 ours;		/* twheel's, and those of what it called */
	__u64 others;
};

struct worker {
	pthread_t thread;
	__u64 random;
	__u64 armed, cancelled, read;	/* of its own kind of timer */
};

static int wheel;
static __u64 threads_end;
static __u64 *deadlines;	/* of the scene's timers; 0 when it was read */
static __u64 bulk_read, bulk_wrong, own_read;
static __u64 worst_lateness;
static __u64 callback;	/* address of the function that the hrtimer calls */

static void find_callback(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[256], name[128] = "";

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %127s", &callback, name) == 2 &&
		    !strcmp(name, "tw_timer_fn"))
			break;
	if (!f || strcmp(name, "tw_timer_fn") || !callback)
		tap_bail("the kernel does not know tw_timer_fn");
	fclose(f);
}

static void trace_write(const char *file, const char *text)
{
	char path[128];
	int err;

	snprintf(path, sizeof(path), TRACING "%s", file);
	err = write_text(path, text);
	if (err)
		tap_bail("'%s' into %s: %s", text, path, strerror(-err));
}

/*
 * A tracer tells where a section began, and the stack at its end. Who ran in a soft
 * interrupt it does not tell: so the callback leaves an event.
 */
static void tracer_start(const char *tracer)
{
	char filter[64];

	if (!tracer)
		return;
	snprintf(filter, sizeof(filter), "function == %#llx", callback);
	trace_write("events/timer/hrtimer_expire_entry/filter", filter);
	trace_write("events/timer/hrtimer_expire_entry/enable", "1");
	trace_write("current_tracer", tracer);
	trace_write("tracing_max_latency", "0");
}

static void tracer_stop(const char *tracer)
{
	if (!tracer)
		return;
	trace_write("current_tracer", "nop");
	trace_write("events/timer/hrtimer_expire_entry/enable", "0");
}

/* Is a function of the module in the trace? Who began the section goes to @from. */
static bool read_trace(char *from)
{
	static const char started[] = "#  => started at: ";
	FILE *f = fopen(TRACING "trace", "r");
	bool ours = false;
	char line[512];

	if (!f)
		tap_bail("trace: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, started, strlen(started)))
			sscanf(line + strlen(started), "%63s", from);
		if (strstr(line, " tw_") || strstr(line, "=tw_"))
			ours = true;
	}
	fclose(f);
	return ours;
}

static __u64 max_latency(void)
{
	char text[32];

	read_text(TRACING "tracing_max_latency", text, sizeof(text));
	return strtoull(text, NULL, 10) * USEC;
}

/* Look at the longest section since the last look. */
static void look(const char *tracer, const char *when, struct longest *longest)
{
	__u64 latency, *of;
	char from[64] = "?";
	bool ours;

	if (!tracer)
		return;
	latency = max_latency();
	ours = read_trace(from);
	of = ours ? &longest->ours : &longest->others;
	if (latency > *of)
		*of = latency;
	say("%s, %s: longest %llu, begun in %s%s", tracer, when, latency,
	    from, ours ? ", twheel" : "");
	trace_write("tracing_max_latency", "0");
}

/* Cancel half of what was just armed, move a quarter. */
static unsigned int draw_changes(struct worker *w, struct twheel_op *ops,
				 unsigned int armed)
{
	unsigned int i, n = 0;

	for (i = 0; i < armed; i++) {
		__u64 id = ops[i].id;

		switch (random_next(&w->random) % 4) {
		case 0:
		case 1:
			ops[n++] = op_for(TWHEEL_OP_CANCEL, id);
			break;
		case 2:
			ops[n++] = op_modify(id, TWHEEL_ABS, now(clock_id) +
					     random_next(&w->random) % SEC, THREADS_OWN);
			break;
		}
	}
	return n;
}

static void submit_some(struct worker *w)
{
	struct twheel_op ops[BATCH];
	unsigned int i, n;

	for (i = 0; i < BATCH; i++)
		ops[i] = op_arm(TWHEEL_ABS, now(clock_id) + random_next(&w->random) % (200 * MSEC),
				THREADS_OWN);
	submit_all(wheel, ops, BATCH);
	w->armed += BATCH;

	n = draw_changes(w, ops, BATCH);
	if (submit(wheel, ops, n) != n)
		tap_bail("SUBMIT of %u", n);
	for (i = 0; i < n; i++) {
		if (ops[i].result && ops[i].result != -ENOENT)
			tap_bail("operation %u: %s", ops[i].opcode,
				 strerror(-ops[i].result));
		if (ops[i].opcode == TWHEEL_OP_CANCEL && !ops[i].result)
			w->cancelled++;
	}
}

/* A timer of the scene: it must have been armed, and not be read twice. */
static void bulk_event(const struct twheel_event *event)
{
	__u64 deadline = __atomic_exchange_n(&deadlines[event->user_data], 0,
						__ATOMIC_RELAXED);

	__atomic_fetch_add(&bulk_read, 1, __ATOMIC_RELAXED);
	if (deadline != event->deadline || now(clock_id) < deadline)
		__atomic_fetch_add(&bulk_wrong, 1, __ATOMIC_RELAXED);
}

static bool read_some(void)
{
	struct twheel_event events[BATCH];
	long n = read_events(wheel, events, BATCH), i;
	size_t own = 0;

	for (i = 0; i < n; i++) {
		if (events[i].user_data == THREADS_OWN)
			own++;
		else
			bulk_event(&events[i]);
	}
	__atomic_fetch_add(&own_read, own, __ATOMIC_RELAXED);
	return n > 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (now(clock_id) < threads_end) {
		submit_some(w);
		read_some();
		read_some();
	}
	return NULL;
}

/* Four threads submit and read; then all is read that has expired. */
static void run_threads(const struct scene *scene, __u64 start)
{
	struct worker workers[THREADS] = {};
	__u64 armed = 0, cancelled = 0;
	unsigned int i;

	sleep_until(start);
	threads_end = start + scene->window;
	for (i = 0; i < THREADS; i++) {
		workers[i].random = i + 1;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			tap_bail("can't start a thread");
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		armed += workers[i].armed;
		cancelled += workers[i].cancelled;
	}
	sleep_until(now(clock_id) + 2 * SEC);
	while (read_some())
		;
	if (armed != cancelled + own_read)
		broken("%s: the threads armed %llu timers, cancelled %llu and read %llu",
		       scene->name, armed, cancelled, own_read);
}

static void check_bulk(const struct scene *scene)
{
	struct twheel_info info = wheel_info(wheel);
	__u64 left = info.pending + info.ready;

	if (bulk_wrong || bulk_read + left != scene->timers)
		broken("%s: of %zu timers %llu were read, %llu are left, %llu early or twice",
		       scene->name, scene->timers, bulk_read, left, bulk_wrong);
}

/* Tell the kernel of the first, and leave the others to its next wake-up. */
static void arm_all_shared(size_t n)
{
	struct client c;
	size_t i;

	client_map(&c, wheel);
	for (i = 0; i < n; i++)
		shared_arm(&c, i, deadlines[i]);
	munmap(c.area, c.size);
}

static void play(const struct scene *scene, const char *tracer,
		 struct longest *longest)
{
	__u64 first;
	size_t i;

	say("%s with %s", scene->name, tracer ? tracer : "no tracer");
	reload_module();
	find_callback();
	bulk_read = 0;
	bulk_wrong = 0;
	own_read = 0;
	wheel = scene->shared ? wheel_with(TICK, scene->timers) :
				wheel_with(TICK, 0);
	first = ((now(clock_id) + scene->lead) / TICK / scene->align + 1) * scene->align;
	for (i = 0; i < scene->timers; i++)
		deadlines[i] = (first + rnd(scene->range)) * TICK - scene->shared;

	tracer_start(tracer);
	if (scene->shared)
		arm_all_shared(scene->timers);
	else
		arm_all(wheel, deadlines, NULL, scene->timers);
	look(tracer, "arming", longest);
	run_threads(scene, first * TICK - scene->window / 2);
	look(tracer, "four threads", longest);
	check_bulk(scene);
	worst_lateness = wheel_stats(wheel).max_lateness;
	close(wheel);
	look(tracer, "closing", longest);
	tracer_stop(tracer);
}

static void measure(const struct scene *scene)
{
	static const char * const tracers[] = { "preemptoff", "irqsoff" };
	char metric[64];
	size_t i;

	play(scene, NULL, NULL);
	result(scene->name, scene->timers, "largest_run_timers",
	       module_counter("largest_run"));
	result_goal(scene->name, scene->timers, "longest_run_instructions",
		    module_counter("longest_run"), GOAL);
	if (scene->shared)
		result(scene->name, scene->timers, "worst_lateness_ns",
		       worst_lateness);
	for (i = 0; i < ARRAY_SIZE(tracers); i++) {
		struct longest longest = {};

		play(scene, tracers[i], &longest);
		snprintf(metric, sizeof(metric), "%s_instructions", tracers[i]);
		result_goal(scene->name, scene->timers, metric, longest.ours, GOAL);
		snprintf(metric, sizeof(metric), "%s_others_instructions",
			 tracers[i]);
		result(scene->name, scene->timers, metric, longest.others);
	}
}

int main(void)
{
	size_t i, most = 0;

	for (i = 0; i < ARRAY_SIZE(scenes); i++)
		if (scenes[i].timers > most)
			most = scenes[i].timers;
	deadlines = allocate(most * sizeof(*deadlines));
	for (i = 0; i < ARRAY_SIZE(scenes); i++)
		measure(&scenes[i]);
	return promise_broken;
}
