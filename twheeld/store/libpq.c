// SPDX-License-Identifier: GPL-2.0
/*
 * libpq, which is loaded where a store is in PostgreSQL.
 */
#include <dlfcn.h>

#include "base/util.h"
#include "store/libpq.h"

#define LIBRARY "libpq.so.5"

struct libpq libpq;

static void *must_have(void *found)
{
	if (!found)
		die("a store in PostgreSQL needs " LIBRARY " (Debian's libpq5): %s", dlerror());
	return found;
}

/** libpq_load - load libpq, once, before any other call of it; ends the program if it can't be */
void libpq_load(void)
{
	void *library = must_have(dlopen(LIBRARY, RTLD_NOW));

#define LIBPQ_FIND(name) *(void **)&(name) = must_have(dlsym(library, #name));
	LIBPQ(LIBPQ_FIND)
}
