// SPDX-License-Identifier: GPL-2.0
/*
 * Texts of UTF-8, of any bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"

/* How many bytes are a character of UTF-8; 0: they are none */
static size_t character(const unsigned char *at, size_t left)
{
	size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 :
		*at < 0xf5 ? 4 : 0;

	if (length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Too long a form, a half of a pair of UTF-16, and what is behind the last one */
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
	    (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/**
 * utf8_text - a text of any bytes: what is no UTF-8 has U+FFFD in its place
 * @bytes: which may have zeros among them
 * @length: how many
 * @size: out: bytes of the text, which is malloc()ed, and has a zero behind it
 */
char *utf8_text(const char *bytes, size_t length, size_t *size)
{
	char *text = must(malloc(3 * length + 1)), *to = text;

	for (size_t i = 0, some; i < length; i += some ? some : 1) {
		some = character((const unsigned char *)bytes + i, length - i);
		memcpy(to, some ? bytes + i : "\xef\xbf\xbd", some ? some : 3);
		to += some ? some : 3;
	}
	*to = '\0';
	*size = to - text;
	return text;
}
