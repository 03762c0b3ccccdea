/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Invariants: what must hold between any two operations, whatever a program does. They are
 * compiled in with TW_CHECK only. A broken one gives a warning, which the tests find in
 * the log.
 *
 * check.c has those of the table and the wheel, check_entries.c those of the wheel of
 * shared timers. Both are pure. check_context.c has those of a wheel in use.
 */
#ifndef TW_CHECK_H
#define TW_CHECK_H

#include "entries.h"
#include "table.h"
#include "wheel.h"

#ifdef TW_CHECK

/*
 * A full check takes time in proportion to the wheel. So it is done seldom: often enough to
 * cost as much as this many chunks, nodes and slots each time.
 */
#define TW_CHECK_THINGS 256

/* True if @cond is. */
#define tw_so(cond) (!WARN_ONCE(!(cond), "not so: %s\n", #cond))

bool tw_check_table(const struct tw_table *table, bool ids);
bool tw_check_wheel(const struct tw_wheel *wheel);
bool tw_check_entries(const struct tw_entries *wheel, u32 nr);
bool tw_check_levels(const struct tw_wheel *wheel);
u32 tw_check_things(const struct tw_table *table, const struct tw_wheel *wheel);

/**
 * tw_check_due() - is it time for a full check?
 * @saved: the cost that was saved since the last one; 0 at first
 * @things: number of chunks, nodes and slots to check
 *
 * Return: true if so.
 */
static inline bool tw_check_due(u32 *saved, u32 things)
{
	*saved += TW_CHECK_THINGS;
	if (*saved < things)
		return false;
	*saved = 0;
	return true;
}

#endif /* TW_CHECK */

#endif /* TW_CHECK_H */
