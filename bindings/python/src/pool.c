// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pools: threads of the library that call tasks. All pools of the process are known, so
 * that none has threads any more when Python ends, which no thread may enter after that.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "pool.h"

#define TAKEN 64

/* Between two looks at whether a pool that is stopped is quiet, in ms, if it takes long */
#define LONGEST_WAIT 50

static struct pool *pools;
static bool over;

/* Pools that were let go in threads of their own, and whether the main thread knows */
static struct pool *leftover;
static bool asked;

/* A worker's task, handed to its thread */
struct worker {
	void *(*fn)(void *);
	void *arg;
};

/*
 * For Python, a worker is the same thread from its first task to its last: what a task keeps
 * in a threading.local() is there for the next one. The thread's state is ended by hand, as
 * that may call what takes the GIL for itself, and would end the state within.
 */
static void *work(void *arg)
{
	struct worker worker = *(struct worker *)arg;
	PyThreadState *state = PyThreadState_New(PyInterpreterState_Main());

	free(arg);
	worker.fn(worker.arg);
	PyEval_RestoreThread(state);
	PyThreadState_Clear(state);
	PyThreadState_DeleteCurrent();
	return NULL;
}

/* Signals are for Python's own threads, but for those of a crash. The GIL is not held. */
static int spawn(void *(*fn)(void *), void *arg, void *data)
{
	static const int own[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	struct worker *worker = malloc(sizeof(*worker));
	struct pool *pool = data;
	sigset_t all, before;
	size_t i;
	int ret;

	if (!worker)
		return -ENOMEM;
	*worker = (struct worker){ fn, arg };
	sigfillset(&all);
	for (i = 0; i < Py_ARRAY_LENGTH(own); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&pool->threads[pool->nr_threads], NULL, work, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		free(worker);
	else
		pool->nr_threads++;
	return -ret;
}

/* Workers come to their end once the pool is stopped. The GIL is not held. */
static void join(struct pool *pool)
{
	uint32_t i;

	for (i = 0; i < pool->nr_threads && pool->forks == forks; i++) {
		if (pthread_equal(pool->threads[i], pthread_self()))
			pthread_detach(pool->threads[i]);
		else
			pthread_join(pool->threads[i], NULL);
	}
	free(pool->threads);
	pool->threads = NULL;
	pool->nr_threads = 0;
}

/* Free it, with the GIL let go. Returns -EDEADLK in a thread of its own. */
static int free_pool(struct pool *pool)
{
	int ret;

	Py_BEGIN_ALLOW_THREADS
	ret = twheel_pool_free(pool->pool);
	if (ret != -EDEADLK)
		join(pool);
	Py_END_ALLOW_THREADS
	return ret;
}

/*
 * Free them: a thread can't wait for its own end, so others do that. Without the GIL, others
 * may add some or take some meanwhile.
 */
static void free_leftover(void)
{
	struct pool *own = NULL, *pool;
	int ret;

	while (leftover) {
		pool = leftover;
		leftover = pool->next;
		ret = free_pool(pool);
		if (ret == -EDEADLK) {
			pool->next = own;
			own = pool;
		} else {
			Py_TYPE(pool)->tp_free(pool);
		}
	}
	while (own) {
		pool = own;
		own = pool->next;
		pool->next = leftover;
		leftover = pool;
	}
}

static int free_later(void *Py_UNUSED(arg))
{
	asked = false;
	free_leftover();
	return 0;
}

/*
 * One call of the main thread's for all, as Python has few such calls. Without it the next
 * pool, or the end of Python, finds them.
 */
static void leave(struct pool *pool)
{
	pool->next = leftover;
	leftover = pool;
	if (!asked)
		asked = !Py_AddPendingCall(free_later, NULL);
}

static PyObject *no_more(void)
{
	PyErr_SetString(PyExc_RuntimeError, "no pools while the program ends");
	return NULL;
}

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = {
		"threads", "backend", "clock", "tick", "capacity", "on_error", NULL
	};
	struct twheel_pool_options options = { .size = sizeof(options), .threads = 1 };
	PyObject *on_error = Py_None;
	unsigned long long tick = 0;
	const char *backend = NULL;
	struct pool *pool;
	int ret;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&$zO&O&O&O:Pool", names,
					 get_u32, &options.threads, &backend, get_clock,
					 &options.clock, get_u64, &tick, get_u32,
					 &options.capacity, &on_error))
		return NULL;
	ret = backend_flags(backend);
	if (ret < 0)
		return NULL;
	if (on_error != Py_None && !PyCallable_Check(on_error)) {
		PyErr_SetString(PyExc_TypeError, "on_error takes a function(task, exception)");
		return NULL;
	}
	if (over)
		return no_more();
	free_leftover();
	options.flags = ret;
	options.tick = tick;
	pool = (struct pool *)type->tp_alloc(type, 0);
	if (!pool)
		return NULL;
	options.spawn = spawn;
	options.arg = pool;
	pool->forks = forks;
	/* More threads than there may be are the library's to refuse. */
	pool->threads = calloc(options.threads + 1ULL, sizeof(pool->threads[0]));
	if (!pool->threads) {
		Py_DECREF(pool);
		return PyErr_NoMemory();
	}
	/* Workers want the GIL when they begin, and when they end. */
	Py_BEGIN_ALLOW_THREADS
	ret = twheel_pool_new(&options, &pool->pool);
	Py_END_ALLOW_THREADS
	if (ret) {
		Py_DECREF(pool);
		return ret == -ENOENT ? fail_to_open(ret) : fail(ret);
	}
	/* Meanwhile, another thread may have stopped all that there were. */
	if (over) {
		Py_DECREF(pool);
		return no_more();
	}
	pool->on_error = on_error == Py_None ? NULL : Py_NewRef(on_error);
	pool->next = pools;
	pool->at = &pools;
	if (pools)
		pools->at = &pool->next;
	pools = pool;
	return (PyObject *)pool;
}

/* A list keeps the pool's references of tasks that are not run. The GIL is not held. */
static void keep(struct twheel_task *it, void *arg)
{
	PyGILState_STATE gil = PyGILState_Ensure();
	PyObject *task = (PyObject *)task_leave(task_of(it));

	if (PyList_Append(arg, task))
		PyErr_WriteUnraisable(task);
	Py_DECREF(task);
	PyGILState_Release(gil);
}

/*
 * Waits in slices, so that Ctrl-C ends the wait. Returns a negative error, or 1 where a
 * signal's handler has raised an exception: the pool is stopped all the same.
 */
static int stop(struct pool *pool, uint32_t flags, PyObject *left)
{
	int ret, ms = 1;

	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		ret = twheel_pool_stop(pool->pool, flags | TWHEEL_NO_WAIT, left ? keep : NULL,
				       left);
		if (ret == -EINPROGRESS)
			poll(NULL, 0, ms);
		Py_END_ALLOW_THREADS
		if (ret != -EINPROGRESS)
			return ret;
		if (PyErr_CheckSignals())
			return 1;
		ms = Py_MIN(2 * ms, LONGEST_WAIT);
	}
}

static PyObject *stopped(int ret)
{
	return ret < 0 ? fail(ret) : NULL;
}

static PyObject *pool_stop(struct pool *pool, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "run_once", "run_periodic", NULL };
	int once = 0, periodic = 0, ret;
	PyObject *left;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$pp:stop", names, &once, &periodic))
		return NULL;
	/* One that was interrupted has some already. */
	if (!pool->left)
		pool->left = PyList_New(0);
	left = Py_XNewRef(pool->left);
	if (!left)
		return NULL;
	ret = stop(pool, (once ? TWHEEL_RUN_ONCE : 0) | (periodic ? TWHEEL_RUN_PERIODIC : 0),
		   left);
	if (ret) {
		Py_DECREF(left);
		return stopped(ret);
	}
	/* The pool's, unless another thread's stop has given them meanwhile */
	if (left == pool->left)
		Py_CLEAR(pool->left);
	return left;
}

static PyObject *pool_exit(struct pool *pool, PyObject *Py_UNUSED(args))
{
	int ret = stop(pool, 0, NULL);

	if (ret)
		return stopped(ret);
	Py_RETURN_NONE;
}

static PyObject *pool_self(PyObject *pool, PyObject *Py_UNUSED(none))
{
	return Py_NewRef(pool);
}

/* A delay queue waits in slices of its own, as a signal's handler may be waiting, too */
static int take_tasks(struct pool *pool, struct twheel_task **tasks, unsigned int max,
		      PyObject *timeout)
{
	int64_t end = get_end(timeout);
	int ret, ms;

	if (end == INT64_MIN)
		return -1;
	do {
		ms = get_ms(end);
		Py_BEGIN_ALLOW_THREADS
		ret = twheel_pool_take(pool->pool, tasks, max,
				       ms < 0 ? -1 : (int64_t)ms * 1000000);
		Py_END_ALLOW_THREADS
		if (ret == -EINTR && PyErr_CheckSignals())
			return -1;
	} while (ret == -EINTR);
	if (ret < 0)
		fail(ret);
	return ret;
}

static PyObject *pool_take(struct pool *pool, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "max", "timeout", NULL };
	struct twheel_task *tasks[TAKEN];
	PyObject *timeout = NULL, *list;
	unsigned int max = TAKEN;
	int i, nr;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&O:take", names, get_u32, &max,
					 &timeout))
		return NULL;
	nr = take_tasks(pool, tasks, Py_MIN(max, TAKEN), timeout);
	if (nr < 0)
		return NULL;
	/* With the references that the pool had */
	list = PyList_New(nr);
	for (i = 0; i < nr; i++) {
		PyObject *task = (PyObject *)task_leave(task_of(tasks[i]));

		if (list)
			PyList_SET_ITEM(list, i, task);
		else
			Py_DECREF(task);
	}
	return list;
}

static PyObject *pool_fileno(struct pool *pool, PyObject *Py_UNUSED(none))
{
	int ret = twheel_pool_fd(pool->pool);

	return ret < 0 ? fail(ret) : PyLong_FromLong(ret);
}

/*
 * Nobody holds it, so that nobody can take its tasks. In a child after fork(2) a parent's pool
 * is nobody's fault.
 */
static void pool_finalize(struct pool *pool)
{
	PyObject *type, *value, *traceback;

	if (!pool->queue || pool->forks != forks)
		return;
	PyErr_Fetch(&type, &value, &traceback);
	if (PyErr_ResourceWarning((PyObject *)pool, 1, "%R was not stopped, and has tasks", pool))
		PyErr_WriteUnraisable((PyObject *)pool);
	PyErr_Restore(type, value, traceback);
}

static int pool_traverse(struct pool *pool, visitproc visit, void *arg)
{
	struct task *task;

	for (task = pool->queue; task; task = task->next)
		Py_VISIT(task);
	Py_VISIT(pool->on_error);
	Py_VISIT(pool->left);
	return 0;
}

/* In a child, a parent's pool can't be stopped, and ends no task. */
static int pool_clear(struct pool *pool)
{
	if (pool->queue)
		twheel_pool_stop(pool->pool, TWHEEL_NO_WAIT, NULL, NULL);
	while (pool->queue)
		Py_DECREF(task_leave(pool->queue));
	Py_CLEAR(pool->on_error);
	Py_CLEAR(pool->left);
	return 0;
}

static void pool_dealloc(struct pool *pool)
{
	PyObject_GC_UnTrack(pool);
	if (pool->at) {
		*pool->at = pool->next;
		if (pool->next)
			pool->next->at = pool->at;
	}
	pool_clear(pool);
	if (free_pool(pool) == -EDEADLK)
		leave(pool);
	else
		Py_TYPE(pool)->tp_free(pool);
}

/* When Python ends: no thread calls a task after this. */
PyObject *stop_pools(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
	struct pool *pool;

	over = true;
	while (pools) {
		pool = (struct pool *)Py_NewRef(pools);
		pools = pool->next;
		if (pools)
			pools->at = &pools;
		pool->at = NULL;
		Py_BEGIN_ALLOW_THREADS
		if (!twheel_pool_stop(pool->pool, 0, NULL, NULL))
			join(pool);
		Py_END_ALLOW_THREADS
		Py_DECREF(pool);
	}
	free_leftover();
	Py_RETURN_NONE;
}

static PyMethodDef pool_methods[] = {
	{ "start", (PyCFunction)(void *)task_start, METH_VARARGS | METH_KEYWORDS,
	  "Have function(*args) called: when is the delay in ns, or with absolute the time;\n"
	  "period is the time between runs in ns, or 0 for one run. Gives the task." },
	{ "stop", (PyCFunction)(void *)pool_stop, METH_VARARGS | METH_KEYWORDS,
	  "Run nothing any more, but what run_once and run_periodic say, and wait until nothing\n"
	  "runs. Gives the tasks that are not run." },
	{ "take", (PyCFunction)(void *)pool_take, METH_VARARGS | METH_KEYWORDS,
	  "Of a pool without threads: wait for tasks that are due, and have them." },
	{ "fileno", (PyCFunction)pool_fileno, METH_NOARGS,
	  "Of a pool without threads: a descriptor that can be read while a task is due." },
	{ "__enter__", pool_self, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)pool_exit, METH_VARARGS,
	  "Stop the pool: tasks that wait are not run, and those that run are waited for." },
	{ }
};

static PyTypeObject pool_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "twheel.Pool",
	.tp_doc = "A wheel and the threads that call its tasks; without threads, a delay queue.\n\n"
		  "An exception of a task ends that task, and on_error(task, exception) is called;\n"
		  "if that gives something true, the task goes on. Without it, sys.unraisablehook.\n\n"
		  "Use it in a with statement, or stop() it: a pool that is only let go goes on, with\n"
		  "its threads, until none of its tasks is to be run.",
	.tp_basicsize = sizeof(struct pool),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.tp_new = pool_new,
	.tp_dealloc = (destructor)pool_dealloc,
	.tp_finalize = (destructor)pool_finalize,
	.tp_traverse = (traverseproc)pool_traverse,
	.tp_clear = (inquiry)pool_clear,
	.tp_methods = pool_methods,
};

int add_pool(PyObject *module)
{
	return PyModule_AddType(module, &pool_type);
}
