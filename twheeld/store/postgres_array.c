// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays for statements of many rows.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "store/postgres_array.h"

/** pg_array_begin - begin an array of @count values, none of which is NULL */
void pg_array_begin(struct pg_array *array, enum pg_type type, size_t count)
{
	const uint32_t head[] = { htobe32(1), 0, htobe32(type), htobe32(count), htobe32(1) };

	array->out = must(open_memstream(&array->data, &array->size));
	fwrite(head, sizeof(head), 1, array->out);
}

void pg_array_add(struct pg_array *array, const void *value, uint32_t size)
{
	uint32_t length = htobe32(size);

	fwrite(&length, sizeof(length), 1, array->out);
	fwrite(value, 1, size, array->out);
}

void pg_array_number(struct pg_array *array, int64_t number)
{
	uint64_t value = htobe64(number);

	pg_array_add(array, &value, sizeof(value));
}

/** pg_arrays_end - all values are there: data and size may be used */
void pg_arrays_end(struct pg_array *arrays, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fclose(arrays[i].out))
			must(NULL);
}

void pg_arrays_free(struct pg_array *arrays, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(arrays[i].data);
}

/** pg_numbers - some numbers, as PostgreSQL writes an array; malloc()ed */
char *pg_numbers(const int64_t *numbers, size_t count)
{
	char *text = must(malloc(21 * count + 3)), *at = text;

	*at++ = '{';
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s%lld", i ? "," : "", (long long)numbers[i]);
	strcpy(at, "}");
	return text;
}
