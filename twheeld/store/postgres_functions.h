/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a database of PostgreSQL does for programs in their own transactions.
 */
#ifndef TWHEELD_POSTGRES_FUNCTIONS_H
#define TWHEELD_POSTGRES_FUNCTIONS_H

#include <stdbool.h>

#include "store/libpq.h"

bool pg_make_functions(PGconn *db);

#endif
