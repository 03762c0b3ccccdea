/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a part of a program in a document may take for granted. What else it needs, the
 * document says in a comment before it: <!-- given: int connections; -->
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <twheel.h>
#include <twheel_pool.h>
#include <twheel_shared.h>

#define US 1000ULL
#define MS 1000000ULL
#define SEC 1000000000ULL

struct twheel *tw;
struct twheel_pool *pool;
struct twheel_task *task;
struct twheel_area area;

/* What a server has for each of its connections */
struct connection {
	pthread_mutex_t lock;
	uint64_t deadline;
	unsigned int number;
};

struct connection *connection;
void close_connection(struct connection *connection);
