// SPDX-License-Identifier: GPL-2.0
/*
 * tai PROGRAM: run it on a machine that knows by how much TAI is ahead of the wall clock.
 * Where nobody says so, that is 0, and whoever mixes the two up does well.
 */
#include <err.h>
#include <sys/timex.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timex offset = { .modes = ADJ_TAI, .constant = 37 };

	if (argc < 2)
		errx(2, "which program?");
	if (adjtimex(&offset) < 0)
		err(1, "adjtimex");
	execv(argv[1], argv + 1);
	err(1, "%s", argv[1]);
}
