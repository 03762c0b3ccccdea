// SPDX-License-Identifier: GPL-2.0
/*
 * Digests: the first 8 bytes of a SHA-256, in which numbers are little-endian.
 */
#include <endian.h>
#include <nettle/sha2.h>
#include <string.h>

#include "base/digest.h"

static void add_number(struct sha256_ctx *ctx, int64_t number)
{
	uint64_t little = htole64(number);

	sha256_update(ctx, sizeof(little), (const uint8_t *)&little);
}

static int64_t digest_end(struct sha256_ctx *ctx)
{
	uint64_t digest;

	sha256_digest(ctx, sizeof(digest), (uint8_t *)&digest);
	return le64toh(digest);
}

/** digest_text - the digest of a text and a number */
int64_t digest_text(const char *text, int64_t more)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(text), (const uint8_t *)text);
	add_number(&ctx, more);
	return digest_end(&ctx);
}

/** digest_numbers - the digest of an array of int64_t, or of structs that are made of these */
int64_t digest_numbers(const void *numbers, size_t bytes)
{
	const int64_t *number = numbers;
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	for (; bytes; bytes -= sizeof(*number))
		add_number(&ctx, *number++);
	return digest_end(&ctx);
}
