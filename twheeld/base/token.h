/* SPDX-License-Identifier: GPL-2.0 */
/* What servers and workers ask of a token and of its file */
#ifndef TWHEELD_TOKEN_H
#define TWHEELD_TOKEN_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/tube_name.h"

/* Characters of a token, as a command has it */
#define TOKEN_MOST TUBE_NAME_MAX

/**
 * token_refuse_mode - may others read or write a file with tokens, or a key?
 *
 * Whoever may read it may log in, and whoever may write it may let others in.
 *
 * Return: what is wrong, or NULL.
 */
static inline const char *token_refuse_mode(const struct stat *st)
{
	return st->st_mode & 0027 ? "others may read or write it: chmod 640" : NULL;
}

#endif
