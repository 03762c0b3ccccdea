/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions in a database of PostgreSQL, for programs in their own transactions.
 */
#ifndef TWHEELD_POSTGRES_FUNCTIONS_H
#define TWHEELD_POSTGRES_FUNCTIONS_H

#include <stdbool.h>

struct pg_conn;

bool pg_make_functions(struct pg_conn *db);

#endif
