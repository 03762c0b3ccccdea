/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the unit tests share: TAP, checks that show what led to their failure,
 * and random numbers that can be had again.
 */
#ifndef HOST_H
#define HOST_H

#include <linux/bug.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A check that fails ends the test: what comes after it means nothing. */
#define ASSERT_TRUE(cond)						\
do {									\
	if (unlikely(!(cond)))						\
		host_fail(__FILE__, __LINE__, "not so: %s", #cond);	\
} while (0)

#define ASSERT_EQ(got, want)						\
do {									\
	s64 the_got = (got), the_want = (want);				\
									\
	if (unlikely(the_got != the_want))				\
		host_fail(__FILE__, __LINE__, "%s is %lld, not %lld",	\
			  #got, the_got, the_want);			\
} while (0)

/**
 * host_print_trace - prints what led to a failure, as lines of TAP comment
 *
 * Set by a test that has something to say.
 */
extern void (*host_print_trace)(void);

__attribute__((noreturn, format(printf, 3, 4)))
void host_fail(const char *file, int line, const char *fmt, ...);
__attribute__((format(printf, 1, 2)))
void host_note(const char *fmt, ...);
void host_plan(unsigned int tests);
void host_test(const char *name, void (*test)(void));
int host_end(void);
void host_breaks(void (*make)(void), void (*look)(void),
		 const char *(*break_one)(unsigned int thing));

u64 host_first_seed(void);
u64 host_part(u64 whole);
void host_seed(u64 seed);
u64 host_random(void);
u64 host_below(u64 limit);
bool host_chance(unsigned int in);

#endif /* HOST_H */
