/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs of this suite share: a wheel whose kernel's side is a BPF program, and what
 * there is to be seen of it. (The program's side is the library's.)
 */
#ifndef BPF_H
#define BPF_H

#include "device.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <twheel_bpf.h>

#define TICK (4 * MSEC)

struct wheel {
	int fds[TWHEEL_BPF_FDS];
	struct twheel_area area;
};

/* The program has no log unless something is wrong. */
static inline void wheel_load(struct wheel *wheel, unsigned int timers, uint64_t tick, int accounts,
			      unsigned int account)
{
	struct twheel_bpf_setup setup = {
		.timers = timers, .tick = tick, .accounts = accounts, .account = account,
	};
	int ret = twheel_bpf_load(&setup, wheel->fds);

	if (!ret)
		ret = twheel_bpf_map(wheel->fds, &wheel->area);
	if (ret)
		tap_bail("no wheel of %u timers: %s", timers, strerror(-ret));
}

static inline void wheel_end(struct wheel *wheel)
{
	int i;

	twheel_shared_unmap(&wheel->area);
	for (i = 0; i < TWHEEL_BPF_FDS; i++)
		close(wheel->fds[i]);
}

static inline struct twheel_bpf_stats stats_of(const struct wheel *wheel)
{
	struct twheel_bpf_stats stats = {};
	int ret = twheel_bpf_stats(wheel->fds, &stats);

	if (ret)
		tap_bail("no statistics: %s", strerror(-ret));
	return stats;
}

/* Is there something to take, within @ms? */
static inline bool wakes(const struct wheel *wheel, int ms)
{
	struct pollfd fd = { .fd = wheel->fds[TWHEEL_BPF_WAKE], .events = POLLIN };

	return poll(&fd, 1, ms) > 0;
}

/* Where any() goes on. A child that is to do something else than its parent changes it. */
static __u64 seed;

/* At random; the environment's SEED is where that begins */
static inline uint64_t any(uint64_t below)
{
	if (!seed)
		seed = number_of("SEED", 1) * 88172645463325252ULL | 1;
	return random_next(&seed) % below;
}

static inline int bpf_call(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

/* The doorbell, by which the library is not asked: it believes what is in the area. */
static inline void ring(const struct wheel *wheel)
{
	union bpf_attr attr = { .test.prog_fd = wheel->fds[TWHEEL_BPF_DOORBELL] };

	if (bpf_call(BPF_PROG_TEST_RUN, &attr) || attr.test.retval)
		tap_bail("the doorbell: %s", strerror(errno));
}

/* What a file of numbers says after @field, or its first number without one; -1 without the file */
static inline long long number_in(const char *path, const char *field)
{
	FILE *file = fopen(path, "re");
	long long number = -1;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, field, strlen(field)))
			continue;
		number = strtoll(line + strlen(field), NULL, 10);
		break;
	}
	if (file)
		fclose(file);
	return number;
}

#endif
