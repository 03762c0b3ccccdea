// SPDX-License-Identifier: GPL-2.0
/*
 * Keys by which jobs are put, and deleted: what a put does where there is a job with the key. Pure.
 */
#include <string.h>

#include "base/job_key.h"

const char *const key_hows[KEY_HOWS] = { "ignore", "replace", "debounce" };

/** job_key_how - which one a word is; KEY_HOWS: none */
enum key_how job_key_how(const char *text, size_t length)
{
	int how = 0;

	while (how < KEY_HOWS &&
	       (strlen(key_hows[how]) != length || memcmp(key_hows[how], text, length)))
		how++;
	return how;
}
