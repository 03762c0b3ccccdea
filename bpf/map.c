// SPDX-License-Identifier: LGPL-2.1-or-later
/* Maps a wheel that somebody loaded, see twheel_bpf.h. Needs neither a right nor libbpf. */
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

static void *map(int fd, size_t size, int protection, off_t offset)
{
	void *at = mmap(NULL, size, protection, MAP_SHARED, fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

static void *at(struct twheel_shared *head, uint32_t page)
{
	return (char *)head + (size_t)page * TW_BPF_PAGE;
}

int twheel_bpf_map(const int fds[TWHEEL_BPF_FDS], struct twheel_bpf *wheel)
{
	long page = sysconf(_SC_PAGESIZE);
	struct twheel_shared *head;
	struct tw_bpf_config config;
	uint32_t nr;
	size_t size;
	int ret = size_of(fds[TWHEEL_BPF_AREA], &size);

	if (ret)
		return ret;
	memset(wheel, 0, sizeof(*wheel));
	head = map(fds[TWHEEL_BPF_AREA], size, PROT_READ | PROT_WRITE, 0);
	if (!head)
		return -errno;
	wheel->area = (struct twheel_area){ .shared = head, .size = size };
	/* What is there may have been spoilt by others that have the descriptors. */
	nr = head->nr;
	if (nr < TW_BPF_GROUP || nr > TWHEEL_SHARED_MAX || nr & (nr - 1) ||
	    size != (size_t)tw_bpf_lay_out(nr, &config) * TW_BPF_PAGE) {
		twheel_bpf_unmap(wheel);
		return -EINVAL;
	}
	wheel->area.words = at(head, config.words);
	wheel->area.ring = at(head, config.ring);
	wheel->area.dirty = at(head, config.dirty);
	wheel->area.groups = at(head, config.groups);
	wheel->area.ring_mask = config.mask;
	wheel->area.group_shift = __builtin_ctz(TW_BPF_GROUP);
	wheel->area.nr = nr;
	wheel->area.fd = fds[TWHEEL_BPF_DOORBELL];
	wheel->consumer = map(fds[TWHEEL_BPF_WAKE], page, PROT_READ | PROT_WRITE, 0);
	wheel->producer = map(fds[TWHEEL_BPF_WAKE], page, PROT_READ, page);
	if (wheel->consumer && wheel->producer)
		return 0;
	ret = -errno;
	twheel_bpf_unmap(wheel);
	return ret;
}

void twheel_bpf_unmap(struct twheel_bpf *wheel)
{
	long page = sysconf(_SC_PAGESIZE);

	munmap(wheel->area.shared, wheel->area.size);
	if (wheel->consumer)
		munmap(wheel->consumer, page);
	if (wheel->producer)
		munmap((void *)wheel->producer, page);
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
