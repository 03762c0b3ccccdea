/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared timers whose kernel's side is a BPF program, which twheel-loader(8) has loaded. They are
 * beside a wheel in the program itself, which has all other timers, and whose descriptor is
 * readable for both.
 */
#ifndef TWHEEL_BPF_INTERNAL_H
#define TWHEEL_BPF_INTERNAL_H

#include <sys/types.h>

#include "twheel.h"
#include "twheel_bpf.h"

/**
 * struct bpf_wheel - the shared timers of a wheel
 * @fds: their descriptors
 * @area: the library's own mapping
 * @nr: how many were asked for
 * @drained: where the next drain goes on
 * @forks: user_forks of the process that reads
 */
struct bpf_wheel {
	int fds[TWHEEL_BPF_FDS];
	struct twheel_area area;
	uint32_t nr;
	uint32_t drained;
	unsigned int forks;
};

/* May this program ask the loader? 0 or a negative error */
int bpf_may(void);
/* Get shared timers of CLOCK_MONOTONIC. 0 or a negative error */
int bpf_open(uint32_t nr, uint64_t tick, struct bpf_wheel **bpfp);
void bpf_close(struct bpf_wheel *bpf);
int bpf_map(const struct bpf_wheel *bpf, struct twheel_area *area);
void bpf_info(const struct bpf_wheel *bpf, struct twheel_info *info);
/* Bytes of events of that size, -EAGAIN, or -EBADF in a child after fork(2) */
ssize_t bpf_read(struct bpf_wheel *bpf, void *events, size_t bytes, size_t size);
unsigned int bpf_drain(struct bpf_wheel *bpf, void *ops, unsigned int nr, unsigned int op_size);

#endif
