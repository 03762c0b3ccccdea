/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An input of the fuzzer, from which a target takes what it wants. Past its end
 * there are zeros.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <linux/types.h>

struct input {
	const u8 *at;
	const u8 *end;
};

static inline u8 take_byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline u64 take_bytes(struct input *in, unsigned int n)
{
	u64 value = 0;

	while (n--)
		value = value << 8 | take_byte(in);
	return value;
}

/* A number of any size. Most numbers are small, and then of one byte. */
static inline u64 take_number(struct input *in)
{
	u8 first = take_byte(in);

	return first < 0xf0 ? first : take_bytes(in, 1 + first % 8);
}

/* One of @n */
static inline unsigned int take_choice(struct input *in, unsigned int n)
{
	return take_byte(in) % n;
}

int fuzz_one_input(const u8 *data, size_t size);
void fuzz_abort_on_failure(void);

#endif /* FUZZ_INPUT_H */
