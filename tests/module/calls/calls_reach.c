// SPDX-License-Identifier: GPL-2.0
/*
 * How much of the module the calls reach. KCOV says where a thread went. Of its trace only
 * what lies in the module counts.
 */
#include "calls.h"

#include <dirent.h>
#include <linux/kcov.h>

#define KCOV "/sys/kernel/debug/kcov"
#define SECTIONS "/sys/module/twheel/sections/"
#define ENTRIES (256 << 10)
#define MOST_SECTIONS 8

/* A section with code of the module */
struct section {
	char name[32];
	unsigned long from;
};

static struct section sections[MOST_SECTIONS];
static int nr_sections;
static unsigned long first, last;	/* where the module is in the trace */
static bool known;
static __thread unsigned long *trace;

/* KCOV tells addresses as they were linked. */
static unsigned long kernel_moved(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long moved = 0, at;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx T _text\n", &at) == 1 &&
		    strstr(line, " _text\n"))
			moved = at - 0xffffffff81000000;
	if (f)
		fclose(f);
	return moved;
}

static int by_place(const void *a, const void *b)
{
	const struct section *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static void find_sections(unsigned long moved)
{
	DIR *dir = opendir(SECTIONS);
	struct dirent *entry;
	char path[300], text[32];

	while (dir && (entry = readdir(dir)) && nr_sections < MOST_SECTIONS) {
		struct section *s = &sections[nr_sections];

		if (strncmp(entry->d_name, ".text", 5))
			continue;
		snprintf(path, sizeof(path), SECTIONS "%s", entry->d_name);
		read_text(path, text, sizeof(text));
		snprintf(s->name, sizeof(s->name), "%.31s", entry->d_name);
		s->from = strtoul(text, NULL, 16) - moved;
		nr_sections++;
	}
	if (dir)
		closedir(dir);
	qsort(sections, nr_sections, sizeof(sections[0]), by_place);
}

/* Before there are threads */
void reach_init(void)
{
	unsigned long size = 0, base = 0, moved = kernel_moved();
	FILE *f = fopen("/proc/modules", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "twheel ", 7))
			sscanf(line, "%*s %lu %*s %*s %*s %lx", &size, &base);
	if (f)
		fclose(f);
	find_sections(moved);
	first = base - moved;
	last = first + size;
	known = !access(KCOV, R_OK | W_OK) && base && nr_sections &&
		 size < sizeof(shared->points);
}

/* For each thread that makes calls */
void reach_thread(void)
{
	int fd;

	if (!known)
		return;
	fd = open(KCOV, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, ENTRIES))
		tap_bail("%s: %s", KCOV, strerror(errno));
	trace = mmap(NULL, ENTRIES * sizeof(*trace), PROT_READ | PROT_WRITE,
		     MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		tap_bail("%s: %s", KCOV, strerror(errno));
}

void reach_begin(void)
{
	if (known)
		__atomic_store_n(&trace[0], 0, __ATOMIC_RELAXED);
}

/* A program was run. */
void reach_end(void)
{
	unsigned long n, i;

	if (!known)
		return;
	n = __atomic_load_n(&trace[0], __ATOMIC_RELAXED);
	if (n >= ENTRIES)
		n = ENTRIES - 1;
	for (i = 1; i <= n; i++)
		if (trace[i] >= first && trace[i] < last)
			shared->points[trace[i] - first] = true;
}

/* Where it went, a line to a section: offsets of the trace points that were reached */
void reach_report(void)
{
	unsigned long at, total = 0;
	int s;

	if (!known) {
		tap_diag("not known: no %s here, or the module has no sections", KCOV);
		return;
	}
	for (s = 0; s < nr_sections; s++) {
		unsigned long end = s + 1 < nr_sections ? sections[s + 1].from : last;

		printf("@reached %s", sections[s].name);
		for (at = sections[s].from; at < end; at++)
			if (shared->points[at - first])
				total += printf(" %lx", at - sections[s].from) > 0;
		printf("\n");
	}
	tap_diag("%lu trace points of the module reached", total);
}
