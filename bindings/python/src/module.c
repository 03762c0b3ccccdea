// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module twheel._twheel: libtwheel for Python. The package twheel is its face. */

#include <pthread.h>

#include "native.h"

unsigned int forks;

static void forked(void)
{
	forks++;
}

/* All pools of the process are known together, and end with the main interpreter. */
static PyObject *check_interpreter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
	if (PyInterpreterState_Get() == PyInterpreterState_Main())
		Py_RETURN_NONE;
	PyErr_SetString(PyExc_ImportError, "twheel works in the main interpreter only");
	return NULL;
}

static PyMethodDef functions[] = {
	{ "check_interpreter", check_interpreter, METH_NOARGS,
	  "Raise ImportError in a subinterpreter." },
	{ "stop_pools", stop_pools, METH_NOARGS, "Stop all pools: Python ends." },
	{ }
};

static const struct {
	const char *name;
	long value;
} constants[] = {
	{ "MONOTONIC", TWHEEL_CLOCK_MONOTONIC },
	{ "BOOTTIME", TWHEEL_CLOCK_BOOTTIME },
	{ "REALTIME", TWHEEL_CLOCK_REALTIME },
	{ "TAI", TWHEEL_CLOCK_TAI },
	{ "NONE", TWHEEL_STATE_NONE },
	{ "PENDING", TWHEEL_STATE_PENDING },
	{ "READY", TWHEEL_STATE_READY },
	{ "EVENT_PERIODIC", TWHEEL_EVENT_PERIODIC },
	{ "OP_ARM", TWHEEL_OP_ARM },
	{ "OP_MODIFY", TWHEEL_OP_MODIFY },
	{ "OP_CANCEL", TWHEEL_OP_CANCEL },
	{ "OP_QUERY", TWHEEL_OP_QUERY },
	{ "OP_SIZE", sizeof(struct twheel_op) },
	{ "EVENT_SIZE", sizeof(struct twheel_event) },
	{ "ABS", TWHEEL_ABS },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "twheel._twheel",
	.m_doc = "libtwheel for Python: see the package twheel.",
	.m_size = -1,
	.m_methods = functions,
};

PyMODINIT_FUNC PyInit__twheel(void)
{
	PyObject *module = PyModule_Create(&definition);
	size_t i;
	int ret;

	if (!module)
		return NULL;
	if (pthread_atfork(NULL, NULL, forked)) {
		Py_DECREF(module);
		return PyErr_NoMemory();
	}
	ret = add_errors(module) || add_wheel(module) || add_timers(module) ||
	      add_pool(module) || add_task(module);
	for (i = 0; i < Py_ARRAY_LENGTH(constants) && !ret; i++)
		ret = PyModule_AddIntConstant(module, constants[i].name, constants[i].value);
	if (ret)
		Py_CLEAR(module);
	return module;
}
