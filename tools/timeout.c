// SPDX-License-Identifier: GPL-2.0
/*
 * twheel timeout: runs a program and ends it after a time, as timeout(1) of coreutils does,
 * with the same statuses. The time is a timer of a wheel.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"
#include "waiter.h"

enum {
	STATUS_TIMED_OUT = 124,
	STATUS_CANT = 125,
	STATUS_CANT_RUN = 126,
	STATUS_NO_PROGRAM = 127,
};

enum { OPTION_FOREGROUND = 256, OPTION_PRESERVE };

static struct {
	int signal;
	__u64 time, kill_after;
	bool foreground, preserve, verbose;
	char **command;
} how = { .signal = SIGTERM };

static pid_t child;
static bool timed_out;

static void parse_time(const char *arg, __u64 *ns, struct argp_state *state)
{
	if (!parse_duration(arg, ns))
		argp_error(state, NO_DURATION, arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's':
		how.signal = parse_signal(arg);
		if (how.signal < 0)
			argp_error(state, "'%s' is no signal; kill -l says which there are", arg);
		return 0;
	case 'k':
		parse_time(arg, &how.kill_after, state);
		return 0;
	case 'v':
		how.verbose = true;
		return 0;
	case OPTION_FOREGROUND:
		how.foreground = true;
		return 0;
	case OPTION_PRESERVE:
		how.preserve = true;
		return 0;
	case ARGP_KEY_ARG:
		parse_time(arg, &how.time, state);
		/* From here on it is all the program's, also what looks like an option. */
		how.command = &state->argv[state->next];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!how.command || !*how.command)
			argp_error(state, "which program, and for how long?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	{ "signal", 's', "SIGNAL", 0, "What to send when the time is over (TERM)", 0 },
	{ "kill-after", 'k', "TIME", 0, "Send KILL, too, if it still runs TIME later", 0 },
	{ "foreground", OPTION_FOREGROUND, NULL, 0,
	  "Leave it in the foreground, where it can read from the terminal; its own children "
	  "are not ended then",
	  0 },
	{ "preserve-status", OPTION_PRESERVE, NULL, 0,
	  "End with its status, also if the time was over", 0 },
	{ "verbose", 'v', NULL, 0, "Say which signal is sent", 0 },
	{}
};

static const struct argp argp = {
	options, parse, "TIME COMMAND [ARGUMENT...]",
	"Runs COMMAND, and ends it if it still runs after TIME: 20 (seconds), " DURATION_EXAMPLES
	", or inf; 0 is for ever.\v"
	"Status: 124 if the time was over, 125 if this command failed itself, 126 if COMMAND "
	"can't be run, 127 if there is none, 137 if KILL ended it; else that of COMMAND.",
	NULL, NULL, NULL
};

/* No more of that signal comes here: blocked ones are kept even if they are ignored. */
static void ignore(int nr)
{
	sigset_t one;

	signal(nr, SIG_IGN);
	sigemptyset(&one);
	sigaddset(&one, nr);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* To the program, and unless it is in the foreground to its group, which is ours, too */
static void send_signal(int nr)
{
	kill(child, nr);
	if (how.foreground)
		return;
	/* (Of KILL, this command dies as well, and so its status is the right one.) */
	ignore(nr);
	kill(0, nr);
	/* A stopped process can't end: have it go on. */
	if (nr != SIGKILL && nr != SIGCONT) {
		kill(child, SIGCONT);
		kill(0, SIGCONT);
	}
}

/* The program is to end, and if it was asked for, by force some time later. */
static void end_command(struct twheel *tw, int nr)
{
	if (how.kill_after) {
		/* Without a timer it would not be ended at all. */
		if (waiter_arm(tw, how.kill_after))
			nr = SIGKILL;
		how.kill_after = 0;
		how.signal = SIGKILL;
	}
	if (how.verbose)
		fprintf(stderr, "twheel timeout: sending signal %s to command '%s'\n",
			text_signal(nr).s, how.command[0]);
	send_signal(nr);
}

static void time_is_over(struct twheel *tw)
{
	timed_out = true;
	end_command(tw, how.signal);
}

static __attribute__((noreturn)) void run_command(const sigset_t *mask)
{
	signal(SIGTTIN, SIG_DFL);
	signal(SIGTTOU, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(how.command[0], how.command);
	say("can't run '%s': %s", how.command[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NO_PROGRAM : STATUS_CANT_RUN);
}

/* As the program ended, so does this: by the same signal, but without a core of its own */
static int end_as(int status)
{
	struct rlimit none = { 0, 0 };
	sigset_t one;
	int nr;

	if (WIFEXITED(status))
		return timed_out && !how.preserve ? STATUS_TIMED_OUT : WEXITSTATUS(status);
	nr = WTERMSIG(status);
	if (!timed_out && !setrlimit(RLIMIT_CORE, &none)) {
		signal(nr, SIG_DFL);
		raise(nr);
		sigemptyset(&one);
		sigaddset(&one, nr);
		sigprocmask(SIG_UNBLOCK, &one, NULL);
	}
	if (timed_out && nr != SIGKILL && !how.preserve)
		return STATUS_TIMED_OUT;
	return 128 + nr;
}

/* A signal came. Gives true when the program has ended. */
static bool take_signal(struct twheel *tw, int fd, int *status)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGCHLD) {
		end_command(tw, info.ssi_signo);
		return false;
	}
	return waitpid(child, status, WNOHANG) == child;
}

static int wait_for_it(struct twheel *tw, int fd)
{
	int status;

	for (;;) {
		if (waiter_wait(tw, fd) && take_signal(tw, fd, &status))
			return end_as(status);
		if (waiter_expired(tw))
			time_is_over(tw);
	}
}

/* Take signals that would end this command, which passes them on, and news of the program. */
static int take_signals(sigset_t *before)
{
	static const int all[] = { SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT };
	sigset_t mask;
	size_t i;

	sigemptyset(&mask);
	for (i = 0; i < ARRAY_SIZE(all); i++)
		sigaddset(&mask, all[i]);
	if (how.signal && how.signal != SIGKILL && how.signal != SIGSTOP)
		sigaddset(&mask, how.signal);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	sigprocmask(SIG_BLOCK, &mask, before);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

int cmd_timeout(int argc, char **argv)
{
	struct twheel *tw;
	sigset_t before;
	int fd, ret;

	argp_err_exit_status = STATUS_CANT;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, NULL);
	if (waiter_open(&tw))
		return STATUS_CANT;
	/* Before there is a program, which nothing would end if there is no timer to be had. */
	ret = how.time ? waiter_arm(tw, how.time) : 0;
	if (ret)
		return fail(STATUS_CANT, "can't arm a timer: %s", strerror(-ret));
	/* The program's own children are ended with it. */
	if (!how.foreground)
		setpgid(0, 0);
	fd = take_signals(&before);
	child = fd < 0 ? -1 : fork();
	if (!child)
		run_command(&before);
	if (child < 0)
		return fail(STATUS_CANT, "can't begin: %s", strerror(errno));
	return wait_for_it(tw, fd);
}
