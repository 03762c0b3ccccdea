// SPDX-License-Identifier: GPL-2.0
/*
 * excluded FILE ZONE <TIMES: for each time, 0, or until when it is left out; or what is wrong
 * with the file
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../../twheeld/when/dates.h"

static void ask(const struct dates *exclusion)
{
	long long when;

	while (scanf("%lld", &when) == 1) {
		int64_t until = 0;

		dates_covers(exclusion, when, &until);
		printf("%lld\n", (long long)until);
	}
}

int main(int argc, char **argv)
{
	struct dates_error error;
	struct dates *exclusion;

	if (argc != 3)
		return 2;
	exclusion = dates_read(argv[1], *argv[2] ? argv[2] : NULL, &error);
	if (exclusion)
		ask(exclusion);
	else
		printf("wrong %zu %s\n", error.line, error.text);
	dates_free(exclusion);
	return 0;
}
