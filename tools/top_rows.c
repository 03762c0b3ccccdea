// SPDX-License-Identifier: GPL-2.0
/*
 * The rows of top: made anew each time, and compared with those before. See top_rows.h.
 */
#include <stdlib.h>
#include <time.h>

#include "tool.h"
#include "top_rows.h"

static double by_pending(const struct row *row) { return row->wheel.pending; }
static double by_ready(const struct row *row) { return row->wheel.ready; }
static double by_rate(const struct row *row) { return row->rate; }
static double by_lateness(const struct row *row) { return row->wheel.max_lateness; }
static double by_nr(const struct row *row) { return -(double)row->wheel.nr; }

static const struct {
	int key;
	const char *name;
	double (*value)(const struct row *row);
} orders[] = {
	{ 'p', "pending", by_pending },
	{ 'r', "ready", by_ready },
	{ 'e', "expiries", by_rate },
	{ 'l', "lateness", by_lateness },
	{ 'w', "number", by_nr },
};

/* The largest first; wheels that are the same in that, the oldest first */
static int compare(const void *pa, const void *pb, void *order)
{
	const struct row *a = pa, *b = pb;
	double va = orders[*(size_t *)order].value(a);
	double vb = orders[*(size_t *)order].value(b);

	if (va != vb)
		return va > vb ? -1 : 1;
	return a->wheel.nr < b->wheel.nr ? -1 : a->wheel.nr > b->wheel.nr;
}

static void sort(struct rows *rows)
{
	if (rows->nr)
		qsort_r(rows->at, rows->nr, sizeof(*rows->at), compare, &rows->order);
}

/* Another order, if the key is of one */
void rows_sort_by(struct rows *rows, int key)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(orders); i++)
		if (orders[i].key == key)
			rows->order = i;
	sort(rows);
}

const char *rows_order(const struct rows *rows)
{
	return orders[rows->order].name;
}

static int by_number(const void *key, const void *at)
{
	__u64 a = *(const __u64 *)key, b = ((const struct row *)at)->wheel.nr;

	return a < b ? -1 : a > b;
}

/* How often timers expired since the wheel was looked at before; 0 if it was not */
static double rate(const struct rows *old, const struct wheel *wheel, double seconds)
{
	const struct row *before = NULL;

	if (old->nr)
		before = bsearch(&wheel->nr, old->at, old->nr, sizeof(*before), by_number);
	if (!before || seconds <= 0)
		return 0;
	return (wheel->expired - before->wheel.expired) / seconds;
}

/* By number, so that they are found */
static void sort_by_number(struct rows *rows)
{
	size_t order = rows->order;

	rows_sort_by(rows, 'w');
	rows->order = order;
}

int rows_update(struct rows *rows)
{
	struct rows new = { .order = rows->order };
	struct wheels wheels;
	struct timespec now;
	size_t i;
	int ret = wheels_find(&wheels, 0, -1);

	if (ret)
		return ret;
	clock_gettime(CLOCK_MONOTONIC, &now);
	new.time = now.tv_sec * SEC + now.tv_nsec;
	new.hidden = wheels.hidden;
	new.at = need(calloc(wheels.nr + 1, sizeof(*new.at)));
	sort_by_number(rows);
	for (i = 0; i < wheels.nr; i++) {
		const struct wheel *wheel = &wheels.at[i];

		if (!wheel_first(&wheels, i))
			continue;
		new.at[new.nr].wheel = *wheel;
		new.at[new.nr++].rate = rate(rows, wheel, (new.time - rows->time) / 1e9);
	}
	wheels_free(&wheels);
	rows_free(rows);
	*rows = new;
	sort(rows);
	return 0;
}

void rows_free(struct rows *rows)
{
	free(rows->at);
	rows->at = NULL;
	rows->nr = 0;
}
