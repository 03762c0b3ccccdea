// SPDX-License-Identifier: GPL-2.0
/*
 * Keys by which jobs are put, and deleted: what stores have of them.
 */
#include <nettle/sha2.h>
#include <string.h>

#include "base/job_key.h"

/** job_key_digest - JOB_KEY_DIGEST bytes that no other key has, and no body */
void job_key_digest(const char *text, uint8_t *digest)
{
	struct sha256_ctx ctx;

	digest[0] = 1;
	sha256_init(&ctx);
	sha256_update(&ctx, strlen(text), (const uint8_t *)text);
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, digest + 1);
}
