// SPDX-License-Identifier: GPL-2.0
/*
 * Stands between a server and the system: to be preloaded (LD_PRELOAD). What it does is said by
 * the environment, each variable for itself; shim.py has the other side of it.
 *
 * SHIM_DISK is a file that says what the disk is at the moment: "slow" (a sync takes 300 ms),
 * "broken" (a sync or write fails with EIO), "full" (a write fails with ENOSPC), "hangs" (a sync
 * does not return while it says so). With "loop hangs", to accept a client does not return, which
 * the event loop does. Sockets and pipes are not touched. "once NAME NUMBER WHICH WHAT" is for one
 * call alone, the one of that number, from when another NAME is read. WHICH is "any", "read",
 * "write", "sync" or "open"; WHAT is "broken", "full", "kill" (with SIGKILL, a write having been
 * half done). When that was done, the file $SHIM_DISK.NAME is there.
 *
 * Changes to files below the folder SHIM_RECORD_OF, and replies to clients, are written to
 * the file $SHIM_RECORD.N in their order, N = 0 for the first server, 1 for the
 * next. disk_image.py says what of that is on the disk when the power fails. The server may be
 * killed at any moment. So a write is recorded before it is done, and an incomplete record is
 * the last one, of a write that was not begun.
 *
 * SHIM_CLOCK is a file that has the boot time, in ns: time passes when somebody writes there. The
 * wall clock goes with it. A timerfd of these clocks is an eventfd, which is written once its time
 * has come. (Timers of the wall clock don't know that it was set: the server has none.)
 *
 * SHIM_WALL: the wall clock is wrong by as many seconds.
 *
 * SHIM_FS: of that kind (linux/magic.h) are all file systems.
 *
 * SHIM_TURNS is a file that has, as two numbers of 64 bits, the longest time that the event loop
 * works between two waits, and all of them together, in ns of the processor, since somebody has set
 * them to 0. What other programs do on the machine does not count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Looked up once, as a server asks for the time often */
#define REAL(name) ({ \
	static __typeof__(name) *known; \
	known = known ? known : (__typeof__(name) *)dlsym(RTLD_NEXT, #name); \
	known; })
#define SECOND 1000000000LL
/* How far a stepped wall clock is ahead of the boot time: some day of 2026 */
#define WALL (1780000000 * SECOND)
#define MOST_TIMERS 64
#define MOST_FILES 4096

static const char *disk, *record, *record_of;
static long wall_wrong;

static struct {
	atomic_llong now;	/* what somebody says */
	atomic_llong seen;	/* up to when expired timers were delivered */
	atomic_llong busy;	/* a timer has expired, and was not set anew */
	atomic_llong set;	/* by which somebody has set the wall clock */
} *stepped;

static struct {
	atomic_llong longest;
	atomic_llong all;
} *turns;

/* By system calls, as there are functions of these names below */
static int raw_open(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

/* The disk that is bad */

/* The kind of a call, for "once" */
enum call { READ = 'r', WRITE = 'w', SYNC = 's', OPEN = 'o' };

/* The file's text: nothing when all is well */
static void read_state(char *state, size_t size)
{
	int fd = disk ? raw_open(disk, O_RDONLY) : -1;
	ssize_t got = fd < 0 ? -1 : syscall(SYS_read, fd, state, size - 1);

	state[got > 0 ? got : 0] = 0;
	if (fd >= 0)
		syscall(SYS_close, fd);
}

static void say_done(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s.%s", disk, name);
	syscall(SYS_close, raw_open(path, O_WRONLY | O_CREAT));
}

/* The first letter of what the one call is to do that "once" is for */
static char one_call(const char *state, enum call call)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char known[32];
	static int calls;
	char name[32], which[8], what[8], ret = 0;
	int number;

	if (sscanf(state, "once %31s %d %7s %7s", name, &number, which, what) != 4 ||
	    (which[0] != 'a' && which[0] != (char)call))
		return 0;
	pthread_mutex_lock(&lock);
	if (strcmp(known, name)) {
		strcpy(known, name);
		calls = 0;
	}
	if (++calls == number) {
		say_done(name);
		ret = what[0];
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/*
 * The disk's state for a call: the first letter of its word, 0 when all is well. To read and to
 * open, only "once" is for: who reads from a bad disk mostly finds it in memory.
 */
static char state_for(enum call call)
{
	char state[128], now;

	read_state(state, sizeof(state));
	now = state[0] == 'o' ? one_call(state, call) :
		call == READ || call == OPEN ? 0 : state[0];
	if (now == 'k' && call != WRITE)
		raise(SIGKILL);
	return now;
}

/* Whether a call fails; errno says why */
static int fails(char now)
{
	if (now == 'b')
		errno = EIO;
	else if (now == 'f')
		errno = ENOSPC;
	return now == 'b' || now == 'f';
}

/* Calls that change a file's size, or its name, and need no room */
static int change_fails(void)
{
	char now = state_for(WRITE);

	if (now == 'k')
		raise(SIGKILL);
	return now == 'b' && fails(now);
}

static mode_t kind_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_mode & S_IFMT;
}

/* Whether a write is to fail. Before a SIGKILL half of it is done. */
static int write_fails(int fd, const void *data, size_t size, off_t at)
{
	char now = disk && kind_of(fd) == S_IFREG ? state_for(WRITE) : 0;

	if (now == 'k') {
		syscall(SYS_pwrite64, fd, data, size / 2, at);
		raise(SIGKILL);
	}
	return fails(now);
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static int sync_fails(void)
{
	char now;

	while ((now = state_for(SYNC)) == 'h')
		nap(10000000);
	if (now == 's')
		nap(300000000);
	return now == 'b' && fails(now);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	char state[128];

	for (read_state(state, sizeof(state)); state[0] == 'l'; read_state(state, sizeof(state)))
		nap(10000000);
	return REAL(accept4)(fd, addr, length, flags);
}

/* Records */

/* All that is written of one call: this, and then the bytes */
struct head {
	/* Open, Write, Truncate, Sync, Failed sync, Unlink, reply sent: R; only a part of it: E */
	char what;
	int32_t pid;
	int32_t fd;
	uint64_t at;
	uint64_t size;
} __attribute__((packed));

static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;
static char recorded[MOST_FILES];
static int record_fd = -1;

/* The server's handlers of signals write, too: none may come to who has the lock. */
static __thread sigset_t before;

static void hold(void)
{
	sigset_t set;

	if (!record)
		return;
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	pthread_mutex_lock(&record_lock);
}

static void let_go(void)
{
	sigset_t set = before;

	if (!record)
		return;
	pthread_mutex_unlock(&record_lock);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}

static int is_recorded(int fd)
{
	return fd >= 0 && fd < MOST_FILES && recorded[fd];
}

static void write_record(const void *data, size_t size)
{
	while (size) {
		long done = syscall(SYS_write, record_fd, data, size);

		if (done < 0)
			abort();
		data = (const char *)data + done;
		size -= done;
	}
}

static void note(char what, int fd, uint64_t at, const void *data, uint64_t size)
{
	struct head head = { what, getpid(), fd, at, data ? size : 0 };
	char path[PATH_MAX];
	int saved = errno;

	for (int n = 0; record_fd < 0 && n < 1000; n++) {
		snprintf(path, sizeof(path), "%s.%d", record, n);
		record_fd = raw_open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
	}
	write_record(&head, sizeof(head));
	if (data)
		write_record(data, size);
	errno = saved;
}

/* Record a call on a file, and whether it was done in part. */
static void note_change(char what, int fd, uint64_t at, const void *data, size_t size)
{
	if (is_recorded(fd))
		note(what, fd, at, data, size);
}

static void note_done(int fd, long wanted, long done)
{
	if (is_recorded(fd) && done < wanted)
		note('E', fd, done > 0 ? done : 0, NULL, 0);
}

static void note_sent(int fd, const void *data, ssize_t done)
{
	if (record && done > 0 && kind_of(fd) == S_IFSOCK)
		note('R', fd, 0, data, done);
}

static int is_below(const char *path, char *full)
{
	return record && realpath(path, full) && !strncmp(full, record_of, strlen(record_of));
}

/* The calls of both */

int open(const char *path, int flags, ...)
{
	char full[PATH_MAX];
	mode_t mode = 0;
	va_list args;
	int fd;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	hold();
	fd = fails(state_for(OPEN)) ? -1 : REAL(open)(path, flags, mode);
	if (fd >= 0 && fd < MOST_FILES) {
		recorded[fd] = is_below(path, full);
		if (recorded[fd])
			note('O', fd, 0, full, strlen(full));
	}
	let_go();
	return fd;
}

int close(int fd)
{
	if (is_recorded(fd))
		recorded[fd] = 0;
	return REAL(close)(fd);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	return fails(state_for(READ)) ? -1 : REAL(pread)(fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size)
{
	off_t at = disk || is_recorded(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
	ssize_t done;

	hold();
	note_change('W', fd, at, data, size);
	done = write_fails(fd, data, size, at) ? -1 : REAL(write)(fd, data, size);
	note_done(fd, size, done);
	note_sent(fd, data, done);
	let_go();
	return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	ssize_t done;

	hold();
	note_change('W', fd, at, data, size);
	done = write_fails(fd, data, size, at) ? -1 : REAL(pwrite)(fd, data, size, at);
	note_done(fd, size, done);
	let_go();
	return done;
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	ssize_t done, left;

	hold();
	done = REAL(writev)(fd, iov, count);
	left = done;
	for (int i = 0; left > 0 && i < count; i++) {
		ssize_t part = left < (ssize_t)iov[i].iov_len ? left : (ssize_t)iov[i].iov_len;

		note_sent(fd, iov[i].iov_base, part);
		left -= part;
	}
	let_go();
	return done;
}

int ftruncate(int fd, off_t size)
{
	int ret;

	hold();
	note_change('T', fd, size, NULL, 0);
	ret = change_fails() ? -1 : REAL(ftruncate)(fd, size);
	note_done(fd, 0, ret);
	let_go();
	return ret;
}

/* A write beyond the file's end is recorded only as the new length. */
int posix_fallocate(int fd, off_t at, off_t size)
{
	int ret;
	char now;

	hold();
	note_change('T', fd, at + size, NULL, 0);
	now = state_for(WRITE);
	if (now == 'k')
		raise(SIGKILL);
	ret = fails(now) ? errno : REAL(posix_fallocate)(fd, at, size);
	note_done(fd, 0, -ret);
	let_go();
	return ret;
}

static int synced(int fd, int (*how)(int fd))
{
	int ret;

	hold();
	ret = sync_fails() ? -1 : how(fd);
	note_change(ret ? 'F' : 'S', fd, 0, NULL, 0);
	let_go();
	return ret;
}

int fsync(int fd)
{
	return synced(fd, REAL(fsync));
}

int fdatasync(int fd)
{
	return synced(fd, REAL(fdatasync));
}

int unlink(const char *path)
{
	char full[PATH_MAX];
	int there, ret;

	hold();
	there = is_below(path, full);
	if (there)
		note('U', -1, 0, full, strlen(full));
	ret = change_fails() ? -1 : REAL(unlink)(path);
	if (ret && there)
		note('E', -1, 0, NULL, 0);
	let_go();
	return ret;
}

int statfs(const char *path, struct statfs *fs)
{
	const char *kind = getenv("SHIM_FS");
	int ret = REAL(statfs)(path, fs);

	if (kind)
		fs->f_type = strtol(kind, NULL, 0);
	return ret;
}

/* Where long has 64 bits, these are the same. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
ssize_t pread64(int fd, void *data, size_t size, off64_t at) __attribute__((alias("pread")));
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
	__attribute__((alias("pwrite")));
int ftruncate64(int fd, off64_t size) __attribute__((alias("ftruncate")));
int posix_fallocate64(int fd, off64_t at, off64_t size)
	__attribute__((alias("posix_fallocate")));

/* Time that passes when somebody says so */

static pthread_mutex_t timer_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int is_timer;
	int fired;
	int64_t at;	/* 0: not armed */
} timers[MOST_TIMERS];

static void look(int fd)
{
	uint64_t one = 1;

	if (!timers[fd].at || timers[fd].at > stepped->now)
		return;
	timers[fd].at = 0;
	timers[fd].fired = 1;
	if (syscall(SYS_write, fd, &one, sizeof(one)) < 0)
		abort();
}

static void *watch(void *unused)
{
	(void)unused;
	for (;;) {
		int64_t now = stepped->now, busy = 0;

		pthread_mutex_lock(&timer_lock);
		for (int fd = 0; fd < MOST_TIMERS; fd++) {
			look(fd);
			busy |= timers[fd].fired;
		}
		stepped->busy = busy;
		stepped->seen = now;
		pthread_mutex_unlock(&timer_lock);
		nap(200000);
	}
	return NULL;
}

static int is_stepped(clockid_t clock)
{
	return stepped && (clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t now;
	int ret;

	if (!is_stepped(clock)) {
		ret = REAL(clock_gettime)(clock, ts);
		ts->tv_sec += clock == CLOCK_REALTIME ? wall_wrong : 0;
		return ret;
	}
	now = stepped->now + (clock == CLOCK_REALTIME ? WALL + stepped->set : 0);
	*ts = (struct timespec){ now / SECOND, now % SECOND };
	return 0;
}

int timerfd_create(int clock, int flags)
{
	int fd;

	if (!is_stepped(clock))
		return REAL(timerfd_create)(clock, flags);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0 || fd >= MOST_TIMERS)
		abort();
	timers[fd].is_timer = 1;
	return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	int64_t at = new->it_value.tv_sec * SECOND + new->it_value.tv_nsec;
	uint64_t count;

	if (fd < 0 || fd >= MOST_TIMERS || !timers[fd].is_timer)
		return REAL(timerfd_settime)(fd, flags, new, old);
	pthread_mutex_lock(&timer_lock);
	timers[fd].fired = 0;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		abort();
	timers[fd].at = !at || flags & TFD_TIMER_ABSTIME ? at : at + stepped->now;
	look(fd);
	stepped->busy |= timers[fd].fired;
	pthread_mutex_unlock(&timer_lock);
	return 0;
}

/* How long the loop works between two waits */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	static int64_t began;
	struct timespec ts;
	int64_t took;
	int ret;

	if (!turns)
		return REAL(epoll_wait)(fd, events, most, timeout);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	took = ts.tv_sec * SECOND + ts.tv_nsec - began;
	if (began) {
		turns->all += took;
		if (took > turns->longest)
			turns->longest = took;
	}
	ret = REAL(epoll_wait)(fd, events, most, timeout);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	began = ts.tv_sec * SECOND + ts.tv_nsec;
	return ret;
}

/* A file that this and the test share; NULL if it is not asked for */
static void *shared(const char *name, size_t size)
{
	const char *path = getenv(name);
	int fd = path ? raw_open(path, O_RDWR) : -1;
	void *map = path ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;

	if (map == MAP_FAILED)
		abort();
	if (path)
		syscall(SYS_close, fd);
	return map;
}

__attribute__((constructor))
static void start(void)
{
	const char *wall = getenv("SHIM_WALL");
	sigset_t all, old;
	pthread_t thread;

	disk = getenv("SHIM_DISK");
	record = getenv("SHIM_RECORD");
	record_of = getenv("SHIM_RECORD_OF");
	wall_wrong = wall ? atol(wall) : 0;
	turns = shared("SHIM_TURNS", sizeof(*turns));
	stepped = shared("SHIM_CLOCK", sizeof(*stepped));
	if (!stepped)
		return;
	/* Signals are the server's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watch, NULL))
		abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
