// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Python's integers as those of C, for "O&" of a format: what does not fit is an
 * OverflowError, where Python's own formats cut off what is too much.
 */

#include "native.h"

/* 1, or 0 with an exception */
int get_u64(PyObject *object, void *to)
{
	PyObject *number = PyNumber_Index(object);
	unsigned long long value;

	if (!number)
		return 0;
	value = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (value == (unsigned long long)-1 && PyErr_Occurred())
		return 0;
	*(unsigned long long *)to = value;
	return 1;
}

/* The same */
int get_u32(PyObject *object, void *to)
{
	unsigned long long value;

	if (!get_u64(object, &value))
		return 0;
	if (value > UINT32_MAX) {
		PyErr_SetString(PyExc_OverflowError, "a number of more than 32 bits");
		return 0;
	}
	*(uint32_t *)to = value;
	return 1;
}

/* A wheel's clock: time.CLOCK_* are other numbers. */
int get_clock(PyObject *object, void *to)
{
	uint32_t clock;

	if (!get_u32(object, &clock))
		return 0;
	switch (clock) {
	case TWHEEL_CLOCK_MONOTONIC:
	case TWHEEL_CLOCK_BOOTTIME:
	case TWHEEL_CLOCK_REALTIME:
	case TWHEEL_CLOCK_TAI:
		*(uint32_t *)to = clock;
		return 1;
	default:
		PyErr_Format(PyExc_ValueError,
			     "clock is twheel.MONOTONIC, BOOTTIME, REALTIME or TAI, not %lu",
			     (unsigned long)clock);
		return 0;
	}
}
