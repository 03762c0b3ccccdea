// SPDX-License-Identifier: GPL-2.0
/*
 * duration BARE <TEXTS: for each line, its first and last time in ns, or "wrong"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../twheeld/base/duration.h"

int main(int argc, char **argv)
{
	char line[200];
	int64_t first, last;

	if (argc != 2)
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (duration_range(line, atoll(argv[1]), &first, &last))
			printf("%lld %lld\n", (long long)first, (long long)last);
		else
			puts("wrong");
	}
	return 0;
}
