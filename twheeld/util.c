// SPDX-License-Identifier: GPL-2.0
/*
 * Messages, and memory without which there is no way on.
 *
 * When a few bytes can't be had, the server ends with a message. What was acknowledged is
 * in the store. (The memory of a job's body is another matter: put says OUT_OF_MEMORY.)
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util.h"

static void print(const char *format, va_list args)
{
	fputs("twheeld: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(format, args);
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(format, args);
	va_end(args);
	exit(1);
}

void *must(void *memory)
{
	if (!memory)
		die("out of memory");
	return memory;
}

void *zalloc(size_t size)
{
	return must(calloc(1, size));
}
