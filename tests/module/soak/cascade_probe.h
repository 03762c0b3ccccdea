/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lone timers that show which levels of a wheel turned over.
 *
 * Such a timer is armed before the end of a turn of its level for a tick after it,
 * in which it has to be cascaded through every level below, or be late.
 */
#ifndef CASCADE_PROBE_H
#define CASCADE_PROBE_H

#include "device.h"

/* As the module has them: 64 slots are a turn. */
#define TURN_BITS 6
#define LEVELS 9

struct cascade_probe {
	int fd;
	clockid_t clock;
	__u64 tick;
	unsigned int level;
	__u64 deadline;
};

struct cascade_probe_set {
	struct cascade_probe list[4 * LEVELS];
	unsigned int nr;
};

static struct cascade_probe_set cascade_probes;

static inline __u64 slot_ticks(unsigned int level)
{
	return 1ULL << level * TURN_BITS;
}

/*
 * A tick two slots of the level ahead at least, or it would begin on the level
 * below, and likewise for each level below that; in the level's next turn, if there
 * is one.
 */
static inline __u64 cascade_probe_tick(__u64 from, unsigned int level)
{
	__u64 slot = slot_ticks(level);
	__u64 tick = (from / (slot << TURN_BITS) + 1) * (slot << TURN_BITS);
	unsigned int i;

	if (level == LEVELS - 1)
		tick = (from / slot + 2) * slot;
	else if (tick / slot < from / slot + 2)
		tick += slot;
	for (i = 0; i < level; i++)
		tick += 2 * slot_ticks(i);
	return tick;
}

static inline __u64 cascade_probe_deadline(clockid_t clock, __u64 tick,
					   unsigned int level)
{
	return cascade_probe_tick(now(clock) / tick, level) * tick;
}

static inline void cascade_probe_add(struct cascade_probe_set *set, clockid_t clock,
				     __u64 tick, unsigned int level)
{
	struct cascade_probe *w = &set->list[set->nr++];

	*w = (struct cascade_probe){
		.fd = wheel_new(wheel_clock(clock), tick),
		.clock = clock,
		.tick = tick,
		.level = level,
		.deadline = cascade_probe_deadline(clock, tick, level),
	};
	arm(w->fd, TWHEEL_ABS, w->deadline, level);
}

/* For each level that comes to the end of its turn in time */
static inline void cascade_probe_add_all(struct cascade_probe_set *set, clockid_t clock,
					 __u64 tick, __u64 length)
{
	unsigned int level;

	for (level = 1; level < LEVELS - 1; level++)
		if (cascade_probe_deadline(clock, tick, level) < now(clock) + length)
			cascade_probe_add(set, clock, tick, level);
}

static inline void cascade_probe_check_one(const struct cascade_probe *w)
{
	struct twheel_stats stats = wheel_stats(w->fd);
	struct twheel_event event;

	if (EXPECT_EQ(read_events(w->fd, &event, 1), 1, "clock %d level %u",
		      w->clock, w->level))
		EXPECT_EQ(event.deadline, w->deadline);
	EXPECT_TRUE(stats.max_lateness <= 5 * USEC, "clock %d level %u: %llu ns late", w->clock,
		    w->level, stats.max_lateness);
	EXPECT_TRUE(stats.wakeups <= 2, "%llu", stats.wakeups);
	tap_diag("clock %d, tick %llu ns: level %u turned over", w->clock, w->tick,
		 w->level);
	close(w->fd);
}

/* All of them, of which the highest is of a level of @most */
static inline void cascade_probe_check(const struct cascade_probe_set *set,
				       unsigned int most)
{
	unsigned int i, highest = 0;

	for (i = 0; i < set->nr; i++) {
		cascade_probe_check_one(&set->list[i]);
		if (set->list[i].level > highest)
			highest = set->list[i].level;
	}
	EXPECT_EQ(highest, most);
}

#endif
