/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hints for the processor's cache, for a program. */
#ifndef SHIM_LINUX_PREFETCH_H
#define SHIM_LINUX_PREFETCH_H

/* (To gcc, a function that does nothing else would do nothing.) */
static inline void prefetchw(const void *what)
{
	__builtin_prefetch(what, 1);
	asm volatile("" : : "r" (what));
}

static inline void prefetch(const void *what)
{
	__builtin_prefetch(what);
	asm volatile("" : : "r" (what));
}

#endif /* SHIM_LINUX_PREFETCH_H */
