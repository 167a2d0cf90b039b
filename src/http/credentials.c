/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credentials.c - whom a request says that it comes from; see credentials.h.
 */
#include "http/credentials.h"

/* The six bits of a character of base64 (RFC 4648, 4); -1: it is none. */
static int
six_bits(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

struct str
credentials_user(struct str text, char decoded[CREDENTIALS_USER_MAX])
{
	struct str scheme = str_head(text, str_find(text, ' '));
	struct str rest = str_trim(str_skip(text, scheme.len));
	unsigned bits = 0, held = 0;
	size_t n = 0;

	if (!str_equal_nocase(scheme, STR("basic")))
		return text;
	for (size_t i = 0; i < rest.len; i++) {
		int six = six_bits(rest.at[i]);

		if (six < 0)
			return text;
		bits = bits << 6 | (unsigned)six;
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		char c = (char)(bits >> held & 0xff);
		if (c == ':')
			return str_make(decoded, n);
		if (n == CREDENTIALS_USER_MAX)
			return text;
		decoded[n++] = c;
	}
	return text;
}
