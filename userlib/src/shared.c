// SPDX-License-Identifier: LGPL-2.1-or-later
/* Shared timers: the mapping, and what twheel_shared.h does seldom. */

#include <linux/bpf.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"
#include "twheel_shared.h"

static void *at(struct twheel_shared *shared, uint64_t offset)
{
	return (char *)shared + offset;
}

int twheel_shared_map(struct twheel *tw, struct twheel_area *area)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel_shared *shared;
	int ret;

	if (tw->bpf)
		return bpf_map(tw->bpf, area);
	ret = twheel_info(tw, &info);
	if (ret < 0)
		return ret;
	if (!info.shared)
		return -EINVAL;
	shared = mmap(NULL, info.shared_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      tw->fd, 0);
	if (shared == MAP_FAILED)
		return -errno;
	*area = (struct twheel_area){
		.shared = shared,
		.words = at(shared, shared->words),
		.ring = at(shared, shared->ring),
		.dirty = at(shared, shared->dirty),
		.groups = at(shared, shared->groups),
		.ring_mask = shared->ring_mask,
		.group_shift = __builtin_ctz(shared->group),
		.nr = shared->nr,
		.fd = tw->fd,
		.size = info.shared_size,
	};
	return 0;
}

void twheel_shared_unmap(struct twheel_area *area)
{
	munmap(area->shared, area->size);
}

static void mark(uint64_t *words, unsigned long bit)
{
	uint64_t mask = 1ULL << bit % 64;

	words += bit / 64;
	if (!(__atomic_load_n(words, __ATOMIC_SEQ_CST) & mask))
		__atomic_fetch_or(words, mask, __ATOMIC_SEQ_CST);
}

static int ring_doorbell(const struct twheel_shared *shared, int fd)
{
	struct twheel_doorbell doorbell = { .size = sizeof(doorbell) };
	union bpf_attr attr = { .test.prog_fd = fd };

	if (shared->features & TWHEEL_AREA_BPF)
		return result(syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr.test)));
	return result(ioctl(fd, TWHEEL_IOC_DOORBELL, &doorbell));
}

int twheel_internal_push(struct twheel_shared *shared, int fd, unsigned long group,
			 uint64_t word)
{
	mark(at(shared, shared->groups), group);
	if (word >= __atomic_load_n(&shared->next_wake, __ATOMIC_SEQ_CST))
		return 0;
	return ring_doorbell(shared, fd);
}

int twheel_internal_seen(const struct twheel_area *area)
{
	unsigned long page = sysconf(_SC_PAGESIZE);
	unsigned long *consumer = at(area->shared, area->size - 2 * page);
	unsigned long end = __atomic_load_n((unsigned long *)at(area->shared, area->size - page),
					    __ATOMIC_ACQUIRE);
	unsigned long seen = __atomic_load_n(consumer, __ATOMIC_RELAXED);

	/* Never back: another thread may have seen more meanwhile. */
	while ((long)(end - seen) > 0)
		/* A full barrier, before the ring's tail is looked at: see notify() in bpf/ */
		if (__atomic_compare_exchange_n(consumer, &seen, end, 0, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return 1;
	return 0;
}

int twheel_shared_recover(const struct twheel_area *area)
{
	unsigned int n;

	for (n = 0; n < area->nr; n++) {
		uint64_t *at = &area->words[n];
		uint64_t word = __atomic_load_n(at, __ATOMIC_SEQ_CST);

		/* The timer expires again, as its entry may have left the ring */
		if (word & TWHEEL_WORD_FIRED)
			__atomic_exchange_n(at, (word & TWHEEL_WORD_NEVER) |
					    TWHEEL_WORD_ARMED, __ATOMIC_SEQ_CST);
		else if (word & TWHEEL_WORD_IDLE)
			continue;
		mark(area->dirty, n);
		mark(area->groups, n >> area->group_shift);
	}
	return ring_doorbell(area->shared, area->fd);
}
