// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for calls: pieces that lie in every way, of which a known part can be
 * used; and a region that changes all the time.
 */
#include "calls.h"

#define ARENA_PAGES 40
#define EDGE 64			/* so much around a piece is watched */
#define EDGE_BYTE 0x5a

/* Private, of a file and shared, of a file and private */
enum { ARENA_ANON, ARENA_SHARED, ARENA_PRIVATE, ARENAS };
enum { USABLE, HIDDEN, READ_ONLY, TRUNCATED, NOWHERE };

static __thread char *arenas[ARENAS];
static __thread int files[ARENAS];

static int file_of(size_t pages)
{
	int fd = memfd_create("calls", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, pages * PAGE))
		tap_bail("memfd: %s", strerror(errno));
	return fd;
}

/* So many pages between two that can't be touched */
static char *map_arena(int flags, int fd)
{
	char *p = map_pages(ARENA_PAGES + 2, PROT_NONE);

	p = mmap(p + PAGE, ARENA_PAGES * PAGE, PROT_READ | PROT_WRITE,
		 flags | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return p;
}

/* For each thread that makes calls */
void memory_init(void)
{
	files[ARENA_ANON] = -1;
	arenas[ARENA_ANON] = map_arena(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	files[ARENA_SHARED] = file_of(ARENA_PAGES);
	arenas[ARENA_SHARED] = map_arena(MAP_SHARED, files[ARENA_SHARED]);
	files[ARENA_PRIVATE] = file_of(ARENA_PAGES);
	arenas[ARENA_PRIVATE] = map_arena(MAP_PRIVATE, files[ARENA_PRIVATE]);
}

static void *nowhere(__u64 *seed)
{
	static const unsigned long places[] = {
		0, 8, PAGE - 8, 0x7ffffffff000 - 8, 0x7ffffffff000,
		0x800000000000, 0xffff800000000000, 0xffffffff81000000, -8UL, -1UL,
	};

	return (void *)places[below(seed, ARRAY_SIZE(places))];
}

static size_t offset(__u64 *seed, __u8 shape, size_t size)
{
	size_t room = ARENA_PAGES * PAGE - size;

	switch (shape & 3) {
	case 0:		return below(seed, room / 64 + 1) * 64;
	case 1:		return below(seed, room / 8 + 1) * 8;
	case 2:		return below(seed, room + 1);
	default:	return room;
	}
}

static void mark_edges(const struct piece *piece, char *arena)
{
	size_t from = piece->at - arena;
	size_t to = from + piece->size;
	size_t room = ARENA_PAGES * PAGE - to;

	memset(piece->at - (from < EDGE ? from : EDGE), EDGE_BYTE,
	       from < EDGE ? from : EDGE);
	memset(piece->at + piece->size, EDGE_BYTE, room < EDGE ? room : EDGE);
}

/*
 * @size bytes, of whose shape is made from @shape. They can be filled in at @kept,
 * if that is not NULL, before memory_hide().
 */
struct piece memory_piece(__u64 *seed, __u8 shape, size_t size)
{
	int arena = (shape >> 5) % ARENAS;
	struct piece piece = { .size = size, .usable = size, .arena = arena };
	size_t at;

	switch (shape >> 2 & 7) {
	case 4:
		piece.kind = HIDDEN;
		break;
	case 5:
		piece.kind = READ_ONLY;
		piece.readable = true;
		break;
	case 6:
		piece.kind = files[arena] < 0 ? HIDDEN : TRUNCATED;
		break;
	case 7:
		piece.kind = one_in(seed, 3) ? NOWHERE : HIDDEN;
		break;
	}
	if (piece.kind == NOWHERE) {
		piece.at = nowhere(seed);
		piece.usable = 0;
		return piece;
	}
	at = offset(seed, shape, size);
	piece.at = arenas[arena] + at;
	piece.kept = piece.at;
	mark_edges(&piece, arenas[arena]);
	if (piece.kind == USABLE || !size)
		return piece;
	piece.page = at / PAGE + below(seed, (at + size - 1) / PAGE -
					     at / PAGE + 1);
	piece.usable = piece.page * PAGE > at ? piece.page * PAGE - at : 0;
	return piece;
}

static void protect(const struct piece *piece, int prot)
{
	if (mprotect(arenas[piece->arena] + piece->page * PAGE, PAGE, prot))
		tap_bail("mprotect: %s", strerror(errno));
}

static void truncate_file(const struct piece *piece, size_t pages)
{
	if (ftruncate(files[piece->arena], pages * PAGE))
		tap_bail("ftruncate: %s", strerror(errno));
}

/* From here on to memory_show(), the kernel can use only what it says there. */
void memory_hide(const struct piece *piece)
{
	if (!piece->size)
		return;
	if (piece->kind == HIDDEN)
		protect(piece, PROT_NONE);
	else if (piece->kind == READ_ONLY)
		protect(piece, PROT_READ);
	else if (piece->kind == TRUNCATED)
		truncate_file(piece, piece->page);
}

void memory_show(const struct piece *piece)
{
	if (!piece->size)
		return;
	if (piece->kind == HIDDEN || piece->kind == READ_ONLY)
		protect(piece, PROT_READ | PROT_WRITE);
	else if (piece->kind == TRUNCATED)
		truncate_file(piece, ARENA_PAGES);
}

/* Nothing may be written around a piece. */
void memory_check(const struct piece *piece)
{
	char *from, *to, *p;

	/* What was cut off has lost all. */
	if (!piece->kept || piece->kind == TRUNCATED)
		return;
	from = piece->at - EDGE;
	if (from < arenas[piece->arena])
		from = arenas[piece->arena];
	to = piece->at + piece->size + EDGE;
	if (to > arenas[piece->arena] + ARENA_PAGES * PAGE)
		to = arenas[piece->arena] + ARENA_PAGES * PAGE;
	for (p = from; p < to; p++) {
		if (p == piece->at)
			p += piece->size;
		if (p < to && *p != EDGE_BYTE)
			return broken("byte %td of a piece of %zu was written to",
				      p - piece->at, piece->size);
	}
}

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
	chaos_file = file_of(CHAOS_PAGES);
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
