/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets that listen: on a TCP port, or a unix socket. A failure ends the server, with a message.
 */
#ifndef TWHEELD_SOCKET_H
#define TWHEELD_SOCKET_H

struct evconnlistener;

int socket_open(const char *address, const char *port);
int socket_open_text(const char *text);
void socket_say(int fd, const char *whom);
void socket_spare(struct evconnlistener *listener);

#endif
