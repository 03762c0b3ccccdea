// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel, its life and its single timers.
 *
 * Any thread may close a wheel while others wait in it: they are woken, and the last of
 * them to leave frees it. After fork(2) each process does so for itself: what wakes is
 * not shared, though the wheel may be.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "native.h"

static PyTypeObject *event_type, *timer_type;

static PyStructSequence_Field event_fields[] = {
	{ "user_data", "as given when the timer was armed; of a shared timer its number" },
	{ "id", "the timer; 0 of a shared one" },
	{ "deadline", "when it was to expire, in ns of the wheel's clock" },
	{ "overrun", "periods that went by before this was read" },
	{ "flags", "EVENT_PERIODIC, or 0" },
	{ NULL, NULL },
};

static PyStructSequence_Desc event_desc = {
	"twheel.Event", "The expiry of a timer.", event_fields, 5
};

static PyStructSequence_Field timer_fields[] = {
	{ "id", "the timer" },
	{ "deadline", "when it expires, in ns of the wheel's clock" },
	{ "user_data", "as given when it was armed" },
	{ "interval", "its period in ns, or 0" },
	{ "slack", "by how much it may be late, in ns" },
	{ "jitter", "by how much it is put off at random, at most" },
	{ "state", "PENDING or READY" },
	{ NULL, NULL },
};

static PyStructSequence_Desc timer_desc = {
	"twheel.Timer", "A timer as it is in a wheel.", timer_fields, 7
};

bool wheel_is_open(const struct wheel *wheel)
{
	if (wheel->tw && !wheel->closed)
		return true;
	PyErr_SetString(PyExc_ValueError, "the wheel is closed");
	return false;
}

static int open_stop(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/*
 * In a child after fork(2) the threads that were inside are not there, and the eventfd
 * would wake those of the parent.
 */
static void begin_anew(struct wheel *wheel)
{
	if (wheel->forks == forks && wheel->stop >= 0)
		return;
	close(wheel->stop);
	wheel->stop = open_stop();
	wheel->inside = 0;
	wheel->forks = forks;
}

/* Begin with a call that lets the GIL go; NULL with an exception. */
struct twheel *wheel_enter(struct wheel *wheel)
{
	if (!wheel_is_open(wheel))
		return NULL;
	begin_anew(wheel);
	if (wheel->stop < 0) {
		PyErr_SetString(PyExc_OSError, "no descriptor left for this process's readers");
		return NULL;
	}
	wheel->inside++;
	return wheel->tw;
}

static void free_wheel(struct wheel *wheel)
{
	struct twheel *tw = wheel->tw;

	wheel->tw = NULL;
	if (wheel->shared)
		twheel_shared_unmap(&wheel->area);
	wheel->shared = false;
	twheel_close(tw);
	if (wheel->stop >= 0)
		close(wheel->stop);
	wheel->stop = -1;
}

/* (A signal's handler may have forked: then none is inside any more.) */
void wheel_leave(struct wheel *wheel)
{
	if (wheel->inside && !--wheel->inside && wheel->closed)
		free_wheel(wheel);
}

static PyObject *wheel_close(struct wheel *wheel, PyObject *Py_UNUSED(none))
{
	if (!wheel->closed) {
		wheel->closed = true;
		begin_anew(wheel);
		if (wheel->inside)
			eventfd_write(wheel->stop, 1);
		else
			free_wheel(wheel);
	}
	Py_RETURN_NONE;
}

/* The flag of that name, or -1 with an exception */
int backend_flags(const char *backend)
{
	if (!backend)
		return 0;
	if (!strcmp(backend, "kernel"))
		return TWHEEL_KERNEL;
	if (!strcmp(backend, "user"))
		return TWHEEL_USER;
	if (!strcmp(backend, "bpf"))
		return TWHEEL_BPF;
	PyErr_Format(PyExc_ValueError, "backend is 'kernel', 'bpf', 'user' or None, not '%s'",
		     backend);
	return -1;
}

/* Gives 0, or -1 with an exception */
int open_wheel(const char *backend, const struct twheel_setup *setup, struct twheel **twp)
{
	int ret, flags = backend_flags(backend);

	if (flags < 0)
		return -1;
	ret = twheel_open(flags | O_NONBLOCK, twp);
	if (ret) {
		fail_to_open(ret);
		return -1;
	}
	ret = twheel_setup(*twp, setup);
	if (!ret)
		return 0;
	twheel_close(*twp);
	*twp = NULL;
	fail(ret);
	return -1;
}

static struct wheel *new_wheel(PyTypeObject *type)
{
	struct wheel *wheel = (struct wheel *)type->tp_alloc(type, 0);

	if (!wheel)
		return NULL;
	wheel->closed = true;
	wheel->forks = forks;
	wheel->stop = open_stop();
	if (wheel->stop >= 0)
		return wheel;
	PyErr_SetFromErrno(PyExc_OSError);
	Py_DECREF(wheel);
	return NULL;
}

static PyObject *wheel_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = {
		"backend", "clock", "tick", "limit", "shared", "count", "short_events", NULL
	};
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC,
	};
	unsigned long long tick = 0, limit = 0;
	int ret, count = 0, short_events = 0;
	const char *backend = NULL;
	struct wheel *wheel;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$zO&O&O&O&pp", names, &backend,
					 get_clock, &setup.clock, get_u64, &tick, get_u64,
					 &limit, get_u32, &setup.shared, &count,
					 &short_events))
		return NULL;
	setup.tick = tick;
	setup.limit = limit;
	setup.flags = (count ? TWHEEL_SETUP_COUNT : 0) |
		      (setup.shared ? TWHEEL_SETUP_SHARED : 0);
	if (short_events)
		setup.event_size = TWHEEL_EVENT_SIZE_ID;
	wheel = new_wheel(type);
	if (!wheel)
		return NULL;
	if (open_wheel(backend, &setup, &wheel->tw)) {
		Py_DECREF(wheel);
		return NULL;
	}
	wheel->closed = false;
	if (!setup.shared)
		return (PyObject *)wheel;
	ret = twheel_shared_map(wheel->tw, &wheel->area);
	if (!ret) {
		wheel->shared = true;
		return (PyObject *)wheel;
	}
	Py_DECREF(wheel);
	return fail(ret);
}

static PyObject *wheel_from_fd(PyTypeObject *type, PyObject *number)
{
	struct wheel *wheel;
	int ret, fd;

	if (!PyArg_Parse(number, "i", &fd))
		return NULL;
	wheel = new_wheel(type);
	if (!wheel)
		return NULL;
	ret = twheel_from_fd(fd, &wheel->tw);
	if (ret) {
		Py_DECREF(wheel);
		return fail_from_fd(ret);
	}
	wheel->closed = false;
	/* Reads here wait by themselves */
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	wheel->shared = !twheel_shared_map(wheel->tw, &wheel->area);
	return (PyObject *)wheel;
}

static void wheel_dealloc(struct wheel *wheel)
{
	free_wheel(wheel);
	Py_TYPE(wheel)->tp_free(wheel);
}

/* Take the arguments of ARM and MODIFY from a call; false with an exception */
static bool get_times(struct twheel_op *op, const char *format, PyObject *args,
		      PyObject *keywords)
{
	static char *arm_names[] = {
		"deadline", "user_data", "interval", "absolute", "slack", "jitter", NULL
	};
	static char *modify_names[] = {
		"id", "deadline", "user_data", "interval", "absolute", "slack", "jitter", NULL
	};
	unsigned long long id = 0, deadline, user_data = 0, interval = 0, slack = 0, jitter = 0;
	int absolute = 0, ok;

	if (op->opcode == TWHEEL_OP_ARM)
		ok = PyArg_ParseTupleAndKeywords(args, keywords, format, arm_names, get_u64,
						 &deadline, get_u64, &user_data, get_u64,
						 &interval, &absolute, get_u64, &slack,
						 get_u64, &jitter);
	else
		ok = PyArg_ParseTupleAndKeywords(args, keywords, format, modify_names, get_u64,
						 &id, get_u64, &deadline, get_u64, &user_data,
						 get_u64, &interval, &absolute, get_u64,
						 &slack, get_u64, &jitter);
	if (!ok)
		return false;
	op->id = id;
	op->flags = absolute ? TWHEEL_ABS : 0;
	op->deadline = deadline;
	op->user_data = user_data;
	op->interval = interval;
	op->slack = slack;
	op->jitter = jitter;
	return true;
}

static PyObject *wheel_arm(struct wheel *wheel, PyObject *args, PyObject *keywords)
{
	struct twheel_op op = { .opcode = TWHEEL_OP_ARM };
	int ret;

	if (!get_times(&op, "O&|O&$O&pO&O&:arm", args, keywords) || !wheel_is_open(wheel))
		return NULL;
	ret = twheel_arm(wheel->tw, &op);
	return ret ? fail(ret) : PyLong_FromUnsignedLongLong(op.id);
}

static PyObject *wheel_modify(struct wheel *wheel, PyObject *args, PyObject *keywords)
{
	struct twheel_op op = { .opcode = TWHEEL_OP_MODIFY };
	int ret;

	if (!get_times(&op, "O&O&|O&$O&pO&O&:modify", args, keywords) || !wheel_is_open(wheel))
		return NULL;
	ret = twheel_modify(wheel->tw, &op);
	return ret ? fail(ret) : PyLong_FromLong(op.state);
}

static PyObject *wheel_cancel(struct wheel *wheel, PyObject *number)
{
	unsigned long long id;
	int ret;

	if (!get_u64(number, &id) || !wheel_is_open(wheel))
		return NULL;
	ret = twheel_cancel(wheel->tw, id);
	if (ret)
		return fail(ret);
	Py_RETURN_NONE;
}

/* One field after the other; what could not be made makes it NULL */
static PyObject *fill_struct(PyTypeObject *type, const unsigned long long *values, int nr)
{
	PyObject *object = PyStructSequence_New(type), *value;
	int i;

	for (i = 0; object && i < nr; i++) {
		value = PyLong_FromUnsignedLongLong(values[i]);
		if (value)
			PyStructSequence_SetItem(object, i, value);
		else
			Py_CLEAR(object);
	}
	return object;
}

PyObject *make_timer(const struct twheel_op *op)
{
	const unsigned long long values[] = {
		op->id, op->deadline, op->user_data, op->interval, op->slack, op->jitter,
		op->state,
	};

	return fill_struct(timer_type, values, Py_ARRAY_LENGTH(values));
}

PyObject *make_event(const struct twheel_event *event)
{
	const unsigned long long values[] = {
		event->user_data, event->id, event->deadline, event->overrun, event->flags,
	};

	return fill_struct(event_type, values, Py_ARRAY_LENGTH(values));
}

static PyObject *wheel_query(struct wheel *wheel, PyObject *number)
{
	unsigned long long id;
	struct twheel_op op;
	int ret;

	if (!get_u64(number, &id) || !wheel_is_open(wheel))
		return NULL;
	op = twheel_op_query(id);
	ret = twheel_query(wheel->tw, &op);
	return ret ? fail(ret) : make_timer(&op);
}

static PyObject *wheel_now(struct wheel *wheel, PyObject *Py_UNUSED(none))
{
	if (!wheel_is_open(wheel))
		return NULL;
	return PyLong_FromUnsignedLongLong(twheel_now(wheel->tw));
}

static PyObject *wheel_fileno(struct wheel *wheel, PyObject *Py_UNUSED(none))
{
	if (!wheel_is_open(wheel))
		return NULL;
	return PyLong_FromLong(twheel_fd(wheel->tw));
}

static PyObject *wheel_set_eventfd(struct wheel *wheel, PyObject *number)
{
	int fd, ret;

	if (!PyArg_Parse(number, "i", &fd) || !wheel_is_open(wheel))
		return NULL;
	ret = twheel_set_eventfd(wheel->tw, fd);
	if (ret)
		return fail_eventfd(ret);
	Py_RETURN_NONE;
}

static PyObject *wheel_info(struct wheel *wheel, PyObject *Py_UNUSED(none))
{
	struct twheel_info info = { .size = sizeof(info) };
	int ret;

	if (!wheel_is_open(wheel))
		return NULL;
	ret = twheel_info(wheel->tw, &info);
	if (ret)
		return fail(ret);
#define FIELD(name) #name, (unsigned long long)info.name
	return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsKsKsK}", FIELD(clock), FIELD(features),
			     FIELD(tick_min), FIELD(tick_max), FIELD(tick), FIELD(wheel_limit),
			     FIELD(user_limit), FIELD(limit), FIELD(pending), FIELD(ready),
			     FIELD(next_expiry), FIELD(flags), FIELD(event_size),
			     FIELD(shared), FIELD(now));
#undef FIELD
}

static PyObject *lateness_list(const struct twheel_stats *stats)
{
	PyObject *list = PyList_New(TWHEEL_LATENESS_BUCKETS), *value;
	int i;

	for (i = 0; list && i < TWHEEL_LATENESS_BUCKETS; i++) {
		value = PyLong_FromUnsignedLongLong(stats->lateness[i]);
		if (value)
			PyList_SET_ITEM(list, i, value);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *wheel_stats(struct wheel *wheel, PyObject *Py_UNUSED(none))
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	PyObject *lateness;
	int ret;

	if (!wheel_is_open(wheel))
		return NULL;
	ret = twheel_stats(wheel->tw, &stats);
	if (ret)
		return fail(ret);
	lateness = lateness_list(&stats);
	if (!lateness)
		return NULL;
#define FIELD(name) #name, (unsigned long long)stats.name
	return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsN}", FIELD(armed), FIELD(modified),
			     FIELD(cancelled), FIELD(expired), FIELD(overruns),
			     FIELD(delivered), FIELD(drained), FIELD(refused), FIELD(wakeups),
			     FIELD(max_lateness), "lateness", lateness);
#undef FIELD
}

static PyObject *wheel_self(PyObject *wheel, PyObject *Py_UNUSED(none))
{
	if (!wheel_is_open((struct wheel *)wheel))
		return NULL;
	return Py_NewRef(wheel);
}

static PyObject *wheel_exit(struct wheel *wheel, PyObject *Py_UNUSED(args))
{
	return wheel_close(wheel, NULL);
}

static PyObject *get_backend(struct wheel *wheel, void *Py_UNUSED(closure))
{
	if (!wheel_is_open(wheel))
		return NULL;
	switch (twheel_backend(wheel->tw)) {
	case TWHEEL_KERNEL:
		return PyUnicode_FromString("kernel");
	case TWHEEL_BPF:
		return PyUnicode_FromString("bpf");
	default:
		return PyUnicode_FromString("user");
	}
}

static PyObject *get_closed(struct wheel *wheel, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(wheel->closed);
}

static PyObject *get_nr_shared(struct wheel *wheel, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLong(wheel->shared ? wheel->area.nr : 0);
}

static PyGetSetDef wheel_getset[] = {
	{ "backend", (getter)get_backend, NULL, "where the wheel is: 'kernel', 'bpf' or 'user'" },
	{ "closed", (getter)get_closed, NULL, "whether it was closed" },
	{ "shared", (getter)get_nr_shared, NULL, "how many shared timers it has" },
	{ }
};

#define METHOD(name, flags, doc) { #name, (PyCFunction)(void *)wheel_##name, flags, doc }
#define WITH_KEYWORDS (METH_VARARGS | METH_KEYWORDS)

static PyMethodDef wheel_methods[] = {
	METHOD(from_fd, METH_O | METH_CLASS,
	       "A wheel in the kernel, of a descriptor from elsewhere, which is its own now.\n\n"
	       "It is made non-blocking (O_NONBLOCK), also for all that share it: duplicates\n"
	       "of it, and other processes that have it."),
	METHOD(arm, WITH_KEYWORDS,
	       "Start a timer: deadline is a delay, or with absolute the time. Gives an id."),
	METHOD(modify, WITH_KEYWORDS,
	       "Give a live timer new times and user data. Gives the state that it was in."),
	METHOD(cancel, METH_O, "End a live timer: no event of it is read after that."),
	METHOD(query, METH_O, "Look at a live timer."),
	METHOD(submit, METH_O,
	       "Do all operations of a buffer of struct twheel_op, in place. Gives how many."),
	METHOD(arm_many, WITH_KEYWORDS,
	       "Start a timer for each deadline of a buffer of 64-bit words, in one call.\n\n"
	       "user_data is a buffer of as many words; without it, each timer has its index. The\n"
	       "ids are written into the buffer ids, or into a new one, which is the result. With\n"
	       "an error none of them is armed."),
	METHOD(cancel_many, METH_O,
	       "End all timers of a buffer of 64-bit ids, in one call. Gives how many still were."),
	METHOD(read, WITH_KEYWORDS,
	       "Wait for expired timers and take their events, max at most; an empty list when\n"
	       "timeout, in seconds, is over."),
	METHOD(read_into, WITH_KEYWORDS,
	       "The same into a buffer of struct twheel_event, of 32 bytes each. Gives how many; 0 at\n"
	       "once when the buffer has no room."),
	METHOD(read_count, WITH_KEYWORDS,
	       "In count mode: wait, and take the number of expiries; 0 when timeout is over."),
	METHOD(drain, METH_VARARGS, "Take pending timers out of the wheel, max at most."),
	METHOD(shared_arm, METH_FASTCALL,
	       "Start shared timer n, or give it another deadline, a time in ns. Gives its state."),
	METHOD(shared_cancel, METH_O, "Stop shared timer n. Gives the state that it was in."),
	METHOD(shared_take, METH_VARARGS, "The numbers of shared timers that have expired."),
	METHOD(shared_take_into, METH_O,
	       "The same into a buffer of 32-bit numbers. Gives how many."),
	METHOD(shared_arm_many, METH_VARARGS,
	       "Arm a shared timer for each deadline of a buffer, the first of them number first."),
	METHOD(shared_recover, METH_NOARGS,
	       "Take over shared timers from a process that died, alone."),
	METHOD(now, METH_NOARGS, "The time of the wheel's clock, in ns."),
	METHOD(fileno, METH_NOARGS, "The descriptor, for any event loop."),
	METHOD(set_eventfd, METH_O, "Signal this eventfd when timers become ready; -1 ends that."),
	METHOD(info, METH_NOARGS, "What this wheel can do and holds."),
	METHOD(stats, METH_NOARGS, "Its counters, and how late timers were."),
	METHOD(close, METH_NOARGS, "End the wheel and its timers, and the waiting of all threads."),
	{ "__enter__", wheel_self, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)wheel_exit, METH_VARARGS, NULL },
	{ }
};

static PyTypeObject wheel_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "twheel.Wheel",
	.tp_doc = "A wheel of timers. All times are ns of its clock.",
	.tp_basicsize = sizeof(struct wheel),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.tp_new = wheel_new,
	.tp_dealloc = (destructor)wheel_dealloc,
	.tp_methods = wheel_methods,
	.tp_getset = wheel_getset,
};

int add_wheel(PyObject *module)
{
	event_type = PyStructSequence_NewType(&event_desc);
	timer_type = PyStructSequence_NewType(&timer_desc);
	if (!event_type || !timer_type || PyModule_AddType(module, event_type) ||
	    PyModule_AddType(module, timer_type))
		return -1;
	return PyModule_AddType(module, &wheel_type);
}
