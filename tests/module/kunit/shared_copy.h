/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A copy of shared.c, which the suite of shared timers is compiled with. Before each access to
 * what a program and the kernel share it calls program_acts(), which the suite has: there, the
 * program may change anything. What others can see of the copy is called "copy_...".
 */
#ifndef TW_KUNIT_SHARED_COPY_H
#define TW_KUNIT_SHARED_COPY_H

#include <linux/atomic.h>

#include "compat.h"
#include "context.h"
#include "copy.h"
#include "entries.h"
#include "trace.h"

static void program_acts(void);

static inline s64 copy_read(const atomic64_t *at)
{
	program_acts();
	return atomic64_read(at);
}

static inline void copy_set(atomic64_t *at, s64 word)
{
	program_acts();
	atomic64_set(at, word);
}

static inline s64 copy_xchg(atomic64_t *at, s64 word)
{
	program_acts();
	return atomic64_xchg(at, word);
}

static inline void copy_andnot(s64 bits, atomic64_t *at)
{
	program_acts();
	atomic64_andnot(bits, at);
}

static inline bool copy_try_cmpxchg(atomic64_t *at, s64 *old, s64 word)
{
	program_acts();
	return atomic64_try_cmpxchg(at, old, word);
}

/* There is one thread, which needs no barriers. */
static inline u32 copy_load_acquire(const u32 *at)
{
	program_acts();
	return __READ_ONCE(*at);
}

static inline void copy_store_release(u32 *at, u32 word)
{
	program_acts();
	__WRITE_ONCE(*at, word);
}

#define tw_shared_scan_dirty copy_scan_dirty
#define tw_shared_scan_anew copy_scan_anew
#define tw_shared_done copy_done
#define tw_shared_turn copy_turn
#define tw_shared_must_notify copy_must_notify
#define tw_shared_next copy_next
#define tw_shared_sleep copy_sleep
#define tw_shared_ready copy_ready
#define tw_shared_read copy_read_events
#define tw_shared_drain copy_drain
#include "shared.h"

#define atomic64_read copy_read
#define atomic64_set copy_set
#define atomic64_xchg copy_xchg
#define atomic64_andnot copy_andnot
#define atomic64_try_cmpxchg copy_try_cmpxchg
#undef READ_ONCE
#define READ_ONCE(x) (program_acts(), __READ_ONCE(x))
#undef smp_load_acquire
#define smp_load_acquire copy_load_acquire
#undef smp_store_release
#define smp_store_release copy_store_release
#undef smp_mb
#define smp_mb program_acts
#include "kmod/shared.c"
#undef atomic64_read
#undef atomic64_set
#undef atomic64_xchg
#undef atomic64_andnot
#undef atomic64_try_cmpxchg
#undef READ_ONCE
#define READ_ONCE(x) __READ_ONCE(x)

#endif /* TW_KUNIT_SHARED_COPY_H */
