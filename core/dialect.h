/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * What these sources say for compilers that make BPF programs of them, see bpf/: elsewhere it is
 * nothing. There, a wheel's memory is of another address space, and the verifier has to see
 * that each loop ends, and not to follow it turn by turn.
 */
#ifndef TW_DIALECT_H
#define TW_DIALECT_H

#ifndef TW_MEM

/* What it points to is a wheel's. */
#define TW_MEM

/* Where a loop begins to count: a 0 that only the verifier does not know */
#define TW_FIRST 0

/* A condition of each loop. It is true for as long as any of these takes. */
#define TW_GO_ON true

#endif

#endif /* TW_DIALECT_H */
