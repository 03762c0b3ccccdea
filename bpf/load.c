// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loads the BPF program, see twheel_bpf.h. It is linked in here, as clang made it. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "layout.h"

#define MOST_ACCOUNTS 1000000U
#define MOST_TICK 1000000000ULL
#define LEAST_TICK 1000ULL
#define TICK 4000000ULL

asm(".section .rodata\n"
    ".balign 8\n"
    "tw_bpf_object:\n"
    ".incbin \"" TW_BPF_OBJECT "\"\n"
    "tw_bpf_object_end:\n"
    ".previous");
extern const char tw_bpf_object[], tw_bpf_object_end[];

static const char *const fd_names[] = {
	[TWHEEL_BPF_AREA] = "area",
	[TWHEEL_BPF_WAKE] = "wake",
	[TWHEEL_BPF_ALARM] = "alarms",
};

int twheel_bpf_accounts(unsigned int users)
{
	int fd;

	if (!users || users > MOST_ACCOUNTS)
		return -EINVAL;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "twheel_accounts", sizeof(__u32),
			    sizeof(struct tw_bpf_account), users + 1, NULL);
	return fd < 0 ? -errno : fd;
}

/* The area as it is before the first timer is armed */
static int fill_area(int fd, const struct tw_bpf_config *config, size_t size)
{
	struct twheel_shared *head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	__u64 *words;
	__u32 i;

	if (head == MAP_FAILED)
		return -errno;
	*head = (struct twheel_shared){
		.size = sizeof(*head),
		.nr = config->mask + 1,
		.features = TWHEEL_AREA_BPF,
		.ring_mask = config->mask,
		.group = TW_BPF_GROUP,
		.groups = (__u64)config->groups * TW_BPF_PAGE,
		.dirty = (__u64)config->dirty * TW_BPF_PAGE,
		.ring = (__u64)config->ring * TW_BPF_PAGE,
		.words = (__u64)config->words * TW_BPF_PAGE,
		.next_wake = ~0ULL,
	};
	words = (__u64 *)((char *)head + head->words);
	for (i = 0; i <= config->mask; i++)
		words[i] = TWHEEL_WORD_IDLE;
	munmap(head, size);
	return 0;
}

static int configure(struct bpf_object *object, const struct twheel_bpf_setup *setup,
		     __u32 *pages)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata.config");
	struct tw_bpf_config *config;
	__u32 timers = TW_BPF_GROUP;
	size_t size = 0;
	int ret;

	config = map ? (struct tw_bpf_config *)bpf_map__initial_value(map, &size) : NULL;
	if (!config || size < sizeof(*config))
		return -EINVAL;
	while (timers < setup->timers)
		timers *= 2;
	*pages = tw_bpf_lay_out(timers, config);
	config->account = setup->account + 1;
	config->tick = setup->tick ? setup->tick : TICK;
	if (getrandom(&config->phase, sizeof(config->phase), 0) < 0)
		return -errno;
	ret = bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "area"), *pages);
	if (!ret && setup->accounts >= 0)
		ret = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, "accounts"),
					setup->accounts);
	return ret;
}

static int start(struct bpf_object *object)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, "tw_start");
	struct bpf_test_run_opts opts = { .sz = sizeof(opts) };

	if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts))
		return -errno;
	return (int)opts.retval;
}

/* Descriptors that stay when the object is closed */
static int take_fds(struct bpf_object *object, int fds[TWHEEL_BPF_FDS])
{
	int i;

	for (i = 0; i < TWHEEL_BPF_FDS; i++)
		fds[i] = -1;
	for (i = 0; i < TWHEEL_BPF_FDS; i++) {
		int fd = i == TWHEEL_BPF_DOORBELL ?
			 bpf_program__fd(bpf_object__find_program_by_name(object, "tw_doorbell")) :
			 bpf_object__find_map_fd_by_name(object, fd_names[i]);

		fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (fds[i] < 0)
			return -errno;
	}
	return 0;
}

static int load(struct bpf_object *object, const struct twheel_bpf_setup *setup,
		int fds[TWHEEL_BPF_FDS])
{
	const struct tw_bpf_config *config;
	__u32 pages;
	int ret = configure(object, setup, &pages);

	if (!ret)
		ret = bpf_object__load(object);
	if (!ret)
		ret = take_fds(object, fds);
	if (ret)
		return ret;
	config = bpf_map__initial_value(bpf_object__find_map_by_name(object, ".rodata.config"),
					&(size_t){ 0 });
	ret = fill_area(fds[TWHEEL_BPF_AREA], config, (size_t)pages * TW_BPF_PAGE);
	return ret ? ret : start(object);
}

int twheel_bpf_load(const struct twheel_bpf_setup *setup, int fds[TWHEEL_BPF_FDS])
{
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .object_name = "twheel" };
	struct bpf_object *object;
	int i, ret;

	if (!setup->timers || setup->timers > TWHEEL_SHARED_MAX ||
	    (setup->tick && (setup->tick < LEAST_TICK || setup->tick > MOST_TICK)) ||
	    setup->account >= MOST_ACCOUNTS || (setup->accounts < 0 && setup->account))
		return -EINVAL;
	object = bpf_object__open_mem(tw_bpf_object, tw_bpf_object_end - tw_bpf_object, &opts);
	if (!object)
		return -errno;
	for (i = 0; i < TWHEEL_BPF_FDS; i++)
		fds[i] = -1;
	ret = load(object, setup, fds);
	bpf_object__close(object);
	for (i = 0; ret && i < TWHEEL_BPF_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ret;
}
