// SPDX-License-Identifier: GPL-2.0
/*
 * A day, simulated, of a server with 100,000 connections at all times. Each has a
 * timeout that is pushed ahead 20 times. Then 95 of 100 are closed, which cancels
 * the timeout, and 5 are never heard of again, until it expires; and a new one takes
 * the place. The oracle is kept here, so that the module need not be believed.
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include "guarantees.h"

#define CONNECTIONS 100000U
#define PUSHES 20
#define CLOSED 95	/* of 100 */

/* How often a connection does something, and how much later it is given up */
#define LEAST_PAUSE (60 * SECOND)
#define MOST_PAUSE (1000 * SECOND)
#define TIMEOUT (1200 * SECOND)

/* The server does together what is to be done in this time. */
#define STEP SECOND
#define STEPS (24 * HOUR / STEP)
#define RING 1024	/* steps, more than the longest pause */

#define LOST_AFTER (2 * STEP)
#define NONE UINT32_MAX

#define CGROUP "/sys/fs/cgroup/day"

struct connection {
	__u64 id;
	__u64 deadline;	/* 0: no timer is armed */
	__u32 life;
	__u32 next;		/* in the same step */
	__u32 pushes;	/* to come */
};

static struct connection *connections;
static __u32 ring[RING];	/* first connection of each step */
static int wheel;

static struct twheel_op ops[BATCH];
static unsigned int nr_ops;

static struct {
	__u64 arms, pushes, cancels, expiries;
	__u64 early, twice, refused, lost;
	__u64 least_memory, most_memory;
} tally;

static __u64 user_data(__u32 c)
{
	return (__u64)connections[c].life << 32 | c;
}

static void plan(__u32 c, __u64 step)
{
	__u64 pause = LEAST_PAUSE + rnd(MOST_PAUSE - LEAST_PAUSE);
	__u32 *first = &ring[(step + pause / STEP) % RING];

	connections[c].next = *first;
	*first = c;
}

static void flush(void)
{
	unsigned int i;

	submit(wheel, ops, nr_ops);
	for (i = 0; i < nr_ops; i++) {
		/* The program knows which timers live: none may be refused. */
		if (ops[i].result)
			tally.refused++;
		else if (ops[i].opcode == TWHEEL_OP_ARM)
			connections[(__u32)ops[i].user_data].id = ops[i].id;
	}
	nr_ops = 0;
}

static void add(struct twheel_op op)
{
	ops[nr_ops++] = op;
	if (nr_ops == BATCH)
		flush();
}

static void begin_life(__u32 c, __u64 step)
{
	struct connection *con = &connections[c];

	con->life++;
	con->pushes = PUSHES;
	con->deadline = now() + TIMEOUT;
	add(op_arm(con->deadline, user_data(c)));
	tally.arms++;
	plan(c, step);
}

static void push(__u32 c, __u64 step)
{
	struct connection *con = &connections[c];

	con->pushes--;
	con->deadline = now() + TIMEOUT;
	add(op_modify(con->id, con->deadline, user_data(c)));
	tally.pushes++;
	plan(c, step);
}

static void act(__u32 c, __u64 step)
{
	if (connections[c].pushes) {
		push(c, step);
	} else if (rnd(100) < CLOSED) {
		add(op_cancel(connections[c].id));
		tally.cancels++;
		begin_life(c, step);
	}
}

static void act_all(__u64 step)
{
	__u32 c = ring[step % RING];

	ring[step % RING] = NONE;
	while (c != NONE) {
		__u32 next = connections[c].next;

		act(c, step);
		c = next;
	}
	flush();
}

static void expired(const struct twheel_event *event, __u64 step)
{
	__u32 c = event->user_data;
	struct connection *con = &connections[c];

	if (c >= CONNECTIONS || event->user_data != user_data(c) ||
	    event->deadline != con->deadline) {
		tally.twice++;
		return;
	}
	if (now() < con->deadline)
		tally.early++;
	tally.expiries++;
	con->deadline = 0;
	if (step < STEPS)
		begin_life(c, step);
}

static void read_all(__u64 step)
{
	static struct twheel_event events[BATCH];
	size_t n, i;

	while ((n = read_events(wheel, events, BATCH))) {
		for (i = 0; i < n; i++)
			expired(&events[i], step);
		flush();
	}
}

/* Timers that should have been read by now */
static void count_lost(void)
{
	__u64 most = now() - LOST_AFTER;
	__u32 c;

	for (c = 0; c < CONNECTIONS; c++)
		if (connections[c].deadline && connections[c].deadline < most)
			tally.lost++;
}

static void check_timers(void)
{
	if (wheel_timers(wheel) != CONNECTIONS)
		broken("the wheel has %llu timers, and not %u",
		       wheel_timers(wheel), CONNECTIONS);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("'%s' into %s: %s", text, path, strerror(errno));
	close(fd);
}

static void enter_cgroup(void)
{
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(CGROUP, 0755))
		die("%s: %s", CGROUP, strerror(errno));
	write_file(CGROUP "/cgroup.procs", "0");
}

/* Memory of the kernel that is charged to this process's cgroup. */
static __u64 kernel_memory(void)
{
	FILE *f = fopen(CGROUP "/memory.stat", "r");
	__u64 bytes = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "kernel ", strlen("kernel ")))
			bytes = strtoull(line + strlen("kernel "), NULL, 10);
	if (!bytes)
		die("the cgroup knows no memory of the kernel");
	fclose(f);
	return bytes;
}

static void end_hour(unsigned int hour, __u64 memory_before)
{
	__u64 memory = kernel_memory() - memory_before;
	char name[16];

	count_lost();
	check_timers();
	snprintf(name, sizeof(name), "hour_%u", hour);
	result(name, CONNECTIONS, "bytes", memory);
	if (hour == 1 || memory < tally.least_memory)
		tally.least_memory = memory;
	if (memory > tally.most_memory)
		tally.most_memory = memory;
}

static void play(__u64 memory_before)
{
	__u64 start = now();
	__u64 step;
	__u32 c;

	for (c = 0; c < CONNECTIONS; c++)
		begin_life(c, rnd(RING));
	for (step = 0; step < STEPS; step++) {
		sleep_until(start + (step + 1) * STEP);
		read_all(step);
		act_all(step);
		if ((step + 1) % (HOUR / STEP) == 0)
			end_hour((step + 1) / (HOUR / STEP), memory_before);
	}
	/* After the day nobody pushes any more, and all have to expire. */
	sleep_until(now() + TIMEOUT + SECOND);
	read_all(STEPS);
	sleep_until(now() + LOST_AFTER);
	count_lost();
}

static void report(void)
{
	struct twheel_stats stats = wheel_stats(wheel);
	double sway = 100.0 * (tally.most_memory - tally.least_memory) /
		      tally.least_memory;

	result("arm", CONNECTIONS, "count", tally.arms);
	result("modify_later", CONNECTIONS, "count", tally.pushes);
	result("cancel", CONNECTIONS, "count", tally.cancels);
	result("expire_read", CONNECTIONS, "count", tally.expiries);
	result("expire_read", CONNECTIONS, "interrupts", stats.wakeups);
	result("connection", CONNECTIONS, "early", tally.early);
	result("connection", CONNECTIONS, "lost", tally.lost);
	result("connection", CONNECTIONS, "twice", tally.twice);
	result("connection", CONNECTIONS, "worst_lateness_instructions",
	       stats.max_lateness);
	result_goal("connection", CONNECTIONS, "memory_sway_percent", sway, 5);
	if (tally.early || tally.lost || tally.twice || tally.refused)
		broken("early %llu, lost %llu, twice or cancelled %llu, refused %llu",
		       tally.early, tally.lost, tally.twice, tally.refused);
	if (stats.armed != tally.arms || stats.cancelled != tally.cancels ||
	    stats.delivered != tally.expiries || !tally.expiries)
		broken("the module counts otherwise: armed %llu, cancelled %llu, read %llu",
		       stats.armed, stats.cancelled, stats.delivered);
}

int main(void)
{
	__u64 memory_before;

	enter_cgroup();
	connections = allocate(CONNECTIONS * sizeof(*connections));
	memset(ring, 0xff, sizeof(ring));
	memory_before = kernel_memory();
	wheel = wheel_open(TICK);
	play(memory_before);
	report();
	return promise_broken;
}
