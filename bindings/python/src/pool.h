/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pools and their tasks: what both files need. */
#ifndef TWHEEL_PYTHON_POOL_H
#define TWHEEL_PYTHON_POOL_H

#include <pthread.h>
#include <stddef.h>

#include "native.h"

/**
 * struct pool - a pool
 * @pool: the library's, freed with this
 * @threads: its workers, which are joined then
 * @nr_threads: how many there are
 * @forks: as it was when they were made: a child has none of them
 * @queue: of one without workers, the tasks that it has, and a reference to each
 * @left: tasks that a stop has taken out and did not give yet, or NULL
 * @on_error: called with a task and its exception, or NULL
 * @next: the next one of the process
 * @at: what points to this one
 */
struct pool {
	PyObject_HEAD
	struct twheel_pool *pool;
	pthread_t *threads;
	uint32_t nr_threads;
	unsigned int forks;
	struct task *queue;
	PyObject *left;
	PyObject *on_error;
	struct pool *next;
	struct pool **at;
};

/**
 * struct task - a task. While it is in its pool, that has a reference to it.
 * @task: the library's
 * @pool: where it is, or was: it must not go before
 * @next: the next one of a pool's @queue
 * @at: what points to this one there, or NULL
 * @function: what is called
 * @args: with what
 */
struct task {
	PyObject_HEAD
	struct twheel_task task;
	struct pool *pool;
	struct task *next;
	struct task **at;
	PyObject *function;
	PyObject *args;
};

extern PyTypeObject task_type;

/* Start a task of what start(function, when, *args, ...) was called with */
PyObject *task_start(struct pool *pool, PyObject *args, PyObject *keywords);

/* In task.c: the pool has it no more, and its reference is the caller's */
struct task *task_leave(struct task *task);

static inline struct task *task_of(struct twheel_task *task)
{
	return (struct task *)((char *)task - offsetof(struct task, task));
}

#endif
