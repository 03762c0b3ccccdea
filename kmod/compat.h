/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that this builds for. Written as on the
 * newest; Kbuild looks into the headers for what there is.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>

#ifndef TW_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

static inline void tw_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef TW_HAVE_EVENTFD_SIGNAL_1
	eventfd_signal(ctx);
#else
	eventfd_signal(ctx, 1);
#endif
}

#endif /* TW_COMPAT_H */
