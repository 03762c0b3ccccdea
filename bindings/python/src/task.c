// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tasks: callables that a pool calls. The library calls run and end in its own threads,
 * which take the GIL for that; it holds no lock of its own then.
 */

#include <errno.h>
#include <stddef.h>

#include "pool.h"

/* Is it to go on? Whoever handles the exception says so. */
static bool tell(struct task *task)
{
	PyObject *type, *value, *traceback, *said;
	bool goes_on;

	if (!task->pool->on_error) {
		PyErr_WriteUnraisable(task->function);
		return false;
	}
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (traceback)
		PyException_SetTraceback(value, traceback);
	said = PyObject_CallFunctionObjArgs(task->pool->on_error, task, value, NULL);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	goes_on = said && PyObject_IsTrue(said) > 0;
	Py_XDECREF(said);
	if (PyErr_Occurred())
		PyErr_WriteUnraisable(task->pool->on_error);
	return goes_on;
}

static int run(struct twheel_task *it, const struct twheel_run *Py_UNUSED(run))
{
	PyGILState_STATE gil = PyGILState_Ensure();
	struct task *task = task_of(it);
	PyObject *result = NULL;
	int ret = 0;

	if (task->function)
		result = PyObject_CallObject(task->function, task->args);
	if (!result && PyErr_Occurred() && !tell(task))
		ret = -ECANCELED;
	Py_XDECREF(result);
	PyGILState_Release(gil);
	return ret;
}

/*
 * A pool without workers that nobody can take from is found by Python's collector, by way of
 * this list. One with workers runs its tasks, whoever holds it.
 */
static void enqueue(struct pool *pool, struct task *task)
{
	if (pool->nr_threads)
		return;
	task->next = pool->queue;
	task->at = &pool->queue;
	if (task->next)
		task->next->at = &task->next;
	pool->queue = task;
}

struct task *task_leave(struct task *task)
{
	if (task->at) {
		*task->at = task->next;
		if (task->next)
			task->next->at = task->at;
		task->at = NULL;
	}
	return task;
}

/* The pool has it no more */
static void end(struct twheel_task *it, int Py_UNUSED(why))
{
	PyGILState_STATE gil = PyGILState_Ensure();

	Py_DECREF(task_leave(task_of(it)));
	PyGILState_Release(gil);
}

/* When, and the flags that go with it, from keywords that start() and reset() have */
static bool get_when(PyObject *args, PyObject *keywords, const char *format, long long *when,
		     unsigned long long *period, uint32_t *flags)
{
	static char *names[] = {
		"when", "period", "absolute", "fixed_delay", "catch_up", NULL
	};
	int absolute = 0, fixed_delay = 0, catch_up = 0;

	*period = 0;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, format, names, when, get_u64, period,
					 &absolute, &fixed_delay, &catch_up))
		return false;
	*flags = (absolute ? TWHEEL_ABS : 0) | (fixed_delay ? TWHEEL_FIXED_DELAY : 0) |
		 (catch_up ? TWHEEL_CATCH_UP : 0);
	return true;
}

static struct task *new_task(struct pool *pool, PyObject *function, PyObject *args)
{
	struct task *task = PyObject_GC_New(struct task, &task_type);

	if (!task)
		return NULL;
	task->task = (struct twheel_task){ .run = run, .end = end };
	task->pool = (struct pool *)Py_NewRef(pool);
	task->at = NULL;
	task->function = Py_NewRef(function);
	task->args = Py_NewRef(args);
	PyObject_GC_Track(task);
	return task;
}

static struct task *begin(struct pool *pool, PyObject *args, PyObject *when_args,
			  PyObject *keywords)
{
	PyObject *rest = PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args));
	unsigned long long period;
	struct task *task;
	long long when;
	uint32_t flags;
	int ret;

	if (!rest || !get_when(when_args, keywords, "L|$O&ppp:start", &when, &period, &flags)) {
		Py_XDECREF(rest);
		return NULL;
	}
	task = new_task(pool, PyTuple_GET_ITEM(args, 0), rest);
	Py_DECREF(rest);
	if (!task)
		return NULL;
	/* The pool's, which may give it back at once */
	Py_INCREF(task);
	ret = twheel_task_start(pool->pool, &task->task, flags, when, period);
	if (!ret) {
		enqueue(pool, task);
		return task;
	}
	Py_DECREF(task);
	Py_DECREF(task);
	fail(ret);
	return NULL;
}

PyObject *task_start(struct pool *pool, PyObject *args, PyObject *keywords)
{
	PyObject *when_args;
	struct task *task;

	if (PyTuple_GET_SIZE(args) < 2 || !PyCallable_Check(PyTuple_GET_ITEM(args, 0))) {
		PyErr_SetString(PyExc_TypeError,
				"start(function, when, *args, period=0, absolute=False, ...)");
		return NULL;
	}
	when_args = PyTuple_GetSlice(args, 1, 2);
	if (!when_args)
		return NULL;
	task = begin(pool, args, when_args, keywords);
	Py_DECREF(when_args);
	return (PyObject *)task;
}

static PyObject *task_reset(struct task *task, PyObject *args, PyObject *keywords)
{
	unsigned long long period;
	long long when;
	uint32_t flags;
	int ret;

	if (!get_when(args, keywords, "L|$O&ppp:reset", &when, &period, &flags))
		return NULL;
	ret = twheel_task_reset(&task->task, flags, when, period);
	if (ret)
		return fail(ret);
	Py_RETURN_NONE;
}

static PyObject *task_run_now(struct task *task, PyObject *Py_UNUSED(none))
{
	int ret = twheel_task_run_now(&task->task);

	if (ret)
		return fail(ret);
	Py_RETURN_NONE;
}

static PyObject *task_cancel(struct task *task, PyObject *Py_UNUSED(none))
{
	int ret = twheel_task_cancel(&task->task);

	if (!ret || ret == -ENOENT || ret == -EINPROGRESS)
		return PyBool_FromLong(!ret);
	return fail(ret);
}

static PyObject *task_cancel_wait(struct task *task, PyObject *Py_UNUSED(none))
{
	int ret;

	Py_BEGIN_ALLOW_THREADS
	ret = twheel_task_cancel_wait(&task->task);
	Py_END_ALLOW_THREADS
	if (!ret || ret == -ENOENT)
		return PyBool_FromLong(!ret);
	return fail(ret);
}

static PyObject *get_function(struct task *task, void *Py_UNUSED(closure))
{
	return Py_NewRef(task->function ?: Py_None);
}

static PyObject *get_args(struct task *task, void *Py_UNUSED(closure))
{
	return task->args ? Py_NewRef(task->args) : PyTuple_New(0);
}

static PyGetSetDef task_getset[] = {
	{ "function", (getter)get_function, NULL, "what is called" },
	{ "args", (getter)get_args, NULL, "with what" },
	{ }
};

static PyMethodDef task_methods[] = {
	{ "reset", (PyCFunction)(void *)task_reset, METH_VARARGS | METH_KEYWORDS,
	  "Give it other times, also while it runs: those of its next run then." },
	{ "run_now", (PyCFunction)task_run_now, METH_NOARGS, "Have it run at once." },
	{ "cancel", (PyCFunction)task_cancel, METH_NOARGS,
	  "Take it out of its pool. True if it does not run any more; False while it runs for\n"
	  "the last time, or when it was in no pool." },
	{ "cancel_wait", (PyCFunction)task_cancel_wait, METH_NOARGS,
	  "The same, and wait until it is over. False when it was in no pool." },
	{ }
};

static int task_traverse(struct task *task, visitproc visit, void *arg)
{
	Py_VISIT(task->pool);
	Py_VISIT(task->function);
	Py_VISIT(task->args);
	return 0;
}

static int task_clear(struct task *task)
{
	Py_CLEAR(task->function);
	Py_CLEAR(task->args);
	return 0;
}

static void task_dealloc(struct task *task)
{
	PyObject_GC_UnTrack(task);
	task_clear(task);
	Py_CLEAR(task->pool);
	PyObject_GC_Del(task);
}

PyTypeObject task_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "twheel.Task",
	.tp_doc = "A callable that a pool calls at its time. Pool.start() makes it.",
	.tp_basicsize = sizeof(struct task),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.tp_dealloc = (destructor)task_dealloc,
	.tp_traverse = (traverseproc)task_traverse,
	.tp_clear = (inquiry)task_clear,
	.tp_methods = task_methods,
	.tp_getset = task_getset,
};

int add_task(PyObject *module)
{
	return PyModule_AddType(module, &task_type);
}
