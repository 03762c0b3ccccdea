/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheels that processes have open, from /proc.
 */
#ifndef WHEELS_H
#define WHEELS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

/**
 * struct wheel - a descriptor that a process has of a wheel, and what fdinfo says of it
 * @pid: the process
 * @fd: the descriptor
 * @program: the name of the process
 * @nr: number of the wheel; descriptors with the same are of the same wheel
 * @uid: whose limits count for it
 * @clock: name of its clock
 * @tick: length of a tick, in ns
 * @pending: timers that are armed and not expired
 * @ready: timers that are expired and not read
 * @limit: most timers that it may hold
 * @next_expiry: no pending timer expires before this time
 * @shared: number of its shared timers
 * @armed: timers armed
 * @expired: expiries
 * @overruns: periods that went by unread
 * @refused: times that a limit refused a timer
 * @max_lateness: the largest lateness, in ns
 */
struct wheel {
	pid_t pid;
	int fd;
	char program[32];
	__u64 nr;
	__u64 uid;
	char clock[16];
	__u64 tick;
	__u64 pending;
	__u64 ready;
	__u64 limit;
	__u64 next_expiry;
	__u64 shared;
	__u64 armed;
	__u64 expired;
	__u64 overruns;
	__u64 refused;
	__u64 max_lateness;
};

/**
 * struct wheels - descriptors of wheels, those of a wheel together, in the order of
 *	their numbers
 * @at: the descriptors
 * @nr: how many
 * @hidden: processes that could not be looked into
 */
struct wheels {
	struct wheel *at;
	size_t nr;
	size_t hidden;
};

int wheels_find(struct wheels *wheels, pid_t pid, int fd);
void wheels_free(struct wheels *wheels);

/* Is this the first descriptor of its wheel in the list? */
static inline bool wheel_first(const struct wheels *wheels, size_t i)
{
	return !i || wheels->at[i].nr != wheels->at[i - 1].nr;
}

#endif /* WHEELS_H */
