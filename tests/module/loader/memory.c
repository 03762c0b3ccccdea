// SPDX-License-Identifier: GPL-2.0
/*
 * Loading, using and unloading many times leaves nothing behind: no memory of
 * any kind that the kernel has an account of.
 *
 * The kernel allocates for itself meanwhile, and keeps some of it. So some
 * rounds come first, for it to have what it keeps, and what is compared may
 * grow by less than one of its units for every fourth round. What the module
 * leaks once a round is four times that much; and each round has several of all
 * that the module makes.
 */
#include "loader.h"

#include <linux/membarrier.h>
#include <sys/eventfd.h>

#define WARM_UP 20
#define ROUNDS 200
#define TOLERANCE (ROUNDS / 4)

#define MAX_ACCOUNTS 400

/* Objects of a slab cache; or something else by its name */
struct account {
	char name[48];
	long units;
};

struct usage {
	struct account accounts[MAX_ACCOUNTS];
	size_t nr;
};

static void add(struct usage *u, const char *name, long units)
{
	struct account *a = &u->accounts[u->nr++];

	if (u->nr >= MAX_ACCOUNTS)
		tap_bail("more accounts than there is room for");
	snprintf(a->name, sizeof(a->name), "%s", name);
	a->units = units;
}

static long units(const struct usage *u, const char *name)
{
	size_t i;

	for (i = 0; i < u->nr; i++)
		if (!strcmp(u->accounts[i].name, name))
			return u->accounts[i].units;
	return 0;
}

/* Files are opened only once, so that measuring needs no memory that shows */
static FILE *reopen(FILE **file, const char *path)
{
	if (!*file)
		*file = fopen(path, "r");
	if (!*file)
		tap_bail("%s: %s", path, strerror(errno));
	rewind(*file);
	return *file;
}

/*
 * Otherwise processors have slabs to themselves, of which all objects count as
 * used.
 */
static void check_debug(void)
{
	char text[16];

	read_text("/sys/kernel/slab/kmalloc-128/poison", text, sizeof(text));
	if (atoi(text) != 1)
		tap_bail("the kernel is to be booted with slub_debug=FZP");
}

static FILE *slabs_file;

static void add_slabs(struct usage *u)
{
	FILE *file = reopen(&slabs_file, "/proc/slabinfo");
	char line[512], name[48];
	long objects;

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%47s %ld", name, &objects) == 2)
			add(u, name, objects);
	if (!units(u, "kmalloc-128"))
		tap_bail("/proc/slabinfo is not as expected");
}

/* Pages in use: those that are not free, nor kept free by a processor */
static FILE *pages_file;

static void add_pages(struct usage *u)
{
	FILE *file = reopen(&pages_file, "/proc/zoneinfo");
	long n, managed = 0, free = 0;
	char line[256];

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " managed %ld", &n) == 1)
			managed += n;
		else if (sscanf(line, " nr_free_pages %ld", &n) == 1 ||
			 sscanf(line, " count: %ld", &n) == 1)
			free += n;
	}
	if (!managed || !free)
		tap_bail("/proc/zoneinfo is not as expected");
	add(u, "pages", managed - free);
}

/* Areas that are mapped for the kernel, its modules among them */
static FILE *areas_file;

static void add_areas(struct usage *u)
{
	FILE *file = reopen(&areas_file, "/proc/vmallocinfo");
	char line[512];
	long n = 0;

	while (fgets(line, sizeof(line), file))
		n++;
	add(u, "vmalloc areas", n);
}

/* In pages, of which a processor's memory is made */
static FILE *percpu_file;

static void add_percpu(struct usage *u)
{
	FILE *file = reopen(&percpu_file, "/proc/meminfo");
	char line[256];
	long kb = -1;

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Percpu: %ld", &kb) == 1)
			break;
	if (kb < 0)
		tap_bail("/proc/meminfo is not as expected");
	add(u, "percpu pages", kb / 4);
}

static void get_usage(struct usage *u)
{
	/* What is only cached, and what is freed after a grace period. */
	write_text("/proc/sys/vm/drop_caches", "3");
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	write_text("/proc/sys/vm/stat_refresh", "1");

	u->nr = 0;
	add_slabs(u);
	add_pages(u);
	add_areas(u);
	add_percpu(u);
}

static bool grown(const struct usage *before, const struct usage *after,
		  bool tell)
{
	bool grew = false;
	size_t i;

	for (i = 0; i < after->nr; i++) {
		const struct account *a = &after->accounts[i];
		long more = a->units - units(before, a->name);

		if (more < TOLERANCE)
			continue;
		grew = true;
		if (tell)
			tap_diag("%s: %ld more", a->name, more);
	}
	return grew;
}

/* Timers by the hundred: pending, modified, cancelled; some left for close */
static void use_pending(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op ops[900];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i] = op_arm(0, HOUR, i);
		ops[i].interval = i % 4 ? 0 : SEC;
	}
	submit_all(fd, ops, ARRAY_SIZE(ops));
	for (i = 0; i < 300; i++) {
		__u64 id = ops[i].id;

		ops[i] = i % 2 ? op_for(TWHEEL_OP_CANCEL, id) :
				 op_for(TWHEEL_OP_MODIFY, id);
	}
	submit_all(fd, ops, 300);
	EXPECT_EQ(drain(fd, ops, 200), 200);
	close(fd);
}

/* Expired: some read, some not; periodic ones read twice */
static void use_ready(__u32 clock)
{
	int fd = wheel_new(clock, 100 * USEC);
	struct twheel_event ev[40];
	unsigned int i;

	for (i = 0; i < 20; i++) {
		arm(fd, 0, 200 * USEC, i);
		arm_past(fd, i);
		arm_periodic(fd, 1, 400 * USEC, i);
	}
	collect(fd, ev, ARRAY_SIZE(ev));
	collect(fd, ev, 10);
	close(fd);
}

static void use_counted(void)
{
	int fd = wheel_open(O_NONBLOCK), efd = eventfd(0, EFD_NONBLOCK);
	__u64 count = 0;

	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_BOOTTIME, 0, 0,
			      TWHEEL_SETUP_COUNT), 0);
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	arm_past(fd, 0);
	arm_past(fd, 0);
	EXPECT_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	EXPECT_EQ(count, 2);
	arm_past(fd, 0);
	close(fd);
	close(efd);
}

static void round_trip(void)
{
	must_load("max_timers=1000");
	use_pending();
	use_ready(TWHEEL_CLOCK_MONOTONIC);
	use_ready(TWHEEL_CLOCK_REALTIME);
	use_counted();
	EXPECT_TRUE(mentions(COUNTERS, "open 0\n"), "a wheel is left");
	if (unload())
		tap_bail("unload");
}

static struct usage before, after;

/* (What the kernel frees, it may free a while later.) */
static void check_not_grown(const char *what)
{
	bool same = WAIT_FOR((get_usage(&after),
			      !grown(&before, &after, false)));

	if (!EXPECT_TRUE(same, "%s", what))
		grown(&before, &after, true);
}

/* That is, the test after this one can fail */
static void test_measure(void)
{
	int fds[TOLERANCE + 20];
	size_t i;

	must_load("");
	get_usage(&before);
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = wheel_open(0);
	get_usage(&after);
	EXPECT_TRUE(grown(&before, &after, false), "%zu wheels were not seen",
		    ARRAY_SIZE(fds));
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	check_not_grown("what is closed is still seen");
	must_unload();
}

static void test_rounds(void)
{
	unsigned int i;

	for (i = 0; i < WARM_UP; i++)
		round_trip();
	get_usage(&before);
	for (i = 0; i < ROUNDS; i++)
		round_trip();
	check_gone();
	check_not_grown("more is in use than before");
}

int main(void)
{
	loader_start(150);
	check_debug();
	/* The first time, files that are read get their buffers. */
	get_usage(&before);
	RUN(test_measure, "wheels that are open are seen in what is compared");
	RUN(test_rounds, "200 times load, use and unload");
	return tap_end();
}
