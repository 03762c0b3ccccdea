/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arrays for statements of many rows: a column each, as PostgreSQL has them in binary.
 */
#ifndef TWHEELD_POSTGRES_ARRAY_H
#define TWHEELD_POSTGRES_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Their types have these numbers: */
enum pg_type { BYTEA = 17, BIGINT = 20, TEXT = 25 };

struct pg_array {
	FILE *out;
	char *data;
	size_t size;
};

void pg_array_begin(struct pg_array *array, enum pg_type type, size_t count);
void pg_array_add(struct pg_array *array, const void *value, uint32_t size);
void pg_array_number(struct pg_array *array, int64_t number);
void pg_arrays_end(struct pg_array *arrays, size_t count);
void pg_arrays_free(struct pg_array *arrays, size_t count);
char *pg_numbers(const int64_t *numbers, size_t count);

#endif
