/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for arrays and buffers, of which a known part can be used: it may end in a page
 * that is hidden, read-only or not there.
 */
#ifndef PIECES_H
#define PIECES_H

#include "device.h"

/* Pages of a room, and never anything behind them */
#define ROOM_PAGES 96

/* So much around a piece is watched. */
#define EDGE 64
#define EDGE_BYTE 0x5a

/* What a page can be; those after FAULT_KINDS only in pieces */
enum fault {
	FAULT_NONE, FAULT_READ_ONLY, FAULT_HIDDEN, FAULT_UNMAPPED, FAULT_KINDS,
	FAULT_TRUNCATED, FAULT_LAZY, FAULT_NOWHERE,
};

/*
 * The environment's FAULTS=1 is for what need not stand bad addresses, and those that are
 * not aligned.
 */
#define FAULTS number_of("FAULTS", FAULT_KINDS)

/* Memory of a file and shared, of a file and private, or of no file */
enum room_kind { ROOM_SHARED, ROOM_PRIVATE, ROOM_ANON, ROOM_KINDS };

/**
 * struct room - memory of which some pages may be bad
 * @kind: where its memory is from
 * @fd: the file, or -1
 * @at: where it is
 * @kept: the same, which is always good; where it is shared, at another address
 */
struct room {
	enum room_kind kind;
	int fd;
	char *at, *kept;
};

static inline void *room_map(const struct room *room, void *at, size_t page, size_t pages)
{
	int flags = room->kind == ROOM_SHARED ? MAP_SHARED : MAP_PRIVATE;

	if (room->kind == ROOM_ANON)
		flags |= MAP_ANONYMOUS;
	at = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags | (at ? MAP_FIXED : 0),
		  room->fd, page * PAGE);
	if (at == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return at;
}

static inline void room_init_as(struct room *room, enum room_kind kind)
{
	room->kind = kind;
	room->fd = kind == ROOM_ANON ? -1 : syscall(SYS_memfd_create, "room", MFD_CLOEXEC);
	if (kind != ROOM_ANON && (room->fd < 0 || ftruncate(room->fd, ROOM_PAGES * PAGE)))
		tap_bail("memfd_create: %s", strerror(errno));
	room->at = room_map(room, map_edge(ROOM_PAGES) - ROOM_PAGES * PAGE, 0, ROOM_PAGES);
	room->kept = kind == ROOM_SHARED ? room_map(room, NULL, 0, ROOM_PAGES) : room->at;
}

static inline void room_spoil(struct room *room, enum fault fault, size_t page)
{
	char *at = room->at + page * PAGE;
	int ret = 0;

	if (fault == FAULT_UNMAPPED)
		ret = munmap(at, PAGE);
	else if (fault == FAULT_TRUNCATED)
		ret = ftruncate(room->fd, page * PAGE);
	else if (fault == FAULT_HIDDEN || fault == FAULT_READ_ONLY)
		ret = mprotect(at, PAGE, fault == FAULT_HIDDEN ? PROT_NONE : PROT_READ);
	if (ret)
		tap_bail("spoiling a page as %d: %s", fault, strerror(errno));
}

static inline void room_mend(struct room *room, size_t page)
{
	char *at = room->at + page * PAGE;

	if (room->fd >= 0 && ftruncate(room->fd, ROOM_PAGES * PAGE))
		tap_bail("ftruncate: %s", strerror(errno));
	if (room->kind == ROOM_SHARED)
		room_map(room, at, page, 1);
	else if (mprotect(at, PAGE, PROT_READ | PROT_WRITE))
		tap_bail("mprotect: %s", strerror(errno));
}

/**
 * struct piece - a piece of a room, of which the kernel can use a part at least
 * @at: where it is
 * @kept: where it can be seen whole, or NULL if there is no memory
 * @size: its length
 * @usable: so much of it from its beginning
 * @page: the page of the room that is bad
 * @readable: all of it can be read at least
 */
struct piece {
	char *at, *kept;
	size_t size, usable, page;
	bool readable;
	enum fault fault;
	struct room *room;
};

static __thread struct room rooms[ROOM_KINDS];

/* How pieces are cut, and after how many bytes, if that is not to be drawn */
static __thread enum fault cut_by;
static __thread size_t cut_after;

/* For each thread that makes calls */
static inline void memory_init(void)
{
	int kind;

	for (kind = 0; kind < ROOM_KINDS; kind++)
		room_init_as(&rooms[kind], kind);
}

/* An address at which there is no memory of a program's */
static inline void *nowhere(__u64 *seed)
{
	static const unsigned long places[] = {
		0, 8, PAGE - 8, 0x7ffffffff000 - 8, 0x7ffffffff000, 0x800000000000,
		0xffff800000000000, 0xffffffff81000000, -8UL, -1UL,
	};

	return (void *)places[random_next(seed) % ARRAY_SIZE(places)];
}

/* What is to be cut lies across the end of a page half of the time. */
static inline size_t piece_offset(__u64 *seed, __u8 shape, size_t size, bool cut)
{
	size_t space = ROOM_PAGES * PAGE - size;

	if (cut && size < PAGE && random_next(seed) % 2)
		return PAGE - (random_next(seed) >> 11) % size;
	switch (shape & 3) {
	case 0:		return random_next(seed) % (space / 64 + 1) * 64;
	case 1:		return random_next(seed) % (space / 8 + 1) * 8;
	case 2:		return random_next(seed) % (space + 1);
	default:	return space;
	}
}

/* The bits of a shape that say which fault there is: none, if they are 0 */
#define SHAPE_FAULT (7 << 2)

static inline enum fault piece_fault(__u64 *seed, __u8 shape, enum room_kind kind)
{
	if (FAULTS == 1)
		return FAULT_NONE;
	switch ((shape & SHAPE_FAULT) >> 2) {
	case 3:
		return kind == ROOM_PRIVATE ? FAULT_LAZY : FAULT_NONE;
	case 4:
		return FAULT_HIDDEN;
	case 5:
		return FAULT_READ_ONLY;
	case 6:
		return kind == ROOM_ANON ? FAULT_HIDDEN : FAULT_TRUNCATED;
	case 7:
		return random_next(seed) % 3 ? FAULT_HIDDEN : FAULT_NOWHERE;
	default:
		return FAULT_NONE;
	}
}

/**
 * memory_piece() - some memory
 * @seed: for what is drawn
 * @shape: in which way it lies
 * @size: its length, which is less than that of a room
 *
 * Return: the piece, all of which can be used before memory_hide().
 */
static inline struct piece memory_piece(__u64 *seed, __u8 shape, size_t size)
{
	struct room *room = &rooms[(shape >> 5) % ROOM_KINDS];
	struct piece piece = { .size = size, .usable = size, .room = room };
	size_t at, end;

	piece.fault = size ? piece_fault(seed, shape, room->kind) : FAULT_NONE;
	at = piece_offset(seed, shape, size, piece.fault && piece.fault != FAULT_LAZY);
	if (cut_by) {
		piece.fault = cut_after < size ? cut_by : FAULT_NONE;
		at = (cut_after + PAGE - 1) / PAGE * PAGE - cut_after;
	}
	if (FAULTS == 1)
		at &= -sizeof(__u64);
	end = at + size;
	piece.readable = piece.fault == FAULT_READ_ONLY;
	if (piece.fault == FAULT_NOWHERE) {
		piece.at = nowhere(seed);
		piece.usable = 0;
		return piece;
	}
	piece.at = room->at + at;
	piece.kept = room->kept + at;
	memset(piece.kept - (at < EDGE ? at : EDGE), EDGE_BYTE, at < EDGE ? at : EDGE);
	memset(piece.kept + size, EDGE_BYTE,
	       ROOM_PAGES * PAGE - end < EDGE ? ROOM_PAGES * PAGE - end : EDGE);
	if (piece.fault == FAULT_NONE || piece.fault == FAULT_LAZY)
		return piece;
	piece.page = at / PAGE + random_next(seed) % ((end - 1) / PAGE - at / PAGE + 1);
	if (cut_by)
		piece.page = (at + cut_after) / PAGE;
	piece.usable = piece.page * PAGE > at ? piece.page * PAGE - at : 0;
	return piece;
}

/* What it holds is in the file, and its pages come when they are touched. */
static inline void make_lazy(const struct piece *piece)
{
	size_t from = (piece->at - piece->room->at) / PAGE;
	size_t to = (piece->at + piece->size + EDGE - piece->room->at) / PAGE + 1;
	size_t nr = (to < ROOM_PAGES ? to : ROOM_PAGES) - from;
	char *at = piece->room->at + from * PAGE;

	if (pwrite(piece->room->fd, at, nr * PAGE, from * PAGE) != (ssize_t)(nr * PAGE))
		tap_bail("pwrite: %s", strerror(errno));
	room_map(piece->room, at, from, nr);
}

/* From here on to memory_show(), the kernel can use only what the piece says. */
static inline void memory_hide(const struct piece *piece)
{
	if (piece->fault == FAULT_LAZY)
		make_lazy(piece);
	else if (piece->fault != FAULT_NOWHERE)
		room_spoil(piece->room, piece->fault, piece->page);
}

static inline void memory_show(const struct piece *piece)
{
	if (piece->fault != FAULT_NONE && piece->fault < FAULT_LAZY)
		room_mend(piece->room, piece->page);
}

/**
 * memory_check() - was anything written around a piece?
 * @piece: the piece, after memory_show()
 *
 * Return: true if nothing was.
 */
static inline bool memory_check(const struct piece *piece)
{
	char *room, *p, *to;

	/* What was cut off has lost all. */
	if (!piece->kept || piece->fault == FAULT_TRUNCATED)
		return true;
	room = piece->room->kept;
	p = piece->kept - room < EDGE ? room : piece->kept - EDGE;
	to = piece->kept + piece->size + EDGE;
	if (to > room + ROOM_PAGES * PAGE)
		to = room + ROOM_PAGES * PAGE;
	for (; p < to; p++) {
		if (p == piece->kept)
			p += piece->size;
		if (p < to && *p != EDGE_BYTE)
			return false;
	}
	return true;
}

#endif
