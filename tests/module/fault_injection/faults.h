/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults made to order: the n-th place of a call at which the kernel asks for
 * memory, or copies to or from a program, is made to fail, for each n until there
 * is no n-th.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "device.h"

#define DEBUGFS "/sys/kernel/debug/"

/* What can fail, each a bit */
#define SLAB 1		/* memory of a kind */
#define PAGES 2		/* memory by the page */
#define COPY 4		/* a copy to or from the program */

/* No call has this many places, but for loading a module */
#define MOST_FAULTS 5000

/* When time is short, this many of them are tried, and after them each 7th */
#define EACH_UP_TO 40
#define STRIDE 7

/* So often all faults of a call are tried again when some were missed */
#define MOST_TURNS 5

/* How many may still be injected, which is more than ever will be */
#define PLENTY 1000000000L

static const char *const fault_dirs[] = {
	"failslab", "fail_page_alloc", "fail_usercopy",
};

#define INJECTED_KINDS ARRAY_SIZE(fault_dirs)

/**
 * struct faults - one call with each of its faults
 * @n: the place that fails now
 * @kind: what it was, 0 when there was no such place
 * @hits: how many there were of each kind
 * @refused: how many of them made the call fail, this time
 * @turns: how often all of them were tried again
 * @lazy: the call writes to memory that is not there yet
 */
struct faults {
	unsigned int n;
	unsigned int kind;
	unsigned int hits[INJECTED_KINDS];
	unsigned int refused;
	unsigned int turns;
	bool lazy;
};

static int fault_nth;
static int fault_odds[INJECTED_KINDS];
static long fault_total[INJECTED_KINDS];

/* A program that takes too long is stopped from outside */
#define PATIENCE_S 2400

static inline void fault_write(const char *dir, const char *file,
			       const char *text)
{
	char path[96];
	int err;

	snprintf(path, sizeof(path), DEBUGFS "%s/%s", dir, file);
	err = write_text(path, text);
	if (err)
		tap_bail("%s: %s", path, strerror(-err));
}

static inline int fault_open(const char *dir, const char *file)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), DEBUGFS "%s/%s", dir, file);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		tap_bail("%s: %s", path, strerror(errno));
	return fd;
}

/* To be called by the thread that makes the calls: the faults are its own */
static inline void faults_start(void)
{
	unsigned int i;
	char text[16];

	snprintf(text, sizeof(text), "%ld", PLENTY);
	for (i = 0; i < INJECTED_KINDS; i++) {
		fault_write(fault_dirs[i], "times", text);
		fault_write(fault_dirs[i], "task-filter", "Y");
		/* A fault that was ordered is not to look like one in the log. */
		fault_write(fault_dirs[i], "verbose", "0");
		fault_odds[i] = fault_open(fault_dirs[i], "probability");
	}
	fault_write("failslab", "ignore-gfp-wait", "N");
	fault_write("fail_page_alloc", "ignore-gfp-wait", "N");
	fault_write("fail_page_alloc", "ignore-gfp-highmem", "N");
	fault_write("fail_page_alloc", "min-order", "0");
	if (write_text("/proc/thread-self/make-it-fail", "1"))
		tap_bail("make-it-fail: %s", strerror(errno));
	fault_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fault_nth < 0)
		tap_bail("fail-nth: %s", strerror(errno));
	/* Limits shall be seen to be kept. */
	drop_resource();
	/* So that no fault hits this program when it touches its own memory. */
	if (mlockall(MCL_CURRENT))
		tap_bail("mlockall: %s", strerror(errno));
}

/* How many of a kind were injected until now? */
static inline long fault_count(unsigned int kind)
{
	char path[96], text[24];

	/* These files can be read only once. */
	snprintf(path, sizeof(path), DEBUGFS "%s/times", fault_dirs[kind]);
	read_text(path, text, sizeof(text));
	return PLENTY - atol(text);
}

/* How many places more until a fault? -1: that was not to be had */
static inline long fault_distance(void)
{
	char text[24] = "";

	return pread(fault_nth, text, sizeof(text) - 1, 0) > 0 ? atol(text) : -1;
}

static inline void fault_arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(fault_nth, text, len, 0) != len)
		tap_bail("fail-nth: %s", strerror(errno));
}

/* What kind of fault was there since the last look? */
static inline unsigned int fault_kind(void)
{
	unsigned int i, kind = 0;

	for (i = 0; i < INJECTED_KINDS; i++) {
		long count = fault_count(i);

		if (count != fault_total[i])
			kind |= 1U << i;
		fault_total[i] = count;
	}
	return kind;
}

/* Did it happen, and what was it? */
static inline unsigned int fault_disarm(void)
{
	/* If looking at it, or ending it, is what is hit, then the call was not. */
	long distance = fault_distance();
	bool late = distance < 0;
	unsigned int kind;

	while (pwrite(fault_nth, "0", 1, 0) != 1) {
		if (errno != EFAULT && errno != ENOMEM)
			tap_bail("fail-nth: %s", strerror(errno));
		late = true;
	}
	if (distance > 0 && !late)
		return 0;
	kind = fault_kind();
	if (!kind || kind & (kind - 1))
		tap_bail("a fault of the kind %#x", kind);
	return late ? 0 : kind;
}

static inline bool faults_were(const struct faults *f, unsigned int kinds,
			       unsigned int refused)
{
	unsigned int i;

	for (i = 0; i < INJECTED_KINDS; i++)
		if (kinds >> i & 1 && !f->hits[i])
			return false;
	return f->refused >= refused;
}

/*
 * Is there a further fault to be tried? Such kinds of them are to be there, and so
 * many that make the call fail. What a call asks the kernel for is not quite the same
 * each time, so that a turn may miss some: then there is another.
 */
static inline bool faults_next(struct faults *f, unsigned int kinds,
			       unsigned int refused)
{
	bool again = false;

	if (f->n && !f->kind) {
		again = !faults_were(f, kinds, refused);
		if (kinds && (!again || f->turns == MOST_TURNS))
			tap_diag("%s: %u slab, %u pages, %u copies; %u refused",
				 tap_name, f->hits[0], f->hits[1], f->hits[2],
				 f->refused);
		if (!again || f->turns == MOST_TURNS)
			return EXPECT_TRUE(!again, "too few of the faults %#x", kinds) &&
			       false;
		f->turns++;
		f->refused = 0;
		f->n = 0;
	}
	f->n += quick() && f->n >= EACH_UP_TO ? STRIDE : 1;
	if (f->n > MOST_FAULTS)
		tap_bail("no end of faults");
	return true;
}

static inline void faults_done(struct faults *f, long ret)
{
	unsigned int i;

	f->kind = fault_disarm();
	for (i = 0; i < INJECTED_KINDS; i++)
		f->hits[i] += f->kind >> i & 1;
	if (f->kind && ret < 0)
		f->refused++;
}

/* The call, an expression with a negative error, with the fault of the turn, if there is one */
#define WITH_FAULT(f, call) ({						\
	struct faults *fault_turn = (f);				\
	long fault_ret;							\
									\
	if (fault_turn->n)						\
		fault_arm(fault_turn->n);				\
	fault_ret = (call);						\
	if (fault_turn->n)						\
		faults_done(fault_turn, fault_ret);			\
	fault_ret; })

/* The negative error of a system call of the C library */
#define NEG(call) ({							\
	long neg_ret = (call);						\
									\
	neg_ret < 0 ? -errno : neg_ret; })

/* An error is one that the fault explains; and without a fault there is none */
static inline bool fault_explains(const struct faults *f, long ret)
{
	if (ret >= 0)
		return true;
	if (f->kind == COPY)
		return ret == -EFAULT;
	/* Without memory for a page there is nothing at its address. */
	return f->kind && (ret == -ENOMEM || (f->lazy && ret == -EFAULT));
}

#define EXPECT_EXPLAINED(f, ret) ({					\
	const struct faults *why = (f);					\
	long err = (ret);						\
									\
	EXPECT_TRUE(fault_explains(why, err), "error %ld, fault %u, kind %#x", \
		    -err, why->n, why->kind); })

/* For as long as this is on, this thread gets no memory at all. */
static inline void memory_fails(bool on)
{
	const char *odds = on ? "100" : "0";
	unsigned int i;

	for (i = 0; i < INJECTED_KINDS; i++)
		if (1U << i != COPY &&
		    write(fault_odds[i], odds, strlen(odds)) < 0)
			tap_bail("probability: %s", strerror(errno));
	if (on)
		return;
	fault_write("failslab", "space", "0");
	fault_kind();
}

/*
 * This thread gets @bytes more, of memory of a kind, and then none at all; so
 * that what is tried again fails again. memory_fails(false) ends it.
 */
static inline void memory_ends(unsigned int bytes)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", bytes);
	fault_write("failslab", "space", text);
	if (write(fault_odds[0], "100", 3) < 0)
		tap_bail("probability: %s", strerror(errno));
}

/* @open wheels are open, with no timers. */
static inline void check_open_wheels(int open)
{
	char text[1024];
	int got = -1;

	read_text(DEBUGFS "twheel/counters", text, sizeof(text));
	EXPECT_TRUE(sscanf(text, "open %d", &got) == 1 && got == open, "%.200s", text);
	EXPECT_TRUE(strstr(text, "\npending 0\nready 0\n"), "%.200s", text);
}

static inline void test_nothing_left(void)
{
	check_open_wheels(0);
}

#endif
