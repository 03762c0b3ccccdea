/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The module twheel._twheel: what its files share.
 *
 * Python's lock, the GIL, is held wherever nothing else is said. It is let go where a call
 * may wait or take long, and for nothing else: an operation takes less than to let it go.
 */
#ifndef TWHEEL_PYTHON_NATIVE_H
#define TWHEEL_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <twheel.h>
#include <twheel_pool.h>
#include <twheel_shared.h>

/**
 * struct wheel - a wheel
 * @tw: the library's, or NULL once nobody uses it any more
 * @stop: an eventfd that ends those who wait
 * @inside: calls that have let the GIL go
 * @forks: as it was when @stop and @inside began: in a child they begin anew
 * @closed: whether no further call may begin
 * @shared: whether @area is there
 * @area: the shared timers
 */
struct wheel {
	PyObject_HEAD
	struct twheel *tw;
	int stop;
	unsigned int inside;
	unsigned int forks;
	bool closed;
	bool shared;
	struct twheel_area area;
};

/* module.c: how often this process, or those before it, came out of fork(2) */
extern unsigned int forks;

/* error.c: @ret is a negative error; gives NULL */
PyObject *fail(int ret);
PyObject *fail_to_open(int ret);
PyObject *fail_from_fd(int ret);
PyObject *fail_eventfd(int ret);
int add_errors(PyObject *module);

/* numbers.c */
int get_u64(PyObject *object, void *to);
int get_u32(PyObject *object, void *to);
int get_clock(PyObject *object, void *to);

/* wheel.c */
struct twheel *wheel_enter(struct wheel *wheel);
void wheel_leave(struct wheel *wheel);
bool wheel_is_open(const struct wheel *wheel);
int open_wheel(const char *backend, const struct twheel_setup *setup, struct twheel **twp);
int backend_flags(const char *backend);
int add_wheel(PyObject *module);
PyObject *make_event(const struct twheel_event *event);
PyObject *make_timer(const struct twheel_op *op);

/* read.c */
PyObject *wheel_read(struct wheel *wheel, PyObject *args, PyObject *keywords);
PyObject *wheel_read_into(struct wheel *wheel, PyObject *args, PyObject *keywords);
PyObject *wheel_read_count(struct wheel *wheel, PyObject *args, PyObject *keywords);
PyObject *wheel_drain(struct wheel *wheel, PyObject *args);
int64_t get_end(PyObject *timeout);
int get_ms(int64_t end);

/* batch.c */
PyObject *wheel_submit(struct wheel *wheel, PyObject *buffer);
PyObject *wheel_arm_many(struct wheel *wheel, PyObject *args, PyObject *keywords);
PyObject *wheel_cancel_many(struct wheel *wheel, PyObject *buffer);
bool get_items(PyObject *object, Py_buffer *view, Py_ssize_t size, bool writable);

/* shared.c */
PyObject *wheel_shared_arm(struct wheel *wheel, PyObject *const *args, Py_ssize_t nr);
PyObject *wheel_shared_cancel(struct wheel *wheel, PyObject *number);
PyObject *wheel_shared_take(struct wheel *wheel, PyObject *args);
PyObject *wheel_shared_take_into(struct wheel *wheel, PyObject *buffer);
PyObject *wheel_shared_arm_many(struct wheel *wheel, PyObject *args);
PyObject *wheel_shared_recover(struct wheel *wheel, PyObject *none);

/* timers.c, pool.c, task.c */
int add_timers(PyObject *module);
int add_pool(PyObject *module);
PyObject *stop_pools(PyObject *module, PyObject *none);
int add_task(PyObject *module);

#endif
