// SPDX-License-Identifier: MIT
/*
 * keeper NUMBER SECONDS FILE: a service whose timers outlive its processes. Its wheel is in
 * systemd's store of file descriptors, where time goes on while nobody runs, and each new
 * process gets it back from there. A restart and an upgrade lose nothing. A crash loses no
 * timer that is armed; but an expiry that was read and not yet acted upon is gone with the
 * process, and what was not armed yet is not armed by the next one.
 *
 * The first process starts NUMBER leases, which end within SECONDS; each writes a line with
 * the number of each lease that ended to FILE. The unit is keeper.service, beside this.
 *
 *	cc keeper.c $(pkg-config --cflags --libs twheel libsystemd)
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <twheel.h>
#include <unistd.h>

#define BATCH 64
#define SEC 1000000000ULL

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

/* The descriptor that systemd kept from the process before, or none */
static int from_store(struct twheel **tw)
{
	char **names = NULL;
	int i, found = -ENOENT;
	int nr = must(sd_listen_fds_with_names(1, &names), "sd_listen_fds_with_names");

	for (i = 0; i < nr; i++) {
		if (!strcmp(names[i], "wheel") && found)
			found = twheel_from_fd(SD_LISTEN_FDS_START + i, tw);
		free(names[i]);
	}
	free(names);
	return found;
}

static void start_leases(struct twheel *tw, unsigned int nr, unsigned int seconds)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_op op = twheel_op_arm(0, SEC * seconds / nr * (i + 1), 0, i);

		must(twheel_arm(tw, &op), "twheel_arm");
	}
}

/*
 * This is in the store before the first lease starts: a crash from there on ends none. (systemd
 * need not look after it by poll(2), as a wheel does not break.)
 */
static void to_store(struct twheel *tw)
{
	int fd = twheel_fd(tw);

	must(sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=wheel\nFDPOLL=0", &fd, 1),
	     "sd_pid_notify_with_fds");
	/* Until it has arrived there */
	must(sd_notify_barrier(0, UINT64_MAX), "sd_notify_barrier");
}

struct keeper {
	struct twheel *tw;
	int file;
};

/* Leases are ended one batch at a time; what is not read stays in the wheel */
static int ended(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct keeper *keeper = arg;
	struct twheel_event events[BATCH];
	char text[BATCH * 24];
	int i, length = 0, nr = twheel_read(keeper->tw, events, BATCH);

	(void)source;
	(void)fd;
	(void)revents;
	if (nr == -EAGAIN)
		return 0;
	must(nr, "twheel_read");
	for (i = 0; i < nr; i++)
		length += sprintf(text + length, "%llu\n", (unsigned long long)events[i].user_data);
	if (write(keeper->file, text, length) != length)
		must(-EIO, "write");
	return 0;
}

/* A bug, for those who want to see it */
static int crash(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	(void)source;
	(void)info;
	(void)arg;
	abort();
}

static void loop(struct keeper *keeper)
{
	sd_event *event;

	must(sd_event_default(&event), "sd_event_default");
	must(sd_event_add_io(event, NULL, twheel_fd(keeper->tw), EPOLLIN, ended, keeper),
	     "sd_event_add_io");
	/* Signals come between two batches */
	must(sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL), "sd_event_add_signal");
	must(sd_event_add_signal(event, NULL, SIGUSR1, crash, NULL), "sd_event_add_signal");
	must(sd_notify(0, "READY=1"), "sd_notify");
	must(sd_event_loop(event), "sd_event_loop");
	sd_event_unref(event);
}

int main(int argc, char **argv)
{
	struct keeper keeper;
	sigset_t signals;

	if (argc != 4) {
		fprintf(stderr, "usage: keeper NUMBER SECONDS FILE\n");
		return 2;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	keeper.file = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	must(keeper.file < 0 ? -errno : 0, argv[3]);
	if (from_store(&keeper.tw)) {
		must(twheel_open(TWHEEL_KERNEL | O_NONBLOCK, &keeper.tw), "twheel_open");
		to_store(keeper.tw);
		start_leases(keeper.tw, atoi(argv[1]), atoi(argv[2]));
	}
	loop(&keeper);
	twheel_close(keeper.tw);
	return 0;
}
