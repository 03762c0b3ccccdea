// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile program in a control group that has 1 % of the processor has the kernel
 * work for it: another program keeps its share nevertheless, as most of that is done in the
 * hostile one's own time.
 *
 * The other program counts as fast as it can, in a group of its own. Of what it loses,
 * the hostile group's own time is told apart. How much the kernel works elsewhere
 * for each instruction that a hostile one spends is the gain that he has.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 * Environment: TIMES=N for N times as long.
 */
#include "cgroup.h"
#include "shared.h"

#define MALLORY 1000
#define PERIOD (20 * MSEC)
#define BATCH 256

/* Most of its throughput that another program may lose, in % */
#define LOSS 15

/* How many of each hostile ones have */
#define WHEELS 8
#define TIMERS 1000000
#define ORDINARY 2000

/* How often the hostile program has begun to do its deed, which the test knows as well */
static __u64 *rounds;
static struct client clients[WHEELS];
static struct twheel_op ops[ORDINARY];
static struct twheel_event events[BATCH];
static double alone;	/* what the other program counts in an ns */

static __u64 duration(void)
{
	return number_of("TIMES", 1) * SEC;
}

/* ---- hostile ones ---- */

/* Wake the wheel all the time without its program */
static void arm_alarms(int fd)
{
	__u64 at = now(CLOCK_MONOTONIC), end = at + duration() + 2 * SEC;
	int n = 0;

	if (end - at > ORDINARY * PERIOD)
		end = at + ORDINARY * PERIOD;

	for (; at < end; at += PERIOD)
		ops[n++] = op_arm(TWHEEL_ABS, at, 0);
	submit_all(fd, ops, n);
}

static void prepare_shared(void)
{
	int i;

	for (i = 0; i < WHEELS; i++) {
		client_open(&clients[i], TWHEEL_CLOCK_MONOTONIC, 0, TIMERS);
		memset(clients[i].words, 0, TIMERS * sizeof(__u64));
		arm_alarms(clients[i].fd);
	}
}

static void all_dirty(struct client *c)
{
	memset(c->dirty, 0xff, (c->nr + 63) / 64 * sizeof(__u64));
	memset(c->groups, 0xff, (c->nr + 256 * 64 - 1) / (256 * 64) * sizeof(__u64));
}

/* Every timer due, but no room for it in the ring */
static void prepare_full(void)
{
	__u32 i, k;

	prepare_shared();
	for (i = 0; i < WHEELS; i++) {
		for (k = 0; k < TIMERS; k++)
			clients[i].words[k] = ARMED;
		clients[i].area->head = -1 - clients[i].area->ring_mask;
	}
}

static void dirty_deed(void)
{
	int i;

	for (i = 0; i < WHEELS; i++)
		all_dirty(&clients[i]);
}

static void doorbell_deed(void)
{
	int i;

	dirty_deed();
	for (i = 0; i < WHEELS; i++)
		doorbell_ring(clients[i].fd);
}

static void read_deed(void)
{
	int i;

	dirty_deed();
	for (i = 0; i < WHEELS; i++)
		read_events(clients[i].fd, events, 1);
}

static void poll_deed(void)
{
	int i;

	dirty_deed();
	for (i = 0; i < WHEELS; i++)
		readable(clients[i].fd, 0);
}

/* Each timer of a wheel expires: all that they take is 8 bytes written */
static void expire_deed(void)
{
	struct client *c = &clients[*rounds % WHEELS];
	__u32 i;

	for (i = 0; i < c->nr; i++)
		c->words[i] = ARMED;
	c->area->head = c->area->tail;
	all_dirty(c);
}

static void prepare_ordinary(void)
{
	int i;

	for (i = 0; i < WHEELS; i++)
		clients[i].fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
}

static void arm_all(int fd, __u64 first, __u64 step)
{
	int i;

	for (i = 0; i < ORDINARY; i++)
		ops[i] = op_arm(TWHEEL_ABS, first + i * step, i);
	submit(fd, ops, ORDINARY);
}

/*
 * Many timers at the far end of an upper slot, in the hope that to cascade them
 * costs more than to arm them
 */
static void cascade_deed(void)
{
	int i = *rounds % WHEELS;

	close(clients[i].fd);
	clients[i].fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	arm_all(clients[i].fd, now(CLOCK_MONOTONIC) + 50 * MSEC, 1);
}

/* All of them earlier and later, over and over */
static void rearm_deed(void)
{
	int i = *rounds % WHEELS, k;

	if (*rounds <= WHEELS) {
		arm_all(clients[i].fd, now(CLOCK_MONOTONIC) + 100 * MSEC, USEC);
		return;
	}
	for (k = 0; k < BATCH; k++) {
		ops[k].opcode = TWHEEL_OP_MODIFY;
		ops[k].flags = 0;
		ops[k].deadline = (*rounds & 1 ? 1 : 100) * MSEC;
	}
	submit(clients[i].fd, ops, BATCH);
}

static void (*prepare)(void);
static void (*deed)(void);

static void hostile_child(void)
{
	__u64 at;

	become(MALLORY);
	prepare();
	/* Until it is in its group */
	raise(SIGSTOP);
	for (at = now(CLOCK_MONOTONIC);; at += PERIOD) {
		struct timespec ts = { at / SEC, at % SEC };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		(*rounds)++;
		deed();
	}
}

/* ---- together ---- */

static pid_t start_hostile(void)
{
	pid_t pid = tap_fork(hostile_child);
	int status;

	waitpid(pid, &status, WUNTRACED);
	if (!WIFSTOPPED(status))
		tap_bail("the hostile program ended: %#x", status);
	cgroup_move("confined", pid);
	return pid;
}

/* Gives what the other program lost, as a part of what it has alone */
static double measure_loss(pid_t hostile)
{
	struct measured m;
	double loss, others;

	if (hostile)
		kill(hostile, SIGCONT);
	m = measure(1, "confined", 100 * MSEC, duration());
	if (!hostile)
		alone = m.count;
	loss = 1 - m.count / alone;
	others = loss > m.own ? loss - m.own : 0;
	tap_diag("%s: %.1f %% lost; own time %.1f %%; %llu rounds; gain %.1f",
		 tap_name, 100 * loss, 100 * m.own, *rounds,
		 m.own ? others / m.own : 0);
	return loss;
}

static void beside(void (*prepares)(void), void (*does)(void))
{
	pid_t hostile;
	double loss;

	*rounds = 0;
	prepare = prepares;
	deed = does;
	hostile = start_hostile();
	loss = measure_loss(hostile);
	/* There, it would take long to die, and the group would owe all of that. */
	cgroup_move("", hostile);
	end(hostile);
	EXPECT_TRUE(*rounds, "it did nothing");
	EXPECT_TRUE(loss * 100 <= LOSS, "%.1f %% lost", loss * 100);
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	rounds = map_shared(sizeof(*rounds));
	counter_init();
	cgroup_write("", "cgroup.subtree_control", "+cpu");
	cgroup_make("other");
	cgroup_make("confined");
	cgroup_write("confined", "cpu.max", "1000 100000");

	RUN_CALL(measure_loss(0), "nobody");
	RUN_CALL(beside(prepare_shared, dirty_deed), "shared timers that are idle, and dirty");
	RUN_CALL(beside(prepare_full, dirty_deed),
		 "shared timers that are due, dirty, and find no room");
	RUN_CALL(beside(prepare_full, doorbell_deed), "the same, and the doorbell");
	RUN_CALL(beside(prepare_full, read_deed), "the same, and read");
	RUN_CALL(beside(prepare_full, poll_deed), "the same, and poll");
	RUN_CALL(beside(prepare_shared, expire_deed), "shared timers that all expire");
	RUN_CALL(beside(prepare_ordinary, cascade_deed), "timers that are cascaded");
	RUN_CALL(beside(prepare_ordinary, rearm_deed), "timers that are moved to and fro");
	return tap_end();
}
