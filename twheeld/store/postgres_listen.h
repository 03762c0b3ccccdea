/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints among servers that share a database: a tube has ready jobs.
 */
#ifndef TWHEELD_POSTGRES_LISTEN_H
#define TWHEELD_POSTGRES_LISTEN_H

#include <stdbool.h>

void pg_listen(void);
int pg_hints(void);
bool pg_polls(void);
void pg_ready(const char *tube);
void pg_tell(bool committed);

#endif
