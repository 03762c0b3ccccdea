/* SPDX-License-Identifier: GPL-2.0 */
/*
 * systemd: its sockets, its watchdog, and the server's state for it. Without systemd, all of it
 * does nothing.
 */
#ifndef TWHEELD_SYSTEMD_H
#define TWHEELD_SYSTEMD_H

struct event_base;

void systemd_sockets(void (*each)(int fd, const char *name));
void systemd_start(struct event_base *base);
void systemd_ready(void);
void systemd_reloading(void);
void systemd_stopping(void);
void systemd_may_take_long(void);
__attribute__((format(printf, 1, 2))) void systemd_status(const char *format, ...);

#endif
