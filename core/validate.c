// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later
/*
 * Checks of the arguments of a program. See validate.h; the rules are in
 * uapi/linux/twheel.h.
 */
#include <linux/errno.h>

#include "clock.h"
#include "validate.h"

/**
 * tw_check_setup() - check a set-up, but for its size and its limit
 * @setup: the set-up
 *
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int tw_check_setup(const struct twheel_setup *setup)
{
	u32 shared = setup->flags & TWHEEL_SETUP_SHARED;

	if (setup->flags & ~(TWHEEL_SETUP_COUNT | TWHEEL_SETUP_SHARED) ||
	    (shared && setup->flags & TWHEEL_SETUP_COUNT))
		return -EINVAL;
	if (!shared != !setup->shared || setup->shared > TWHEEL_SHARED_MAX ||
	    setup->__reserved)
		return -EINVAL;
	if (setup->event_size && (setup->flags & TWHEEL_SETUP_COUNT ||
				  (setup->event_size != TWHEEL_EVENT_SIZE_ID &&
				   setup->event_size != TWHEEL_EVENT_SIZE_FULL)))
		return -EINVAL;
	if (!tw_clock_known(setup->clock) || !tw_time_ok(setup->tick))
		return -EINVAL;
	if (setup->tick && (setup->tick < TWHEEL_TICK_MIN_NS ||
			    setup->tick > TWHEEL_TICK_MAX_NS))
		return -EOPNOTSUPP;
	return 0;
}
