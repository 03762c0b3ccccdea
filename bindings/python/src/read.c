// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading a wheel: the GIL is let go while a thread waits, until the wheel is closed. */

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "native.h"

/* Events that are read together before they become objects */
#define TOGETHER 64

/* No end of waiting, and an exception */
#define END_NEVER INT64_MAX
#define END_ERROR INT64_MIN

static int64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* When to end waiting, of a timeout in seconds, or None */
int64_t get_end(PyObject *timeout)
{
	double seconds;

	if (!timeout || timeout == Py_None)
		return END_NEVER;
	seconds = PyFloat_AsDouble(timeout);
	if (seconds == -1 && PyErr_Occurred())
		return END_ERROR;
	if (!(seconds >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout is seconds, 0 or more, or None");
		return END_ERROR;
	}
	return seconds > 9e9 ? END_NEVER : monotonic_ns() + (int64_t)(seconds * 1e9);
}

/* The ms until then for poll(2), rounded up; -1: for ever */
int get_ms(int64_t end)
{
	int64_t ns;

	if (end == END_NEVER)
		return -1;
	ns = end - monotonic_ns();
	if (ns <= 0)
		return 0;
	return ns / 1000000 < INT32_MAX ? ns / 1000000 + 1 : INT32_MAX;
}

/*
 * Wait for the wheel, without the GIL. Gives 1 when it is to be read, 0 when the time is over,
 * or -1 with an exception: a signal's handler had one, or another thread closed the wheel.
 */
static int wait_for(struct wheel *wheel, int64_t end)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int ret, error;

	do {
		/* (Others after a signal's handler that has forked) */
		fds[0].fd = twheel_fd(wheel->tw);
		fds[1].fd = wheel->stop;
		Py_BEGIN_ALLOW_THREADS
		ret = poll(fds, 2, get_ms(end));
		error = errno;
		Py_END_ALLOW_THREADS
		if (ret < 0 && (error != EINTR || PyErr_CheckSignals())) {
			if (error != EINTR)
				fail(-error);
			return -1;
		}
		if (wheel->closed) {
			PyErr_SetString(PyExc_ValueError, "the wheel was closed meanwhile");
			return -1;
		}
	} while (ret < 0 || (ret > 0 && !fds[0].revents && get_ms(end)));
	return ret > 0 && fds[0].revents;
}

/*
 * Take what there is, by @take, or wait for it. Gives what that gives, 0 when the time is
 * over, -1 with an exception.
 */
static int take_or_wait(struct wheel *wheel, int64_t end, void *to, unsigned int nr,
			int (*take)(struct twheel *tw, void *to, unsigned int nr))
{
	struct twheel *tw;
	int ret;

	if (end == END_ERROR)
		return -1;
	tw = wheel_enter(wheel);
	if (!tw)
		return -1;
	do {
		ret = take(tw, to, nr);
		if (ret != -EAGAIN)
			break;
		/* Others may take what there is each time: that is not to go on for ever. */
		ret = get_ms(end) ? wait_for(wheel, end) : 0;
	} while (ret > 0);
	wheel_leave(wheel);
	/* (An exception of wait_for() is there already.) */
	if (ret < 0 && !PyErr_Occurred())
		fail(ret);
	return ret < 0 ? -1 : ret;
}

static int take_events(struct twheel *tw, void *to, unsigned int nr)
{
	return twheel_read(tw, to, nr);
}

static int take_count(struct twheel *tw, void *to, unsigned int nr)
{
	int ret = twheel_read_count(tw, to);

	return ret ?: (int)nr;
}

static int append(PyObject *list, PyObject *object)
{
	int ret = object ? PyList_Append(list, object) : -1;

	Py_XDECREF(object);
	return ret;
}

PyObject *wheel_read(struct wheel *wheel, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "max", "timeout", NULL };
	struct twheel_event events[TOGETHER];
	PyObject *timeout = NULL, *list;
	unsigned int max = 256, want;
	int i, nr;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&O:read", names, get_u32, &max,
					 &timeout))
		return NULL;
	want = Py_MIN(max, TOGETHER);
	nr = take_or_wait(wheel, get_end(timeout), events, want, take_events);
	list = nr < 0 ? NULL : PyList_New(0);
	while (list && nr > 0) {
		for (i = 0; i < nr; i++)
			if (append(list, make_event(&events[i]))) {
				Py_DECREF(list);
				return NULL;
			}
		max -= nr;
		if (!max || (unsigned int)nr < want || !wheel->tw)
			break;
		want = Py_MIN(max, TOGETHER);
		nr = twheel_read(wheel->tw, events, want);
	}
	return list;
}

PyObject *wheel_read_into(struct wheel *wheel, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "buffer", "timeout", NULL };
	PyObject *timeout = NULL, *buffer;
	Py_buffer view;
	int nr;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:read_into", names, &buffer,
					 &timeout) ||
	    !get_items(buffer, &view, sizeof(struct twheel_event), true))
		return NULL;
	nr = view.len ? take_or_wait(wheel, get_end(timeout), view.buf,
				     view.len / sizeof(struct twheel_event), take_events) : 0;
	PyBuffer_Release(&view);
	return nr < 0 ? NULL : PyLong_FromLong(nr);
}

PyObject *wheel_read_count(struct wheel *wheel, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "timeout", NULL };
	PyObject *timeout = NULL;
	uint64_t count = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:read_count", names, &timeout) ||
	    take_or_wait(wheel, get_end(timeout), &count, 1, take_count) < 0)
		return NULL;
	return PyLong_FromUnsignedLongLong(count);
}

PyObject *wheel_drain(struct wheel *wheel, PyObject *args)
{
	struct twheel_op ops[TOGETHER];
	unsigned int max = 256;
	PyObject *list;
	int i, nr;

	if (!PyArg_ParseTuple(args, "|O&:drain", get_u32, &max) || !wheel_is_open(wheel))
		return NULL;
	list = PyList_New(0);
	while (list && max && wheel->tw) {
		nr = twheel_drain(wheel->tw, ops, Py_MIN(max, TOGETHER));
		if (nr < 0 && !PyList_GET_SIZE(list)) {
			Py_DECREF(list);
			return fail(nr);
		}
		if (nr <= 0)
			break;
		for (i = 0; i < nr; i++)
			if (append(list, make_timer(&ops[i]))) {
				Py_DECREF(list);
				return NULL;
			}
		max -= nr;
	}
	return list;
}
