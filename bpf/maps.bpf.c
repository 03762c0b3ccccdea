// SPDX-License-Identifier: GPL-2.0
/*
 * Which maps of wheels there are, as a file that is read: see twheel_bpf_held(). The kernel knows,
 * whoever has their descriptors or mappings by now, and whatever became of who made them.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

const char tw_licence[] SEC("license") = "GPL";

/* What is taken of the kernel's structures. Where it is in them, libbpf finds out. */
#define OF_KERNEL __attribute__((preserve_access_index))

struct bpf_map {
	u32 value_size;
	u32 max_entries;
	char name[16];
} OF_KERNEL;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} OF_KERNEL;

struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
} OF_KERNEL;

SEC("iter/bpf_map")
int tw_maps(struct bpf_iter__bpf_map *context)
{
	struct bpf_map *map = context->map;
	struct tw_bpf_held held = {};
	int i;

	if (!map || map->name[0] != 't' || map->name[1] != 'w' || map->name[2] != '_')
		return 0;
	for (i = 0; i < TW_BPF_NAME; i++)
		held.name[i] = map->name[i];
	held.entries = map->max_entries;
	held.value = map->value_size;
	bpf_seq_write(context->meta->seq, &held, sizeof(held));
	return 0;
}
