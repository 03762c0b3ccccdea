// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loads the BPF program, see twheel_bpf.h. It is linked in here, as clang made it. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "layout.h"

#define MOST_ACCOUNTS 1000000U
#define MOST_TICK 1000000000ULL
#define LEAST_TICK 1000ULL
#define TICK 4000000ULL

/* What clang made, from @name to @name_end */
#define OBJECT(name)							\
	asm(".section .rodata\n"					\
	    ".balign 8\n"						\
	    #name ":\n"							\
	    ".incbin \"" TW_BPF_FOLDER "/" #name ".bpf.o\"\n"		\
	    #name "_end:\n"						\
	    ".previous");						\
	extern const char name[], name##_end[]

OBJECT(wheel);
OBJECT(maps);

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

static __u32 rounded(__u32 timers)
{
	__u32 nr = TW_BPF_GROUP;

	while (nr < timers)
		nr *= 2;
	return nr;
}

uint64_t twheel_bpf_bytes(uint32_t timers)
{
	struct tw_bpf_config config;
	__u32 nr = rounded(timers);

	return (tw_bpf_lay_out(nr, &config) + tw_bpf_arena_pages(nr) + 1) * TW_BPF_PAGE;
}

/*
 * A map under a name that says whose it is. (libbpf gives maps the names of the source.) Returns
 * its descriptor.
 */
static int make_map(struct bpf_object *object, const char *kind, __u32 entries, __u32 owner)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, kind);
	struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.map_flags = bpf_map__map_flags(map),
		.map_extra = bpf_map__map_extra(map),
	};
	char name[TW_BPF_NAME];
	int fd, ret;

	snprintf(name, sizeof(name), TW_BPF_NAMES, kind, owner);
	fd = bpf_map_create(bpf_map__type(map), name, bpf_map__key_size(map),
			    bpf_map__value_size(map), entries, &opts);
	if (fd < 0)
		return -errno;
	ret = bpf_map__reuse_fd(map, fd);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int make_maps(struct bpf_object *object, __u32 timers, __u32 pages, __u32 owner,
		     int fds[TWHEEL_BPF_FDS])
{
	int arena = make_map(object, "arena", tw_bpf_arena_pages(timers), owner);

	if (arena < 0)
		return arena;
	close(arena);
	fds[TWHEEL_BPF_AREA] = make_map(object, "area", pages, owner);
	if (fds[TWHEEL_BPF_AREA] < 0)
		return fds[TWHEEL_BPF_AREA];
	fds[TWHEEL_BPF_WAKE] = make_map(object, "wake", TW_BPF_PAGE, owner);
	return fds[TWHEEL_BPF_WAKE] < 0 ? fds[TWHEEL_BPF_WAKE] : 0;
}

static int configure(struct bpf_object *object, const struct twheel_bpf_setup *setup,
		     __u32 *pages, int fds[TWHEEL_BPF_FDS])
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata.config");
	struct tw_bpf_config *config;
	__u32 timers = rounded(setup->timers);
	size_t size = 0;
	int ret;

	config = map ? (struct tw_bpf_config *)bpf_map__initial_value(map, &size) : NULL;
	if (!config || size < sizeof(*config))
		return -EINVAL;
	*pages = tw_bpf_lay_out(timers, config);
	config->account = setup->account + 1;
	config->tick = setup->tick ? setup->tick : TICK;
	if (getrandom(&config->phase, sizeof(config->phase), 0) < 0)
		return -errno;
	ret = make_maps(object, timers, *pages, setup->owner, fds);
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

/* It stays when the object is closed. */
static int copy_fd(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -errno : copy;
}

/* The rest of the descriptors */
static int take_fds(struct bpf_object *object, int fds[TWHEEL_BPF_FDS])
{
	struct bpf_program *doorbell = bpf_object__find_program_by_name(object, "tw_doorbell");

	fds[TWHEEL_BPF_ALARM] = copy_fd(bpf_object__find_map_fd_by_name(object, "alarms"));
	if (fds[TWHEEL_BPF_ALARM] < 0)
		return fds[TWHEEL_BPF_ALARM];
	fds[TWHEEL_BPF_DOORBELL] = copy_fd(bpf_program__fd(doorbell));
	return fds[TWHEEL_BPF_DOORBELL] < 0 ? fds[TWHEEL_BPF_DOORBELL] : 0;
}

static int load(struct bpf_object *object, const struct twheel_bpf_setup *setup,
		int fds[TWHEEL_BPF_FDS])
{
	const struct tw_bpf_config *config;
	__u32 pages;
	int ret = configure(object, setup, &pages, fds);

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
	object = bpf_object__open_mem(wheel, wheel_end - wheel, &opts);
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

/* The descriptor of what says which maps there are, or a negative error */
static int open_list(void)
{
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .object_name = "twheel" };
	struct bpf_object *object = bpf_object__open_mem(maps, maps_end - maps, &opts);
	struct bpf_program *program;
	int ret, link;

	if (!object)
		return -errno;
	program = bpf_object__find_program_by_name(object, "tw_maps");
	ret = bpf_object__load(object);
	if (!ret) {
		link = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, NULL);
		ret = link < 0 ? -errno : link;
	}
	bpf_object__close(object);
	return ret;
}

/* What of each kind there is. A wheel is counted by the kind of which there are most. */
struct counts {
	__u32 areas;
	__u32 wakes;
	__u64 bytes;
};

static void count(struct counts *counts, const struct tw_bpf_held *held)
{
	counts->areas += !strncmp(held->name, "tw_area", 7);
	counts->wakes += !strncmp(held->name, "tw_wake", 7);
	counts->bytes += (__u64)held->entries *
			 (held->value ? held->value :
			  strncmp(held->name, "tw_wake", 7) ? TW_BPF_PAGE : 1);
}

static void sum_up(const struct counts *counts, struct twheel_bpf_held *held)
{
	held->wheels = counts->areas > counts->wakes ? counts->areas : counts->wakes;
	held->bytes = counts->bytes;
}

int twheel_bpf_held(uint32_t owner, struct twheel_bpf_held *of_owner,
		    struct twheel_bpf_held *of_all)
{
	static int list = -1;
	struct counts users = {}, all = {};
	struct tw_bpf_held held;
	ssize_t ret;
	int fd;

	if (list < 0)
		list = open_list();
	if (list < 0)
		return list;
	fd = bpf_iter_create(list);
	if (fd < 0)
		return -errno;
	while ((ret = read(fd, &held, sizeof(held))) == sizeof(held)) {
		unsigned int uid;

		if (sscanf(held.name, "tw_%*4[a-z]%8x", &uid) != 1)
			continue;
		count(&all, &held);
		if (uid == owner)
			count(&users, &held);
	}
	if (ret)
		ret = ret < 0 ? -errno : -EIO;
	close(fd);
	sum_up(&users, of_owner);
	sum_up(&all, of_all);
	return ret;
}
