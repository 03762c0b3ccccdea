/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared timers without the module: the kernel's side is a BPF program, which stock kernels from
 * 6.12 on take, and which taints none. What <twheel_shared.h> does is the same on both.
 *
 * (Programs without the capabilities have these timers by libtwheel, from twheel-loader(8), which
 * is built on this: see twheel_setup(3).)
 *
 * Who has CAP_BPF and CAP_PERFMON loads a wheel, and has four descriptors then. It can pass them
 * on to any other process, by fork(2) or a socket: that needs no right of its own to map the
 * timers, to use them, and to wait for them. The timers end with the last of the descriptors
 * %TWHEEL_BPF_ALARM.
 *
 *	struct twheel_bpf_setup setup = { .timers = 100000, .accounts = -1 };
 *	int fds[TWHEEL_BPF_FDS];
 *	struct twheel_area area;
 *
 *	if (twheel_bpf_load(&setup, fds) || twheel_bpf_map(fds, &area))
 *		...
 *	twheel_shared_arm(&area, 5, deadline);
 *	poll() or epoll_wait() of fds[TWHEEL_BPF_WAKE], for POLLIN
 *	while ((n = twheel_shared_take(&area, timers, 256)))
 *		...
 *
 * The clock is CLOCK_MONOTONIC of the host. Expiries are never early. They are late where there
 * is no credit: the callbacks of one account, a user's, have a sixteenth of a processor, and
 * those of all accounts an eighth; what is not used is kept for 160 ms. Where all want more than
 * that, who takes little does not wait for it. The module has such limits only for what nobody
 * waits for in a call, and here that is all.
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
 * @owner: uid of whom twheel_bpf_held() is to count it as. 0 for root, or where nobody counts
 */
struct twheel_bpf_setup {
	uint32_t timers;
	uint32_t account;
	uint64_t tick;
	int accounts;
	uint32_t owner;
};

/**
 * struct twheel_bpf_held - what wheels there are
 * @wheels: how many. One is there as long as any of its descriptors or mappings is
 * @bytes: of their memory
 */
struct twheel_bpf_held {
	uint32_t wheels;
	uint64_t bytes;
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
 * twheel_bpf_held - what wheels are there
 * @owner: a uid
 * @of_owner: out: those that were loaded for it
 * @of_all: out: all that were loaded by twheel_bpf_load(), by whichever process
 *
 * The kernel is asked, so that it is right whoever has passed descriptors on, or has died. For one
 * thread at a time. It needs what twheel_bpf_load() does, and the kernel's BTF in /sys/kernel/btf.
 *
 * Return: 0, or an error of bpf(2).
 */
int twheel_bpf_held(uint32_t owner, struct twheel_bpf_held *of_owner,
		    struct twheel_bpf_held *of_all);

/**
 * twheel_bpf_bytes - what memory a wheel takes
 * @timers: how many, as of &struct twheel_bpf_setup
 *
 * Return: as twheel_bpf_held() counts it.
 */
uint64_t twheel_bpf_bytes(uint32_t timers);

/**
 * twheel_bpf_map - map a wheel
 * @fds: its descriptors, which stay open as long as it is used
 * @area: out: for what <twheel_shared.h> has; twheel_shared_unmap() ends it, and the timers go on
 *
 * Needs no right. A child that fork(2) makes has the mapping, too. twheel_shared_take() that finds
 * nothing is what ends that the descriptor is readable: so take until there is none.
 *
 * Return: 0; -%EINVAL for descriptors that are no wheel's, or another error of mmap(2) or bpf(2).
 */
int twheel_bpf_map(const int fds[TWHEEL_BPF_FDS], struct twheel_area *area);

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

#endif /* !__BPF__ */

#ifdef __cplusplus
}
#endif

#endif
