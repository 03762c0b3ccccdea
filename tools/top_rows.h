/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rows of top: a wheel in each, in an order, with how often timers expire.
 */
#ifndef TOP_ROWS_H
#define TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "wheels.h"

/**
 * struct row - a wheel
 * @wheel: its first descriptor
 * @rate: expiries a second since it was looked at before
 */
struct row {
	struct wheel wheel;
	double rate;
};

/**
 * struct rows - all of them
 * @at: the rows
 * @nr: how many
 * @hidden: processes that could not be looked into
 * @order: which order they are in
 * @time: when they were looked at, in ns
 */
struct rows {
	struct row *at;
	size_t nr;
	size_t hidden;
	size_t order;
	__u64 time;
};

int rows_update(struct rows *rows);
void rows_sort_by(struct rows *rows, int key);
const char *rows_order(const struct rows *rows);
void rows_free(struct rows *rows);

#endif /* TOP_ROWS_H */
