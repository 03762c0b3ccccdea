/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys by which jobs are put, and deleted: each job of a tube has another one, or none.
 */
#ifndef TWHEELD_JOB_KEY_H
#define TWHEELD_JOB_KEY_H

#include <stddef.h>
#include <stdint.h>

/* What a put does with the job that has its key */
enum key_how { KEY_IGNORE, KEY_REPLACE, KEY_DEBOUNCE, KEY_HOWS };

/* Bytes of a key */
#define KEY_MOST 100

/* Of what begins with one: letters, digits, and all other characters of ASCII that can be seen */
static inline size_t job_key_length(const char *text)
{
	size_t length = 0;

	while (text[length] > ' ' && text[length] <= '~')
		length++;
	return length;
}

/* The first byte is 1, so that it is longer than that of a body */
#define JOB_KEY_DIGEST 33

/* As clients and programs call them */
extern const char *const key_hows[KEY_HOWS];

enum key_how job_key_how(const char *text, size_t length);
void job_key_digest(const char *text, uint8_t *digest);

struct job_key {
	char text[KEY_MOST + 1];
	enum key_how how;
	uint32_t lasts;		/* seconds for which the key is taken, also when its job is over */
	int64_t instead;	/* this job loses the key; 0: none */
};

#endif
