// SPDX-License-Identifier: LGPL-2.1-or-later
/* Errors: a class for each that programs tell apart, and a sentence for each. */

#include <errno.h>
#include <string.h>

#include "native.h"

static PyObject *error;
static PyObject *no_timer;
static PyObject *full;
static PyObject *not_ready;
static PyObject *stopped;

static const struct {
	int number;
	PyObject **type;
	const char *text;
} errors[] = {
	{ ENOENT, &no_timer,
	  "no such timer: it has expired, was cancelled, or never was" },
	{ ENOSPC, &full,
	  "no room for another timer, or such a limit: the wheel, pool or user may have no more" },
	{ EAGAIN, &not_ready,
	  "no timer has expired" },
	{ ESHUTDOWN, &stopped,
	  "the pool was stopped" },
	{ EBUSY, &error,
	  "too late for a set-up; or the task is in a pool already" },
	{ EBADF, &error,
	  "this process has no such wheel: it is closed, or the parent's, from before fork(2)" },
	{ EINVAL, &error,
	  "not with this wheel or pool: the call, or a time (to 2^63 - 1 ns), flag or size in it" },
	{ EOPNOTSUPP, &error,
	  "a tick is 1 us to 1 s; or only a wheel in the kernel can do that: load the module" },
	{ ENODEV, &error,
	  "shared timers take the module, or twheel-loader: twheel info says what is missing" },
	{ EDEADLK, &error,
	  "a task or its pool can't wait for its own end" },
};

static PyObject *raise(PyObject *type, int ret, const char *text)
{
	PyObject *value = Py_BuildValue("is", -ret, text);

	if (value) {
		PyErr_SetObject(type, value);
		Py_DECREF(value);
	}
	return NULL;
}

/* Where a wheel could not be opened, errors are others than those of its timers */
PyObject *fail_to_open(int ret)
{
	if (ret == -ENOENT || ret == -ENXIO)
		return raise(error, ret,
			     "it is not there: see twheel info, or take the backend 'user'");
	if (ret == -EACCES || ret == -EPERM)
		return raise(error, ret,
			     "for members of its group only, of which this user is none: twheel info");
	return fail(ret);
}

/* Where a wheel was to be made of a descriptor */
PyObject *fail_from_fd(int ret)
{
	if (ret == -ENOMEM)
		return fail(ret);
	return raise(error, ret,
		     "this descriptor is not that of a wheel in the kernel, and no other can be passed on");
}

/* Where an eventfd was to be signalled, or not any more */
PyObject *fail_eventfd(int ret)
{
	switch (ret) {
	case -EOPNOTSUPP:
		return raise(error, ret,
			     "only a wheel in the kernel signals an eventfd: load the module");
	case -EBADF:
	case -EINVAL:
		return raise(error, ret, "this descriptor is no eventfd");
	case -EBUSY:
		return raise(error, ret, "the wheel has an eventfd: -1 ends that first");
	case -ENOENT:
		return raise(error, ret, "the wheel has no eventfd");
	default:
		return fail(ret);
	}
}

PyObject *fail(int ret)
{
	const char *text = strerror(-ret);
	PyObject *type = error;
	size_t i;

	if (ret == -ENOMEM)
		return PyErr_NoMemory();
	for (i = 0; i < Py_ARRAY_LENGTH(errors); i++)
		if (errors[i].number == -ret) {
			type = *errors[i].type;
			text = errors[i].text;
		}
	return raise(type, ret, text);
}

static PyObject *new_error(PyObject *module, const char *name, const char *doc, PyObject *base)
{
	PyObject *type = PyErr_NewExceptionWithDoc(name, doc, base, NULL);

	if (type && PyModule_AddObjectRef(module, strchr(name, '.') + 1, type) < 0)
		Py_CLEAR(type);
	return type;
}

int add_errors(PyObject *module)
{
	PyObject *bases;

	error = new_error(module, "twheel.Error", "What a wheel or a pool could not do, and why.",
			  PyExc_OSError);
	if (!error)
		return -1;
	no_timer = new_error(module, "twheel.NoTimer", "There is no such timer any more.", error);
	full = new_error(module, "twheel.Full", "There is no room for another timer.", error);
	stopped = new_error(module, "twheel.Stopped", "The pool was stopped.", error);
	bases = PyTuple_Pack(2, error, PyExc_BlockingIOError);
	if (!bases)
		return -1;
	not_ready = new_error(module, "twheel.NotReady", "No timer has expired.", bases);
	Py_DECREF(bases);
	return no_timer && full && stopped && not_ready ? 0 : -1;
}
