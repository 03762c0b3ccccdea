/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What libtwheel asks of twheel-loader, and what that answers: one message each, over a socket of
 * the type SOCK_SEQPACKET, which then is closed. One that is closed without an answer was too many
 * of the user's at a time: it may be tried again.
 */
#ifndef TW_BPF_LOADER_H
#define TW_BPF_LOADER_H

#include <linux/types.h>

#define TW_LOADER_SOCKET "/run/twheel/loader"

/**
 * struct tw_loader_ask - a wheel is asked for
 * @size: of this structure, in bytes
 * @timers: how many, from 1 to %TWHEEL_SHARED_MAX
 * @tick: in ns, from 1,000 to 1,000,000,000
 */
struct tw_loader_ask {
	__u32 size;
	__u32 timers;
	__u64 tick;
};

/**
 * struct tw_loader_answer - what becomes of it
 * @error: 0, and then the %TWHEEL_BPF_FDS descriptors come with it; -%EINVAL for what can't be
 *	asked; -%ENOSPC where the user, or all, have no more left; -%ENODEV where the kernel does
 *	not take the program; -%ENOMEM
 * @__unused: 0
 * @time: the clock of the wheel, in ns, while it was made
 */
struct tw_loader_answer {
	__s32 error;
	__u32 __unused;
	__u64 time;
};

#endif /* TW_BPF_LOADER_H */
