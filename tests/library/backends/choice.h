/* SPDX-License-Identifier: GPL-2.0 */
/* Which wheel a program gets */
#ifndef CHOICE_H
#define CHOICE_H

#include <stdlib.h>

#include <twheel.h>

/*
 * What twheel_open() gives in place of *@twp, with these flags and that environment: a backend or
 * an error
 */
static inline int given(struct twheel **twp, int flags, const char *environment)
{
	int ret;

	setenv("TWHEEL_BACKEND", environment, 1);
	twheel_close(*twp);
	*twp = NULL;
	ret = twheel_open(flags, twp);
	unsetenv("TWHEEL_BACKEND");
	return ret ?: twheel_backend(*twp);
}

#endif
