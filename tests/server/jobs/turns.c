// SPDX-License-Identifier: GPL-2.0
/*
 * How long the event loop works between two waits: to be preloaded (LD_PRELOAD). The file that
 * TWHEELD_TURNS names has, as two numbers of 64 bits, the longest of these turns and all of them
 * together, in ns of the processor, since somebody has set them to 0. What other programs do on
 * the machine does not count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t *turns;		/* the longest, all */
static int64_t began;

static int64_t used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("TWHEELD_TURNS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED :
		mmap(NULL, 2 * sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		abort();
	close(fd);
	turns = map;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	int64_t took = used() - began;
	int ret;

	/* Somebody else sets them to 0. */
	if (began) {
		__atomic_fetch_add(&turns[1], took, __ATOMIC_RELAXED);
		if (took > __atomic_load_n(&turns[0], __ATOMIC_RELAXED))
			__atomic_store_n(&turns[0], took, __ATOMIC_RELAXED);
	}
	ret = ((__typeof__(epoll_wait) *)dlsym(RTLD_NEXT, "epoll_wait"))(fd, events, most, timeout);
	began = used();
	return ret;
}
