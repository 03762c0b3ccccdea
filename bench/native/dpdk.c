// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of DPDK (rte_timer), a skip list.
 *
 * They read the processor's time stamp counter, which can't be set. So time is
 * real here, and a ns is a number of cycles. Where time is to jump, timers are
 * armed anew, with deadlines in the past, which is all the same to a skip list.
 */
#define PEER peer
#define TIMER							\
	struct rte_timer rte;					\
	uint64_t delay
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>
#include <sched.h>
#include <string.h>

#include "peer.h"

/*
 * Cycles in a ns: so many that the time that arming takes does not matter beside
 * the range of the deadlines. And ns in a cycle, where they are in the past.
 */
#define CYCLES 64
#define PAST_NS 1000

/* What DPDK is started with. */
#define OPTIONS 10

static unsigned int lcore;
static uint64_t timeout = TIMEOUT * CYCLES;
/* The counter when the present turn began */
static uint64_t turn_began;

static void fired(struct rte_timer *rte, void *arg)
{
	struct timer *t = arg;

	t->deadline = rte->expire;
	expired(t, turn_began);
}

static void create(struct timer *t)
{
	rte_timer_init(&t->rte);
}

static void prepare(struct timer *t)
{
	t->delay = (t->deadline - now) * CYCLES;
}

static inline void arm(struct timer *t)
{
	rte_timer_reset(&t->rte, t->delay, SINGLE, lcore, fired, t);
}

static inline void modify(struct timer *t)
{
	arm(t);
}

static inline void cancel(struct timer *t)
{
	rte_timer_stop(&t->rte);
}

static inline void arm_connection(struct timer *t)
{
	rte_timer_reset(&t->rte, timeout, SINGLE, lcore, fired, t);
}

static inline void push(struct timer *t)
{
	arm_connection(t);
}

/* It adds the counter to the delay, and wraps around. */
static void jump(uint64_t until)
{
	uint64_t past = rte_rdtsc() - until / PAST_NS;
	struct timer *t;

	for (t = timers; t < timers + count; t++) {
		if (!t->waited_for)
			continue;
		t->delay = past + t->deadline / PAST_NS - rte_rdtsc();
		arm(t);
	}
}

static void turn(void (*callback)(void))
{
	turn_began = rte_rdtsc();
	rte_timer_manage();
	if (callback)
		callback();
}

/* Without its privileges and its folders, and on any processor. */
static void init(void)
{
	static const char *const options[OPTIONS] = {
		"bench", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
		"--log-level=error", "-m", "64", "-l", "0",
	};
	char *args[OPTIONS];
	cpu_set_t cpus;

	memcpy(args, options, sizeof(args));
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(OPTIONS, args) < 0 || rte_timer_subsystem_init())
		errx(1, "DPDK does not start");
	sched_setaffinity(0, sizeof(cpus), &cpus);
	lcore = rte_lcore_id();
}

static void open_peer(size_t n)
{
	init();
	create_timers(n);
}

const struct peer peer = {
	.name = "dpdk",
	.open = open_peer,
	.uniform = uniform,
	.connections = connections,
	.close = destroy_timers,
};
