// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Maps a wheel that somebody loaded, see twheel_bpf.h. Needs neither a right nor libbpf. It is part
 * of libtwheel, too, for the wheels that it is given by twheel-loader(8).
 */
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout.h"

static int bpf(int command, union bpf_attr *attr, unsigned int size)
{
	return syscall(SYS_bpf, command, attr, size) ? -errno : 0;
}

/* Bytes of the area, which only the kernel knows for sure */
static int size_of(int fd, size_t *size)
{
	struct bpf_map_info info = {};
	union bpf_attr attr = {};
	int ret;

	attr.info.bpf_fd = fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	ret = bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr));
	if (ret)
		return ret;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != TW_BPF_PAGE)
		return -EINVAL;
	*size = (size_t)info.max_entries * TW_BPF_PAGE;
	return 0;
}

static void *at(struct twheel_shared *head, uint32_t page)
{
	return (char *)head + (size_t)page * TW_BPF_PAGE;
}

/* In place of what is there */
static int map_at(void *place, size_t size, int protection, int fd, off_t offset)
{
	return mmap(place, size, protection, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED ?
	       -errno : 0;
}

/*
 * The area, and behind it the two pages of the buffer that is polled, where
 * twheel_internal_seen() looks for them.
 */
static int map_all(const int fds[TWHEEL_BPF_FDS], char *place, size_t size, long page)
{
	int ret = map_at(place, size, PROT_READ | PROT_WRITE, fds[TWHEEL_BPF_AREA], 0);

	if (!ret)
		ret = map_at(place + size, page, PROT_READ | PROT_WRITE, fds[TWHEEL_BPF_WAKE], 0);
	if (!ret)
		ret = map_at(place + size + page, page, PROT_READ, fds[TWHEEL_BPF_WAKE], page);
	return ret;
}

int twheel_bpf_map(const int fds[TWHEEL_BPF_FDS], struct twheel_area *area)
{
	long page = sysconf(_SC_PAGESIZE);
	struct twheel_shared *head;
	struct tw_bpf_config config;
	size_t size, all;
	uint32_t nr;
	int ret = size_of(fds[TWHEEL_BPF_AREA], &size);

	if (ret)
		return ret;
	all = size + 2 * page;
	head = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (head == MAP_FAILED)
		return -errno;
	ret = map_all(fds, (char *)head, size, page);
	/* What is there may have been spoilt by others that have the descriptors. */
	nr = ret ? 0 : __atomic_load_n(&head->nr, __ATOMIC_RELAXED);
	if (!ret && (nr < TW_BPF_GROUP || nr > TWHEEL_SHARED_MAX || nr & (nr - 1) ||
		     size != (size_t)tw_bpf_lay_out(nr, &config) * TW_BPF_PAGE))
		ret = -EINVAL;
	if (ret) {
		munmap(head, all);
		return ret;
	}
	*area = (struct twheel_area){
		.shared = head,
		.words = at(head, config.words),
		.ring = at(head, config.ring),
		.dirty = at(head, config.dirty),
		.groups = at(head, config.groups),
		.ring_mask = config.mask,
		.group_shift = __builtin_ctz(TW_BPF_GROUP),
		.nr = nr,
		.fd = fds[TWHEEL_BPF_DOORBELL],
		.size = all,
	};
	return 0;
}

int twheel_bpf_stats(const int fds[TWHEEL_BPF_FDS], struct twheel_bpf_stats *stats)
{
	char alarm[256];
	union bpf_attr attr = {};
	__u32 key = 0;
	int ret;

	attr.map_fd = fds[TWHEEL_BPF_ALARM];
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)alarm;
	ret = bpf(BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr));
	/* Behind the timer, which is not told */
	if (!ret)
		memcpy(stats, alarm + sizeof(struct bpf_timer), sizeof(*stats));
	return ret;
}
