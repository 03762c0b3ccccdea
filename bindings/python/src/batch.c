// SPDX-License-Identifier: LGPL-2.1-or-later
/* Many timers in one call, from and into any object that has the buffer protocol. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

/* Operations that are made and submitted together: they stay in cache */
#define TOGETHER 256

/*
 * Whether its items are numbers of that size, or bytes, of which anything can be made. Two
 * numbers of four bytes, or one with a fraction, would be taken for another time.
 */
static bool are_items(const Py_buffer *view, Py_ssize_t size)
{
	const char *format = view->format ? view->format : "B";

	if (view->itemsize == 1)
		return true;
	if (size > (Py_ssize_t)sizeof(uint64_t))
		return view->itemsize == size || view->itemsize == sizeof(uint64_t);
	format += strspn(format, "@=<");
	return view->itemsize == size && strlen(format) == 1 && strchr("QqLlNnIi", *format);
}

/* A buffer of items of that size; false with an exception */
bool get_items(PyObject *object, Py_buffer *view, Py_ssize_t size, bool writable)
{
	int flags = PyBUF_ND | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
	bool numbers = size <= (Py_ssize_t)sizeof(uint64_t);

	if (PyObject_GetBuffer(object, view, flags))
		return false;
	if (!are_items(view, size))
		PyErr_Format(PyExc_ValueError,
			     "the buffer has items of %zd bytes and format '%s', not %s of %zd",
			     view->itemsize, view->format ? view->format : "B",
			     numbers ? "integers" : "structures", size);
	/* One that is empty may be anywhere. */
	else if (view->len % size || (view->len && (uintptr_t)view->buf % (size < 8 ? 4 : 8)))
		PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes: no items of %zd",
			     view->len, size);
	else
		return true;
	PyBuffer_Release(view);
	return false;
}

/* All of them, without the GIL; a signal is no reason to leave any. 0 or an error. */
static int submit_all(struct twheel *tw, struct twheel_op *ops, Py_ssize_t nr)
{
	while (nr) {
		int done = twheel_submit(tw, ops, nr < TOGETHER ? nr : TOGETHER);

		if (done < 0 && done != -EINTR)
			return done;
		if (done > 0) {
			ops += done;
			nr -= done;
		}
	}
	return 0;
}

PyObject *wheel_submit(struct wheel *wheel, PyObject *buffer)
{
	struct twheel *tw;
	Py_buffer view;
	int ret;

	if (!get_items(buffer, &view, sizeof(struct twheel_op), true))
		return NULL;
	tw = wheel_enter(wheel);
	if (!tw) {
		PyBuffer_Release(&view);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	ret = submit_all(tw, view.buf, view.len / sizeof(struct twheel_op));
	Py_END_ALLOW_THREADS
	wheel_leave(wheel);
	PyBuffer_Release(&view);
	return ret ? fail(ret) : PyLong_FromSsize_t(view.len / sizeof(struct twheel_op));
}

/**
 * struct many - timers that are armed together
 * @deadlines: when
 * @user_data: or NULL for their indices
 * @ids: where their ids go
 * @nr: how many
 * @model: what they have in common
 */
struct many {
	const uint64_t *deadlines;
	const uint64_t *user_data;
	uint64_t *ids;
	Py_ssize_t nr;
	struct twheel_op model;
};

static void cancel_all(struct twheel *tw, const uint64_t *ids, Py_ssize_t nr, Py_ssize_t *done)
{
	struct twheel_op ops[TOGETHER];
	Py_ssize_t i, n, from;

	for (from = 0; from < nr; from += n) {
		n = nr - from < TOGETHER ? nr - from : TOGETHER;
		for (i = 0; i < n; i++)
			ops[i] = twheel_op_cancel(ids[from + i]);
		if (submit_all(tw, ops, n))
			return;
		for (i = 0; i < n; i++)
			*done += !ops[i].result;
	}
}

/* From @from on; gives how many, or an error, with the ids of those that are armed so far */
static int arm_some(struct twheel *tw, const struct many *many, Py_ssize_t from)
{
	struct twheel_op ops[TOGETHER];
	Py_ssize_t i, n = many->nr - from < TOGETHER ? many->nr - from : TOGETHER;
	int ret;

	for (i = 0; i < n; i++) {
		ops[i] = many->model;
		ops[i].deadline = many->deadlines[from + i];
		ops[i].user_data = many->user_data ? many->user_data[from + i] :
						     (uint64_t)(from + i);
	}
	ret = submit_all(tw, ops, n);
	for (i = 0; i < n; i++) {
		many->ids[from + i] = ops[i].result ? 0 : ops[i].id;
		if (ops[i].result && !ret)
			ret = ops[i].result;
	}
	return ret ?: (int)n;
}

/* All or none; without the GIL */
static int arm_all(struct twheel *tw, const struct many *many)
{
	Py_ssize_t from, done = 0;
	int n = 0;

	for (from = 0; from < many->nr; from += n) {
		n = arm_some(tw, many, from);
		if (n < 0) {
			from += TOGETHER;
			cancel_all(tw, many->ids, from < many->nr ? from : many->nr, &done);
			return n;
		}
	}
	return 0;
}

/* False with an exception */
static bool arm_buffers(struct wheel *wheel, struct many *many, const Py_buffer *deadlines,
			const Py_buffer *user_data, const Py_buffer *ids)
{
	struct twheel *tw;
	int ret;

	many->nr = deadlines->len / sizeof(uint64_t);
	if (ids->len != deadlines->len || (user_data->buf && user_data->len != deadlines->len)) {
		PyErr_SetString(PyExc_ValueError, "the buffers are not of one length");
		return false;
	}
	tw = wheel_enter(wheel);
	if (!tw)
		return false;
	many->deadlines = deadlines->buf;
	many->user_data = user_data->buf;
	many->ids = ids->buf;
	Py_BEGIN_ALLOW_THREADS
	ret = arm_all(tw, many);
	Py_END_ALLOW_THREADS
	wheel_leave(wheel);
	if (ret)
		fail(ret);
	return !ret;
}

/* A memoryview of 64-bit words of its own */
static PyObject *new_words(Py_ssize_t bytes)
{
	PyObject *array = PyByteArray_FromStringAndSize(NULL, bytes), *view, *words = NULL;

	if (!array)
		return NULL;
	view = PyMemoryView_FromObject(array);
	Py_DECREF(array);
	if (view)
		words = PyObject_CallMethod(view, "cast", "s", "Q");
	Py_XDECREF(view);
	return words;
}

PyObject *wheel_arm_many(struct wheel *wheel, PyObject *args, PyObject *keywords)
{
	static char *names[] = {
		"deadlines", "user_data", "ids", "interval", "absolute", "slack", "jitter", NULL
	};
	PyObject *deadlines, *user_data = Py_None, *ids = Py_None, *result = NULL;
	unsigned long long interval = 0, slack = 0, jitter = 0;
	struct many many = { .model.opcode = TWHEEL_OP_ARM };
	Py_buffer when, data = { 0 }, to = { 0 };
	int absolute = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO$O&pO&O&:arm_many", names,
					 &deadlines, &user_data, &ids, get_u64, &interval,
					 &absolute, get_u64, &slack, get_u64, &jitter) ||
	    !get_items(deadlines, &when, sizeof(uint64_t), false))
		return NULL;
	many.model.flags = absolute ? TWHEEL_ABS : 0;
	many.model.interval = interval;
	many.model.slack = slack;
	many.model.jitter = jitter;
	ids = ids == Py_None ? new_words(when.len) : Py_NewRef(ids);
	if (ids && (user_data == Py_None || get_items(user_data, &data, sizeof(uint64_t), false)) &&
	    get_items(ids, &to, sizeof(uint64_t), true))
		result = arm_buffers(wheel, &many, &when, &data, &to) ? Py_NewRef(ids) : NULL;
	Py_XDECREF(ids);
	PyBuffer_Release(&to);
	PyBuffer_Release(&data);
	PyBuffer_Release(&when);
	return result;
}

PyObject *wheel_cancel_many(struct wheel *wheel, PyObject *buffer)
{
	Py_ssize_t done = 0;
	struct twheel *tw;
	Py_buffer view;

	if (!get_items(buffer, &view, sizeof(uint64_t), false))
		return NULL;
	tw = wheel_enter(wheel);
	if (tw) {
		Py_BEGIN_ALLOW_THREADS
		cancel_all(tw, view.buf, view.len / sizeof(uint64_t), &done);
		Py_END_ALLOW_THREADS
		wheel_leave(wheel);
	}
	PyBuffer_Release(&view);
	return tw ? PyLong_FromSsize_t(done) : NULL;
}
