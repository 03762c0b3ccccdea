/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What systemd is told, and has opened for the server. Without systemd, all of it does
 * nothing.
 */
#ifndef TWHEELD_NOTIFY_H
#define TWHEELD_NOTIFY_H

struct event_base;

void notify_sockets(void (*each)(int fd, const char *name));
void notify_start(struct event_base *base);
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
__attribute__((format(printf, 1, 2))) void notify_status(const char *format, ...);

#endif
