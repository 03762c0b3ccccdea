/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The backends that arm, cancel and read the timers of the connections. Periodic
 * timers are ordinary timers of the same wheel, whichever backend the others have.
 */
#ifndef DEMO_BACKEND_H
#define DEMO_BACKEND_H

#include <linux/types.h>
#include <twheel.h>

/**
 * struct backend - a backend: how the timers of connections are kept
 * @name: for scripts
 * @title: for people
 * @where: the wheel: TWHEEL_KERNEL, or TWHEEL_USER for the program itself; or TWHEEL_BPF, where the
 *	connections' timers are in a BPF program
 * @set_up: sets up a wheel with room for timers of that many connections
 * @submit: does operations on the timers that @whose names, and gives their results
 * @take: gives some of the events that there are, 0 if there is none
 */
struct backend {
	const char *name;
	const char *title;
	int where;
	void (*set_up)(struct twheel *wheel, struct twheel_setup *setup, __u32 connections);
	void (*submit)(struct twheel *wheel, struct twheel_op *ops, const __u64 *whose,
		       unsigned int nr);
	unsigned int (*take)(struct twheel *wheel, struct twheel_event *events,
			     unsigned int room);
};

extern const struct backend backend_ioctl, backend_shared, backend_user, backend_bpf;

/* In the user data of a periodic timer, beside its index */
#define PERIODIC_BIT 0x100000000ULL

/* What was called of the wheel, and what came without a call */
struct calls {
	__u64 submits;
	__u64 doorbells;
	__u64 reads;
	__u64 waits;
	__u64 taken;	/* events that were taken from memory */
};

extern struct calls calls;

/*
 * The library rings the doorbell by itself: by ioctl(2), or of a BPF program by syscall(2). To
 * count that, the linker puts the second of each in place of the first.
 */
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
long __real_syscall(long nr, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long nr, long a, long b, long c, long d, long e, long f);

/* The ordinary timers of any wheel */
void submit_ordinary(struct twheel *wheel, struct twheel_op *ops, const __u64 *whose,
		     unsigned int nr);
unsigned int read_ordinary(struct twheel *wheel, struct twheel_event *events,
			   unsigned int room);

#endif
