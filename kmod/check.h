/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Invariants of table and wheel, compiled in with TW_CHECK only: what must be so
 * between any two operations, whatever programs do. When something is not, it is
 * said with a warning, for which tests look.
 *
 * The part that is pure: of a wheel in use, see context.h.
 */
#ifndef TW_CHECK_H
#define TW_CHECK_H

#include "entries.h"
#include "table.h"
#include "wheel.h"

#ifdef TW_CHECK

/*
 * To look at all there is takes as long as there is much. So it is done only once
 * in so many times that each time costs a look at this many things.
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
 * tw_check_due() - is it time to look at all there is?
 * @saved: what was saved by not looking at it, 0 in the beginning
 * @things: how many things there are
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
