/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared timers without the module: the kernel's side is a BPF program, which stock kernels from
 * 6.12 on take, and which taints none. What <twheel_shared.h> does is the same on both.
 *
 * Who has CAP_BPF and CAP_PERFMON loads a wheel, and has four descriptors then. It can pass them
 * on to any other process, by fork(2) or a socket: that needs no right of its own to map the
 * timers, to use them, and to wait for them. The timers end with the last of the descriptors
 * %TWHEEL_BPF_ALARM.
 *
 *	struct twheel_bpf_setup setup = { .timers = 100000, .accounts = -1 };
 *	int fds[TWHEEL_BPF_FDS];
 *	struct twheel_bpf wheel;
 *
 *	if (twheel_bpf_load(&setup, fds) || twheel_bpf_map(fds, &wheel))
 *		...
 *	twheel_shared_arm(&wheel.area, 5, deadline);
 *	poll() or epoll_wait() of fds[TWHEEL_BPF_WAKE], for POLLIN
 *	twheel_bpf_clear(&wheel);
 *	while ((n = twheel_shared_take(&wheel.area, timers, 256)))
 *		...
 *
 * The clock is CLOCK_MONOTONIC of the host. Expiries are never early. They are late where there
 * is no credit: the callbacks of one account, a user's, have a sixteenth of a processor, and
 * those of all accounts an eighth; what is not used is kept for 160 ms. The module has such
 * limits only for what nobody waits for in a call, and here that is all.
 *
 * Link with libtwheel-bpf.a (which has load.o for who loads, with -lbpf -lelf -lz besides, and
 * map.o for all others) and with libtwheel.
 */
#ifndef TWHEEL_BPF_H
#define TWHEEL_BPF_H

#ifndef __BPF__
#include <stdint.h>
#include <twheel_shared.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct twheel_bpf_stats - what became of a wheel
 * @runs: callbacks of the timer
 * @expired: timers that expired
 * @wakes: times that who waits was woken
 * @longest: the longest callback, in ns
 * @took: all callbacks, with their interrupts, in ns
 */
struct twheel_bpf_stats {
	__u64 runs;
	__u64 expired;
	__u64 wakes;
	__u64 longest;
	__u64 took;
};

#ifndef __BPF__

/** TWHEEL_BPF_AREA: descriptor of the area that is mapped */
#define TWHEEL_BPF_AREA 0
/** TWHEEL_BPF_WAKE: the one to poll */
#define TWHEEL_BPF_WAKE 1
/** TWHEEL_BPF_DOORBELL: what bpf(2) runs, if a deadline is earlier than the kernel looks */
#define TWHEEL_BPF_DOORBELL 2
/** TWHEEL_BPF_ALARM: timers go on while this one is open */
#define TWHEEL_BPF_ALARM 3
/** TWHEEL_BPF_FDS: how many descriptors a wheel has */
#define TWHEEL_BPF_FDS 4

/**
 * struct twheel_bpf_setup - what is asked for
 * @timers: how many, 1 to %TWHEEL_SHARED_MAX; as many as the next power of two are made, 256 at
 *	least. Each takes 25 bytes, which are charged to the memory cgroup of who loads
 * @account: of twheel_bpf_accounts(): whose callbacks these are, from 0; 0 without @accounts
 * @tick: in ns: 1,000 to 1,000,000,000; 0 for 4,000,000
 * @accounts: of twheel_bpf_accounts(), or -1 for an account of this wheel's own
 */
struct twheel_bpf_setup {
	uint32_t timers;
	uint32_t account;
	uint64_t tick;
	int accounts;
};

/**
 * struct twheel_bpf - a wheel, where it is mapped
 * @area: for what <twheel_shared.h> has
 * @consumer: of the buffer that is polled: up to where it was read
 * @producer: of the same: up to where it was written
 */
struct twheel_bpf {
	struct twheel_area area;
	unsigned long *consumer;
	const unsigned long *producer;
};

/**
 * twheel_bpf_accounts - make accounts, for wheels that share credit
 * @users: how many accounts, 1 to 1,000,000
 *
 * Who loads wheels for several users has one account for each. Its descriptor is not to be passed
 * on: who has it gives himself credit.
 *
 * Return: a descriptor, to be closed by close(2); -%EINVAL; -%EPERM without CAP_BPF, or another
 * error of bpf(2).
 */
int twheel_bpf_accounts(unsigned int users);

/**
 * twheel_bpf_load - make a wheel
 * @setup: what is asked for
 * @fds: out: its descriptors, which are closed by exec(2), and otherwise by who has them
 *
 * What libbpf has to say goes where libbpf_set_print() sends it, which is the standard error
 * unless set otherwise.
 *
 * Return: 0; -%EINVAL for what @setup can't have; -%EPERM without CAP_BPF and CAP_PERFMON;
 * -%ENOMEM; or another error of bpf(2) where the kernel does not take the program, as those
 * before 6.12 do not, nor those with PREEMPT_RT.
 */
int twheel_bpf_load(const struct twheel_bpf_setup *setup, int fds[TWHEEL_BPF_FDS]);

/**
 * twheel_bpf_map - map a wheel
 * @fds: its descriptors, which stay open as long as @wheel is used
 * @wheel: out
 *
 * Needs no right. A child that fork(2) makes has the mapping, too.
 *
 * Return: 0; -%EINVAL for descriptors that are no wheel's, or another error of mmap(2) or bpf(2).
 */
int twheel_bpf_map(const int fds[TWHEEL_BPF_FDS], struct twheel_bpf *wheel);

/**
 * twheel_bpf_unmap - end a mapping
 * @wheel: the wheel, whose timers go on
 */
void twheel_bpf_unmap(struct twheel_bpf *wheel);

/**
 * twheel_bpf_stats - what became of a wheel
 * @fds: its descriptors
 * @stats: out
 *
 * Needs no right.
 *
 * Return: 0, or an error of bpf(2).
 */
int twheel_bpf_stats(const int fds[TWHEEL_BPF_FDS], struct twheel_bpf_stats *stats);

/**
 * twheel_bpf_clear - what was polled is seen
 * @wheel: the wheel
 *
 * To be called when poll(2) said that there is something, before expiries are taken: what expires
 * from then on is said again. One thread at a time does that.
 */
static inline void twheel_bpf_clear(const struct twheel_bpf *wheel)
{
	unsigned long at = __atomic_load_n(wheel->producer, __ATOMIC_ACQUIRE);

	/* A full barrier, before the ring's tail is looked at: see notify() of the BPF program */
	__atomic_exchange_n(wheel->consumer, at, __ATOMIC_SEQ_CST);
}

#endif /* !__BPF__ */

#ifdef __cplusplus
}
#endif

#endif
