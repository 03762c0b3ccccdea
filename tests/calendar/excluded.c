// SPDX-License-Identifier: GPL-2.0
/*
 * excluded FILE ZONE <TIMES: for each time, 0, or until when it is left out; or what is wrong
 * with the file
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../twheeld/exclusion.h"

static void ask(const struct exclusion *exclusion)
{
	int64_t when, until;

	while (scanf("%" SCNd64, &when) == 1)
		printf("%" PRId64 "\n", exclusion_covers(exclusion, when, &until) ? until : 0);
}

int main(int argc, char **argv)
{
	struct exclusion_error error;
	struct exclusion *exclusion;

	if (argc != 3)
		return 2;
	exclusion = exclusion_read(argv[1], *argv[2] ? argv[2] : NULL, &error);
	if (exclusion)
		ask(exclusion);
	else
		printf("wrong %zu %s\n", error.line, error.text);
	exclusion_free(exclusion);
	return 0;
}
