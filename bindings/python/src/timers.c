// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Timers: a wheel whose timers are objects, for event loops. An object is kept while its
 * timer is armed, and given back once: by due(), or by cancel().
 *
 * The kernel's user data and the numbers of shared timers are indices into a table of
 * slots, never addresses. Shared timers are used where the wheel has them, for slots that
 * they have a number for; ordinary timers for the others. All calls hold the GIL, and no
 * code of the program's runs between taking expiries and emptying their slots, so a slot
 * in use is a timer that is armed. Who else has the descriptor may arm what he likes: an
 * expiry is looked at before it is taken for one of a slot's. A child after fork(2) has a
 * table of its own, but not timers of its own, and is refused all but close().
 */

#include <errno.h>
#include <math.h>

#include "native.h"

/* Expiries that are taken together */
#define TOGETHER 256

/* Slots at first, and the end of free ones */
#define FIRST_SLOTS 64
#define NO_SLOT UINT32_MAX

/**
 * struct slot - a timer
 * @object: what expires, or NULL in a free one
 * @id: of an ordinary timer
 * @generation: how often it was used, so that an old token is known
 * @next: the next free one
 */
struct slot {
	PyObject *object;
	uint64_t id;
	uint32_t generation;
	uint32_t next;
};

/**
 * struct timers - the wheel and its objects
 * @tw: the wheel, or NULL once closed
 * @area: its shared timers, of which there are @nr_shared
 * @slots: @nr_slots of them; those from @fresh on were never used
 * @free: the first free one of the others
 * @used: how many are
 * @ordinary: how many of these are ordinary timers
 * @forks: as it was when they were made
 */
struct timers {
	PyObject_HEAD
	struct twheel *tw;
	struct twheel_area area;
	uint32_t nr_shared;
	struct slot *slots;
	uint32_t nr_slots;
	uint32_t fresh;
	uint32_t free;
	uint32_t used;
	uint32_t ordinary;
	unsigned int forks;
};

static int timers_traverse(struct timers *timers, visitproc visit, void *arg)
{
	uint32_t i;

	for (i = 0; i < timers->fresh; i++)
		Py_VISIT(timers->slots[i].object);
	return 0;
}

/* To end objects may call what it wants: it finds a closed wheel without slots. */
static int timers_clear(struct timers *timers)
{
	struct slot *slots = timers->slots;
	uint32_t i, nr = timers->fresh;
	struct twheel *tw = timers->tw;

	timers->tw = NULL;
	timers->slots = NULL;
	timers->fresh = 0;
	timers->used = 0;
	if (tw) {
		if (timers->nr_shared)
			twheel_shared_unmap(&timers->area);
		twheel_close(tw);
	}
	for (i = 0; i < nr; i++)
		Py_XDECREF(slots[i].object);
	PyMem_Free(slots);
	return 0;
}

static void timers_dealloc(struct timers *timers)
{
	PyObject_GC_UnTrack(timers);
	timers_clear(timers);
	Py_TYPE(timers)->tp_free(timers);
}

static PyObject *timers_close(struct timers *timers, PyObject *Py_UNUSED(none))
{
	timers_clear(timers);
	Py_RETURN_NONE;
}

/* With shared timers, if they can be had */
static int open_shared(struct timers *timers, const char *backend, struct twheel_setup *setup)
{
	if (!setup->shared || open_wheel(backend, setup, &timers->tw))
		return -1;
	if (twheel_shared_map(timers->tw, &timers->area)) {
		twheel_close(timers->tw);
		timers->tw = NULL;
		return -1;
	}
	timers->nr_shared = timers->area.nr;
	return 0;
}

static PyObject *timers_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "backend", "tick", "shared", NULL };
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_SHARED,
	};
	unsigned long long tick = 0;
	const char *backend = NULL;
	struct timers *timers;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$zO&O&:Timers", names, &backend,
					 get_u64, &tick, get_u32, &setup.shared))
		return NULL;
	timers = (struct timers *)type->tp_alloc(type, 0);
	if (!timers)
		return NULL;
	setup.tick = tick;
	timers->free = NO_SLOT;
	timers->forks = forks;
	if (!open_shared(timers, backend, &setup))
		return (PyObject *)timers;
	PyErr_Clear();
	setup.shared = 0;
	setup.flags = 0;
	if (open_wheel(backend, &setup, &timers->tw))
		Py_CLEAR(timers);
	return (PyObject *)timers;
}

/* Is this the process that made them? */
static bool timers_here(const struct timers *timers)
{
	if (timers->forks != forks)
		fail(-EBADF);
	return timers->forks == forks;
}

static bool timers_open(const struct timers *timers)
{
	if (!timers->tw)
		PyErr_SetString(PyExc_ValueError, "the timers are closed");
	return timers->tw;
}

static bool grow(struct timers *timers)
{
	uint32_t nr = timers->nr_slots ? 2 * timers->nr_slots : FIRST_SLOTS;
	struct slot *slots = PyMem_Realloc(timers->slots, nr * sizeof(*slots));

	if (!slots) {
		PyErr_NoMemory();
		return false;
	}
	timers->slots = slots;
	timers->nr_slots = nr;
	return true;
}

static uint32_t take_slot(struct timers *timers)
{
	uint32_t at = timers->free;

	if (at != NO_SLOT) {
		timers->free = timers->slots[at].next;
		return at;
	}
	if (timers->fresh == timers->nr_slots && !grow(timers))
		return NO_SLOT;
	at = timers->fresh++;
	timers->slots[at] = (struct slot){ 0 };
	return at;
}

/* Gives the object, whose reference is the caller's now */
static PyObject *end_slot(struct timers *timers, uint32_t at)
{
	struct slot *slot = &timers->slots[at];
	PyObject *object = slot->object;

	slot->object = NULL;
	slot->generation++;
	slot->next = timers->free;
	timers->free = at;
	timers->used--;
	timers->ordinary -= at >= timers->nr_shared;
	return object;
}

static int arm_slot(struct timers *timers, uint32_t at, uint64_t deadline)
{
	struct twheel_op op;
	int ret;

	if (at < timers->nr_shared) {
		ret = twheel_shared_arm(&timers->area, at, deadline);
		return ret < 0 ? ret : 0;
	}
	op = twheel_op_arm(TWHEEL_ABS, deadline, 0, at);
	ret = twheel_arm(timers->tw, &op);
	timers->slots[at].id = op.id;
	return ret;
}

/* Seconds as ns: not before them, whatever their last bit is */
static bool get_deadline(PyObject *object, uint64_t *deadline)
{
	double seconds = PyFloat_AsDouble(object);

	if (seconds == -1 && PyErr_Occurred())
		return false;
	if (isnan(seconds)) {
		PyErr_SetString(PyExc_ValueError, "a time that is not a number");
		return false;
	}
	if (seconds < 0)
		*deadline = 0;
	else if (seconds > 4e9)
		*deadline = TWHEEL_WORD_NEVER;
	else
		*deadline = (uint64_t)ceil(seconds * 1e9) + 1;
	return true;
}

static PyObject *timers_add(struct timers *timers, PyObject *const *args, Py_ssize_t nr)
{
	uint64_t deadline;
	uint32_t at;
	int ret;

	if (nr != 2) {
		PyErr_SetString(PyExc_TypeError, "add(when, object)");
		return NULL;
	}
	if (!get_deadline(args[0], &deadline) || !timers_open(timers) || !timers_here(timers))
		return NULL;
	at = take_slot(timers);
	if (at == NO_SLOT)
		return NULL;
	timers->slots[at].object = Py_NewRef(args[1]);
	timers->used++;
	timers->ordinary += at >= timers->nr_shared;
	ret = arm_slot(timers, at, deadline);
	if (!ret)
		return PyLong_FromUnsignedLongLong((uint64_t)timers->slots[at].generation << 32 |
						   at);
	/* A shared timer is armed all the same: it must not expire in somebody else's slot */
	if (at < timers->nr_shared)
		twheel_shared_cancel(&timers->area, at);
	Py_DECREF(end_slot(timers, at));
	return fail(ret);
}

static PyObject *timers_cancel(struct timers *timers, PyObject *number)
{
	unsigned long long token = PyLong_AsUnsignedLongLong(number);
	uint32_t at = token;
	struct slot *slot;
	int ret = 0;

	if (token == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	if (!timers->tw || at >= timers->fresh)
		Py_RETURN_FALSE;
	slot = &timers->slots[at];
	if (!slot->object || slot->generation != token >> 32)
		Py_RETURN_FALSE;
	if (!timers_here(timers))
		return NULL;
	if (at < timers->nr_shared)
		twheel_shared_cancel(&timers->area, at);
	else
		ret = twheel_cancel(timers->tw, slot->id);
	if (ret)
		return fail(ret);
	Py_DECREF(end_slot(timers, at));
	Py_RETURN_TRUE;
}

/* The timer of an expiry; NULL if it is none of these (a shared one has no id, which is 0) */
static PyObject *end_expired(struct timers *timers, uint64_t at, uint64_t id)
{
	if (at >= timers->fresh || !timers->slots[at].object || timers->slots[at].id != id)
		return NULL;
	return end_slot(timers, at);
}

/* Take some that have expired; references, or NULL, are the caller's. Gives how many. */
static unsigned int take_due(struct timers *timers, PyObject **objects)
{
	struct twheel_event events[TOGETHER];
	unsigned int taken[TOGETHER], i, n;
	int nr;

	if (timers->nr_shared) {
		n = twheel_shared_take(&timers->area, taken, TOGETHER);
		for (i = 0; i < n; i++)
			objects[i] = end_expired(timers, taken[i], 0);
		if (n)
			return n;
		/* (A wheel in the program may be readable for nothing, until it is read.) */
		if (!timers->ordinary && twheel_backend(timers->tw) == TWHEEL_KERNEL)
			return 0;
	}
	/* (It has shared ones, too, but these were taken.) */
	nr = twheel_read(timers->tw, events, TOGETHER);
	for (i = 0; (int)i < nr; i++)
		objects[i] = end_expired(timers, events[i].user_data, events[i].id);
	return nr < 0 ? 0 : nr;
}

static PyObject *timers_due(struct timers *timers, PyObject *Py_UNUSED(none))
{
	PyObject *objects[TOGETHER], *list;
	unsigned int i, nr;
	int ret = 0;

	if (timers->tw && !timers_here(timers))
		return NULL;
	list = PyList_New(0);
	while (list && timers->tw) {
		nr = take_due(timers, objects);
		if (!nr)
			break;
		for (i = 0; i < nr; i++) {
			if (objects[i])
				ret |= PyList_Append(list, objects[i]);
			Py_XDECREF(objects[i]);
		}
		if (ret)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *timers_fileno(struct timers *timers, PyObject *Py_UNUSED(none))
{
	return timers_open(timers) ? PyLong_FromLong(twheel_fd(timers->tw)) : NULL;
}

static Py_ssize_t timers_length(struct timers *timers)
{
	return timers->used;
}

static PyObject *get_backend(struct timers *timers, void *Py_UNUSED(closure))
{
	if (!timers_open(timers))
		return NULL;
	if (timers->nr_shared)
		return PyUnicode_FromString("shared");
	if (twheel_backend(timers->tw) == TWHEEL_KERNEL)
		return PyUnicode_FromString("kernel");
	return PyUnicode_FromString("user");
}

static PyObject *get_inherited(struct timers *timers, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(timers->forks != forks);
}

static PyGetSetDef timers_getset[] = {
	{ "backend", (getter)get_backend, NULL, "what they are: 'shared', 'kernel' or 'user'" },
	{ "inherited", (getter)get_inherited, NULL,
	  "whether this is a child, after fork(2), of the process that made them" },
	{ }
};

static PyMethodDef timers_methods[] = {
	{ "add", (PyCFunction)(void *)timers_add, METH_FASTCALL,
	  "Keep an object until a time of the monotonic clock, in seconds. Gives a token." },
	{ "cancel", (PyCFunction)timers_cancel, METH_O,
	  "Let go of the object of that token. Whether it was still there." },
	{ "due", (PyCFunction)timers_due, METH_NOARGS,
	  "All objects whose time has come, in the order of their ticks at best." },
	{ "fileno", (PyCFunction)timers_fileno, METH_NOARGS,
	  "A descriptor that can be read when due() is to be called." },
	{ "close", (PyCFunction)timers_close, METH_NOARGS, "Let go of all." },
	{ }
};

static PySequenceMethods timers_sequence = { .sq_length = (lenfunc)timers_length };

static PyTypeObject timers_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "twheel.Timers",
	.tp_doc = "Objects with times, for an event loop of one thread.",
	.tp_basicsize = sizeof(struct timers),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.tp_new = timers_new,
	.tp_dealloc = (destructor)timers_dealloc,
	.tp_traverse = (traverseproc)timers_traverse,
	.tp_clear = (inquiry)timers_clear,
	.tp_methods = timers_methods,
	.tp_getset = timers_getset,
	.tp_as_sequence = &timers_sequence,
};

int add_timers(PyObject *module)
{
	return PyModule_AddType(module, &timers_type);
}
