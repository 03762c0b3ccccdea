/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Durations that people write: 500ms, 90s, 1.5h, 1h30m. The one grammar of server, worker,
 * command and demo. Pure.
 */
#ifndef TWHEELD_DURATION_H
#define TWHEELD_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* For messages: what can be written */
#define DURATION_EXAMPLES "500ms, 90s, 1.5h or 1h30m, in ns, us, ms, s, m, h, d or w"

bool duration_parse(const char *text, int64_t bare, int64_t *ns);
bool duration_range(const char *text, int64_t bare, int64_t *first, int64_t *last);

#endif
