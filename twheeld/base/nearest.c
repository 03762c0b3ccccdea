// SPDX-License-Identifier: GPL-2.0
/*
 * Did you mean: which known word is near enough to an unknown one?
 */
#include <ctype.h>
#include <string.h>

#include "base/nearest.h"

#define LENGTH_MOST 31

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Counts letters that are added, missing or other ones; two that changed places are one step. */
static unsigned int steps(const char *a, const char *b)
{
	unsigned int table[LENGTH_MOST + 1][LENGTH_MOST + 1];
	size_t i, j, rows = strlen(a), columns = strlen(b);

	for (i = 0; i <= rows; i++)
		table[i][0] = i;
	for (j = 0; j <= columns; j++)
		table[0][j] = j;
	for (i = 1; i <= rows; i++) {
		for (j = 1; j <= columns; j++) {
			int one = tolower((unsigned char)a[i - 1]);
			int other = tolower((unsigned char)b[j - 1]);
			unsigned int *to = &table[i][j];

			*to = least(table[i - 1][j - 1] + (one != other),
				    least(table[i - 1][j], table[i][j - 1]) + 1);
			if (i > 1 && j > 1 && one == tolower((unsigned char)b[j - 2]) &&
			    other == tolower((unsigned char)a[i - 2]))
				*to = least(*to, table[i - 2][j - 2] + 1);
		}
	}
	return table[rows][columns];
}

/**
 * nearer - is this the nearest word so far?
 * @word: the unknown one
 * @known: a known one
 * @distance: of the nearest one so far, plus 1; 0: none so far
 */
bool nearer(const char *word, const char *known, unsigned int *distance)
{
	size_t length = strlen(word), other = strlen(known);
	unsigned int count;

	if (length > LENGTH_MOST || other > LENGTH_MOST)
		return false;
	count = steps(word, known);
	/* A third of the letters may be wrong: one of three. */
	if (3 * count > (length > other ? length : other) || (*distance && count + 1 >= *distance))
		return false;
	*distance = count + 1;
	return true;
}
