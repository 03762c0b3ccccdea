/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hints for the compiler, for a program. */
#ifndef SHIM_LINUX_COMPILER_H
#define SHIM_LINUX_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define noinline __attribute__((__noinline__))

#define OPTIMIZER_HIDE_VAR(var) asm("" : "+r" (var))

#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

#endif /* SHIM_LINUX_COMPILER_H */
