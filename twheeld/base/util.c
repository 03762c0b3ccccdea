// SPDX-License-Identifier: GPL-2.0
/*
 * Messages, and memory without which there is no way on.
 *
 * Where malloc() fails for a few bytes, the server ends with a message: acknowledged jobs are in
 * the store. (Only for a job's body it does not: put says OUT_OF_MEMORY.)
 *
 * The journal takes a line's priority from its beginning, and has the program's name from
 * elsewhere. Anywhere else, the name stands there.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/util.h"

/* Is standard error the journal? The variable may be left over from another program. */
static bool to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%lu:%lu", &device, &inode) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* Print in one write, so that messages of two threads are not mixed. */
static void print(const char *priority, const char *format, va_list args)
{
	char text[2000];

	vsnprintf(text, sizeof(text), format, args);
	fprintf(stderr, "%s%s\n", to_journal() ? priority : "twheeld: ", text);
}

/** inform - print a message that is no trouble */
void inform(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(SD_INFO, format, args);
	va_end(args);
}

/** complain - print what is wrong, and go on */
void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(SD_WARNING, format, args);
	va_end(args);
}

/** die - print what is wrong, and end the program */
void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(SD_ERR, format, args);
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
