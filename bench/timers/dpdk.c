// SPDX-License-Identifier: GPL-2.0
/* DPDK's rte_timer, for cases.h */
#include "cases.h"

#include <poll.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>
#include <rte_version.h>

static struct rte_timer timers[TIMERS];
static int watched = -1, left_it;

const char *const nevers[] = { "UINT64_MAX cycles", "2^63", "LONG_MAX", NULL };
const int periods = 1;

static void version(void) { printf("%s", rte_version()); }

static void expired(struct rte_timer *timer, void *arg)
{
	(void)arg;
	on_timer(timer - timers);
}

static int start_cycles(int i, uint64_t cycles, enum rte_timer_type type)
{
	return rte_timer_reset(&timers[i], cycles, type, rte_lcore_id(), expired, NULL);
}

static int start(int i, double delay, double period)
{
	return start_cycles(i, delay * rte_get_timer_hz() / 1e3, period ? PERIODICAL : SINGLE);
}

static int start_never(int i, int which)
{
	static const uint64_t values[] = { UINT64_MAX, 1ULL << 63, INT64_MAX };

	return start_cycles(i, values[which], SINGLE);
}

static void stop(int i) { rte_timer_stop(&timers[i]); }
static double left(int i) { return i < 0 ? 0 : NAN; }
static int active(int i) { return rte_timer_pending(&timers[i]); }

static void run(void)
{
	for (left_it = 0; !left_it;) {
		rte_timer_manage();
		if (watched >= 0 && poll(&(struct pollfd){ watched, POLLIN, 0 }, 1, 0) > 0)
			on_ready();
	}
}

static void leave(void) { left_it = 1; }
static void watch(int fd) { watched = fd; }

int main(void)
{
	static char *words[] = { "dpdk", "--no-huge", "--no-pci", "-m64", "--no-telemetry", "-l0",
			  "--log-level=1", "--no-shconf", NULL };
	int i;

	if (rte_eal_init(8, words) < 0 || rte_timer_subsystem_init())
		return 1;
	for (i = 0; i < TIMERS; i++)
		rte_timer_init(&timers[i]);
	cases();
	return rte_eal_cleanup();
}
