/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bpf/wheel.bpf.c takes from libbpf and from the kernel, for an ordinary program: see
 * simulate.c, which has the functions.
 */
#ifndef BPF_HELPERS_H
#define BPF_HELPERS_H

#include <linux/types.h>

#define SEC(name)
#define __ksym
#define TW_USES(map) ((void)(map))
#define __noinline __attribute__((__noinline__))
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))

void *bpf_map_lookup_elem(void *map, void *key);
u64 bpf_ktime_get_ns(void);
long bpf_timer_init(struct bpf_timer *timer, void *map, u64 flags);
long bpf_timer_set_callback(struct bpf_timer *timer, void *callback);
long bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags);
u64 bpf_ringbuf_query(void *ring, u64 flags);
long bpf_ringbuf_output(void *ring, void *data, u64 size, u64 flags);

#endif /* BPF_HELPERS_H */
