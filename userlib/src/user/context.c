// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in the program itself: its life, its memory and its settings. See
 * context.h.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "context.h"
#include "validate.h"

/* Most timers of a wheel, unless set otherwise, and the end of what may be set */
#define USER_LIMIT (1U << 24)
#define USER_MOST_TIMERS (1U << 30)

/* More than this no structure is taken for */
#define PAGE 4096

int user_open(int flags, struct user_wheel **uwp)
{
	struct user_wheel *uw = calloc(1, sizeof(*uw));
	struct tw_clock clock;
	int ret;

	if (!uw)
		return -ENOMEM;
	ret = user_open_fds(uw, flags);
	if (ret) {
		user_close_fds(uw);
		free(uw);
		return ret;
	}
	pthread_mutex_init(&uw->lock, NULL);
	uw->limit = USER_LIMIT;
	uw->unit = TWHEEL_EVENT_SIZE_FULL;
	/* Without any, as early after boot, they are still as good as jitter needs */
	if (getrandom(&uw->random, sizeof(uw->random), GRND_NONBLOCK) < 0)
		uw->random = (uintptr_t)uw;

	tw_clock_init(&clock);
	tw_table_init(&uw->table);
	tw_table_init(&uw->periods);
	tw_wheel_init(&uw->wheel, &uw->table, &clock,
		      tw_clock_floor(&clock, tw_clock_now(&clock)), uw->random);
	user_start_clock(uw, clock.id);
	*uwp = uw;
	return 0;
}

void user_free_chunks(struct tw_chunk *chunk)
{
	while (chunk) {
		struct tw_chunk *next = chunk->next;

		free(chunk->nodes);
		free(chunk);
		chunk = next;
	}
}

static void free_table(struct tw_table *table)
{
	struct tw_chunk *chunk;

	while ((chunk = tw_table_take_chunk(table)))
		user_free_chunks(chunk);
	free(tw_table_end(table));
}

/* From now on all who call hold that lock, but for user_close(). */
void user_set_outer(struct user_wheel *uw, pthread_mutex_t *outer)
{
	uw->outer = outer;
}

void user_close(struct user_wheel *uw)
{
	pthread_mutex_t *lock = uw->outer ?: &uw->lock;

	user_close_fds(uw);
	/*
	 * In a child after fork(2), which a thread that is not there may have been in the
	 * midst of changing: then it is lost.
	 */
	if (pthread_mutex_trylock(lock))
		return;
	pthread_mutex_unlock(lock);
	pthread_mutex_destroy(&uw->lock);
	free_table(&uw->table);
	free_table(&uw->periods);
	free(uw->wheel.slots);
	free(uw);
}

int user_fd(const struct user_wheel *uw)
{
	return uw->epoll;
}

static int add_slots(struct user_wheel *uw, bool few)
{
	struct tw_slot *old = uw->wheel.slots;
	struct tw_slot *slots = calloc(1, few ? TW_FEW_SLOTS_BYTES : TW_SLOTS_BYTES);

	if (!slots)
		return -ENOMEM;
	tw_wheel_set_slots(&uw->wheel, slots, few);
	free(old);
	return 0;
}

/**
 * user_add_all_slots() - a timer is further away than those slots that a wheel has
 * @uw: the wheel, locked
 *
 * Where there is no memory it stays as it is, and is woken more often.
 */
void user_add_all_slots(struct user_wheel *uw)
{
	if (add_slots(uw, false))
		uw->wheel.far = false;
}

static int grow_table(struct tw_table *table)
{
	u32 max_chunks = max_t(u32, 2 * table->max_chunks, TW_FIRST_DIR);
	void *dir;

	if (max_chunks > TW_TABLE_MAX_CHUNKS)
		return -ENOMEM;
	dir = malloc(TW_DIR_BYTES((size_t)max_chunks));
	if (!dir)
		return -ENOMEM;
	free(tw_table_grow(table, dir, max_chunks));
	return 0;
}

static int add_chunk(struct tw_table *table)
{
	u32 bytes = tw_table_short(table) ? TW_CHUNK_BYTES : tw_table_next_bytes(table, 1);
	struct tw_chunk *chunk = malloc(sizeof(*chunk));
	/* Two nodes to a cache line */
	struct tw_node *nodes = aligned_alloc(64, bytes);

	if (!chunk || !nodes) {
		free(chunk);
		free(nodes);
		return -ENOMEM;
	}
	memset(nodes, 0, bytes);
	if (tw_table_short(table)) {
		free(chunk);
		free(tw_table_lengthen(table, nodes));
	} else {
		tw_table_add(table, chunk, nodes, bytes);
	}
	return 0;
}

/**
 * user_add_nodes() - get memory for nodes, as there are no free ones
 * @uw: the wheel, locked
 * @table: its table, or that of its periods
 *
 * Return: 0 or -ENOMEM.
 */
int user_add_nodes(struct user_wheel *uw, struct tw_table *table)
{
	bool some = table->nr_chunks > TW_FIRST_CHUNK;
	int ret = 0;

	if (tw_table_short(table))
		return add_chunk(table);
	/* What is moved to all slots is no more than a chunk. */
	if (!uw->wheel.slots || (some && tw_wheel_is_small(&uw->wheel)))
		ret = add_slots(uw, !uw->wheel.slots);
	if (!ret && tw_table_full(table))
		ret = grow_table(table);
	return ret ?: add_chunk(table);
}

/*
 * Is that a structure of a size between @first, that of the first version, and @known? In a longer
 * one, all that this library does not know must be 0.
 */
static int check_size(const void *arg, u32 first, u32 known)
{
	const char *bytes = arg;
	u32 size = *(const u32 *)arg, i;

	if (size < first)
		return -EINVAL;
	if (size > PAGE)
		return -E2BIG;
	for (i = known; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	return 0;
}

static int set_up(struct user_wheel *uw, const struct twheel_setup *setup,
		  int (*get_shared)(void *arg, const struct twheel_setup *setup, uint64_t tick),
		  void *arg)
{
	struct tw_clock clock = uw->wheel.clock;
	int ret;

	if (uw->fixed)
		return -EBUSY;
	tw_clock_set(&clock, setup->clock, setup->tick);
	ret = setup->shared ? get_shared(arg, setup, clock.tick) : 0;
	ret = ret ?: user_set_clock(uw, &clock);
	if (ret)
		return ret;
	uw->fixed = true;
	uw->flags = setup->flags;
	uw->shared = setup->shared;
	uw->limit = (setup->limit ?: uw->limit) - setup->shared;
	uw->unit = setup->flags & TWHEEL_SETUP_COUNT ? sizeof(u64) :
		   setup->event_size ?: TWHEEL_EVENT_SIZE_FULL;
	return 0;
}

/* @get_shared gets shared timers, with a tick of that many ns, or gives an error. */
int user_setup(struct user_wheel *uw, const struct twheel_setup *setup,
	       int (*get_shared)(void *arg, const struct twheel_setup *setup, uint64_t tick),
	       void *arg)
{
	int ret = check_size(setup, sizeof(*setup), sizeof(*setup)) ?: tw_check_setup(setup);
	s64 now;

	if (ret)
		return ret;
	if (setup->limit > USER_MOST_TIMERS || setup->shared > (setup->limit ?: USER_LIMIT))
		return -ENOSPC;
	ret = user_begin(uw, &now);
	if (ret)
		return ret;
	ret = set_up(uw, setup, get_shared, arg);
	user_end(uw, now);
	return ret;
}

int user_info(struct user_wheel *uw, struct twheel_info *info)
{
	const u32 first = offsetof(struct twheel_info, now);
	const struct tw_clock *clock = &uw->wheel.clock;
	struct twheel_info found;
	u32 size = info->size;
	s64 now;
	int ret;

	ret = check_size(info, first, sizeof(*info)) ?: user_begin(uw, &now);
	if (ret)
		return ret;
	found = (struct twheel_info){
		.size = size,
		.clock = clock->id,
		.features = TWHEEL_FEATURE_COUNT | TWHEEL_FEATURE_DRAIN,
		.tick_min = tw_clock_tick(TWHEEL_TICK_MIN_NS),
		.tick_max = TWHEEL_TICK_MAX_NS,
		.tick = clock->tick,
		.wheel_limit = USER_LIMIT,
		.user_limit = USER_MOST_TIMERS,
		.limit = uw->limit + uw->shared,
		.pending = uw->wheel.pending,
		.ready = uw->wheel.ready.count,
		.flags = uw->flags,
		.event_size = uw->unit,
		.shared = uw->shared,
		.now = now,
	};
	if (found.pending)
		found.next_expiry = tw_clock_tick_ns(clock, uw->wheel.next);
	user_end(uw, now);
	memcpy(info, &found, min_t(size_t, size, sizeof(found)));
	return 0;
}

int user_stats(struct user_wheel *uw, struct twheel_stats *stats)
{
	u32 size = stats->size;
	s64 now;
	int ret;

	ret = check_size(stats, sizeof(*stats), sizeof(*stats)) ?: user_begin(uw, &now);
	if (ret)
		return ret;
	*stats = uw->stats;
	stats->size = size;
	user_end(uw, now);
	return 0;
}
