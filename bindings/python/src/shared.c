// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Shared timers. A number is checked here, as Python's programs expect of an index; and as
 * the GIL is held, one thread at a time arms or cancels.
 */

#include "native.h"

static bool has_shared(const struct wheel *wheel)
{
	if (!wheel_is_open(wheel))
		return false;
	if (!wheel->shared)
		PyErr_SetString(PyExc_ValueError,
				"the wheel has no shared timers: Wheel(shared=HOW_MANY)");
	return wheel->shared;
}

static bool get_number(const struct wheel *wheel, PyObject *object, unsigned int *n)
{
	unsigned long number = PyLong_AsUnsignedLong(object);

	if (number == (unsigned long)-1 && PyErr_Occurred())
		return false;
	if (number >= wheel->area.nr) {
		PyErr_Format(PyExc_IndexError, "no shared timer %lu: there are %u", number,
			     wheel->area.nr);
		return false;
	}
	*n = number;
	return true;
}

static PyObject *state(int ret)
{
	return ret < 0 ? fail(ret) : PyLong_FromLong(ret);
}

PyObject *wheel_shared_arm(struct wheel *wheel, PyObject *const *args, Py_ssize_t nr)
{
	unsigned long long deadline;
	unsigned int n;

	if (nr != 2) {
		PyErr_SetString(PyExc_TypeError, "shared_arm(n, deadline)");
		return NULL;
	}
	if (!has_shared(wheel) || !get_number(wheel, args[0], &n))
		return NULL;
	deadline = PyLong_AsUnsignedLongLong(args[1]);
	if (deadline == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	return state(twheel_shared_arm(&wheel->area, n, deadline));
}

PyObject *wheel_shared_cancel(struct wheel *wheel, PyObject *number)
{
	unsigned int n;

	if (!has_shared(wheel) || !get_number(wheel, number, &n))
		return NULL;
	return state(twheel_shared_cancel(&wheel->area, n));
}

PyObject *wheel_shared_take(struct wheel *wheel, PyObject *args)
{
	unsigned int i, nr, max = 256, taken[256];
	PyObject *list, *number;

	if (!PyArg_ParseTuple(args, "|O&:shared_take", get_u32, &max) || !has_shared(wheel))
		return NULL;
	nr = twheel_shared_take(&wheel->area, taken, Py_MIN(max, Py_ARRAY_LENGTH(taken)));
	list = PyList_New(nr);
	for (i = 0; list && i < nr; i++) {
		number = PyLong_FromUnsignedLong(taken[i]);
		if (number)
			PyList_SET_ITEM(list, i, number);
		else
			Py_CLEAR(list);
	}
	return list;
}

PyObject *wheel_shared_take_into(struct wheel *wheel, PyObject *buffer)
{
	unsigned int nr, max;
	Py_buffer view;

	if (!get_items(buffer, &view, sizeof(unsigned int), true))
		return NULL;
	if (!has_shared(wheel)) {
		PyBuffer_Release(&view);
		return NULL;
	}
	max = Py_MIN(view.len / sizeof(unsigned int), UINT32_MAX);
	nr = twheel_shared_take(&wheel->area, view.buf, max);
	PyBuffer_Release(&view);
	return PyLong_FromUnsignedLong(nr);
}

PyObject *wheel_shared_arm_many(struct wheel *wheel, PyObject *args)
{
	Py_ssize_t i, first, nr;
	const uint64_t *when;
	PyObject *buffer;
	Py_buffer view;
	int ret = 0;

	if (!PyArg_ParseTuple(args, "nO:shared_arm_many", &first, &buffer) ||
	    !get_items(buffer, &view, sizeof(uint64_t), false))
		return NULL;
	if (!has_shared(wheel)) {
		PyBuffer_Release(&view);
		return NULL;
	}
	nr = view.len / sizeof(uint64_t);
	when = view.buf;
	if (first < 0 || first > wheel->area.nr || nr > wheel->area.nr - first) {
		PyErr_Format(PyExc_IndexError, "no shared timers %zd to %zd: there are %u", first,
			     first + nr - 1, wheel->area.nr);
		PyBuffer_Release(&view);
		return NULL;
	}
	for (i = 0; i < nr && ret >= 0; i++)
		ret = twheel_shared_arm(&wheel->area, first + i, when[i]);
	PyBuffer_Release(&view);
	if (ret < 0)
		return fail(ret);
	Py_RETURN_NONE;
}

PyObject *wheel_shared_recover(struct wheel *wheel, PyObject *Py_UNUSED(none))
{
	int ret;

	if (!has_shared(wheel))
		return NULL;
	ret = twheel_shared_recover(&wheel->area);
	if (ret)
		return fail(ret);
	Py_RETURN_NONE;
}
