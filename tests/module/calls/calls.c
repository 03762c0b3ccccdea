// SPDX-License-Identifier: GPL-2.0
/*
 * calls SECONDS [SEED]: make all calls that there are on /dev/twheel, in random
 * programs, from threads of several processes at once that share wheels, and see
 * that each promise holds for each timer, by a model of what the wheels hold.
 * Where the kernel has KCOV, it says how much of the module they reach.
 *
 * Work goes in rounds: wheels are opened, each worker goes through its programs,
 * and in the end all is taken out and counted. What was done in a round in which
 * a promise was broken, or the kernel complained, is printed; it can be had again
 * with
 *
 *	calls SECONDS -r FILE
 *
 * where FILE has that in it. (Threads may meet in another way then.)
 */
#include "calls.h"
#include "model_wheel.h"

#include <stdarg.h>
#include <sys/time.h>

/* No new program is begun after so long in a round */
#define ROUND_MS 500

/* A round that takes so long hangs. (Clocks of emulated machines may be fast.) */
#define ROUND_SECONDS 240

struct shared *shared;
int wheels[WHEELS];

static __u64 seconds, replayed;
static int pipes[PROCESSES][2];	/* by which each process is sent its wheels */
static pid_t processes[PROCESSES];
static int parent;		/* pidfd of the first process */
static int process;
static bool active;		/* this process is in a round */
static pthread_barrier_t both;	/* the threads of this process */
static pid_t threads[THREADS];
static int kernel_log;
static char report[400];	/* what the kernel complained of */
static __u64 round_began;

/* A promise is broken: the first one is kept. */
void broken(const char *format, ...)
{
	va_list args;

	if (__atomic_exchange_n(&shared->halt, 1, __ATOMIC_SEQ_CST))
		return;
	va_start(args, format);
	vsnprintf(shared->broken, sizeof(shared->broken), format, args);
	va_end(args);
}

bool halted(void)
{
	return __atomic_load_n(&shared->halt, __ATOMIC_RELAXED);
}

void signal_somebody(__u64 *seed)
{
	syscall(SYS_tgkill, getpid(), threads[below(seed, THREADS)], SIGUSR1);
}

/* A process takes the wheels of a round over. None are sent when there is no more. */
static bool take_wheels(int from)
{
	int theirs[WHEELS], w;
	ssize_t ret;

	do {
		ret = read(from, theirs, sizeof(theirs));
	} while (ret < 0 && errno == EINTR);
	if (ret != sizeof(theirs))
		return false;
	for (w = 0; w < WHEELS; w++) {
		wheels[w] = syscall(SYS_pidfd_getfd, parent, theirs[w], 0);
		if (wheels[w] < 0)
			tap_bail("pidfd_getfd: %s", strerror(errno));
	}
	return true;
}

static void random_program(struct program *program, __u64 *seed)
{
	__u32 i;

	program->nr = 1 + below(seed, CALLS);
	for (i = 0; i < program->nr; i++)
		program->calls[i] = (struct call){
			.kind = random_next(seed) >> 20,
			.wheel = random_next(seed) >> 20,
			.shape = random_next(seed) >> 20,
			.nr = random_next(seed) >> 20,
			.pick = random_next(seed) >> 20,
			.seed = random_next(seed),
		};
}

/* (A slow machine goes through fewer, so that it gets to the end of the round.) */
static void run_programs(int worker, __u64 *seed)
{
	__u64 end = now(CLOCK_MONOTONIC) + ROUND_MS * MSEC;
	int i;
	__u32 c;

	for (i = 0; i < PROGRAMS && !halted(); i++) {
		struct program *program = &shared->programs[worker][i];

		if (!replayed && now(CLOCK_MONOTONIC) > end)
			break;
		if (!replayed)
			random_program(program, seed);
		reach_begin();
		for (c = 0; c < program->nr && !halted(); c++) {
			__atomic_store_n(&shared->at[worker], &program->calls[c],
					 __ATOMIC_RELAXED);
			call_make(&program->calls[c]);
			__atomic_add_fetch(&shared->calls, 1, __ATOMIC_RELAXED);
		}
		reach_end();
	}
	shared->at[worker] = NULL;
}

static void *work(void *arg)
{
	int me = (long)arg, worker = process * THREADS + me, w;
	__u64 seed;

	threads[me] = syscall(SYS_gettid);
	calls_thread();
	reach_thread();
	for (;;) {
		if (!me && !take_wheels(pipes[process][0]))
			shared->over = 1;
		pthread_barrier_wait(&both);
		if (shared->over)
			return NULL;
		active = true;
		pthread_barrier_wait(&shared->begin);
		seed = (shared->seed + worker + 1) * 0x9e3779b97f4a7c15;
		run_programs(worker, &seed);
		pthread_barrier_wait(&both);
		if (!me) {
			active = false;
			for (w = 0; w < WHEELS; w++)
				close(wheels[w]);
		}
		pthread_barrier_wait(&shared->end);
	}
}

/* Memory changes while calls are in it. */
static void *disturb(void *arg)
{
	__u64 seed = (long)arg;

	while (!shared->over) {
		if (active)
			chaos_step(&seed);
		sleep_ns(active ? 100 * USEC : MSEC);
	}
	return NULL;
}

static void run_process(void)
{
	pthread_t thread[THREADS];
	long i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_barrier_init(&both, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			tap_bail("pthread_create");
	pthread_create(&(pthread_t){ 0 }, NULL, disturb, (void *)(77L + process));
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	fflush(stdout);
	_exit(0);
}

/* Wheels of all kinds; those of the model are set up once. */
static void open_wheels(__u64 *seed)
{
	static const clockid_t clocks[] = {
		CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI,
	};
	static const __u64 ticks[] = { 0, 1000, 10000, MSEC, 1234567, 10 * MSEC };
	static const __u32 sizes[] = { 0, TWHEEL_EVENT_SIZE_ID, TWHEEL_EVENT_SIZE_FULL };
	int w;

	for (w = 0; w < WHEELS; w++) {
		clockid_t clock = clocks[below(seed, ARRAY_SIZE(clocks))];
		struct twheel_setup setup = {
			.size = sizeof(setup),
			.flags = w == WHEEL_COUNT ? TWHEEL_SETUP_COUNT : 0,
			.clock = wheel_clock(clock),
			.event_size = sizes[below(seed, ARRAY_SIZE(sizes))],
			.tick = ticks[below(seed, ARRAY_SIZE(ticks))],
			.limit = one_in(seed, 4) ? 8 + below(seed, 100) : 0,
		};
		long ret;

		if (setup.flags & TWHEEL_SETUP_COUNT)
			setup.event_size = 0;
		wheels[w] = wheel_open(0);
		ret = wheel_ioctl(wheels[w], TWHEEL_IOC_SETUP, &setup);
		if (ret)
			broken("setup gave %ld", ret);
		if (w >= MODELS)
			continue;
		model_begin(&shared->models[w], wheels[w], w, false);
		if (shared->models[w].event_size !=
		    (setup.flags ? 8 : setup.event_size ?: TWHEEL_EVENT_SIZE_FULL))
			broken("events of %u bytes are of %u", setup.event_size,
			       shared->models[w].event_size);
	}
}

static void print_call(int worker, int i, const struct call *call)
{
	tap_diag("call %d %d %02x %02x %02x %02x %08x %016llx  %s, wheel %d%s",
		 worker, i, call->kind, call->wheel, call->shape, call->nr,
		 call->pick, call->seed, call_name(call), call->wheel % WHEELS,
		 shared->at[worker] == call ? "  <- in here" : "");
}

static void print_round(void)
{
	int worker, i;
	__u32 c;

	tap_diag("round %llx", shared->seed);
	for (worker = 0; worker < WORKERS; worker++)
		for (i = 0; i < PROGRAMS; i++)
			for (c = 0; c < shared->programs[worker][i].nr; c++)
				print_call(worker, i,
					   &shared->programs[worker][i].calls[c]);
}

/* Programs as print_round() printed them */
static void load_round(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[256];

	if (!f)
		tap_bail("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		unsigned int worker, i, kind, wheel, shape, nr, pick;
		struct program *program;
		__u64 seed;

		if (sscanf(line, "# round %llx", &seed) == 1)
			replayed = seed;
		if (sscanf(line, "# call %u %u %x %x %x %x %x %llx", &worker, &i,
			   &kind, &wheel, &shape, &nr, &pick, &seed) != 8 ||
		    worker >= WORKERS || i >= PROGRAMS)
			continue;
		program = &shared->programs[worker][i];
		if (program->nr < CALLS)
			program->calls[program->nr++] = (struct call){
				kind, wheel, shape, nr, pick, seed,
			};
	}
	fclose(f);
	if (!replayed)
		tap_bail("%s: there is no round in it", path);
}

/* Has the kernel complained since it was asked last? */
static bool kernel_complains(void)
{
	static const char *const signs[] = {
		"BUG:", "WARNING:", "Oops", "UBSAN", "rcu:", "lockup",
		"general protection", "blocked for more",
	};
	char line[4096];
	ssize_t n;
	size_t i;

	while ((n = read(kernel_log, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		char *text;

		line[n > 0 ? n : 0] = 0;
		text = strchr(line, ';');
		for (i = 0; text && i < ARRAY_SIZE(signs) && !report[0]; i++)
			if (strstr(text, signs[i]))
				snprintf(report, sizeof(report), "%.350s", text + 1);
	}
	return report[0];
}

static void end_badly(const char *why)
{
	tap_diag("round %llu: %s", shared->rounds, why);
	if (shared->broken[0])
		tap_diag("%s", shared->broken);
	if (report[0])
		tap_diag("the kernel says: %s", report);
	print_round();
	printf("not ok 1 - every promise is kept\n1..1\n");
	fflush(stdout);
	_exit(1);
}

/* Every second: do the machine, the processes and the round still live? */
static void on_watch(int sig)
{
	int i;

	(void)sig;
	if (!round_began)
		return;
	if (kernel_complains())
		end_badly("the kernel complains");
	if (now(CLOCK_MONOTONIC) > round_began + ROUND_SECONDS * SEC)
		end_badly("it hangs");
	for (i = 0; i < PROCESSES; i++)
		if (waitpid(processes[i], NULL, WNOHANG) > 0)
			end_badly("a process died");
}

static void watch(void)
{
	struct itimerval each = { { 1, 0 }, { 1, 0 } };
	struct sigaction act = { .sa_handler = on_watch, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

static void run_round(__u64 *seed)
{
	int i, w;

	shared->seed = replayed ? replayed : random_next(seed);
	if (!replayed)
		memset(shared->programs, 0, sizeof(shared->programs));
	*seed = shared->seed;
	open_wheels(seed);
	for (i = 0; i < PROCESSES; i++)
		if (write(pipes[i][1], wheels, sizeof(wheels)) != sizeof(wheels))
			tap_bail("write: %s", strerror(errno));

	/* In here nothing is printed, so that the watch may print. */
	round_began = now(CLOCK_MONOTONIC);
	pthread_barrier_wait(&shared->begin);
	pthread_barrier_wait(&shared->end);
	for (w = 0; w < MODELS && !halted(); w++)
		model_finish(&shared->models[w], wheels[w]);
	round_began = 0;
	for (w = 0; w < WHEELS; w++)
		close(wheels[w]);
	shared->rounds++;
	if (kernel_complains())
		end_badly("the kernel complains");
	if (halted())
		end_badly("a promise is broken");
}

static void start_processes(void)
{
	int i;

	parent = syscall(SYS_pidfd_open, getpid(), 0);
	for (process = 0; process < PROCESSES; process++)
		if (pipe2(pipes[process], O_CLOEXEC))
			tap_bail("pipe: %s", strerror(errno));
	for (process = 0; process < PROCESSES; process++) {
		fflush(stdout);
		processes[process] = fork();
		if (processes[process] < 0)
			tap_bail("fork: %s", strerror(errno));
		if (!processes[process]) {
			for (i = 0; i < PROCESSES; i++)
				close(pipes[i][1]);
			run_process();
		}
	}
}

static void init_shared(void)
{
	pthread_barrierattr_t attr;

	shared = map_shared(sizeof(*shared));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->begin, &attr, WORKERS + 1);
	pthread_barrier_init(&shared->end, &attr, WORKERS + 1);
	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(kernel_log, 0, SEEK_END);
	chaos_init();
}

int main(int argc, char **argv)
{
	__u64 seed, end, most = number_of("ROUNDS", ~0ULL >> 1);
	int i, status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	seconds = argc > 1 ? strtoull(argv[1], NULL, 0) : 60;
	init_shared();
	seed = argc == 3 ? strtoull(argv[2], NULL, 0) : now(CLOCK_REALTIME);
	if (argc == 4)
		load_round(argv[3]);
	printf("TAP version 13\n");
	reach_init();
	tap_diag("seed %llu", seed);
	seed = seed * 2 + 1;
	end = now(CLOCK_MONOTONIC) + seconds * SEC;
	start_processes();
	watch();
	while (now(CLOCK_MONOTONIC) < end && shared->rounds < most)
		run_round(&seed);
	for (i = 0; i < PROCESSES; i++) {
		close(pipes[i][1]);
		waitpid(processes[i], &status, 0);
	}
	tap_diag("%llu rounds, %llu calls", shared->rounds, shared->calls);
	reach_report();
	printf("ok 1 - every promise is kept\n1..1\n");
	return 0;
}
