// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that changes all the time while calls are in it.
 */
#include "calls.h"
#include "pieces.h"

/*
 * The region that changes. It is far from all other memory, so that a number which
 * is half one of its addresses and half another number is no address of anything.
 */
#define CHAOS ((char *)0x140000000)
#define CHAOS_PAGES 64

static int chaos_file;
static char *alias;		/* of all of it, to be written to safely */

static void chaos_remap(size_t page, size_t pages)
{
	if (mmap(CHAOS + page * PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, chaos_file, page * PAGE) == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
}

/* For all processes, before there are more than one */
void chaos_init(void)
{
	chaos_file = memfd_create("calls", MFD_CLOEXEC);
	if (chaos_file < 0 || ftruncate(chaos_file, CHAOS_PAGES * PAGE))
		tap_bail("memfd: %s", strerror(errno));
	alias = mmap(NULL, CHAOS_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		     chaos_file, 0);
	if (alias == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	chaos_remap(0, CHAOS_PAGES);
}

/* Somewhere in it, or nowhere */
void *chaos_place(__u64 *seed)
{
	size_t at = below(seed, CHAOS_PAGES * PAGE - sizeof(struct twheel_stats));

	if (one_in(seed, 40))
		return nowhere(seed);
	if (one_in(seed, 3))
		return CHAOS + at;
	return CHAOS + (at & ~7UL);
}

/* Where it can be written to, if it is in the region at all */
void *chaos_alias(void *place)
{
	char *p = place;

	return p >= CHAOS && p < CHAOS + CHAOS_PAGES * PAGE ? alias + (p - CHAOS) :
							       NULL;
}

static __u64 some_head(__u64 *seed)
{
	struct twheel_op op = {
		.opcode = below(seed, 6),
		.flags = one_in(seed, 4),
	};
	__u64 head;

	memcpy(&head, &op, sizeof(head));
	return head;
}

/* A number that may mean something, but is no address of what matters */
__u64 chaos_value(__u64 *seed)
{
	switch (below(seed, 8)) {
	case 0:		return some_head(seed);
	case 1:		return (unsigned long)CHAOS + below(seed, CHAOS_PAGES * PAGE);
	case 2:		return below(seed, 2 * PAGE);
	case 3:		return below(seed, 100 * MSEC);
	case 4:		return now(CLOCK_MONOTONIC) + below(seed, 20 * MSEC);
	case 5:		return 1ULL << below(seed, 31);
	case 6:		return KTIME_MAX - below(seed, 2);
	default:	return random_next(seed) | 1ULL << 63;
	}
}

static void chaos_write(__u64 *seed)
{
	size_t at = below(seed, CHAOS_PAGES * PAGE - sizeof(__u64)) & ~3UL;
	__u64 value = chaos_value(seed);

	memcpy(alias + at, &value, one_in(seed, 4) ? 4 : 8);
}

static void chaos_ops(__u64 *seed)
{
	static const size_t sizes[] = {
		TWHEEL_OP_SIZE_ID, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_FULL,
	};
	size_t size = sizes[below(seed, ARRAY_SIZE(sizes))];
	size_t n = 1 + below(seed, 16), i;
	size_t at = below(seed, CHAOS_PAGES * PAGE - n * size);

	for (i = 0; i < n; i++) {
		struct twheel_op op = {
			.opcode = 1 + below(seed, 3),
			.deadline = below(seed, 30 * MSEC),
			.interval = one_in(seed, 6) ? below(seed, 9 * MSEC) : 0,
			.jitter = one_in(seed, 9) ? below(seed, MSEC) : 0,
		};

		memcpy(alias + (at & ~7UL) + i * size, &op, size);
	}
}

static void chaos_protect(__u64 *seed)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	size_t page = below(seed, CHAOS_PAGES);

	mprotect(CHAOS + page * PAGE, PAGE, prots[below(seed, 3)]);
}

/* (Another mapping takes its place, as a hole could be filled by anybody.) */
static void chaos_unmap(__u64 *seed)
{
	size_t page = below(seed, CHAOS_PAGES);

	mmap(CHAOS + page * PAGE, PAGE, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

static void chaos_punch(__u64 *seed)
{
	fallocate(chaos_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  below(seed, CHAOS_PAGES) * PAGE, PAGE);
}

/* One change */
void chaos_step(__u64 *seed)
{
	switch (below(seed, 24)) {
	case 0:
		return chaos_protect(seed);
	case 1:
		return chaos_unmap(seed);
	case 2:
		return chaos_punch(seed);
	case 3:
	case 4:
		return chaos_remap(below(seed, CHAOS_PAGES), 1);
	case 5:
		return chaos_remap(0, CHAOS_PAGES);
	case 6:
	case 7:
	case 8:
		return chaos_ops(seed);
	default:
		return chaos_write(seed);
	}
}
