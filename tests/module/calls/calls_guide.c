// SPDX-License-Identifier: GPL-2.0
/*
 * What programs to try: those that led the module to where it had not been, and
 * changes of them. KCOV says where a thread went. Of its trace only what lies in
 * the module counts.
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
static bool guided;
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

/* Before there are threads. Returns whether the kernel can guide. */
bool guide_init(void)
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
	guided = !access(KCOV, R_OK | W_OK) && base && nr_sections &&
		 size < sizeof(shared->points);
	return guided;
}

/* For each thread that is to be guided */
void guide_thread(void)
{
	int fd;

	if (!guided)
		return;
	fd = open(KCOV, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, ENTRIES))
		tap_bail("%s: %s", KCOV, strerror(errno));
	trace = mmap(NULL, ENTRIES * sizeof(*trace), PROT_READ | PROT_WRITE,
		     MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		tap_bail("%s: %s", KCOV, strerror(errno));
}

void guide_begin(void)
{
	if (guided)
		__atomic_store_n(&trace[0], 0, __ATOMIC_RELAXED);
}

static void keep(const struct program *program)
{
	__u64 seed = now(CLOCK_MONOTONIC) | 1;
	__u32 i;

	while (__atomic_exchange_n(&shared->corpus_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	i = shared->nr_corpus;
	if (i == CORPUS)
		i = below(&seed, CORPUS);
	else
		shared->nr_corpus++;
	shared->corpus[i] = *program;
	__atomic_store_n(&shared->corpus_lock, 0, __ATOMIC_RELEASE);
}

/*
 * The program was run: keep it if it went where none had gone, or came there from
 * where none had come.
 */
void guide_end(const struct program *program)
{
	unsigned long n, i, before = 0;
	bool is_new = false;

	if (!guided)
		return;
	n = __atomic_load_n(&trace[0], __ATOMIC_RELAXED);
	if (n >= ENTRIES)
		n = ENTRIES - 1;
	for (i = 1; i <= n; i++) {
		unsigned long at = trace[i] - first;
		__u16 edge;

		if (trace[i] < first || trace[i] >= last)
			continue;
		edge = (at * 0x9e3779b1 >> 8) ^ before;
		before = at * 0x9e3779b1 >> 9;
		is_new |= !shared->edges[edge];
		shared->edges[edge] = true;
		shared->points[at] = true;
	}
	if (is_new)
		keep(program);
}

static void random_call(struct call *call, __u64 *seed)
{
	*call = (struct call){
		.kind = random_next(seed) >> 20,
		.wheel = random_next(seed) >> 20,
		.shape = random_next(seed) >> 20,
		.nr = random_next(seed) >> 20,
		.pick = random_next(seed) >> 20,
		.seed = random_next(seed),
	};
}

static void change_call(struct call *call, __u64 *seed)
{
	switch (below(seed, 6)) {
	case 0:
		call->kind = random_next(seed) >> 20;
		break;
	case 1:
		call->wheel++;
		break;
	case 2:
		call->shape = random_next(seed) >> 20;
		break;
	case 3:
		call->nr = random_next(seed) >> 20;
		break;
	case 4:
		call->pick = random_next(seed) >> 20;
		break;
	default:
		call->seed = random_next(seed);
		break;
	}
}

static void insert(struct program *program, __u32 at, const struct call *call)
{
	if (program->nr == CALLS)
		return;
	memmove(&program->calls[at + 1], &program->calls[at],
		(program->nr - at) * sizeof(*call));
	program->calls[at] = *call;
	program->nr++;
}

static void change(struct program *program, __u64 *seed)
{
	struct program *other = &shared->corpus[below(seed, shared->nr_corpus)];
	__u32 at = below(seed, program->nr);
	struct call call;

	switch (below(seed, 6)) {
	case 0:
		random_call(&call, seed);
		insert(program, at, &call);
		break;
	case 1:
		if (program->nr > 1)
			program->calls[at] = program->calls[--program->nr];
		break;
	case 2:
		if (other->nr)
			insert(program, at, &other->calls[below(seed, other->nr)]);
		break;
	case 3:
		call = program->calls[at];
		insert(program, at, &call);
		break;
	default:
		change_call(&program->calls[at], seed);
		break;
	}
}

/* What to try next */
void guide_program(struct program *program, __u64 *seed)
{
	__u32 i, n;

	if (shared->nr_corpus && !one_in(seed, 4)) {
		*program = shared->corpus[below(seed, shared->nr_corpus)];
		n = 1 + below(seed, 4);
		for (i = 0; i < n && program->nr; i++)
			change(program, seed);
		if (program->nr)
			return;
	}
	program->nr = 1 + below(seed, CALLS);
	for (i = 0; i < program->nr; i++)
		random_call(&program->calls[i], seed);
}

/* Where it went, a line to a section: offsets of the trace points that were reached */
void guide_report(void)
{
	unsigned long at, total = 0;
	int s;

	if (!guided) {
		tap_diag("not guided: no %s here, or the module has no sections", KCOV);
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
	tap_diag("%lu trace points of the module reached, %u programs worth keeping",
		 total, shared->nr_corpus);
}
